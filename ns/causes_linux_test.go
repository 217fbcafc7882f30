package ns

import (
	"maps"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/probe/hostfacts"
)

const unfiltered = "Name:\tsrt\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0"

// TestLikelyCauses gives each refusal the traces that its cause leaves, and looks for what to do in the sentence.
func TestLikelyCauses(t *testing.T) {
	host := map[string]string{"/proc/self/status": unfiltered, "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda rw",
		"/proc/sys/user/max_user_namespaces": "15000"}
	clone := func(e syscall.Errno) func() string { return func() string { return cloneCause(e) } }
	step := func(op string, e syscall.Errno) func() string { return func() string { return stepCause(op, e) } }
	for _, c := range []struct {
		name, file, text string
		ask              func() string
		want             string
	}{
		{"user namespaces off", "/proc/sys/user/max_user_namespaces", "0", clone(unix.ENOSPC), "sysctl -w user.max_user_namespaces"},
		{"Debian's switch", "/proc/sys/kernel/unprivileged_userns_clone", "0", clone(unix.EPERM), "kernel.unprivileged_userns_clone=1"},
		{"AppArmor, at the clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", clone(unix.EPERM), "AppArmor"},
		{"AppArmor, at a mount", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", step("stop mount propagation", unix.EACCES), "AppArmor"},
		{"a container's filter", "/proc/self/status", "Name:\tsrt\nSeccomp:\t2\nSeccomp_filters:\t1", clone(unix.EPERM), "seccomp=unconfined"},
		{"a chroot", "/proc/self/mountinfo", "7 1 8:1 / /srv rw - ext4 /dev/sda rw", clone(unix.EPERM), "chroot"},
		{"too many namespaces", "", "", clone(unix.ENOSPC), "max_"},
		{"a kernel without one of them", "", "", clone(unix.EINVAL), "5.19"},
		{"a masked /proc", "", "", step("mount a proc file system for", unix.EPERM), "systempaths=unconfined"},
		{"an old kernel", "", "", step("restrict the mount at", unix.ENOSYS), "5.19"},
		{"too many mounts", "", "", step("mount on", unix.ENOSPC), "mount-max"},
		{"a file that was replaced", "", "", step("find unchanged", unix.ESTALE), "start again"},
		{"a manager that forbids netlink", "", "", step("make a netlink socket for", unix.EAFNOSUPPORT), "AF_NETLINK"},
		{"a kernel that prohibits nothing", "", "", step("prohibit", unix.EPROTO), "RTN_PROHIBIT"},
		{"too few descriptors", "", "", step("open", unix.EMFILE), "ulimit"},
		{"ids that may not be mapped", "", "", func() string { return mapCause(unix.EPERM) }, "CAP_SETFCAP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			saved := thisSystem
			defer func() { thisSystem = saved }()
			files := maps.Clone(host)
			files[c.file] = c.text
			thisSystem = hostfacts.Fake{User: 1000, Files: files}
			if got := c.ask(); !strings.Contains(got, c.want) {
				t.Errorf("%q does not say %q", got, c.want)
			}
		})
	}
	t.Run("no cause known", func(t *testing.T) {
		saved := thisSystem
		defer func() { thisSystem = saved }()
		thisSystem = hostfacts.Fake{Files: host}
		if got := cloneCause(unix.EPERM); got != "" {
			t.Errorf("%q is a guess", got)
		}
	})
}
