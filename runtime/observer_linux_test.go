package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// observedSession is a session whose kernel refusals are observed, with what it reports.
func observedSession(t testing.TB, m Monitor, cfg *config.Config, more ...Option) (*Sandbox, *eventRecorder) {
	t.Helper()
	if err := notify.Available(); err != nil {
		if refused, ok := errors.AsType[*notify.UnavailableError](err); !ok || refused.Reason != notify.ReasonListener {
			t.Fatal(err)
		}
		t.Skipf("got %v, want a process that is under no listener itself", err)
	}
	r := &eventRecorder{}
	s, err := New(context.Background(), cfg, append(more, WithMonitor(m), WithOnViolation(r.add))...)
	if err != nil {
		t.Fatal(err)
	}
	// The observer tells of refusals even where this process may load a tracer.
	s.tracing.asked, s.tracing.err = true, errors.New("the observer was chosen")
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if lost := s.Violations().Lost(); lost != 0 {
			t.Errorf("%d refusals are lost", lost)
		}
	})
	return s, r
}

// observedCase is one call, and the events that it makes: path beneath the directory, and rule.
type observedCase struct {
	call string
	want []string
}

func wants(call string, pairs ...string) observedCase { return observedCase{call, pairs} }

func observedCases() []observedCase {
	return []observedCase{
		wants("write outside/f", "outside/f", noWrite),
		wants("trunc outside/f", "outside/f", noWrite),
		wants("create outside/new", "outside/new", noWrite),
		wants("create outside/f", "outside/f", noWrite),
		wants("openat2 outside/f", "outside/f", noWrite),
		wants("mkdir outside/new", "outside/new", noWrite),
		wants("rmdir outside", "outside", noWrite),
		wants("unlink outside/f", "outside/f", noWrite),
		wants("rename outside/f outside/g", "outside/f", noWrite, "outside/g", noWrite),
		wants("rename outside/f work/g", "outside/f", noWrite),
		wants("rename work/free outside/g", "outside/g", noWrite),
		wants("link work/free outside/g", "outside/g", noWrite),
		wants("symlink outside/new", "outside/new", noWrite),
		wants("mknod outside/new", "outside/new", noWrite),
		wants("chmod outside/f", "outside/f", noWrite),
		wants("chown outside/f", "outside/f", noWrite),
		wants("utimes outside/f", "outside/f", noWrite),
		wants("setxattr outside/f", "outside/f", noWrite),
		wants("truncate outside/f", "outside/f", noWrite),
		wants("in outside x", "outside/x", noWrite),
		wants("in work ../outside/./x", "outside/x", noWrite),
		wants("mkdir work/to-outside/x", "outside/x", noWrite),
		wants("chmod work/to-outside", "outside", noWrite),
		wants("write work/locked/f", "work/locked/f", locked),
		wants("mkdir work/locked/x", "work/locked/x", locked),
		wants("rmdir work/locked", "work/locked", locked),
		wants("rename work/locked work/moved", "work/locked", locked),
		wants("rename work/free work/locked/g", "work/locked/g", locked),
		wants("link work/free work/locked/g", "work/locked/g", locked),
		wants("write work/sub/deep/fixed", "work/sub/deep/fixed", fixed),
		wants("unlink work/sub/deep/fixed", "work/sub/deep/fixed", fixed),
		wants("rename work/free work/sub/deep/fixed", "work/sub/deep/fixed", fixed),
		wants("rename work/sub work/moved", "work/sub", fixed),
		wants("create work/later", "work/later", later),
		wants("mkdir work/later", "work/later", later),
		wants("rename work/free work/later", "work/later", later),
		wants("read secret/key", "secret/key", secret),
		wants("read secret/sub/..//key", "secret/key", secret),
		wants("read work/to-secret/key", "secret/key", secret),
		wants("read secret", "secret", secret),
		wants("read work/to-secret", "secret", secret),
		wants("exec secret/key", "secret/key", secret),
		wants("readlink secret/link", "secret/link", secret),
		wants("chdir secret/sub", "secret/sub", secret),
		wants("write secret/key", "secret/key", secret),
		wants("read hidden", "hidden", hidden),
		wants("write hidden", "hidden", hidden),
		wants("exec hidden", "hidden", hidden),
		wants("unlink hidden", "hidden", hidden),
		wants("read outside/f"), wants("read outside/none"), wants("readlink outside/none"), wants("write work/none"),
		wants("unlink work/none"), wants("create work/new"), wants("mkdir work/d"), wants("rmdir work/d"),
		wants("rename work/new work/newer"), wants("mkdir work/sub"), wants("device work/dev"),
		wants("mkdir secret/made"), wants("write outside/none"), wants("mkdir outside"), wants("mkdir outside/none/x"),
		wants("chmod work/free"), wants("write work/free"), wants("read /dev/null"), wants("write /dev/null"), wants("read /proc/self/status"),
	}
}

