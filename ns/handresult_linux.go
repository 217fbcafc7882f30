package ns

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HandResult is what became of a program. Value and Errno read the program's memory: they are valid until the hand's next
// Program, or Close.
type HandResult struct {
	// Failed is the step that ended the program, counted from 0 (Program.Len before it was appended); -1 when none did.
	Failed int
	// Errno is that step's error; 0 when none failed.
	Errno syscall.Errno
	// Op and Subject name that step as the caller did.
	Op, Subject string
	// Files are the descriptors that Program.SendFiles sent, by index; nil where it sent none. The caller owns them.
	Files []*os.File

	slots []uintptr
}

// Value is the result of a step's system call. ok is false when it failed with a tolerated error or was left out.
func (r *HandResult) Value(s Slot) (v uintptr, ok bool) {
	v = r.slot(s)
	return v, v < leftOut
}

// Tolerated is the error with which a step's system call failed; 0 when it succeeded or was left out. The step that
// ended the program counts as left out: see HandResult.Errno.
func (r *HandResult) Tolerated(s Slot) syscall.Errno {
	if v := r.slot(s); v > leftOut {
		return syscall.Errno(-v)
	}
	return 0
}

func (r *HandResult) slot(s Slot) uintptr {
	if s == 0 || int(s) > len(r.slots) {
		return leftOut
	}
	return r.slots[s-1]
}

// Err is a *StepError that says which step failed; nil when none did.
func (r *HandResult) Err() error {
	if r.Failed < 0 {
		return nil
	}
	return &StepError{Op: r.Op, Subject: r.Subject, Err: r.Errno, Cause: stepCause(r.Op, r.Errno)}
}

// Close closes the files of the result.
func (r *HandResult) Close() { closeAll(r.Files) }

// Do runs the program and waits until it is done, which takes as long as its system calls do. When it returns without an
// error, the hand has its own identity again and holds no descriptor of the program. What a program did to the working
// directory or the umask stays.
//
// An error means that the program has not been run (ErrProgramTooLarge), or that the hand is of no more use: ErrHandKilled
// and ErrHandGone tell why. A step that failed is no error: see HandResult.
//
// It blocks the calling thread in plain system calls.
func (h *Hand) Do() (HandResult, error) {
	if err := h.begin(told); err != nil {
		return HandResult{Failed: -1}, err
	}
	return h.End()
}

// begin gives the word to run the program. When it returns no error, h.busy is held until End.
func (h *Hand) begin(word uint32) error {
	h.busy.Lock()
	var err error
	switch p := h.program(); {
	case h.gone != nil:
		err = h.gone
	case p.mem == nil:
		err = ErrHandKilled
	default:
		h.result = HandResult{Failed: -1}
		err = h.write(word)
	}
	if err != nil {
		h.busy.Unlock()
	}
	return err
}

// finish waits for the hand's messages.
func (h *Hand) finish() (HandResult, error) {
	r := h.result
	h.result = HandResult{}
	for {
		m, fds, err := h.in.receive(h.ctl)
		if err == nil && m[0] == msgFile {
			r.store(int(m[1]), fds)
			continue
		}
		switch {
		case err != nil:
			err = h.lost(err)
		case m[0] == msgFailed && m[1] == programFixed && int(m[2]) < len(fixedSteps):
			err = h.lost(&StepError{Op: fixedSteps[m[2]], Err: syscall.Errno(m[3])})
		case m[0] != msgDone:
			err = h.lost(fmt.Errorf("it sent a message of kind %d", m[0]))
		default:
			h.read(&r, m)
		}
		if err != nil {
			r.Close()
		}
		return r, err
	}
}

// write completes the program and gives the word.
func (h *Hand) write(word uint32) error {
	p, run := h.program(), &h.state.runs[h.turn]
	run.script, h.result.slots = p.seal()
	if p.err != nil {
		return p.err
	}
	run.passed, run.acts = uintptr(len(p.passed)), 0
	if p.acts {
		run.acts = 1
	}
	atomic.StoreUint32(&run.word, word)
	for i, d := range p.passed {
		h.result.slots[d.slot-1] = uintptr(HandFirst + i)
	}
	if err := h.in.send(h.ctl, message{msgRun, uint32(h.turn)}, p.passed); err != nil {
		return h.lost(err)
	}
	return nil
}

