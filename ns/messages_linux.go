package ns

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// AwaitGo appends the wait for the host side's word that the identity maps are written. Without that word (the host
// side is gone) the program ends.
func (p *Program) AwaitGo() {
	addr, _ := p.Buffer(msgSize)
	p.Call("wait for the identity maps", "", syscall.SYS_RECVFROM, Int(ctlFD), addr, Int(msgSize), Int(0), Int(0), Int(0))
	p.Expect("wait for the identity maps", "", addr, 0, 1<<32-1, msgGo, syscall.ESHUTDOWN)
}

// SendFiles appends the hand-over of descriptors to the host side, where they become Process.Files[first] and the
// following (unix(7), SCM_RIGHTS). The child's own copies stay open until the program closes them or ends. Every slot
// must hold a descriptor when the step is reached; OnlyIf and Unless apply to the whole step.
func (p *Program) SendFiles(first int, subject string, slots ...Slot) {
	body, bytes := p.Buffer(msgSize)
	copy(bytes, message{msgFile, uint32(first)}.encode())
	iov := &unix.Iovec{Len: msgSize}
	setBase(&iov.Base, body)
	control, cb := p.Buffer(unix.CmsgSpace(4 * len(slots)))
	copy(cb, unix.UnixRights(make([]int, len(slots))...))
	hdr := &unix.Msghdr{Iov: iov, Iovlen: 1}
	setBase(&hdr.Control, control)
	hdr.SetControllen(len(cb))
	p.keep = append(p.keep, iov)
	for i, s := range slots {
		p.Store(control, unix.CmsgLen(4*i), s)
	}
	p.Call("hand over descriptors of", subject, syscall.SYS_SENDMSG, Int(ctlFD), Pointer(p, hdr), Int(unix.MSG_NOSIGNAL))
}

func setBase(dst **byte, a Arg) { *dst = (*byte)(pointer(a.value)) }
