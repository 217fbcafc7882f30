package broker

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

func init() {
	probes["unix-wait"] = func(string) any { return unixWaitProbe() }
	probes["unix-waiter"] = func(string) any {
		r := &recorder{}
		r.fill()
		return reachUnix("full")
	}
	probes["unix-waiting-child"] = func(string) any { return reachUnix("full") }
}

// fill makes a server with no room left.
func (r *recorder) fill() (server int) {
	server = r.serve("full", unix.SOCK_STREAM, 0)
	r.check(unix.Connect(r.unixSocket(unix.SOCK_STREAM), &unix.SockaddrUnix{Name: "full"}))
	return server
}

// connectWaiting connects a socket on a thread of its own, which is left to end, and gives that thread's number first.
func connectWaiting(fd int) (tid int, result <-chan error) {
	number, answer := make(chan int), make(chan error, 1)
	address := append([]byte{unix.AF_UNIX, 0}, "full"...)
	go func() {
		runtime.LockOSThread()
		number <- unix.Gettid()
		_, _, errno := syscall.Syscall(unix.SYS_CONNECT, uintptr(fd), pointerOf(&address[0]), uintptr(len(address)))
		runtime.KeepAlive(address)
		if errno != 0 {
			answer <- errno
			return
		}
		answer <- nil
	}()
	return <-number, answer
}

// waitForConnect waits until a thread of a process is in connect(2).
func waitForConnect(pid, tid int) {
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, tid))
		if err != nil || strings.HasPrefix(string(text), fmt.Sprint(unix.SYS_CONNECT, " ")) {
			return
		}
		runtime.Gosched()
	}
}

// limitOf gives the time limit of a socket.
func (r *recorder) limitOf(fd int) {
	limit, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	r.check(err)
	r.lines = append(r.lines, fmt.Sprint("limit ", limit.Sec))
}

// unixWaitProbe has callers wait for a server without room, and ends their waiting in every way.
func unixWaitProbe() []string {
	r := &recorder{}
	server := r.fill()
	r.crowd(server)
	r.signals(server)
	r.sameSocket(server)
	r.children()
	fd := r.unixSocket(unix.SOCK_STREAM)
	r.check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 3600}))
	tid, done := connectWaiting(fd)
	waitForConnect(os.Getpid(), tid)
	r.check(os.Mkdir("meanwhile", 0o700)) // the first try is over
	r.check(unix.Close(server))
	r.err("closed", <-done)
	r.limitOf(fd)
	return r.lines
}

// accept takes one connection.
func (r *recorder) accept(server int) {
	fd, _, err := unix.Accept(server)
	r.check(err)
	r.check(unix.Close(fd))
}

// crowd has more callers wait than there are workers, while others are served.
func (r *recorder) crowd(server int) {
	const many = 24
	var waiting []<-chan error
	for range many {
		tid, done := connectWaiting(r.unixSocket(unix.SOCK_STREAM))
		waitForConnect(os.Getpid(), tid)
		waiting = append(waiting, done)
	}
	for i := range 50 {
		r.check(os.Mkdir(fmt.Sprint("made", i), 0o700))
	}
	for range many { // the first of those is the one that filled it
		r.accept(server)
	}
	for _, done := range waiting {
		r.check(<-done)
	}
	r.lines = append(r.lines, "all came through")
}

// interrupt sends a thread signals until its call has ended: one that comes before the broker has received the call has it
// made again.
func interrupt(tid int, sig syscall.Signal, done <-chan error) error {
	for {
		_ = unix.Tgkill(os.Getpid(), tid, sig) // it may have ended
		select {
		case err := <-done:
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// signals has a waiting caller get a signal, with and without SA_RESTART and a time limit.
func (r *recorder) signals(server int) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	fd := r.unixSocket(unix.SOCK_STREAM)
	tid, done := connectWaiting(fd)
	waitForConnect(os.Getpid(), tid)
	for range 3 {
		r.check(unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1))
		<-got
	}
	r.accept(server)
	r.err("made again", <-done)
	r.limitOf(fd)
	withoutRestart(unix.SIGUSR2)
	fd = r.unixSocket(unix.SOCK_STREAM)
	tid, done = connectWaiting(fd)
	waitForConnect(os.Getpid(), tid)
	r.err("without restart", interrupt(tid, unix.SIGUSR2, done))
	r.limitOf(fd)
	r.check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 3600}))
	tid, done = connectWaiting(fd)
	waitForConnect(os.Getpid(), tid)
	r.err("with a time limit", interrupt(tid, unix.SIGUSR1, done))
	r.limitOf(fd)
	r.check(unix.Close(fd))
}

