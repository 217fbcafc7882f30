package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/internal/pause"
)

// errBorrowed is a second loan at the same time.
var errBorrowed = errors.New("the terminal of the command is borrowed already")

// noticed is how long the news that the command has stopped may take: pid 1 of the sandbox, which is not stopped, sends it.
const noticed = 100 * time.Millisecond

// commandWithin is the command's number in its pid namespace (package ns).
const commandWithin = 2

// loan is a terminal that is borrowed.
type loan struct {
	process *linuxProcess
	tty     *os.File
	stopped *pause.Paused
	front   int // the foreground group before
	modes   *unix.Termios
	told    chan struct{} // closed when the news of the stop has come
	tellOne sync.Once
	over    chan struct{} // closed at the end
	end     func() error  // gives it back, once
}

// loans are the loans of one command, one at a time. The zero value is none.
type loans struct{ current atomic.Pointer[loan] }

// pending tells whether a stop of the command is only a loan's, and if so returns when that is over.
func (l *loans) pending() bool {
	now := l.current.Load()
	if now == nil {
		return false
	}
	now.tellOne.Do(func() { close(now.told) })
	<-now.over
	return true
}

// commandStopped is job control: the command's group has stopped, by a key or by itself, and the caller's stops with it.
func (p *linuxProcess) commandStopped(ns.Signal) (foreground bool) {
	if p.loans.pending() {
		return false
	}
	// One that continues itself during a loan has more news of that to send than the loan waits for. It may have ended since.
	if root, err := pause.Identify(p.process.Pid()); err == nil && root.ChildNotStopped(commandWithin) {
		return false
	}
	return stopWithCommand(p.files[0])
}

// borrow implements borrower.
func (p *linuxProcess) borrow(tty *os.File) (lent, error) {
	l := &loan{process: p, tty: tty, told: make(chan struct{}), over: make(chan struct{})}
	if !p.loans.current.CompareAndSwap(nil, l) { // before anything stops: that it does is not the person's doing
		return nil, errBorrowed
	}
	err := p.take(l)
	if err != nil {
		p.loans.current.Store(nil)
		close(l.over)
		return nil, err
	}
	l.end = sync.OnceValue(func() error { return p.giveBack(l) })
	return l, nil
}

// Read implements io.Reader.
func (l *loan) Read(b []byte) (n int, err error) {
	raw, err := l.tty.SyscallConn()
	if err != nil {
		return 0, err
	}
	outer := raw.Read(func(fd uintptr) bool {
		n, err = quietly(func() (int, error) { return unix.Read(int(fd), b) })
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case outer != nil:
		return 0, outer
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements io.Writer.
func (l *loan) Write(b []byte) (done int, err error) {
	raw, err := l.tty.SyscallConn()
	if err != nil {
		return 0, err
	}
	for done < len(b) && err == nil {
		var n int
		outer := raw.Write(func(fd uintptr) bool {
			n, err = quietly(func() (int, error) { return unix.Write(int(fd), b[done:]) })
			return !errors.Is(err, unix.EAGAIN)
		})
		if outer != nil {
			return done, outer
		}
		done += max(n, 0)
	}
	return done, os.NewSyscallError("write", err)
}

// undisturbed implements lent. The terminal is looked at first: whoever has taken it has run.
func (l *loan) undisturbed() error {
	var front int
	err := control(l.tty, func(fd int) (err error) {
		front, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return os.NewSyscallError("ioctl TIOCGPGRP", err)
	})
	if err == nil {
		err = l.stopped.StoodStill()
	}
	switch {
	case errors.Is(err, pause.ErrRan):
		return fmt.Errorf("%w: %w", ErrDisturbed, err)
	case err == nil && front != unix.Getpgrp():
		return fmt.Errorf("%w: %w", ErrDisturbed, ErrNotForeground)
	}
	return err
}

// giveBack implements lent.
func (l *loan) giveBack() error { return l.end() }

// quietly makes a system call on the terminal, again if a signal interrupts it. A group in the background is not stopped
// for it: with the signal blocked a read fails with EIO, and everything else is done (tty_ioctl(4)).
func quietly(call func() (int, error)) (n int, err error) {
	err = unix.ENOTSUP // in case nothing can be blocked
	withBlocked(unix.SIGTTIN, func() {
		withBlocked(unix.SIGTTOU, func() {
			for n, err = call(); errors.Is(err, unix.EINTR); {
				n, err = call()
			}
		})
	})
	return n, err
}

// take stops the command and makes the terminal the caller's.
func (p *linuxProcess) take(l *loan) (err error) {
	root, err := pause.Identify(p.process.Pid())
	if err == nil {
		err = p.process.Signal(0) // it was not waited for, so that was it
	}
	if err == nil {
		l.stopped, err = pause.Below(root)
	}
	if err != nil {
		return fmt.Errorf("pause the command: %w", err)
	}
	err = control(l.tty, func(fd int) (err error) {
		if l.front, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
			return os.NewSyscallError("ioctl TIOCGPGRP", err)
		}
		if l.front != unix.Getpgrp() && !l.stopped.HasGroup(l.front) {
			return ErrNotForeground
		}
		if l.modes, err = unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			return os.NewSyscallError("ioctl TCGETS", err)
		}
		if err = makeForeground(fd, unix.Getpgrp()); err != nil {
			return err
		}
		// A program may have held the output back (tcflow(3)): the question would never be seen.
		_ = unix.IoctlSetInt(fd, unix.TCXONC, unix.TCOON) // fails where there is nothing to do
		return os.NewSyscallError("ioctl TCFLSH", unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH))
	})
	if err != nil {
		if l.modes != nil {
			_ = control(l.tty, func(fd int) error { return makeForeground(fd, l.front) }) // whose terminal fails has no more use of it
		}
		return errors.Join(err, l.stopped.Resume())
	}
	return nil
}

// giveBack ends a loan.
func (p *linuxProcess) giveBack(l *loan) error {
	err := control(l.tty, func(fd int) error {
		err := os.NewSyscallError("ioctl TCSETS", unix.IoctlSetTermios(fd, unix.TCSETS, l.modes))
		if l.front == unix.Getpgrp() {
			return err
		}
		front := makeForeground(fd, l.front)
		if errors.Is(front, unix.ESRCH) || errors.Is(front, unix.EPERM) {
			return err // the group has ended; the next one to use the terminal takes it
		}
		if front != nil {
			return errors.Join(err, front)
		}
		if l.modes.Lflag&unix.ICANON == 0 { // a program that reads single keys has its own picture of the screen
			_ = unix.Kill(-l.front, unix.SIGWINCH) // it may have ended
		}
		return err
	})
	if p.session == ns.SessionForeground {
		select { // else the news would come when the loan is over, and look like a stop by a key
		case <-l.told:
		case <-time.After(noticed): // it was stopped before, or has ended
		}
	}
	err = errors.Join(err, l.stopped.Resume())
	p.loans.current.Store(nil)
	close(l.over)
	return err
}

// makeForeground makes a process group of this session the foreground one.
func makeForeground(fd, pgrp int) error {
	return os.NewSyscallError("ioctl TIOCSPGRP", unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, pgrp))
}

// control calls f with the descriptor of a terminal, which stays open and as it is meanwhile. The caller is not stopped for
// what it does there in the background.
func control(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	outer := raw.Control(func(fd uintptr) {
		_, err = quietly(func() (int, error) { return 0, call(int(fd)) })
	})
	return errors.Join(outer, err)
}