// read takes the outcome from the hand's answer.
func (h *Hand) read(r *HandResult, m message) {
	if m[1] == noStep {
		return
	}
	r.Failed, r.Errno = int(m[1]), syscall.Errno(m[2])
	if r.Failed < len(h.program().labels) {
		l := h.program().labels[r.Failed]
		r.Op, r.Subject = l.op, l.subject
	}
}

// lost remembers that the hand cannot be used any more, and why.
func (h *Hand) lost(cause error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = ErrHandKilled
	if !h.killed {
		h.gone = fmt.Errorf("%w: %w", ErrHandGone, cause)
	}
	return h.gone
}

// store takes ownership of received descriptors. Indices are those that this process wrote into its own program.
func (r *HandResult) store(first int, fds []int) {
	for i, fd := range fds {
		for len(r.Files) <= first+i {
			r.Files = append(r.Files, nil)
		}
		r.Files[first+i] = os.NewFile(uintptr(fd), "from a hand")
	}
}

// inbox sends and receives messages without taking memory.
type inbox struct {
	header  unix.Msghdr
	iov     unix.Iovec
	msg     message
	control rights
	fds     [maxFiles]int
}

func (b *inbox) prepare() {
	b.iov = unix.Iovec{Base: (*byte)(unsafe.Pointer(&b.msg)), Len: msgSize}
	b.header = unix.Msghdr{Iov: &b.iov, Iovlen: 1}
}

// call makes sendmsg(2) or recvmsg(2), again when a signal interrupts it.
func (b *inbox) call(trap uintptr, fd int, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.Syscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&b.header)), flags)
		runtime.KeepAlive(b)
		if errno == 0 {
			return int(n), nil
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}

// send sends a message with descriptors.
func (b *inbox) send(fd int, m message, files []passed) error {
	b.msg = m
	b.header.Control, b.header.Controllen = nil, 0
	if len(files) > 0 {
		b.control.head = unix.Cmsghdr{Level: unix.SOL_SOCKET, Type: unix.SCM_RIGHTS}
		b.control.head.SetLen(unix.CmsgLen(4 * len(files)))
		for i, f := range files {
			b.control.fds[i] = int32(f.fd)
		}
		b.header.Control = (*byte)(unsafe.Pointer(&b.control))
		b.header.SetControllen(unix.CmsgSpace(4 * len(files)))
	}
	_, err := b.call(syscall.SYS_SENDMSG, fd, unix.MSG_NOSIGNAL)
	return os.NewSyscallError("sendmsg", err)
}

// receive waits for one message. The descriptors are valid until the next call, and the caller's to close.
func (b *inbox) receive(fd int) (message, []int, error) {
	b.header.Control = (*byte)(unsafe.Pointer(&b.control))
	b.header.SetControllen(int(unsafe.Sizeof(b.control)))
	n, err := b.call(syscall.SYS_RECVMSG, fd, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return message{}, nil, os.NewSyscallError("recvmsg", err)
	}
	fds := b.fds[:0]
	if b.header.Controllen > 0 && b.control.head.Type == unix.SCM_RIGHTS {
		for i := range min((int(b.control.head.Len)-unix.SizeofCmsghdr)/4, maxFiles) {
			fds = append(fds, int(b.control.fds[i]))
		}
	}
	if n == msgSize && b.header.Flags&unix.MSG_CTRUNC == 0 {
		return b.msg, fds, nil
	}
	for _, f := range fds {
		unix.Close(f)
	}
	if n == 0 {
		return message{}, nil, ErrHostGone
	}
	return message{}, nil, fmt.Errorf("receive descriptors from a hand: a message of %d bytes was cut short (the limit of open files?): %w", n, unix.EMFILE)
}
