//go:build amd64 || arm64

package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// observedCalls are those of the observer's filters, loaded without a listener: what would be told fails with ENOSYS, and what
// is not told with what the kernel says of arguments that mean nothing.
func observedCalls(filter string) []call {
	bad := ^uintptr(0)
	var calls []call
	for name, n := range observedAlways {
		calls = append(calls, asked(name, n, unix.ENOSYS, bad, bad, bad, bad)...)
	}
	reads := unix.ENOSYS
	if filter == "observe-writes" {
		reads = unix.EFAULT
		calls = append(calls, asked("execve", observedReads["execve"], unix.EFAULT, bad)...)
		calls = append(calls, asked("chdir", observedReads["chdir"], unix.EFAULT, bad)...)
	} else {
		for name, n := range observedReads {
			calls = append(calls, asked(name, n, unix.ENOSYS, bad, bad)...)
		}
	}
	for _, flags := range []uintptr{0, 0x1, 0x2, 0x40, 0x200, 0x80000, 0x10000, 0x400, 0x800, high, high | 0x200, 0x200000} {
		want := reads
		if flags&0x243 != 0 {
			want = unix.ENOSYS
		}
		name := fmt.Sprintf("open with %#x", flags)
		calls = append(calls, asked(name, callOpen, want, bad, flags)...)
		calls = append(calls, asked(name+" at", callOpenat, want, bad, bad, flags)...)
	}
	return calls
}
