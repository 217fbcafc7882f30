package broker

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// apartAlone gives the call a life of its own, to be ended by goOn: the worker that took it goes back to receiving.
func (c *call) apartAlone() *call {
	own := *c
	own.w = nil
	c.files, c.thread = nil, nil
	c.s.network.goroutines.Add(1)
	return &own
}

// apartFrom lets the call go on in a goroutine of its own, which answers it.
func (c *call) apartFrom(f func(c *call) outcome) outcome {
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
// is gone (an error that the call ends with).
func (c *call) awaitDone(done <-chan struct{}, limit time.Duration) syscall.Errno {
	timer := time.NewTimer(lookFirst) // most need no more
	defer timer.Stop()
	select {
	case <-done:
		return 0
	case <-timer.C:
	}
	if errno := c.readStatus(); errno != 0 { // which opens what awaitSignal reads
		return errno
	}
	until, stop, over := make(chan struct{}), make(chan struct{}), false
	go func() {
		defer close(until)
		var late <-chan time.Time
		if limit > 0 {
			t := time.NewTimer(max(0, limit-lookFirst))
			defer t.Stop()
			late = t.C
		}
		select {
		case <-done:
		case <-stop:
		case <-late:
			over = true
		}
	}()
	errno := c.awaitSignal(until)
	close(stop)
	<-until
	switch {
	case errno == errnoRestart && limit > 0:
		return unix.EINTR // a call with a time limit is not made again (signal(7))
	case errno == 0 && over:
		return unix.ETIME
	}
	return errno
}

// waitFor waits in the place of the caller until a connection is settled. With a signal, or when the caller's own time limit
// is over (late), the caller goes on and the connection too.
func (t *target) waitFor(c *call, x *connection, late syscall.Errno) syscall.Errno {
	limit, restore, err := c.s.unix.timeouts.shorten(t.socket)
	if err != nil {
		x.leave(true)
		return c.broken(err)
	}
	restore()
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
	if _, errno = n.connect(t.socket, t.address); errno == unix.EISCONN {
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
func (t *target) waitKernel(c *call, limit time.Duration, late syscall.Errno) syscall.Errno {
	for {
		done, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for !ready(t.socket, unix.POLLOUT, lookLast) {
				select {
				case <-stop:
					return
				case <-c.s.network.ctx.Done():
					close(done)
					return
				default:
				}
			}
			close(done)
		}()
		errno := c.awaitDone(done, limit)
		close(stop)
		<-ended
		switch {
		case errno == unix.ETIME:
			return late
		case errno != 0:
			return errno
		case c.s.network.ctx.Err() != nil:
			return unix.EINTR
		}
		if _, errno = c.s.network.connect(t.socket, t.address); errno != unix.EINPROGRESS && errno != unix.EALREADY {
			return errno
		}
	}
}
