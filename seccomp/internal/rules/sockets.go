package rules

// Values of socket(2)'s arguments, by the names of the kernel's headers; the same on both architectures.
const (
	afUnix    = 1
	afInet    = 2
	afInet6   = 10
	afNetlink = 16
	afPacket  = 17
	afVsock   = 40

	sockTypeMask = 0xf // as in net/socket.c, the flags above are SOCK_CLOEXEC and SOCK_NONBLOCK
	sockStream   = 1
	sockDgram    = 2
	sockRaw      = 3
	sockPacket   = 10

	protoAny    = 0 // the one that belongs to the type
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58

	netlinkRoute    = 0
	netlinkSockDiag = 4
	netlinkUevent   = 15
)

// socketsMade says which sockets may be made: those that the routes of the network namespace hold, whose destinations the
// broker judges or the kernel refuses, and that a program has a use for. It answers as a kernel does that lacks the rest,
// so that programs fall back at once: a Go listener to TCP from MPTCP, for one.
var socketsMade = []Judged{
	{NumberedCall{"socket", 41, 198}, &socketDomains},
	{NumberedCall{"socketpair", 53, 199}, &pairDomains},
}

const otherFamilies = "other families load kernel modules on request, and several know no network namespace"

var socketDomains = Choice{
	Index: 0, Mask: low32, Name: "domain",
	Cases: []Case{
		{Value: afUnix, Name: "AF_UNIX"}, // the business of the unix filters, which can be left off
		{Value: afInet, Name: "AF_INET", Next: &inetTypes},
		{Value: afInet6, Name: "AF_INET6", Next: &inet6Types},
		{Value: afNetlink, Name: "AF_NETLINK", Next: &netlinkProtocols},
		{Value: afPacket, Name: "AF_PACKET", Errno: EPERM, Why: "writes and reads whole frames; as without CAP_NET_RAW"},
		{Value: afVsock, Name: "AF_VSOCK"}, // likewise
	},
	Otherwise: EAFNOSUPPORT, Why: otherFamilies,
}

// pairDomains leaves out the families whose pairs the kernel refuses only when it has made two sockets.
var pairDomains = Choice{
	Index: 0, Mask: low32, Name: "domain",
	Cases:     []Case{{Value: afUnix, Name: "AF_UNIX"}},
	Otherwise: EAFNOSUPPORT, Why: otherFamilies,
}

const (
	rawWhy        = "makes packets of any kind; as without CAP_NET_RAW"
	packetWhy     = "an old spelling of AF_PACKET"
	otherTypes    = "other types load kernel modules on request (SCTP, DCCP), and nothing judges where they lead"
	otherProtocol = "SCTP, MPTCP, DCCP, UDP-Lite, L2TP and the like load kernel modules, and nothing judges where they lead"
)

var (
	inetTypes = Choice{
		Index: 1, Mask: sockTypeMask, Name: "type",
		Cases: []Case{
			{Value: sockStream, Name: "SOCK_STREAM", Next: &streamProtocols},
			{Value: sockDgram, Name: "SOCK_DGRAM", Next: &inetDgramProtocols},
			{Value: sockRaw, Name: "SOCK_RAW", Errno: EPERM, Why: rawWhy},
			{Value: sockPacket, Name: "SOCK_PACKET", Errno: EPERM, Why: packetWhy},
		},
		Otherwise: EPROTONOSUPPORT, Why: otherTypes,
	}
	inet6Types = Choice{
		Index: 1, Mask: sockTypeMask, Name: "type",
		Cases: []Case{
			{Value: sockStream, Name: "SOCK_STREAM", Next: &streamProtocols},
			{Value: sockDgram, Name: "SOCK_DGRAM", Next: &inet6DgramProtocols},
			{Value: sockRaw, Name: "SOCK_RAW", Errno: EPERM, Why: rawWhy},
		},
		Otherwise: EPROTONOSUPPORT, Why: otherTypes,
	}
	streamProtocols = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases:     []Case{{Value: protoAny, Name: "0"}, {Value: protoTCP, Name: "IPPROTO_TCP"}},
		Otherwise: EPROTONOSUPPORT, Why: otherProtocol,
	}
	// ICMP by datagrams is ping without privileges, which the kernel grants or not (icmp(7), ping_group_range).
	inetDgramProtocols = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases: []Case{{Value: protoAny, Name: "0"}, {Value: protoICMP, Name: "IPPROTO_ICMP"},
			{Value: protoUDP, Name: "IPPROTO_UDP"}},
		Otherwise: EPROTONOSUPPORT, Why: otherProtocol,
	}
	inet6DgramProtocols = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases: []Case{{Value: protoAny, Name: "0"}, {Value: protoUDP, Name: "IPPROTO_UDP"},
			{Value: protoICMPv6, Name: "IPPROTO_ICMPV6"}},
		Otherwise: EPROTONOSUPPORT, Why: otherProtocol,
	}
	netlinkProtocols = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases: []Case{{Value: netlinkRoute, Name: "NETLINK_ROUTE"}, {Value: netlinkSockDiag, Name: "NETLINK_SOCK_DIAG"},
			{Value: netlinkUevent, Name: "NETLINK_KOBJECT_UEVENT"}},
		Otherwise: EPROTONOSUPPORT,
		Why:       "firewalls, IPsec, audit, generic netlink and the like: large kernel surface, and no use without capabilities",
	}
)
