package broker

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// Flags of open(2) that open and openat know; they drop all others without a word (VALID_OPEN_FLAGS of
// include/linux/fcntl.h). O_LARGEFILE is always set on 64-bit machines.
const (
	flagTmpfile = unix.O_TMPFILE &^ unix.O_DIRECTORY // __O_TMPFILE
	validFlags  = unix.O_ACCMODE | unix.O_CREAT | unix.O_EXCL | unix.O_NOCTTY | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK |
		unix.O_SYNC | unix.O_DSYNC | unix.O_ASYNC | unix.O_DIRECT | unix.O_DIRECTORY | unix.O_NOFOLLOW |
		unix.O_NOATIME | unix.O_CLOEXEC | unix.O_PATH | flagTmpfile
	modeBits = 0o7777
)

// resolveCached is RESOLVE_CACHED of openat2(2).
const resolveCached = 0x20

// attempts is how often a name may vanish and come back while a call looks at it. Each time somebody else has got
// something done, so more than a few mean an attack.
const attempts = 1000

// creates tells whether the call makes a name when there is none.
func (h openHow) creates() bool { return h.flags&unix.O_CREAT != 0 }

// writes tells whether the descriptor can change what exists, or opening it does.
func (h openHow) writes() bool { return h.flags&(unix.O_ACCMODE|unix.O_TRUNC) != unix.O_RDONLY }

func (h openHow) cloexec() bool { return h.flags&unix.O_CLOEXEC != 0 }

// legacyOpen performs open(2), openat(2) and creat(2), whose flags are in registers.
func (c *call) legacyOpen(dirfd int32, at uint64, flags, mode uint32) outcome {
	if flags&unix.O_PATH != 0 || flags&flagTmpfile != 0 && c.s.config.Changes == nil {
		// It opens nothing to read or write, or makes a file without a name. The registers that say so cannot change, and
		// nothing is judged. A descriptor of the first kind could not be given to the caller either.
		return outcome{proceed: true}
	}
	how := openHow{flags: uint64(flags) & validFlags}
	temporary := flags&flagTmpfile != 0
	if how.creates() || temporary {
		how.mode = uint64(mode) & modeBits
	}
	if temporary || how.creates() && how.flags&unix.O_DIRECTORY != 0 {
		if errno := checkHow(how); errno != 0 {
			return failed(errno)
		}
	}
	path, errno := c.pathAt(at)
	if errno != 0 {
		return failed(errno)
	}
	return c.open(dirfd, path, how)
}

// open2 performs openat2(2).
func (c *call) open2(dirfd int32, at, howAt, size uint64) outcome {
	if errno := checkHowSize(size); errno != 0 {
		return failed(errno)
	}
	b, errno := c.bytesAt(howAt, int(size))
	if errno != 0 {
		return failed(errno)
	}
	how, errno := parseHow(b)
	if errno == 0 {
		errno = checkHow(how)
	}
	switch {
	case errno != 0:
		return failed(errno)
	case how.flags&unix.O_PATH != 0:
		// The kernel gives no such descriptor to a caller (SECCOMP_IOCTL_NOTIF_ADDFD takes none), and its flags are in
		// memory, so it cannot be let go on. Programs fall back to openat, which can.
		return failed(unix.ENOSYS)
	case how.resolve&resolveCached != 0:
		return failed(unix.EAGAIN) // it says: not without waiting
	}
	path, errno := c.pathAt(at)
	if errno != 0 {
		return failed(errno)
	}
	return c.open(dirfd, path, how)
}

// checkHow has the kernel say whether it takes the flags at all, which it does before it looks at the path: an empty one
// is then ENOENT.
func checkHow(how openHow) syscall.Errno {
	fd, err := unix.Openat2(-1, "", &unix.OpenHow{Flags: how.flags, Mode: how.mode, Resolve: how.resolve})
	var errno syscall.Errno
	switch {
	case err == nil:
		unix.Close(fd)
		return unix.EIO // there is nothing of that name
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EBADF):
		return 0
	case errors.As(err, &errno):
		return errno
	}
	return unix.EIO
}

