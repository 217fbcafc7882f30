package ns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a started sandbox: its pid 1, and the command below it. Signal and Kill are safe for concurrent use with
// Wait.
type Process struct {
	// Files are the descriptors that the set-up program sent, by index; nil where it sent none. The caller owns them.
	Files []*os.File

	pid        int
	ctl        *os.File
	program    *Program
	name       string // of the command
	tty        bool
	confined   bool // Config.Confined
	supervisor int  // its process id, where confined
	ungrouped  bool // Config.DenySetgroups

	mu      sync.Mutex
	reaped  bool
	begun   bool                          // of a confined sandbox: there may be more than one process
	hands   bool                          // of a confined sandbox: Prepared.AllowHands
	entries [len(namespaceFiles)]*os.File // for hands; none without AllowHands
	failed  error
	// OnStop, if set before Wait, is called in a session with a terminal when the command has stopped (WUNTRACED). It
	// returns when the command is to go on, and tells whether in the foreground.
	OnStop func(Signal) (foreground bool)
}

// Pid is the process id of the sandbox's pid 1, as the host sees it; of a confined sandbox, that of its supervisor, which all
// other processes of the sandbox but its keeper descend from.
func (p *Process) Pid() int {
	if p.confined {
		return p.supervisor
	}
	return p.pid
}

// awaitReady collects what the program sends until it is done.
func (p *Process) awaitReady() error {
	for {
		m, fds, err := p.receive()
		switch {
		case err != nil:
			return err
		case m[0] == msgReady:
			return nil
		case m[0] == msgFailed:
			return p.failure(m)
		}
		p.keep(m, fds)
	}
}

func (p *Process) send(m message) error {
	err := unix.Sendto(int(p.ctl.Fd()), m.encode(), unix.MSG_NOSIGNAL, nil)
	return os.NewSyscallError("send to the sandbox", err)
}

