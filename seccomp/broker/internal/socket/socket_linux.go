package socket

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Connect is connect(2). The address is that of the caller's choice: AF_UNSPEC dissolves a connection. It blocks for as
// long as the socket's mode and SO_SNDTIMEO say. 0 is success. The descriptor stays the caller's.
func Connect(fd int, address []byte) syscall.Errno {
	return addressed(unix.SYS_CONNECT, fd, address)
}

// Begin is connect(2) on a TCP socket as if that were non-blocking, whatever its mode is and whoever changes it meanwhile:
// what is not done at once goes on, and is EINPROGRESS or, in a further call, EALREADY. The address is one of AF_INET or
// AF_INET6. It is done by sending nothing with TCP Fast Open (tcp(7), MSG_FASTOPEN), which connects, and takes a flag of
// the call's own (tcp_sendmsg_fastopen of net/ipv4/tcp.c). EOPNOTSUPP says that this is switched off in the socket's
// network namespace (net.ipv4.tcp_fastopen), and nothing has been done. The descriptor stays the caller's.
func Begin(fd int, address []byte) syscall.Errno {
	var at [1]byte
	p := unsafe.Pointer(&at)
	if len(address) > 0 {
		p = unsafe.Pointer(unsafe.SliceData(address))
	}
	const flags = unix.MSG_FASTOPEN | unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	_, _, errno := syscall.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, flags, uintptr(p), uintptr(len(address)))
	runtime.KeepAlive(address)
	return errno
}

// Bind is bind(2), as Connect is connect(2).
func Bind(fd int, address []byte) syscall.Errno {
	return addressed(unix.SYS_BIND, fd, address)
}

func addressed(trap uintptr, fd int, address []byte) syscall.Errno {
	var at [1]byte
	p := unsafe.Pointer(&at)
	if len(address) > 0 {
		p = unsafe.Pointer(unsafe.SliceData(address))
	}
	_, _, errno := syscall.Syscall(trap, uintptr(fd), uintptr(p), uintptr(len(address)))
	runtime.KeepAlive(address)
	return errno
}

// Unspecified is the address that dissolves a connection (connect(2)).
func Unspecified() []byte { return make([]byte, 2) }

// Address is an address as the kernel takes it for a socket of a family: AF_INET, or AF_INET6, for which an IPv4 address
// becomes an IPv4-mapped one (ipv6(7)). A zone is left out.
func Address(family int, a netip.AddrPort) []byte {
	if family == unix.AF_INET {
		b := make([]byte, unix.SizeofSockaddrInet4)
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		four := a.Addr().Unmap().As4()
		copy(b[4:], four[:])
		return b
	}
	b := make([]byte, unix.SizeofSockaddrInet6)
	binary.NativeEndian.PutUint16(b, unix.AF_INET6)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	sixteen := a.Addr().As16()
	copy(b[8:], sixteen[:])
	return b
}

// Local is where a TCP or UDP socket is bound, an IPv4-mapped address as it is (getsockname(2)).
func Local(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return of(sa), nil
}

// Remote is what a TCP socket is connected to, an IPv4-mapped address as it is (getpeername(2)).
func Remote(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getpeername(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return of(sa), nil
}

// Accept takes a connection from a listener without waiting for one: EAGAIN says that there is none. It gives the new
// descriptor, close-on-exec and in blocking mode, which is the caller's, and where the other end is.
func Accept(listener int) (int, netip.AddrPort, error) {
	fd, sa, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return -1, netip.AddrPort{}, err
	}
	return fd, of(sa), nil
}

func of(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// HasPeer tells whether a socket has a peer, and is nil then: getpeername(2).
func HasPeer(fd int) error {
	_, err := unix.Getpeername(fd)
	return err
}