// Each kind of call and each kind of rule: one event for each path that is refused, with its process, call and rule; none for what
// is allowed, for what only modes and owners refuse, and for names that are not there.
func TestObserved_EachRefusalOnce_VIO10(t *testing.T) {
	dir, cfg := tracedTree(t)
	// A rename over a protected file succeeds where the two are the same.
	if err := os.WriteFile(dir+"/work/free", []byte("free"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, got := observedSession(t, MonitorAll, cfg)
	for _, c := range observedCases() {
		answers := tracedCalls(t, s, dir, "the key", c.call)
		var list []string
		for _, e := range got.take() {
			list = append(list, strings.TrimPrefix(e.Target, dir+"/"), e.Rule)
			if e.CommandID != "the key" || e.PID == 0 || e.Process == "" || e.Time.IsZero() || !strings.HasPrefix(e.Line(), "deny "+string(e.Operation)+" "+dir) {
				t.Errorf("%s: %+v", c.call, e)
			}
		}
		if !slices.Equal(list, c.want) {
			t.Errorf("%s (%v): %q, want %q", c.call, answers, list, c.want)
		}
	}
}

// What a mask shows is there to be read: only what would change it is refused (FS-58).
func TestObserved_MasksAreRead_FS58(t *testing.T) {
	dir, cfg := tracedTree(t)
	cfg.Credentials = &config.Credentials{AllowPlaintextInject: true, Files: []config.FileCredential{
		{Path: dir + "/outside/f", Credential: config.Credential{Mode: config.ModeMask}}}}
	s, got := observedSession(t, MonitorAll, cfg)
	for call, want := range map[string]string{"read outside/f": "", "write outside/f": "credentials.files.0.path", "unlink outside/f": "credentials.files.0.path"} {
		answers := tracedCalls(t, s, dir, "the key", call)
		list := got.take()
		if want == "" && len(list) != 0 || want != "" && (len(list) != 1 || list[0].Rule != want) {
			t.Errorf("%s (%v): %+v, want by %q", call, answers, list, want)
		}
	}
}

// VIO-7: commands at once never mix.
func TestObserved_TellsCommandsApart_VIO7(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := observedSession(t, MonitorWrites, cfg)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			name := fmt.Sprint("command", i)
			tracedCalls(t, s, dir, name, slices.Repeat([]string{"mkdir outside/" + name}, 50)...)
		})
	}
	group.Wait()
	count := map[string]int{}
	for _, e := range got.take() {
		if count[e.CommandID]++; e.Target != filepath.Join(dir, "outside", e.CommandID) {
			t.Errorf("%+v", e)
		}
	}
	for i := range 4 {
		if n := count[fmt.Sprint("command", i)]; n != 50 {
			t.Errorf("%d events of 50", n)
		}
	}
}

// case16: touch w/../b names the path without "..", and 300 refusals make 300 events.
func TestObserved_case16_Programs(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := observedSession(t, MonitorAll, cfg)
	c := s.Shell(context.Background(), `cd "$0"
		touch work/../b
		cat secret/key
		(cd work && echo x > ../outside/f)
		mv outside/f work/
		for i in $(seq 100); do : > outside/loop; mkdir outside/loop; rm -f outside/f; done
		exit 0`)
	c.Args = append(c.Args, dir)
	c.Dir, c.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME="}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, e := range got.take() {
		lines[strings.ReplaceAll(e.Line(), dir, "")+" "+e.Process]++
	}
	for line, want := range map[string]int{"deny openat /b touch": 1, "deny openat /secret/key cat": 1, "deny openat /outside/loop bash": 100,
		"deny mkdir /outside/loop mkdir": 100} {
		if lines[line] != want {
			t.Errorf("%d of %q, want %d in %v", lines[line], line, want, lines)
		}
	}
}

