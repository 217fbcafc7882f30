package main

import "github.com/srt-sandbox/srt/test/vm/internal/record"

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

// suites are the folders whose test programs run under each kernel. Emulation makes every test some fifteen times slower: what is
// left out is about sizes, races and programs rather than about what a kernel gives. Flag -whole leaves nothing out.
var suites = []record.Suite{
	{Folder: "probe", Accounts: accountNames},
	{Folder: "seccomp", Accounts: []string{"root"}},
	{Folder: "seccomp/notify", Accounts: accountNames},
	{Folder: "bpf", Accounts: []string{"root"}},
	{Folder: "ns", Accounts: []string{"root"}},
	{Folder: "fsview", Accounts: []string{"srt-test"}, Skip: "TestGitNeeds|TestManyOnHost|TestSizes|TestBuildOnHost|TestHostReadDir"},
	{Folder: "seccomp/broker", Accounts: []string{"srt-test"}, Skip: "TestChangeTable|TestChangeRaces|TestCrowd|Racing|TestUnix_NamesThatChange|" +
		"TestUnix_WhoChanges|TestUmask|CrowdOfConnections|WhilePathsChange|NoTimeLimitStalls"},
	{Folder: "runtime", Accounts: accountNames, Run: "TestMode|TestConfined|TestPlaceholders|TestObserved_AgreesWith|TestLIB12|TestLIB17"},
	{Folder: "test", Accounts: []string{"root"}, Run: "TestNested|TestConfined|TestRoot|TestLandlock|TestStrace|TestFS_case0|TestFS_30|TestFS_44|TestFS_47|TestFS_55"},
}

// userland is what the guests have beside Debian's minimum, so that few tests miss their tools.
var userland = []string{"busybox-static", "bash", "ca-certificates", "curl", "git", "python3", "procps", "iproute2", "util-linux", "openssh-client",
	"strace", "kmod", "attr", "acl", "jq", "make", "socat", "gcc", "libc6-dev", "bubblewrap", "libcap2-bin", "uidmap"}

// userlandSuite is the suite of Debian's that the guests' programs are from, whatever the kernel.
const userlandSuite = "bookworm"
