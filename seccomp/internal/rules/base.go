package rules

// Requests by the value the kernel's headers give them; the same on both architectures.
const (
	tiocSTI   = 0x5412
	tiocLINUX = 0x541c
	tiocSETD  = 0x5423

	ptraceOldSetOptions  = 21 // x86 only
	ptraceSetOptions     = 0x4200
	ptraceSeize          = 0x4206
	ptraceSuspendSeccomp = 1 << 21
)

// base is loaded into every sandbox.
//
// Left open on purpose, because builds, debuggers and language runtimes use them and the kernel's own check is
// enough without initial capabilities: ptrace, process_vm_readv and _writev, pidfd_getfd and kcmp (same-user,
// same-namespace, dumpable); personality (gdb turns address randomisation off); modify_ldt (Wine); adjtimex and
// clock_adjtime (reading is harmless and what would set is in memory); seccomp and landlock_* (a program may confine
// itself further); io_setup (databases); name_to_handle_at (reads only); fanotify_init (Linux limits it to what the
// caller may read); chroot and mknod (their capabilities are dropped).
var base = Filter{
	Name:          "base",
	RefuseUnknown: true,
	Judged:        socketsMade,
	Rules: []Rule{
		// NET-81.
		{Call: "io_uring_setup", Errno: EPERM, Why: "a ring opens, connects and creates sockets past every filter"},
		{Call: "io_uring_enter", Errno: EPERM, Why: "an inherited or received ring works past every filter"},
		{Call: "io_uring_register", Errno: EPERM, Why: "an inherited or received ring works past every filter"},

		// Attack 47: CVE-2024-42318. Keyrings of a user are shared with the host's processes of that user.
		{Call: "add_key", Errno: EPERM, Why: "keyrings are shared with the host, no namespace parts them"},
		{Call: "request_key", Errno: EPERM, Why: "starts a helper on the host, as root and outside the sandbox"},
		{Call: "keyctl", Errno: EPERM, Why: "reads the host session's keys; KEYCTL_SESSION_TO_PARENT sheds Landlock"},

		// Attacks 49, 50: CVE-2017-5226, CVE-2023-28100.
		{Call: "ioctl", When: []Cond{{1, low32, tiocSTI}}, Text: "request = TIOCSTI", Errno: EPERM,
			Why: "types into the caller's terminal, and the caller's shell obeys"},
		{Call: "ioctl", When: []Cond{{1, low32, tiocLINUX}}, Text: "request = TIOCLINUX", Errno: EPERM,
			Why: "pastes into a virtual console, and the shell there obeys"},
		{Call: "ioctl", When: []Cond{{1, low32, tiocSETD}}, Text: "request = TIOCSETD", Errno: EPERM,
			Why: "loads kernel modules of line disciplines on request"},

		// Attack 46: CVE-2022-30594.
		{Call: "ptrace", When: []Cond{{0, low32, ptraceSetOptions}, {3, ptraceSuspendSeccomp, ptraceSuspendSeccomp}},
			Text: "request = PTRACE_SETOPTIONS, data & PTRACE_O_SUSPEND_SECCOMP", Errno: EPERM,
			Why: "turns the filters of a traced process off"},
		{Call: "ptrace", When: []Cond{{0, low32, ptraceSeize}, {3, ptraceSuspendSeccomp, ptraceSuspendSeccomp}},
			Text: "request = PTRACE_SEIZE, data & PTRACE_O_SUSPEND_SECCOMP", Errno: EPERM,
			Why: "turns the filters of a traced process off"},
		{Call: "ptrace", When: []Cond{{0, low32, ptraceOldSetOptions}, {3, ptraceSuspendSeccomp, ptraceSuspendSeccomp}},
			Text: "request = PTRACE_OLDSETOPTIONS, data & PTRACE_O_SUSPEND_SECCOMP", Errno: EPERM, Only: AMD64,
			Why: "turns the filters of a traced process off"},

		// Paths and walls that a file handle, a page fault handler or a kernel program would go around.
		{Call: "open_by_handle_at", Errno: EPERM, Why: "opens by inode, past every mount of the sandbox"},
		{Call: "userfaultfd", Errno: EPERM, Why: "stops the kernel at a chosen place, the usual help for its exploits"},
		{Call: "bpf", Errno: EPERM, Why: "runs code in the kernel, and reads programs and maps of the host"},
		{Call: "perf_event_open", Errno: EPERM, Why: "large kernel surface; samples what runs beside the sandbox"},
		{Call: "syslog", Errno: EPERM, Why: "reads the host's kernel log"},
		{Call: "lookup_dcookie", Errno: EPERM, Why: "turns profiler cookies into host paths (until Linux 6.6)"},

		// The state of the whole machine. The kernel asks for initial capabilities too, which are never held: the
		// filter is the second wall, and the only one should a sandbox ever run without a user namespace.
		{Call: "kexec_load", Errno: EPERM, Why: "replaces the running kernel"},
		{Call: "kexec_file_load", Errno: EPERM, Why: "replaces the running kernel"},
		{Call: "init_module", Errno: EPERM, Why: "loads a kernel module"},
		{Call: "finit_module", Errno: EPERM, Why: "loads a kernel module"},
		{Call: "delete_module", Errno: EPERM, Why: "unloads a kernel module"},
		{Call: "reboot", Errno: EPERM, Why: "stops the machine, or the sandbox's pid 1"},
		{Call: "swapon", Errno: EPERM, Why: "changes the machine's swap space"},
		{Call: "swapoff", Errno: EPERM, Why: "changes the machine's swap space"},
		{Call: "acct", Errno: EPERM, Why: "starts process accounting into a file"},
		{Call: "settimeofday", Errno: EPERM, Why: "sets the machine's clock"},
		{Call: "clock_settime", Errno: EPERM, Why: "sets the machine's clock"},
		{Call: "quotactl", Errno: EPERM, Why: "reads and changes disk quotas of the host"},
		{Call: "quotactl_fd", Errno: EPERM, Why: "reads and changes disk quotas of the host"},
		{Call: "vhangup", Errno: EPERM, Why: "hangs up the caller's terminal"},
		{Call: "iopl", Errno: EPERM, Only: AMD64, Why: "opens the machine's I/O ports"},
		{Call: "ioperm", Errno: EPERM, Only: AMD64, Why: "opens the machine's I/O ports"},
	},
}

// Known returns the system call numbers that Linux 6.18 has on a, ascending; every other number is refused with ENOSYS
// until a release of srt has judged it (attack 45). A hole at an end of a range is an architecture's reserve, where
// new calls have appeared later: 335 and 336 on x86 are the kernel's own trampolines of uretprobe and uprobe.
func Known(a Arch) []Range {
	if a == ARM64 {
		return []Range{{0, 243}, {260, 294}, {424, 469}}
	}
	return []Range{{0, 336}, {424, 469}}
}
