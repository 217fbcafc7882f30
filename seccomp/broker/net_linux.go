package broker

import (
	"context"
	"net"
	"net/netip"
)

// Gate decides about the connections of programs that know no proxy (NET-7, "Limits of the reference"). It is asked by
// many goroutines at once.
type Gate interface {
	// Judge decides at once about a TCP destination that a program asked for. pid is the calling thread as the host
	// numbers it. An IPv4-mapped IPv6 address comes as IPv4, a link-local one with its scope as zone. An error is the
	// refusal, which the Gate has reported already: the program sees the syscall.Errno in it (errors.As), else EACCES.
	Judge(pid int, dst netip.AddrPort) (Way, error)
	// Loopback tells whether a loopback destination is one of the host's that the policy allows: unless holds the loopback
	// addresses at which nothing in the sandbox may listen for that, dst among them. Empty: it is the sandbox's own. It has
	// no side effect.
	Loopback(dst netip.AddrPort) (unless []netip.AddrPort)
	// Datagram is told that a datagram socket was to be connected to dst, beyond loopback, which is refused.
	Datagram(pid int, dst netip.AddrPort)
}

// Way is a destination that was allowed.
type Way interface {
	// Dial connects to it, once. It ends soon after ctx does. The program sees the syscall.Errno in an error (errors.As),
	// else ETIMEDOUT if it says of itself that it is a timeout (net.Error), else ECONNREFUSED.
	Dial(ctx context.Context) (Upstream, error)
}

// Upstream is a connection that was dialled. Exactly one of its methods is called, once.
type Upstream interface {
	// Relay takes over conn, a *net.TCPConn that is the other end of the program's socket, and moves bytes in both
	// directions until both have ended. It returns at once. done is called once when the tunnel has ended.
	Relay(conn net.Conn, done func())
	// Close drops the connection.
	Close() error
}

// UnixRules say which sockets of the host a program may connect to by path (NET-80, "Limits of the reference"). The zero
// value allows none. Sockets that were bound inside of the sandbox always can be.
type UnixRules struct {
	// All says that every socket can be.
	All bool
	// Allowed tells whether the socket at a location can be: where the kernel says the socket file is, absolute, as the
	// sandbox sees it. dev and ino are those of the file (stat(2)): where the command may rename, a location alone says
	// nothing. It is asked by many goroutines at once. Nil allows none.
	Allowed func(location string, dev, ino uint64) bool
}
