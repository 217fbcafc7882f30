package broker

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// Paths that lead through /proc/self, or through a link to one of the caller's own descriptors, mean something else for a
// hand. They are followed here, component by component: each is opened in the hand, so that it is the sandbox's mounts
// and the caller's rights that decide, and only a link that means the caller is followed by this process.

// zero is an argument of 0, lookFlags opens an object to look at it.
var (
	zero      = ns.Int(0)
	lookFlags = ns.Int(unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC)
)

// procRootIno is the inode number of the root directory of every procfs (PROC_ROOT_INO).
const procRootIno = 1

// walk finds what locate does, without the kernel's help for the whole path.
func (c *call) walk(o origin, path string, resolve uint64) (place, syscall.Errno) {
	if resolve&^(unix.RESOLVE_NO_MAGICLINKS|unix.RESOLVE_NO_SYMLINKS) != 0 {
		return place{}, unix.EACCES // it stays within bounds that a walk does not know
	}
	c.noMagic = resolve != 0
	cur, errno := c.start(o, path)
	if errno != 0 {
		return place{}, errno
	}
	for {
		name, rest := nextComponent(path)
		final := rest == ""
		name = c.ownName(cur, name)
		if target, ok := c.selfLink(cur, name); ok && !final {
			if resolve&unix.RESOLVE_NO_SYMLINKS != 0 || c.tooManyLinks() {
				return place{}, unix.ELOOP
			}
			path = target + "/" + rest
			continue
		}
		object, errno := c.step(cur, name)
		if final && errno != 0 && errno != unix.EACCES {
			return place{dir: cur, last: lastOf(path, name), object: -1, errno: errno}, 0
		}
		if errno != 0 {
			return place{}, errno
		}
		if final {
			return place{dir: cur, last: lastOf(path, name), object: object}, 0
		}
		if resolve&unix.RESOLVE_NO_SYMLINKS != 0 {
			if i, errno := c.look(object); errno != 0 || i.kind() == unix.S_IFLNK {
				return place{}, unix.ELOOP
			}
		}
		next, target, errno := c.follow(cur, name, object)
		switch {
		case errno != 0:
			return place{}, errno
		case target == "":
			cur, path = next, rest
			continue
		}
		path = target + "/" + rest
		if path[0] == '/' {
			if cur, errno = c.start(atRoot, "/"); errno != 0 {
				return place{}, errno
			}
		}
	}
}

// lastOf is the final component as the caller spelled it: "." for the directory itself.
func lastOf(path, name string) string {
	if name == "" {
		return "."
	}
	if strings.HasSuffix(path, "/") {
		return name + "/"
	}
	return name
}

// start opens where a walk begins.
func (c *call) start(o origin, path string) (int, syscall.Errno) {
	if path[0] != '/' {
		return o.fd, 0
	}
	if c.rooted() {
		return c.root, 0
	}
	return c.step(-1, "/")
}

// step opens one component in the hand, not following a link. Above the caller's root directory lies nothing.
func (c *call) step(cur int, name string) (int, syscall.Errno) {
	if name == "" {
		name = "."
	}
	if name == ".." && c.rooted() && c.sameObject(cur, c.root) {
		return cur, 0
	}
	p, errno := c.program(false)
	if errno != 0 {
		return -1, errno
	}
	fd := p.Call("open", name, unix.SYS_OPENAT, p.from(origin{cur}), p.Str(name), lookFlags, zero)
	p.SendFiles(0, name, fd)
	r, errno := p.do()
	if errno != 0 {
		return -1, errno
	}
	fds := c.own(&r, 1)
	if r.Failed >= 0 {
		return -1, r.Errno
	}
	return fds[0], c.whole(fds[0])
}

// follow decides how the walk goes on from an object that was opened without following: next is where it is now, or, for
// a symbolic link, target what is to be walked from the directory it lies in.
func (c *call) follow(cur int, name string, object int) (next int, target string, errno syscall.Errno) {
	i, errno := c.look(object)
	if errno != 0 {
		return -1, "", errno
	}
	if i.kind() == unix.S_IFLNK {
		at := place{dir: cur, last: name, object: object}
		if next, target, errno = c.readPlace(at); errno != 0 || target != "" {
			return next, target, errno
		}
		if i, errno = c.look(next); errno != 0 {
			return -1, "", errno
		}
		object = next
	}
	if i.kind() != unix.S_IFDIR {
		return -1, "", unix.ENOTDIR
	}
	return object, "", 0
}

