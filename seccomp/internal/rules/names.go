package rules

const (
	oCreat = 0x40 // O_CREAT, the same on both architectures (asm-generic/fcntl.h)

	// Requests of ioctl that make a name (linux/btrfs.h; fs/ocfs2/ocfs2_ioctl.h; fs/bcachefs/bcachefs_ioctl.h).
	btrfsSnapCreate       = 0x50009401
	btrfsSubvolCreate     = 0x5000940e
	btrfsSnapCreateV2     = 0x50009417
	btrfsSubvolCreateV2   = 0x50009418
	ocfs2Reflink          = 0x40186f04
	bcachefsSubvolCreate  = 0x4020bc10
	bcachefsSubvolCreate2 = 0x4030bc1d
)

// names is for sandboxes with denied names that do not exist (FS-30, FS-33, FS-55): every call that can make a name
// asks the broker, which performs it. What only looks like it does not: O_TMPFILE makes no name before linkat does.
//
// The rest is refused because the broker cannot stand in for it. ioctl: the names are in memory, in a file system's own
// form. landlock_create_ruleset: a layer that the command puts on itself would not bind the calls that the broker
// performs for it, so the command is told what a kernel with Landlock switched off says (landlock_create_ruleset(2)),
// and programs do without.
func names() Filter {
	const why = "makes a name, which the policy may deny"
	creat := []Cond{{1, oCreat, oCreat}}
	creatAt := []Cond{{2, oCreat, oCreat}}
	return Filter{Name: "names", Rules: join(
		[]Rule{
			{Call: "openat", When: creatAt, Text: "flags & O_CREAT", Notify: true, Why: why},
			{Call: "open", When: creat, Text: "flags & O_CREAT", Notify: true, Only: AMD64, Why: why},
		},
		makers(), watched(), unjudged(),
	)}
}

// opens is for sandboxes with denied reads of names that do not exist, or that appear later (FS-10, FS-55): beside what
// names says, every open asks the broker.
func opens() Filter {
	const why = "opens a file, which the policy may hide"
	return Filter{Name: "opens", Rules: join(
		[]Rule{
			{Call: "openat", Notify: true, Why: why},
			{Call: "open", Notify: true, Only: AMD64, Why: why},
		},
		makers(), watched(), unjudged(),
	)}
}

// ioctlNames is for sandboxes in which the kernel itself refuses denied names that do not exist, by hooks (package bpf): it
// refuses what goes through no hook. It stays apart from base, whose ioctl every sandbox pays for, and which would forbid
// subvolumes where no name is denied.
func ioctlNames() Filter { return Filter{Name: "ioctl-names", Rules: nameRequests()} }

// makers asks about every call that always makes a name, or whose flags are in memory.
func makers() []Rule {
	const why = "makes a name, which the policy may deny"
	const moves = "gives an object a name, which the policy may deny"
	return []Rule{
		{Call: "openat2", Notify: true, Why: "its flags are in memory, where no filter can read them"},
		{Call: "creat", Notify: true, Only: AMD64, Why: why},
		{Call: "mkdir", Notify: true, Only: AMD64, Why: why},
		{Call: "mkdirat", Notify: true, Why: why},
		{Call: "mknod", Notify: true, Only: AMD64, Why: why},
		{Call: "mknodat", Notify: true, Why: why},
		{Call: "symlink", Notify: true, Only: AMD64, Why: why},
		{Call: "symlinkat", Notify: true, Why: why},
		{Call: "link", Notify: true, Only: AMD64, Why: moves},
		{Call: "linkat", Notify: true, Why: moves},
		{Call: "rename", Notify: true, Only: AMD64, Why: moves},
		{Call: "renameat", Notify: true, Why: moves},
		{Call: "renameat2", Notify: true, Why: moves},
		{Call: "bind", Notify: true, Why: "an AF_UNIX socket's address is a name"},
	}
}

// watched tells the listener of every call that changes whose rights a thread acts with, or what its umask takes off the
// mode of what it makes, but capset: whose capabilities a thread has is asked for. Nothing in them is judged: the listener lets each go on. It is told so that it need not ask what
// they are before each call that it performs. All that is told is in registers, but for the list of groups,
// which is read from the kernel afterwards.
func watched() []Rule {
	const rights = "changes whose rights the calls are performed with, which the broker asks for again; goes on"
	rules := []Rule{{Call: "umask", Notify: true, Why: "changes the mode of what is made, which the broker asks for again; goes on"}}
	for _, call := range [...]string{"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setfsuid", "setfsgid",
		"setgroups"} {
		rules = append(rules, Rule{Call: call, Notify: true, Why: rights})
	}
	return rules
}

// unjudged refuses what makes a name, or a boundary, that the broker cannot see.
func unjudged() []Rule {
	return join(ownLayers(), nameRequests())
}

// innerLayer is a bit of the size argument that only an srt inside a sandbox of srt sets: it gives the kernel a structure with
// that many bytes of zeros behind it, which is allowed (landlock_create_ruleset(2)).
const innerLayer = 0x200

// ownLayers refuses Landlock to the command: a layer that it puts on itself, of rules about files or about TCP, would not bind the
// calls that the broker performs for it. An srt inside knows that, and does not rely on it for these.
func ownLayers() []Rule {
	return []Rule{{Call: "landlock_create_ruleset", When: []Cond{{1, innerLayer, 0}}, Text: "not an srt inside (size without bit 9)", Errno: EOPNOTSUPP,
		Why: "a layer of the command's own would not bind what the broker performs for it"}}
}

// nameRequests refuses the requests of ioctl that make a name.
func nameRequests() (rules []Rule) {
	for _, r := range []struct {
		value uint64
		name  string
	}{
		{btrfsSnapCreate, "BTRFS_IOC_SNAP_CREATE"},
		{btrfsSubvolCreate, "BTRFS_IOC_SUBVOL_CREATE"},
		{btrfsSnapCreateV2, "BTRFS_IOC_SNAP_CREATE_V2"},
		{btrfsSubvolCreateV2, "BTRFS_IOC_SUBVOL_CREATE_V2"},
		{ocfs2Reflink, "OCFS2_IOC_REFLINK"},
		{bcachefsSubvolCreate, "BCH_IOCTL_SUBVOLUME_CREATE"},
		{bcachefsSubvolCreate2, "BCH_IOCTL_SUBVOLUME_CREATE_v2"},
	} {
		rules = append(rules, Rule{Call: "ioctl", When: []Cond{{1, low32, r.value}}, Text: "request = " + r.name,
			Errno: EPERM, Why: "makes a name that only the file system can read"})
	}
	return rules
}

func join(parts ...[]Rule) (all []Rule) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
