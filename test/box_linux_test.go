package test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/mode"
)

// patience bounds every wait for another process, so that a fault does not hang the run. It says nothing about speed.
const patience = 60 * time.Second

// box is one test's own world: a scratch directory of the account with a home and a working directory in it.
type box struct {
	t    *testing.T
	who  account
	dir  string // everything; files of the test that no sandbox may touch lie here
	home string // HOME
	work string // ~/p, the working directory
	mark string // value of markVariable in the environment of all that the test starts
	env  []string
}

// markVariable is in the environment of every process that a test starts, so that leftovers can be found.
const markVariable = "SRT_TEST_MARK"

// each runs a test as every account, each in a box of its own.
func each(t *testing.T, f func(*testing.T, *box)) {
	t.Helper()
	for _, who := range accounts {
		t.Run(who.name, func(t *testing.T) { f(t, newBox(t, who)) })
	}
}

// eachAlong is each for tests that share nothing with others.
func eachAlong(t *testing.T, f func(*testing.T, *box)) {
	t.Helper()
	t.Parallel()
	for _, who := range accounts {
		t.Run(who.name, func(t *testing.T) {
			t.Parallel()
			f(t, newBox(t, who))
		})
	}
}

// asRoot runs a test as root, and says so where nobody is root.
func asRoot(t *testing.T, f func(*testing.T, *box)) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skipf("needs uid 0, have %d; the run as root covers it", os.Getuid())
	}
	f(t, newBox(t, accounts[0]))
}

func newBox(t *testing.T, who account) *box {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-test-")
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, who: who, dir: dir, home: dir + "/home", work: dir + "/home/p", mark: rand.Text()}
	t.Cleanup(func() {
		b.killLeftovers()
		if err := removeAll(dir); err != nil {
			t.Error(err)
		}
	})
	b.must(os.Chmod(dir, 0o755))
	b.must(os.Chown(dir, who.uid, who.gid))
	b.mkdir(b.work, 0o755)
	b.mkdir(dir+"/tmp", 0o755)
	b.env = append(mode.Env(), "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME="+b.home, "LANG=C.UTF-8", "TERM=dumb",
		"USER="+who.name, markVariable+"="+b.mark, "SRT_BIN="+srtPath, "CLAUDE_CODE_TMPDIR="+dir+"/tmp")
	return b
}

// removeAll removes a tree of which a test may have made parts inaccessible.
func removeAll(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func (b *box) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// abs makes a path absolute in the working directory.
func (b *box) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(b.work, path)
}

// mkdir makes a directory and its missing parents, all the account's.
func (b *box) mkdir(path string, mode os.FileMode) {
	b.t.Helper()
	path = b.abs(path)
	if _, err := os.Lstat(filepath.Dir(path)); err != nil {
		b.mkdir(filepath.Dir(path), 0o755)
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, os.ErrExist) {
		b.t.Fatal(err)
	}
	b.must(os.Chmod(path, mode))
	b.must(os.Lchown(path, b.who.uid, b.who.gid))
}

// file writes a file of the account, with the directories to it.
func (b *box) file(path, text string) {
	b.t.Helper()
	path = b.abs(path)
	b.mkdir(filepath.Dir(path), 0o755)
	b.must(os.WriteFile(path, []byte(text), 0o644))
	b.must(os.Lchown(path, b.who.uid, b.who.gid))
}

// link makes a symbolic link of the account.
func (b *box) link(target, path string) {
	b.t.Helper()
	b.must(os.Symlink(target, b.abs(path)))
	b.must(os.Lchown(b.abs(path), b.who.uid, b.who.gid))
}

// holds wants this text in a file on the host.
func (b *box) holds(path, want string) {
	b.t.Helper()
	got, err := os.ReadFile(b.abs(path))
	if err != nil || string(got) != want {
		b.t.Errorf("host file %s holds %q, %v; want %q", path, got, err, want)
	}
}

// absent wants that there is nothing of that name on the host.
func (b *box) absent(path string) {
	b.t.Helper()
	if _, err := os.Lstat(b.abs(path)); !errors.Is(err, os.ErrNotExist) {
		b.t.Errorf("%s is on the host (%v)", path, err)
	}
}

// list is a list of entries in the settings.
type list = []any

// cfg is a settings file in short: what is not set is empty.
type cfg struct {
	dr, ar, aw, dw list   // denyRead, allowRead, allowWrite, denyWrite
	allow, deny    list   // allowedDomains, deniedDomains
	fs, net, top   object // further keys
}

