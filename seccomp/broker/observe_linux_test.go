package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/seccomp"
)

// folderJudge denies as a policy would: nothing in ro changes, nothing in hid or of hidden shows, absent must not be made.
type folderJudge struct{ folder string }

func (j folderJudge) Judge(path string, a fsview.Access) fsview.Judgement {
	at := func(name string) bool { return path == j.folder+name || strings.HasPrefix(path, j.folder+name+"/") }
	deny := func(name string, substitute bool) fsview.Judgement {
		return fsview.Judgement{Denied: true, Rule: "test" + name, Path: j.folder + name, Substitute: substitute}
	}
	switch {
	case at("/ro") && a != fsview.AccessRead:
		return deny("/ro", false)
	case at("/hid"):
		return deny("/hid", true)
	case at("/hidden"):
		return deny("/hidden", true)
	case at("/w/absent") && a == fsview.AccessCreate:
		return deny("/w/absent", false)
	}
	return fsview.Judgement{}
}

// observed is one step of the probe, and the events that it makes: "call access path", the path beneath the folder. Those of
// reads are only made with MonitorAll.
type observedStep struct {
	name  string
	do    func(f string)
	want  []string
	reads []string
}

func cstr(s string) uintptr {
	b := append([]byte(s), 0)
	pinned = append(pinned, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

var pinned [][]byte // what calls point to, for the life of the probe

// raw makes a call and does not care what comes of it.
func raw(number uintptr, args ...uintptr) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, _ = unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
}

// open1 opens and closes again.
func open1(path string, flags int) {
	if fd, err := unix.Open(path, flags, 0o600); err == nil {
		unix.Close(fd)
	}
}

const cwdFD = ^uintptr(99) // AT_FDCWD

// dirFD opens a directory for steps that go by descriptor.
func dirFD(path string) int {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	return fd
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// mark makes an event that ends those of a step.
func mark(f string) { raw(unix.SYS_MKDIRAT, cwdFD, cstr(f+"/ro/mark"), 0o755) }

const marked = "mkdirat create /ro/mark"

func init() {
	probes["observed"] = func(f string) any {
		for _, s := range observedSteps() {
			s.do(f)
			mark(f)
		}
		return "done"
	}
}

// observeAll has every test of this package run with an observer that sees everything and denies nothing, which must change
// nothing: SRT_TEST_BROKER_OBSERVE=1 go test ./seccomp/broker
var observeAll = os.Getenv("SRT_TEST_BROKER_OBSERVE") != ""

type idleJudge struct{}

func (idleJudge) Judge(string, fsview.Access) fsview.Judgement { return fsview.Judgement{} }

// observe adds the observer to a sandbox that has none.
func (s *setup) observe() {
	filter, mutate := s.filter(), s.mutate
	if strings.Contains(filter.Name, "observe") {
		return
	}
	if filter.Name == "changes" && s.changes == nil {
		return // nobody can tell whether a call that comes is only to be looked at
	}
	s.filter = func() seccomp.Filter { return seccomp.Stack(filter, seccomp.ObserveAll())[0] }
	only := filter.Name != "names" && filter.Name != "opens" && !strings.Contains(filter.Name, "changes")
	s.mutate = func(c *Config) {
		c.Observe = &Observation{Judge: idleJudge{}, Reads: true, Only: only}
		if mutate != nil {
			mutate(c)
		}
	}
}

// observedFolder is what the steps work on.
func observedFolder(t testing.TB) string {
	t.Helper()
	f := tempFolder(t)
	for _, dir := range []string{"/ro/sub", "/w", "/hid"} {
		if err := os.MkdirAll(f+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/ro/file", "/w/file", "/hidden"} {
		if err := os.WriteFile(f+name, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"/ro/link": "file", "/w/to-file": "../ro/file", "/w/to-ro": f + "/ro", "/w/dangling": "../ro/nothing",
		"/w/loop": "loop"} {
		if err := os.Symlink(target, f+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(f+"/ro/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	return f
}

// observedModes are the ways in which the calls of the steps are answered: let go on, or performed.
var observedModes = []struct {
	name   string
	filter func() seccomp.Filter
	config func(*Config)
	reads  bool
	opens  bool
}{
	{"all", seccomp.ObserveAll, func(c *Config) { c.Observe.Reads, c.Observe.Only = true, true }, true, false},
	{"writes", seccomp.ObserveWrites, func(c *Config) { c.Observe.Only = true }, false, false},
	{"all with names", stacked(seccomp.Names, seccomp.ObserveAll), func(c *Config) { c.Observe.Reads = true }, true, false},
	{"writes with names", stacked(seccomp.Names, seccomp.ObserveWrites), func(*Config) {}, false, false},
	{"all with opens", stacked(seccomp.Opens, seccomp.ObserveAll), func(c *Config) { c.Observe.Reads = true }, true, true},
	{"writes with opens", stacked(seccomp.Opens, seccomp.ObserveWrites), func(*Config) {}, false, true},
}

func stacked(filters ...func() seccomp.Filter) func() seccomp.Filter {
	return func() seccomp.Filter {
		var list []seccomp.Filter
		for _, f := range filters {
			list = append(list, f())
		}
		return seccomp.Stack(list...)[0]
	}
}

func TestObserve_VIO10_EachCallAndPath(t *testing.T) {
	for _, mode := range observedModes {
		t.Run(mode.name, func(t *testing.T) {
			f := observedFolder(t)
			var answer string
			var server *Server
			denials := runSandbox(t, setup{
				judge: &testJudge{reads: mode.opens, suspect: func(name string) bool { return name == "absent" },
					create: func(at string) bool { return at == f+"/w/absent" }},
				filter: mode.filter, probe: "observed", folder: f, mounts: []string{"ro!", "hidden!"}, watched: mode.name == "all with names",
				mutate: func(c *Config) { c.Observe = &Observation{Judge: folderJudge{f}}; mode.config(c) },
				server: func(s *Server) { server = s },
			}, &answer)
			compareObserved(t, f, denials, mode.reads)
			if n := server.Unobserved(); n != 0 {
				t.Errorf("%d calls could not be looked at", n)
			}
			if n := server.Dropped(); n != 0 {
				t.Errorf("%d reports were left out", n)
			}
		})
	}
}

// compareObserved compares the reports with what the steps want.
func compareObserved(t *testing.T, f string, denials []Denial, reads bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	comm := filepath.Base(self)
	comm = comm[:min(len(comm), 15)]
	var got []string
	steps := observedSteps()
	step := 0
	for _, d := range denials {
		if d.Process != comm || d.PID <= 0 {
			t.Errorf("%+v: want process %q", d, comm)
		}
		line := fmt.Sprintf("%s %s %s", d.Call, d.Access, strings.TrimPrefix(d.Path, f))
		if !d.Observed { // what the Server refused by itself
			line = fmt.Sprintf("%s create %s", d.Call, strings.TrimPrefix(d.Path, f))
		}
		if line != marked {
			got = append(got, line)
			continue
		}
		if step == len(steps) {
			t.Fatalf("more marks than steps")
		}
		want := slices.Clone(steps[step].want)
		if reads {
			want = append(want, steps[step].reads...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", steps[step].name, got, want)
		}
		got, step = nil, step+1
	}
	if step != len(steps) {
		t.Errorf("%d marks, want %d", step, len(steps))
	}
}
