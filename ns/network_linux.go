package ns

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// backlog of a listener (NET-4): connections made before the host side accepts wait in the kernel.
const backlog = 4096

// LoopbackUp appends what brings up lo, the only interface of a new network namespace (netdevice(7)). The kernel gives
// it 127.0.0.1 and ::1 by itself.
func (p *Program) LoopbackUp() {
	s := p.Call("make a socket for", "lo", syscall.SYS_SOCKET, Int(unix.AF_INET), Int(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), Int(0))
	ifreq, b := p.Buffer(40)
	copy(b, "lo")
	binary.NativeEndian.PutUint16(b[unix.IFNAMSIZ:], unix.IFF_UP|unix.IFF_RUNNING)
	p.Call("bring up", "lo", syscall.SYS_IOCTL, s.Arg(), Int(unix.SIOCSIFFLAGS), ifreq)
	p.Close(s)
}

// UnpacedTCP appends the choice of Reno as the congestion control of the new network namespace (tcp(7)). It holds
// nothing but loopback, where nothing can be congested; a system whose default is BBR gives every segment a timer, which
// costs a third of the throughput there. Where the setting cannot be made, connections are only slower.
func (p *Program) UnpacedTCP() {
	const path = "/proc/sys/net/ipv4/tcp_congestion_control"
	fd := p.Call("open", path, syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str(path), Int(unix.O_WRONLY|unix.O_CLOEXEC), Int(0))
	p.Tolerate(unix.ENOENT, unix.EACCES, unix.EROFS)
	const algorithm = "reno"
	p.Call("write", path, syscall.SYS_WRITE, fd.Arg(), p.Str(algorithm), Int(len(algorithm)))
	p.Tolerate(unix.ENOENT, unix.EPERM, unix.EINVAL)
	p.OnlyIf(fd)
	p.Close(fd)
}

// Listen appends TCP listeners on ports of both loopback addresses of the new network namespace. The host side receives
// those of 127.0.0.1 as the first Process.Files from index first on, then those of ::1: a socket stays in the namespace
// it was made in, whoever holds it. Where the kernel has no IPv6 the second half is left out.
func (p *Program) Listen(first int, ports ...uint16) {
	const subject = "the proxy listeners"
	var v4, v6 []Slot
	var last Slot
	for _, port := range ports {
		s, _ := p.listener(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
		v4 = append(v4, s)
	}
	for _, port := range ports {
		var s Slot
		s, last = p.listener(netip.AddrPortFrom(netip.IPv6Loopback(), port))
		v6 = append(v6, s)
	}
	p.SendFiles(first, subject, append(v4, v6...)...)
	p.OnlyIf(last)
	p.SendFiles(first, subject, v4...)
	p.Unless(last)
	for _, s := range append(v4, v6...) {
		p.Close(s)
	}
}

// listener appends one listener. bound holds a result if there is one at the end.
func (p *Program) listener(addr netip.AddrPort) (s, bound Slot) {
	s = p.socket(addr, unix.SOCK_STREAM)
	if addr.Addr().Is6() {
		p.Tolerate(unix.EAFNOSUPPORT)
		p.setsockopt(s, addr, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	bound = p.bind(s, addr)
	if addr.Addr().Is6() {
		p.Tolerate(unix.EADDRNOTAVAIL)
	}
	p.listen(bound, s, addr, backlog)
	return s, bound
}

// socket appends a socket of the family of addr, close-on-exec. Only the type of kind counts.
func (p *Program) socket(addr netip.AddrPort, kind int) Slot {
	family := unix.AF_INET
	if addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	return p.Call("make a socket for", addr.String(), syscall.SYS_SOCKET, Int(family), Int(kind|unix.SOCK_CLOEXEC), Int(0))
}

// setsockopt appends an option that is an int, if s holds a socket.
func (p *Program) setsockopt(s Slot, addr netip.AddrPort, level, name, value int) {
	ptr, b := p.Buffer(4)
	binary.NativeEndian.PutUint32(b, uint32(value))
	p.Call("set an option of the socket for", addr.String(), syscall.SYS_SETSOCKOPT, s.Arg(), Int(level), Int(name), ptr, Int(4))
	p.OnlyIf(s)
}

// bind appends the binding of s, if it holds a socket.
func (p *Program) bind(s Slot, addr netip.AddrPort) Slot {
	size, family, at := unix.SizeofSockaddrInet4, unix.AF_INET, 4
	if addr.Addr().Is6() {
		size, family, at = unix.SizeofSockaddrInet6, unix.AF_INET6, 8
	}
	sa, b := p.Buffer(size)
	binary.NativeEndian.PutUint16(b, uint16(family))
	binary.BigEndian.PutUint16(b[2:], addr.Port())
	copy(b[at:], addr.Addr().AsSlice())
	bound := p.Call("bind a socket to", addr.String(), syscall.SYS_BIND, s.Arg(), sa, Int(size))
	p.OnlyIf(s)
	return bound
}

// listen appends the beginning of listening on s, if bound holds a result.
func (p *Program) listen(bound, s Slot, addr netip.AddrPort, backlog int) {
	p.Call("listen on", addr.String(), syscall.SYS_LISTEN, s.Arg(), Int(backlog))
	p.OnlyIf(bound)
}
