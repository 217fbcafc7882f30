package broker

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// In a sandbox without mounts of its own (mode confined) nothing stands between a command and the host's files but a Landlock
// domain in which it may change nothing. Every call that changes a file, an attribute or a name comes here (seccomp.Changes):
//
//	caller              worker                                                hand (its own Landlock domain: the write roots)
//	unlink("a/b")  ---> reads "a/b" once, finds a and b, not following b
//	  waits             where is a (the kernel says)? may b be removed there?
//	                    yes                                   ------------->  unlinkat(a, "b")
//	<-----------------------------------------------------------------------  the result
//
// Landlock and the judge are two walls, and neither is all: Landlock knows whole write roots and no
// attributes, the judge knows every rule and goes by locations. A location holds for as long as nothing is renamed: every call
// here holds Server.moving for reading while it judges and performs, and a rename holds it for writing.

// ChangeJudge decides about whatever changes something, for a sandbox without mounts of its own. *fsview.ConfinedJudge is one.
// A location is absolute, without links, "." and "..", as the kernel names it; nothing need be there. The errno is the answer
// to the caller, 0 if the change is allowed; why names the rule for the report. It is asked by many goroutines at once.
//
// fsview.AccessWrite is asked for changes of what is there, its attributes included, AccessCreate for a new name of whatever
// object, AccessRemove for taking a name away. A rename asks for the latter at its source, for AccessCreate at its target, and for
// both where something is replaced; then Judge.Move hears of directories. A further name of an object counts as a change of
// it, since it can be changed under that name.
type ChangeJudge interface {
	Change(location string, a fsview.Access) (why string, errno unix.Errno)
}

// keepStill keeps everything from being renamed by the sandbox until the function that it gives, or moveOn, is called. Without a
// judge of changes it does nothing: mounts go with what they lie on.
func (c *call) keepStill() (end func()) {
	if c.s.config.Changes == nil {
		return func() {}
	}
	c.s.moving.RLock()
	c.still = true
	return c.moveOn
}

// moveOn ends keepStill, before something that may wait for somebody else: what was judged is held by a descriptor.
func (c *call) moveOn() {
	if c.still {
		c.still = false
		c.s.moving.RUnlock()
	}
}

// readOnly is the errno of a refusal: what the judge of changes says, EROFS for what a Judge refuses.
func (c *call) readOnly() unix.Errno {
	if c.judged != 0 {
		return c.judged
	}
	return unix.EROFS
}

// asks puts a change to the judge. fd lies on the mount that the location is on. What lies in no mount that srt can see is the
// business of no rule, and is refused; what has no place in any (a pipe, a memfd) is the caller's own.
func (c *call) asks(fd int, where string, a fsview.Access) (why string, denied bool, errno unix.Errno) {
	if where == "" || where[0] != '/' {
		return "", false, 0
	}
	m, errno := c.mounted(fd)
	if errno != 0 {
		return "", false, errno
	}
	if !m.known {
		if c.isMemory(fd, where) {
			return "", false, 0
		}
		c.judged = unix.EACCES
		return "", true, 0
	}
	why, c.judged = c.s.config.Changes.Change(where, a)
	if kept := strings.TrimSuffix(where, " (deleted)"); c.judged == 0 && kept != where {
		why, c.judged = c.s.config.Changes.Change(kept, a) // it has lost its name, or is called so
	}
	return why, c.judged != 0, 0
}

// isMemory tells a memfd or the like, which lies on a mount of the kernel's own under a name that means nothing
// (memfd_create(2)).
func (c *call) isMemory(fd int, where string) bool {
	i, errno := c.look(fd)
	fs, errno2 := c.fileSystem(fd)
	return errno == 0 && errno2 == 0 && i.Nlink == 0 && (fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.HUGETLBFS_MAGIC) &&
		strings.HasPrefix(where, "/memfd:")
}

// judgeChange is asks with the answer to the caller, where the change is refused.
func (c *call) judgeChange(fd int, where string, a fsview.Access) (out outcome, denied bool) {
	why, denied, errno := c.asks(fd, where, a)
	switch {
	case errno != 0:
		return failed(errno), true
	case denied:
		return c.refuse(c.judged, where, why), true
	}
	return out, false
}

