package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// newTracer skips where this process may load no programs at all, which TracingSupported must say too.
func newTracer(t testing.TB) *Tracer {
	t.Helper()
	tr, err := LoadTracer()
	if err != nil {
		if supported := TracingSupported(); !errors.Is(err, ErrNoCapability) || !errors.Is(supported, ErrNoCapability) {
			t.Fatalf("the tracer does not load: %v; TracingSupported: %v", err, supported)
		}
		t.Skipf("got %v, want a process that may load programs", err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return tr
}

// refusedRecorder collects refused calls.
type refusedRecorder struct {
	mu   sync.Mutex
	list []Refused
}

func (r *refusedRecorder) add(x Refused) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, x)
	return true
}

func (r *refusedRecorder) take() []Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// traced runs lines in a process of a sandbox while it is traced, and gives what was told.
func traced(t testing.TB, tr *Tracer, c *child, o TraceOptions, lines ...string) (told []Refused, answers []string) {
	t.Helper()
	var got refusedRecorder
	trace, err := tr.Trace(c.namespace, o, got.add)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		answers = append(answers, c.do(line))
	}
	lost, err := trace.Close()
	if lost != 0 || err != nil {
		t.Errorf("%d lost, %v", lost, err)
	}
	return got.take(), answers
}

// foreignDir is a directory that root of a user namespace may not enter, beside a file "owned" that it may read alone.
func foreignDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != "/tmp" && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "closed"), 0o700), os.WriteFile(filepath.Join(dir, "owned"), nil, 0o644),
		os.Chown(filepath.Join(dir, "closed"), 12345, 12345), os.Chown(filepath.Join(dir, "owned"), 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// VIO-10: each call is told with its name, error, process and path, however the path is spelled. That the kernel refuses it
// at all shows that its arguments are where the table says.
func TestTracer_EachCall_VIO10(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	c := startChild(t, 0)
	c.must("chdir " + dir)
	for _, call := range tracedCalls() {
		spellings := map[string]string{dir + "/closed/x": "", "closed/x": dir, "../" + filepath.Base(dir) + "/closed//x": dir}
		want := dir + "/closed/x"
		switch {
		case call.path[0] == none:
			of := "/owned"
			if call.name == "fchdir" {
				of = "/closed"
			}
			spellings, want = map[string]string{dir + of + "|": ""}, dir+of
		case call.dir[0] != none:
			spellings[dir+"|closed/x"] = dir
		}
		for spelling := range spellings {
			line := "call " + call.name + " " + spelling
			if len(call.effects[1]) > 0 {
				line += " " + dir + "/closed/y"
			}
			told, answers := traced(t, tr, c, TraceOptions{Reads: true}, line)
			errno := map[string]syscall.Errno{answer(unix.EACCES): unix.EACCES, answer(unix.EPERM): unix.EPERM}[answers[0]]
			if len(told) != 1 || errno == 0 {
				t.Errorf("%s: %s, told %+v", line, answers[0], told)
				continue
			}
			r := told[0]
			if r.Call != call.name || r.Errno != errno || r.Paths[0].Path() != want || r.PID != c.cmd.Process.Pid || r.TID == 0 || r.Process == "" {
				t.Errorf("%s: told %+v, want %s", line, r, want)
			}
			if len(call.effects[1]) > 0 && (len(r.Paths) != 2 || r.Paths[1].Path() != dir+"/closed/y") {
				t.Errorf("%s: told %+v", line, r)
			}
		}
	}
}

// What is read is told where it was asked for; what succeeds is not told, nor what is not there unless something is hidden.
func TestTracer_Options(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	c := startChild(t, 0)
	c.must("chdir " + dir)
	lines := []string{"read closed/x", "read nothing", "read owned", "call execve closed/x", "mkdir closed/x", "mkdir owned/x", "call readlinkat nothing"}
	for _, tt := range []struct {
		o    TraceOptions
		want string
	}{
		{TraceOptions{}, "mkdir"},
		{TraceOptions{Reads: true}, "openat execve mkdir"},
		{TraceOptions{Hides: true}, "mkdir"},
		{TraceOptions{Reads: true, Hides: true}, "openat openat execve mkdir readlinkat"},
	} {
		told, _ := traced(t, tr, c, tt.o, lines...)
		var calls []string
		for _, r := range told {
			calls = append(calls, r.Call)
		}
		// The library's Mkdir is either call.
		if got := strings.ReplaceAll(strings.Join(calls, " "), "mkdirat", "mkdir"); got != tt.want {
			t.Errorf("%+v: told %s, want %s", tt.o, got, tt.want)
		}
	}
}

// A call about a descriptor that has no path is about no rule of anybody: it is not told, nor counted as lost.
func TestTracer_WithoutPath(t *testing.T) {
	tr := newTracer(t)
	c := startChild(t, 0)
	told, answers := traced(t, tr, c, TraceOptions{Reads: true}, "pipe")
	if len(told) != 0 || answers[0] != answer(unix.EPERM) {
		t.Errorf("%v, told %+v", answers, told)
	}
}

// Two sandboxes never mix, and a process outside of every sandbox is in none.
func TestTracer_TellsSandboxesApart_VIO7(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	one, two, outside := startChild(t, 0), startChild(t, 3), startChild(t, 0)
	var first, second refusedRecorder
	a, err := tr.Trace(one.namespace, TraceOptions{}, first.add)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tr.Trace(two.namespace, TraceOptions{}, second.add)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		one.do(fmt.Sprintf("mkdir %s/closed/one%d", dir, i))
		two.do(fmt.Sprintf("mkdir %s/closed/two%d", dir, i))
		outside.do(fmt.Sprintf("mkdir %s/closed/three%d", dir, i))
	}
	if err := unix.Mkdir("/proc/none", 0o700); err == nil {
		t.Fatal("a directory in /proc")
	}
	for _, trace := range []*Trace{a, b} {
		if lost, err := trace.Close(); lost != 0 || err != nil {
			t.Errorf("%d lost, %v", lost, err)
		}
	}
	for name, list := range map[string][]Refused{"one": first.take(), "two": second.take()} {
		if len(list) != 50 {
			t.Errorf("%s: %d told", name, len(list))
		}
		for i, r := range list {
			if want := fmt.Sprintf("%s/closed/%s%d", dir, name, i); r.Paths[0].Path() != want {
				t.Errorf("%s: %+v, want %s", name, r, want)
			}
		}
	}
	one.do("mkdir " + dir + "/closed/after")
	if list := first.take(); len(list) != 0 {
		t.Errorf("after the end: %+v", list)
	}
}

