package broker

import (
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// spot is what a path is about, before the call: a location as the sandbox sees it, and what is there.
type spot struct {
	path  string        // absolute, without links; what is missing is as the caller spelled it, without "." and ".."
	fd    int           // what is there, O_PATH; -1 if it cannot be opened
	errno syscall.Errno // why not: ENOENT, or EACCES if a directory on the way may not be searched
	inDir bool          // the directory that it lies in, or would, is there
	dir   int           // where it cannot be opened: the deepest directory that is there
}

// kind is the S_IFMT bits of what is there, 0 if nothing is.
func (s *spot) kind(c *call) uint16 {
	if s.fd < 0 {
		return 0
	}
	i, _ := c.look(s.fd)
	return i.kind()
}

// mount is the mount of what is there, or of the deepest directory that is.
func (s *spot) mount(c *call) uint64 {
	fd := s.fd
	if fd < 0 {
		fd = s.dir
	}
	i, _ := c.look(fd)
	return i.Mnt_id
}

// wanted is what a call makes of its path.
type wanted struct {
	follow  bool   // a link at its end is followed
	empty   bool   // the empty path means the descriptor itself (AT_EMPTY_PATH)
	name    bool   // it is about the last name, which is not followed; "." and ".." are none
	noSlash bool   // a slash at the end has it fail where nothing is there: it makes no directory
	resolve uint64 // of openat2(2)
}

// scoped are the bounds of openat2 within which a path means something else.
const scoped = unix.RESOLVE_BENEATH | unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS

// spotAt reads a path and finds what it is about. ok is false where the call fails by itself, or nothing can be found out.
func (c *call) spotAt(dirfd int32, at uint64, w wanted) (where spot, ok bool) {
	text, errno := c.pathAt(at)
	switch {
	case errno != 0:
		return where, false
	case text == "" && w.empty:
		return c.spotOf(dirfd)
	case text == "", w.name && !isName(lastPart(text)):
		return where, false
	}
	absolute := text[0] == '/' && w.resolve&(unix.RESOLVE_BENEATH|unix.RESOLVE_IN_ROOT) == 0
	var origin int
	if absolute {
		origin, errno = c.ownRoot()
	} else {
		origin, errno = c.ownFD(dirfd)
	}
	if errno != 0 {
		return where, false
	}
	where, ok = c.find(origin, absolute, text, w)
	if ok && w.noSlash && where.fd < 0 && text[len(text)-1] == '/' {
		return where, false
	}
	return where, ok
}

func lastPart(text string) string {
	_, last := splitPath(text)
	return last
}

// spotOf is what a descriptor of the caller's, or its working directory, leads to.
func (c *call) spotOf(dirfd int32) (where spot, ok bool) {
	fd, errno := c.ownFD(dirfd)
	if errno != 0 {
		return where, false
	}
	return c.there(fd)
}

// ownFD opens what a descriptor of the caller's, or its working directory, leads to.
func (c *call) ownFD(dirfd int32) (int, syscall.Errno) {
	o, errno := c.originOf(dirfd, "")
	return o.fd, errno
}

// there is a spot that is there.
func (c *call) there(fd int) (where spot, ok bool) {
	at, ok := c.locationOf(fd)
	return spot{path: at, fd: fd, inDir: true}, ok
}

// locationOf is where a descriptor of this process leads. What has no place (a pipe, what has been removed) is in no rule.
func (c *call) locationOf(fd int) (string, bool) {
	own, errno := c.s.observer.own.get(func() (int, syscall.Errno) {
		fd, errno := c.openHeld(unix.AT_FDCWD, "/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errno != 0 {
			return -1, c.broken(errno)
		}
		return c.keep(fd)
	})
	if errno != 0 {
		return "", false
	}
	at, err := readLink(own, strconv.Itoa(fd)) // which costs half of what it does by the whole path
	if err != nil {
		c.unseen = true // it lies deeper than the kernel can say
		return "", false
	}
	return at, at[0] == '/' && !strings.HasSuffix(at, " (deleted)")
}

// find finds what a path is about in as few steps as can be.
func (c *call) find(origin int, absolute bool, text string, w wanted) (where spot, ok bool) {
	resolve := w.resolve | unix.RESOLVE_NO_MAGICLINKS | resolveCached
	switch {
	case absolute:
		resolve |= unix.RESOLVE_IN_ROOT
	case resolve&unix.RESOLVE_IN_ROOT == 0:
		resolve |= unix.RESOLVE_BENEATH
	}
	flags := uint64(unix.O_PATH | unix.O_CLOEXEC)
	if !w.follow {
		flags |= unix.O_NOFOLLOW
	}
	fd, errno := c.openHeld(origin, text, flags, resolve)
	switch errno {
	case 0:
		return c.there(fd)
	case unix.ENOTDIR:
		return where, false
	case unix.ENOENT:
		if where, ok = c.findMissing(origin, text, resolve); ok {
			return where, true
		}
	}
	if w.resolve&scoped != 0 {
		if errno == unix.EAGAIN {
			c.unseen = true // bounds that a walk does not know
		}
		return where, false
	}
	return c.walkTo(origin, absolute, text, w)
}

// findMissing is find for a name that is not there, in a directory that is. ok says that it is so.
func (c *call) findMissing(origin int, text string, resolve uint64) (where spot, ok bool) {
	dir, last := splitPath(text)
	if !isName(last) {
		return where, false
	}
	if dir == "" {
		dir = "."
	}
	parent, errno := c.openHeld(origin, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, resolve)
	if errno != 0 {
		return where, false
	}
	if _, errno := c.openHeld(parent, nameOf(last), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, resolveCached); errno != unix.ENOENT {
		return where, false // a link to nothing, perhaps
	}
	return c.missing(parent, nameOf(last), "", unix.ENOENT)
}

// missing is the spot of a name that cannot be looked at in a directory that is open, and of what would lie beneath it.
func (c *call) missing(dir int, name, rest string, errno syscall.Errno) (where spot, ok bool) {
	at, ok := c.locationOf(dir)
	if !ok {
		return where, false
	}
	where = spot{path: joinLocation(at, name), fd: -1, errno: errno, inDir: strings.Trim(rest, "/") == "", dir: dir}
	if !where.inDir {
		where.path = path.Join(where.path, rest)
	}
	return where, true
}

// openHeld opens, O_PATH, by openat2.
func (c *call) openHeld(dir int, name string, flags, resolve uint64) (int, syscall.Errno) {
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: flags, Resolve: resolve})
	if err != nil {
		return -1, systemErrno(err)
	}
	return c.hold(fd), 0
}

