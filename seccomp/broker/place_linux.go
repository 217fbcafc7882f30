package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// place is a name in a directory that has been found, whether or not there is something of that name.
type place struct {
	dir    int           // descriptor of the directory, O_PATH
	last   string        // the name, with the slashes behind it
	object int           // descriptor of what is there, O_PATH, links not followed; -1 if it cannot be opened
	errno  syscall.Errno // why it cannot be opened: ENOENT if nothing is there
	magic  bool          // object is what a magic link led to (proc_pid_fd(5)): it has no name here
}

// locateByHand finds the directory of a path's last component, and what is there. Links on the way are followed by the kernel
// in the hand; where it meets one that means the caller (/proc/self and what lies beneath), the path is walked here.
func (c *call) locateByHand(o origin, path string, resolve uint64) (place, syscall.Errno) {
	if c.rooted() || c.walks {
		return c.walk(o, path, resolve)
	}
	dir, last := splitPath(path)
	if last == "" {
		last = "."
	}
	p, errno := c.program(false)
	if errno != 0 {
		return place{}, errno
	}
	at := p.from(o)
	if dir == "" {
		dir = "."
	}
	parent := p.openat2("the directory", at, dir, openHow{flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		resolve: resolve | unix.RESOLVE_NO_MAGICLINKS})
	p.SendFiles(0, "the directory", parent)
	look := openHow{flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, resolve: resolve | unix.RESOLVE_NO_MAGICLINKS}
	var object ns.Slot
	if isName(last) {
		object = p.openat2("the object", parent.Arg(), nameOf(last), look)
	} else {
		object = p.openat2("the object", at, path, look) // by the whole path, of which a resolution may allow more
	}
	p.SendFiles(1, "the object", object)
	p.OnlyIf(object)
	r, errno := p.do()
	if errno != 0 {
		return place{}, errno
	}
	fds := c.own(&r, 2)
	switch {
	case r.Failed < 0:
		return place{dir: fds[0], last: last, object: fds[1]}, c.whole(fds[0], fds[1])
	case fds[0] >= 0 && r.Errno == unix.ENOENT && c.surroundingProc() && c.isProc(fds[0]):
		// It may be the caller's by a number of the sandbox's own (ownName), or beneath /proc/self, which is the hand's there.
		return c.walk(o, path, resolve)
	case fds[0] >= 0 && r.Errno != unix.EACCES: // which is the directory's: it may not be searched
		return place{dir: fds[0], last: last, object: -1, errno: r.Errno}, 0
	case fds[0] < 0 && mayBeCallers(r.Errno) && resolve&^unix.RESOLVE_NO_MAGICLINKS == 0:
		return c.walk(o, path, resolve)
	}
	return place{}, r.Errno
}

// mayBeCallers tells whether a path that fails so in a hand may lead somewhere for its caller: /proc/self is not there for
// the hand, and it follows no magic link.
func mayBeCallers(errno syscall.Errno) bool { return errno == unix.ENOENT || errno == unix.ELOOP }

// errLost says that a descriptor that the hand sent did not come, which is so at this process's limit of open files.
var errLost = errors.New("a descriptor from the hand did not come (the limit of open files of srt?)")

func (c *call) whole(fds ...int) syscall.Errno {
	for _, fd := range fds {
		if fd < 0 {
			return c.broken(errLost)
		}
	}
	return 0
}

// info is what is known of an object.
type info struct {
	unix.Statx_t
}

func (i *info) kind() uint16 { return i.Mode & unix.S_IFMT }

// look asks what a descriptor of this process leads to.
func (c *call) look(fd int) (info, syscall.Errno) {
	var i info
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &i.Statx_t); err != nil {
		return i, c.broken(fmt.Errorf("look at a descriptor from the hand (statx): %w", err))
	}
	return i, 0
}

// identity is the directory of a place for the judge.
func (c *call) identity(dir int) (fsview.Identity, syscall.Errno) {
	i, errno := c.look(dir)
	return fsview.Identity{Dev: unix.Mkdev(i.Dev_major, i.Dev_minor), Ino: i.Ino, Type: fs.ModeDir}, errno
}

// mayCreate asks the judge about making a name at a place. why says which rule refuses it.
func (c *call) mayCreate(at place) (why string, denied bool, errno syscall.Errno) {
	if !isName(at.last) {
		return "", false, 0
	}
	if c.s.config.Changes != nil {
		return c.mayMake(at)
	}
	id, errno := c.identity(at.dir)
	if errno != 0 {
		return "", false, errno
	}
	why, denied, err := c.s.config.Judge.Create(id, func() (string, error) { return c.where(at.dir) }, nameOf(at.last))
	if err != nil {
		return "", false, c.broken(fmt.Errorf("ask where a directory is: %w", err))
	}
	return why, denied, 0
}

// location is where the place is, or would be.
func (c *call) location(at place) (string, syscall.Errno) {
	dir, err := c.where(at.dir)
	if err != nil {
		return "", c.broken(fmt.Errorf("ask where a directory is: %w", err))
	}
	if !isName(at.last) {
		return dir, 0
	}
	return joinLocation(dir, nameOf(at.last)), 0
}

// named is a place's location for a report: as the caller spelled it where it is not known.
func (c *call) named(at place) string {
	dir, err := c.where(at.dir)
	if err != nil {
		return c.text
	}
	return joinLocation(strings.TrimSuffix(dir, " (deleted)"), nameOf(at.last))
}
