package broker

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A peer takes as many connections as its backlog says (listen(2)); who comes then waits. A worker and its hand do not: the
// hand tries with the shortest time limit there is (SO_SNDTIMEO, socket(7)), and when that is over, the call is looked
// after by a goroutine of its own that tries again from time to time. All of these share one hand.

// shortest is a time limit of one tick of the kernel's clock.
var shortest = unix.Timeval{Usec: 1}

// unixTimeouts are the time limits of callers' sockets that have been shortened.
type unixTimeouts struct {
	mu    sync.Mutex
	saved map[uint64]*unixTimeout
}

// unixTimeout is one of them, by the socket's cookie.
type unixTimeout struct {
	users int
	value unix.Timeval // the caller's
}

// shorten sets a socket's time limit to the shortest. It gives the caller's, 0 for none, and what puts that back; of several
// calls on one socket the last one does. The caller may see the short limit meanwhile, or lose one that it sets.
func (t *unixTimeouts) shorten(socket int) (limit time.Duration, restore func(), err error) {
	cookie, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return 0, nil, fmt.Errorf("ask for a socket's cookie: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.saved[cookie]
	if held == nil {
		value, err := unix.GetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
		if err != nil {
			return 0, nil, fmt.Errorf("ask for a socket's time limit (SO_SNDTIMEO): %w", err)
		}
		if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &shortest); err != nil {
			return 0, nil, fmt.Errorf("shorten a socket's time limit (SO_SNDTIMEO): %w", err)
		}
		if t.saved == nil {
			t.saved = map[uint64]*unixTimeout{}
		}
		held = &unixTimeout{value: *value}
		t.saved[cookie] = held
	}
	held.users++
	return time.Duration(held.value.Nano()), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if held.users--; held.users == 0 {
			delete(t.saved, cookie)
			// The very value was there before, and the socket is.
			_ = unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &held.value)
		}
	}, nil
}

// joinUnix connects, and waits where the caller would.
func (c *call) joinUnix(u *unixPeer) outcome {
	kind, err := unix.GetsockoptInt(u.socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask for a socket's type: %w", err)))
	}
	if u.kind = kind; kind == unix.SOCK_DGRAM {
		return failed(c.tryUnix(u)) // which may be sending meanwhile, and waits for nobody
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
	errno := c.tryUnix(u)
	if errno == unix.EAGAIN && flags&unix.O_NONBLOCK == 0 {
		if errno := c.readStatus(); errno == 0 { // which opens what awaitSignal reads
			w := c.apart()
			c.s.pool.wait.Add(1) // this worker is among those who are waited for
			go w.waitUnix(u, start, limit, restore)
			return outcome{sent: true}
		}
	}
	restore()
	return failed(errno)
}

// unixWaiters is the worker that all share who wait to be connected. It takes no calls.
type unixWaiters struct {
	mu     sync.Mutex // held by who uses it
	worker worker
	count  int
}

// apart gives the call a life of its own, beside the worker that took it.
func (c *call) apart() *call {
	w := &c.s.unix.waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	w.worker.server = c.s
	w.count++
	d := *c
	d.w = &w.worker
	c.files, c.thread = nil, nil
	return &d
}

// waitUnix tries again until the peer has room, and answers the call.
func (c *call) waitUnix(u *unixPeer, start time.Time, limit time.Duration, restore func()) {
	defer c.s.pool.wait.Done()
	defer c.end()
	defer c.leaveWaiters()
	done, signal := make(chan struct{}), make(chan syscall.Errno, 1)
	go func() {
		defer close(signal)
		signal <- c.awaitSignal(done)
	}()
	errno := unix.EIO
	defer func() {
		if cause := recover(); cause != nil {
			errno = c.broken(fmt.Errorf("srt made a mistake: %v", cause))
		}
		close(done)
		for range signal { // it uses what the call holds
		}
		restore()
		if !c.s.pool.ends() {
			c.respond(failed(errno))
		}
	}()
	errno = c.retryUnix(u, start, limit, signal)
}

// retryUnix tries again and again, until signal says otherwise.
func (c *call) retryUnix(u *unixPeer, start time.Time, limit time.Duration, signal <-chan syscall.Errno) syscall.Errno {
	pause := lookFirst
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case errno := <-signal:
			if limit > 0 && errno == errnoRestart {
				return unix.EINTR // a call with a time limit is not made again (signal(7))
			}
			return errno
		case <-timer.C:
		}
		if c.s.pool.ends() {
			return unix.EINTR
		}
		if errno := c.tryApart(u); errno != unix.EAGAIN || limit > 0 && time.Since(start) >= limit {
			return errno
		}
		pause = min(2*pause, lookLast)
		timer.Reset(pause)
	}
}

// tryApart is tryUnix with the hand of those who wait.
func (c *call) tryApart(u *unixPeer) syscall.Errno {
	w := &c.s.unix.waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.tryUnix(u)
}

// leaveWaiters ends the shared hand when nobody else waits.
func (c *call) leaveWaiters() {
	w := &c.s.unix.waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count--; w.count == 0 {
		w.worker.dropHand()
	}
}

// ends tells whether the Server is being closed: no call is to be answered any more.
func (p *pool) ends() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing
}
