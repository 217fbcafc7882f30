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

// How the two ends of a connection within the sandbox meet. The program's own can drop all that comes, and be changed by
// the program at any time: then it fails early (ETIMEDOUT, ECONNABORTED), and nothing is to be reported.

// capture connects the program's socket to the capturing listener and accepts it there.
func (x *connection) capture() (conn *net.TCPConn, errno syscall.Errno, report error) {
	n := x.network
	at := netip.AddrPortFrom(x.within(), ns.CapturePort)
	n.settle(x, 0, false) // before the program can see that it is connected
	if errno, report = n.establish(x.ctx, x.socket, socket.Address(x.domain, at)); errno != 0 {
		return nil, errno, report
	}
	fd, errno, report := x.arrival(at)
	if errno == 0 {
		if conn, report = tcpConn(fd); report != nil {
			errno = unix.EIO
		}
	}
	if errno != 0 {
		n.disconnect(x.socket) // it leads nowhere
	}
	return conn, errno, report
}

// establish connects a program's socket within the sandbox, and waits for that.
func (n *network) establish(ctx context.Context, fd int, address []byte) (errno syscall.Errno, report error) {
	errno = n.connectNow(fd, address)
	if errno != unix.EINPROGRESS {
		return errno, nil
	}
	if err := n.awaitSocket(ctx, fd, n.patience); err != nil {
		n.disconnect(fd)
		return unix.EIO, err
	}
	if errno = n.connect(fd, address); errno == unix.EALREADY {
		n.disconnect(fd)
		return unix.ETIMEDOUT, nil
	}
	return errno, nil
}

// arrival accepts what the program's socket has been connected to.
func (x *connection) arrival(at netip.AddrPort) (fd int, errno syscall.Errno, report error) {
	n := x.network
	local, err := socket.Local(x.socket)
	if err != nil {
		return -1, unix.EIO, fmt.Errorf("ask for a socket's address: %w", err)
	}
	listener, err := n.captureFD()
	if err != nil {
		return -1, unix.EIO, err
	}
	want := pair{at: at, from: unmapped(local)}
	for end := time.Now().Add(n.patience); ; {
		fd, err := n.arrivals.take(listener, want, n.patience)
		switch {
		case err != nil:
			return -1, unix.EIO, err
		case fd >= 0 && facing(x.socket, want):
			return fd, 0, nil
		case fd >= 0:
			unix.Close(fd)
			return -1, unix.ECONNABORTED, nil
		case !time.Now().Before(end), !facing(x.socket, want):
			return -1, unix.ECONNABORTED, nil
		}
		select {
		case <-x.ctx.Done():
			return -1, unix.ECONNABORTED, nil
		case <-time.After(lookFirst):
		}
	}
}

// pair is the two addresses of a connection within the sandbox, none of them IPv4-mapped: where this side is, and the program.
type pair struct{ at, from netip.AddrPort }

// facing tells whether a program's socket is the one end of a connection, and connected to the other.
func facing(fd int, p pair) bool {
	remote, err := socket.Remote(fd)
	if err != nil || unmapped(remote) != p.at {
		return false
	}
	local, err := socket.Local(fd)
	return err == nil && unmapped(local) == p.from
}

// arrivals are what the capturing listener has accepted. Each is waited for by whoever connected it, which may find that of
// another one first.
type arrivals struct {
	mu      sync.Mutex // held by nobody who waits
	fd      int        // of the listener, 0 until needed
	waiting map[pair]arrival
}

type arrival struct {
	fd   int
	when time.Time
}

// captureFD is a descriptor of the capturing listener, non-blocking, which the network closes.
func (n *network) captureFD() (int, error) {
	a := &n.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd > 0 {
		return a.fd, nil
	}
	fd, err := unix.FcntlInt(n.server.config.Capture.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return -1, fmt.Errorf("use the listener for captured connections: %w", err)
	}
	a.fd, a.waiting = fd, map[pair]arrival{}
	return fd, nil
}

// take gives the connection of a pair, in blocking mode, which is the caller's; -1 if it has not arrived. One that nobody has
// taken after a while is nobody's: its other end was changed by its program in the middle of all this.
func (a *arrivals) take(listener int, want pair, patience time.Duration) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for {
		if found, ok := a.waiting[want]; ok {
			delete(a.waiting, want)
			return found.fd, nil
		}
		fd, from, err := socket.Accept(listener)
		switch {
		case errors.Is(err, unix.EAGAIN):
			a.expire(now.Add(-2 * patience))
			return -1, nil
		case errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return -1, fmt.Errorf("accept a captured connection: %w", err)
		}
		at, err := socket.Local(fd)
		got := pair{unmapped(at), unmapped(from)}
		if old, ok := a.waiting[got]; ok {
			unix.Close(old.fd)
		}
		if a.waiting[got] = (arrival{fd, now}); err != nil {
			delete(a.waiting, got)
			unix.Close(fd)
		}
	}
}

// expire drops what arrived before a time. a.mu is held.
func (a *arrivals) expire(before time.Time) {
	for p, old := range a.waiting {
		if old.when.Before(before) {
			delete(a.waiting, p)
			unix.Close(old.fd)
		}
	}
}

// close gives all back. Nobody uses it any more.
func (a *arrivals) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.expire(time.Now().Add(time.Hour))
	if a.fd > 0 {
		unix.Close(a.fd)
	}
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// meet has a spare socket connect to the program's in the waiting room.
func (x *connection) meet() (conn *net.TCPConn, errno syscall.Errno, report error) {
	local, err := socket.Local(x.socket)
	if err != nil {
		return nil, unix.EIO, fmt.Errorf("ask for a socket's address: %w", err)
	}
	if info, err := unix.GetsockoptTCPInfo(x.socket, unix.IPPROTO_TCP, unix.TCP_INFO); err != nil || info.State != unix.BPF_TCP_SYN_SENT {
		return nil, unix.ECONNABORTED, nil // it waits no longer, and somebody else may have its address
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
	at := netip.AddrPortFrom(x.room, ns.WaitingPort)
	if errno := socket.Bind(fd, socket.Address(family, at)); errno != 0 {
		return unix.EIO, fmt.Errorf("bind to an address of the waiting room: %w", errno)
	}
	address := socket.Address(family, local)
	errno = socket.Connect(fd, address)
	if errno == unix.EINPROGRESS {
		errno = socket.Connect(fd, address) // most have met before the first call was over
	}
	if errno == unix.EALREADY {
		if err := x.network.awaitSocket(x.ctx, fd, x.network.patience); err != nil {
			return unix.EIO, err
		}
		errno = socket.Connect(fd, address)
	}
	switch {
	case errno == unix.EALREADY:
		return unix.ETIMEDOUT, nil
	case errno != 0, !facing(x.socket, pair{at: at, from: local}):
		return unix.ECONNABORTED, nil // the program's socket waits no longer, or is not what has been met
	}
	return 0, nil
}

// deserted tells whether the program closed its socket while it was dialled for, after which the copy here was the last: then
// nothing is to be relayed. fd is the other end.
func (x *connection) deserted(fd int) bool {
	x.network.close(x.socket)
	x.mu.Lock()
	x.socket = -1
	x.mu.Unlock()
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.State == unix.BPF_TCP_ESTABLISHED {
		return err != nil
	}
	sent, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	return err != nil || sent == 0 // else it has sent something already, and then closed it
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
