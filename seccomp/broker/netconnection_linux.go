package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

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

	mu      sync.Mutex
	socket  int // a copy of the program's, closed when done is
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
		if report != nil {
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
	x.mu.Lock()
	defer x.mu.Unlock()
	if errno, report = x.hand(up); errno != 0 {
		_ = up.Close() // nobody is there to hear of it
	}
}

// hand gives the program its connection. x.mu is held.
func (x *connection) hand(up Upstream) (errno syscall.Errno, report error) {
	var conn *net.TCPConn
	switch {
	case x.given, x.network.ctx.Err() != nil:
		return unix.ECONNABORTED, nil
	case x.room.IsValid():
		conn, errno, report = x.meet()
	default:
		conn, errno, report = x.capture()
	}
	if errno == 0 {
		up.Relay(conn, func() { x.network.forget(x) })
	}
	return errno, report
}

// deserted tells whether the program closed its socket while it was dialled for, after which the copy here was the last: then
// nothing is to be relayed. fd is the other end.
func (x *connection) deserted(fd int) bool {
	unix.Close(x.socket)
	x.socket = -1
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.State == unix.BPF_TCP_ESTABLISHED {
		return err != nil
	}
	sent, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	return err != nil || sent == 0 // else it has sent something already, and then closed it
}

// end says how it went, to whoever waits and, in the waiting room, to the program by its socket.
func (x *connection) end(errno syscall.Errno) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if errno != 0 {
		inRoom := x.room.IsValid() && !x.given && x.socket >= 0
		x.network.settle(x, errno, inRoom)
		if inRoom {
			// The first ends the connecting and wakes who polls, the second has them see the end of input as well, as after a
			// connection that the kernel gave up (inet_shutdown of net/ipv4/af_inet.c).
			_, _ = unix.Shutdown(x.socket, unix.SHUT_RDWR), unix.Shutdown(x.socket, unix.SHUT_RDWR)
		}
	}
	x.close(errno)
}

// close gives back what the dialling took. x.mu is held.
func (x *connection) close(errno syscall.Errno) {
	x.settled, x.result = true, errno
	if x.socket >= 0 {
		unix.Close(x.socket)
		x.socket = -1
	}
	x.network.mu.Lock()
	x.network.dialling--
	x.network.mu.Unlock()
	close(x.done)
}

// withdraw ends a connection that is not dialled for after all.
func (n *network) withdraw(x *connection, errno syscall.Errno) {
	n.forget(x)
	x.cancel()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.close(errno)
	n.goroutines.Done()
}

// capture connects the program's socket to the capturing listener and accepts it there. x.mu is held.
func (x *connection) capture() (conn *net.TCPConn, errno syscall.Errno, report error) {
	n := x.network
	at := netip.AddrPortFrom(x.within(), ns.CapturePort)
	n.accepting.Lock()
	defer n.accepting.Unlock()
	n.settle(x, 0, false) // before the program can see that it is connected
	_, errno = n.connect(x.socket, socket.Address(x.domain, at))
	if errno != 0 {
		if errno == unix.EINPROGRESS { // nothing that listens lets anybody wait, unless there is no memory
			n.disconnect(x.socket)
			return nil, unix.EIO, errors.New("the sandbox's own listener does not answer")
		}
		return nil, errno, nil
	}
	if conn, report = n.accept(x.socket); report != nil {
		n.disconnect(x.socket) // it leads nowhere
		return nil, unix.EIO, report
	}
	return conn, 0, nil
}

// captureTimeout bounds the wait for a connection that exists already.
const captureTimeout = 10 * time.Second