// open performs any opening.
func (c *call) open(dirfd int32, path string, how openHow) outcome {
	c.text = path
	if path == "" {
		return failed(unix.ENOENT)
	}
	start := path
	if how.resolve&(unix.RESOLVE_BENEATH|unix.RESOLVE_IN_ROOT) != 0 {
		start = "." // dirfd counts for an absolute path too
	}
	o, errno := c.originOf(dirfd, start)
	if errno != 0 {
		return failed(errno)
	}
	if errno := c.room(); errno != 0 {
		return failed(errno)
	}
	defer c.keepStill()()
	out, slow := c.openFast(o, path, how)
	if !slow {
		return out
	}
	for range attempts {
		if out, again := c.openSlow(&o, &path, how); !again {
			return out
		}
	}
	return failed(c.broken(errors.New("the name was made and removed again all the time")))
}

// openFast performs an opening that needs no judging before it, in one go. slow says that it needs more.
func (c *call) openFast(o origin, path string, how openHow) (out outcome, slow bool) {
	reads := c.s.config.Judge.Reads() || c.surroundingProc()
	dir, last := splitPath(path)
	switch {
	case c.rooted():
		return out, true
	case c.s.config.Changes != nil:
		return c.openChange(o, path, how)
	case !how.creates() && how.flags&flagTmpfile != 0:
		return c.openTemporary(o, path, how)
	case !how.creates():
		return c.openExisting(o, path, how)
	case reads, how.resolve != 0, !isName(last), strings.HasSuffix(last, "/"), c.suspect(last):
		return out, true
	}
	return c.create(o, dir, last, how)
}

// create makes a file of a name that is suspect to no rule, or opens the regular file that is there.
func (c *call) create(o origin, dir, last string, how openHow) (out outcome, slow bool) {
	p, errno := c.program(true)
	if errno != 0 {
		return failed(errno), false
	}
	base := p.from(o)
	atParent := p.Len()
	parent, opened := p.parent(base, dir, 0)
	name := p.Str(last)
	fresh := p.Call("create", last, unix.SYS_OPENAT, parent, name,
		ns.Int(how.flags|unix.O_EXCL|unix.O_CLOEXEC), ns.Int(how.mode))
	if how.flags&unix.O_EXCL == 0 {
		p.Tolerate(unix.EEXIST)
	}
	p.finishFD(fresh, how.cloexec(), func() { p.OnlyIf(fresh) })
	atLook, atEnd := p.Len(), p.Len()
	if how.flags&unix.O_EXCL == 0 {
		atEnd = p.openRegular(fresh, parent, name, how)
	}
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno), false
	case r.Failed < 0:
		return outcome{sent: true}, false
	case opened && r.Failed == atParent && mayBeCallers(r.Errno):
		return out, true
	case r.Failed >= atLook && r.Failed < atEnd:
		return out, true // it is no regular file of the caller's, or gone again
	}
	return failed(r.Errno), false
}

// openRegular appends, for when fresh was not made, the opening of what is there, if it is a regular file of the caller's
// own. It gives the step before which a failure means that more has to be known.
func (p *program) openRegular(fresh ns.Slot, parent, name ns.Arg, how openHow) (end int) {
	refine := func() { p.Unless(fresh) }
	object := p.Call("open", "the object", unix.SYS_OPENAT, parent, name, lookFlags, zero)
	refine()
	at, _ := p.Buffer(statxSize)
	p.Call("look at", "the object", unix.SYS_STATX, object.Arg(), p.Str(""), ns.Int(unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC),
		ns.Int(unix.STATX_TYPE|unix.STATX_UID), at)
	refine()
	const upper = 32
	p.Expect("find", "a regular file", at, statxGID, unix.S_IFMT<<upper, unix.S_IFREG<<upper, unix.ELOOP)
	refine()
	// A file of somebody else's may be one that sysctl fs.protected_regular keeps from being opened this way.
	p.Expect("find", "a file of the caller's", at, statxNlink, (1<<32-1)<<upper, uint64(p.c.fsuid())<<upper, unix.ELOOP)
	refine()
	end = p.Len()
	fd := p.ReopenFD("open", "the object", object, reopenFlags(how))
	refine()
	p.finishFD(fd, how.cloexec(), refine)
	return end
}

// reopenFlags are the caller's flags for opening an object that has been found. To a file without a name O_EXCL says that it
// must never have one.
func reopenFlags(how openHow) int {
	drop := uint64(unix.O_CREAT | unix.O_NOFOLLOW)
	if how.flags&flagTmpfile == 0 {
		drop |= unix.O_EXCL
	}
	return int(how.flags&^drop) | unix.O_CLOEXEC
}

