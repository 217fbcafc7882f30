package container

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Docker's and containerd's lists (moby/daemon/pkg/oci/defaults.go), which Kubernetes has from containerd.
var (
	maskedPaths = []string{"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"}
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// spec is the OCI specification of a recipe: the process args as a user, in root, which has been mounted already.
func (r recipe) spec(root, home string, as account, args, env []string) (*specs.Spec, error) {
	caps := r.capabilities()
	set := &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps}
	if as.uid != 0 {
		set.Effective, set.Permitted = nil, nil // as execve(2) would leave them
	}
	s := &specs.Spec{
		Version:  "1.0.2",
		Hostname: "container",
		Root:     &specs.Root{Path: root, Readonly: r.readOnlyRoot},
		Process: &specs.Process{
			User: specs.User{UID: uint32(as.uid), GID: uint32(as.gid)}, Args: args, Cwd: home, Capabilities: set, NoNewPrivileges: r.noNewPrivs,
			Env:     append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "LANG=C.UTF-8"}, env...),
			Rlimits: []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: 4096, Soft: 1024}},
		},
		Mounts: r.mounts(),
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}, {Type: specs.UTSNamespace}, {Type: specs.PIDNamespace},
				{Type: specs.IPCNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.CgroupNamespace}},
		},
	}
	if !r.unmasked {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = maskedPaths, readOnlyPaths
	}
	if r.ids != sameIDs {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
		s.Linux.UIDMappings, s.Linux.GIDMappings = r.ids.mappings(), r.ids.mappings()
	}
	var err error
	s.Linux.Seccomp, err = r.seccomp(s)
	return s, err
}

// seccomp is the filter for the capabilities of a specification.
func (r recipe) seccomp(s *specs.Spec) (*specs.LinuxSeccomp, error) {
	if r.filter == unfiltered || r.filter == "" {
		return nil, nil
	}
	if r.filter == ofPodman {
		text, err := os.ReadFile(podmanProfile())
		if err != nil {
			return nil, err
		}
		return seccomp.LoadProfile(string(text), s)
	}
	profile := seccomp.DefaultProfile()
	if r.filter == closed {
		for _, rule := range profile.Syscalls {
			rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return strings.HasPrefix(name, "landlock_") })
		}
	}
	if r.filter == opened {
		added, err := additions()
		if err != nil {
			return nil, err
		}
		profile.Syscalls = append(profile.Syscalls, added...)
	}
	text, err := json.Marshal(profile)
	if err != nil {
		return nil, err
	}
	return seccomp.LoadProfile(string(text), s)
}

// podmanProfile is where Podman's default profile is, if it is here: it has Docker's form (seccomp.json(5) of containers-common).
func podmanProfile() string {
	if given := os.Getenv("SRT_PODMAN_PROFILE"); given != "" {
		return given
	}
	return "/usr/share/containers/seccomp.json"
}

// additions are the rules that a recipe adds to Docker's profile.
func additions() ([]*seccomp.Syscall, error) {
	text, err := os.ReadFile(filepath.Join(examples, "seccomp-additions.json"))
	if err != nil {
		return nil, err
	}
	var rules []*seccomp.Syscall
	if err := json.Unmarshal(text, &rules); err != nil {
		return nil, fmt.Errorf("seccomp-additions.json: %w", err)
	}
	return rules, nil
}

// mounts are what Docker mounts on a machine with control groups of version 2.
func (r recipe) mounts() []specs.Mount {
	sys := []string{"nosuid", "noexec", "nodev"}
	if !r.writableSys {
		sys = append(sys, "ro")
	}
	list := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: r.devpts()},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: sys},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
	}
	cgroup := []string{"nosuid", "noexec", "nodev"}
	if !r.writableSys {
		cgroup = append(cgroup, "ro")
	}
	list = append(list, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: cgroup})
	// Docker's three files for the container's own network.
	for _, name := range []string{"hosts", "hostname", "resolv.conf"} {
		list = append(list, specs.Mount{Destination: "/etc/" + name, Type: "bind", Source: filepath.Join(scratch, "etc", name),
			Options: []string{"rbind", "rprivate"}})
	}
	list = append(list, specs.Mount{Destination: homeMount, Type: "bind", Source: "@home", Options: []string{"rbind", "rprivate"}})
	for _, path := range sortedKeys(r.tmpfs) {
		list = append(list, specs.Mount{Destination: path, Type: "tmpfs", Source: "tmpfs",
			Options: append([]string{"nosuid", "nodev", "mode=1777"}, r.tmpfs[path]...)})
	}
	return list
}

// devpts names the group tty unless the container has no such group.
func (r recipe) devpts() []string {
	options := []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}
	if r.ids == singleID {
		return options
	}
	return append(options, "gid=5")
}

func sortedKeys(m map[string][]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// mappings are the ids of a container's user namespace.
func (i identities) mappings() []specs.LinuxIDMapping {
	one := func(inside, outside, count int) specs.LinuxIDMapping {
		return specs.LinuxIDMapping{ContainerID: uint32(inside), HostID: uint32(outside), Size: uint32(count)}
	}
	first := subordinate()
	switch i {
	case rangeIDs:
		return []specs.LinuxIDMapping{one(0, 1<<20, 1<<16)}
	case mappedIDs:
		return []specs.LinuxIDMapping{one(0, tester.uid, 1), one(1, first, 65535)}
	case fewIDs:
		return []specs.LinuxIDMapping{one(0, tester.uid, 1), one(1, first, 999)}
	case singleID:
		return []specs.LinuxIDMapping{one(0, tester.uid, 1)}
	}
	return nil
}

// outsideID is the id outside of one inside.
func (i identities) outsideID(inside int) int {
	for _, m := range i.mappings() {
		if from := int(m.ContainerID); inside >= from && inside < from+int(m.Size) {
			return int(m.HostID) + inside - from
		}
	}
	return inside
}

// subordinate is the first id that /etc/subuid gives the tester (subuid(5)); useradd(8) gives users and groups the same ones.
func subordinate() int {
	text, err := os.ReadFile("/etc/subuid")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		var first, count int
		name, numbers, _ := strings.Cut(strings.TrimSpace(line), ":")
		if _, err := fmt.Sscanf(numbers, "%d:%d", &first, &count); err == nil && name == testerName && count >= 65536 {
			return first
		}
	}
	panic("no 65536 ids for " + testerName + " in /etc/subuid; see usermod(8), --add-subuids")
}
