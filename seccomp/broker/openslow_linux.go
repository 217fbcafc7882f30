package broker

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// openSlow takes an opening one link further: it finds the place, judges it, and opens or makes what the path names there.
// A symbolic link at the place changes o and path to what it says; again says that it is to be called once more.
func (c *call) openSlow(o *origin, path *string, how openHow) (out outcome, again bool) {
	at, errno := c.locate(*o, *path, how.resolve)
	if errno != 0 {
		return failed(errno), false
	}
	slash := strings.HasSuffix(at.last, "/")
	switch {
	case how.creates() && slash:
		return failed(unix.EISDIR), false
	case at.object < 0 && (at.errno != unix.ENOENT || !how.creates()):
		return failed(at.errno), false
	case at.object < 0:
		return c.createAt(at, how)
	case how.creates() && how.flags&unix.O_EXCL != 0:
		return failed(unix.EEXIST), false
	}
	if out, again, done := c.judgeProcess(at.object); done {
		return out, again
	}
	i, errno := c.look(at.object)
	if errno != 0 {
		return failed(errno), false
	}
	if i.kind() == unix.S_IFLNK {
		if how.flags&unix.O_NOFOLLOW != 0 && !slash {
			return failed(unix.ELOOP), false
		}
		if errno := c.followLast(o, path, &at, &i, how.resolve); errno != 0 || !at.magic {
			return failed(errno), errno == 0
		}
		if out, again, done := c.judgeProcess(at.object); done { // what a magic link led to
			return out, again
		}
		if i, errno = c.look(at.object); errno != 0 {
			return failed(errno), false
		}
	}
	if slash && i.kind() != unix.S_IFDIR {
		return failed(unix.ENOTDIR), false
	}
	return c.openObject(at, &i, how), false
}

// createAt judges the making of a file at a place where there is none, and makes it.
func (c *call) createAt(at place, how openHow) (out outcome, again bool) {
	why, denied, errno := c.mayCreate(at)
	switch {
	case errno != 0:
		return failed(errno), false
	case denied:
		return c.refuse(c.readOnly(), c.named(at), why), false
	}
	if c.s.config.Judge.Reads() {
		where, errno := c.location(at)
		if errno != 0 {
			return failed(errno), false
		}
		if out, denied := c.judgeOpen(where); denied {
			return out, false
		}
	}
	p, errno := c.program(true)
	if errno != 0 {
		return failed(errno), false
	}
	step := p.Len()
	fd := p.Call("create", at.last, unix.SYS_OPENAT, p.from(origin{at.dir}), p.Str(at.last),
		ns.Int(how.flags|unix.O_EXCL|unix.O_CLOEXEC), ns.Int(how.mode))
	p.finishFD(fd, how.cloexec(), nil)
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno), false
	case r.Failed == step && r.Errno == unix.EEXIST:
		return out, true
	}
	return c.made(&r), false
}

// followLast follows the symbolic link at a place: o and path become what it says, or at.object becomes what it leads to
// and at.magic true.
func (c *call) followLast(o *origin, path *string, at *place, link *info, resolve uint64) syscall.Errno {
	if resolve&unix.RESOLVE_NO_SYMLINKS != 0 {
		return unix.ELOOP
	}
	c.noMagic = resolve != 0 // every bound implies it
	dir, errno := c.look(at.dir)
	if errno != 0 {
		return errno
	}
	if c.s.sysctl.read().linksProtected && !mayFollow(&dir, link, c.fsuid()) {
		return unix.EACCES
	}
	object, text, errno := c.readPlace(*at)
	switch {
	case errno != 0:
		return errno
	case text == "":
		at.object, at.magic = object, true
		return 0
	}
	if strings.HasSuffix(at.last, "/") {
		text += "/"
	}
	switch {
	case resolve&^unix.RESOLVE_NO_MAGICLINKS != 0 && text[0] != '/':
		before, _ := splitPath(*path) // a resolution within bounds always begins where the caller's does
		*path = before + text
	case resolve&^unix.RESOLVE_NO_MAGICLINKS != 0:
		*path = text
	case text[0] == '/':
		*o, _ = c.rootOf()
		*path = text
	default:
		*o, *path = origin{at.dir}, text
	}
	if len(*path) >= pathMax {
		return unix.ENAMETOOLONG
	}
	return 0
}

