package bpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// After Close the kernel has nothing of it left.
func TestTracer_LeavesNothing(t *testing.T) {
	tr, c := newTracer(t), startChild(t, 0)
	trace, err := tr.Trace(c.namespace, TraceOptions{}, func(Refused) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	made := ownObjects(t)
	if len(made) != 8 { // five maps, a program and its link
		t.Fatalf("made: %v", made)
	}
	_, err = trace.Close()
	if err := errors.Join(err, tr.Close()); err != nil {
		t.Fatal(err)
	}
	gone(t, made)
}

// gone waits until the kernel has nothing of a list.
func gone(t *testing.T, made []string) {
	t.Helper()
	var left []string
	for range 500 { // the kernel frees behind a grace period
		left = nil
		for _, o := range kernelObjects(t) {
			if slices.Contains(made, o) {
				left = append(left, o)
			}
		}
		if len(left) == 0 {
			return
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 1e7}, nil)
	}
	t.Errorf("made %v, left %v", made, left)
}

// ownObjects are the numbers of what this process's descriptors stand for.
func ownObjects(t *testing.T) []string { return objectsOf(t, os.Getpid()) }

func objectsOf(t *testing.T, pid int) (list []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // that of the listing
		}
		for line := range strings.Lines(string(b)) {
			for _, what := range []string{"prog", "map", "link"} {
				if id, ok := strings.CutPrefix(line, what+"_id:"); ok {
					list = append(list, what+" "+strings.TrimSpace(id))
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list) // the reader has a descriptor of its own
}

// kernelObjects are the numbers of all programs, maps and links that the kernel has.
func kernelObjects(t *testing.T) (list []string) {
	t.Helper()
	for what, command := range map[string]uintptr{"prog": 11, "map": 12, "link": 31} { // BPF_*_GET_NEXT_ID
		for id := uint32(0); ; {
			attr := struct{ start, next, flags, token uint32 }{start: id}
			if _, err := call(command, &attr); err != nil {
				if !errors.Is(err, unix.ENOENT) {
					t.Fatal(err)
				}
				break
			}
			id = attr.next
			list = append(list, fmt.Sprint(what, " ", id))
		}
	}
	return list
}

// What was looked for in vain and was no refusal is not told again and again, until it may have become one.
func TestTracer_Misses(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	if err := os.Mkdir(dir+"/other", 0o755); err != nil {
		t.Fatal(err)
	}
	one, two := startChild(t, 0), startChild(t, 0)
	var got refusedRecorder
	harmless := func(r Refused) bool { got.add(r); return strings.Contains(r.Paths[0].Text, "hidden") }
	long := strings.Repeat("l", 150)
	var traces []*Trace
	for _, c := range []*child{one, two} {
		c.must("chdir " + dir)
		trace, err := tr.Trace(c.namespace, TraceOptions{Reads: true, Hides: true}, harmless)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, trace)
	}
	for i, step := range []struct {
		c    *child
		line string
		told int
	}{
		{one, "read none", 1},
		{one, "read none", 0},
		{one, "read " + dir + "/none", 1},
		{one, "read " + dir + "/none", 0},
		{one, "call readlinkat none", 1},
		{one, "read none2", 1},
		{two, "read none", 1},
		{one, "read hidden", 1},
		{one, "read hidden", 1},
		{one, "read " + long, 1},
		{one, "read " + long, 1},
		{one, "chdir other", 0},
		{one, "read none", 1},
		{one, "read none", 0},
		{two, "symlink link", 0},
		{one, "read none", 0},
		{one, "symlink other/link", 1}, // not made: there is no such directory from here
		{one, "symlink link", 0},
		{one, "read none", 1},
	} {
		step.c.do(step.line)
		for range 500 { // until it is told, and noted
			got.mu.Lock()
			n := len(got.list)
			got.mu.Unlock()
			if n >= step.told {
				break
			}
			unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
		}
		settleNotes(t, traces)
		if list := got.take(); len(list) != step.told {
			t.Errorf("step %d, %s: told %+v, want %d", i, step.line, list, step.told)
		}
	}
	for _, trace := range traces {
		if lost, err := trace.Close(); lost != 0 || err != nil {
			t.Errorf("%d lost, %v", lost, err)
		}
	}
}

// settleNotes waits until everything that was refused by now has been told, and what was told has been noted.
func settleNotes(t *testing.T, traces []*Trace) {
	t.Helper()
	traces[0].t.reader.settle()
	for _, trace := range traces {
		for range 500 {
			trace.queue.mu.Lock()
			idle := len(trace.queue.list) == 0 && !trace.queue.busy
			trace.queue.mu.Unlock()
			if idle {
				break
			}
			unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
		}
	}
}

// Without a sandbox the program is not asked, and costs nobody anything; with the next one it is again.
func TestTracer_Rests(t *testing.T) {
	tr, dir := newTracer(t), foreignDir(t)
	c := startChild(t, 0)
	links := func() (n int) {
		for _, o := range ownObjects(t) {
			if strings.HasPrefix(o, "link") {
				n++
			}
		}
		return n
	}
	if n := links(); n != 0 {
		t.Errorf("%d links before the first sandbox", n)
	}
	for range 3 {
		told, _ := traced(t, tr, c, TraceOptions{}, "mkdir "+dir+"/closed/x")
		if len(told) != 1 || links() != 1 {
			t.Errorf("told %+v by %d links", told, links())
		}
		tr.detach()
		if n := links(); n != 0 {
			t.Errorf("%d links without a sandbox", n)
		}
	}
	trace, err := tr.Trace(c.namespace, TraceOptions{}, func(Refused) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	tr.detach()
	if n := links(); n != 1 {
		t.Errorf("%d links with a sandbox", n)
	}
	if _, err := trace.Close(); err != nil {
		t.Error(err)
	}
}

// Where srt is killed, the kernel has nothing left of it.
func TestTracer_LeavesNothingWhenKilled(t *testing.T) {
	newTracer(t)
	victim := childCommand(0, 0)
	c := start(t, victim)
	c.must("trace")
	made := objectsOf(t, victim.Process.Pid)
	if len(made) != 8 {
		t.Fatalf("made: %v", made)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := victim.Wait(); err == nil {
		t.Fatal("it has ended by itself")
	}
	gone(t, made)
}
