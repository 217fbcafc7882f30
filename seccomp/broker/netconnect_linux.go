package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// connect performs connect(2): on a copy of the caller's very socket, with the address that was read once. It is never let
// go on, since another thread can change both the address and what the descriptor stands for.
func (c *call) connect(fd int32, at uint64, size int32) outcome {
	copied, errno := c.duplicate(fd)
	if errno != 0 {
		return failed(errno)
	}
	domain, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if errors.Is(err, unix.EBADF) {
		return failed(unix.EBADF) // it is of O_PATH (open(2))
	}
	if errno := checkSockaddrSize(size); errno != 0 {
		return failed(errno)
	}
	address, errno := c.bytesAt(at, int(size))
	switch {
	case errno != 0:
		return failed(errno)
	case err != nil:
		return failed(unix.ENOTSOCK)
	}
	if !c.waits() {
		return failed(unix.EINTR) // both may be another process's
	}
	switch domain {
	case unix.AF_UNIX:
		if errno := c.readRoot(); errno != 0 {
			return failed(errno)
		}
		return c.connectUnix(copied, address)
	case unix.AF_INET, unix.AF_INET6:
		if c.s.config.Confined != nil {
			return c.connectConfined(copied, domain, address)
		}
		return c.connectInet(copied, domain, address)
	}
	if c.s.config.Confined != nil && domain != unix.AF_NETLINK {
		return failed(unix.EACCES) // handed in by somebody outside: no namespace says where it leads
	}
	return c.connectOther(copied, address)
}

// connectOther connects a socket of a family that leads nowhere (netlink(7)), with the caller's own rights.
func (c *call) connectOther(copied int, address []byte) outcome {
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	p.Call("connect", "a socket", unix.SYS_CONNECT, p.hand.PassFD(copied).Arg(), p.Bytes(address), ns.Int(len(address)))
	r, errno := p.doWatched()
	if errno != 0 {
		return failed(errno)
	}
	return failed(r.Errno)
}

// connectInet connects a socket of the Internet families.
func (c *call) connectInet(copied, domain int, address []byte) outcome {
	gate := c.s.config.Gate
	if gate == nil {
		return failed(c.broken(errors.New("no policy for connections was given")))
	}
	kind, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask for a socket's type: %w", err)))
	}
	protocol, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask for a socket's protocol: %w", err)))
	}
	at, err := c.s.network.homeOf(copied)
	if err != nil {
		return failed(c.broken(err))
	}
	t := &target{c: c, socket: copied, domain: domain, address: address}
	if family, ok := familyOf(address); ok && family == unix.AF_UNSPEC {
		return t.dissolve()
	}
	stream := kind == unix.SOCK_STREAM && protocol == unix.IPPROTO_TCP
	switch at {
	case ofHost:
		return c.refuse(unix.EACCES, "", whyForeign)
	case nested:
		return t.alone(stream)
	}
	asked, ok := inetAddress(domain, !stream, address)
	if !ok {
		return t.alone(stream) // which fails
	}
	t.asked = asked
	to, where := reachOf(asked)
	t.to = to
	switch {
	case stream:
		return t.stream(where)
	case where == inside:
		return failed(socket.Connect(copied, address)) // it waits for nothing
	}
	gate.Datagram(c.tid, to)
	return failed(unix.EACCES)
}

// whyForeign says why a socket is not connected at all.
const whyForeign = "the socket is of another network than the sandbox's"

// alone lets the kernel connect a socket, as the network namespace of that has it.
func (t *target) alone(stream bool) outcome {
	if stream {
		return t.native()
	}
	return failed(socket.Connect(t.socket, t.address)) // it waits for nothing
}

// target is what a socket is to be connected to.
type target struct {
	c       *call
	socket  int // a copy of the caller's
	domain  int
	address []byte
	asked   netip.AddrPort
	to      netip.AddrPort // as the policy names it
}

// dissolve performs connect(AF_UNSPEC).
func (t *target) dissolve() outcome {
	x, err := t.c.s.network.find(t.socket)
	if err != nil {
		return failed(t.c.broken(err))
	}
	if x != nil && !x.loosen() && !x.giveUp() {
		return t.c.apartFrom(func(*call) outcome {
			<-x.done
			x.giveUp()
			return failed(socket.Connect(t.socket, t.address))
		})
	}
	return failed(socket.Connect(t.socket, t.address))
}

