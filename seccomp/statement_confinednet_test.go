package seccomp

import (
	"slices"

	"github.com/srt-sandbox/srt/seccomp/internal/sim"
)

var (
	callSetsockopt = numbers{54, 208}

	// confinedConnected lists the calls that confined-network puts to the listener whatever their arguments.
	confinedConnected = map[string]numbers{"connect": {42, 203}, "bind": {49, 200}, "listen": {50, 201}}
)

// wantConfinedNet is the answer of the filters for sandboxes that have no network namespace.
func wantConfinedNet(filter, arch string, d sim.Data) uint32 {
	switch filter {
	case "confined-sockets":
		return wantConfinedSockets(arch, d)
	case "made-sockets":
		if d.Number == callSocket.on(arch) {
			return userNotif
		}
		return allow
	}
	const fastopen = 0x20000000
	for _, n := range confinedConnected {
		if d.Number == n.on(arch) {
			return userNotif
		}
	}
	switch n := d.Number; {
	case n == callLandlock.on(arch) && d.Args[1]&innerLayer == 0:
		return errnoBit | 95
	case (n == callSendto.on(arch) || n == callSendmmsg.on(arch)) && d.Args[3]&fastopen != 0,
		n == callSendmsg.on(arch) && d.Args[2]&fastopen != 0:
		return errnoBit | 95
	}
	return allow
}

func wantConfinedSockets(arch string, d sim.Data) uint32 {
	const dgram = 2
	family, kind, protocol := uint32(d.Args[0]), uint32(d.Args[1])%16, uint32(d.Args[2])
	switch d.Number {
	case callSetsockopt.on(arch):
		return wantConfinedOption(uint32(d.Args[1]), uint32(d.Args[2]))
	case callSocket.on(arch):
		answer := wantSocket(family, kind, protocol)
		if answer == allow && (family == 40 || family == 16 && protocol != 0 || family != 1 && family != 16 && kind == dgram) {
			return errnoBit | 1
		}
		return answer
	}
	return allow
}

func wantConfinedOption(level, name uint32) uint32 {
	refused := map[uint32][]uint32{
		0:  {4},            // IPPROTO_IP: IP_OPTIONS
		1:  {25, 62},       // SOL_SOCKET: SO_BINDTODEVICE, SO_BINDTOIFINDEX
		41: {5, 6, 55, 57}, // IPPROTO_IPV6: IPV6_2292RTHDR, IPV6_2292PKTOPTIONS, IPV6_RTHDRDSTOPTS, IPV6_RTHDR
	}
	switch {
	case level == 1 && name == 15: // SO_REUSEPORT
		return errnoBit | 95
	case slices.Contains(refused[level], name):
		return errnoBit | 1
	}
	return allow
}