// openObject opens what was found at a place, with the hand's rights.
func (c *call) openObject(at place, i *info, how openHow) outcome {
	switch {
	case how.creates() && i.kind() == unix.S_IFDIR:
		return failed(unix.EISDIR)
	case how.flags&unix.O_DIRECTORY != 0 && i.kind() != unix.S_IFDIR:
		return failed(unix.ENOTDIR)
	}
	if out, own := c.openOwnSetting(at, how); own {
		return out
	}
	if out, denied := c.judgeObject(at, i, how); denied {
		return out
	}
	if c.unwritable(at.object, i, how) {
		return failed(unix.EACCES)
	}
	if c.passes(at.object, i) {
		return outcome{proceed: true}
	}
	if i.kind() == unix.S_IFCHR && i.Rdev_major == ttyMajor && i.Rdev_minor == 0 {
		return c.openTerminal(at.object, how)
	}
	if mayWait(i, how) {
		return c.reopenWatched(at.object, how)
	}
	out := c.reopen(at.object, how)
	if out.errno == unix.EACCES && i.kind() == unix.S_IFREG && how.flags&unix.O_ACCMODE == unix.O_RDONLY {
		return c.openOwnProc(at, how)
	}
	return out
}

// mayWait tells whether opening the object can wait for somebody else (fifo(7), tty drivers).
func mayWait(i *info, how openHow) bool {
	if how.flags&unix.O_NONBLOCK != 0 {
		return false
	}
	return i.kind() == unix.S_IFCHR || i.kind() == unix.S_IFIFO && how.flags&unix.O_ACCMODE != unix.O_RDWR
}

// judgeObject judges the opening of what exists.
func (c *call) judgeObject(at place, i *info, how openHow) (out outcome, denied bool) {
	if c.s.config.Changes != nil {
		return c.judgeOpening(at, i, how)
	}
	if c.s.config.Judge.Reads() {
		where, errno := c.whereObject(at)
		if errno != 0 {
			return failed(errno), true
		}
		if out, denied := c.judgeOpen(where); denied {
			return out, true
		}
	}
	if !how.creates() || at.magic {
		return out, false
	}
	dir, errno := c.look(at.dir)
	if errno != 0 {
		return failed(errno), true
	}
	if !c.s.sysctl.read().mayReuse(&dir, i, c.fsuid()) {
		return failed(unix.EACCES), true
	}
	if !how.writes() {
		return out, false
	}
	why, denied, errno := c.mayCreate(at)
	switch {
	case errno != 0:
		return failed(errno), true
	case denied:
		return c.refuse(c.readOnly(), c.named(at), why), true
	}
	return out, false
}

// whereObject is where the object at a place lies.
func (c *call) whereObject(at place) (string, syscall.Errno) {
	if !at.magic && isName(at.last) {
		return c.location(at)
	}
	where, err := c.where(at.object)
	if err != nil {
		return "", c.broken(fmt.Errorf("ask where a file is: %w", err))
	}
	return where, 0
}

// reopen opens an object in the hand and gives it to the caller. O_TMPFILE makes a file in it.
func (c *call) reopen(object int, how openHow) outcome {
	p, errno := c.program(how.flags&flagTmpfile != 0)
	if errno != 0 {
		return failed(errno)
	}
	name := p.Name(p.hand.PassFD(object))
	fd := p.Call("open", c.text, unix.SYS_OPENAT, ns.Int(ns.HandFDs), name, ns.Int(reopenFlags(how)), ns.Int(how.mode))
	p.finishFD(fd, how.cloexec(), nil)
	r, errno := p.do()
	if errno != 0 {
		return failed(errno)
	}
	return c.made(&r)
}

