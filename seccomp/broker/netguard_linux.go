package broker

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// A program decides how long some calls on its sockets take, also those that are made here on copies: the last close of one
// with unsent data waits as long as its SO_LINGER says (socket(7)). No such call may keep anything here waiting. They are
// made on a thread that gets a signal after a beat, and then again and again: that ends the waiting.

// guard watches over the calls that a program can have wait. One goroutine does, as long as there are any.
type guard struct {
	mu      sync.Mutex
	calls   map[*guarded]struct{}
	entered uint64 // calls, ever
	beating bool
}

// guarded is one of those calls.
type guarded struct {
	thread int
	nudge  func()
	beats  int // that it has lasted, the guard's alone

	mu    sync.Mutex // held while it is interrupted
	ended bool
}

// interruptible makes a system call that a program can have wait. After a beat or two, and after each further one, nudge is
// called if it is not nil and the thread gets a signal, the one that the runtime takes for a stray request of its own.
func (n *network) interruptible(call, nudge func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	one := &guarded{thread: unix.Gettid(), nudge: nudge}
	n.guard.enter(one, &n.goroutines)
	call()
	n.guard.leave(one)
}

func (g *guard) enter(one *guarded, goroutines *sync.WaitGroup) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls == nil {
		g.calls = map[*guarded]struct{}{}
	}
	g.calls[one] = struct{}{}
	g.entered++
	if !g.beating {
		g.beating = true
		goroutines.Go(g.watch) // by a worker or by a goroutine that is counted itself
	}
}

func (g *guard) leave(one *guarded) {
	g.mu.Lock()
	delete(g.calls, one)
	g.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	one.ended = true
}

// watch ends when a beat brought no call and none is left.
func (g *guard) watch() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for last := uint64(0); ; {
		<-ticker.C
		if g.idle(&last) {
			return
		}
	}
}

// idle is one beat.
func (g *guard) idle(last *uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for one := range g.calls {
		if one.beats++; one.beats > 1 {
			go one.interrupt() // which may have to wait itself
		}
	}
	g.beating = len(g.calls) > 0 || g.entered != *last
	*last = g.entered
	return !g.beating
}

func (one *guarded) interrupt() {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.ended {
		return
	}
	if one.nudge != nil {
		one.nudge()
	}
	_ = unix.Tgkill(os.Getpid(), one.thread, unix.SIGURG) // the thread lives: it waits for mu at the latest
}

// closeCopy closes a copy of a descriptor of a program's. It does not wait where that would be as the program says.
func (s *Server) closeCopy(fd int) {
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil && l.Onoff != 0 && l.Linger != 0 {
		s.network.goroutines.Go(func() { s.network.close(fd) }) // by a worker or by a goroutine that is counted itself
		return
	}
	s.network.close(fd) // it may linger still, if the program has just said so
}

// close closes a copy that may have to be interrupted.
func (n *network) close(fd int) {
	n.interruptible(func() { unix.Close(fd) }, nil) // an interrupted close has closed (close(2))
}

// patient is how many beats a connect may wait that cannot be kept from waiting.
const patient = 4

// connectWaiting is connect for a network namespace that has no TCP Fast Open, which only one that a program has made can be:
// the socket's time limit (SO_SNDTIMEO) is shortened meanwhile, and if the program sets it again, the connecting is ended.
func (n *network) connectWaiting(fd int, address []byte) (errno syscall.Errno) {
	own, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return n.trouble(err)
	}
	tick := unix.Timeval{Usec: 1} // one of the kernel's clock
	beats := 0
	shorten := func() { _ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tick) }
	shorten()
	n.interruptible(func() { errno = socket.Connect(fd, address) }, func() {
		if beats++; beats > patient {
			_ = unix.Shutdown(fd, unix.SHUT_RDWR)
		}
		shorten()
	})
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, own)
	if errno == unix.EINTR {
		errno = unix.EINPROGRESS // interrupted in that tick by a signal to this process
	}
	return errno
}
