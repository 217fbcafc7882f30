package hostfacts

import (
	"slices"
	"strconv"
	"strings"
)

// Container is the kind of what this process runs in.
type Container string

// The kinds. What makes a container leaves marks, and none of them is a promise: a container may hide them all.
const (
	NoContainer Container = ""
	InSandbox   Container = "sandbox" // another srt, or the reference (NET-90: SANDBOX_RUNTIME)
	Kubernetes  Container = "kubernetes"
	Docker      Container = "docker"
	Podman      Container = "podman"
	OtherKind   Container = "other"
)

// Facts is what stands around this process. It is data: nothing in it is asked again.
type Facts struct {
	Container Container
	// Filtered says that this process is under a system call filter.
	Filtered bool
	// Label is the AppArmor profile of this process, empty without AppArmor.
	Label string
	// RestrictsUserns says that AppArmor restricts user namespaces of unprivileged programs (Ubuntu 23.10 and later).
	RestrictsUserns bool
	// UsernsOff says that Debian's and Arch's switch refuses them to unprivileged users.
	UsernsOff bool
	// NoneAllowed are the kinds of namespaces of which none may be made: the sysctls user.max_*_namespaces that are 0.
	NoneAllowed []string
	// MaskedProc says that something is mounted within /proc.
	MaskedProc bool
	// Chrooted says that the root directory is not the root of its mount.
	Chrooted bool
	// Root says that the effective user id is 0.
	Root bool
	// MapsNoRoot says that this process is root without CAP_SETFCAP: the kernel lets it map no id of root's into a user
	// namespace (user_namespaces(7), since Linux 5.12).
	MapsNoRoot bool
	// Program is the path of this program.
	Program string
}

// namespaceKinds are those that have a limit (namespaces(7)).
var namespaceKinds = []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// Look reads the facts.
func Look(s System) Facts {
	status := s.Read("/proc/self/status")
	root, masked := mountFacts(s.Read("/proc/self/mountinfo"))
	f := Facts{
		Container: containerOf(s), Filtered: fieldOf(status, "Seccomp:") == "2", Label: labelOf(s),
		RestrictsUserns: s.Read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1",
		UsernsOff:       s.Read("/proc/sys/kernel/unprivileged_userns_clone") == "0",
		MaskedProc:      masked, Chrooted: !root, Root: s.UID() == 0, Program: s.Program(),
	}
	f.MapsNoRoot = f.Root && lacksCapability(status, setfcap)
	for _, kind := range namespaceKinds {
		if s.Read("/proc/sys/user/max_"+kind+"_namespaces") == "0" {
			f.NoneAllowed = append(f.NoneAllowed, kind)
		}
	}
	return f
}

// fieldOf is a field of proc_pid_status(5).
func fieldOf(status, name string) string {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// setfcap is CAP_SETFCAP of capabilities(7).
const setfcap = 31

// lacksCapability tells whether a status names the effective capabilities and this one is not among them.
func lacksCapability(status string, capability uint) bool {
	has, err := strconv.ParseUint(fieldOf(status, "CapEff:"), 16, 64)
	return err == nil && has&(1<<capability) == 0
}

// labelOf is the AppArmor profile of this process (apparmor(7)): "docker-default (enforce)" without the mode. The file beneath
// attr/apparmor is of Linux 5.8; the other one may be another security module's.
func labelOf(s System) string {
	label := s.Read("/proc/self/attr/apparmor/current")
	if label == "" && s.Exists("/sys/kernel/security/apparmor") {
		label = s.Read("/proc/self/attr/current")
	}
	label, _, _ = strings.Cut(label, " (")
	return label
}

// mountFacts reads proc_pid_mountinfo(5): whether the root of a mount is this process's, and whether something is mounted
// within /proc. binfmt_misc is mounted on hosts and masks nothing.
func mountFacts(text string) (root, masked bool) {
	root = text == ""
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		root = root || f[4] == "/"
		masked = masked || strings.HasPrefix(f[4], "/proc/") && f[4] != "/proc/sys/fs/binfmt_misc"
	}
	return root, masked
}

// containerOf looks for the marks of a container, the more telling ones first: systemd's container interface, the files of
// Docker and Podman, the variables of Kubernetes, the names in /proc/self/cgroup.
func containerOf(s System) Container {
	cgroup := s.Read("/proc/self/cgroup")
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(cgroup, w) })
	}
	switch {
	case s.Getenv("SANDBOX_RUNTIME") == "1":
		return InSandbox
	case s.Getenv("KUBERNETES_SERVICE_HOST") != "" || has("kubepods"):
		return Kubernetes
	case s.Exists("/run/.containerenv") || s.Getenv("container") == "podman" || has("libpod"):
		return Podman
	case s.Exists("/.dockerenv") || has("/docker/", "/docker-"):
		return Docker
	case s.Getenv("container") != "" || has("/lxc"):
		return OtherKind
	}
	return NoContainer
}
