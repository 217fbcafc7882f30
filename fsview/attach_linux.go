package fsview

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// Offsets in struct statx (statx(2)), each read as eight bytes.
const (
	sizeofStatx = 256
	offMode     = 24 // gid in the low, mode in the high half
	modeShift   = 32
	offInode    = 32
	offRdev     = 128 // major in the low, minor in the high half
	offDevice   = 136
)

// typeBits are the kernel's S_IFMT bits for a file type.
func typeBits(t fs.FileMode) uint32 {
	switch t.Type() {
	case fs.ModeDir:
		return unix.S_IFDIR
	case fs.ModeSymlink:
		return unix.S_IFLNK
	case fs.ModeNamedPipe:
		return unix.S_IFIFO
	case fs.ModeSocket:
		return unix.S_IFSOCK
	case fs.ModeDevice:
		return unix.S_IFBLK
	case fs.ModeDevice | fs.ModeCharDevice:
		return unix.S_IFCHR
	}
	return unix.S_IFREG
}

// attach appends one step of the plan.
func (c *compiler) attach(s Step) {
	defer func() { c.attached[s.Path] = s.Kind }()
	switch s.Kind {
	case Writable:
		place := c.place[s.Path]
		if c.covered(s.Path) {
			c.p.Close(place)
			delete(c.place, s.Path)
			place = c.placeOf(s)
		}
		c.mountOn(s.Path, c.clone[s.Path], place)
		c.p.Close(c.clone[s.Path])
	case ReadOnly:
		fd := c.placeOf(s)
		tree := c.sourceOf(s, fd)
		c.quiet(s.Path, tree, attrReadOnly)
		c.put(s.Path, tree, fd)
	case HideDir:
		fd := c.placeOf(s)
		c.put(s.Path, c.hiddenTree(s.Path), fd)
	case HideFile:
		fd := c.placeOf(s)
		c.put(s.Path, c.maskTree(s.Path), fd)
	case EmptyDir:
		fd := c.placeOf(s)
		c.put(s.Path, c.emptyTree(s.Path), fd)
	case Mask, Supplied:
		c.attachMask(s)
	case Reveal, RevealWritable:
		c.makePlace(s)
		c.put(s.Path, c.clone[s.Path], c.open(s.Path))
	}
}

// covered tells that a path lies in a tree that another step has shown again inside a hidden directory. What is mounted
// at its place in the tree beneath would not be seen (FS-27).
func (c *compiler) covered(path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if _, ok := c.clone[dir]; ok {
			return true
		}
	}
	return false
}

// placeOf opens where a step mounts and proves that it is still the object that was planned for.
func (c *compiler) placeOf(s Step) ns.Slot {
	open := c.open
	if s.ID.Type.Type() == fs.ModeSymlink {
		open = c.openLink
	}
	fd := open(s.Path)
	c.prove(s.Path, fd, s.ID)
	return fd
}

// hiddenName is the name in the yard of the directory that hides a path.
func (c *compiler) hiddenName(path string) string {
	n, ok := c.hide[path]
	if !ok {
		n = len(c.hide)
		c.hide[path] = n
	}
	return "h" + strconv.Itoa(n)
}

// hiddenTree makes the directory that hides a path: in memory, empty and writable (FS-32).
func (c *compiler) hiddenTree(path string) ns.Slot {
	name := c.hiddenName(path)
	c.makeDir(name, 0o755)
	return c.yardTree(name)
}

// makePlace makes, within a hidden directory, the way to what is revealed there.
func (c *compiler) makePlace(s Step) {
	base := c.hiddenName(s.HiddenBy) + "/"
	for i, rel := range s.Make {
		if i == len(s.Make)-1 && !s.Dir {
			c.makeFile(base+rel, 0o444)
			return
		}
		c.makeDir(base+rel, 0o755)
		c.p.Tolerate(syscall.EEXIST)
	}
}

func (c *compiler) maskTree(path string) ns.Slot { return c.sealedTree(path, maskName) }

func (c *compiler) emptyTree(path string) ns.Slot { return c.sealedTree(path, emptyName) }