// readPlace reads the symbolic link at a place: what it says, or, for a magic link, the object that it leads to. It counts
// as followed.
func (c *call) readPlace(at place) (object int, text string, errno syscall.Errno) {
	if c.tooManyLinks() {
		return -1, "", unix.ELOOP
	}
	if text, ok := c.selfLink(at.dir, nameOf(at.last)); ok {
		return -1, text, 0
	}
	fs, errno := c.fileSystem(at.object)
	switch {
	case errno != 0:
		return -1, "", errno
	case fs.Flags&stNoSymfollow != 0:
		return -1, "", unix.ELOOP
	case fs.Type == unix.PROC_SUPER_MAGIC && !c.isProcRoot(at.dir):
		if c.noMagic {
			return -1, "", unix.ELOOP
		}
		object, errno := c.magicLink(at.dir, nameOf(at.last))
		return object, "", errno
	}
	text, err := readLink(at.object, "")
	switch {
	case err != nil:
		return -1, "", c.broken(fmt.Errorf("read a symbolic link: %w", err))
	case text == "":
		return -1, "", unix.ENOENT
	}
	return -1, text, 0
}

// stNoSymfollow is ST_NOSYMFOLLOW of statfs(2): a mount on which no link is followed.
const stNoSymfollow = 0x2000

func (c *call) fileSystem(fd int) (s unix.Statfs_t, errno syscall.Errno) {
	if err := unix.Fstatfs(fd, &s); err != nil {
		return s, c.broken(fmt.Errorf("ask for a file system (fstatfs): %w", err))
	}
	return s, 0
}

// tooManyLinks counts one more link.
func (c *call) tooManyLinks() bool {
	c.links++
	return c.links > linkMax
}

func (c *call) isProcRoot(fd int) bool {
	if !c.isProc(fd) {
		return false
	}
	i, errno := c.look(fd)
	return errno == 0 && i.Ino == procRootIno
}

// isProc tells whether what a descriptor leads to lies in a procfs.
func (c *call) isProc(fd int) bool {
	s, errno := c.fileSystem(fd)
	return errno == 0 && s.Type == unix.PROC_SUPER_MAGIC
}

// selfLink is what self and thread-self in a procfs mean for the caller.
func (c *call) selfLink(dir int, name string) (string, bool) {
	if name != "self" && name != "thread-self" || !c.isProcRoot(dir) {
		return "", false
	}
	process, thread, errno := c.numbers()
	if errno != 0 || process == 0 {
		return "", false
	}
	if name == "self" {
		return strconv.Itoa(process), true
	}
	return strconv.Itoa(process) + "/task/" + strconv.Itoa(thread), true
}

// numbers are those of the caller in the sandbox's /proc.
func (c *call) numbers() (process, thread int, errno syscall.Errno) {
	outer, errno := c.s.outer.ask(c)
	if errno == 0 {
		errno = c.readStatus()
	}
	if outer {
		return c.status.tgid, c.tid, errno
	}
	return c.status.inner, c.status.innerThread, errno
}

// procKind remembers whether the sandbox's /proc is the host's (in a container that cannot have one of its own) and so
// numbers processes as this process does.
type procKind struct {
	mu           sync.Mutex
	known, outer bool
}

// ask finds out: only in the host's /proc is a hand to be found.
func (k *procKind) ask(c *call) (outer bool, errno syscall.Errno) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known {
		return k.outer, 0
	}
	p, errno := c.program(false)
	if errno != 0 {
		return false, errno
	}
	p.Call("look for the hand in", "/proc", unix.SYS_FACCESSAT, ns.Int(unix.AT_FDCWD), p.Str("/proc/self"), zero)
	r, errno := p.do()
	if errno != 0 {
		return false, errno
	}
	k.known, k.outer = true, r.Failed < 0
	return k.outer, 0
}