// judgeName is judgeChange for the name of a place.
func (c *call) judgeName(at place, a fsview.Access) (out outcome, denied bool) {
	where, errno := c.location(at)
	if errno != 0 {
		return failed(errno), true
	}
	return c.judgeChange(at.dir, where, a)
}

// mayMake is mayCreate where there is a judge of changes.
func (c *call) mayMake(at place) (why string, denied bool, errno unix.Errno) {
	where, errno := c.location(at)
	if errno != 0 {
		return "", false, errno
	}
	return c.asks(at.dir, where, fsview.AccessCreate)
}

// judgeOpening is judgeObject where there is a judge of changes.
func (c *call) judgeOpening(at place, i *info, how openHow) (out outcome, denied bool) {
	if how.creates() && !at.magic {
		dir, errno := c.look(at.dir)
		if errno != 0 {
			return failed(errno), true
		}
		if !c.s.sysctl.read().mayReuse(&dir, i, c.fsuid()) {
			return failed(unix.EACCES), true
		}
	}
	where, errno := c.whereObject(at)
	if errno != 0 {
		return failed(errno), true
	}
	if c.s.config.Judge.Reads() {
		if out, denied := c.judgeOpen(where); denied {
			return out, true
		}
	}
	if !how.writes() && how.flags&flagTmpfile == 0 || c.passes(at.object, i) {
		return out, false // what passes is the command's Landlock domain to judge; the attributes of a device are the judge's
	}
	if i.kind() == unix.S_IFDIR && how.flags&flagTmpfile == 0 {
		return failed(unix.EISDIR), true // as the kernel says before it looks at the mount (may_open of fs/namei.c)
	}
	return c.judgeChange(at.object, where, fsview.AccessWrite)
}

// passes tells whether an opening that was judged can go on in the kernel: that of a device, as the caller's terminal, or of a
// pipe without a name. The command's own Landlock domain holds whatever its path means by then, and lets it change devices
// alone.
func (c *call) passes(object int, i *info) bool {
	switch {
	case c.s.config.Changes == nil:
		return false
	case i.kind() == unix.S_IFCHR:
		return true
	case i.kind() != unix.S_IFIFO:
		return false
	}
	where, err := c.where(object)
	return err == nil && where != "" && where[0] != '/'
}

// judgeLinked judges the object that gets a further name: it can be changed under that. As between two mounts, which is
// what parts the two in other modes, the answer is EXDEV, from which programs go on to copy.
func (c *call) judgeLinked(old, target place) (out outcome, denied bool) {
	where, errno := c.whereObject(old)
	if errno != 0 {
		return failed(errno), true
	}
	why, denied, errno := c.asks(old.object, where, fsview.AccessWrite)
	switch {
	case errno != 0:
		return failed(errno), true
	case denied:
		return c.refuse(unix.EXDEV, where, why), true
	}
	i, errno := c.look(old.object)
	dir, errno2 := c.look(target.dir)
	if errno == 0 && errno2 == 0 && i.kind() == unix.S_IFDIR && i.Mnt_id == dir.Mnt_id && !strings.HasSuffix(target.last, "/") {
		// link(2); the hand's Landlock domain would say EXDEV of a write root itself. The kernel asks for the new name first.
		if errno = c.mayAdd(target.dir); errno == 0 {
			errno = unix.EPERM
		}
	}
	return failed(errno), errno != 0
}

// mayAdd asks as the caller whether modes and mounts let names be added to a directory (may_create in fs/namei.c).
func (c *call) mayAdd(dir int) syscall.Errno {
	p, errno := c.program(false)
	if errno != 0 {
		return errno
	}
	p.Call("may add names to", "the directory", unix.SYS_FACCESSAT2, p.from(origin{dir}), p.Str(""), ns.Int(unix.W_OK|unix.X_OK),
		ns.Int(unix.AT_EACCESS|unix.AT_EMPTY_PATH))
	r, errno := p.do()
	switch {
	case errno != 0:
		return errno
	case r.Failed >= 0:
		return r.Errno
	}
	return 0
}
