package ns

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// parcel is what a process of this package needs to receive a message and the descriptors that come with it, without taking
// memory. It lies in memory that does not move.
type parcel struct {
	header  unix.Msghdr
	iov     unix.Iovec
	control rights
}

// rights is the control message with descriptors (cmsg(3), SCM_RIGHTS).
type rights struct {
	head unix.Cmsghdr
	fds  [maxFiles]int32
}

// prepare has messages written to msg, which does not move either.
func (p *parcel) prepare(msg *[4]uint32) {
	p.iov.Len = msgSize
	setBase(&p.iov.Base, fixed(msg))
	p.header.Iov, p.header.Iovlen = &p.iov, 1
	setBase(&p.header.Control, fixed(&p.control))
}

// receive waits for one message of the host side. What comes with it is close-on-exec. The restrictions at the top of
// child_linux.go hold here, and for placed.
//
//go:norace
//go:nosplit
func receive(p *parcel) (n, errno uintptr) {
	for {
		p.header.Controllen = uint64(unsafe.Sizeof(p.control))
		n, errno = sys(syscall.SYS_RECVMSG, ctlFD, uintptr(unsafe.Pointer(&p.header)), unix.MSG_CMSG_CLOEXEC, 0, 0, 0)
		if errno != uintptr(syscall.EINTR) {
			return n, errno
		}
	}
}

// placed tells whether count descriptors came with the last message, no more and no fewer, at the numbers from firstFree
// on. They take the lowest that are free, and the receiver has none there.
//
//go:norace
//go:nosplit
func placed(p *parcel, count uintptr) bool {
	if p.header.Flags&unix.MSG_CTRUNC != 0 || count > maxFiles {
		return false
	}
	if count == 0 {
		return p.header.Controllen == 0
	}
	if p.header.Controllen == 0 || uintptr(p.control.head.Len) != unsafe.Sizeof(unix.Cmsghdr{})+4*count {
		return false
	}
	for i := range count {
		if fd := *(*int32)(unsafe.Add(unsafe.Pointer(&p.control.fds), 4*i)); uintptr(fd) != firstFree+i {
			return false
		}
	}
	return true
}
