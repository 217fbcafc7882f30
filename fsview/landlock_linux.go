package fsview

import (
	"sort"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// Landlock repeats the write rules, so that a mistake in the mounts is not a hole: it holds for every way to a file,
// descriptors of the caller's included (FS-46), and forbids any change of mounts (landlock(7)).

// Rights that Landlock handles here, by the ABI that brought them. Reading and executing are left to the mounts.
var fsRights = []struct {
	abi  int
	bits uint64
}{
	{1, unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM},
	{2, unix.LANDLOCK_ACCESS_FS_REFER},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
}

// fileRights are those that mean something on a file.
const fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

// ScopeABI is the Landlock ABI from which no signal and no abstract socket reaches out of a sandbox (Linux 6.12).
const ScopeABI = 6

// Right is a set of Landlock access rights.
type Right uint8

const (
	// RightAll is every right that is handled: the path is a write root.
	RightAll Right = iota + 1
	// RightFile is writing to files that exist, and device control.
	RightFile
)

var rightNames = map[Right]string{RightAll: "write", RightFile: "write existing files"}

func (r Right) String() string { return rightNames[r] }

// LandlockRule grants rights at and beneath a path of the finished view.
type LandlockRule struct {
	Path  string
	Right Right
	Dir   bool
}

// LandlockRules are the rules of a plan in path order. An unrestricted plan has none: nothing is handled then.
func (pl *Plan) LandlockRules() []LandlockRule {
	if pl.Unrestricted {
		return nil
	}
	rules := []LandlockRule{{"/dev", RightFile, true}, {"/dev/shm", RightAll, true}, {"/proc", RightFile, true}}
	for _, w := range pl.Writable {
		rules = append(rules, LandlockRule{w.Path, RightAll, w.Dir})
	}
	for _, s := range pl.Steps {
		if s.Kind == HideDir && !(s.Late && hiddenByTable(s)) {
			rules = append(rules, LandlockRule{s.Path, RightAll, true})
		}
	}
	sort.SliceStable(rules, func(i, j int) bool { return rules[i].Path < rules[j].Path })
	return rules
}

// handled are the rights that a kernel's ABI can hold.
func handled(abi int) (bits uint64) {
	for _, r := range fsRights {
		if abi >= r.abi {
			bits |= r.bits
		}
	}
	return bits
}

// rulesetSize is of struct landlock_ruleset_attr with zeros behind it, as every kernel takes it. It tells the filters of a sandbox
// of srt around this one that the ruleset is srt's (rules.innerLayer in package seccomp).
const rulesetSize = 512

// parentFD is the offset of parent_fd in struct landlock_path_beneath_attr, which the kernel packs.
const parentFD = 8

// CompileLandlock appends the making of the ruleset and gives the descriptor for CompileRestrict. It belongs after
// Compile: the rules name objects of the finished view.
func (pl *Plan) CompileLandlock(p *ns.Program, opts CompileOptions) ns.Slot {
	attr := &[rulesetSize / 8]uint64{}
	if !pl.Unrestricted && !opts.NestedNamespaces {
		attr[0] = handled(opts.LandlockABI)
	}
	if opts.LandlockABI >= ScopeABI {
		attr[2] = unix.LANDLOCK_SCOPE_SIGNAL
		if !opts.OwnAbstractNames {
			attr[2] |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
	}
	if *attr == [rulesetSize / 8]uint64{} {
		return 0
	}
	set := p.Call("make the Landlock ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, ns.Pointer(p, attr), ns.Int(rulesetSize), ns.Int(0))
	if attr[0] == 0 {
		return set
	}
	c := &compiler{p: p, plan: pl}
	for _, r := range pl.LandlockRules() {
		bits := attr[0]
		if r.Right == RightFile || !r.Dir {
			bits &= fileRights
		}
		rule := &unix.LandlockPathBeneathAttr{Allowed_access: bits}
		fd := c.open(r.Path)
		if inKernelTree(r.Path) {
			p.Tolerate(syscall.ENOENT, syscall.ENOTDIR) // not in the sandbox's own /proc, or hidden with all of /dev
		}
		ptr := ns.Pointer(p, rule)
		p.Store(ptr, parentFD, fd)
		p.OnlyIf(fd)
		p.Call("add the Landlock rule for", r.Path, unix.SYS_LANDLOCK_ADD_RULE, set.Arg(), ns.Int(unix.LANDLOCK_RULE_PATH_BENEATH), ptr, ns.Int(0))
		p.OnlyIf(fd)
		p.Close(fd)
	}
	return set
}

// CompileRestrict appends the point of no return: the process and all its descendants are held by the ruleset. The
// caller has appended no_new_privs before. The descriptor stays open until pid 1 closes all that the program opened, before
// the command exists.
func CompileRestrict(p *ns.Program, set ns.Slot) {
	if set == 0 {
		return
	}
	p.Call("enforce the Landlock ruleset", "", unix.SYS_LANDLOCK_RESTRICT_SELF, set.Arg(), ns.Int(0))
}
