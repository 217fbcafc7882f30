package fsview

import (
	"fmt"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// CompileOptions say what a plan cannot know.
type CompileOptions struct {
	// LandlockABI is the kernel's (landlock_create_ruleset(2)); MinLandlockABI is the least that serves.
	LandlockABI int
	// NestedNamespaces leaves mount changes possible in namespaces that the command makes: Landlock forbids them to
	// everyone it restricts, so the second wall is left out (allowNestedUserNamespaces).
	NestedNamespaces bool
	// OwnAbstractNames tells that the sandbox has a network namespace of its own and a broker that connects its sockets. Abstract
	// names belong to the namespace (unix(7)), so that none of the host's can be reached; and Landlock's scope of them would refuse
	// those of the sandbox to the broker's hands, which have a domain of their own.
	OwnAbstractNames bool
	// TTYGroup tells that group 5 is mapped, so that terminals get it as on the host.
	TTYGroup bool
	// ProcEntries are the names in /proc that are not of processes (ProcEntries), where user id 0 is mapped: they become
	// read-only.
	ProcEntries []string
	// HostProc shows, in the place of a fresh /proc, the surrounding one with all that is mounted in it, read-only: where a container
	// masks parts of its /proc the kernel mounts no other (mount_too_revealing in fs/namespace.c; FreshProcRefused). It shows
	// processes that are not of the sandbox, which Input.ForeignProcesses has judged.
	HostProc bool
	// Lacks tells that a path of the kernel's own file systems does not exist on this kernel. Nil: unknown.
	Lacks func(path string) bool
}

// MinLandlockABI is the version that brought renames between directories (Linux 5.19); without it every one is EXDEV.
const MinLandlockABI = 2

// compiler carries what the parts of one compilation share.
type compiler struct {
	p    *ns.Program
	plan *Plan
	opts CompileOptions

	statx    ns.Arg // one struct statx, used again and again
	yard     ns.Slot
	sealed   ns.Slot // the yard, read-only
	proc     ns.Slot
	clone    map[string]ns.Slot // sources opened from the untouched tree, by the step's Path
	place    map[string]ns.Slot // their own places, for write roots; they lead beneath the copies
	attached map[string]Kind    // the steps done so far, by path
	hide     map[string]int     // number of the in-memory directory, by path
	above    ns.Slot            // the directory above what was opened last; 0: none (openByName)
	faked    int                // masks and supplied files made so far

	devices [len(devNodes)]ns.Slot
}

// yardPath is where the one in-memory file system is attached while the view is built. It is covered by the fresh
// /proc before the command exists, and never reachable after that.
const yardPath = "/proc"

// yardOptions bound everything that hidden directories, /dev/shm and placeholders may hold (FS-32).
var yardOptions = [...][2]string{{"mode", "0755"}, {"size", "25%"}, {"nr_inodes", "262144"}}

// The kernel's private attribute sets: nothing gains privilege from the file system (FS-44), and devices open only in
// the private /dev.
const (
	attrQuiet    = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrReadOnly = attrQuiet | unix.MOUNT_ATTR_RDONLY
)

// Compile appends the steps that give a process the plan's view of the file system: sources first, from the untouched
// tree; then pins; then the whole tree read-only; then the plan's steps in order; then /dev, /proc and /sys. Files made
// here need mapped ids, which a program always finds (ns.Prepared.Start).
func (pl *Plan) Compile(p *ns.Program, opts CompileOptions) error {
	if opts.LandlockABI < MinLandlockABI {
		return fmt.Errorf("fsview: Landlock ABI %d, at least %d is needed", opts.LandlockABI, MinLandlockABI)
	}
	c := &compiler{p: p, plan: pl, opts: opts, clone: map[string]ns.Slot{}, place: map[string]ns.Slot{}, attached: map[string]Kind{}, hide: map[string]int{}}
	c.statx, _ = p.Buffer(int(sizeofStatx))
	c.setAttr("stop mount propagation", "/", ns.Int(unix.AT_FDCWD), "/", unix.AT_RECURSIVE, unix.MountAttr{Propagation: unix.MS_PRIVATE})
	c.openProc()
	c.openSources()
	c.openDevices()
	c.pin()
	c.lockTree()
	c.attachYard()
	for _, s := range pl.Steps {
		if s.Kind != Pin && !s.Late {
			c.attach(s)
		}
	}
	c.privateDev()
	c.attachProc()
	c.protectKernelPaths()
	c.attachLateSteps()
	return nil
}

// newFilesystem makes a detached mount of a new file system (fsopen(2)).
func (c *compiler) newFilesystem(kind, subject string, options [][2]string, attr int) ns.Slot {
	ctx := c.p.Call("make a "+kind+" file system for", subject, unix.SYS_FSOPEN, c.p.Str(kind), ns.Int(unix.FSOPEN_CLOEXEC))
	for _, o := range options {
		c.p.Call("set "+o[0]+" of the "+kind+" for", subject, unix.SYS_FSCONFIG, ctx.Arg(), ns.Int(unix.FSCONFIG_SET_STRING),
			c.p.Str(o[0]), c.p.Str(o[1]), ns.Int(0))
	}
	c.p.Call("make a "+kind+" file system for", subject, unix.SYS_FSCONFIG, ctx.Arg(), ns.Int(unix.FSCONFIG_CMD_CREATE), ns.Int(0), ns.Int(0), ns.Int(0))
	m := c.p.Call("mount a "+kind+" file system for", subject, unix.SYS_FSMOUNT, ctx.Arg(), ns.Int(unix.FSMOUNT_CLOEXEC), ns.Int(attr))
	c.p.Close(ctx)
	return m
}

// setAttr appends mount_setattr(2) on dir/path.
func (c *compiler) setAttr(op, subject string, dir ns.Arg, path string, flags int, attr unix.MountAttr) {
	a := attr
	c.p.Call(op, subject, unix.SYS_MOUNT_SETATTR, dir, c.p.Str(path), ns.Int(flags), ns.Pointer(c.p, &a), ns.Int(unix.MOUNT_ATTR_SIZE_VER0))
}

// open appends the opening of an absolute path that holds no link, as a place only (O_PATH).
func (c *compiler) open(path string) ns.Slot {
	if !placesByOpenat2() {
		return c.openByName(path)
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	if path == "/" {
		how.Resolve = 0
	}
	return c.p.Call("open", path, unix.SYS_OPENAT2, ns.Int(unix.AT_FDCWD), c.p.Str(path), ns.Pointer(c.p, how), ns.Int(unix.SizeofOpenHow))
}

// openLink is open for a path whose last component is a link that is meant itself.
func (c *compiler) openLink(path string) ns.Slot {
	if !placesByOpenat2() {
		return c.openByName(path) // it follows no link, at the end neither
	}
	dir := c.open(filepath.Dir(path))
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC}
	s := c.p.Call("open", path, unix.SYS_OPENAT2, dir.Arg(), c.p.Str(filepath.Base(path)), ns.Pointer(c.p, how), ns.Int(unix.SizeofOpenHow))
	c.p.Close(dir)
	return s
}

// prove appends the check that what was opened is what the planner saw.
func (c *compiler) prove(path string, fd ns.Slot, id Identity) {
	if id == (Identity{}) {
		return
	}
	c.p.Call("stat", path, unix.SYS_STATX, fd.Arg(), c.p.Str(""), ns.Int(unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT),
		ns.Int(unix.STATX_TYPE|unix.STATX_INO), c.statx)
	dev := uint64(unix.Major(id.Dev)) | uint64(unix.Minor(id.Dev))<<32
	c.p.Expect("find unchanged", path, c.statx, offInode, ^uint64(0), id.Ino, syscall.ESTALE)
	c.p.Expect("find unchanged", path, c.statx, offDevice, ^uint64(0), dev, syscall.ESTALE)
	c.p.Expect("find unchanged", path, c.statx, offMode, unix.S_IFMT<<modeShift, uint64(typeBits(id.Type))<<modeShift, syscall.ESTALE)
}

// copyTree appends a detached copy of the mounts at a descriptor (open_tree(2)).
func (c *compiler) copyTree(path string, fd ns.Slot) ns.Slot {
	return c.p.Call("copy the mount at", path, unix.SYS_OPEN_TREE, fd.Arg(), c.p.Str(""),
		ns.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE))
}

