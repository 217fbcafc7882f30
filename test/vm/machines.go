package main

// kernel is one of Debian's: the newest of a suite, in the flavour for virtual machines.
type kernel struct {
	Suite string // of Debian
	Why   string // it is here
	// Refused says that srt runs no command under it, and so no tests.
	Refused bool
}

// kernels are those that are booted, the oldest first. KERNELS= selects among the suites.
var kernels = []kernel{
	{Suite: "bullseye", Why: "older than the least that srt needs: it has to refuse, with clear words", Refused: true},
	{Suite: "bookworm", Why: "the oldest one in wide use that srt runs under"},
	{Suite: "trixie", Why: "the newest stable one, with a Landlock that scopes signals"},
	{Suite: "sid", Why: "the newest there is"},
}

// metapackage depends on the newest kernel of a suite.
const metapackage = "linux-image-cloud-amd64"

// variant is a way in which a system can be configured other than by default.
type variant struct {
	Name string
	What string // it stands for, for the document
	// One of the two makes it: words on the kernel's command line, which cost a boot, or a sysctl and its value.
	Boot, Sysctl string
}

// defaults is the name of the system as it comes.
const defaults = "default"

var variants = []variant{
	{Name: defaults, What: "the system as it comes"},
	{Name: "no-landlock", What: "Landlock is not among the active security modules (`lsm=lockdown,yama,apparmor,bpf`)", Boot: "lsm=lockdown,yama,apparmor,bpf"},
	{Name: "no-user-namespaces", What: "`user.max_user_namespaces = 0`", Sysctl: "user.max_user_namespaces=0"},
	{Name: "no-unprivileged-clone", What: "`kernel.unprivileged_userns_clone = 0`, a setting of Debian's own", Sysctl: "kernel.unprivileged_userns_clone=0"},
	{Name: "apparmor-restricts", What: "`kernel.apparmor_restrict_unprivileged_userns = 1`, as on Ubuntu, without a profile for srt",
		Sysctl: "kernel.apparmor_restrict_unprivileged_userns=1"},
	{Name: "no-ptrace", What: "`kernel.yama.ptrace_scope = 3`: nobody traces anything", Boot: "sysctl.kernel.yama.ptrace_scope=3"},
}

// suites are the folders whose test programs run under each kernel: those that meet it.
var suites = []string{"ns", "fsview", "seccomp", "seccomp/notify", "seccomp/broker", "bpf", "probe", "runtime", "test"}

// userland is what the guests have beside Debian's minimum, so that few tests miss their tools.
var userland = []string{"busybox-static", "bash", "ca-certificates", "curl", "git", "python3", "procps", "iproute2", "util-linux", "openssh-client",
	"strace", "kmod", "attr", "acl", "jq", "make", "socat", "gcc", "libc6-dev", "bubblewrap", "libcap2-bin", "uidmap"}

// userlandSuite is the suite of Debian's that the guests' programs are from, whatever the kernel.
const userlandSuite = "bookworm"