// fsuid is the id that the caller's files belong to.
func (c *call) fsuid() uint32 {
	if c.known {
		return c.status.uids[3]
	}
	return uint32(unix.Geteuid())
}

// openTemporary makes a file without a name (O_TMPFILE, by openat2 alone).
func (c *call) openTemporary(o origin, path string, how openHow) (out outcome, slow bool) {
	p, errno := c.program(true)
	if errno != 0 {
		return failed(errno), false
	}
	how.resolve |= unix.RESOLVE_NO_MAGICLINKS
	h := how
	h.flags |= unix.O_CLOEXEC
	fd := p.openat2(path, p.from(o), path, h)
	p.finishFD(fd, how.cloexec(), nil)
	r, errno := p.do()
	if errno != 0 {
		return failed(errno), false
	}
	return c.made(&r), mayBeCallers(r.Errno)
}

// openExisting opens a regular file or directory. With read rules it is opened first and judged by where it is then; the
// caller gets it only after that.
func (c *call) openExisting(o origin, path string, how openHow) (out outcome, slow bool) {
	reads := c.s.config.Judge.Reads() || c.surroundingProc()
	if reads && how.flags&unix.O_TRUNC != 0 {
		return out, true // it would change what may have to be refused
	}
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno), false
	}
	object := p.openat2(path, p.from(o), path, openHow{flags: how.flags&(unix.O_NOFOLLOW|unix.O_DIRECTORY) | unix.O_PATH | unix.O_CLOEXEC,
		resolve: how.resolve | unix.RESOLVE_NO_MAGICLINKS})
	at, _ := p.Buffer(statxSize)
	p.Call("look at", "the object", unix.SYS_STATX, object.Arg(), p.Str(""), ns.Int(unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC),
		ns.Int(unix.STATX_TYPE), at)
	// Of what has neither of these bits (regular files, directories, sockets) opening does nothing but open.
	p.Expect("find", "a file or directory", at, statxGID, (unix.S_IFCHR|unix.S_IFIFO)<<32, 0, unix.ELOOP)
	atOpen := p.Len()
	fd := p.ReopenFD("open", path, object, reopenFlags(how))
	if reads {
		p.SendFiles(0, path, fd)
	} else {
		p.finishFD(fd, how.cloexec(), nil)
	}
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno), false
	case r.Failed >= 0 && r.Failed < atOpen && mayBeCallers(r.Errno), r.Failed >= atOpen && r.Errno == unix.EACCES:
		r.Close()
		return out, true
	case r.Failed >= 0:
		r.Close()
		return failed(r.Errno), false
	case !reads:
		return outcome{sent: true}, false
	}
	fds := c.own(&r, 1)
	if errno := c.whole(fds[0]); errno != 0 {
		return failed(errno), false
	}
	where, err := c.where(fds[0])
	if err != nil {
		return out, true // it lies deeper than the kernel can say
	}
	if c.foreign(fds[0], where) {
		c.walks = true // it is another process's, or /proc/self was taken for the hand's
		return out, true
	}
	if out, denied := c.judgeOpen(where); denied {
		return out, false
	}
	return c.give(fds[0], how), false
}

// judgeOpen asks the judge about what lies at a location. What has none (a pipe, a socket) is in no rule.
func (c *call) judgeOpen(at string) (out outcome, denied bool) {
	if at == "" || at[0] != '/' {
		return out, false
	}
	why, denied := c.s.config.Judge.Open(at)
	if kept := strings.TrimSuffix(at, " (deleted)"); !denied && kept != at {
		why, denied = c.s.config.Judge.Open(kept) // it has lost its name, or is called so
	}
	if denied {
		return c.refuse(unix.EACCES, at, why), true
	}
	return out, false
}

// give answers with a copy of a descriptor of this process, which is closed before the caller goes on (finishFD).
func (c *call) give(fd int, how openHow) outcome {
	a := notify.AddFD{ID: c.id, Source: uint32(fd)}
	if how.cloexec() {
		a.TargetFlags = unix.O_CLOEXEC
	}
	var errno syscall.Errno
	number, err := c.s.config.Listener.AddFD(a)
	c.drop(fd)
	switch {
	case err == nil:
		return outcome{value: int64(number)}
	case errors.Is(err, notify.ErrCallEnded):
		return outcome{sent: true}
	case errors.As(err, &errno):
		return failed(errno)
	}
	return failed(c.broken(err))
}
