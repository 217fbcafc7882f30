package broker

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A peer takes as many connections as its backlog says (listen(2)); who comes then waits. A worker and its hand do not: the
// hand tries with the shortest time limit there is (SO_SNDTIMEO, socket(7)), and when that is over, the call is looked
// after by unixQueue. Another thread of the caller can take the time limit away in the middle of a try, and the hand then
// waits for as long as it pleases the peer: so a hand that takes too long is ended, and few workers try at the same time.

// joinUnix connects, and waits where the caller would.
func (c *call) joinUnix(u *unixPeer) outcome {
	kind, err := unix.GetsockoptInt(u.socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask for a socket's type: %w", err)))
	}
	if u.kind = kind; kind == unix.SOCK_DGRAM {
		errno, _ := c.tryUnix(u) // which may be sending meanwhile, and waits for nobody
		return failed(errno)
	}
	flags, err := unix.FcntlInt(uintptr(u.socket), unix.F_GETFL, 0)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask for a socket's flags: %w", err)))
	}
	start := time.Now()
	limit, restore, err := c.s.unix.timeouts.shorten(u.socket)
	if err != nil {
		return failed(c.broken(err))
	}
	w := &unixWaiter{peer: u, key: u.key(), start: start, limit: limit, restore: restore, once: flags&unix.O_NONBLOCK != 0}
	if out, done := c.tryFirst(w); done {
		restore()
		return out
	}
	return c.queueUnix(w)
}

// tryFirst tries for the first time, in the worker. done is false where the call is to be tried by the queue: because the
// peer has no room, because others wait for it already, or because too many workers try.
func (c *call) tryFirst(w *unixWaiter) (out outcome, done bool) {
	s := &c.s.unix
	if !w.once && s.queue.waitedFor(w.key) {
		return out, false
	}
	defer s.trying.Add(-1)
	if s.trying.Add(1) > int32(max(1, c.s.config.Workers/workersShare)) {
		return out, false
	}
	errno, stuck := c.tryUnix(w.peer)
	switch {
	case errno != unix.EAGAIN:
		return failed(errno), true
	case stuck:
		return failed(errno), c.meddled(w)
	}
	return failed(errno), w.once
}

// workersShare is which part of the workers may try at the same time.
const workersShare = 4

// meddled tells whether a try took too long because the caller has changed the socket's time limit in the middle of it.
// Nothing but that keeps a hand waiting; such a call ends as one that is not to wait (EAGAIN). Otherwise the machine was
// slow, and the limit is in force still.
func (c *call) meddled(w *unixWaiter) bool {
	own, errno := c.s.unix.timeouts.again(w.peer.socket)
	return own || errno != 0
}

// queueUnix gives the call a life of its own, beside the worker that took it.
func (c *call) queueUnix(w *unixWaiter) outcome {
	if errno := c.readStatus(); errno != 0 { // which opens what unixWaiter.look reads
		w.restore()
		return failed(errno)
	}
	own := *c
	own.w = nil
	w.c = &own
	if !c.s.unix.queue.add(w) {
		w.restore()
		return failed(unix.EAGAIN) // too many wait
	}
	c.files, c.thread = nil, nil
	return outcome{sent: true}
}

// look looks whether the caller has a signal to handle, is gone, or has waited for as long as it wanted to, and gives the
// error that its call ends with; 0 when it is to go on waiting. others is how many wait: they are looked at the less often
// the more they are.
func (w *unixWaiter) look(now time.Time, others int) syscall.Errno {
	w.pause = min(2*w.pause, max(lookLast, time.Duration(others)*lookShare))
	w.next = now.Add(w.pause)
	if w.limit > 0 {
		end := w.start.Add(w.limit)
		if !now.Before(end) {
			return unix.EAGAIN
		}
		if end.Before(w.next) {
			w.next = end
		}
	}
	s, err := w.c.thread.parsedStatus()
	if err != nil || !w.c.waits() {
		return unix.EINTR // gone: nobody sees it
	}
	yes, sure := s.interrupted()
	switch {
	case !yes:
		w.seen = 0
		return 0
	case !sure:
		// A signal of the whole process, which another thread may be about to take.
		if w.seen++; w.seen < 2 {
			return 0
		}
		return unix.EINTR
	case w.limit > 0:
		return unix.EINTR // a call with a time limit is not made again (signal(7))
	}
	return errnoRestart
}

// lookShare is how often callers are looked at in all, when there are many.
const lookShare = 500 * time.Microsecond

// finish ends the call with an error, 0 for success.
func (w *unixWaiter) finish(errno syscall.Errno) {
	w.restore()
	if !w.c.s.pool.ends() {
		w.c.respond(failed(errno))
	}
	w.c.end()
}

// ends tells whether the Server is being closed: no call is to be answered any more.
func (p *pool) ends() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}
