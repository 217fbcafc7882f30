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
// socket pair of protocol.go, and everything from firstFree on is what pid 1 holds (Command.Hold) and, after that, what the
// program itself opens.
const (
	ctlFD     = 3
	firstFree = 4
	// atFDCWD is AT_FDCWD as a register holds it.
	atFDCWD = ^uintptr(99)
	// scratchFD is above any number that the hand-over puts in place.
	scratchFD = 10
)

// script is what the interpreter runs: steps, and a slot for each result.
type script struct {
	steps  *step
	nsteps int
	slots  *uintptr
}

// child is all that the new process needs. It is in the program's memory, which the host side shares until the program
// starts: what it writes before the word to go on is seen here.
type child struct {
	script
	ahead    script     // what is run before the word to go on (Program.Ahead)
	streams  [4]uintptr // standard streams and the socket, as numbered in the host process
	scratch  [4]uintptr
	msg      [4]uint32
	parcel           // for the word to go on
	held     uintptr // how many descriptors came with it, at the numbers from firstFree on
	errno    uintptr
	session  Session
	tty      uintptr
	main     uintptr // pid of the command
	target   uintptr // what signals go to: main or its process group
	status   int32
	pgrp     int32
	sigmask  uint64
	siginfo  [128]byte
	sigfd    uintptr
	poll     [2]pollFD
	bare     uintptr // the program has left no capability
	capHead  capHeader
	capData  [2]capData
	noFile   rlimit.Limit
	core     rlimit.Limit // RLIMIT_CORE of the command, if cored is not 0
	cored    uintptr
	null     uintptr // Command.Null; what is put there is the last descriptor that came with the word to go on
	reply    uintptr // where failures are reported: ctlFD, but for a command whose null is at that number
	blocked  uint64  // signal mask of the command: that of the thread that forked
	action   sigaction
	execs    *uintptr // candidate paths, in order
	nexecs   int
	argv     *uintptr
	restrict uint32 // slot of the command's own ruleset, 0 for none (Program.RestrictCommand)
	confinement
	shArgv *uintptr // argv for a script without an interpreter line: sh, path, arguments
	sh     uintptr
	envp   *uintptr
}

// confinement is what a confined sandbox needs beyond that.
type confinement struct {
	confined          uintptr
	scoped            uintptr   // the process is in a domain that scopes signals
	scope             [3]uint64 // struct landlock_ruleset_attr
	second, secondTLS uintptr   // with which the supervisor begins
	keeper            uintptr   // its process id
	keeperStatus      int32
	keeperName        [16]byte
}

// sigaction is the kernel's structure of that name; handler is where it has the handler, 0 for the default action.
type sigaction struct {
	handler uintptr
	_       [3]uint64
}

const (
	sigIgnored = 1 // SIG_IGN
	signals    = 64
)

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
	if errno := dropHandlers(c); errno != 0 {
		fail(c, programFixed, fixedSignals, errno)
	}
	if step, errno := handOver(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	if c.confined != 0 {
		if step, errno := confine(c); errno != 0 {
			fail(c, programFixed, step, errno)
		}
	}
	if c.ahead.nsteps != 0 {
		if step, errno := runProgram(&c.ahead); errno != 0 {
			fail(c, programSetup, step, errno)
		}
		if errno := closeFrom(firstFree); errno != 0 { // what comes with the word to go on takes these numbers
			fail(c, programFixed, fixedCloseRange, errno)
		}
	}
	if step, errno := awaitGo(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	if step, errno := runProgram(&c.script); errno != 0 {
		fail(c, programSetup, uintptr(c.ahead.nsteps)+step, errno)
	}
	if step, errno := becomeInit(c); errno != 0 {
		fail(c, programFixed, step, errno)
	}
	for {
		supervise(c)
	}
}

// dropHandlers gives every signal that has a handler its default action: handlers are for the program that this is a copy of. What
// is ignored stays ignored (execve(2)).
//
//go:norace
//go:nosplit
func dropHandlers(c *child) uintptr {
	for sig := uintptr(1); sig <= signals; sig++ {
		c.action = sigaction{}
		sys(syscall.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&c.action)), 8, 0, 0)
		if c.action.handler <= sigIgnored {
			continue
		}
		c.action = sigaction{}
		if _, errno := sys(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&c.action)), 0, 8, 0, 0); errno != 0 {
			return errno
		}
	}
	return 0
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

// awaitGo waits for the word that the program is written and the identities are mapped, and takes what pid 1 is to hold.
// Without the word the host side is gone.
//
//go:norace
//go:nosplit
func awaitGo(c *child) (step, errno uintptr) {
	n, errno := receive(&c.parcel)
	switch {
	case errno != 0:
		return fixedGo, errno
	case n != msgSize || c.msg[0] != msgGo:
		return fixedGo, uintptr(syscall.ESHUTDOWN)
	case !placed(&c.parcel, uintptr(c.msg[1])):
		return fixedHold, uintptr(syscall.EMFILE)
	}
	c.held = uintptr(c.msg[1])
	return 0, 0
}

//go:norace
//go:nosplit
func closeFrom(first uintptr) uintptr {
	_, errno := sys(unix.SYS_CLOSE_RANGE, first, 1<<32-1, 0, 0, 0, 0)
	return errno
}

// send sends c.msg to the host side.
//
//go:norace
//go:nosplit
func send(c *child) (uintptr, uintptr) {
	return sys(syscall.SYS_SENDTO, c.reply, uintptr(unsafe.Pointer(&c.msg)), msgSize, unix.MSG_NOSIGNAL, 0, 0)
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