// reopenWatched is reopen for an opening that may wait, which the caller's signals can end. The hand then does not answer
// the caller itself: killed in the middle of that, it would leave the caller with a descriptor that is not there
// (notify.Listener.AddFD).
func (c *call) reopenWatched(object int, how openHow) outcome {
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	fd := p.ReopenFD("open", c.text, p.hand.PassFD(object), reopenFlags(how))
	p.SendFiles(0, c.text, fd)
	c.moveOn()
	r, errno := p.doWatched()
	if errno != 0 {
		return failed(errno)
	}
	fds := c.own(&r, 1)
	if r.Failed >= 0 {
		return failed(r.Errno)
	}
	if errno := c.whole(fds[0]); errno != 0 {
		return failed(errno)
	}
	return c.give(fds[0], how)
}

// ownProcFiles are files about a process that only that process itself, or a tracer, may read (proc_pid(5)).
var ownProcFiles = map[string]bool{"maps": true, "smaps": true, "smaps_rollup": true, "numa_maps": true, "environ": true, "auxv": true,
	"io": true, "mem": true}

// openOwnProc opens, to read, one of the caller's own files in /proc that the hand may not: this process may, and what
// it says is the caller's own.
func (c *call) openOwnProc(at place, how openHow) outcome {
	fs, errno := c.fileSystem(at.object)
	if errno != 0 {
		return failed(errno)
	}
	where, err := c.where(at.dir)
	if err != nil {
		return failed(c.broken(fmt.Errorf("ask where a directory is: %w", err)))
	}
	owner, ok := procOwner(where)
	process, _, errno := c.numbers()
	i, looked := c.look(at.object)
	if errno != 0 || looked != 0 || !ok || owner != process || fs.Type != unix.PROC_SUPER_MAGIC || !ownProcFiles[at.last] ||
		i.Uid != c.fsuid() || how.flags&unix.O_TRUNC != 0 {
		return failed(unix.EACCES)
	}
	relative, thread := procRelative(where, at.last)
	fd, errno := c.openOwn(relative, thread, unix.O_RDONLY|unix.O_NOFOLLOW|int(how.flags&unix.O_NONBLOCK))
	if errno != 0 {
		return failed(unix.EACCES)
	}
	return c.give(fd, how)
}

// sysctls are settings of the kernel that protect who opens what others left in a directory for all (proc_sys_fs(5)).
type sysctls struct {
	once           sync.Once
	linksProtected bool
	regular, fifos int
}

func (s *sysctls) read() *sysctls {
	s.once.Do(func() {
		value := func(name string) int {
			text, err := os.ReadFile("/proc/sys/fs/protected_" + name)
			if err != nil || len(text) == 0 || text[0] < '0' || text[0] > '2' {
				return 0 // the kernel does not have it
			}
			return int(text[0] - '0')
		}
		s.linksProtected, s.regular, s.fifos = value("symlinks") != 0, value("regular"), value("fifos")
	})
	return s
}

// mayFollow is the kernel's rule for a symbolic link at the end of a path (may_follow_link of fs/namei.c).
func mayFollow(dir, link *info, uid uint32) bool {
	return link.Uid == uid || dir.Mode&(unix.S_ISVTX|unix.S_IWOTH) != unix.S_ISVTX|unix.S_IWOTH || dir.Uid == link.Uid
}

// mayReuse is the kernel's rule for an opening that could have made the file but finds one (may_create_in_sticky of
// fs/namei.c).
func (s *sysctls) mayReuse(dir, i *info, uid uint32) bool {
	level := 2
	switch i.kind() {
	case unix.S_IFREG:
		level = s.regular
	case unix.S_IFIFO:
		level = s.fifos
	}
	if level == 0 || dir.Mode&unix.S_ISVTX == 0 || i.Uid == dir.Uid || i.Uid == uid {
		return true
	}
	if dir.Mode&unix.S_IWOTH != 0 {
		return false
	}
	return dir.Mode&unix.S_IWGRP == 0 || level < 2 || i.kind() != unix.S_IFREG && i.kind() != unix.S_IFIFO
}
