package ns

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns/internal/rlimit"
)

// What runs between clone and exec is in this file, and in this file only. The process is a copy of one thread of a Go
// program, so nothing here may allocate, grow the stack, call the scheduler or panic: every function is nosplit, data is
// reached through pointers prepared by newChild, and every result that matters is checked.

// Descriptor numbers in the child, from its first steps on: 0 to 2 are the command's standard streams, ctlFD is the
// socket pair of protocol.go, and everything from firstFree on was opened by the program itself.
const (
	ctlFD     = 3
	firstFree = 4
	// atFDCWD is AT_FDCWD as a register holds it.
	atFDCWD = ^uintptr(99)
	// scratchFD is above any number that the hand-over puts in place.
	scratchFD = 10
)

// child is all that the new process needs. It is in the program's memory, which the host side shares until the program
// starts: what it writes before the word to go on is seen here.
type child struct {
	steps   *step
	nsteps  int
	slots   *uintptr
	streams [4]uintptr // standard streams and the socket, as numbered in the host process
	scratch [4]uintptr
	msg     [4]uint32
	errno   uintptr
	session Session
	tty     uintptr
	main    uintptr // pid of the command
	target  uintptr // what signals go to: main or its process group
	status  int32
	pgrp    int32
	sigmask uint64
	siginfo [128]byte
	poll    [2]pollFD
	capHead capHeader
	capData [2]capData
	noFile  rlimit.Limit
	execs   *uintptr // candidate paths, in order
	nexecs  int
	argv    *uintptr
	shArgv  *uintptr // argv for a script without an interpreter line: sh, path, arguments
	sh      uintptr
	envp    *uintptr
}

type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

type capHeader struct {
	version uint32
	pid     int32
}

type capData struct{ effective, permitted, inheritable uint32 }

// sys is one raw system call.
//
//go:norace
//go:nosplit
func sys(trap, a, b, c, d, e, f uintptr) (uintptr, uintptr) {
	r, _, errno := syscall.RawSyscall6(trap, a, b, c, d, e, f)
	return r, uintptr(errno)
}

// childMain is the first function of the new process. It does not return.
//
//go:norace
//go:nosplit
func childMain(c *child) {
	if step, errno := handOver(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	if step, errno := awaitGo(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	if step, errno := runProgram(c); errno != 0 {
		fail(c, programSetup, step, errno)
	}
	if step, errno := becomeInit(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	for {
		supervise(c)
	}
}

// handOver puts the descriptors that the child keeps at their places and closes every other one, those of other
// threads' half-made sandboxes included.
//
//go:norace
//go:nosplit
func handOver(c *child) (step, errno uintptr) {
	for i := range uintptr(4) {
		if c.scratch[i], errno = sys(syscall.SYS_FCNTL, c.streams[i], unix.F_DUPFD_CLOEXEC, scratchFD, 0, 0, 0); errno != 0 {
			return fixedStreams, errno
		}
	}
	for i := range uintptr(4) {
		flags := uintptr(0)
		if i == ctlFD {
			flags = unix.O_CLOEXEC
		}
		if _, errno = sys(unix.SYS_DUP3, c.scratch[i], i, flags, 0, 0, 0); errno != 0 {
			return fixedStreams, errno
		}
	}
	return fixedCloseRange, closeFrom(firstFree)
}

// awaitGo waits for the word that the program is written and the identities are mapped. Without it the host side is gone.
//
//go:norace
//go:nosplit
func awaitGo(c *child) (step, errno uintptr) {
	n, errno := sys(syscall.SYS_RECVFROM, ctlFD, uintptr(unsafe.Pointer(&c.msg)), msgSize, 0, 0, 0)
	if errno == 0 && (n != msgSize || c.msg[0] != msgGo) {
		errno = uintptr(syscall.ESHUTDOWN)
	}
	return fixedGo, errno
}

//go:norace
//go:nosplit
func closeFrom(first uintptr) uintptr {
	_, errno := sys(unix.SYS_CLOSE_RANGE, first, 1<<32-1, 0, 0, 0, 0)
	return errno
}

// runProgram interprets the set-up program.
//
//go:norace
//go:nosplit
func runProgram(c *child) (failed, errno uintptr) {
	for i := range c.nsteps {
		s := (*step)(unsafe.Add(unsafe.Pointer(c.steps), uintptr(i)*unsafe.Sizeof(step{})))
		if s.cond != 0 && (*slot(c, s.cond) == none) != s.unless {
			continue
		}
		if errno := runStep(c, s); errno != 0 {
			return uintptr(i), errno
		}
	}
	return 0, 0
}

//go:norace
//go:nosplit
func slot(c *child, n uint32) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(c.slots), uintptr(n-1)*unsafe.Sizeof(uintptr(0))))
}

//go:norace
//go:nosplit
func arg(c *child, s *step, i int) uintptr {
	if s.from[i] != 0 {
		return *slot(c, s.from[i])
	}
	return s.args[i]
}

