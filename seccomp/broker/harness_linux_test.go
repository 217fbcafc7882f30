package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// A probe is this test binary, run as the command of a sandbox: the variable names the probe, the next one its folder.
const (
	envProbe  = "SRT_TEST_BROKER_PROBE"
	envFolder = "SRT_TEST_BROKER_FOLDER"
)

// probes are registered by the tests that run them. What one returns is the test's answer.
var probes = map[string]func(folder string) any{}

func TestMain(m *testing.M) {
	if name, ok := os.LookupEnv(envProbe); ok {
		os.Exit(runProbe(name))
	}
	if r, w, err := os.Pipe(); err == nil { // the runtime's poller keeps descriptors of its own
		r.Close()
		w.Close()
	}
	before := openFiles()
	code := m.Run()
	if after := openFiles(); code == 0 && len(after) > len(before) {
		fmt.Fprintf(os.Stderr, "descriptors before the tests %q and now %q\n", before, after)
		code = 1
	}
	os.Exit(code)
}

func openFiles() (links []string) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	for _, e := range list {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		links = append(links, link)
	}
	return links
}

func runProbe(name string) int {
	probe := probes[name]
	if probe == nil {
		fmt.Fprintln(os.Stderr, "no probe", name)
		return 125
	}
	if err := json.NewEncoder(os.Stdout).Encode(probe(os.Getenv(envFolder))); err != nil {
		return 125
	}
	return 0
}

// testJudge refuses by location.
type testJudge struct {
	reads, moves bool
	suspect      func(name string) bool
	create       func(location string) bool
	open         func(location string) bool
	move         func(from, to string) bool
	redirect     func(location string) bool
}

func (j *testJudge) Reads() bool              { return j.reads }
func (j *testJudge) Moves() bool              { return j.moves }
func (j *testJudge) Suspect(name string) bool { return j.suspect != nil && j.suspect(name) }

func (j *testJudge) Create(_ fsview.Identity, at func() (string, error), name string) (string, bool, error) {
	dir, err := at()
	if err != nil || j.create == nil || !j.create(joinLocation(dir, name)) {
		return "", false, err
	}
	return "test.create", true, nil
}

func (j *testJudge) Open(path string) (string, bool) {
	return "test.open", j.open != nil && j.open(path)
}

func (j *testJudge) Move(from, to string) (string, bool) {
	return "test.move", j.move != nil && j.move(from, to)
}

func (j *testJudge) Leave(path string) (string, bool) { return j.Open(path) }

func (j *testJudge) Redirect(location string) (string, bool) {
	return "test.redirect", j.redirect != nil && j.redirect(location)
}

func anything(string) bool { return true }

const rootKeeps = ns.Capabilities(1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE)

// sandbox is a running probe with the broker that serves it.
type sandbox struct {
	process *ns.Process
	out     *os.File
	server  *Server
	served  chan error

	mu      sync.Mutex
	denials []Denial
}

// setup is what a sandbox of a test is made with.
type setup struct {
	judge   Judge // nil: no broker
	filter  func() seccomp.Filter
	mutate  func(*Config)
	probe   string
	folder  string
	stdin   *os.File
	workers int
	more    ns.Capabilities // that root keeps beside the usual ones
	mounts  []string        // paths in folder that are mounts, read-only ones with a "!" behind
	watched bool            // what is known of a thread is kept
	gate    Gate            // connections are put to the broker
	server  func(*Server)   // is given the Server before it serves
	changes ChangeJudge     // with it, or with confined, the sandbox has no namespaces
	// confined has no namespaces either, and nothing that keeps it from anything: what a sandbox with changes is compared with.
	confined bool
	walls    bool // with changes: Landlock lets the command write to devices alone, hands beneath the folder
	alone    bool // its namespace has loopback and no way out, whether or not there is a gate
}

// launchConfig maps all ids for root, as srt does, and the caller's own for others.
func launchConfig() (ns.Config, ns.Capabilities, *ns.Identity) {
	u, g := uint32(os.Geteuid()), uint32(os.Getegid())
	if u != 0 {
		return ns.Config{Namespaces: ns.Full, UIDs: []ns.IDMap{{Inside: u, Outside: u, Count: 1}},
			GIDs: []ns.IDMap{{Inside: g, Outside: g, Count: 1}}, DenySetgroups: true}, 0, nil
	}
	all := []ns.IDMap{{Inside: 0, Outside: 0, Count: 1 << 16}}
	groups, err := os.Getgroups()
	if err != nil {
		panic(err)
	}
	rights := &ns.Identity{UID: u, GID: g, Effective: rootKeeps}
	for _, g := range groups {
		rights.Groups = append(rights.Groups, uint32(g))
	}
	return ns.Config{Namespaces: ns.Full, UIDs: all, GIDs: all}, rootKeeps, rights
}