// What was told and what was lost are together what was refused, though the one who is told takes no time off.
func TestTracer_CountsWhatIsLost(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	c := startChild(t, 0)
	for _, count := range []int{2000, 20000} {
		release := make(chan struct{})
		var got refusedRecorder
		trace, err := tr.Trace(c.namespace, TraceOptions{}, func(r Refused) bool { <-release; return got.add(r) })
		if err != nil {
			t.Fatal(err)
		}
		c.must(fmt.Sprintf("repeat %d %s/closed/%s", count, dir, strings.Repeat("x", 200)))
		close(release)
		lost, err := trace.Close()
		if err != nil {
			t.Fatal(err)
		}
		told := len(got.take())
		if told+int(lost) != count || told == 0 || count > 2*maxQueued && lost == 0 {
			t.Errorf("%d of %d told, %d lost", told, count, lost)
		}
	}
}

// A way of many long names, and a path of the greatest length, are told whole or counted as lost, but never wrong.
func TestTracer_LongPaths(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	c := startChild(t, 0)
	name := strings.Repeat("n", 200)
	at := dir
	for range 14 {
		at = filepath.Join(at, name)
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(at, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(at, "closed"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	c.must("chdir " + at)
	told, _ := traced(t, tr, c, TraceOptions{}, "mkdir closed/x", "mkdir "+at+"/closed/"+name)
	if len(told) != 2 || told[0].Paths[0].Path() != at+"/closed/x" || told[1].Paths[0].Path() != at+"/closed/"+name {
		t.Errorf("%+v", told)
	}
	for range 5 { // longer than what a record has room for
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		c.must("chdir " + name)
	}
	if err := errors.Join(os.Mkdir(at+"/closed", 0o700), os.Chown(at+"/closed", 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	var got refusedRecorder
	trace, err := tr.Trace(c.namespace, TraceOptions{}, got.add)
	if err != nil {
		t.Fatal(err)
	}
	far := dir + "/closed" + strings.Repeat("/"+name, 18)
	c.do("mkdir " + far)
	c.do("mkdir closed/x")
	lost, err := trace.Close()
	if list := got.take(); err != nil || len(list) != 1 || list[0].Paths[0].Path() != far || lost != 1 {
		t.Errorf("%+v, %d lost, %v", list, lost, err)
	}
}

func TestTracer_DoesNotNest(t *testing.T) {
	tr := newTracer(t)
	c := startChild(t, 0)
	trace, err := tr.Trace(c.namespace, TraceOptions{}, func(Refused) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Trace(c.namespace, TraceOptions{}, nil); !errors.Is(err, ErrNamespace) {
		t.Errorf("twice: %v", err)
	}
	if _, err := trace.Close(); err != nil {
		t.Error(err)
	}
	if _, err := trace.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	own, err := os.Open("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := tr.Trace(own, TraceOptions{}, nil); !errors.Is(err, ErrNamespace) {
		t.Errorf("the host's: %v", err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if _, err := tr.Trace(c.namespace, TraceOptions{}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