// runStep runs one step and returns the error that ends the program, if any.
//
//go:norace
//go:nosplit
func runStep(c *child, s *step) uintptr {
	switch s.kind {
	case kindStore:
		*(*uint32)(pointer(s.args[0])) = uint32(arg(c, s, 1))
		return 0
	case kindExpect:
		if *(*uint64)(pointer(s.args[0]))&uint64(s.args[1]) != uint64(s.args[2]) {
			return s.args[3]
		}
		return 0
	}
	r, errno := sys(s.trap, arg(c, s, 0), arg(c, s, 1), arg(c, s, 2), arg(c, s, 3), arg(c, s, 4), arg(c, s, 5))
	if errno != 0 {
		r = none
		if errno != uintptr(s.tolerate[0]) && errno != uintptr(s.tolerate[1]) && errno != uintptr(s.tolerate[2]) {
			return errno
		}
	}
	if s.out != 0 {
		*slot(c, s.out) = r
	}
	return 0
}

// pointer turns an address that the host side took from a live object back into a pointer.
//
//go:norace
//go:nosplit
func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

// becomeInit turns the process into pid 1: it starts the command and gives up all that only the set-up needed.
//
//go:norace
//go:nosplit
func becomeInit(c *child) (step, errno uintptr) {
	if errno = closeFrom(firstFree); errno != 0 {
		return fixedCloseRange, errno
	}
	c.tty = none
	if c.session == SessionForeground {
		if c.tty, errno = sys(syscall.SYS_FCNTL, 0, unix.F_DUPFD_CLOEXEC, scratchFD, 0, 0, 0); errno != 0 {
			return fixedTerminal, errno
		}
	}
	c.sigmask = 1 << (uint(unix.SIGCHLD) - 1)
	sigfd, errno := sys(unix.SYS_SIGNALFD4, ^uintptr(0), uintptr(unsafe.Pointer(&c.sigmask)), 8, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK, 0, 0)
	if errno != 0 {
		return fixedSignalFD, errno
	}
	c.msg = [4]uint32{msgReady}
	if _, errno = send(c); errno != 0 {
		return fixedReady, errno
	}
	// The command shares this memory until it executes a program, which saves copying it a second time.
	pid, errno := vfork(syscall.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD))
	if errno != 0 {
		return fixedFork, errno
	}
	if pid == 0 {
		becomeCommand(c)
	}
	c.main = pid
	c.target = -c.main
	if c.session == SessionShared {
		c.target = c.main
	}
	if _, errno = sys(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.capHead)), uintptr(unsafe.Pointer(&c.capData)), 0, 0, 0, 0); errno != 0 {
		return fixedCapset, errno
	}
	for i := range uintptr(3) {
		sys(syscall.SYS_CLOSE, i, 0, 0, 0, 0, 0)
	}
	c.poll = [2]pollFD{{fd: ctlFD, events: unix.POLLIN}, {fd: int32(sigfd), events: unix.POLLIN}}
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
		exit(1)
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
			exit(uintptr(w >> 8 & 0xff))
		}
		if w&0xff == 0x7f {
			c.msg = [4]uint32{msgStopped, uint32(w >> 8 & 0xff)}
			send(c)
			continue
		}
		exit(128 + uintptr(w&0x7f))
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
	case SessionForeground:
		if _, errno = sys(syscall.SYS_SETPGID, 0, 0, 0, 0, 0, 0); errno == 0 {
			pid, _ := sys(syscall.SYS_GETPID, 0, 0, 0, 0, 0, 0)
			errno = foreground(c, 0, pid)
		}
	}
	if errno != 0 {
		fail(c, programFixed, fixedTerminal, errno)
	}
	if _, errno = sys(unix.SYS_PRLIMIT64, 0, syscall.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&c.noFile)), 0, 0, 0); errno != 0 {
		fail(c, programFixed, fixedLimit, errno)
	}
	afterForkInChild()
	fail(c, programExec, 0, execute(c))
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

// send sends c.msg to the host side.
//
//go:norace
//go:nosplit
func send(c *child) (uintptr, uintptr) {
	return sys(syscall.SYS_SENDTO, ctlFD, uintptr(unsafe.Pointer(&c.msg)), msgSize, unix.MSG_NOSIGNAL, 0, 0)
}

// fail reports the step that failed and ends the process; the command never runs.
//
//go:norace
//go:nosplit
func fail(c *child, program, step, errno uintptr) {
	c.msg = [4]uint32{msgFailed, uint32(program), uint32(step), uint32(errno)}
	if _, e := send(c); e != 0 && program == programFixed {
		// The socket is not at its place yet: it is still where the host side had it.
		sys(syscall.SYS_SENDTO, c.streams[ctlFD], uintptr(unsafe.Pointer(&c.msg)), msgSize, unix.MSG_NOSIGNAL, 0, 0)
	}
	exit(127)
}

//go:norace
//go:nosplit
func exit(status uintptr) {
	for {
		sys(syscall.SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0)
	}
}
