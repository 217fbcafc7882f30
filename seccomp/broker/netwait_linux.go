package broker

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxApart is how many calls may be apart at the same time, apartShare which part of this process's descriptors each of them
// may take: it holds the copy of the socket and what tells of its caller.
const (
	maxApart   = 4096
	apartShare = 16
)

// apartAlone gives the call a life of its own, to be ended by goOn: the worker that took it goes back to receiving.
func (c *call) apartAlone() *call {
	own := *c
	own.w = nil
	c.files, c.thread = nil, nil
	c.s.network.goroutines.Add(1)
	c.s.network.apart.Add(1)
	return &own
}

// apartFrom lets the call go on in a goroutine of its own, which answers it. EAGAIN says that too many have gone.
func (c *call) apartFrom(f func(c *call) outcome) outcome {
	if int(c.s.network.apart.Load()) >= shareOfFiles(maxApart, apartShare) {
		return failed(unix.EAGAIN)
	}
	go c.apartAlone().goOn(f)
	return outcome{sent: true}
}

// waiting is a call that waits for the connection that was made for it. Most dials take less time than the starting of a
// goroutine that waits for them, so that only begins after a moment; until then whoever dials gives the answer.
type waiting struct {
	c     *call
	t     *target
	x     *connection
	timer *time.Timer
	taken atomic.Bool
}

func (c *call) waitApart(t *target, x *connection) *waiting {
	w := &waiting{c: c.apartAlone(), t: t, x: x}
	w.timer = time.AfterFunc(lookFirst, func() {
		if w.taken.CompareAndSwap(false, true) {
			w.c.goOn(func(c *call) outcome { return failed(t.waitFor(c, x, unix.EINPROGRESS)) })
		}
	})
	return w
}

// answer answers the call if nobody else does. The connection has been settled.
func (w *waiting) answer() {
	if w.taken.CompareAndSwap(false, true) {
		w.timer.Stop()
		w.c.goOn(func(*call) outcome { return failed(w.t.result(w.x)) })
	}
}

func (c *call) goOn(f func(c *call) outcome) {
	defer c.s.network.goroutines.Done()
	defer c.s.network.apart.Add(-1)
	defer c.end()
	out := failed(unix.EIO)
	defer func() {
		if cause := recover(); cause != nil {
			out = failed(c.broken(fmt.Errorf("srt made a mistake: %v", cause)))
		}
		if !c.s.pool.ends() {
			c.respond(out)
		}
	}()
	out = f(c)
}

// awaitDone waits until done is closed (0), limit is over if it is not 0 (ETIME), or the caller has a signal to handle or
// is gone, or the Server ends (an error that the call ends with).
func (c *call) awaitDone(done <-chan struct{}, limit time.Duration) syscall.Errno {
	timer := time.NewTimer(lookFirst) // most need no more
	defer timer.Stop()
	select {
	case <-done:
		return 0
	case <-timer.C:
	}
	if errno := c.readStatus(); errno != 0 { // which opens what is read again and again
		return errno
	}
	n := &c.s.network
	n.waiters.Add(1)
	defer n.waiters.Add(-1)
	late := c.after(limit)
	defer late.Stop()
	look := looking{c: c}
	for pause := 2 * lookFirst; ; pause = min(2*pause, n.rest()) {
		timer.Reset(pause)
		select {
		case <-done:
			return 0
		case <-n.ctx.Done():
			return unix.EINTR
		case <-late.C:
			return unix.ETIME
		case <-timer.C:
		}
		switch errno := look.again(); {
		case errno == errnoRestart && limit > 0:
			return unix.EINTR // a call with a time limit is not made again (signal(7))
		case errno != 0:
			return errno
		}
	}
}

// lookCost is a generous estimate of what looking at a caller takes.
const lookCost = 250 * time.Microsecond

// rest is how long a caller is not looked at: however many wait, looking takes no more than part of one processor.
func (n *network) rest() time.Duration {
	return max(lookLast, time.Duration(n.waiters.Load())*lookCost)
}

// after is a timer for a caller's own time limit, of which lookFirst is over; one that never fires for 0.
func (c *call) after(limit time.Duration) *time.Timer {
	if limit == 0 {
		return time.NewTimer(1<<63 - 1)
	}
	return time.NewTimer(max(0, limit-lookFirst))
}

// looking looks at a caller from time to time.
type looking struct {
	c    *call
	seen int // how often in a row a signal was there that another thread may take
}

// again gives the error that the call ends with if the caller has a signal to handle or is gone, else 0.
func (l *looking) again() syscall.Errno {
	s, err := l.c.thread.parsedStatus()
	if err != nil || !l.c.waits() {
		return unix.EINTR // gone: nobody sees it
	}
	yes, sure := s.interrupted()
	switch {
	case !yes:
		l.seen = 0
	case sure:
		return errnoRestart
	default:
		if l.seen++; l.seen > 1 {
			return unix.EINTR
		}
	}
	return 0
}

