package probe

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// The questions that this process can ask itself: each call is made in a way that changes nothing, and that the kernel
// answers before it looks at rights.

const works = "works"

// knows tells whether the kernel knows a call that was made wrong on purpose: want is what it says to the mistake.
func knows(err, want error) (int, string, error) {
	switch {
	case errors.Is(err, want):
		return 1, works, nil
	case err == nil:
		return 0, "", errors.New("the kernel accepted what cannot be")
	}
	return 0, errnoText(err), err
}

func askOpenat2() (int, string, error) {
	// Not as a place only (O_PATH): a sandbox of srt around this one answers that by ENOSYS, and srt does without it then.
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_DIRECTORY | unix.O_CLOEXEC})
	if err != nil {
		return 0, errnoText(err), err
	}
	return 1, works, unix.Close(fd)
}

// askMountSetattr passes a flag that there is none of, which is looked at first.
func askMountSetattr() (int, string, error) {
	return knows(unix.MountSetattr(-1, "", 1<<31, &unix.MountAttr{}), unix.EINVAL)
}

// askLandlock tells the version. EOPNOTSUPP is of a kernel that has Landlock and was booted without it (landlock(7)).
func askLandlock() (int, string, error) {
	abi, err := syscall.LandlockGetABIVersion()
	if errors.Is(err, unix.EOPNOTSUPP) {
		if abi = landlockWithin(); abi > 0 {
			return abi, fmt.Sprintf("ABI version %d, for srt within a sandbox of srt", abi), nil
		}
	}
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, "built into the kernel, but not switched on at boot (" + errnoText(err) + ")", err
	case errors.Is(err, unix.ENOSYS):
		return 0, "not built into this kernel, " + kernelName() + " (" + errnoText(err) + ")", err
	case err != nil:
		return 0, "refused by a system call filter (" + errnoText(err) + ")", refusal{err}
	}
	return abi, fmt.Sprintf("ABI version %d", abi), nil
}

// kernelName is what the kernel calls itself and its release.
func kernelName() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "which does not tell its release"
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

// askSeccomp loads a filter without a program: EFAULT is of a kernel that has filters (seccomp(2)).
func askSeccomp() (int, string, error) {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0)
	return knows(errno, unix.EFAULT)
}

// noListener is why there is no listener, in a few words.
var noListener = map[notify.Reason]string{
	notify.ReasonKernel:   "the kernel has none that srt can use",
	notify.ReasonLayout:   "the kernel's have another layout than this srt knows",
	notify.ReasonYama:     "kernel.yama.ptrace_scope is 3, so no process may read another's memory",
	notify.ReasonListener: "another sandbox or container listens to this process already",
	notify.ReasonRefused:  "a surrounding filter refuses system call filters",
	notify.ReasonProc:     "/proc counts processes as another pid namespace does",
}

func askNotify() (int, string, error) {
	err := notify.Available()
	no, told := errors.AsType[*notify.UnavailableError](err)
	switch {
	case err == nil:
		return 1, works, nil
	case !told || no.Reason == notify.ReasonUnknown:
		return 0, "", err
	case no.Reason == notify.ReasonKernel || no.Reason == notify.ReasonLayout:
		return 0, noListener[no.Reason], lack{err}
	}
	return 0, noListener[no.Reason], refusal{err}
}

// askPidfdGetfd takes a descriptor from this very process, which nothing but a filter refuses.
func askPidfdGetfd() (int, string, error) {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return 0, "pidfd_open: " + errnoText(err), err
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, pidfd, 0)
	if err != nil {
		return 0, errnoText(err), err
	}
	return 1, works, unix.Close(fd)
}

// askProcessVM reads nothing from this very process.
func askProcessVM() (int, string, error) {
	if _, err := unix.ProcessVMReadv(os.Getpid(), nil, nil, 0); err != nil {
		return 0, errnoText(err), err
	}
	return 1, works, nil
}

// askPtrace reads what Yama allows (Documentation/admin-guide/LSM/Yama.rst): in a sandbox's own user namespace srt has
// CAP_SYS_PTRACE, elsewhere it needs to be an ancestor, or that capability.
func askPtrace() (int, string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	scope := strings.TrimSpace(string(text))
	switch {
	case errors.Is(err, unix.ENOENT):
		return 1, "no Yama", nil
	case err != nil:
		return 0, "", err
	}
	found := "kernel.yama.ptrace_scope is " + scope
	if scope == "0" || scope == "1" || scope == "2" && holds(unix.CAP_SYS_PTRACE) {
		return 1, found, nil
	}
	return 0, found, refusal{errors.New(found)}
}

// holds tells whether this process has a capability in effect.
func holds(capability int) bool {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&head, &data[0]) == nil && data[capability/32].Effective&(1<<(capability%32)) != 0
}

func askBPF() (int, string, error) {
	if err := bpf.Supported(); err != nil {
		return 0, "", refusal{err}
	}
	return 1, works, nil
}
