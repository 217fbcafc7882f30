package ns

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The two functions that package syscall itself calls around fork. They block signals and make any attempt to grow the
// stack a crash; in the parent they undo that. The runtime promises not to change them (golang.org/issue/67401). Their
// bodies are elsewhere, hence fork.s.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

// vfork is clone(2) with flags that hold CLONE_VM and CLONE_VFORK. The caller's process continues once the child has
// executed a program or ended; until then the child must not return from the function that called vfork.
//
//go:noescape
func vfork(trap, flags uintptr) (pid, errno uintptr)

// forkOn is clone(2) without CLONE_VM. The child calls the function that lies on the stack given, at stackArgument.
//
//go:noescape
func forkOn(flags, stack, tls uintptr) (pid, errno uintptr)

// launchpad is the memory with which a forked process begins. It is in memory that is shared with the host side.
type launchpad struct {
	stack [16 << 10]byte
	// tls is what thread-local storage ends at on amd64, where the compiler loads the current goroutine from it after a call of
	// assembly: none. Where C code is linked in, such variables lie as far before the end as there are others (the ABI's
	// supplement for x86-64 thread-local storage).
	tls [64 << 10]byte
	_   [64]byte
	own forkedProcess
}

// entry prepares the stack for forkOn, whose child begins with forked. What the process is to be (own) may be set later.
func (pad *launchpad) entry() (stack, tls uintptr) {
	stack = uintptr(unsafe.Pointer(&pad.stack)) + unsafe.Sizeof(pad.stack) - 64
	begin := forked
	at := stack + stackArgument
	*(*uintptr)(pointer(at)) = uintptr(unsafe.Pointer(&pad.own))
	*(*uintptr)(pointer(at + 8)) = **(**uintptr)(unsafe.Pointer(&begin)) // the address of its code
	return stack, uintptr(unsafe.Pointer(&pad.tls)) + unsafe.Sizeof(pad.tls)
}

// forkedProcess is what a new process is to be: exactly one of these.
type forkedProcess struct {
	child      *child
	supervisor *child // of a confined sandbox
	hand       *handState
}

// forked is the first function of a forked process. What is said at the top of child_linux.go holds for it.
//
//go:norace
//go:nosplit
func forked(p *forkedProcess) {
	if p.hand != nil {
		handMain(p.hand)
	}
	if p.supervisor != nil {
		supervisorMain(p.supervisor)
	}
	childMain(p.child)
}

// fork makes a process that is a copy of this one but for its heap, and begins on pad, which is in memory that the two
// share: keep, in which is all that the process needs.
func fork(flags Namespaces, pad *launchpad, keep ...[]byte) (uintptr, syscall.Errno) {
	sp, tls := pad.entry()
	runtime.LockOSThread() // the mask is the thread's
	defer runtime.UnlockOSThread()
	if pad.own.child != nil {
		var mask unix.Sigset_t
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, nil, &mask); err != nil {
			return 0, unix.EINVAL // of what it is asked here it has no other error (rt_sigprocmask(2))
		}
		pad.own.child.blocked = mask.Val[0]
	}
	// Package os copies this process as well, where namespaces are asked for, and its copies need the heap.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	heap.leaveOut(uintptr(unsafe.Pointer(pad)), keep...)
	defer heap.takeIn()
	return forkRaw(uintptr(flags)|unix.CLONE_SETTLS|uintptr(unix.SIGCHLD), sp, tls)
}

// forkRaw is the clone itself. Between beforeFork and afterFork nothing in this process may grow the stack, hence one small
// function.
//
//go:norace
func forkRaw(flags, stack, tls uintptr) (uintptr, syscall.Errno) {
	beforeFork()
	pid, errno := forkOn(flags, stack, tls)
	afterFork()
	return pid, syscall.Errno(errno)
}