// timeLimit is the program's own time limit for a connect (SO_SNDTIMEO, socket(7)), 0 for none.
func (t *target) timeLimit() (time.Duration, error) {
	limit, err := unix.GetsockoptTimeval(t.socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return 0, fmt.Errorf("ask for a socket's time limit (SO_SNDTIMEO): %w", err)
	}
	return time.Duration(limit.Nano()), nil
}

// waitFor waits in the place of the caller until a connection is settled. With a signal, or when the caller's own time limit
// is over (late), the caller goes on and the connection too.
func (t *target) waitFor(c *call, x *connection, late syscall.Errno) syscall.Errno {
	limit, err := t.timeLimit()
	if err != nil {
		x.leave(true)
		return c.broken(err)
	}
	errno := c.awaitDone(x.done, limit)
	switch {
	case errno == 0:
		return t.result(x)
	case c.dying():
		x.leave(true)
		return unix.EINTR
	case errno == unix.ETIME:
		errno = late
	}
	defer x.leave(false)
	switch entered := x.enter(); entered {
	case 0:
		return errno
	case unix.EISCONN:
		<-x.done
		return t.result(x)
	default:
		x.giveUp()
		return entered
	}
}

// dying tells whether the caller is gone, or has been killed and is about to be.
func (c *call) dying() bool {
	if c.thread == nil { // it was looked for in vain
		return true
	}
	s, err := c.thread.parsedStatus()
	return err != nil || (s.pending|s.shared)&(1<<(unix.SIGKILL-1)) != 0 || !c.waits()
}

// leave takes a caller off those who wait for a connection. gone says that nobody has the socket of this caller any more:
// without others that wait, the connection is given up unless it goes on in the waiting room.
func (x *connection) leave(gone bool) {
	x.mu.Lock()
	x.waiters--
	last := gone && x.waiters == 0 && !x.settled && !x.room.IsValid()
	x.mu.Unlock()
	if last {
		x.giveUp()
	}
}

// join adds a caller to those who wait for a connection.
func (x *connection) join() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.waiters++
}

// result is what a caller gets that has waited for a connection to be settled.
func (t *target) result(x *connection) syscall.Errno {
	n := x.network
	x.mu.Lock()
	errno, inRoom := x.result, x.room.IsValid()
	x.mu.Unlock()
	switch {
	case !inRoom:
		return errno
	case errno != 0:
		n.forget(x)
		t.renew()
		return errno
	}
	// The kernel looks at how the connecting went only in this call, and looks at no address for it.
	if errno = n.connect(t.socket, t.address); errno == unix.EISCONN {
		return 0
	}
	return errno
}

// renew makes the socket of a connection that could not be made as good as new, which the kernel does in the call that says so.
func (t *target) renew() {
	t.c.s.network.disconnect(t.socket)
	_, _ = unix.GetsockoptInt(t.socket, unix.SOL_SOCKET, unix.SO_ERROR) // which clears the one of the shutdown
}

// again is a connect on a socket whose connection is known. ok is false where the kernel, or a new connection, is the answer.
func (t *target) again(x *connection) (out outcome, ok bool) {
	n := &t.c.s.network
	n.mu.Lock()
	now, errno, told, loose := x.state, x.errno, x.told, x.loose
	n.mu.Unlock()
	switch now {
	case dialling:
		blocking, errno := t.blocking()
		switch {
		case errno != 0:
			return failed(errno), true
		case !blocking:
			return failed(unix.EALREADY), true
		}
		x.join()
		return t.c.apartFrom(func(c *call) outcome { return failed(t.waitFor(c, x, unix.EALREADY)) }), true
	case broken:
		x.ended()
		n.forget(x)
		if loose {
			return out, false
		}
		t.renew()
		if told {
			errno = unix.ECONNABORTED // which the kernel says of an error that has been asked for (inet_stream_connect)
		}
		return failed(errno), true
	}
	return out, false
}

// waitKernel waits in the place of the caller while the kernel connects the socket within the sandbox. late is the answer when
// the caller's own time limit is over.
func (t *target) waitKernel(c *call, late syscall.Errno) syscall.Errno {
	limit, err := t.timeLimit()
	if err != nil {
		return c.broken(err)
	}
	for start := time.Now(); ; {
		left := limit
		if limit > 0 {
			left = max(1, limit-time.Since(start))
		}
		w, err := c.s.network.poller.watch(t.socket, unix.EPOLLOUT)
		if err != nil {
			return c.broken(err)
		}
		errno := c.awaitDone(w.ready, left)
		w.stop()
		switch errno {
		case 0:
		case unix.ETIME:
			return late
		default:
			return errno
		}
		if errno = c.s.network.connect(t.socket, t.address); errno != unix.EINPROGRESS && errno != unix.EALREADY {
			return errno
		}
	}
}