// accept takes the other end of a program's socket from the capturing listener. Whatever else is there is nobody's: a
// socket that its program has changed in the middle of all this. n.accepting is held.
func (n *network) accept(of int) (*net.TCPConn, error) {
	want, err := socket.Local(of)
	if err != nil {
		return nil, fmt.Errorf("ask for a socket's address: %w", err)
	}
	if n.capture == nil {
		if n.capture, err = listenerOf(n.server.config.Capture); err != nil {
			return nil, err
		}
	}
	if err := n.capture.SetDeadline(time.Now().Add(captureTimeout)); err != nil {
		return nil, err
	}
	for {
		conn, err := n.capture.AcceptTCP()
		if err != nil {
			return nil, fmt.Errorf("accept a captured connection: %w", err)
		}
		from, ok := conn.RemoteAddr().(*net.TCPAddr)
		if ok && unmapped(from.AddrPort()) == unmapped(want) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// listenerOf makes a listener of a file, which stays the caller's.
func listenerOf(f *os.File) (*net.TCPListener, error) {
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("use the listener for captured connections: %w", err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("the listener for captured connections is a %T", l)
	}
	return tcp, nil
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// ready waits until something can be done with a descriptor.
func ready(fd int, events int16, limit time.Duration) bool {
	for end := time.Now().Add(limit); ; {
		fds := [...]unix.PollFd{{Fd: int32(fd), Events: events}}
		n, err := unix.Poll(fds[:], int(max(0, time.Until(end).Milliseconds())))
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n > 0
		}
	}
}

// within is the address of the sandbox at which the connection goes on.
func (x *connection) within() netip.Addr {
	if x.domain == unix.AF_INET || x.asked.Addr().Is4In6() {
		return waitingAddress(x.network.turn.Add(1))
	}
	return netip.IPv6Loopback()
}

// enter takes the program's socket into the waiting room. EISCONN says that it is not needed any more: the connection has
// been settled.
func (x *connection) enter() syscall.Errno {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.settled:
		return unix.EISCONN
	case x.room.IsValid():
		return 0
	}
	at := x.within()
	_, errno := x.network.connect(x.socket, socket.Address(x.domain, netip.AddrPortFrom(at, ns.WaitingPort)))
	switch errno {
	case unix.EINPROGRESS:
		x.room = at
		return 0
	case 0: // somebody was there
		x.network.disconnect(x.socket)
		return x.network.trouble(errors.New("a connection was accepted in the sandbox where none ever is"))
	}
	return errno
}

// meet has a spare socket connect to the program's in the waiting room. x.mu is held.
func (x *connection) meet() (conn *net.TCPConn, errno syscall.Errno, report error) {
	local, err := socket.Local(x.socket)
	if err != nil {
		return nil, unix.EIO, fmt.Errorf("ask for a socket's address: %w", err)
	}
	family := unix.AF_INET
	if x.room.Is6() {
		family = unix.AF_INET6
	}
	fd, err := x.network.spares.take(family)
	if err != nil {
		return nil, unix.EIO, err
	}
	x.network.settle(x, 0, false) // before the program can see that it is connected
	if errno, report = x.simultaneous(fd, family, unmapped(local)); errno != 0 {
		unix.Close(fd)
		return nil, errno, report
	}
	if x.deserted(fd) {
		unix.Close(fd)
		return nil, unix.ECONNABORTED, nil
	}
	if conn, report = tcpConn(fd); report != nil {
		return nil, unix.EIO, report
	}
	return conn, 0, nil
}

// simultaneous connects a spare socket, bound to where the program's waits, to the program's.
func (x *connection) simultaneous(fd, family int, local netip.AddrPort) (errno syscall.Errno, report error) {
	for _, option := range [...]int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
			return unix.EIO, fmt.Errorf("share an address of the waiting room: %w", err)
		}
	}
	if errno := socket.Bind(fd, socket.Address(family, netip.AddrPortFrom(x.room, ns.WaitingPort))); errno != 0 {
		return unix.EIO, fmt.Errorf("bind to an address of the waiting room: %w", errno)
	}
	errno = socket.Connect(fd, socket.Address(family, local))
	if errno == unix.EINPROGRESS {
		if !ready(fd, unix.POLLOUT, captureTimeout) {
			return unix.EIO, errors.New("a socket in the waiting room did not answer")
		}
		value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil {
			return unix.EIO, fmt.Errorf("ask for a socket's error: %w", err)
		}
		errno = syscall.Errno(value)
	}
	if errno != 0 {
		return unix.ECONNABORTED, nil // the program's socket waits no longer
	}
	return 0, nil
}

// tcpConn makes a connection of a descriptor, which it takes over.
func tcpConn(fd int) (*net.TCPConn, error) {
	f := os.NewFile(uintptr(fd), "captured connection")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("a captured connection is a %T", conn)
	}
	return tcp, nil
}

// giveUp ends the dialling: the program has dissolved the connection, or nobody waits for it.
func (x *connection) giveUp() {
	x.network.forget(x)
	x.mu.Lock()
	x.given = true
	x.mu.Unlock()
	x.cancel()
}

// maxErrno is above all errors that a program ever sees; the kernel has others for itself (include/linux/errno.h).
const maxErrno = 512

// dialErrno is what a program sees of a failed dial.
func dialErrno(err error) syscall.Errno {
	var timeout net.Error
	errno, ok := errors.AsType[syscall.Errno](err)
	switch {
	case ok && errno > 0 && errno < maxErrno:
		return errno
	case errors.As(err, &timeout) && timeout.Timeout():
		return unix.ETIMEDOUT
	}
	return unix.ECONNREFUSED
}
