package broker

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// ConfinedNet says what the network of a sandbox without a network namespace is (mode confined): the command is in the host's,
// and all that it reaches there is what a connect, bind or listen that comes here is let to. It goes with the filters
// seccomp.ConfinedSockets and seccomp.ConfinedNetwork, in the place of a [Gate]. The zero value lets a command reach nothing.
//
// Datagrams cannot be sent at all: the filters refuse the sockets for it. Names of AF_UNIX without a file are refused unless
// UnixRules.All, since they are the host's.
type ConfinedNet struct {
	// Proxies are the listeners of this command's proxies, on loopback: what it may connect to. An IPv4-mapped IPv6 address
	// counts as IPv4.
	Proxies []netip.AddrPort
	// LocalBinding says that the command may have listeners on loopback, and connect to its own (network.allowLocalBinding).
	// What it binds to the unspecified address is bound to loopback.
	LocalBinding bool
	// Made says that the sockets of the command are made here (seccomp.MadeSockets), for want of pidfd_getfd(2).
	Made bool
	// Refused is told of each TCP destination beyond loopback that was refused, by whichever goroutine answers, before the
	// caller has its answer. An IPv4-mapped address comes as IPv4. pid is the calling thread's. It may be nil.
	Refused func(pid int, process string, dst netip.AddrPort)
}

// Why calls of a confined command are refused.
const (
	whyNoBinding = "network.allowLocalBinding is off, and without a network namespace a listener is one of the host's"
	whyBeyond    = "without a network namespace a command may listen on loopback alone"
	whyDatagram  = "without a network namespace nothing could hold what a datagram socket sends"
	whyAbstract  = "without a network namespace a name of AF_UNIX that is no file is the host's (network.allowAllUnixSockets)"
)

// connectConfined connects a socket of the Internet families: to a proxy of this command's, or to a listener of its own. The
// kernel is given an address that is made from what was judged, and none of the caller's bytes.
func (c *call) connectConfined(copied, domain int, address []byte) outcome {
	if !c.isStream(copied) {
		return c.refuse(unix.EACCES, "", whyDatagram)
	}
	if family, ok := familyOf(address); ok && family == unix.AF_UNSPEC {
		c.s.confined.mu.Lock() // a listener that is being made keeps its address
		defer c.s.confined.mu.Unlock()
		return failed(socket.Connect(copied, socket.Unspecified()))
	}
	asked, ok := inetAddress(domain, false, address)
	if !ok {
		return failed(badAddress(domain, address))
	}
	to, where := reachOf(asked)
	// The option would put off the connecting to the first write (tcp(7)). Where it cannot be set it is not in force.
	_ = unix.SetsockoptInt(copied, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 0)
	conf := c.s.config.Confined
	t := &target{c: c, socket: copied, domain: domain, asked: asked, to: to}
	switch {
	case slices.Contains(conf.Proxies, to):
		t.address = socket.Address(domain, asked)
		if t.unreachable() {
			return failed(unix.ENETUNREACH)
		}
		return t.native()
	case where == inside && to.Addr().IsLoopback():
		return t.toOwn()
	}
	if conf.Refused != nil {
		conf.Refused(c.tid, c.comm(), to)
	}
	return failed(unix.EACCES)
}

// badAddress is what the kernel says of an address that is none of the socket's family (tcp_v4_connect of net/ipv4/tcp_ipv4.c,
// tcp_v6_connect of net/ipv6/tcp_ipv6.c).
func badAddress(domain int, address []byte) syscall.Errno {
	least := unix.SizeofSockaddrInet4
	if domain == unix.AF_INET6 {
		least = sixMin
	}
	if len(address) < least {
		return unix.EINVAL
	}
	return unix.EAFNOSUPPORT
}

// isStream tells whether a socket is one of TCP.
func (c *call) isStream(copied int) bool {
	kind, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return false
	}
	protocol, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return err == nil && protocol == unix.IPPROTO_TCP
}

// How often a connect to a listener whose queue is full is tried, and how long it waits in between.
const (
	ownTries = 20
	ownPause = 5 * time.Millisecond
)

// toOwn connects a socket to a listener of the sandbox's own on loopback. What else listens there is the host's: to the command
// it is a port where nobody does. The listener must be the same before and after: a connection is not left waiting in its queue,
// since another listener could have come to its place by the time it is let in.
func (t *target) toOwn() outcome {
	s := t.c.s
	for range ownTries {
		to, errno := s.confined.owns(t)
		if errno != 0 {
			return failed(errno)
		}
		t.address = socket.Address(t.domain, to)
		errno = s.network.connect(t.socket, t.address)
		if errno != 0 && errno != unix.EINPROGRESS && errno != unix.EALREADY {
			return failed(errno)
		}
		info, err := unix.GetsockoptTCPInfo(t.socket, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return failed(t.c.broken(fmt.Errorf("ask for the state of a connection: %w", err)))
		}
		_, gone := s.confined.owns(t)
		if info.State != unix.BPF_TCP_SYN_SENT && gone == 0 {
			return t.connected(errno)
		}
		s.network.disconnect(t.socket)
		if gone != 0 {
			break
		}
		select {
		case <-s.network.ctx.Done():
			return failed(unix.EINTR)
		case <-time.After(ownPause):
		}
	}
	return failed(unix.ECONNREFUSED)
}

// connected answers a connect that has been done.
func (t *target) connected(errno syscall.Errno) outcome {
	blocking, trouble := t.blocking()
	switch {
	case trouble != 0:
		return failed(trouble)
	case errno == 0 || !blocking:
		return failed(errno)
	}
	return failed(t.c.s.network.connect(t.socket, t.address)) // it says that it is done
}

