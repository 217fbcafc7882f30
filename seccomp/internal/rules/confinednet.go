package rules

// Options of setsockopt(2), the same on both architectures (linux/in.h, linux/in6.h, asm-generic/socket.h).
const (
	solIP   = 0
	solIPv6 = 41

	soReuseport     = 15
	soBindtodevice  = 25
	soBindtoifindex = 62

	ipOptions = 4

	ipv6OldRthdr      = 5 // IPV6_2292RTHDR
	ipv6OldPktoptions = 6 // IPV6_2292PKTOPTIONS
	ipv6Rthdrdstopts  = 55
	ipv6Rthdr         = 57
)

// confinedSockets is for sandboxes without a network namespace (NET-3): no route keeps anything there, so that only such
// sockets may be made whose every way out is a connect, a bind or a listen that the broker performs. What chooses another way
// for the packets than the address says, or shares another's port, is refused as well.
func confinedSockets() Filter {
	return Filter{
		Name:   "confined-sockets",
		Judged: []Judged{{NumberedCall{"socket", 41, 198}, &confinedDomains}},
		Rules:  confinedOptions(),
	}
}

const (
	confinedDgram = "sends to any address without a connect that the broker could judge, and here is no network namespace to hold it"
	confinedDiag  = "tells of the sockets of the host, or of its devices"
)

var (
	confinedDomains = Choice{
		Index: 0, Mask: low32, Name: "domain",
		Cases: []Case{
			{Value: afUnix, Name: "AF_UNIX"}, // the business of the unix filters, which can be left off
			{Value: afInet, Name: "AF_INET", Next: &confinedInetTypes},
			{Value: afInet6, Name: "AF_INET6", Next: &confinedInet6Types},
			{Value: afNetlink, Name: "AF_NETLINK", Next: &confinedNetlink},
			{Value: afPacket, Name: "AF_PACKET", Errno: EPERM, Why: "writes and reads whole frames; as without CAP_NET_RAW"},
			{Value: afVsock, Name: "AF_VSOCK", Errno: EPERM, Why: "reaches the hypervisor; nothing here could part it"},
		},
		Otherwise: EAFNOSUPPORT, Why: otherFamilies,
	}
	confinedInetTypes = Choice{
		Index: 1, Mask: sockTypeMask, Name: "type",
		Cases: []Case{
			{Value: sockStream, Name: "SOCK_STREAM", Next: &streamProtocols},
			{Value: sockDgram, Name: "SOCK_DGRAM", Next: &confinedDgramProtocols},
			{Value: sockRaw, Name: "SOCK_RAW", Errno: EPERM, Why: rawWhy},
			{Value: sockPacket, Name: "SOCK_PACKET", Errno: EPERM, Why: packetWhy},
		},
		Otherwise: EPROTONOSUPPORT, Why: otherTypes,
	}
	confinedInet6Types = Choice{
		Index: 1, Mask: sockTypeMask, Name: "type",
		Cases: []Case{
			{Value: sockStream, Name: "SOCK_STREAM", Next: &streamProtocols},
			{Value: sockDgram, Name: "SOCK_DGRAM", Next: &confinedDgram6Protocols},
			{Value: sockRaw, Name: "SOCK_RAW", Errno: EPERM, Why: rawWhy},
		},
		Otherwise: EPROTONOSUPPORT, Why: otherTypes,
	}
	// The protocols are told apart only so that base, which refuses the others too, gives the same answers.
	confinedDgramProtocols = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases: []Case{{Value: protoAny, Name: "0", Errno: EPERM, Why: confinedDgram},
			{Value: protoICMP, Name: "IPPROTO_ICMP", Errno: EPERM, Why: confinedDgram},
			{Value: protoUDP, Name: "IPPROTO_UDP", Errno: EPERM, Why: confinedDgram}},
		Otherwise: EPROTONOSUPPORT, Why: otherProtocol,
	}
	confinedDgram6Protocols = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases: []Case{{Value: protoAny, Name: "0", Errno: EPERM, Why: confinedDgram},
			{Value: protoUDP, Name: "IPPROTO_UDP", Errno: EPERM, Why: confinedDgram},
			{Value: protoICMPv6, Name: "IPPROTO_ICMPV6", Errno: EPERM, Why: confinedDgram}},
		Otherwise: EPROTONOSUPPORT, Why: otherProtocol,
	}
	confinedNetlink = Choice{
		Index: 2, Mask: low32, Name: "protocol",
		Cases: []Case{{Value: netlinkRoute, Name: "NETLINK_ROUTE"},
			{Value: netlinkSockDiag, Name: "NETLINK_SOCK_DIAG", Errno: EPERM, Why: confinedDiag},
			{Value: netlinkUevent, Name: "NETLINK_KOBJECT_UEVENT", Errno: EPERM, Why: confinedDiag}},
		Otherwise: EPROTONOSUPPORT,
		Why:       "firewalls, IPsec, audit, generic netlink and the like: large kernel surface, and no use without capabilities",
	}
)

