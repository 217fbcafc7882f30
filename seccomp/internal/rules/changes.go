package rules

// Numbers of calls that libseccomp 2.5.4 does not know, beside those of observe.go (scripts/syscall.tbl).
const nrFileSetattr = 469

// put says why a call comes to the broker; judged says what it decides.
const (
	put        = "changes a file, an attribute or a name: srt judges where that lies, and performs it"
	otherRules = "changes what is not in the mode's view of the file system: no judge sees it"
)

// changesFilter is for sandboxes without mounts of their own (mode confined): the command's Landlock domain lets it change
// nothing, and every call that would change a file, an attribute or a name is performed by the broker, which judges where
// the object lies. It says all that names says, and more.
//
// What is put to the listener is every call of Linux 6.18 that changes something by a path, or by a descriptor that need not
// be open for writing: opening in order to write, make or empty; mkdir, mknod, symlink, link, unlink, rmdir, rename;
// truncate; chmod, chown, times and extended attributes by path and by descriptor; bind. What changes a file by a
// descriptor that is open for writing was judged when that was opened (write, ftruncate, fallocate, copy_file_range,
// splice, io_submit, FICLONE, mmap). io_uring and open_by_handle_at are refused by base, whatever mounts by namespaces.
// Newer spellings with their arguments in memory are answered as by an older kernel, so that libraries use the older
// ones. chroot, swapon, acct and quotactl take capabilities that no command has, or base refuses them.
//
// Calls that act upon other processes by number, with no check that Landlock sees, are put as well: one on the caller
// itself goes on in the kernel, one on another process only if that is of the sandbox.
func changesFilter() Filter {
	return Filter{Name: "changes", Judged: numbered, Rules: join(
		putOpens(), putCalls(), watched(), unjudged(), attributeRequests(),
	)}
}

// putOpens puts every opening that writes, makes or empties. Its flags are in a register: an opening to read costs no more
// than a look at it. O_TMPFILE makes a file too, and only with a writing mode (open(2)).
func putOpens() []Rule {
	rules := writingOpens()
	for i := range rules {
		rules[i].Why = put
	}
	return rules
}

// putCalls puts every other call, and openat2.
func putCalls() []Rule {
	rules := []Rule{{Call: "openat2", Notify: true, Why: "its flags are in memory, where no filter can read them"},
		{Call: "bind", Notify: true, Why: "an AF_UNIX socket's address is a name"}}
	for _, r := range changing() {
		switch {
		case r.Call == "openat2":
			continue
		case r.Number == nrSetxattrat || r.Number == nrRemovexattrat:
			r.Notify, r.Errno, r.Why = false, ENOSYS, "a newer spelling, with arguments in memory; programs fall back to the older ones"
		default:
			r.Why = put
		}
		rules = append(rules, r)
	}
	return append(rules, Rule{Call: "file_setattr", Number: nrFileSetattr, Errno: EOPNOTSUPP, Why: otherRules})
}

// numbered are the calls that act upon processes by number and that the kernel allows to every process of the same user,
// without the check of ptrace that Landlock takes part in (kernel/sched/syscalls.c, kernel/sys.c, block/ioprio.c). Those on the
// caller itself, by the number 0, are not put.
var numbered = []Judged{
	{NumberedCall{"sched_setparam", 142, 118}, &ownNumber},
	{NumberedCall{"sched_setscheduler", 144, 119}, &ownNumber},
	{NumberedCall{"sched_setaffinity", 203, 122}, &ownNumber},
	{NumberedCall{"sched_setattr", 314, 274}, &ownNumber},
	{NumberedCall{"prlimit64", 302, 261}, &ownNumber},
	{NumberedCall{"setpriority", 141, 140}, &priorityOf},
	{NumberedCall{"ioprio_set", 251, 30}, &ioPriorityOf},
}

const numberWhy = "acts upon a process by its number, which may be none of the sandbox's: srt lets it go on if it is"

