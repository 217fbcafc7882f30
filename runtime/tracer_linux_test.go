package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// tracedVariable makes the test binary a command of a sandbox that makes the calls in it, one a line.
const tracedVariable = "SRT_TEST_TRACED_CALLS"

func init() {
	if lines, ok := os.LookupEnv(tracedVariable); ok {
		os.Exit(makeCalls(lines))
	}
}

func makeCalls(lines string) int {
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		do, known := tracedActions[words[0]]
		if !known {
			fmt.Println("no action", words[0])
			return 1
		}
		err := do(append(words[1:], "", ""))
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			fmt.Println(unix.ErrnoName(errno))
		} else {
			fmt.Println("ok", err)
		}
	}
	return 0
}

func openAndClose(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// tracedActions are calls about paths.
var tracedActions = map[string]func(p []string) error{
	"read":   func(p []string) error { return openAndClose(unix.Open(p[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)) },
	"write":  func(p []string) error { return openAndClose(unix.Open(p[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)) },
	"trunc":  func(p []string) error { return openAndClose(unix.Open(p[0], unix.O_RDONLY|unix.O_TRUNC, 0)) },
	"create": func(p []string) error { return openAndClose(unix.Open(p[0], unix.O_CREAT|unix.O_WRONLY, 0o600)) },
	"openat2": func(p []string) error {
		return openAndClose(unix.Openat2(-100, p[0], &unix.OpenHow{Flags: unix.O_RDWR}))
	},
	"mkdir":    func(p []string) error { return unix.Mkdir(p[0], 0o700) },
	"rmdir":    func(p []string) error { return unix.Rmdir(p[0]) },
	"unlink":   func(p []string) error { return unix.Unlink(p[0]) },
	"rename":   func(p []string) error { return unix.Rename(p[0], p[1]) },
	"link":     func(p []string) error { return unix.Link(p[0], p[1]) },
	"symlink":  func(p []string) error { return unix.Symlink("target", p[0]) },
	"linkto":   func(p []string) error { return unix.Symlink(p[1], p[0]) },
	"mknod":    func(p []string) error { return unix.Mknod(p[0], unix.S_IFIFO|0o600, 0) },
	"device":   func(p []string) error { return unix.Mknod(p[0], unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	"chmod":    func(p []string) error { return unix.Chmod(p[0], 0o600) },
	"chown":    func(p []string) error { return unix.Chown(p[0], 0, 0) },
	"utimes":   func(p []string) error { return unix.UtimesNanoAt(-100, p[0], make([]unix.Timespec, 2), 0) },
	"setxattr": func(p []string) error { return unix.Setxattr(p[0], "user.x", []byte("v"), 0) },
	"truncate": func(p []string) error { return unix.Truncate(p[0], 0) },
	"exec":     func(p []string) error { return unix.Exec(p[0], p[:1], nil) },
	"readlink": func(p []string) error { _, err := unix.Readlink(p[0], make([]byte, 99)); return err },
	"chdir":    func(p []string) error { return unix.Chdir(p[0]) },
	"flicker": func(p []string) error { // from here on, a link is there and is not
		go func() {
			for unix.Symlink(p[1], p[0]) == nil && unix.Unlink(p[0]) == nil {
			}
		}()
		return nil
	},
	"in": func(p []string) error { // a path beneath a directory as a descriptor
		fd, err := unix.Open(p[0], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Mkdirat(fd, p[1], 0o700)
	},
}

// tracedSession is a session whose kernel refusals are traced, with what it reports. It skips where tracing cannot be had,
// which must have a reason that a person can read.
func tracedSession(t testing.TB, m Monitor, cfg *config.Config) (*Sandbox, *eventRecorder) {
	t.Helper()
	if err := bpf.TracingSupported(); err != nil {
		if unsupported, ok := errors.AsType[*bpf.Unsupported](err); !ok || unsupported.Detail == "" || os.Geteuid() == 0 && !errors.Is(err, bpf.ErrNoCapability) {
			t.Fatal(err)
		}
		t.Skipf("got %v, want a process that may trace", err)
	}
	r := &eventRecorder{}
	s, err := New(context.Background(), cfg, WithMonitor(m), WithOnViolation(r.add))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, r
}

type eventRecorder struct {
	mu   sync.Mutex
	list []violation.Event
}

func (r *eventRecorder) add(e violation.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

func (r *eventRecorder) take() []violation.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// tracedCalls runs calls in a command of a session, and gives its answers.
func tracedCalls(t testing.TB, s *Sandbox, dir, id string, lines ...string) (answers []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c := s.Command(context.Background(), exe)
	c.ID, c.Dir, c.Stdout, c.Stderr = id, dir, &out, os.Stderr
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=", tracedVariable + "=" + strings.Join(lines, "\n"), "GORACE=atexit_sleep_ms=0"}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// tracedTree is a directory with something for each kind of rule.
func tracedTree(t testing.TB) (dir string, cfg *config.Config) {
	t.Helper()
	dir = t.TempDir()
	for _, d := range []string{"work/locked", "work/sub/deep", "secret/sub", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"work/free", "work/locked/f", "work/sub/deep/fixed", "secret/key", "hidden", "outside/f"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("../secret", dir+"/work/to-secret"), os.Symlink("../outside", dir+"/work/to-outside"),
		os.Symlink("to-secret/key", dir+"/work/to-key"),
		os.Symlink("target", dir+"/secret/link")); err != nil {
		t.Fatal(err)
	}
	cfg = config.Default()
	cfg.Filesystem.AllowWrite = beneath(dir, "work")
	cfg.Filesystem.DenyWrite = beneath(dir, "work/locked", "work/sub/deep/fixed", "work/later")
	cfg.Filesystem.DenyRead = beneath(dir, "secret", "hidden")
	return dir, cfg
}

func beneath(dir string, names ...string) (list []config.PathEntry) {
	for _, name := range names {
		list = append(list, config.PathEntry{Path: filepath.Join(dir, name)})
	}
	return list
}

const (
	noWrite = "filesystem.allowWrite"
	locked  = "filesystem.denyWrite.0"
	fixed   = "filesystem.denyWrite.1"
	later   = "filesystem.denyWrite.2"
	secret  = "filesystem.denyRead.0"
	hidden  = "filesystem.denyRead.1"
)

// Each kind of call and each kind of rule: one event, with its path, process, call and rule.
func TestTraced_EachRefusalOnce_VIO10(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := tracedSession(t, MonitorAll, cfg)
	for _, c := range []struct {
		call, path, rule string // path of the event, beneath dir; empty: no event
	}{
		{"write outside/f", "outside/f", noWrite},
		{"trunc outside/f", "outside/f", noWrite},
		{"create outside/new", "outside/new", noWrite},
		{"create outside/f", "outside/f", noWrite},
		{"openat2 outside/f", "outside/f", noWrite},
		{"mkdir outside/new", "outside/new", noWrite},
		{"rmdir outside", "outside", noWrite},
		{"unlink outside/f", "outside/f", noWrite},
		{"rename outside/f work/g", "outside/f", noWrite},
		{"rename work/free outside/g", "outside/g", noWrite},
		{"link work/free outside/g", "outside/g", noWrite},
		{"symlink outside/new", "outside/new", noWrite},
		{"mknod outside/new", "outside/new", noWrite},
		{"chmod outside/f", "outside/f", noWrite},
		{"chown outside/f", "outside/f", noWrite},
		{"utimes outside/f", "outside/f", noWrite},
		{"setxattr outside/f", "outside/f", noWrite},
		{"truncate outside/f", "outside/f", noWrite},
		{"in outside x", "outside/x", noWrite},
		{"in work ../outside/./x", "outside/x", noWrite},
		{"mkdir work/to-outside/x", "outside/x", noWrite},
		{"chmod work/to-outside", "outside", noWrite},
		{"write work/locked/f", "work/locked/f", locked},
		{"mkdir work/locked/x", "work/locked/x", locked},
		{"rmdir work/locked", "work/locked", locked},
		{"rename work/locked work/moved", "work/locked", locked},
		{"rename work/free work/locked/g", "work/locked/g", locked},
		{"link work/free work/locked/g", "work/locked/g", locked},
		{"write work/sub/deep/fixed", "work/sub/deep/fixed", fixed},
		{"unlink work/sub/deep/fixed", "work/sub/deep/fixed", fixed},
		{"rename work/free work/sub/deep/fixed", "work/sub/deep/fixed", fixed},
		{"rename work/sub work/moved", "work/sub", fixed},
		{"create work/later", "work/later", later},
		{"mkdir work/later", "work/later", later},
		{"rename work/free work/later", "work/later", later},
		{"read secret/key", "secret/key", secret},
		{"read secret/sub/..//key", "secret/key", secret},
		{"read work/to-secret/key", "secret/key", secret},
		{"read secret", "secret", secret},
		{"read work/to-secret", "secret", secret},
		{"read work/to-key", "secret/key", secret}, // the link leads nowhere, there
		{"exec secret/key", "secret/key", secret},
		{"readlink secret/link", "secret/link", secret},
		{"chdir secret/sub", "secret/sub", secret},
		{"write secret/key", "secret/key", secret},
		{"read hidden", "hidden", hidden},
		{"write hidden", "hidden", hidden},
		{"exec hidden", "hidden", hidden},
		{"unlink hidden", "hidden", hidden},
		{"read outside/f", "", ""},
		{"read outside/none", "", ""},
		{"readlink outside/none", "", ""},
		{"write work/none", "", ""},
		{"unlink work/none", "", ""},
		{"create work/new", "", ""},
		{"mkdir work/d", "", ""},
		{"rmdir work/d", "", ""},
		{"rename work/new work/newer", "", ""},
		{"mkdir work/sub", "", ""},
		{"device work/dev", "", ""}, // EPERM: of root's rights, not of a rule
		{"mkdir secret/made", "", ""},
	} {
		before := time.Now()
		answers := tracedCalls(t, s, dir, "the key", c.call)
		list := got.take()
		if c.path == "" {
			if len(list) != 0 {
				t.Errorf("%s (%v): %+v", c.call, answers, list)
			}
			continue
		}
		if len(list) != 1 {
			t.Errorf("%s (%v): %d events, want one: %+v", c.call, answers, len(list), list)
			continue
		}
		e := list[0]
		if e.Target != filepath.Join(dir, c.path) || e.Rule != c.rule || e.CommandID != "the key" || e.PID == 0 {
			t.Errorf("%s (%v): %+v, want %s by %s", c.call, answers, e, c.path, c.rule)
		}
		if e.Process == "" || e.Time.Before(before.Add(-time.Second)) || e.Time.After(time.Now().Add(time.Second)) || !strings.HasPrefix(e.Line(), "deny ") {
			t.Errorf("%s: %+v", c.call, e)
		}
	}
}

// Writes alone, where no more was asked for; and nothing at all where nothing was.
func TestMonitor_Levels_LIB1(t *testing.T) {
	observed := func(t testing.TB, m Monitor, cfg *config.Config) (*Sandbox, *eventRecorder) {
		return observedSession(t, m, cfg)
	}
	calls := []string{"read secret/key", "read hidden", "chdir secret/sub", "write outside/f", "mkdir outside/x"}
	for source, session := range map[string]func(testing.TB, Monitor, *config.Config) (*Sandbox, *eventRecorder){
		"traced": tracedSession, "observed": observed,
	} {
		t.Run(source, func(t *testing.T) {
			for m, want := range map[Monitor]int{MonitorAll: 5, MonitorWrites: 2, MonitorOff: 0} {
				dir, cfg := tracedTree(t)
				s, got := session(t, m, cfg)
				tracedCalls(t, s, dir, "", calls...)
				if list := got.take(); len(list) != want {
					t.Errorf("%d: %+v", m, list)
				}
			}
		})
	}
}

// VIO-7: two sandboxes at once never mix, nor do two sessions.
func TestTraced_TellsCommandsApart_VIO7(t *testing.T) {
	dir, cfg := tracedTree(t)
	one, first := tracedSession(t, MonitorWrites, cfg)
	two, second := tracedSession(t, MonitorWrites, cfg)
	var group sync.WaitGroup
	for i := range 4 {
		for _, s := range []*Sandbox{one, two} {
			group.Go(func() {
				name := fmt.Sprintf("%p-%d", s, i)
				tracedCalls(t, s, dir, name, slices.Repeat([]string{"mkdir outside/" + name}, 20)...)
			})
		}
	}
	group.Wait()
	for s, got := range map[*Sandbox]*eventRecorder{one: first, two: second} {
		count := map[string]int{}
		for _, e := range got.take() {
			if count[e.CommandID]++; e.Target != filepath.Join(dir, "outside", e.CommandID) {
				t.Errorf("%+v", e)
			}
		}
		for i := range 4 {
			if n := count[fmt.Sprintf("%p-%d", s, i)]; n != 20 {
				t.Errorf("%d events of 20", n)
			}
		}
		if len(count) != 4 {
			t.Errorf("%v", count)
		}
	}
}

// What was reported and what was lost are together what was refused.
func TestTraced_CountsWhatIsLost(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := tracedSession(t, MonitorWrites, cfg)
	tracedCalls(t, s, dir, "", slices.Repeat([]string{"mkdir outside/x"}, 2000)...)
	if told, lost := len(got.take()), s.Violations().Lost(); told+int(lost) != 2000 || told == 0 {
		t.Errorf("%d told, %d lost", told, lost)
	}
}

// The tracer goes with the last session that uses it.
func TestTraced_EndsWithItsSessions(t *testing.T) {
	dir, cfg := tracedTree(t)
	one, _ := tracedSession(t, MonitorWrites, cfg)
	two, got := tracedSession(t, MonitorWrites, cfg)
	for _, s := range []*Sandbox{one, two} {
		tracedCalls(t, s, dir, "", "mkdir outside/x")
	}
	got.take()
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if tracedCalls(t, two, dir, "", "mkdir outside/x"); len(got.take()) != 1 {
		t.Error("another session's end has ended the tracing")
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	sharedTracer.mu.Lock()
	defer sharedTracer.mu.Unlock()
	if sharedTracer.tracer != nil || sharedTracer.users != 0 {
		t.Errorf("%d users are left", sharedTracer.users)
	}
}
