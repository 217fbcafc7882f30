package ns

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// system is what the causes are read from: the text of a file beneath /proc without its last line end, empty if it
// cannot be read, and the user id. Tests put another one in its place.
type system struct {
	proc func(name string) string
	uid  int
}

var thisSystem = system{proc: readProc, uid: os.Geteuid()}

// cause is one known reason for a refusal: how it shows, and what a person can do.
type cause struct {
	applies func(system) bool
	text    string
}

// namespaceCauses are asked in order; the first that applies is reported. Sources: user_namespaces(7), the documentation
// of the two distributions' sysctls, and Docker's default seccomp profile.
var namespaceCauses = []cause{
	{func(s system) bool { return s.proc("sys/user/max_user_namespaces") == "0" },
		"User namespaces are switched off here: /proc/sys/user/max_user_namespaces is 0. As root: sysctl -w user.max_user_namespaces=15000"},
	{func(s system) bool { return s.proc("sys/kernel/unprivileged_userns_clone") == "0" && s.uid != 0 },
		"Unprivileged user namespaces are switched off here. As root: sysctl -w kernel.unprivileged_userns_clone=1"},
	{func(s system) bool {
		return s.proc("sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && s.uid != 0
	},
		"AppArmor restricts unprivileged user namespaces here. As root, install a profile that grants srt \"userns\", or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	{func(s system) bool { return s.seccompMode() == "2" },
		"A seccomp profile of the surrounding container or sandbox refuses namespaces. Run the container with a profile that allows clone, mount and pivot_root, for example docker run --security-opt seccomp=unconfined"},
	{func(s system) bool { return s.chrooted() },
		"This process runs in a chroot, where the kernel refuses user namespaces. Run srt outside it"},
}

// cloneCause explains a refused clone(2).
func cloneCause(errno syscall.Errno) string {
	switch errno {
	case unix.EINVAL:
		return "The kernel lacks one of the namespaces (user, mount, network, pid, ipc, uts, cgroup); Linux 5.19 or later, built with all of them, is needed"
	case unix.ENOSPC, unix.EUSERS:
		return firstCause("The limit of nested or concurrent namespaces is reached: see /proc/sys/user/max_*_namespaces")
	}
	return firstCause("")
}

// mapCause explains a refused identity map.
func mapCause(err error) string {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return firstCause("Mapping ids was refused; as root in a container CAP_SETUID, CAP_SETGID and CAP_SETFCAP are needed to map more than one")
	}
	return ""
}

// stepCause explains a step of the set-up that was refused.
func stepCause(op string, errno syscall.Errno) string {
	switch errno {
	case unix.ENOSYS:
		return "The kernel is too old for this call: Linux 5.19 or later is needed"
	case unix.EPERM, unix.EACCES:
		if strings.Contains(op, "proc") {
			return "A fresh /proc is refused where the surrounding container masks parts of its own; this version needs an unmasked one (docker run --security-opt systempaths=unconfined, Kubernetes procMount: Unmasked)"
		}
		return firstCause("")
	case unix.ENOSPC:
		return "The kernel's limit of mounts in one namespace is reached: see /proc/sys/fs/mount-max"
	case unix.ESTALE:
		return "The file was replaced while the sandbox was being set up; start again"
	case unix.EAFNOSUPPORT:
		if strings.Contains(op, "netlink") {
			return "A surrounding service manager or container forbids netlink sockets: allow AF_NETLINK (systemd: RestrictAddressFamilies=)"
		}
	case unix.EPROTO:
		return "The kernel did not take a route that refuses packets (rtnetlink, RTN_PROHIBIT), without which programs would wait for networks that they may not reach; run srt on a Linux kernel, not on an emulation of one"
	case unix.EMFILE:
		return "Too many paths at once for the limit of open files: raise it (ulimit -n)"
	}
	return ""
}

func firstCause(otherwise string) string {
	for _, c := range namespaceCauses {
		if c.applies(thisSystem) {
			return c.text
		}
	}
	return otherwise
}

func readProc(name string) string {
	b, err := os.ReadFile("/proc/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// seccompMode is the Seccomp field of proc_pid_status(5): "2" under a filter.
func (s system) seccompMode() string {
	_, rest, _ := strings.Cut(s.proc("self/status"), "\nSeccomp:")
	mode, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(mode)
}

// chrooted tells whether the root directory is not the root of its mount (proc_pid_mountinfo(5)).
func (s system) chrooted() bool {
	text := s.proc("self/mountinfo")
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" {
			return false
		}
	}
	return text != ""
}
