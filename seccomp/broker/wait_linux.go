package broker

import (
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// A call that waits for somebody else, the opening of a FIFO above all, must end when its caller gets a signal, as it
// would without a sandbox (signal(7)). The kernel does not tell: once received, only the caller's death ends a call
// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV). So the caller's signals are looked at from time to time.

// How often: at first after lookFirst, then ever less, at last every lookLast.
const (
	lookFirst = time.Millisecond
	lookLast  = 20 * time.Millisecond
)

// errnoRestart is the kernel's ERESTARTSYS (include/linux/errno.h): the call returns EINTR to a handler, or is made again
// after one that was set up with SA_RESTART.
const errnoRestart = syscall.Errno(512)

// doWatched is do for a program that may wait. If the caller is gone or gets a signal the hand is ended, and with it the
// call.
func (p *program) doWatched() (ns.HandResult, syscall.Errno) {
	if errno := p.c.readStatus(); errno != 0 { // which opens what awaitSignal reads
		return ns.HandResult{}, errno
	}
	if !p.c.waits() {
		return ns.HandResult{}, unix.EINTR
	}
	p.c.s.pool.handOn(p.c.w, true)
	done, watched := make(chan struct{}), make(chan struct{})
	var verdict atomic.Uint32
	go func() {
		defer close(watched)
		if errno := p.c.awaitSignal(done); errno != 0 {
			verdict.Store(uint32(errno))
			_ = p.hand.Kill() // one that has ended needs no killing
		}
	}()
	r, err := p.hand.Do()
	close(done)
	<-watched
	if err == nil {
		if verdict.Load() != 0 {
			p.c.w.dropHand() // killed when it was done
		}
		return r, 0
	}
	p.c.w.dropHand()
	if errno := syscall.Errno(verdict.Load()); errno != 0 {
		return r, errno
	}
	return r, p.c.broken(err)
}

// awaitSignal waits until the caller has a signal to handle or is gone, and gives the error that its call ends with; 0
// once done is closed.
func (c *call) awaitSignal(done <-chan struct{}) syscall.Errno {
	pause := lookFirst
	timer := time.NewTimer(pause)
	defer timer.Stop()
	seen := 0
	for {
		select {
		case <-done:
			return 0
		case <-timer.C:
		}
		pause = min(2*pause, lookLast)
		timer.Reset(pause)
		s, err := c.thread.parsedStatus()
		if err != nil || !c.waits() {
			return unix.EINTR // gone: nobody sees it
		}
		yes, sure := s.interrupted()
		switch {
		case !yes:
			seen = 0
		case sure:
			return errnoRestart
		default:
			// A signal of the whole process, which another thread may be about to take.
			if seen++; seen > 1 {
				return unix.EINTR
			}
		}
	}
}
