package escape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/mode"
)

// world is the scene of one attack, all of it owned by the attacker's account, so that nothing but srt holds the
// attack: work is the working directory and the one write root unless a test says otherwise, out is what must not
// change, home is HOME.
type world struct {
	t                    *testing.T
	who                  account
	dir, work, out, home string
	settings             settings
	env                  []string
	files                []*os.File // descriptors 3 and on of srt
	stdin                *os.File
	umbrella             string // a shell line that changes mounts around srt, see inNamespace
}

// settings is the part of a settings file that attacks vary.
type settings struct {
	AllowWrite, DenyWrite, DenyRead, AllowRead []string
	Domains                                    []string
	Network                                    map[string]any // further keys of "network"
	Top                                        map[string]any // further keys of the file
}

func newWorld(t *testing.T, who account) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-escape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unlock(dir)
		// A racing sandbox that was just killed may finish one more call meanwhile.
		err := os.RemoveAll(dir)
		for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); err = os.RemoveAll(dir) {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, who: who, dir: dir, work: dir + "/work", out: dir + "/out", home: dir + "/home",
		settings: settings{AllowWrite: []string{"."}}}
	for _, d := range []string{w.work, w.out, w.home} {
		w.must(os.Mkdir(d, 0o755))
	}
	w.write("out/victim", "untouched\n")
	w.own(dir)
	w.must(os.Chmod(dir, 0o755))
	return w
}

// unlock makes a tree removable again for its owner.
func unlock(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// own gives a tree to the attacker's account.
func (w *world) own(path string) {
	w.t.Helper()
	if !w.who.other {
		return
	}
	w.must(filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, w.who.uid, w.who.gid)
	}))
}

// write makes a file, and the directories to it, beneath the world.
func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o644))
	w.ownUp(path)
}

func (w *world) link(target, name string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.Symlink(target, path))
	w.ownUp(path)
}

func (w *world) ownUp(path string) {
	w.t.Helper()
	for ; w.who.other && path != w.dir; path = filepath.Dir(path) {
		w.must(os.Lchown(path, w.who.uid, w.who.gid))
	}
}

// read gives a file's content, or the error, as text to compare.
func (w *world) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		return "no file: " + errors.Unwrap(err).Error()
	}
	return string(b)
}

// settingsFile writes the settings and gives their path, which lies outside of every write root.
func (w *world) settingsFile() string {
	w.t.Helper()
	s := w.settings
	network := map[string]any{"allowedDomains": list(s.Domains), "deniedDomains": list(nil)}
	for k, v := range s.Network {
		network[k] = v
	}
	file := map[string]any{"network": network, "filesystem": map[string]any{
		"allowWrite": list(s.AllowWrite), "denyWrite": list(s.DenyWrite), "denyRead": list(s.DenyRead), "allowRead": list(s.AllowRead)}}
	for k, v := range s.Top {
		file[k] = v
	}
	text, err := json.Marshal(mode.Strict(file))
	w.must(err)
	path := w.dir + "/settings.json"
	w.must(os.WriteFile(path, text, 0o644))
	return path
}

func list(l []string) []string { return append([]string{}, l...) }

// environment is what srt is started with.
func (w *world) environment() []string {
	own := append(mode.Env(), "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME="+w.home, "LANG=C.UTF-8", "PROGRAMS="+programs, "WORLD="+w.dir)
	return append(own, w.env...)
}

// command is a program run as the attacker's account, outside of any sandbox.
func (w *world) command(ctx context.Context, argv ...string) *exec.Cmd {
	// The attacker's PATH counts, not that of the test.
	cmd := exec.CommandContext(ctx, "/usr/bin/env", append([]string{"--"}, argv...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = w.work, w.environment(), w.files
	cmd.WaitDelay = patience
	if w.stdin != nil {
		cmd.Stdin = w.stdin
	}
	switch {
	case w.umbrella != "":
		w.inNamespace(cmd)
	case w.who.other:
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.who.uid), Gid: uint32(w.who.gid)}}
	}
	return cmd
}

