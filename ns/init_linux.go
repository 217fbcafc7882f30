package ns

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the new process becomes when its program is done: pid 1 of the sandbox, and the command that pid 1 starts. The
// restrictions at the top of child_linux.go hold here too.

// becomeInit turns the process into pid 1, or into the keeper of a confined sandbox, which does not return from here.
//
//go:norace
//go:nosplit
func becomeInit(c *child) (step, errno uintptr) {
	kept := firstFree + c.held
	if c.restrict != 0 {
		if set := *slot(&c.script, c.restrict); set != kept {
			if _, errno = sys(unix.SYS_DUP3, set, kept, unix.O_CLOEXEC, 0, 0, 0); errno != 0 {
				return fixedRestrict, errno
			}
		}
		kept++
	}
	if errno = closeFrom(kept); errno != 0 {
		return fixedCloseRange, errno
	}
	c.tty = none
	if c.session == SessionForeground {
		if c.tty, errno = sys(syscall.SYS_FCNTL, 0, unix.F_DUPFD_CLOEXEC, scratchFD, 0, 0, 0); errno != 0 {
			return fixedTerminal, errno
		}
	}
	c.sigmask = 1<<(uint(unix.SIGCHLD)-1) | 1<<(sigcont-1)
	sigfd, errno := sys(unix.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&c.sigmask)), 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK, 0, 0)
	if errno != 0 {
		return fixedSignalFD, errno
	}
	c.msg = [4]uint32{msgReady}
	if _, errno = send(c); errno != 0 {
		return fixedReady, errno
	}
	c.sigfd = sigfd
	if c.confined != 0 {
		return stepBack(c)
	}
	return startCommand(c)
}

// startCommand starts the command and gives up all that only the set-up needed.
//
//go:norace
//go:nosplit
func startCommand(c *child) (step, errno uintptr) {
	// The command shares this memory until it executes a program, which saves copying it a second time.
	pid, errno := vfork(syscall.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD))
	if errno != 0 {
		return fixedFork, errno
	}
	if pid == 0 {
		becomeCommand(c)
	}
	c.reply = ctlFD // the command's copy of it may be elsewhere
	c.main = pid
	c.target = -c.main
	if c.session == SessionShared {
		c.target = c.main
	}
	if c.bare == 0 { // else there is nothing to give up, and where a filter puts the call to srt it would cost a round trip
		if _, errno = sys(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.capHead)), uintptr(unsafe.Pointer(&c.capData)), 0, 0, 0, 0); errno != 0 {
			return fixedCapset, errno
		}
	}
	for i := range uintptr(3) {
		sys(syscall.SYS_CLOSE, i, 0, 0, 0, 0, 0)
	}
	if c.restrict != 0 {
		sys(syscall.SYS_CLOSE, firstFree+c.held, 0, 0, 0, 0, 0)
	}
	c.poll = [2]pollFD{{fd: ctlFD, events: unix.POLLIN}, {fd: int32(c.sigfd), events: unix.POLLIN}}
	return 0, 0
}

// supervise waits for one event and answers it. It ends the process, and with it the sandbox, when the command has
// ended or the host side is gone.
//
//go:norace
//go:nosplit
func supervise(c *child) {
	sys(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&c.poll)), 2, 0, 0, 0, 0)
	if c.poll[0].revents != 0 {
		answer(c)
	}
	if c.poll[1].revents != 0 {
		sys(syscall.SYS_READ, uintptr(c.poll[1].fd), uintptr(unsafe.Pointer(&c.siginfo)), unsafe.Sizeof(c.siginfo), 0, 0, 0)
		reap(c)
		if c.confined != 0 && orphaned(c) {
			leave(c, hostGone)
		}
	}
}

// answer carries out one message of the host side. No message, in any form, means that the host side is gone.
//
//go:norace
//go:nosplit
func answer(c *child) {
	n, errno := sys(syscall.SYS_RECVFROM, ctlFD, uintptr(unsafe.Pointer(&c.msg)), msgSize, unix.MSG_DONTWAIT, 0, 0)
	if errno == uintptr(syscall.EAGAIN) || errno == uintptr(syscall.EINTR) {
		return
	}
	if errno != 0 || n != msgSize {
		leave(c, hostGone)
	}
	switch c.msg[0] {
	case msgSignal:
		sys(syscall.SYS_KILL, c.target, uintptr(c.msg[1]), 0, 0, 0, 0)
	case msgResume:
		if c.tty != none && c.msg[1] != 0 {
			foreground(c, c.tty, c.main)
		}
		sys(syscall.SYS_KILL, c.target, uintptr(unix.SIGCONT), 0, 0, 0, 0)
	}
}

// hostGone in the place of a status says that nobody waits for one.
const hostGone = 1 << 8

// leave ends pid 1, and the sandbox with it. What pid 1 holds must outlast the others, so it ends them and waits until they
// are gone: the kernel does the same when pid 1 ends, but only after it has closed pid 1's descriptors.
//
//go:norace
//go:nosplit
func leave(c *child, status uintptr) {
	if c.confined != 0 {
		leaveConfined(c, status)
	}
	if status == hostGone {
		status = 1
	}
	if c.held == 0 {
		exit(status)
	}
	sys(syscall.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0, 0, 0, 0)
	for errno := uintptr(0); errno == 0 || errno == uintptr(syscall.EINTR); { // until ECHILD
		_, errno = sys(syscall.SYS_WAIT4, ^uintptr(0), 0, syscall.WALL, 0, 0, 0)
	}
	exit(status)
}

