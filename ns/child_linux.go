package ns

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns/internal/rlimit"
)

// What runs between clone and exec is in this file (the hand-over and the program) and in init_linux.go (pid 1 and the
// command), and nowhere else. The process is a copy of one thread of a Go program, so nothing in them may allocate, grow
// the stack, call the scheduler or panic: every function is nosplit, data is reached through pointers prepared by
// the host side, and every result that matters is checked.

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