// inNamespace runs a command beneath a mount namespace that the umbrella has changed: made by root, or by the ordinary
// user in a user namespace of its own.
func (w *world) inNamespace(cmd *exec.Cmd) {
	var head []string
	script := w.umbrella + "\n" + `exec "$@"`
	switch {
	case w.who.other:
		head = []string{"unshare", "-m"}
		script = w.umbrella + "\n" + fmt.Sprintf(`exec setpriv --reuid=%d --regid=%d --clear-groups -- "$@"`, w.who.uid, w.who.gid)
	case w.who.uid == 0:
		head = []string{"unshare", "-m"}
	default:
		head = []string{"unshare", "-Urm"}
	}
	cmd.Args = append(append(head, "sh", "-ec", script, "sh"), cmd.Args...)
	path, err := exec.LookPath(head[0])
	w.must(err)
	cmd.Path = path
}

// outcome is how a run ended.
type outcome struct {
	out, err string
	code     int
}

func (w *world) finish(cmd *exec.Cmd) outcome {
	w.t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%q: %v\n%s", cmd.Args, err, errs.String())
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// srt is "srt exec" with the world's settings.
func (w *world) srt(ctx context.Context, argv ...string) *exec.Cmd {
	return w.command(ctx, append([]string{programs + "/srt", "exec", "-s", w.settingsFile(), "--"}, argv...)...)
}

// run runs a program in the sandbox. The program must print INSIDE first: the attack has been made.
func (w *world) run(argv ...string) outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := w.finish(w.srt(ctx, argv...))
	if ctx.Err() != nil {
		w.t.Fatalf("%q hangs\n%s%s", argv, o.out, o.err)
	}
	if !strings.HasPrefix(o.out, "INSIDE\n") {
		w.t.Fatalf("the attack was not made: %q: status %d\n%s%s", argv, o.code, o.out, o.err)
	}
	o.out = strings.TrimPrefix(o.out, "INSIDE\n")
	return o
}

// sh runs a shell script in the sandbox.
func (w *world) sh(script string) outcome {
	w.t.Helper()
	return w.run("sh", "-c", "echo INSIDE\n"+script)
}

// refused wants that srt does not start the command, and says why in these words.
func (w *world) refused(words string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o := w.finish(w.srt(ctx, "sh", "-c", "echo INSIDE; echo pwned > "+w.out+"/victim"))
	if strings.Contains(o.out, "INSIDE") || o.code == 0 {
		w.t.Fatalf("the command ran, status %d\n%s", o.code, o.err)
	}
	if !strings.Contains(o.err, words) {
		w.t.Errorf("the refusal does not say %q:\n%s", words, o.err)
	}
}

// outside runs a script as the attacker, without a sandbox.
func (w *world) outside(script string) outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return w.finish(w.command(ctx, "sh", "-c", script))
}

// holds runs a script in the sandbox and wants the trees unchanged; then it runs the script without a sandbox, where it
// must change them, or it attacks nothing.
func (w *world) holds(script string, trees ...string) {
	w.t.Helper()
	before := w.snapshot(trees...)
	o := w.sh(script)
	if diff := difference(before, w.snapshot(trees...)); diff != "" {
		w.t.Errorf("ESCAPE: the attack changed\n%s\nscript:\n%s\n%s%s", diff, script, o.out, o.err)
		return
	}
	c := w.outside(script)
	if difference(before, w.snapshot(trees...)) == "" {
		w.t.Errorf("the attack changes nothing outside a sandbox either:\n%s\n%s%s", script, c.out, c.err)
	}
}

func mkdirFor(w *world, path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Lchown(path, w.who.uid, w.who.gid)
}

// identities says which objects stand at these names, and their content if they are files.
func (w *world) identities(names ...string) map[string]string {
	all := map[string]string{}
	for _, n := range names {
		path := filepath.Join(w.dir, n)
		text := describe(path)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			text = fmt.Sprint("directory ", info.Sys().(*syscall.Stat_t).Ino)
		}
		all[path] = text
	}
	return all
}
