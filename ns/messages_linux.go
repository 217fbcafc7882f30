package ns

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SendFiles appends the hand-over of descriptors to the host side, where they become Process.Files[first] and the
// following (unix(7), SCM_RIGHTS). The child's own copies stay open until the program closes them or ends. Every slot
// must hold a descriptor when the step is reached; OnlyIf and Unless apply to the whole step.
func (p *Program) SendFiles(first int, subject string, slots ...Slot) {
	body, bytes := p.Buffer(msgSize)
	copy(bytes, message{msgFile, uint32(first)}.encode())
	iov := unix.Iovec{Len: msgSize}
	setBase(&iov.Base, body)
	iovAddr := Pointer(p, &iov)
	control, cb := p.Buffer(unix.CmsgSpace(4 * len(slots)))
	copy(cb, unix.UnixRights(make([]int, len(slots))...))
	hdr := unix.Msghdr{Iov: (*unix.Iovec)(pointer(iovAddr.value)), Iovlen: 1}
	setBase(&hdr.Control, control)
	hdr.SetControllen(len(cb))
	for i, s := range slots {
		p.Store(control, unix.CmsgLen(4*i), s)
	}
	p.Call("hand over descriptors of", subject, syscall.SYS_SENDMSG, Int(ctlFD), Pointer(p, &hdr), Int(unix.MSG_NOSIGNAL))
}

func setBase(dst **byte, a Arg) { *dst = (*byte)(pointer(a.value)) }
