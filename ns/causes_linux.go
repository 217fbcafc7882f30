package ns

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/probe/hostfacts"
)

// What is likely behind an error, and what to do. Where namespaces are refused that is what stands around this process
// (probe/hostfacts), which is read only then.

// thisSystem is what the facts are read from. Tests put another one in its place.
var thisSystem = hostfacts.Here

func around() hostfacts.Facts { return hostfacts.Look(thisSystem) }

// cloneCause explains a refused clone(2).
func cloneCause(errno syscall.Errno) string {
	switch errno {
	case unix.EINVAL:
		return "The kernel lacks one of the namespaces (user, mount, network, pid, ipc, uts, cgroup); Linux 5.19 or later, built with all of them, is needed"
	case unix.ENOSPC, unix.EUSERS:
		if cause := around().NamespaceCause(); cause != "" {
			return cause
		}
		return "The limit of nested or concurrent namespaces is reached: see /proc/sys/user/max_*_namespaces"
	}
	return around().NamespaceCause()
}

// mapCause explains a refused identity map. Where namespaces can be made, what is missing are the rights to map ids.
func mapCause(err error) string {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return ""
	}
	if f := around(); !f.Root {
		if cause := f.NamespaceCause(); cause != "" {
			return cause
		}
	}
	return "Mapping ids was refused; as root in a container CAP_SETUID, CAP_SETGID and CAP_SETFCAP are needed to map more than one"
}

// stepCause explains a step of the set-up that was refused.
func stepCause(op string, errno syscall.Errno) string {
	switch errno {
	case unix.ENOSYS:
		return "The kernel is too old for this call: Linux 5.19 or later is needed"
	case unix.EPERM, unix.EACCES:
		if strings.Contains(op, "proc") {
			return around().ProcCause()
		}
		return around().NamespaceCause()
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
