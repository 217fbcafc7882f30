package ns

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ports, on every address of the sandbox, of the two listeners of ListenCapture that captured connections end at.
const (
	// CapturePort is where a connection whose upstream is there already is accepted.
	CapturePort = 1081
	// WaitingPort is where a connection waits for its upstream. Nothing is ever accepted there.
	WaitingPort = 1082
)

const (
	// dnsPort is the port of name servers (RFC 1035 section 4.2).
	dnsPort = 53
	// dnsBacklog is that of the TCP listener, which programs ask only after an answer too long for UDP.
	dnsBacklog = 64
	// waitingBacklog counts connections that are complete, of which the waiting room has none.
	waitingBacklog = 1
)

// ListenCapture appends the sockets by which the host side serves programs that know no proxy, and has the host side
// receive them as Process.Files[first] to [first+3], in this order, which the caller then owns:
//
//   - a TCP listener on CapturePort of every address, of both families;
//   - a TCP listener on WaitingPort of every address, of both families, with SO_REUSEPORT and a socket filter that drops
//     every packet to it (socket(7)): who connects to it stays in SYN_SENT, until another socket with SO_REUSEPORT, made
//     by the same user and bound to the address connected to, connects back (simultaneous open, RFC 9293 section 3.5), or
//     somebody shuts the connecting socket down;
//   - a UDP socket on 127.0.0.1:53;
//   - a TCP listener on 127.0.0.1:53.
//
// Where the kernel has no IPv6 the first two are of IPv4 alone. It comes after LoopbackUp, and before the right to bind
// port 53 is given up (CAP_NET_BIND_SERVICE). The program's own copies stay open until pid 1 closes all that the program
// opened, before the command exists: closing each would only be more calls.
func (p *Program) ListenCapture(first int) {
	const subject = "the sockets for captured connections"
	dns := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsPort)
	udp := p.socket(dns, unix.SOCK_DGRAM)
	p.bind(udp, dns)
	tcp := p.socket(dns, unix.SOCK_STREAM)
	p.listen(p.bind(tcp, dns), tcp, dns, dnsBacklog)

	any4, any6 := netip.IPv4Unspecified(), netip.IPv6Unspecified()
	six := p.socket(netip.AddrPortFrom(any6, CapturePort), unix.SOCK_STREAM)
	p.Tolerate(unix.EAFNOSUPPORT)
	sixWaiting := p.captureOn(any6, six)
	four := p.socket(netip.AddrPortFrom(any4, CapturePort), unix.SOCK_STREAM)
	p.Unless(six)
	fourWaiting := p.captureOn(any4, four)

	p.SendFiles(first, subject, six, sixWaiting, udp, tcp)
	p.OnlyIf(six)
	p.SendFiles(first, subject, four, fourWaiting, udp, tcp)
	p.OnlyIf(four)
}

// captureOn appends that capture listens on all addresses of the family of ip, and the waiting room, if capture holds a
// socket. IPV6_V6ONLY is 0 in every new network namespace, whatever net.ipv6.bindv6only says outside (inet6_net_init in
// net/ipv6/af_inet6.c), so that a socket of IPv6 takes IPv4 as well.
func (p *Program) captureOn(ip netip.Addr, capture Slot) (waiting Slot) {
	at := netip.AddrPortFrom(ip, CapturePort)
	p.listen(p.bind(capture, at), capture, at, backlog)

	at = netip.AddrPortFrom(ip, WaitingPort)
	waiting = p.socket(at, unix.SOCK_STREAM)
	p.OnlyIf(capture)
	p.setsockopt(waiting, at, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	p.dropAll(waiting, at) // before it listens, so that no packet is taken
	p.listen(p.bind(waiting, at), waiting, at, waitingBacklog)
	return waiting
}

// dropAll appends a socket filter that drops every packet, if s holds a socket (SO_ATTACH_FILTER, socket(7)).
func (p *Program) dropAll(s Slot, addr netip.AddrPort) {
	code, insn := p.Buffer(8)
	binary.NativeEndian.PutUint16(insn, unix.BPF_RET|unix.BPF_K) // 0 bytes of the packet pass
	prog, b := p.Buffer(unix.SizeofSockFprog)
	binary.NativeEndian.PutUint16(b, 1)
	binary.NativeEndian.PutUint64(b[8:], uint64(code.value))
	p.Call("have packets dropped that come to", addr.String(), syscall.SYS_SETSOCKOPT, s.Arg(), Int(unix.SOL_SOCKET), Int(unix.SO_ATTACH_FILTER), prog, Int(unix.SizeofSockFprog))
	p.OnlyIf(s)
}