var (
	ownNumber = Choice{Index: 0, Mask: low32, Name: "pid", Cases: []Case{{Value: 0, Name: "0"}}, Ask: true, Why: numberWhy}
	ownWho    = Choice{Index: 1, Mask: low32, Name: "who", Cases: []Case{{Value: 0, Name: "0"}}, Ask: true, Why: numberWhy}

	priorityOf   = Choice{Index: 0, Mask: low32, Name: "which", Cases: []Case{{Value: 0, Name: "PRIO_PROCESS", Next: &ownWho}}, Ask: true, Why: numberWhy}
	ioPriorityOf = Choice{Index: 0, Mask: low32, Name: "which", Cases: []Case{{Value: 1, Name: "IOPRIO_WHO_PROCESS", Next: &ownWho}}, Ask: true,
		Why: numberWhy}
)

// attributeRequests refuses the requests of ioctl that change a file or a directory through a descriptor that is open for
// reading (fs/ioctl.c, and each file system's own ioctl.c): Landlock does not know them. Requests that take a descriptor
// open for writing, or CAP_SYS_ADMIN, are not among them. EOPNOTSUPP is what file systems without them say.
func attributeRequests() (rules []Rule) {
	for _, r := range []struct {
		value uint64
		name  string
	}{
		{0x40086602, "FS_IOC_SETFLAGS"},
		{0x40046602, "FS_IOC32_SETFLAGS"},
		{0x401c5820, "FS_IOC_FSSETXATTR"},
		{0x40087602, "FS_IOC_SETVERSION"},
		{0x40806685, "FS_IOC_ENABLE_VERITY"},
		{0x800c6613, "FS_IOC_SET_ENCRYPTION_POLICY"},
		{0xc0506617, "FS_IOC_ADD_ENCRYPTION_KEY"},
		{0xc0406618, "FS_IOC_REMOVE_ENCRYPTION_KEY"},
		{0xc0185879, "FITRIM"},
		{0x40086604, "EXT4_IOC_SETVERSION"},
		{0x40086606, "EXT4_IOC_SETRSVSZ"},
		{0x6609, "EXT4_IOC_MIGRATE"},
		{0x660c, "EXT4_IOC_ALLOC_DA_BLKS"},
		{0x6611, "EXT4_IOC_SWAP_BOOT"},
		{0x50009402, "BTRFS_IOC_DEFRAG"},
		{0x40309410, "BTRFS_IOC_DEFRAG_RANGE"},
		{0x5000940f, "BTRFS_IOC_SNAP_DESTROY"},
		{0x5000943f, "BTRFS_IOC_SNAP_DESTROY_V2"},
		{0x4008941a, "BTRFS_IOC_SUBVOL_SETFLAGS"},
		{0xc0c09425, "BTRFS_IOC_SET_RECEIVED_SUBVOL"},
		{0x40047211, "FAT_IOCTL_SET_ATTRIBUTES"},
		{0x4020bc11, "BCH_IOCTL_SUBVOLUME_DESTROY"},
		{0x4030bc1e, "BCH_IOCTL_SUBVOLUME_DESTROY_v2"},
		{0x8008bc40, "BCHFS_IOC_REINHERIT_ATTRS"},
		{0x40289702, "CEPH_IOC_SET_LAYOUT"},
		{0x40289705, "CEPH_IOC_SET_LAYOUT_POLICY"},
		{0xcf04, "CIFS_IOC_SET_INTEGRITY"},
	} {
		rules = append(rules, Rule{Call: "ioctl", When: []Cond{{1, low32, r.value}}, Text: "request = " + r.name, Errno: EOPNOTSUPP, Why: otherRules})
	}
	// Whatever f2fs has: some of it takes no descriptor open for writing, and programs do without.
	return append(rules, Rule{Call: "ioctl", When: []Cond{{1, 0xff00, 0xf500}}, Text: "type of request = 0xf5 (f2fs)", Errno: EOPNOTSUPP, Why: otherRules})
}