// sameSocket has two threads connect one socket.
func (r *recorder) sameSocket(server int) {
	fd := r.unixSocket(unix.SOCK_STREAM)
	var answers []<-chan error
	for range 2 {
		tid, done := connectWaiting(fd)
		waitForConnect(os.Getpid(), tid)
		answers = append(answers, done)
	}
	r.accept(server)
	r.accept(server)
	var outcomes []string
	for _, done := range answers {
		outcomes = append(outcomes, fmt.Sprint(<-done))
	}
	slices.Sort(outcomes)
	r.lines = append(r.lines, fmt.Sprint("two threads: ", outcomes))
	r.limitOf(fd)
	r.check(unix.Connect(r.unixSocket(unix.SOCK_STREAM), &unix.SockaddrUnix{Name: "full"}))
}

// children kills processes that wait.
func (r *recorder) children() {
	self, err := os.Executable()
	r.check(err)
	for range 3 {
		p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: []string{envProbe + "=unix-waiting-child"}, Files: []*os.File{os.Stdin, nil, os.Stderr}})
		r.check(err)
		for {
			inCall := false
			list, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Pid))
			r.check(err)
			for _, e := range list {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", p.Pid, e.Name()))
				inCall = inCall || strings.HasPrefix(string(text), fmt.Sprint(unix.SYS_CONNECT, " "))
			}
			if inCall {
				break
			}
			runtime.Gosched()
		}
		r.check(p.Kill())
		_, err = p.Wait()
		r.check(err)
	}
}

// TestUnix_WhoWaitsIsLikeWithoutABroker has more callers wait for a server than the broker has workers.
func TestUnix_WhoWaitsIsLikeWithoutABroker_NET81(t *testing.T) {
	var want []string
	runSandbox(t, setup{probe: "unix-wait", folder: tempFolder(t)}, &want)
	for _, line := range want {
		if strings.HasPrefix(line, "setup: ") {
			t.Fatalf("the probe could not do its work: %q", want)
		}
	}
	if !slices.Contains(want, "two threads: [<nil> transport endpoint is already connected]") {
		t.Fatalf("%q", want)
	}
	for name, s := range map[string]setup{"fast": {judge: &testJudge{}}, "kept": {judge: &testJudge{suspect: anything}, watched: true}} {
		t.Run(name, func(t *testing.T) {
			s.probe, s.folder, s.filter, s.workers = "unix-wait", tempFolder(t), connects, 3
			var hands, most atomic.Int64
			s.mutate = func(c *Config) {
				start := c.NewHand
				c.NewHand = func() (Hand, error) {
					h, err := start()
					if n := hands.Add(1); n > most.Load() {
						most.Store(n)
					}
					return &countedHand{h, &hands}, err
				}
			}
			var got []string
			for _, d := range runSandbox(t, s, &got) {
				t.Errorf("reported: %+v", d)
			}
			if d := diffLines(want, got); d != "" {
				t.Errorf("(-without, +with):\n%s", d)
			}
			if n := most.Load(); n > 4 {
				t.Errorf("%d hands at the same time, want one for each of 3 workers and one for who waits", n)
			}
			if n := hands.Load(); n != 0 {
				t.Errorf("%d hands are left", n)
			}
		})
	}
}

// countedHand tells when it ends.
type countedHand struct {
	Hand
	count *atomic.Int64
}

func (h *countedHand) Close() error {
	h.count.Add(-1)
	return h.Hand.Close()
}

// Close ends a Server while a caller waits for a server without room.
func TestUnix_CloseEndsWhoWaits_NET81(t *testing.T) {
	entered := make(chan struct{}, 1)
	var hands atomic.Int64
	b := startSandbox(t, setup{judge: &testJudge{}, filter: connects, probe: "unix-waiter", folder: tempFolder(t), mutate: func(c *Config) {
		start := c.NewHand
		c.NewHand = func() (Hand, error) {
			if hands.Add(1) == 2 { // the one of those who wait
				entered <- struct{}{}
			}
			return start()
		}
	}})
	<-entered
	if err := b.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := b.server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-b.served; err != nil {
		t.Error(err)
	}
	b.out.Close()
	var killed *ns.KilledError
	if _, err := b.process.Wait(); !errors.As(err, &killed) {
		t.Error(err)
	}
}
