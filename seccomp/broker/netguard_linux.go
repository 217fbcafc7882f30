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

// interruptible makes a system call that a program can have wait. After a beat, and after each further one, nudge is called if
// it is not nil and the thread gets a signal, the one that the runtime takes for a stray request of its own.
func interruptible(call, nudge func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	var mu sync.Mutex
	var timer *time.Timer
	ended := false
	mu.Lock()
	timer = time.AfterFunc(beat, func() {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		if nudge != nil {
			nudge()
		}
		_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // the thread lives: it waits for mu at the latest
		timer.Reset(beat)
	})
	mu.Unlock()
	call()
	mu.Lock()
	ended = true
	mu.Unlock()
	timer.Stop()
}

// closeCopy closes a copy of a descriptor of a program's. It does not wait where that would be as the program says.
func (s *Server) closeCopy(fd int) {
	if l, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER); err == nil && l.Onoff != 0 && l.Linger != 0 {
		s.network.goroutines.Go(func() { closeInterruptibly(fd) }) // by a worker or by a goroutine that is counted itself
		return
	}
	closeInterruptibly(fd) // it may linger still, if the program has just said so
}

func closeInterruptibly(fd int) {
	interruptible(func() { unix.Close(fd) }, nil) // an interrupted close has closed (close(2))
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
	interruptible(func() { errno = socket.Connect(fd, address) }, func() {
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
