package broker

import (
	"net/netip"
)

// ConfinedNet says what the network of a sandbox without a network namespace is (mode confined): the command is in the host's,
// and all that it reaches there is what a connect, bind or listen that comes here is let to. It goes with the filters
// seccomp.ConfinedSockets and seccomp.ConfinedNetwork, in the place of a [Gate]. The zero value lets a command reach nothing.
type ConfinedNet struct {
	// Proxies are the listeners of this command's proxies, on loopback: what it may connect to. An IPv4-mapped IPv6 address
	// counts as IPv4.
	Proxies []netip.AddrPort
	// LocalBinding says that the command may have listeners on loopback, and connect to its own (network.allowLocalBinding).
	LocalBinding bool
	// Made says that the sockets of the command are made here (seccomp.MadeSockets), for want of pidfd_getfd(2).
	Made bool
	// Refused is told of each TCP destination that was refused, by whichever goroutine answers, before the caller has its
	// answer. An IPv4-mapped address comes as IPv4. pid is the calling thread's. It may be nil.
	Refused func(pid int, process string, dst netip.AddrPort)
}
