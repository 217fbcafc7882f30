//go:build linux

package notify

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// legacyCalls are those that only this architecture has.
func legacyCalls(opens bool) (calls []call) {
	const bad = ^uintptr(0)
	for name, n := range map[string]uintptr{
		"creat": unix.SYS_CREAT, "mkdir": unix.SYS_MKDIR, "mknod": unix.SYS_MKNOD, "symlink": unix.SYS_SYMLINK,
		"link": unix.SYS_LINK, "rename": unix.SYS_RENAME,
	} {
		calls = append(calls, call{Name: name, Number: n, Args: [6]uintptr{bad, bad, bad}, Asked: true})
	}
	for _, flags := range openFlags {
		calls = append(calls, call{Name: fmt.Sprintf("open %#x", flags), Number: unix.SYS_OPEN, Args: [6]uintptr{bad, flags},
			Asked: opens || flags&unix.O_CREAT != 0, Want: unix.EFAULT})
	}
	for name, n := range map[string]uintptr{"unlink": unix.SYS_UNLINK, "rmdir": unix.SYS_RMDIR, "chmod": unix.SYS_CHMOD} {
		calls = append(calls, call{Name: name, Number: n, Args: [6]uintptr{bad, bad}, Want: unix.EFAULT})
	}
	return calls
}