// bindConfined binds a socket whose address is no path of AF_UNIX. ok is false for what is to be bound as everywhere.
func (c *call) bindConfined(copied, domain int, address []byte) (out outcome, ok bool) {
	conf := c.s.config.Confined
	switch {
	case conf == nil:
		return out, false
	case domain == unix.AF_NETLINK:
		c.bound = true
		return out, false
	case domain == unix.AF_UNIX:
		if family, known := familyOf(address); c.s.config.Unix.All || !known || family != unix.AF_UNIX {
			return out, false
		}
		return c.refuse(unix.EACCES, abstractName(address), whyAbstract), true
	case domain != unix.AF_INET && domain != unix.AF_INET6:
		return failed(unix.EACCES), true
	}
	return c.bindLoopback(copied, domain, address), true
}

// bindLoopback binds a TCP socket.
func (c *call) bindLoopback(copied, domain int, address []byte) outcome {
	asked, ok := inetAddress(domain, false, address)
	if family, known := familyOf(address); known && family == unix.AF_UNSPEC && domain == unix.AF_INET && len(address) >= unix.SizeofSockaddrInet4 {
		asked, ok = netip.AddrPortFrom(netip.IPv4Unspecified(), binary.BigEndian.Uint16(address[2:])), true // as AF_INET (ip(7))
	}
	if !ok {
		return failed(badAddress(domain, address))
	}
	at := asked
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	switch {
	case !c.isStream(copied):
		return c.refuse(unix.EACCES, at.String(), whyDatagram)
	case !c.s.config.Confined.LocalBinding:
		return c.refuse(unix.EACCES, at.String(), whyNoBinding)
	}
	narrowed, ok := narrow(copied, asked)
	if !ok {
		return c.refuse(unix.EACCES, at.String(), whyBeyond)
	}
	c.s.confined.mu.Lock()
	defer c.s.confined.mu.Unlock()
	own := socket.Address(domain, narrowed)
	if p := narrowed.Port(); p != 0 && p < privileged {
		return c.bindAt(copied, atRoot, own, false)
	}
	errno := socket.Bind(copied, own)
	if errno == unix.EADDRINUSE && c.s.made.sweep() > 0 {
		errno = socket.Bind(copied, own) // what was in the way was a socket that the command had closed
	}
	return failed(errno)
}

// narrow gives the loopback address that stands for an address to bind to. ok is false for one beyond loopback. A socket at ::
// that takes IPv4 as well gets 127.0.0.1, which most clients try; a connect of the command's to ::1 finds it there.
func narrow(copied int, a netip.AddrPort) (_ netip.AddrPort, ok bool) {
	ip := a.Addr()
	switch {
	case ip.Is4() && ip.IsUnspecified():
		ip = loopback4
	case ip.Is4In6() && ip.Unmap().IsUnspecified():
		ip = netip.AddrFrom16(loopback4.As16())
	case ip.IsUnspecified():
		ip = netip.IPv6Loopback()
		if only, err := unix.GetsockoptInt(copied, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY); err == nil && only == 0 {
			ip = netip.AddrFrom16(loopback4.As16())
		}
	case !ip.Unmap().IsLoopback():
		return a, false
	}
	return netip.AddrPortFrom(ip, a.Port()), true
}

// loopback4 is 127.0.0.1.
var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// listen performs listen(2): on a socket of TCP at loopback, or of AF_UNIX.
func (c *call) listen(fd, backlog int32) outcome {
	conf := c.s.config.Confined
	if conf == nil {
		return failed(c.broken(errNoConfined))
	}
	copied, errno := c.socket(fd)
	if errno != 0 {
		return failed(errno)
	}
	domain, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err != nil:
		return failed(unix.ENOTSOCK)
	case !c.waits():
		return failed(unix.EINTR)
	case domain == unix.AF_UNIX:
		return c.listenUnix(copied, backlog)
	case domain != unix.AF_INET && domain != unix.AF_INET6 || !c.isStream(copied):
		return failed(unix.EOPNOTSUPP)
	case !conf.LocalBinding:
		return c.refuse(unix.EACCES, "", whyNoBinding)
	}
	return c.listenLoopback(copied, domain, int(backlog))
}

// listenLoopback makes a listener. One without an address gets one on loopback: the kernel would give it every address.
func (c *call) listenLoopback(copied, domain, backlog int) outcome {
	c.s.confined.mu.Lock()
	defer c.s.confined.mu.Unlock()
	local, err := socket.Local(copied)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask for a socket's address: %w", err)))
	}
	if local.Addr().IsUnspecified() && local.Port() == 0 {
		at, _ := narrow(copied, local)
		if errno := socket.Bind(copied, socket.Address(domain, at)); errno != 0 {
			return failed(errno)
		}
		if local, err = socket.Local(copied); err != nil {
			return failed(c.broken(fmt.Errorf("ask for a socket's address: %w", err)))
		}
	}
	if !local.Addr().Unmap().IsLoopback() {
		return c.refuse(unix.EACCES, local.String(), whyBeyond)
	}
	if !c.s.confined.listener(copied) {
		return failed(unix.ENOBUFS)
	}
	if err := unix.Listen(copied, backlog); err != nil {
		return failed(errnoIn(err))
	}
	if local, err = socket.Local(copied); err != nil || !local.Addr().Unmap().IsLoopback() {
		_ = unix.Shutdown(copied, unix.SHUT_RDWR) // it listens no more
		return c.refuse(unix.EACCES, local.String(), whyBeyond)
	}
	return outcome{}
}

// abstractName is a name of AF_UNIX without a file, as people write it (unix(7)).
func abstractName(address []byte) string {
	if len(address) <= unixPath {
		return ""
	}
	return "@" + strings.ReplaceAll(string(address[unixPath+1:]), "\x00", "@")
}
