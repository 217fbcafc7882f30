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

// SendFile appends the hand-over of descriptor s to the host side, where it becomes Process.Files[index] (unix(7),
// SCM_RIGHTS). The child's own copy stays open until the program closes it or ends.
func (p *Program) SendFile(index int, subject string, s Slot) {
	body, bytes := p.Buffer(msgSize)
	copy(bytes, message{msgFile, uint32(index)}.encode())
	iov := &unix.Iovec{Len: msgSize}
	setBase(&iov.Base, body)
	control, cb := p.Buffer(unix.CmsgSpace(4))
	copy(cb, unix.UnixRights(0))
	hdr := &unix.Msghdr{Iov: iov, Iovlen: 1}
	setBase(&hdr.Control, control)
	hdr.SetControllen(len(cb))
	p.keep = append(p.keep, iov)
	p.Store(control, unix.CmsgLen(0), s)
	p.OnlyIf(s)
	p.Call("hand over a descriptor", subject, syscall.SYS_SENDMSG, Int(ctlFD), Pointer(p, hdr), Int(unix.MSG_NOSIGNAL))
	p.OnlyIf(s)
}

func setBase(dst **byte, a Arg) { *dst = (*byte)(pointer(a.value)) }
