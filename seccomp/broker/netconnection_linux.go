package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// state is how far a connection is.
type state uint8

const (
	dialling state = iota
	open           // to its destination, until the tunnel ends
	broken         // and the program has not asked for it yet, or has but made no call on the socket since
)

// connection is a program's connection to an allowed destination. While it is dialled for, the program's socket is either
// still unconnected, with the program waiting in connect(2), or in the waiting room, with its SYN never answered:
//
//	program's socket                                       srt
//	connect: blocking            (unconnected)             Dial
//	  waits                      connect to Capture  <---- done: accepts that, relays
//	connect: EINPROGRESS  <----  connect to Waiting        Dial
//	  polls                      SYN sent            <---- done: a socket of the sandbox that is bound to the very address
//	  EPOLLOUT                   established         ----> of the waiting room connects to the program's (RFC 9293, 3.5,
//	                                                       simultaneous open), and relays
//
// A program that stops waiting, because of a signal or its time limit, leaves its socket in the waiting room.
type connection struct {
	network *network
	cookie  uint64
	pid     int
	domain  int            // of the socket
	asked   netip.AddrPort // as the program did
	to      netip.AddrPort // as the policy names it
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{} // closed when it is open, broken or given up
	first   *waiting      // the call that it was made for, if that waits

	// state and errno are the network's, under its lock.
	state state
	errno syscall.Errno
	told  bool // the program has asked what broke it
	loose bool // the program has dissolved it (connect(AF_UNSPEC)) and can still ask what broke it

	mu      sync.Mutex // held by nobody who waits
	socket  int        // a copy of the program's, closed when done is; while joining that of who joins
	joining bool       // its two ends are being joined, which nothing but the network's end stops
	settled bool
	given   bool       // up: nobody wants it any more
	waiters int        // calls that wait for it
	room    netip.Addr // where it is in the waiting room, if it is
	result  syscall.Errno
}

// newConnection makes a connection for a program's socket, of which fd is a copy. It is nothing yet.
func (n *network) newConnection(c *call, fd, domain int, asked, to netip.AddrPort) (*connection, error) {
	cookie, err := cookieOf(fd)
	if err != nil {
		return nil, err
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("copy a socket: %w", err)
	}
	x := &connection{network: n, cookie: cookie, pid: c.tid, domain: domain, asked: asked, to: to, socket: own,
		done: make(chan struct{})}
	x.ctx, x.cancel = context.WithCancel(n.ctx)
	return x, nil
}

// run dials, in a goroutine of its own. The network has it (add).
func (x *connection) run(way Way) {
	n := x.network
	defer n.goroutines.Done()
	defer x.cancel()
	errno, report := unix.EIO, error(nil)
	defer func() {
		if cause := recover(); cause != nil {
			report = fmt.Errorf("srt made a mistake: %v", cause)
		}
		// That srt was ending is no failure: there is nobody left whom it concerns.
		if report != nil && n.ctx.Err() == nil && !errors.Is(report, errHandKilled) {
			n.server.report(Denial{PID: x.pid, Call: "connect", Path: x.to.String(), Err: report})
		}
		x.end(errno)
		if x.first != nil {
			x.first.answer()
		}
	}()
	up, err := way.Dial(x.ctx)
	if err != nil {
		errno = dialErrno(err)
		return
	}
	if errno, report = x.hand(up); errno != 0 {
		_ = up.Close() // nobody is there to hear of it
	}
}

// hand gives the program its connection.
func (x *connection) hand(up Upstream) (errno syscall.Errno, report error) {
	if !x.begin() {
		return unix.ECONNABORTED, nil
	}
	var conn *net.TCPConn
	if x.room.IsValid() {
		conn, errno, report = x.meet()
	} else {
		conn, errno, report = x.capture()
	}
	if errno == 0 {
		x.network.tunnel(1)
		up.Relay(conn, func() {
			x.network.tunnel(-1)
			x.network.forget(x)
		})
	}
	return errno, report
}

// begin says that the two ends are being joined, unless nobody wants that any more. From now on until it is settled nobody
// else uses socket, and room does not change.
func (x *connection) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.joining = !x.given && x.network.ctx.Err() == nil
	return x.joining
}

// end says how it went, to whoever waits and, in the waiting room, to the program by its socket.
func (x *connection) end(errno syscall.Errno) {
	x.mu.Lock()
	inRoom := x.room.IsValid() && !x.given && x.socket >= 0
	fd := x.settle(errno)
	x.mu.Unlock()
	if errno != 0 {
		x.network.settle(x, errno, inRoom)
	}
	if errno != 0 && inRoom {
		// The first ends the connecting and wakes who polls, the second has them see the end of input as well, as after a
		// connection that the kernel gave up (inet_shutdown of net/ipv4/af_inet.c).
		_, _ = unix.Shutdown(fd, unix.SHUT_RDWR), unix.Shutdown(fd, unix.SHUT_RDWR)
	}
	x.close(fd)
}

// settle takes the socket off a connection whose dialling has ended. x.mu is held.
func (x *connection) settle(errno syscall.Errno) (fd int) {
	fd = x.socket
	x.settled, x.result, x.socket = true, errno, -1
	return fd
}

// close gives back what the dialling took.
func (x *connection) close(fd int) {
	if fd >= 0 {
		x.network.server.closeCopy(fd)
	}
	x.network.dialled(x)
	close(x.done)
}

// withdraw ends a connection that is not dialled for after all.
func (n *network) withdraw(x *connection, errno syscall.Errno) {
	n.forget(x)
	x.cancel()
	x.mu.Lock()
	fd := x.settle(errno)
	x.mu.Unlock()
	x.close(fd)
	n.goroutines.Done()
}

// within is the address of the sandbox at which the connection goes on.
func (x *connection) within() netip.Addr {
	if x.domain == unix.AF_INET || x.asked.Addr().Is4In6() {
		return waitingAddress(x.network.turn.Add(1))
	}
	return netip.IPv6Loopback()
}

// enter takes the program's socket into the waiting room. EISCONN says that it is not needed any more: the connection has
// been settled, or is about to be.
func (x *connection) enter() syscall.Errno {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.settled, x.joining:
		return unix.EISCONN
	case x.room.IsValid():
		return 0
	}
	at := x.within()
	errno := x.network.connect(x.socket, socket.Address(x.domain, netip.AddrPortFrom(at, ns.WaitingPort)))
	if errno == unix.EINPROGRESS {
		x.room, errno = at, 0
	}
	return errno
}

// giveUp ends the dialling: the program has dissolved the connection, or nobody waits for it. false says that its two ends
// are being joined, so that it is about to be settled.
func (x *connection) giveUp() bool {
	x.mu.Lock()
	if x.joining && !x.settled {
		x.mu.Unlock()
		return false
	}
	x.given = true
	x.mu.Unlock()
	x.network.forget(x)
	x.cancel()
	return true
}

// maxErrno is above all errors that a program ever sees; the kernel has others for itself (include/linux/errno.h).
const maxErrno = 512

// dialErrno is what a program sees of a failed dial.
func dialErrno(err error) syscall.Errno {
	var timeout net.Error
	errno, ok := errors.AsType[syscall.Errno](err)
	switch {
	case errno == unix.EMFILE, errno == unix.ENFILE:
		return unix.EAGAIN // it is this process that has no more descriptors
	case ok && errno > 0 && errno < maxErrno:
		return errno
	case errors.As(err, &timeout) && timeout.Timeout():
		return unix.ETIMEDOUT
	}
	return unix.ECONNREFUSED
}