// magicLink opens what a link in a process's directory of /proc leads to: the caller's own, or, for an ordinary user,
// that of another of its processes that can be traced (ptrace(2), PTRACE_MODE_READ). Pid 1 is srt's.
func (c *call) magicLink(dir int, name string) (int, syscall.Errno) {
	at, err := c.where(dir)
	if err != nil {
		return -1, c.broken(fmt.Errorf("ask where a directory is: %w", err))
	}
	owner, ok := procOwner(at)
	process, _, errno := c.numbers()
	switch {
	case errno != 0:
		return -1, errno
	case !ok:
		return -1, unix.EACCES
	case owner == process:
		relative, thread := procRelative(at, name)
		if !isMagic(relative) {
			return -1, unix.EACCES
		}
		fd, errno := c.openOwn(relative, thread, unix.O_PATH)
		return fd, errno
	}
	i, errno := c.look(dir)
	if errno != 0 {
		return -1, errno
	}
	// Where a command can mount, what is at a name in its /proc may be a link of its own making, or another's directory.
	if c.s.config.Roots || c.s.config.Rights != nil || owner <= 1 || i.Uid != c.status.uids[3] || i.Uid == 0 {
		return -1, unix.EACCES
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, systemErrno(err)
	}
	c.hold(fd)
	// This process may look into more than the caller may: in the surrounding /proc, into whatever runs beside the sandbox. The
	// directory still being there says that the number has not become another process's.
	if c.surroundingProc() && (!c.s.owns(owner) || unix.Faccessat(dir, ".", unix.F_OK, 0) != nil) {
		return -1, unix.EACCES
	}
	return fd, 0
}

// systemErrno is the system's error behind err.
func systemErrno(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}

// openOwn opens what lies in the caller's own directory of /proc, or in that of one of its threads. It is found by the
// caller's number in this process's /proc, never by way of the sandbox's: a command that can mount decides what is there.
func (c *call) openOwn(relative string, number, flags int) (int, syscall.Errno) {
	_, own, errno := c.numbers()
	if errno != 0 {
		return -1, errno
	}
	fd := -1
	open := func(dir int) (err error) {
		fd, err = unix.Openat(dir, relative, flags|unix.O_CLOEXEC, 0)
		return err
	}
	var err error
	switch {
	case number == own, number == 0 && c.status.tgid == c.tid:
		err = c.onThread(func(t *thread) error { return open(t.dir) })
	case number != 0:
		return -1, unix.EACCES
	default:
		var t *thread
		if t, err = openThread(c.status.tgid); err == nil {
			err = open(t.dir)
			t.close()
		}
	}
	if err != nil {
		return -1, systemErrno(err)
	}
	c.hold(fd)
	if !c.waits() {
		return -1, unix.EINTR // the number may have become another's
	}
	return fd, 0
}

// procRelative is a name in a folder at a location in /proc, as seen from the process's directory, and the number of the
// thread whose directory that is, 0 for the process's own.
func procRelative(location, name string) (relative string, thread int) {
	parts := strings.Split(location, "/")
	if last := len(parts) - 1; slices.Contains(procFolders, parts[last]) {
		name, parts = parts[last]+"/"+name, parts[:last]
	}
	if n := len(parts); n >= 3 && parts[n-2] == "task" {
		thread, _ = strconv.Atoi(parts[n-1]) // procOwner has found it to be the caller's
	}
	return name, thread
}

// isMagic tells the links of a process's directory that lead to an object (proc_pid(5)).
func isMagic(relative string) bool {
	folder, name, inFolder := strings.Cut(relative, "/")
	switch {
	case !inFolder:
		return relative == "cwd" || relative == "root" || relative == "exe"
	case folder == "fd":
		return name != "" && strings.Trim(name, "0123456789") == ""
	case folder == "ns":
		return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
	}
	return false
}

// procFolders are the folders of a process's directory that hold such links.
var procFolders = []string{"fd", "ns", "map_files"}

// procOwner is the process whose directory in /proc holds a folder: N for /proc/N, /proc/N/fd, /proc/N/task/M/fd.
func procOwner(location string) (int, bool) {
	parts := strings.Split(location, "/")
	if slices.Contains(procFolders, parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	n := len(parts)
	if n >= 3 && parts[n-2] == "task" {
		if _, err := strconv.ParseUint(parts[n-3], 10, 31); err == nil {
			n -= 2
		}
	}
	if n == 0 {
		return 0, false
	}
	owner, err := strconv.ParseUint(parts[n-1], 10, 31)
	return int(owner), err == nil
}