// sendFiles sends a message with copies of descriptors.
func (p *Process) sendFiles(m message, files []*os.File) error {
	if len(files) == 0 {
		return p.send(m)
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	_, err := unix.SendmsgN(int(p.ctl.Fd()), m.encode(), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
	runtime.KeepAlive(files)
	return os.NewSyscallError("send descriptors to the sandbox", err)
}

// store takes ownership of received descriptors.
func (p *Process) store(first int, fds []int) {
	for i, fd := range fds {
		for len(p.Files) <= first+i {
			p.Files = append(p.Files, nil)
		}
		p.Files[first+i] = os.NewFile(uintptr(fd), "from sandbox")
	}
}

// maxFiles is how many descriptors one message may carry.
const maxFiles = 16

// receive waits for one message. It reports ErrHostGone at end of file.
func (p *Process) receive() (m message, fds []int, err error) { return p.receiveWith(0) }

// ended gives the process's own report, if it has ended with one, else err: what has failed because it is gone.
func (p *Process) ended(err error) error {
	for {
		m, fds, end := p.receiveWith(unix.MSG_DONTWAIT)
		if end != nil {
			return err
		}
		p.keep(m, fds)
		if m[0] == msgFailed {
			return p.failure(m)
		}
	}
}

// keep takes the descriptors that came with a message, where it is one of files.
func (p *Process) keep(m message, fds []int) {
	if m[0] == msgFile {
		p.store(int(m[1]), fds)
	}
}

// receiveWith is receive with further flags of recvmsg(2).
func (p *Process) receiveWith(flags int) (m message, fds []int, err error) {
	buf, oob := make([]byte, msgSize), make([]byte, unix.CmsgSpace(4*maxFiles))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(int(p.ctl.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC|flags)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return m, nil, os.NewSyscallError("receive from the sandbox", err)
	}
	m, ok := decodeMessage(buf[:n])
	if !ok {
		return m, nil, ErrHostGone
	}
	if oobn == 0 {
		return m, nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(msgs) != 1 {
		return m, nil, fmt.Errorf("receive descriptors from the sandbox: %d control messages: %w", len(msgs), err)
	}
	fds, err = unix.ParseUnixRights(&msgs[0])
	return m, fds, os.NewSyscallError("receive descriptors from the sandbox", err)
}

// failure turns a report into an error.
func (p *Process) failure(m message) error {
	errno := syscall.Errno(m[3])
	switch m[1] {
	case programSetup:
		if int(m[2]) < len(p.program.labels) {
			l := p.program.labels[m[2]]
			return &StepError{Op: l.op, Subject: l.subject, Err: errno, Cause: stepCause(l.op, errno)}
		}
	case programFixed:
		if int(m[2]) < len(fixedSteps) {
			return &StepError{Op: fixedSteps[m[2]], Err: errno, Cause: stepCause(fixedSteps[m[2]], errno)}
		}
	case programExec:
		return &ExecError{Name: p.name, Err: errno}
	}
	return &StepError{Op: "understand a report of the new process", Err: errno}
}

// Wait waits until the command and everything it started are gone, and gives the command's status. It returns an
// *ExecError when the command could not be executed, and a *KilledError when pid 1 was ended from outside. It must be
// called once.
func (p *Process) Wait() (Status, error) {
	for {
		m, _, err := p.receive()
		if err != nil {
			break
		}
		switch m[0] {
		case msgFailed:
			p.failed = p.failure(m)
		case msgStopped:
			p.stopped(Signal(m[1]))
		}
	}
	ws, err := p.reap()
	switch {
	case err != nil:
		return Status{}, os.NewSyscallError("wait4", err)
	case p.failed != nil:
		return Status{}, p.failed
	case ws.Signaled():
		return Status{}, &KilledError{Signal: ws.Signal()}
	}
	return Status{Code: ws.ExitStatus()}, nil
}

// stopped lets the embedder answer a stop of the command. Without a terminal of its own the command stays stopped until
// somebody sends it SIGCONT, as it would without a sandbox.
func (p *Process) stopped(sig Signal) {
	if !p.tty || p.OnStop == nil {
		return
	}
	m := message{msgResume}
	if p.OnStop(sig) {
		m[1] = 1
	}
	if err := p.send(m); err != nil {
		return // the sandbox has ended meanwhile; Wait's next receive tells
	}
}

func (p *Process) reap() (syscall.WaitStatus, error) {
	var ws syscall.WaitStatus
	// Wait without reaping first: once reaped the pid may be another process's, and Kill must not reach that.
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	closeAll(p.entries[:])
	for {
		_, err := syscall.Wait4(p.pid, &ws, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			p.ctl.Close()
			return ws, err
		}
	}
}

// abandon ends a start that failed, waits until nothing of it is left, and gives the reason: the new process's own
// report, if it sent one, else err.
func (p *Process) abandon(err error) error {
	_ = p.Kill() // it has not been waited for, so it is there
	for {
		m, fds, end := p.receive()
		if end != nil {
			break
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
		if m[0] == msgFailed {
			err = p.failure(m)
		}
	}
	_, _ = p.reap() // its status says no more than the kill
	for _, f := range p.Files {
		if f != nil {
			f.Close()
		}
	}
	return err
}

// Signal sends a signal to the command's process group (to the command alone in SessionShared). After the sandbox has
// ended it returns os.ErrProcessDone.
func (p *Process) Signal(s Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	err := p.send(message{msgSignal, uint32(s)})
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) { // nobody has waited for it yet, but it has ended
		return os.ErrProcessDone
	}
	return err
}

// begin lets a confined sandbox start its command.
func (p *Process) begin() error {
	p.mu.Lock()
	p.begun = true
	err := p.send(message{msgBegin})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	m, _, err := p.receive()
	switch {
	case err != nil:
		return err
	case m[0] != msgBegun:
		return p.failure(m)
	}
	p.supervisor = int(m[1])
	return nil
}

// Kill ends every process of the sandbox at once: the kernel does it when pid 1 dies (pid_namespaces(7)). In a confined sandbox
// its own two processes do it, told by the end of the control socket; the one that is stopped goes on for that.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	if p.begun {
		// A sending that fills the socket must not keep the supervisor from reading: hence both directions.
		if err := unix.Shutdown(int(p.ctl.Fd()), unix.SHUT_RDWR); err != nil && !errors.Is(err, unix.ENOTCONN) {
			return os.NewSyscallError("shutdown", err)
		}
		return os.NewSyscallError("kill", unix.Kill(p.pid, unix.SIGCONT))
	}
	return os.NewSyscallError("kill", unix.Kill(p.pid, unix.SIGKILL))
}

// KilledError says that the sandbox's pid 1 was ended by a signal from outside, and the sandbox with it.
type KilledError struct{ Signal Signal }

func (e *KilledError) Error() string {
	return "Process killed by signal: " + unix.SignalName(e.Signal)
}
