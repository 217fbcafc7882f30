package broker

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// sixMin is the least length of an IPv6 address that the kernel takes (SIN6_LEN_RFC2133), sixScope where its scope begins.
const (
	sixMin   = 24
	sixScope = 24
)

// familyOf is the family that an address says it is of.
func familyOf(address []byte) (family uint16, ok bool) {
	if len(address) < 2 {
		return 0, false
	}
	return binary.NativeEndian.Uint16(address), true
}

// inetAddress reads an address as the kernel does for a socket of a domain. An IPv4-mapped address is given as it is, and
// the scope of a link-local one as its zone. ok is false for what the kernel refuses whatever it means: it is the kernel's
// to say how.
func inetAddress(domain int, datagram bool, address []byte) (a netip.AddrPort, ok bool) {
	family, ok := familyOf(address)
	switch {
	case !ok:
		return a, false
	case int(family) == unix.AF_INET && (domain == unix.AF_INET || datagram): // ip6_datagram_connect of net/ipv6/datagram.c
		if len(address) < unix.SizeofSockaddrInet4 {
			return a, false
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(address[4:8])), binary.BigEndian.Uint16(address[2:])), true
	case int(family) != unix.AF_INET6 || domain != unix.AF_INET6 || len(address) < sixMin:
		return a, false
	}
	ip := netip.AddrFrom16([16]byte(address[8:24]))
	if ip.IsLinkLocalUnicast() && len(address) >= unix.SizeofSockaddrInet6 {
		if scope := binary.NativeEndian.Uint32(address[sixScope:]); scope != 0 {
			ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(address[2:])), true
}

// reach is where an address leads from within a sandbox.
type reach uint8

const (
	beyond  reach = iota // out of the sandbox, if anywhere
	inside               // to an address of lo: an unspecified one means loopback (ip(7), ipv6(7))
	nowhere              // no TCP connection can be made to it: the kernel says why
)

// reachOf tells where an address leads, and gives it as a policy names it: an IPv4-mapped one as IPv4, loopback for an
// unspecified one.
func reachOf(a netip.AddrPort) (netip.AddrPort, reach) {
	ip := a.Addr().Unmap()
	switch {
	case ip.IsUnspecified() && ip.Is4():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case ip.IsUnspecified():
		ip = netip.IPv6Loopback()
	}
	a = netip.AddrPortFrom(ip, a.Port())
	switch {
	case ip.IsLoopback(), ns.IsOwnAddress(ip):
		return a, inside
	case ip.IsMulticast(), ip.Is6() && ip.IsLinkLocalUnicast() && ip.Zone() == "", ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return a, nowhere
	}
	return a, beyond
}

// waitingAddress is the n-th of the addresses at which connections to IPv4 go on within the sandbox: 127.1.0.0 to
// 127.254.255.255. Each is used again only after 16 million others, so that local ports never run out.
func waitingAddress(n uint32) netip.Addr {
	const first, count = 1 << 16, 254 << 16
	n = first + n%count
	return netip.AddrFrom4([4]byte{127, byte(n >> 16), byte(n >> 8), byte(n)})
}
