package ns

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFamily are the errors of a kernel that has no routes of a family: it was built or booted without it.
var noFamily = [...]syscall.Errno{unix.EAFNOSUPPORT, unix.EOPNOTSUPP, unix.ENODEV}

// ProhibitRoutes appends a default route of IPv4 and one of IPv6 that prohibit (rtnetlink(7), RTN_PROHIBIT): what is sent
// to anything but the addresses of lo, by whatever kind of socket, fails at once with EACCES, by the kernel itself. Without
// it the error is ENETUNREACH, which programs take for a network that is down for a moment. It comes after LoopbackUp. A
// kernel without IPv6 is tolerated; any other refusal ends the start.
//
// It also gives lo the addresses of OwnAddresses: a lookup that is restricted to the families of the addresses that the system has
// (AI_ADDRCONFIG, getaddrinfo(3)) does not count loopback's own, and asks for nothing where there are no others. If they cannot be had,
// such lookups fail.
func (p *Program) ProhibitRoutes() { p.prohibitRoutes(unix.AF_INET, unix.AF_INET6) }

// Offsets in struct nlmsghdr and, behind it, struct nlmsgerr (netlink(7)).
const (
	nlOffType  = 4
	nlOffSeq   = 8
	nlOffError = unix.SizeofNlMsghdr
	nlErrSize  = unix.SizeofNlMsghdr + unix.SizeofNlMsgerr
)

// prohibitRoutes appends the routes of two families, of which the kernel may lack the second.
//
// Both go in one message, which the kernel has carried out when sendto returns. It acknowledges what fails, and the last
// one always: so the first acknowledgement is that of the last route exactly if all before it succeeded.
func (p *Program) prohibitRoutes(families ...byte) {
	const op, subject = "prohibit", "the default routes"
	var request []byte
	for i, family := range families {
		flags := uint16(unix.NLM_F_REQUEST | unix.NLM_F_CREATE | unix.NLM_F_EXCL)
		if i == len(families)-1 {
			flags |= unix.NLM_F_ACK
		}
		request = append(request, newRoute(family, flags, uint32(i+1))...)
	}
	for i, addr := range OwnAddresses() { // behind what is acknowledged
		request = append(request, newAddress(addr, uint32(len(families)+i+1))...)
	}
	s := p.Call("make a netlink socket for", subject, syscall.SYS_SOCKET, Int(unix.AF_NETLINK), Int(unix.SOCK_RAW|unix.SOCK_CLOEXEC), Int(unix.NETLINK_ROUTE))
	// A socket that is not connected sends to the kernel.
	p.Call("ask to "+op, subject, syscall.SYS_SENDTO, s.Arg(), p.Bytes(request), Int(len(request)), Int(0), Int(0), Int(0))
	answer, _ := p.Buffer(nlErrSize)
	p.Call("hear whether the kernel does "+op, subject, syscall.SYS_RECVFROM, s.Arg(), answer, Int(nlErrSize), Int(unix.MSG_DONTWAIT), Int(0), Int(0))
	p.Close(s)

	last := uint64(unix.NLMSG_ERROR) | uint64(len(families))<<(8*(nlOffSeq-nlOffType))
	const typeAndSeq = 0xffffffff_0000ffff // without the flags
	p.Expect(op, subject+" of IPv4", answer, nlOffType, typeAndSeq, last, unix.EPROTO)
	for _, errno := range noFamily {
		p.SkipUnless(answer, nlOffError, 1<<32-1, uint64(uint32(-int32(errno))), 1)
		p.Store(answer, nlOffError, 0) // as if it were none
	}
	p.Expect(op, subject+" of IPv6", answer, nlOffError, 1<<32-1, 0, unix.EPROTO)
}

// newRoute is a request for a default route that prohibits, without attributes: the kernel gives a route that leads nowhere
// to lo, and adds the default metric.
func newRoute(family byte, flags uint16, seq uint32) []byte {
	b := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+unix.SizeofRtMsg)
	binary.NativeEndian.PutUint16(b[nlOffType:], unix.RTM_NEWROUTE)
	binary.NativeEndian.PutUint16(b[6:], flags)
	binary.NativeEndian.PutUint32(b[nlOffSeq:], seq)
	// struct rtmsg: rtm_family, _dst_len, _src_len, _tos, _table, _protocol, _scope, _type, _flags.
	b = append(b, family, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_BOOT, unix.RT_SCOPE_UNIVERSE, unix.RTN_PROHIBIT, 0, 0, 0, 0)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

// ownAddress4 and ownAddress6 are of ranges that no host has: the one for benchmarks (RFC 2544) and unique local addresses
// (RFC 4193).
var (
	ownAddress4 = netip.AddrFrom4([4]byte{198, 19, 255, 255})
	ownAddress6 = netip.AddrFrom16([16]byte{0: 0xfd, 15: 1})
)

// OwnAddresses are the addresses of lo after ProhibitRoutes, beside loopback's: 198.19.255.255 and fd00::1. Nothing but the
// sandbox itself is behind them.
func OwnAddresses() []netip.Addr { return []netip.Addr{ownAddress4, ownAddress6} }

// IsOwnAddress tells whether addr is one of them, whose IPv4 one may also be written as IPv6.
func IsOwnAddress(addr netip.Addr) bool {
	return slices.Contains(OwnAddresses(), addr.Unmap().WithZone(""))
}

// newAddress is a request to give lo an address. lo is always the first interface of a network namespace.
func newAddress(addr netip.Addr, seq uint32) []byte {
	const loopback = 1
	family, bits := byte(unix.AF_INET), byte(addr.BitLen())
	if addr.Is6() {
		family = unix.AF_INET6
	}
	b := make([]byte, unix.SizeofNlMsghdr, 64)
	binary.NativeEndian.PutUint16(b[nlOffType:], unix.RTM_NEWADDR)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	binary.NativeEndian.PutUint32(b[nlOffSeq:], seq)
	// struct ifaddrmsg: ifa_family, _prefixlen, _flags, _scope, _index.
	b = append(b, family, bits, unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE)
	b = binary.NativeEndian.AppendUint32(b, loopback)
	raw := addr.AsSlice()
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(raw)))
	b = binary.NativeEndian.AppendUint16(b, unix.IFA_LOCAL)
	b = append(b, raw...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}