// The observer decides nothing: what a command does, and what comes of it, is the same without.
func TestObserved_ChangesNothing(t *testing.T) {
	outputs := map[bool]string{}
	for _, observe := range []bool{false, true} {
		dir, cfg := tracedTree(t)
		var s *Sandbox
		if observe {
			s, _ = observedSession(t, MonitorAll, cfg)
		} else {
			var err error
			if s, err = New(context.Background(), cfg); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
		}
		var lines []string
		for _, c := range observedCases() {
			lines = append(lines, c.call)
		}
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "chdir") })
		outputs[observe] = strings.Join(tracedCalls(t, s, dir, "", lines...), "\n")
	}
	if outputs[false] != outputs[true] {
		t.Errorf("without:\n%s\nwith:\n%s", outputs[false], outputs[true])
	}
}

// A command that makes roots of its own is seen to do what it does where it lies.
func TestObserved_NestedRoots(t *testing.T) {
	dir, cfg := tracedTree(t)
	cfg.AllowNestedUserNamespaces = true
	s, got := observedSession(t, MonitorWrites, cfg)
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Fatal("unshare (util-linux) is needed: ", err)
	}
	c := s.Shell(context.Background(), `cd "$0" && unshare -U sh -c 'mkdir outside/x; cd /; mkdir '"$0"'/outside/y'
		unshare -U --keep-caps perl -e 'chroot(shift) or die $!; chdir("/"); mkdir("/outside/z"); mkdir("../outside/z2")' "$0"; exit 0`)
	c.Args = append(c.Args, dir)
	c.Dir, c.Env, c.Stderr = dir, []string{"PATH=/usr/bin:/bin", "HOME="}, os.Stderr
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range got.take() {
		list = append(list, strings.TrimPrefix(e.Line(), "deny mkdir "+dir))
	}
	if want := []string{"/outside/x", "/outside/y", "/outside/z", "/outside/z2"}; !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
}

// A session without monitoring has the filters that it had.
func TestObserved_NothingIsFilteredWithoutIt(t *testing.T) {
	for _, m := range []Monitor{MonitorOff, MonitorWrites, MonitorAll} {
		_, cfg := tracedTree(t)
		s, _ := observedSession(t, m, cfg)
		h, err := readIdentity()
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Command(context.Background(), "true").prepare(h, attempt{dry: true})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range l.filters {
			names = append(names, f.Name)
		}
		has := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "observe") })
		if has != (m != MonitorOff) || (l.judge == nil) != (m == MonitorOff) {
			t.Errorf("%d: %v", m, names)
		}
		if m != MonitorOff && l.judge.Judge("/etc/x", fsview.AccessCreate).Rule != noWrite {
			t.Errorf("%d: the judge knows nothing", m)
		}
	}
}

// What srt itself does before the command's program runs is no event: that the program is not found is its error.
func TestObserved_NotTheLauncher(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := observedSession(t, MonitorAll, cfg)
	for _, program := range []string{dir + "/secret/key", dir + "/hidden"} {
		c := s.Command(context.Background(), program)
		c.Dir, c.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME="}
		if err := c.Run(); err == nil {
			t.Errorf("%s: was executed", program)
		}
		if list := got.take(); len(list) != 0 {
			t.Errorf("%s: %+v", program, list)
		}
	}
}

// Where nobody can tell what the kernel refuses, the session says so, once, and the command runs.
func TestObserved_SaysWhereItCannot(t *testing.T) {
	available := brokerAvailable
	t.Cleanup(func() { brokerAvailable = available })
	dir, cfg := tracedTree(t)
	var mu sync.Mutex
	var warnings []string
	s, got := observedSession(t, MonitorAll, cfg, WithWarnings(func(line string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, line)
	}))
	reason := &notify.UnavailableError{Reason: notify.ReasonListener}
	brokerAvailable = func() error { return reason }
	for range 2 {
		if answers := tracedCalls(t, s, dir, "", "mkdir outside/x"); !slices.Equal(answers, []string{"EROFS"}) {
			t.Errorf("%q", answers)
		}
	}
	said := slices.DeleteFunc(warnings, func(w string) bool { return !strings.Contains(w, "is not reported") })
	if len(said) != 1 || !strings.Contains(said[0], reason.Error()) {
		t.Errorf("%q", said)
	}
	if list := got.take(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