// reap collects every child that has ended: orphans of the sandbox are ours. When it was the command, its status
// becomes this process's.
//
//go:norace
//go:nosplit
func reap(c *child) {
	for {
		pid, errno := sys(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&c.status)), unix.WNOHANG|unix.WUNTRACED, 0, 0, 0)
		if errno != 0 || pid == 0 {
			return
		}
		if pid != c.main {
			continue
		}
		w := syscall.WaitStatus(c.status)
		if w&0x7f == 0 {
			leave(c, uintptr(w>>8&0xff))
		}
		if w&0xff == 0x7f {
			c.msg = [4]uint32{msgStopped, uint32(w >> 8 & 0xff)}
			send(c)
			continue
		}
		leave(c, 128+uintptr(w&0x7f))
	}
}

// becomeCommand is pid 2: it takes its place on the terminal and becomes the command. It does not return.
//
//go:norace
//go:nosplit
func becomeCommand(c *child) {
	var errno uintptr
	switch c.session {
	case SessionNew:
		_, errno = sys(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	case SessionTerminal:
		if _, errno = sys(syscall.SYS_SETSID, 0, 0, 0, 0, 0, 0); errno == 0 {
			_, errno = sys(syscall.SYS_IOCTL, 0, unix.TIOCSCTTY, 0, 0, 0, 0)
		}
	case SessionForeground:
		if _, errno = sys(syscall.SYS_SETPGID, 0, 0, 0, 0, 0, 0); errno == 0 {
			pid, _ := sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
			errno = foreground(c, 0, pid)
		}
	}
	if errno != 0 {
		fail(c, programFixed, fixedTerminal, errno)
	}
	if c.restrict != 0 { // before the null device, which may take the ruleset's number
		if step, errno := restrictCommand(c); errno != 0 {
			fail(c, programFixed, step, errno)
		}
	}
	if c.null != 0 {
		if errno = openNull(c); errno != 0 {
			fail(c, programFixed, fixedNull, errno)
		}
	}
	// After this a number above the limit could not be had any more.
	if _, errno = sys(unix.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&c.noFile)), 0, 0, 0); errno != 0 {
		fail(c, programFixed, fixedLimit, errno)
	}
	if c.cored != 0 {
		if _, errno = sys(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&c.core)), 0, 0, 0); errno != 0 {
			fail(c, programFixed, fixedLimit, errno)
		}
	}
	// As a child of package syscall has it. No handler is left that a signal could call (dropHandlers).
	if _, errno = sys(syscall.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&c.blocked)), 0, 8, 0, 0); errno != 0 {
		fail(c, programFixed, fixedSignals, errno)
	}
	fail(c, programExec, 0, execute(c))
}

// openNull puts the null device at the number that Command.Null asks for, whatever is there: every other descriptor but the
// standard streams is one of pid 1's, of which this process has copies until it executes the command.
//
//go:norace
//go:nosplit
func openNull(c *child) (errno uintptr) {
	if c.null == ctlFD {
		if c.reply, errno = sys(syscall.SYS_FCNTL, ctlFD, unix.F_DUPFD_CLOEXEC, scratchFD, 0, 0, 0); errno != 0 {
			c.reply = ctlFD
			return errno
		}
	}
	fd := firstFree + c.held - 1
	if fd == c.null {
		_, errno = sys(syscall.SYS_FCNTL, fd, unix.F_SETFD, 0, 0, 0, 0)
		return errno
	}
	_, errno = sys(unix.SYS_DUP3, fd, c.null, 0, 0, 0, 0)
	return errno
}

// foreground makes a process group the one in the foreground of a terminal. Signals are blocked here, so a group in the
// background is allowed to do it (tcsetpgrp(3)).
//
//go:norace
//go:nosplit
func foreground(c *child, tty, pgrp uintptr) uintptr {
	c.pgrp = int32(pgrp)
	_, errno := sys(syscall.SYS_IOCTL, tty, unix.TIOCSPGRP, uintptr(unsafe.Pointer(&c.pgrp)), 0, 0, 0)
	return errno
}

// execute tries the candidates in order, as execvp(3) does, and returns the error that describes them best.
//
//go:norace
//go:nosplit
func execute(c *child) uintptr {
	result := uintptr(syscall.ENOENT)
	for i := range c.nexecs {
		path := *(*uintptr)(unsafe.Add(unsafe.Pointer(c.execs), uintptr(i)*unsafe.Sizeof(uintptr(0))))
		_, errno := sys(syscall.SYS_EXECVE, path, uintptr(unsafe.Pointer(c.argv)), uintptr(unsafe.Pointer(c.envp)), 0, 0, 0)
		switch syscall.Errno(errno) {
		case syscall.ENOENT, syscall.ENOTDIR:
		case syscall.EACCES:
			// A directory on the way that may not be searched hides whether there is such a program: not found.
			if _, hidden := sys(unix.SYS_FACCESSAT, atFDCWD, path, 0, 0, 0, 0); hidden == 0 {
				result = errno
			}
		case syscall.ENOEXEC:
			*(*uintptr)(unsafe.Add(unsafe.Pointer(c.shArgv), unsafe.Sizeof(uintptr(0)))) = path
			if _, e := sys(syscall.SYS_EXECVE, c.sh, uintptr(unsafe.Pointer(c.shArgv)), uintptr(unsafe.Pointer(c.envp)), 0, 0, 0); e != 0 {
				return errno
			}
		default:
			return errno
		}
	}
	return result
}