// quiet makes a detached copy nosuid and nodev, and read-only where asked.
func (c *compiler) quiet(path string, tree ns.Slot, attr uint64) {
	c.setAttr("restrict the mount at", path, tree.Arg(), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, unix.MountAttr{Attr_set: attr})
}

// put attaches a detached mount to a place and closes both.
func (c *compiler) put(path string, tree, place ns.Slot) {
	c.mountOn(path, tree, place)
	c.p.Close(tree)
	c.p.Close(place)
}

// mountOn attaches a detached mount to a place.
func (c *compiler) mountOn(path string, tree, place ns.Slot) {
	c.p.Call("mount on", path, unix.SYS_MOVE_MOUNT, tree.Arg(), c.p.Str(""), place.Arg(), c.p.Str(""),
		ns.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// openSources opens and copies, from the untouched tree, everything that later steps cover: write roots, which are
// still writable now, and what is to be seen inside hidden directories.
func (c *compiler) openSources() {
	for _, s := range c.plan.Steps {
		switch s.Kind {
		case Writable:
			fd := c.open(s.Path)
			c.prove(s.Path, fd, s.ID)
			tree := c.copyTree(s.Path, fd)
			c.quiet(s.Path, tree, attrQuiet)
			c.clone[s.Path], c.place[s.Path] = tree, fd
		case Reveal, RevealWritable:
			if !s.Late {
				c.openSource(s)
			}
		}
	}
}

// openSource opens and copies what a reveal shows.
func (c *compiler) openSource(s Step) {
	fd := c.open(s.Source)
	c.prove(s.Source, fd, s.ID)
	tree := c.copyTree(s.Source, fd)
	c.p.Close(fd)
	attr := uint64(attrQuiet)
	if s.Kind == Reveal {
		attr = attrReadOnly
	}
	c.quiet(s.Source, tree, attr)
	c.clone[s.Path] = tree
}

// pin mounts something on every name that must stay, in the tree beneath the write roots' copies. The kernel refuses
// to rename or remove a name that is a mount point anywhere in the namespace (EBUSY), while the way through the copy
// crosses no mount, so that renames within it work (FS-41, FS-42).
func (c *compiler) pin() {
	for _, s := range c.plan.Steps {
		if s.Kind != Pin {
			continue
		}
		open := c.open
		if !s.Dir {
			open = c.openLink
		}
		fd := open(s.Path)
		c.prove(s.Path, fd, s.ID)
		c.put(s.Path, c.copyTree(s.Path, fd), fd)
	}
}

// lockTree makes all that is mounted now nosuid and nodev, and read-only where the settings restrict writing.
func (c *compiler) lockTree() {
	attr := uint64(attrReadOnly)
	if c.plan.Unrestricted || c.plan.RootWritable {
		attr = attrQuiet
	}
	c.setAttr("restrict the mount at", "/", ns.Int(unix.AT_FDCWD), "/", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: attr})
}

// attachYard makes the in-memory file system and, in it, the one file that stands for every hidden file (empty, mode
// 0000) and the one empty directory. It then shows the yard once more, read-only, so that copies of what lies there are
// read-only from the start. What that is attached to does not matter; a copy can only be made of what is attached.
func (c *compiler) attachYard() {
	c.yard = c.newFilesystem("tmpfs", "hidden paths", yardOptions[:], attrQuiet)
	place := c.open(yardPath)
	c.mountOn(yardPath, c.yard, place)
	c.p.Close(place)
	c.makeFile(maskName, 0)
	c.makeDir(emptyName, 0o755)
	c.sealed = c.p.Call("copy the mount at", yardPath, unix.SYS_OPEN_TREE, c.yard.Arg(), c.p.Str(""),
		ns.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH))
	c.quiet(yardPath, c.sealed, attrReadOnly)
	c.p.Call("mount on", emptyName, unix.SYS_MOVE_MOUNT, c.sealed.Arg(), c.p.Str(""), c.yard.Arg(), c.p.Str(emptyName), ns.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// Names in the yard. Beside them are the directories that hide others (hiddenName) and what masks show (fakeTree).
const (
	maskName  = "mask"
	emptyName = "empty"
)

// sealedTree is a detached read-only copy, for a path, of a directory or file in the yard.
func (c *compiler) sealedTree(path, name string) ns.Slot {
	return c.p.Call("copy the mount for", path, unix.SYS_OPEN_TREE, c.sealed.Arg(), c.p.Str(name), ns.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
}

// yardTree is a detached copy of a directory or file in the yard.
func (c *compiler) yardTree(name string) ns.Slot {
	return c.p.Call("copy the mount at", name, unix.SYS_OPEN_TREE, c.yard.Arg(), c.p.Str(name), ns.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
}

func (c *compiler) makeDir(name string, mode int) {
	c.p.Call("make the directory", name, syscall.SYS_MKDIRAT, c.yard.Arg(), c.p.Str(name), ns.Int(mode))
}

func (c *compiler) makeFile(name string, mode int) {
	c.p.Call("make the file", name, syscall.SYS_MKNODAT, c.yard.Arg(), c.p.Str(name), ns.Int(unix.S_IFREG|mode), ns.Int(0))
}

// putOwn attaches a detached mount to a place in a tree that was made here, where nobody else can have changed it.
func (c *compiler) putOwn(path string, tree ns.Slot) {
	c.p.Call("mount on", path, unix.SYS_MOVE_MOUNT, tree.Arg(), c.p.Str(""), ns.Int(unix.AT_FDCWD), c.p.Str(path),
		ns.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.p.Close(tree)
}