// startSandbox starts a probe, with a broker if there is a judge.
func startSandbox(t testing.TB, s setup) *sandbox {
	t.Helper()
	p, err := ns.NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	config, keep, rights := launchConfig()
	if rights != nil {
		keep |= s.more
		rights.Effective = keep
	}
	if s.changes != nil || s.confined {
		return startChanging(t, s, p, keep, rights)
	}
	p.Call("mount", "/", syscall.SYS_MOUNT, p.Str("none"), p.Str("/"), p.Str(""), ns.Int(unix.MS_REC|unix.MS_PRIVATE), p.Str(""))
	p.Call("mount", "/proc", syscall.SYS_MOUNT, p.Str("proc"), p.Str("/proc"), p.Str("proc"), ns.Int(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), p.Str(""))
	for _, name := range s.mounts {
		name, sealed := strings.CutSuffix(name, "!")
		at := p.Str(filepath.Join(s.folder, name))
		p.Call("mount", name, syscall.SYS_MOUNT, at, at, p.Str(""), ns.Int(unix.MS_BIND), p.Str(""))
		if sealed {
			p.Call("seal", name, syscall.SYS_MOUNT, at, at, p.Str(""), ns.Int(unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY), p.Str(""))
		}
	}
	p.Chdir(s.folder)
	if s.gate != nil || s.alone {
		p.LoopbackUp()
		p.ProhibitRoutes()
		p.ListenCapture(1)
	}
	p.Undumpable()
	p.KeepCapabilities(keep)
	p.NoNewPrivs()
	if s.judge != nil {
		if s.filter == nil {
			s.filter = seccomp.Names
		}
		if observeAll {
			s.observe()
		}
		listener := p.FilterWithListener("names", s.filter().Program())
		p.SendFiles(0, "the listener", listener)
		p.Close(listener)
	}
	return launchProbe(t, s, p, config, keep, rights)
}

// launchProbe starts the probe with a program that is complete.
func launchProbe(t testing.TB, s setup, p *ns.Program, config ns.Config, keep ns.Capabilities, rights *ns.Identity) *sandbox {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin := s.stdin
	if stdin == nil {
		if stdin, err = os.Open(os.DevNull); err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
	}
	config.Stdin, config.Stdout, config.Stderr = stdin, w, os.Stderr
	prepared, err := ns.Prepare(&config, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepared.AllowHands(); err != nil {
		t.Fatal(errors.Join(err, prepared.Close()))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{envProbe + "=" + s.probe, envFolder + "=" + s.folder, "PATH=/usr/bin:/bin", "GORACE=halt_on_error=1", "GOTRACEBACK=all",
		"GODEBUG=asyncpreemptoff=1"} // whose signals would interrupt calls with a time limit
	process, err := prepared.Start(&ns.Command{Candidates: []string{self}, Args: []string{self}, Env: env})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b := &sandbox{process: process, out: r, served: make(chan error, 1)}
	if s.judge == nil {
		b.served <- b.closeCapture()
		return b
	}
	b.serve(t, s, keep, rights)
	return b
}

func (b *sandbox) serve(t testing.TB, s setup, keep ns.Capabilities, rights *ns.Identity) {
	t.Helper()
	file := b.process.Files[0]
	listener, err := notify.New(file)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Listener: listener, Judge: s.judge, Rights: rights, Workers: s.workers, Watched: s.watched,
		NewHand: func() (Hand, error) {
			return ns.StartHand(ns.HandConfig{Process: b.process, Unrestricted: true, Listener: file, Keep: keep})
		},
		Report: func(d Denial) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.denials = append(b.denials, d)
		}}
	if s.gate != nil {
		c.Gate, c.Capture, c.Waiting = s.gate, b.process.Files[1], b.process.Files[2]
	}
	if s.changes != nil {
		b.serveChanges(&c, s, keep)
	}
	if s.mutate != nil {
		s.mutate(&c)
	}
	if b.server, err = New(c); err != nil {
		t.Fatal(err)
	}
	if s.server != nil {
		s.server(b.server)
	}
	go func() {
		err := b.server.Serve()
		b.served <- errors.Join(err, listener.Close(), b.closeCapture())
	}()
}

// closeCapture closes the listeners for captured connections, if there are any.
func (b *sandbox) closeCapture() error {
	var errs []error
	for i, f := range b.process.Files {
		if i > 0 && f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// finish waits for the probe and decodes its answer into v. It fails the test on anything that the broker could not do.
func (b *sandbox) finish(t testing.TB, v any) {
	t.Helper()
	for _, d := range b.finishWith(t, v) {
		if d.Err != nil {
			t.Errorf("%s %q: %v", d.Call, d.Path, d.Err)
		}
	}
}

// finishWith is finish for tests that want the reports.
func (b *sandbox) finishWith(t testing.TB, v any) []Denial {
	t.Helper()
	text, err := io.ReadAll(b.out)
	b.out.Close()
	if err != nil {
		t.Fatal(err)
	}
	st, err := b.process.Wait()
	if err2 := <-b.served; err2 != nil {
		t.Errorf("Serve: %v", err2)
	}
	if err != nil || st.Code != 0 {
		t.Fatalf("the probe ended with %v, %v after\n%s\n%v", st, err, text, b.denials)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return b.denials
}

// runSandbox runs a probe to its end.
func runSandbox(t testing.TB, s setup, v any) []Denial {
	t.Helper()
	b := startSandbox(t, s)
	b.finish(t, v)
	return b.denials
}

// tempFolder is a folder that no link leads to, with no default ACL and a fixed mode.
func tempFolder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// memoryFolder is tempFolder in memory where there is room, for tests with very many files.
func memoryFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "srt-broker")
	if err != nil {
		return tempFolder(t)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tree lists what is in a folder: path, type and mode, owner, size, what a link says.
func tree(folder string) (lines []string) {
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			lines = append(lines, "walk: "+err.Error())
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		name := strings.TrimPrefix(path, folder)
		text := ""
		size := st.Size
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			text, _ = os.Readlink(path)
			size = 0 // that of text, with the folder's random name in it
		case unix.S_IFDIR:
			size = 0
		}
		lines = append(lines, fmt.Sprintf("%s %o %d:%d links=%d size=%d dev=%d %s", name, st.Mode, st.Uid, st.Gid, st.Nlink, size, st.Rdev,
			strings.ReplaceAll(text, folder, "FOLDER")))
		return nil
	})
	if err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}
