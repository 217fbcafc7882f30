package broker

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	probes["unix-queue"] = func(string) any { return queueProbe() }
	probes["unix-queue-child"] = func(string) any { return queueChild() }
	probes["unix-patient-child"] = func(string) any { return reachUnix("full") }
}

// crowded is how many callers wait in the tests of that, and crowdLimit how many can.
const (
	crowded    = 120
	crowdLimit = 30
)

// askTest writes a line for the test and waits for its answer.
func askTest() {
	os.Stdout.WriteString("\n")
	fatal(json.NewDecoder(os.Stdin).Decode(new(int)))
}

// queueProbe has one process wait for a server without room, then another one with far more threads, and then makes room.
func queueProbe() map[string]int {
	server := (&recorder{}).fill()
	self, err := os.Executable()
	fatal(err)
	start := func(name string) (*os.Process, *os.File) {
		r, w, err := os.Pipe()
		fatal(err)
		p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: []string{envProbe + "=" + name}, Files: []*os.File{nil, w, os.Stderr}})
		fatal(err)
		fatal(w.Close())
		return p, r
	}
	patient, answer := start("unix-patient-child")
	askTest()
	many, results := start("unix-queue-child")
	_, err = results.Read(make([]byte, 1)) // all are there
	fatal(err)
	askTest()
	for range crowdLimit + 1 { // whoever waits, and the one that filled it
		fd, _, err := unix.Accept(server)
		fatal(err)
		fatal(unix.Close(fd))
	}
	got := map[string]int{}
	fatal(json.NewDecoder(results).Decode(&got))
	var own string
	fatal(json.NewDecoder(answer).Decode(&own))
	got["patient "+own]++
	for _, p := range []*os.Process{patient, many} {
		_, err := p.Wait()
		fatal(err)
	}
	return got
}

// queueChild has many threads wait for the server, and says when all but those who can wait have been given up.
func queueChild() map[string]int {
	ended := make(chan error)
	for range crowded {
		_, done := connectWaiting(inetSocket(unix.AF_UNIX, unix.SOCK_STREAM))
		go func() { ended <- <-done }()
	}
	result := map[string]int{}
	for i := range crowded {
		if i == crowded-crowdLimit+1 {
			os.Stdout.WriteString("\n")
		}
		result[fmt.Sprint(<-ended)]++
	}
	return result
}

// TestUnix_WhoWaitsIsBounded has far more threads wait for a server than can. None of another process is given up for them,
// and who waits takes neither a goroutine nor a hand each.
func TestUnix_WhoWaitsIsBounded_NET81(t *testing.T) {
	stdin, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer w.Close()
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-queue", folder: tempFolder(t), stdin: stdin, workers: 8,
		server: func(s *Server) { s.unix.queue.limit = crowdLimit }})
	q := &b.server.unix.queue
	waiting := func(n int) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.count == n
	}
	step := func(n int) {
		t.Helper()
		if _, err := b.out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if !eventually(func() bool { return waiting(n) }) {
			t.Errorf("%d wait, want %d", q.count, n)
		}
	}
	step(1)
	before := runtime.NumGoroutine()
	if _, err := w.WriteString("1\n"); err != nil {
		t.Fatal(err)
	}
	step(crowdLimit)
	// Of the workers there may be more than before, and of those who try.
	if n := runtime.NumGoroutine() - before; n > 8+unixRunners {
		t.Errorf("%d goroutines more", n)
	}
	q.mu.Lock()
	if n := len(q.runners); n > unixRunners {
		t.Errorf("%d try at the same time", n)
	}
	q.mu.Unlock()
	if _, err := w.WriteString("1\n"); err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	for _, d := range b.finishWith(t, &got) {
		t.Errorf("reported: %+v", d)
	}
	full := syscall.EAGAIN.Error()
	if got["<nil>"] != crowdLimit-1 || got[full] != crowded-crowdLimit+1 || got["patient connected, but connection reset by peer"]+got["patient reached "] != 1 {
		t.Errorf("%v, want %d that got through, %d that were given up, and the one of the other process", got, crowdLimit-1, crowded-crowdLimit+1)
	}
}

// waiterOf is a call of a process that began to wait at a time.
func waiterOf(process, start int, held bool) *unixWaiter {
	return &unixWaiter{c: &call{status: status{tgid: process}}, key: unixKey{name: fmt.Sprint(start % 3)}, start: time.Unix(int64(start), 0), held: held}
}

