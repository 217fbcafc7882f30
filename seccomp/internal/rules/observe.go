package rules

// Numbers of calls that libseccomp 2.5.4 does not know, the same on every architecture (scripts/syscall.tbl).
const (
	nrFchmodat2     = 452
	nrSetxattrat    = 463
	nrRemovexattrat = 466
)

const (
	oWronly = 0x1   // O_WRONLY, O_RDWR and O_TRUNC, the same on both architectures (asm-generic/fcntl.h)
	oRdwr   = 0x2   //
	oTrunc  = 0x200 //

	changes = "may be refused, which is reported; goes on"
	reads   = "reads what the policy may hide, which is reported; goes on"
)

// observeWrites is for sandboxes whose refused writes are reported where the kernel does not tell of them (VIO-10): every call
// that changes a file, its attributes or a name is told to the listener, which looks at what the call means and lets it go on.
func observeWrites() Filter {
	return Filter{Name: "observe-writes", Rules: join(writingOpens(), changing())}
}

// observeAll is for those whose refused reads are reported, too.
func observeAll() Filter {
	return Filter{Name: "observe-all", Rules: join([]Rule{
		{Call: "openat", Notify: true, Why: reads},
		{Call: "open", Notify: true, Only: AMD64, Why: reads},
		{Call: "execve", Notify: true, Why: reads},
		{Call: "execveat", Notify: true, Why: reads},
		{Call: "readlink", Notify: true, Only: AMD64, Why: reads},
		{Call: "readlinkat", Notify: true, Why: reads},
		{Call: "chdir", Notify: true, Why: reads},
	}, changing())}
}

// writingOpens tells of openings that write, make or empty a file. Their flags are in a register: an opening to read, the most
// frequent call of all, costs no more than a look at it.
func writingOpens() (rules []Rule) {
	for _, f := range []struct {
		value uint64
		name  string
	}{{oWronly, "O_WRONLY"}, {oRdwr, "O_RDWR"}, {oCreat, "O_CREAT"}, {oTrunc, "O_TRUNC"}} {
		text := "flags & " + f.name
		rules = append(rules,
			Rule{Call: "openat", When: []Cond{{2, f.value, f.value}}, Text: text, Notify: true, Why: changes},
			Rule{Call: "open", When: []Cond{{1, f.value, f.value}}, Text: text, Notify: true, Only: AMD64, Why: changes})
	}
	return rules
}

// changing tells of every other call that changes something, and of openat2.
func changing() []Rule {
	rules := []Rule{{Call: "openat2", Notify: true, Why: "its flags are in memory, where no filter can read them; goes on"}}
	for _, call := range [...]string{"creat", "unlink", "rmdir", "mkdir", "mknod", "link", "symlink", "rename", "chmod", "chown", "lchown",
		"utime", "utimes", "futimesat"} {
		rules = append(rules, Rule{Call: call, Notify: true, Only: AMD64, Why: changes})
	}
	for _, call := range [...]string{"unlinkat", "mkdirat", "mknodat", "linkat", "symlinkat", "renameat", "renameat2", "truncate", "fchmod",
		"fchmodat", "fchown", "fchownat", "utimensat", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"} {
		rules = append(rules, Rule{Call: call, Notify: true, Why: changes})
	}
	return append(rules,
		Rule{Call: "fchmodat2", Number: nrFchmodat2, Notify: true, Why: changes},
		Rule{Call: "setxattrat", Number: nrSetxattrat, Notify: true, Why: changes},
		Rule{Call: "removexattrat", Number: nrRemovexattrat, Notify: true, Why: changes})
}
