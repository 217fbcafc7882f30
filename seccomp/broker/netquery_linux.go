package broker

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// getpeername performs getpeername(2): the peer of a captured connection is the one that the program asked for. For all
// other sockets the kernel answers: nothing is judged by it, so it does not matter what the caller's other threads do.
func (c *call) getpeername(fd int32, at, sizeAt uint64) outcome {
	x, copied := c.connectionOf(fd)
	if x == nil || x.now() != open || socket.HasPeer(copied) != nil {
		return outcome{proceed: true}
	}
	return failed(c.writeAddress(socket.Address(x.domain, x.peer()), at, sizeAt))
}

// peer is the address that the program's socket says it is connected to.
func (x *connection) peer() netip.AddrPort {
	if a := x.asked.Addr(); a.Unmap().IsUnspecified() {
		return x.to // Address maps it where the socket's family is the other one
	}
	return x.asked
}

// now is the state of a connection.
func (x *connection) now() state {
	x.network.mu.Lock()
	defer x.network.mu.Unlock()
	return x.state
}

// connectionOf gives the connection of one of the caller's descriptors, and a copy of it; nil if there is none.
func (c *call) connectionOf(fd int32) (*connection, int) {
	if c.s.network.known.Load() == 0 {
		return nil, -1
	}
	copied, errno := c.duplicate(fd)
	if errno != 0 || !c.waits() {
		return nil, -1
	}
	x, err := c.s.network.find(copied)
	if err != nil {
		return nil, -1
	}
	return x, copied
}

// getsockopt performs getsockopt(2) of SO_ERROR: of a connection that could not be made, the error is that of its dialling.
// In all other cases the kernel answers.
func (c *call) getsockopt(fd int32, level, name uint32, at, sizeAt uint64) outcome {
	if level != unix.SOL_SOCKET || name != unix.SO_ERROR {
		return outcome{proceed: true}
	}
	x, copied := c.connectionOf(fd)
	if x == nil {
		return outcome{proceed: true}
	}
	size, errno := c.sizeAt(sizeAt)
	if errno != 0 {
		return failed(errno)
	}
	errno = x.tell()
	if errno == 0 {
		return outcome{proceed: true}
	}
	_, _ = unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_ERROR) // which clears the one of the shutdown
	value := int32(errno)
	return failed(c.writeSized(nativeBytes(value), size, at, sizeAt, false))
}

// ended waits until a connection that is broken has been ended: after that, nothing is done to the program's socket.
func (x *connection) ended() { <-x.done }

// loosen keeps the error of a connection that the program dissolves, as the kernel does. It tells whether there is one.
func (x *connection) loosen() bool {
	x.network.mu.Lock()
	is := x.state == broken
	x.loose = x.loose || is
	x.network.mu.Unlock()
	if is {
		x.ended()
	}
	return is
}

// tell gives the error of a connection, once.
func (x *connection) tell() syscall.Errno {
	x.network.mu.Lock()
	first := x.state == broken && !x.told
	x.told = x.told || first
	x.network.mu.Unlock()
	if !first {
		return 0
	}
	x.ended()
	return x.errno
}