type object = map[string]any

func (c cfg) json() []byte {
	full := func(l list) list { return append(list{}, l...) }
	fs := object{"denyRead": full(c.dr), "allowRead": full(c.ar), "allowWrite": full(c.aw), "denyWrite": full(c.dw)}
	net := object{"allowedDomains": full(c.allow), "deniedDomains": full(c.deny)}
	top := object{"network": net, "filesystem": fs}
	for _, part := range []struct{ to, from object }{{fs, c.fs}, {net, c.net}, {top, c.top}} {
		for k, v := range part.from {
			part.to[k] = v
		}
	}
	text, err := json.Marshal(mode.Settings(top))
	if err != nil {
		panic(err)
	}
	return text
}

// settings writes a settings file outside the home and returns its path.
func (b *box) settings(c cfg) string {
	b.t.Helper()
	f, err := os.CreateTemp(b.dir, "settings-*.json")
	b.must(err)
	defer f.Close()
	_, err = f.Write(c.json())
	b.must(err)
	b.must(f.Chmod(0o644))
	return f.Name()
}

// srt is a command line of srt under these settings.
func (b *box) srt(c cfg, args ...string) []string {
	b.t.Helper()
	return append([]string{srtPath, "-s", b.settings(c), "exec", "--"}, args...)
}

// result is how a program ended.
type result struct {
	b              *box
	args           []string
	status         int // exit status; minus the number of the signal that killed it
	stdout, stderr string
}

// run runs srt exec with these settings to its end.
func (b *box) run(c cfg, args ...string) result {
	b.t.Helper()
	return b.host(b.srt(c, args...)...)
}

// sh runs shell text in a sandbox.
func (b *box) sh(c cfg, text string) result {
	b.t.Helper()
	return b.run(c, "sh", "-c", text)
}

// host runs a program of the host as the account.
func (b *box) host(args ...string) result {
	b.t.Helper()
	return b.finish(b.command(args...))
}

// command prepares a program of the host as the account. It is killed when the test takes too long.
func (b *box) command(args ...string) *exec.Cmd {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	b.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.work, b.env, patience
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.who.uid), Gid: uint32(b.who.gid)}
	}
	return cmd
}

// finish runs a prepared command. Streams that are set stay as they are.
func (b *box) finish(cmd *exec.Cmd) result {
	b.t.Helper()
	return b.start(cmd)()
}

// start starts a prepared command. What it returns waits for the end.
func (b *box) start(cmd *exec.Cmd) (wait func() result) {
	b.t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errs
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatalf("%q: %v", cmd.Args, err)
	}
	return func() result {
		err := cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			b.t.Errorf("%q: %v", cmd.Args, err)
		}
		return result{b, cmd.Args, exitStatus(cmd.ProcessState), out.String(), errs.String()}
	}
}

func exitStatus(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return s.ExitCode()
}

func (r result) String() string {
	return fmt.Sprintf("%q: status %d\n--- stdout\n%s--- stderr\n%s", r.args, r.status, r.stdout, r.stderr)
}

// ok wants status 0.
func (r result) ok() result {
	r.b.t.Helper()
	return r.exits(0)
}

// exits wants this status.
func (r result) exits(want int) result {
	r.b.t.Helper()
	if r.status != want {
		r.b.t.Fatalf("want status %d; %v", want, r)
	}
	return r
}

// fails wants any status but 0 that is the program's own.
func (r result) fails() result {
	r.b.t.Helper()
	if r.status <= 0 {
		r.b.t.Fatalf("want a failure; %v", r)
	}
	return r
}

// prints wants exactly this standard output, white space at its end aside.
func (r result) prints(want string) result {
	r.b.t.Helper()
	if got := strings.TrimRight(r.stdout, "\n"); got != want {
		r.b.t.Errorf("want stdout %q; %v", want, r)
	}
	return r
}

// says wants each text on standard error.
func (r result) says(texts ...string) result {
	r.b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.stderr, text) {
			r.b.t.Errorf("want %q on stderr; %v", text, r)
		}
	}
	return r
}

// silent wants nothing on standard error.
func (r result) silent() result {
	r.b.t.Helper()
	if r.stderr != "" {
		r.b.t.Errorf("want no words on stderr; %v", r)
	}
	return r
}

// need fails where CI expects a tool, and skips the test elsewhere.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("got no %s, want it (build/prepare.sh installs it)", tool)
		}
		t.Skipf("got no %s, want it; make test installs it", tool)
	}
}
