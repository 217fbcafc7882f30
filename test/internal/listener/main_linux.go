// Command listener runs a program under a system call filter that allows everything and has a listener that nobody asks:
// what a program finds that is started by another sandbox of this kind. The kernel gives no second listener (EBUSY,
// seccomp(2)).
package main

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "listener:", err)
		os.Exit(125)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: listener program [argument...]")
	}
	runtime.LockOSThread() // the filter is this thread's, which execs
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	prog := unix.SockFprog{Len: 1, Filter: &allow}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("load a filter with a listener: %w", errno)
	}
	// The listener counts as long as somebody holds it.
	if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep the listener: %w", err)
	}
	return fmt.Errorf("%s: %w", args[0], unix.Exec(args[0], args, os.Environ()))
}