// openDevices opens the devices that the private /dev shows, while the host's /dev is in sight and its devices still
// open. Each is proven to be the device it is taken for.
func (c *compiler) openDevices() {
	for i, n := range devNodes {
		path := "/dev/" + n.name
		fd := c.open(path)
		c.p.Call("stat", path, unix.SYS_STATX, fd.Arg(), c.p.Str(""), ns.Int(unix.AT_EMPTY_PATH), ns.Int(unix.STATX_TYPE), c.statx)
		c.p.Expect("find a character device at", path, c.statx, offMode, unix.S_IFMT<<modeShift, unix.S_IFCHR<<modeShift, syscall.ENODEV)
		c.p.Expect("find the right device at", path, c.statx, offRdev, ^uint64(0), uint64(n.major)|uint64(n.minor)<<32, syscall.ENODEV)
		c.devices[i] = c.p.Call("copy the mount at", path, unix.SYS_OPEN_TREE, fd.Arg(), c.p.Str(""),
			ns.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH))
		c.p.Close(fd)
		c.setAttr("restrict the mount at", path, c.devices[i].Arg(), "", unix.AT_EMPTY_PATH,
			unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC})
	}
}

// privateDev replaces /dev (FS-47).
func (c *compiler) privateDev() {
	c.makeDir("dev", 0o755)
	c.makeDir("dev/pts", 0o755)
	c.makeDir("dev/shm", 0o755)
	c.makeDir("shm", 0o1777)
	for _, n := range devNodes {
		c.makeFile("dev/"+n.name, 0o444)
	}
	for _, l := range devLinks {
		c.p.Call("make the link", "/dev/"+l[0], unix.SYS_SYMLINKAT, c.p.Str(l[1]), c.yard.Arg(), c.p.Str("dev/"+l[0]))
	}
	dev := c.yardTree("dev")
	c.quiet("/dev", dev, attrReadOnly)
	c.put("/dev", dev, c.open("/dev"))
	for i, n := range devNodes {
		c.putOwn("/dev/"+n.name, c.devices[i])
	}
	options := [][2]string{{"mode", "0620"}, {"ptmxmode", "0666"}}
	if c.opts.TTYGroup {
		options = append(options, [2]string{"gid", "5"})
	}
	c.putOwn("/dev/pts", c.newFilesystem("devpts", "/dev/pts", options, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC))
	c.putOwn("/dev/shm", c.yardTree("shm"))
}

// protectKernelPaths applies the table of system.go. What this kernel does not have is passed over: the host's own /proc
// and /sys tell, so that nothing is tried for it. These trees are the kernel's: no path in them can be swapped.
func (c *compiler) protectKernelPaths() {
	// From here on the sealed yard is the working directory, so that one call mounts what hides a path.
	c.p.Call("enter", emptyName, syscall.SYS_FCHDIR, c.sealed.Arg())
	paths := kernelPaths[:]
	if c.opts.HostProc {
		paths = slices.Concat(paths, hostProcPaths[:])
	}
	for _, k := range paths {
		if c.opts.Lacks != nil && c.opts.Lacks(k.path) {
			continue
		}
		switch {
		case k.how == readOnly && (len(c.opts.ProcEntries) > 0 || c.opts.HostProc && c.opts.procStays()): // attachProc has done it
		case k.how == readOnly:
			bound := c.bind(k.path, k.path, unix.MS_REC)
			c.setAttr("restrict the mount at", k.path, ns.Int(unix.AT_FDCWD), k.path, unix.AT_RECURSIVE, unix.MountAttr{Attr_set: attrReadOnly})
			c.p.OnlyIf(bound)
		case k.dir:
			c.bind(emptyName, k.path, 0)
		default:
			c.bind(maskName, k.path, 0)
		}
	}
	// Where the root is writable this is what keeps /sys read-only; it is no mount of its own where it has nothing.
	c.setAttr("make read-only", "/sys", ns.Int(unix.AT_FDCWD), "/sys", unix.AT_RECURSIVE, unix.MountAttr{Attr_set: attrReadOnly})
	c.p.Tolerate(syscall.EINVAL, syscall.ENOENT)
}

// bind mounts what is at source on a path of the kernel's file systems, in one call: no name in these can be swapped, so that
// a descriptor would prove nothing. The mount has the attributes of that which source is found in. The slot holds no result where
// the path does not exist.
func (c *compiler) bind(source, path string, flags int) ns.Slot {
	s := c.p.Call("mount on", path, syscall.SYS_MOUNT, c.p.Str(source), c.p.Str(path), ns.Int(0), ns.Int(unix.MS_BIND|flags), ns.Int(0))
	c.p.Tolerate(syscall.ENOENT, syscall.ENOTDIR)
	return s
}
