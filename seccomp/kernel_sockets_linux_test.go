//go:build amd64 || arm64

package seccomp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// socketCalls are what base says to socket and socketpair. ICMP is left to ping_group_range, so it is not here.
func socketCalls() (calls []call) {
	const refused, allowed = unix.EPROTONOSUPPORT, syscall.Errno(0)
	bad := ^uintptr(0)
	for _, c := range []struct {
		name                   string
		domain, kind, protocol uintptr
		want                   syscall.Errno
	}{
		{"TCP", 2, 1, 0, allowed},
		{"TCP by name, with flags", 2, 0x80801, 6, allowed},
		{"TCP high", high | 2, high | 1, high | 6, allowed},
		{"TCP over IPv6", 10, 1, 6, allowed},
		{"UDP", 2, 2, 17, allowed},
		{"UDP over IPv6", 10, 2, 0, allowed},
		{"MPTCP", 2, 1, 262, refused},
		{"MPTCP over IPv6", 10, 0x80801, 262, refused},
		{"MPTCP high", 2, 1, high | 262, refused},
		{"SCTP", 2, 1, 132, refused},
		{"SCTP by type", 2, 5, 0, refused},
		{"SCTP over IPv6", 10, 5, 132, refused},
		{"DCCP", 2, 6, 33, refused},
		{"DCCP by type", 10, 6, 0, refused},
		{"UDP-Lite", 2, 2, 136, refused},
		{"L2TP", 2, 2, 115, refused},
		{"SMC", 2, 1, 256, refused},
		{"TCP of the wrong type", 2, 2, 6, refused},
		{"ICMPv6 over IPv4", 2, 2, 58, refused},
		{"no type", 2, 0, 0, refused},
		{"raw ICMP", 2, 3, 1, unix.EPERM},
		{"raw with flags", 2, 0x80803, 255, unix.EPERM},
		{"raw over IPv6", 10, 3, 58, unix.EPERM},
		{"raw high", high | 2, high | 3, high | 1, unix.EPERM},
		{"SOCK_PACKET", 2, 10, 0x300, unix.EPERM},
		{"AF_PACKET", 17, 3, 0x300, unix.EPERM},
		{"AF_PACKET datagram", 17, 2, 0, unix.EPERM},
		{"AF_PACKET high", high | 17, 3, 0, unix.EPERM},
		{"netlink route", 16, 3, 0, allowed},
		{"netlink sock_diag", 16, 0x80002, 4, allowed},
		{"netlink uevent", 16, 3, 15, allowed},
		{"netlink xfrm", 16, 3, 6, refused},
		{"netlink audit", 16, 3, 9, refused},
		{"netlink netfilter", 16, 3, 12, refused},
		{"netlink generic", 16, 3, 16, refused},
		{"netlink crypto high", high | 16, 3, high | 21, refused},
		{"AF_UNIX", 1, 1, 0, allowed},
		{"AF_ALG", 38, 5, 0, unix.EAFNOSUPPORT},
		{"AF_XDP", 44, 3, 0, unix.EAFNOSUPPORT},
		{"AF_SMC", 43, 1, 0, unix.EAFNOSUPPORT},
	} {
		calls = append(calls, call{c.name, nr(callSocket), [6]uintptr{c.domain, c.kind, c.protocol}, c.want})
	}
	for domain, want := range map[uintptr]syscall.Errno{1: unix.EFAULT, 2: unix.EAFNOSUPPORT, 10: unix.EAFNOSUPPORT, 16: unix.EAFNOSUPPORT,
		30: unix.EAFNOSUPPORT, 40: unix.EAFNOSUPPORT, high | 2: unix.EAFNOSUPPORT} {
		calls = append(calls, call{"socket pair", nr(callSocketpair), [6]uintptr{domain, 1, 0, bad}, want})
	}
	return calls
}

// networkCalls are those of network, loaded without a listener: what would be asked fails with ENOSYS.
func networkCalls() (calls []call) {
	bad := ^uintptr(0) // no descriptor, no pointer
	for name, n := range connectedAlways {
		calls = append(calls, asked(name, n, unix.ENOSYS, bad, bad, bad)...)
	}
	for _, c := range []struct {
		name string
		n    numbers
		want syscall.Errno
		args []uintptr
	}{
		{"getsockopt of SO_ERROR", callGetsockopt, unix.ENOSYS, []uintptr{bad, 1, 4}},
		{"getsockopt of SO_ERROR high", callGetsockopt, unix.ENOSYS, []uintptr{bad, high | 1, high | 4}},
		{"getsockopt of SO_TYPE", callGetsockopt, unix.EBADF, []uintptr{bad, 1, 3}},
		{"getsockopt of IP_TTL", callGetsockopt, unix.EBADF, []uintptr{bad, 0, 4}},
		{"setsockopt", numbers{54, 208}, unix.EBADF, []uintptr{bad, 1, 4}},
		{"getsockname", numbers{51, 204}, unix.EBADF, []uintptr{bad, 0, 0}},
		{"accept", numbers{43, 202}, unix.EBADF, []uintptr{bad, 0, 0}},
		{"shutdown", numbers{48, 210}, unix.EBADF, []uintptr{bad, 0, 0}},
		{"sendto", callSendto, unix.EBADF, []uintptr{bad, 0, 0, 0x4040, 0, 0}},
		{"sendto with MSG_FASTOPEN", callSendto, unix.EOPNOTSUPP, []uintptr{bad, 0, 0, 0x20000000, 0, 0}},
		{"sendto with MSG_FASTOPEN high", callSendto, unix.EOPNOTSUPP, []uintptr{bad, 0, 0, high | 0x20004000, 0, 0}},
		{"sendmsg", callSendmsg, unix.EBADF, []uintptr{bad, 0, 0x4000}},
		{"sendmsg with MSG_FASTOPEN", callSendmsg, unix.EOPNOTSUPP, []uintptr{bad, 0, high | 0x20004000}},
		{"sendmmsg", callSendmmsg, unix.EBADF, []uintptr{bad, 0, 1, 0x4000}},
		{"sendmmsg with MSG_FASTOPEN", callSendmmsg, unix.EOPNOTSUPP, []uintptr{bad, 0, 1, 0x20000000}},
	} {
		calls = append(calls, asked(c.name, c.n, c.want, c.args...)...)
	}
	return calls
}
