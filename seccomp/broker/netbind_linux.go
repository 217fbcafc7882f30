package broker

import (
	"encoding/binary"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// Every bind(2) comes here, and most of them make no name. Where the caller's rights do not matter to the kernel, this
// process performs them itself, so that a command that only has a server of its own, or looks up a name, needs no hand.

// privileged is below which a port takes CAP_NET_BIND_SERVICE (ip_unprivileged_port_start of ip(7), as it is in a new network
// namespace, in which a command cannot change it).
const privileged = 1024

// bindNameless binds a socket whose address is no path.
func (c *call) bindNameless(copied, domain int, address []byte) outcome {
	if !c.waits() {
		return failed(unix.EINTR) // both may be another process's
	}
	if out, ok := c.bindConfined(copied, domain, address); ok {
		return out
	}
	switch domain {
	case unix.AF_INET, unix.AF_INET6:
		return c.bindInet(copied, address)
	case unix.AF_NETLINK:
		if len(address) >= unix.SizeofSockaddrNetlink && binary.NativeEndian.Uint32(address[netlinkGroups:]) == 0 {
			return failed(c.bindNetlink(copied, address))
		}
	}
	return c.bindAt(copied, atRoot, address, false)
}

// bindInet binds a socket of the Internet families. The ports of captured connections are taken, also for those who share
// theirs (SO_REUSEPORT).
func (c *call) bindInet(copied int, address []byte) outcome {
	port := uint16(0)
	if len(address) >= 4 {
		port = binary.BigEndian.Uint16(address[2:]) // of both families; the kernel refuses shorter ones
	}
	if c.s.config.Gate != nil && (port == ns.CapturePort || port == ns.WaitingPort) {
		if kind, err := unix.GetsockoptInt(copied, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind == unix.SOCK_STREAM {
			return failed(unix.EADDRINUSE)
		}
	}
	if port != 0 && port < privileged {
		return c.bindAt(copied, atRoot, address, false)
	}
	return failed(socket.Bind(copied, address))
}

// Offsets in struct sockaddr_nl (netlink(7)).
const (
	netlinkPort   = 4
	netlinkGroups = 8
)

// bindNetlink binds a netlink socket that joins no group, which nobody needs a right for. Without a port of the program's
// choice it gets what the kernel would give: the number of its process, if that is free.
func (c *call) bindNetlink(copied int, address []byte) syscall.Errno {
	if binary.NativeEndian.Uint32(address[netlinkPort:]) != 0 {
		return socket.Bind(copied, address)
	}
	if errno := c.readStatus(); errno != 0 {
		return errno
	}
	own := append([]byte(nil), address...)
	binary.NativeEndian.PutUint32(own[netlinkPort:], uint32(c.status.inner))
	errno := socket.Bind(copied, own)
	for n := uint32(1); errors.Is(errno, unix.EADDRINUSE) && n < 1<<16; n++ {
		binary.NativeEndian.PutUint32(own[netlinkPort:], 1<<32-4096-n) // as netlink_autobind of net/netlink/af_netlink.c
		errno = socket.Bind(copied, own)
	}
	return errno
}
