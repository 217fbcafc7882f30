package hostfacts

import (
	"slices"
	"strings"
)

// Remedy is the one thing to do. Its zero value is none.
type Remedy struct {
	// Text is a sentence on the cause and what to do.
	Text string `json:"text"`
	// Commands are to be given to a shell, as root unless Text says otherwise; the first may need File to exist.
	Commands []string `json:"commands,omitempty"`
	// File and Content are a file that is to be written before, as root.
	File    string `json:"file,omitempty"`
	Content string `json:"content,omitempty"`
}

// IsZero tells whether there is nothing to do, or nothing is known.
func (r Remedy) IsZero() bool { return r.Text == "" }

// String is all of it on one line, but for the content of a file.
func (r Remedy) String() string {
	if len(r.Commands) == 0 {
		return r.Text
	}
	return r.Text + ": " + strings.Join(r.Commands, " && ")
}

// What a remedy is for: the names of the features of package probe that it brings.
const (
	forUserns  = "userns"
	forMount   = "mount"
	forProc    = "procfs"
	forNet     = "net"
	forPid     = "pid"
	forIPC     = "ipc"
	forUTS     = "uts"
	forSetattr = "mount_setattr"
)

// namespaces are what one refusal of namespaces takes all of.
var namespaces = []string{forUserns, forMount, forNet, forPid, forIPC, forUTS, forSetattr}

// remedyRow is one known reason.
type remedyRow struct {
	brings  []string // features
	applies func(Facts) bool
	remedy  func(Facts) Remedy
}

// remedies are asked in order; the first row that applies to a missing feature is the answer. What refuses most comes first.
// Sources: user_namespaces(7), namespaces(7), the documentation of the distributions' sysctls and of AppArmor's restriction
// (Ubuntu), the options of docker-run(1), podman-run(1) and the Kubernetes API (SecurityContext).
var remedies = []remedyRow{
	{namespaces, func(f Facts) bool { return f.Container == InSandbox },
		text("This process runs in another sandbox, which refuses further namespaces. Set allowNestedUserNamespaces in the settings of that one, which " +
			"has to be in mode full or nested itself")},
	{namespaces, func(f Facts) bool { return slices.Contains(f.NoneAllowed, "user") },
		run("User namespaces are switched off here: /proc/sys/user/max_user_namespaces is 0. As root", "sysctl -w user.max_user_namespaces=15000")},
	{namespaces, func(f Facts) bool { return len(f.NoneAllowed) > 0 }, limits},
	{namespaces, func(f Facts) bool { return f.UsernsOff && !f.Root },
		run("Unprivileged user namespaces are switched off here. As root", "sysctl -w kernel.unprivileged_userns_clone=1")},
	{namespaces, func(f Facts) bool { return f.RestrictsUserns && !f.Root && f.Container == NoContainer }, profile},
	{namespaces, func(f Facts) bool { return f.MapsNoRoot }, mapRoot},
	{namespaces, func(f Facts) bool { return f.Filtered || f.confinedLabel() }, container},
	{namespaces, func(f Facts) bool { return f.RestrictsUserns && !f.Root }, profile},
	{namespaces, func(f Facts) bool { return f.Chrooted },
		text("This process runs in a chroot, where the kernel refuses user namespaces. Run srt outside it")},
	{[]string{forProc}, func(Facts) bool { return true }, unmask},
	{[]string{"landlock"}, func(f Facts) bool { return f.Container == InSandbox },
		text("This process runs in another sandbox, which refuses Landlock because it performs system calls itself. Set allowNestedUserNamespaces in the settings of that one, which " +
			"has to be in mode full or nested itself")},
	{[]string{"landlock"}, func(Facts) bool { return true },
		text("Boot a kernel of 5.19 or later, built with CONFIG_SECURITY_LANDLOCK, with \"landlock\" in the boot parameter lsm=; in a container its " +
			"system call filter must allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self")},
	{[]string{"notify", "seccomp"}, func(Facts) bool { return true },
		text("Run srt where no other sandbox or container listens to its system calls, with a filter that allows seccomp(2), on Linux 5.19 or later")},
	{[]string{"pidfd_getfd", "process_vm"}, func(f Facts) bool { return f.Container != NoContainer || f.Filtered }, capability},
	{[]string{"ptrace"}, func(Facts) bool { return true },
		run("Processes may not read the memory of their children here (Yama). As root", "sysctl -w kernel.yama.ptrace_scope=1")},
	{[]string{"bpf"}, func(f Facts) bool { return true },
		text("Optional: run srt with CAP_BPF and CAP_PERFMON on a kernel with \"bpf\" in the boot parameter lsm=")},
}

// RemedyFor is the one thing to do about a missing feature of package probe, by its name. Zero: none is known.
func (f Facts) RemedyFor(feature string) Remedy {
	for _, r := range remedies {
		if slices.Contains(r.brings, feature) && r.applies(f) {
			return r.remedy(f)
		}
	}
	return Remedy{}
}

// NamespaceCause is RemedyFor where namespaces are refused, on one line; empty if no cause is known.
func (f Facts) NamespaceCause() string { return f.RemedyFor(forUserns).String() }

// ProcCause is RemedyFor where a fresh procfs is refused, on one line.
func (f Facts) ProcCause() string { return f.RemedyFor(forProc).String() }

// confinedLabel tells whether an AppArmor profile that is a container's holds this process.
func (f Facts) confinedLabel() bool {
	return f.Label != "" && f.Label != "unconfined" && f.Container != NoContainer
}

func text(t string) func(Facts) Remedy { return func(Facts) Remedy { return Remedy{Text: t} } }

func run(t string, commands ...string) func(Facts) Remedy {
	return func(Facts) Remedy { return Remedy{Text: t, Commands: commands} }
}

// limits raises what is 0.
func limits(f Facts) Remedy {
	r := Remedy{Text: "Namespaces that a sandbox has are switched off here. As root"}
	for _, kind := range f.NoneAllowed {
		r.Commands = append(r.Commands, "sysctl -w user.max_"+kind+"_namespaces=15000")
	}
	return r
}
