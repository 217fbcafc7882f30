package broker

import (
	"bytes"
	"encoding/binary"
	"syscall"
)

// afUnix is AF_UNIX. sockaddrMax is the largest address that bind(2) takes (struct sockaddr_storage), unixMax that of an
// AF_UNIX socket (struct sockaddr_un, unix(7)), and unixPath where the path begins in it.
const (
	afUnix      = 1
	sockaddrMax = 128
	unixMax     = 110
	unixPath    = 2
)

// unixName gives the path in the address of an AF_UNIX socket. ok is false when there is none: an abstract name, an
// unnamed address, another family, or a length that bind(2) refuses. Such addresses make no name in a file system.
func unixName(address []byte) (path string, ok bool) {
	if len(address) <= unixPath || len(address) > unixMax || address[unixPath] == 0 {
		return "", false
	}
	if binary.NativeEndian.Uint16(address) != afUnix {
		return "", false
	}
	name, _, _ := bytes.Cut(address[unixPath:], []byte{0})
	return string(name), true
}

// unixAddress is the address of a path. The kernel adds the NUL byte, for which the longest path leaves no room.
func unixAddress(path string) []byte {
	return append(binary.NativeEndian.AppendUint16(nil, afUnix), path...)
}

// checkSockaddrSize is the kernel's check of the length argument (move_addr_to_kernel of net/socket.c).
func checkSockaddrSize(size int32) syscall.Errno {
	if size < 0 || size > sockaddrMax {
		return syscall.EINVAL
	}
	return 0
}
