package local

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// congestion is the algorithm for connections over loopback, where nothing can be congested. A system whose default is
// BBR paces every segment with a timer, which costs half of the throughput of a tunnel here; Reno does not, is always
// there, and is open to every user (tcp(7), TCP_CONGESTION).
const congestion = "reno"

// Listener prepares a listener on loopback: its connections inherit the options. Other listeners are left alone. It
// does not take ownership. A system that refuses is only slower, so there is no error.
func Listener(l net.Listener) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	if addr, ok := l.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { unpaced(int(fd)) })
	}
}

func unpaced(fd int) {
	_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
}

// errLater is why Dial has no connection. Nobody sees it.
var errLater = errors.New("the connection is not there at once")

// Dial connects to an address on loopback if that takes no time: there connect(2) has done all its work when it returns.
// Nil is any other outcome, a refusal or a server that is too busy to accept included, and says nothing: the caller dials
// in the ordinary way, which waits, can be cancelled, and has errors to tell. The caller owns the connection.
func Dial(to netip.AddrPort) net.Conn {
	if !to.Addr().IsLoopback() || to.Addr().Is4In6() {
		return nil
	}
	// A server on this host cannot be gone without a word, so there is nothing to keep alive.
	dialer := net.Dialer{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error { return connect(raw, to) }}
	c, err := dialer.Dial("tcp", to.String())
	if err != nil {
		return nil
	}
	return c
}

// connect connects a new socket, which package net then finds connected already (EISCONN), so that it neither waits for
// it in the poller nor keeps a goroutine and a timer beside it.
func connect(raw syscall.RawConn, to netip.AddrPort) error {
	err := errLater
	controlled := raw.Control(func(fd uintptr) {
		unpaced(int(fd))
		// A non-blocking connect is always "in progress" at first; the second call tells how it ended.
		if err = unix.Connect(int(fd), sockaddr(to)); err != nil {
			err = unix.Connect(int(fd), sockaddr(to))
		}
		if err != nil && !errors.Is(err, unix.EISCONN) {
			err = errLater
		} else {
			err = nil
		}
	})
	return errors.Join(controlled, err)
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
