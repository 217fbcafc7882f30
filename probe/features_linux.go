package probe

// The features, in the order in which they are told. What follows from one that is missing: runtime/mode.go.
var (
	UserNamespaces = &Feature{Key: "userns", Name: "user namespaces", Needs: "Linux 3.8, CONFIG_USER_NS", Since: [2]int{3, 8},
		Why: "every other namespace of a sandbox belongs to one, and nothing in it has rights outside", ask: askUserns}
	PidNamespace = &Feature{Key: "pid", Name: "pid namespaces", Needs: "Linux 3.8, CONFIG_PID_NS", Since: [2]int{3, 8},
		Why:   "commands see no process of the host, and end as a whole",
		after: []*Feature{UserNamespaces}, ask: askNamespace("pid", 0)}
	MountNamespace = &Feature{Key: "mount", Name: "mounts in a user namespace of one's own", Needs: "Linux 3.8", Since: [2]int{3, 8},
		Why:   "what commands may read and write is a view of the file system made of mounts",
		after: []*Feature{UserNamespaces}, ask: askMount}
	NetNamespace = &Feature{Key: "net", Name: "network namespaces", Needs: "Linux 3.8, CONFIG_NET_NS", Since: [2]int{3, 8},
		Why:   "commands reach nothing but srt's proxies, by any protocol",
		after: []*Feature{UserNamespaces}, ask: askNet}
	IPCNamespace = &Feature{Key: "ipc", Name: "IPC namespaces", Needs: "Linux 3.8, CONFIG_IPC_NS", Since: [2]int{3, 8},
		Why:   "commands share no System V IPC and message queues with the host",
		after: []*Feature{UserNamespaces}, ask: askNamespace("ipc", cloneIPC)}
	UTSNamespace = &Feature{Key: "uts", Name: "UTS namespaces", Needs: "Linux 3.8, CONFIG_UTS_NS", Since: [2]int{3, 8},
		Why:   "commands cannot change the host's name",
		after: []*Feature{UserNamespaces}, ask: askNamespace("uts", cloneUTS)}
	CgroupNamespace = &Feature{Key: "cgroup", Name: "cgroup namespaces", Needs: "Linux 4.6, CONFIG_CGROUPS", Since: [2]int{4, 6},
		Why:   "commands do not see in which control group srt runs; they are left out where there are none",
		after: []*Feature{UserNamespaces}, ask: askNamespace("cgroup", cloneCgroup)}
	FreshProc = &Feature{Key: "procfs", Name: "a fresh procfs", Needs: "a /proc in which nothing is masked", Since: [2]int{5, 2},
		Why:   "commands have a /proc of their own processes; without it they have the container's, read-only",
		after: []*Feature{MountNamespace}, ask: askProc}
	MountSetattr = &Feature{Key: "mount_setattr", Name: "mount_setattr(2)", Needs: "Linux 5.12", Since: [2]int{5, 12},
		Why: "whole trees become read-only at once", ask: askMountSetattr}
	Openat2 = &Feature{Key: "openat2", Name: "openat2(2)", Needs: "Linux 5.6", Since: [2]int{5, 6},
		Why: "paths are opened without following what may change meanwhile", ask: askOpenat2}
	Landlock = &Feature{Key: "landlock", Name: "Landlock", Needs: "Linux 5.19 for ABI 2, 6.12 for ABI 6; CONFIG_SECURITY_LANDLOCK and \"landlock\" in lsm=",
		Since: [2]int{5, 13}, Why: "the second wall about files; the first where there are no mounts", ask: askLandlock}
	Seccomp = &Feature{Key: "seccomp", Name: "system call filters", Needs: "CONFIG_SECCOMP_FILTER", Since: [2]int{3, 17},
		Why: "calls that lead out of a sandbox are refused", ask: askSeccomp}
	Notify = &Feature{Key: "notify", Name: "system call listeners", Needs: "Linux 5.19, no other listener", Since: [2]int{5, 19},
		Why:   "srt judges calls itself: names that do not exist yet, connections, Unix sockets",
		after: []*Feature{Seccomp, ProcessVM}, ask: askNotify}
	PidfdGetfd = &Feature{Key: "pidfd_getfd", Name: "pidfd_getfd(2)", Needs: "Linux 5.6", Since: [2]int{5, 6},
		Why: "srt connects the very socket of a program that knows no proxy", ask: askPidfdGetfd}
	ProcessVM = &Feature{Key: "process_vm", Name: "process_vm_readv(2)", Needs: "Linux 3.2, CONFIG_CROSS_MEMORY_ATTACH", Since: [2]int{3, 2},
		Why: "srt reads the paths and addresses of the calls that it judges", ask: askProcessVM}
	Ptrace = &Feature{Key: "ptrace", Name: "reading the memory of children without a user namespace", Needs: "kernel.yama.ptrace_scope of 1 or less, or CAP_SYS_PTRACE",
		Since: [2]int{3, 4}, Why: "srt judges calls of commands that have no user namespace of their own", ask: askPtrace}
	BPF = &Feature{Key: "bpf", Name: "BPF security hooks", Needs: "Linux 6.2, CAP_BPF and CAP_PERFMON, \"bpf\" in lsm=", Since: [2]int{6, 2},
		Why: "names that do not exist are refused in the kernel, where it may be had; else by srt itself", ask: askBPF}
)

// All lists every feature, in the order in which they are told. The list must not be changed.
func All() []*Feature { return all }

var all = []*Feature{UserNamespaces, PidNamespace, MountNamespace, NetNamespace, IPCNamespace, UTSNamespace, CgroupNamespace, FreshProc,
	MountSetattr, Openat2, Landlock, Seccomp, Notify, PidfdGetfd, ProcessVM, Ptrace, BPF}