// heldFD is a descriptor that is opened once and kept until the Server ends. The zero value holds none.
type heldFD struct {
	mu sync.Mutex
	fd int // 0: not opened yet
}

// get gives the descriptor, which open makes if there is none yet.
func (h *heldFD) get(open func() (int, syscall.Errno)) (int, syscall.Errno) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fd > 0 {
		return h.fd, 0
	}
	fd, errno := open()
	if errno != 0 {
		return -1, errno
	}
	h.fd = fd
	return fd, 0
}

func (h *heldFD) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fd > 0 {
		unix.Close(h.fd)
		h.fd = 0
	}
}

// close gives back what the observer holds.
func (o *observer) close() {
	o.root.close()
	o.own.close()
}

// ownRoot is the caller's root directory: the sandbox's, where it can have no other.
func (c *call) ownRoot() (int, syscall.Errno) {
	if c.s.config.Roots {
		return c.openOf("root")
	}
	return c.s.observer.root.get(func() (int, syscall.Errno) {
		fd, errno := c.openOf("root")
		if errno != 0 {
			return -1, errno
		}
		if !c.waits() {
			return -1, c.broken(errLost) // it may have been another's
		}
		return c.keep(fd)
	})
}

// keep copies a descriptor for longer than this call.
func (c *call) keep(fd int) (int, syscall.Errno) {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, c.broken(err)
	}
	return kept, 0
}