// confinedOptions refuses the options by which a connection to an allowed address would take another way. A source route
// (ip(7), RFC 791 section 3.1; ipv6(7)) sends the first packets to its first stop, whatever the address is.
func confinedOptions() []Rule {
	const (
		route  = "sends packets to another stop first, whatever address the broker has judged"
		device = "chooses a device, which may lead to another loopback than the host's (VRF); as without CAP_NET_RAW"
	)
	option := func(level, name uint64, text string, errno Errno, why string) Rule {
		return Rule{Call: "setsockopt", When: []Cond{{1, low32, level}, {2, low32, name}}, Text: text, Errno: errno, Why: why}
	}
	return []Rule{
		option(solIP, ipOptions, "level = IPPROTO_IP, option = IP_OPTIONS", EPERM, route),
		option(solIPv6, ipv6OldRthdr, "level = IPPROTO_IPV6, option = IPV6_2292RTHDR", EPERM, route),
		option(solIPv6, ipv6OldPktoptions, "level = IPPROTO_IPV6, option = IPV6_2292PKTOPTIONS", EPERM, route),
		option(solIPv6, ipv6Rthdrdstopts, "level = IPPROTO_IPV6, option = IPV6_RTHDRDSTOPTS", EPERM, route),
		option(solIPv6, ipv6Rthdr, "level = IPPROTO_IPV6, option = IPV6_RTHDR", EPERM, route),
		option(solSocket, soBindtodevice, "level = SOL_SOCKET, option = SO_BINDTODEVICE", EPERM, device),
		option(solSocket, soBindtoifindex, "level = SOL_SOCKET, option = SO_BINDTOIFINDEX", EPERM, device),
		option(solSocket, soReuseport, "level = SOL_SOCKET, option = SO_REUSEPORT", EOPNOTSUPP,
			"takes part of the connections to a listener of the host's, or hands it those to the sandbox's own"),
	}
}

// confinedNetwork is for the same sandboxes: the broker judges every connect, bind and listen, and performs it on the very
// socket. listen gives a socket that has no address one at which the whole network reaches it (listen(2)).
func confinedNetwork() Filter {
	return Filter{Name: "confined-network", Rules: join([]Rule{
		{Call: "connect", Notify: true, Why: "leads to a host or a socket, of which only those of this session are the command's"},
		{Call: "bind", Notify: true, Why: "gives others a way to the socket, and takes an address of the host's"},
		{Call: "listen", Notify: true, Why: "gives others a way to the socket, at every address if it has none"},
	}, withoutConnect(), ownLayers())}
}

// madeSockets goes with confinedNetwork where the kernel gives no copies of another process's descriptors (pidfd_getfd(2)):
// the broker makes each socket, and keeps a copy until the socket is connected or listens.
func madeSockets() Filter {
	return Filter{Name: "made-sockets", Rules: []Rule{
		{Call: "socket", Notify: true, Why: "the broker makes it, so that it has a copy on which to perform connect, bind and listen"},
	}}
}
