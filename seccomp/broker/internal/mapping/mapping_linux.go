package mapping

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUnsupported says that the kernel has no such request: it is older than Linux 6.11.
var ErrUnsupported = errors.New("the kernel answers no questions about single mappings (PROCMAP_QUERY)")

// query is struct procmap_query.
type query struct {
	size, flags, address                          uint64
	start, end, vmaFlags, pageSize, offset, inode uint64
	major, minor, nameSize, buildIDSize           uint32
	nameAddress, buildIDAddress                   uint64
}

const (
	writable = 0x02                                             // PROCMAP_QUERY_VMA_WRITABLE
	request  = 3<<30 | unsafe.Sizeof(query{})<<16 | 'f'<<8 | 17 // _IOWR(PROCFS_IOCTL_MAGIC, 17, struct procmap_query)
)

// Writable gives the end of the writable mapping that an address is in, 0 if it is in none. maps is a descriptor of
// /proc/PID/maps and stays the caller's. It returns ErrUnsupported on older kernels. It is safe for concurrent use.
func Writable(maps int, address uint64) (end uint64, err error) {
	q := query{size: uint64(unsafe.Sizeof(query{})), flags: writable, address: address}
	_, _, errno := syscall.Syscall(unix.SYS_IOCTL, uintptr(maps), request, uintptr(unsafe.Pointer(&q)))
	runtime.KeepAlive(&q)
	switch errno {
	case 0:
		return q.end, nil
	case unix.ENOENT:
		return 0, nil
	case unix.ENOTTY, unix.EINVAL:
		return 0, ErrUnsupported
	}
	return 0, errno
}