// stream connects a TCP socket.
func (t *target) stream(where reach) outcome {
	n := &t.c.s.network
	if where == inside && (t.to.Port() == ns.CapturePort || t.to.Port() == ns.WaitingPort) {
		return failed(unix.ECONNREFUSED) // they are srt's own
	}
	x, err := n.find(t.socket)
	if err != nil {
		return failed(t.c.broken(err))
	}
	if x != nil {
		if out, ok := t.again(x); ok {
			return out
		}
	}
	if where == nowhere || where == inside && !t.ofHost() {
		return t.native()
	}
	info, err := unix.GetsockoptTCPInfo(t.socket, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return failed(t.c.broken(fmt.Errorf("ask for the state of a connection: %w", err)))
	}
	if info.State != unix.BPF_TCP_CLOSE || t.unreachable() {
		return t.native()
	}
	return t.outward()
}

// ofHost tells whether a loopback destination is to be the host's: the policy allows that, and nothing in the sandbox
// listens where that would come first.
func (t *target) ofHost() bool {
	if ns.IsOwnAddress(t.to.Addr()) {
		return false
	}
	unless := t.c.s.config.Gate.Loopback(t.to)
	return len(unless) > 0 && !slices.ContainsFunc(unless, t.c.listens)
}

// unreachable tells whether the kernel says that a socket cannot reach IPv4 (IPV6_V6ONLY, ipv6(7)).
func (t *target) unreachable() bool {
	if !t.asked.Addr().Is4In6() {
		return false
	}
	only, err := unix.GetsockoptInt(t.socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
	return err != nil || only != 0
}

// native lets the kernel connect the socket, within the sandbox. It does not leave: the sandbox has no other interface
// than lo, and no route.
func (t *target) native() outcome {
	n := &t.c.s.network
	errno := n.connect(t.socket, t.address)
	if errno != unix.EINPROGRESS && errno != unix.EALREADY {
		return failed(errno)
	}
	blocking, trouble := t.blocking()
	switch {
	case trouble != 0:
		return failed(trouble)
	case !blocking:
		return failed(errno)
	}
	if errno == unix.EINPROGRESS {
		if now := n.connect(t.socket, t.address); now != unix.EALREADY {
			return failed(now) // on loopback the other end has answered
		}
	}
	return t.c.apartFrom(func(c *call) outcome { return failed(t.waitKernel(c, errno)) })
}

// blocking tells whether the socket is in blocking mode.
func (t *target) blocking() (bool, syscall.Errno) {
	flags, err := unix.FcntlInt(uintptr(t.socket), unix.F_GETFL, 0)
	if err != nil {
		return false, t.c.broken(fmt.Errorf("ask for a socket's flags: %w", err))
	}
	return flags&unix.O_NONBLOCK == 0, 0
}

// outward has the connection judged, and made.
func (t *target) outward() outcome {
	c, n := t.c, &t.c.s.network
	way, err := c.s.config.Gate.Judge(c.tid, t.to)
	if err != nil {
		return failed(refusalErrno(err))
	}
	if t.to.Port() == 0 {
		return failed(unix.ECONNREFUSED) // nobody listens there
	}
	blocking, errno := t.blocking()
	if errno != 0 {
		return failed(errno)
	}
	// The option would put off the connecting to the first write (tcp(7)). Where it cannot be set it is not in force.
	_ = unix.SetsockoptInt(t.socket, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 0)
	x, err := n.newConnection(c, t.socket, t.domain, t.asked, t.to)
	if err != nil {
		return failed(c.broken(err))
	}
	x.waiters = 1
	if errno := n.add(x); errno != 0 {
		x.cancel()
		c.s.closeCopy(x.socket)
		return failed(errno)
	}
	if !blocking {
		if errno := x.enter(); errno != 0 {
			n.withdraw(x, errno)
			return failed(errno)
		}
		go x.run(way)
		return failed(unix.EINPROGRESS)
	}
	x.first = c.waitApart(t, x)
	go x.run(way)
	return outcome{sent: true}
}

// refusalErrno is what a program sees of a refusal.
func refusalErrno(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok && errno > 0 && errno < maxErrno {
		return errno
	}
	return unix.EACCES
}
