//go:build amd64 || arm64

// Package load puts filters on the calling process.
//
// It exists for tests, in a child that was executed for the purpose: nothing takes a filter off again. A sandbox gets
// its filters from its launch program (package ns), not from here.
package load

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Load sets no_new_privs and then every program, in order, on all threads of the process (seccomp(2), TSYNC). It names
// the step that failed. After an error some of the programs may be in force.
func Load(programs ...[]byte) error {
	// TSYNC copies no_new_privs to the other threads along with the filters.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", err)
	}
	for i, p := range programs {
		if err := load(p); err != nil {
			return fmt.Errorf("filter %d: %w", i, err)
		}
	}
	return nil
}

func load(program []byte) error {
	thread, err := set(program, unix.SECCOMP_FILTER_FLAG_TSYNC)
	if err == nil && thread != 0 {
		return fmt.Errorf("seccomp(SECCOMP_SET_MODE_FILTER): thread %d has other filters", thread)
	}
	return err
}

// Listen sets no_new_privs and then the program, on the calling thread alone, and returns the program's listener, a
// descriptor that is the caller's to close. The caller has locked its goroutine to the thread and never unlocks it.
func Listen(program []byte) (fd int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", err)
	}
	return set(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
}

// set loads one program and returns what the kernel does: with NEW_LISTENER a descriptor, with TSYNC a thread's number.
func set(program []byte, flags uintptr) (int, error) {
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	if len(program) == 0 || len(program)%size != 0 {
		return -1, errors.New("not an array of struct sock_filter")
	}
	insns := make([]unix.SockFilter, len(program)/size)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&insns[0])), len(program)), program)
	prog := unix.SockFprog{Len: uint16(len(insns)), Filter: &insns[0]}
	r, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(insns)
	if errno != 0 {
		return -1, fmt.Errorf("seccomp(SECCOMP_SET_MODE_FILTER): %w", errno)
	}
	return int(r), nil
}
