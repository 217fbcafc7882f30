package ns

import _ "unsafe" // for go:linkname

// The three functions that package syscall itself calls around fork. They block signals and make any attempt to grow
// the stack a crash; in the parent they undo that, in a child they reset handlers and the signal mask. The runtime
// promises not to change them (golang.org/issue/67401). Their bodies are elsewhere, hence fork.s.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// vfork is clone(2) with flags that hold CLONE_VM and CLONE_VFORK. The caller's process continues once the child has
// executed a program or ended; until then the child must not return from the function that called vfork.
//
//go:noescape
func vfork(trap, flags uintptr) (pid, errno uintptr)
