package escape

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests of this file ask the kernel directly; what is outside is the exit status of srt, which is the errno that the
// call ended with, or 128 and the signal.

var (
	eperm  = []unix.Errno{unix.EPERM}
	enosys = []unix.Errno{unix.ENOSYS}
	// Whichever wall answers: the filter, a missing capability, or a process that is not to be traced.
	refusal = []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EROFS}
)

// one is a test of calls that must end with one of some errors.
type one struct {
	name  string
	want  []unix.Errno
	calls []call
}

func each1(t *testing.T, list []one) {
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) { w.status(c.name, c.want, c.calls...) })
		})
	}
}

const (
	nestedNS = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	upper    = 1 << 40 // a bit that the kernel drops where it takes 32
)

// TestEscape_037_UnfilteredHelper: pid 1 of the sandbox, which no filter of the command's holds back, cannot be traced,
// written to, robbed of its descriptors, stopped or killed.
func TestEscape_037_UnfilteredHelper(t *testing.T) {
	iov := hex("\x00\x10\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00") // 8 bytes at 0x1000
	each1(t, []one{
		{"attach", eperm, []call{{unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0, 0}}},
		{"seize", eperm, []call{{unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0}}},
		{"read memory", eperm, []call{{unix.SYS_PROCESS_VM_READV, 1, iov, 1, iov, 1, 0}}},
		{"write memory", eperm, []call{{unix.SYS_PROCESS_VM_WRITEV, 1, iov, 1, iov, 1, 0}}},
		{"mem", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/mem", unix.O_RDWR, 0}}},
		{"take a descriptor", eperm, []call{{unix.SYS_PIDFD_OPEN, 1, 0}, {unix.SYS_PIDFD_GETFD, ret(0), 3, 0}}},
		{"descriptor by path", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/fd/3", unix.O_RDWR, 0}}},
		{"environment", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/environ", unix.O_RDONLY, 0}}},
		{"maps", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/maps", unix.O_RDONLY, 0}}},
		{"program", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/exe", unix.O_RDONLY, 0}}},
		{"root", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/root/etc", unix.O_RDONLY, 0}}},
		{"cwd", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/cwd", unix.O_RDONLY, 0}}},
		{"compare", eperm, []call{{unix.SYS_KCMP, 1, 1, 1, 0, 0}}},
	})
	each(t, func(t *testing.T, w *world) {
		o := w.sh(`for s in KILL STOP TERM HUP INT SEGV ABRT CHLD USR1 TRAP SYS PIPE; do kill -$s 1; done; sleep 0.1; exit 42`)
		if o.code != 42 {
			t.Errorf("pid 1 was reached by a signal: status %d", o.code)
		}
	})
}

// TestEscape_039_NestedNamespaces: none can be made by default, and none is entered (NET-83).
func TestEscape_039_NestedNamespaces(t *testing.T) {
	each1(t, []one{
		{"unshare user", eperm, []call{{unix.SYS_UNSHARE, unix.CLONE_NEWUSER}}},
		{"unshare mount", eperm, []call{{unix.SYS_UNSHARE, unix.CLONE_NEWNS}}},
		{"unshare both", eperm, []call{{unix.SYS_UNSHARE, nestedNS}}},
		{"unshare network", eperm, []call{{unix.SYS_UNSHARE, unix.CLONE_NEWNET}}},
		{"unshare pid", eperm, []call{{unix.SYS_UNSHARE, unix.CLONE_NEWPID}}},
		{"clone user", eperm, []call{{unix.SYS_CLONE, unix.CLONE_NEWUSER | int(unix.SIGCHLD), 0, 0, 0, 0}}},
		{"clone mount", eperm, []call{{unix.SYS_CLONE, unix.CLONE_NEWNS | int(unix.SIGCHLD), 0, 0, 0, 0}}},
		{"enter its own mount namespace", eperm, []call{{unix.SYS_OPENAT, at, "/proc/self/ns/mnt", 0, 0}, {unix.SYS_SETNS, ret(0), 0}}},
		{"enter that of pid 1", refusal, []call{{unix.SYS_OPENAT, at, "/proc/1/ns/user", 0, 0}}},
		{"enter a pidfd", eperm, []call{{unix.SYS_PIDFD_OPEN, 1, 0}, {unix.SYS_SETNS, ret(0), nestedNS}}},
		{"parent of a namespace", eperm, []call{{unix.SYS_OPENAT, at, "/proc/self/ns/user", 0, 0}, {unix.SYS_IOCTL, ret(0), unix.NS_GET_PARENT}}},
		{"raise the limit", []unix.Errno{unix.EROFS, unix.EACCES}, []call{{unix.SYS_OPENAT, at, "/proc/sys/user/max_user_namespaces", unix.O_WRONLY, 0}}},
	})
}

// TestEscape_040_MountAPI: CVE-2021-41133. Neither mount API is there.
func TestEscape_040_MountAPI(t *testing.T) {
	each1(t, []one{
		{"mount", eperm, []call{{unix.SYS_MOUNT, "none", "/tmp", "tmpfs", 0, 0}}},
		{"remount", eperm, []call{{unix.SYS_MOUNT, "none", "/", "", unix.MS_REMOUNT | unix.MS_BIND, 0}}},
		{"umount", eperm, []call{{unix.SYS_UMOUNT2, "/proc", unix.MNT_DETACH}}},
		{"pivot_root", eperm, []call{{unix.SYS_PIVOT_ROOT, ".", "."}}},
		{"chroot", eperm, []call{{unix.SYS_CHROOT, "."}}},
		{"open_tree", eperm, []call{{unix.SYS_OPEN_TREE, at, "/", 1}}},
		{"open_tree_attr", eperm, []call{{467, at, "/", 1, 0, 0}}},
		{"move_mount", eperm, []call{{unix.SYS_MOVE_MOUNT, at, "/", at, "/tmp", 0}}},
		{"fsopen", eperm, []call{{unix.SYS_FSOPEN, "tmpfs", 0}}},
		{"fsconfig", eperm, []call{{unix.SYS_FSCONFIG, 0, 6, 0, 0, 0}}},
		{"fsmount", eperm, []call{{unix.SYS_FSMOUNT, 0, 0, 0}}},
		{"fspick", eperm, []call{{unix.SYS_FSPICK, at, "/", 0}}},
		{"mount_setattr", eperm, []call{{unix.SYS_MOUNT_SETATTR, at, "/", 0, hex(make([]byte, 32)), 32}}},
	})
}

// TestEscape_041_Clone3: flags in memory, which no filter sees; C libraries fall back on ENOSYS.
func TestEscape_041_Clone3(t *testing.T) {
	args := make([]byte, 88)
	args[3] = byte(unix.CLONE_NEWUSER >> 24)
	each1(t, []one{{"clone3", enosys, []call{{unix.SYS_CLONE3, hex(args), len(args)}}}})
}

// TestEscape_042_WrongArchSyscall: a call through another architecture's door ends the process.
func TestEscape_042_WrongArchSyscall(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("int 0x80 and x32 are doors of amd64 alone")
	}
	const killed = 128 + int(unix.SIGSYS)
	for name, calls := range map[string][]call{
		"int 0x80 getpid":   {{"i:20"}},
		"int 0x80 unshare":  {{"i:310", nestedNS}},
		"int 0x80 socket":   {{"i:359", unix.AF_UNIX, unix.SOCK_STREAM, 0}},
		"x32 getpid":        {{0x40000000 + unix.SYS_GETPID}},
		"x32 unshare":       {{0x40000000 + unix.SYS_UNSHARE, nestedNS}},
		"x32 ptrace":        {{0x40000000 + 521, 0}},
		"x32 of nothing":    {{0x40000000 + 999}},
		"x32 and upper bit": {{0x40000000 + unix.SYS_GETPID + upper}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				if o := w.attack(calls...); o.code != killed {
					t.Errorf("status %d, want %d\n%s", o.code, killed, o.err)
				}
			})
		})
	}
}

// TestEscape_043_UpperBits: CVE-2019-10063. A bit above the 32 that the kernel looks at passes no filter.
func TestEscape_043_UpperBits(t *testing.T) {
	each1(t, []one{
		{"unix socket", eperm, []call{{unix.SYS_SOCKET, unix.AF_UNIX + upper, unix.SOCK_DGRAM + upper, 0}}},
		{"packet socket", eperm, []call{{unix.SYS_SOCKET, unix.AF_PACKET + upper, unix.SOCK_RAW, 0}}},
		{"datagram pair", eperm, []call{{unix.SYS_SOCKETPAIR, unix.AF_UNIX + upper, unix.SOCK_DGRAM + upper, 0, hex(make([]byte, 8))}}},
		{"TIOCSTI", eperm, []call{{unix.SYS_IOCTL, 0, unix.TIOCSTI + upper, hex("a")}}},
		{"TIOCLINUX", eperm, []call{{unix.SYS_IOCTL, 0, 0x541c + upper, hex("\x03")}}},
		{"unshare", eperm, []call{{unix.SYS_UNSHARE, unix.CLONE_NEWUSER + upper}}},
		{"clone", eperm, []call{{unix.SYS_CLONE, unix.CLONE_NEWUSER + upper + int(unix.SIGCHLD), 0, 0, 0, 0}}},
		{"ptrace", eperm, []call{{unix.SYS_PTRACE, unix.PTRACE_SEIZE + upper, 1, 0, unix.PTRACE_O_SUSPEND_SECCOMP}}},
	})
}

// TestEscape_044_IoUring: a ring opens and connects past every filter, so there is none.
func TestEscape_044_IoUring(t *testing.T) {
	each1(t, []one{
		{"setup", eperm, []call{{unix.SYS_IO_URING_SETUP, 8, hex(make([]byte, 120))}}},
		{"enter", eperm, []call{{unix.SYS_IO_URING_ENTER, 0, 0, 0, 0, 0, 0}}},
		{"register", eperm, []call{{unix.SYS_IO_URING_REGISTER, 0, 0, 0, 0}}},
	})
}

// TestEscape_045_UnknownCalls: calls that no release has judged are ENOSYS, as on an older kernel.
func TestEscape_045_UnknownCalls(t *testing.T) {
	var list []one
	for _, nr := range []int{470, 471, 500, 512, 1000, 65536, 0x3fffffff} {
		list = append(list, one{strconv.Itoa(nr), enosys, []call{{nr}}})
	}
	each1(t, list)
}

// TestEscape_046_SuspendSeccomp: CVE-2022-30594.
func TestEscape_046_SuspendSeccomp(t *testing.T) {
	each1(t, []one{
		{"seize", eperm, []call{{"f:child"}, {unix.SYS_PTRACE, unix.PTRACE_SEIZE, 3, 0, unix.PTRACE_O_SUSPEND_SECCOMP}}},
		{"options", eperm, []call{{unix.SYS_PTRACE, unix.PTRACE_SETOPTIONS, 1, 0, unix.PTRACE_O_SUSPEND_SECCOMP}}},
	})
}

// TestEscape_047_Keyrings: CVE-2024-42318. The caller's keys are out of reach and the walls cannot be shed through one.
func TestEscape_047_Keyrings(t *testing.T) {
	each1(t, []one{
		{"session to parent", eperm, []call{{unix.SYS_KEYCTL, unix.KEYCTL_SESSION_TO_PARENT}}},
		{"search", eperm, []call{{unix.SYS_KEYCTL, unix.KEYCTL_SEARCH, -4, "user", "x", 0}}},
		{"add", eperm, []call{{unix.SYS_ADD_KEY, "user", "pwned", "x", 1, -4}}},
		{"request", eperm, []call{{unix.SYS_REQUEST_KEY, "user", "pwned", "x", -4}}},
	})
}

// TestEscape_050_Tioclinux: CVE-2023-28100. Refused by number, whatever the descriptor is.
func TestEscape_050_Tioclinux(t *testing.T) {
	each1(t, []one{
		{"paste", eperm, []call{{unix.SYS_IOCTL, 0, 0x541c, hex("\x03")}}},
		{"select", eperm, []call{{unix.SYS_IOCTL, 0, 0x541c, hex("\x02")}}},
		{"line discipline", eperm, []call{{unix.SYS_IOCTL, 0, 0x5423, hex("\x00\x00\x00\x00")}}},
	})
}

// TestEscape_068_KernelSurface: what a user namespace of one's own opens elsewhere stays shut.
func TestEscape_068_KernelSurface(t *testing.T) {
	each1(t, []one{
		{"bpf", eperm, []call{{unix.SYS_BPF, 5, hex(make([]byte, 128)), 128}}},
		{"perf", eperm, []call{{unix.SYS_PERF_EVENT_OPEN, hex(make([]byte, 128)), 0, -1, -1, 0}}},
		{"userfaultfd", eperm, []call{{unix.SYS_USERFAULTFD, 0}}},
		{"handles", eperm, []call{{unix.SYS_OPEN_BY_HANDLE_AT, at, hex(make([]byte, 64)), 0}}},
		{"modules", eperm, []call{{unix.SYS_FINIT_MODULE, 0, "", 0}}},
		{"kexec", eperm, []call{{unix.SYS_KEXEC_LOAD, 0, 0, 0, 0}}},
		{"log", eperm, []call{{unix.SYS_SYSLOG, 3, hex(make([]byte, 64)), 64}}},
		{"swap", eperm, []call{{unix.SYS_SWAPON, "/dev/zero", 0}}},
		{"clock", eperm, []call{{unix.SYS_CLOCK_SETTIME, 0, hex(make([]byte, 16))}}},
		{"host name", eperm, []call{{unix.SYS_SETHOSTNAME, "pwned", 5}}},
		{"reboot", eperm, []call{{unix.SYS_REBOOT, 0xfee1dead, 0x28121969, 0x89abcdef, 0}}},
		{"device node", refusal, []call{{unix.SYS_MKNODAT, at, "dev", unix.S_IFBLK | 0o666, 0xfe00}}},
		{"memory device", refusal, []call{{unix.SYS_MKNODAT, at, "mem", unix.S_IFCHR | 0o666, 0x101}}},
		{"alg socket", []unix.Errno{unix.EAFNOSUPPORT}, []call{{unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0}}},
		{"interface down", eperm, []call{{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0}, {unix.SYS_IOCTL, ret(0), unix.SIOCSIFFLAGS, hex("lo" + strings.Repeat("\x00", 38))}}},
	})
}