// TestUnixQueue_TheGreediestMakesRoom: whose call is given up for another one.
func TestUnixQueue_TheGreediestMakesRoom_NET81(t *testing.T) {
	for _, c := range []struct {
		name      string
		processes []int // whose calls wait, in the order of their coming
		held      []int // which of them are being tried
		new       int   // whose call comes
		want      int   // which is given up; -1: the new one
	}{
		{"one of the same", []int{1}, nil, 1, -1},
		{"most of the same", []int{1, 2, 1}, nil, 1, -1},
		{"most of another", []int{1, 1, 1, 2}, nil, 3, 2},
		{"as many of another", []int{1, 1, 2}, nil, 2, -1},
		{"two more of another", []int{1, 1, 1, 2}, nil, 2, 2},
		{"the last is being tried", []int{1, 1, 1}, []int{2}, 2, 1},
		{"all are being tried", []int{1, 1, 1}, []int{0, 1, 2}, 2, -1},
		{"the first and last", []int{1, 2, 2, 2, 1}, nil, 4, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := unixQueue{turns: map[unixKey]*unixTurn{}}
			var list []*unixWaiter
			for i, process := range c.processes {
				w := waiterOf(process, i, slices.Contains(c.held, i))
				q.enqueue(w, time.Time{})
				list = append(list, w)
			}
			got := slices.Index(list, q.greediest(waiterOf(c.new, len(list), false)))
			if got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
			for _, w := range list {
				q.remove(w)
			}
			if q.count != 0 || len(q.turns) != 0 {
				t.Errorf("%d wait in %d turns, want none", q.count, len(q.turns))
			}
		})
	}
}

// TestUnixQueue_Order: of those who wait for one peer the first is tried, and of the peers the one that is due.
func TestUnixQueue_Order_NET81(t *testing.T) {
	q := unixQueue{turns: map[unixKey]*unixTurn{}, runners: map[*worker]struct{}{}, free: 1, watching: true}
	q.server = &Server{}
	runner := &worker{}
	q.runners[runner] = struct{}{}
	now := time.Now()
	first, second, other := waiterOf(1, 0, false), waiterOf(1, 3, false), waiterOf(1, 1, false)
	q.enqueue(first, now.Add(-time.Hour))
	q.enqueue(second, now.Add(-time.Hour))
	q.enqueue(other, now.Add(-time.Minute))
	q.turns[other.key].busy = true
	if got, _ := q.choose(runner, false); got != first {
		t.Error("not the first of those who wait for longest")
	}
	if got, pause := q.choose(runner, false); got != nil || pause == 0 {
		t.Error("somebody is tried whose peer is being tried already")
	}
	q.turns[other.key].busy = false
	if got, _ := q.choose(runner, false); got != other {
		t.Error("not the other one")
	}
	q.turns[first.key].busy, first.held = false, false
	q.turns[first.key].due = now.Add(time.Hour)
	if got, pause := q.choose(runner, false); got != nil || pause <= time.Minute {
		t.Error("somebody is tried who is not due")
	}
	q.stopped = true
	if got, pause := q.choose(runner, false); got != nil || pause != 0 || len(q.runners) != 0 {
		t.Error("it goes on after the end")
	}
}

// Handles are relied on where a file system gives another one to a later file of the same number.
func TestUnixOwn_Handles_NET80(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  int32
		size  int
		major uint32
		want  bool
	}{
		{"ext4", handleInodeGeneration, 8, 8, true},
		{"XFS", 0x81, 12, 259, true},
		{"tmpfs", handleInodeGeneration, tmpfsHandleSize, 0, true},
		{"Btrfs", handleBtrfs, 20, 0, true},
		{"FUSE", 0x81, 12, 0, false},
		{"overlayfs", 0xf8, 32, 0, false},
		{"without a device, ext4's", handleInodeGeneration, 8, 0, false},
		{"none", 0, 0, 8, false},
	} {
		if got := lasting(c.kind, c.size, c.major); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	folder := tempFolder(t)
	path := folder + "/s"
	seen := map[string]bool{}
	for range 20 { // of which most have the same number, where numbers are given out again
		fd := inetSocket(unix.AF_UNIX, unix.SOCK_STREAM)
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			t.Fatal(err)
		}
		at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			t.Fatal(err)
		}
		handle := handleOf(at, unix.Major(st.Dev))
		if again := handleOf(at, unix.Major(st.Dev)); again != handle {
			t.Errorf("two handles of one file: %q and %q", handle, again)
		}
		if handle != "" && seen[handle] {
			t.Errorf("two files with the handle %q", handle)
		}
		seen[handle] = true
		unix.Close(at)
		unix.Close(fd)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
