package local

import (
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

// Control is for [net.Dialer.Control]. If the address is on loopback it also begins to connect: there connect(2) has
// done all its work when it returns, so that the second call, which package net makes, finds the connection established
// or refused. Otherwise it would wait for it in the poller, with a goroutine beside it. It never fails: what is wrong
// with a connection, package net finds out itself.
func Control(_, address string, raw syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !to.Addr().IsLoopback() || to.Addr().Is4In6() {
		return nil
	}
	return raw.Control(func(fd uintptr) {
		unpaced(int(fd))
		_ = unix.Connect(int(fd), sockaddr(to))
	})
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
