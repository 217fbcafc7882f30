//go:build amd64 || arm64

package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// changesCalls are those of changes, loaded without a listener: what would be asked fails with ENOSYS.
func changesCalls() []call {
	bad := ^uintptr(0)
	var calls []call
	for _, list := range []map[string]numbers{askedAlways, changedAlways} {
		for name, n := range list {
			calls = append(calls, asked(name, n, unix.ENOSYS, bad, bad, bad, bad)...)
		}
	}
	for _, flags := range []uintptr{0, 0x80000, 0x410000, 0x200000, 0x400, high, 0x1, 0x2, 0x40, 0x200, 0x410002, high | 0x40, 0x200041} {
		want := unix.EFAULT
		if flags&0x243 != 0 {
			want = unix.ENOSYS
		} else if flags&0x400000 != 0 {
			want = unix.EINVAL // O_TMPFILE that could not be written to
		}
		name := fmt.Sprintf("open with %#x", flags)
		calls = append(calls, asked(name, callOpen, want, bad, flags)...)
		calls = append(calls, asked(name+" at", callOpenat, want, bad, bad, flags)...)
	}
	for name, n := range numberedCalls {
		calls = append(calls, asked(name+" of 1", n, unix.ENOSYS, 1, bad, bad, bad)...)
		calls = append(calls, asked(name+" of -1", n, unix.ENOSYS, bad, bad, bad, bad)...)
	}
	own := numberedCalls["prlimit64"]
	calls = append(calls, asked("prlimit64 of 0", own, unix.EINVAL, 0, 1000)...)
	calls = append(calls, asked("prlimit64 of 0 high", own, unix.EINVAL, high, 1000)...)
	calls = append(calls, asked("setpriority of 0", callSetpriority, 0, 0, 0, 19)...)
	calls = append(calls, asked("setpriority of 1", callSetpriority, unix.ENOSYS, 0, 1, 19)...)
	calls = append(calls, asked("setpriority of a group", callSetpriority, unix.ENOSYS, 1, 0, 19)...)
	calls = append(calls, asked("ioprio_set of 0", callIoprioSet, unix.EINVAL, 1, 0, 0xffff)...)
	calls = append(calls, asked("ioprio_set of 1", callIoprioSet, unix.ENOSYS, 1, 1, 0xffff)...)
	calls = append(calls, asked("ioprio_set of a user", callIoprioSet, unix.ENOSYS, 3, 0, 0xffff)...)
	for _, request := range attributeRequests {
		calls = append(calls, asked(fmt.Sprintf("ioctl %#x", request), callIoctl, unix.EOPNOTSUPP, bad, uintptr(request))...)
		calls = append(calls, asked(fmt.Sprintf("ioctl %#x high", request), callIoctl, unix.EOPNOTSUPP, bad, high|uintptr(request))...)
	}
	calls = append(calls, asked("ioctl of f2fs", callIoctl, unix.EOPNOTSUPP, bad, 0x4004f50d)...)
	calls = append(calls, asked("FS_IOC_GETFLAGS", callIoctl, unix.EBADF, bad, 0x80086601)...)
	calls = append(calls, asked("FICLONE", callIoctl, unix.EBADF, bad, 0x40049409)...)
	for n, errno := range changedNewer {
		calls = append(calls, asked(fmt.Sprintf("call %d", n), numbers{n, n}, unix.Errno(errno), bad, bad, bad, bad)...)
	}
	return append(append(calls, ioctlNamesCalls()...), asked("landlock_create_ruleset", callLandlock, unix.EOPNOTSUPP, 0, 0, 1)...)
}

// confinedCalls are those of confined.
func confinedCalls() []call {
	bad := ^uintptr(0)
	var calls []call
	for name, n := range hostIPC {
		calls = append(calls, asked(name, n, unix.ENOSYS, bad, bad, bad, bad)...)
	}
	return calls
}
