package broker

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// link performs link(2) and linkat(2).
func (c *call) link(fromDir int32, from uint64, toDir int32, to uint64, flags uint32) outcome {
	if flags&^(unix.AT_SYMLINK_FOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return failed(unix.EINVAL)
	}
	t, errno := c.readTwo(fromDir, from, toDir, to, flags)
	if errno != 0 {
		return failed(errno)
	}
	reads := c.s.config.Judge.Reads()
	if reads {
		c.s.moving.Lock() // what is linked must not be moved to where it may not leave from
		defer c.s.moving.Unlock()
	} else {
		defer c.keepStill()()
	}
	if t.toErrno == 0 && t.from != "" && flags&unix.AT_SYMLINK_FOLLOW == 0 && !c.rooted() && !c.judgesLinks() && !c.suspectPath(t.to) {
		if out, slow := c.linkFast(t); !slow {
			return out
		}
	}
	return c.linkSlow(t)
}

// linkFast gives an object a further name that is suspect to no rule.
func (c *call) linkFast(t twoPaths) (out outcome, slow bool) {
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno), false
	}
	fromDir, old := splitPath(t.from)
	toDir, target := splitPath(t.to)
	fromAt, toAt := p.from(t.start), p.from(t.end)
	from, _ := p.parent(fromAt, fromDir, 0)
	oldName := p.Str(lastOrDot(old))
	p.Call("look at", t.from, unix.SYS_OPENAT, from, oldName, lookFlags, zero) // it is found before the new directory is
	to, _ := p.parent(toAt, toDir, 0)
	after := p.Len()
	p.Call("link", t.from, unix.SYS_LINKAT, from, oldName, to, p.Str(lastOrDot(target)), zero)
	p.finish()
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno), false
	case r.Failed >= 0 && r.Failed < after && mayBeCallers(r.Errno):
		return out, true
	}
	return c.made(&r), false
}

// linkSlow finds the object, judges where it is and where it gets a name, and links that very object where it can.
func (c *call) linkSlow(t twoPaths) outcome {
	old, errno := c.linked(t, t.start)
	if errno == 0 {
		errno = t.toErrno
	}
	if errno != 0 {
		return failed(errno)
	}
	target, errno := c.locate(t.end, t.to, 0)
	switch {
	case errno != 0:
		return failed(errno)
	case target.object >= 0:
		return failed(unix.EEXIST)
	case target.errno != unix.ENOENT:
		return failed(target.errno)
	}
	why, denied, errno := c.mayCreate(target)
	switch {
	case errno != 0:
		return failed(errno)
	case denied:
		return c.refuse(c.readOnly(), c.named(target), why)
	}
	if c.s.config.Changes != nil {
		if out, denied := c.judgeLinked(old, target); denied {
			return out
		}
	}
	if i, errno := c.look(old.object); errno != 0 {
		return failed(errno)
	} else if i.kind() == unix.S_IFLNK {
		if out, denied := c.judgeRedirect(target); denied {
			return out
		}
	}
	if c.s.config.Judge.Reads() {
		where, errno := c.whereObject(old)
		if errno != 0 {
			return failed(errno)
		}
		if why, denied := c.s.config.Judge.Leave(where); denied && strings.HasPrefix(where, "/") {
			return c.refuse(unix.EACCES, where, why)
		}
	}
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	// A link of this process's own naming leads to the very object that was judged; a symbolic link is linked itself.
	object := p.hand.PassFD(old.object)
	to := p.from(origin{target.dir})
	p.Call("link", t.from, unix.SYS_LINKAT, ns.Int(ns.HandFDs), p.Name(object), to, p.Str(target.last), ns.Int(unix.AT_SYMLINK_FOLLOW))
	p.finish()
	r, errno := p.do()
	if errno != 0 {
		return failed(errno)
	}
	return c.made(&r)
}

// linked finds the object that a link is to be made to.
func (c *call) linked(t twoPaths, o origin) (place, syscall.Errno) {
	if t.from == "" {
		return place{object: o.fd, magic: true}, 0
	}
	path := t.from
	for range attempts {
		at, errno := c.locate(o, path, 0)
		switch {
		case errno != 0:
			return at, errno
		case at.object < 0:
			return at, at.errno
		}
		i, errno := c.look(at.object)
		if errno != 0 {
			return at, errno
		}
		slash := strings.HasSuffix(at.last, "/")
		switch {
		case i.kind() == unix.S_IFLNK && (t.flags&unix.AT_SYMLINK_FOLLOW != 0 || slash):
			if errno := c.followLast(&o, &path, &at, &i, 0); errno != 0 || at.magic {
				return at, errno
			}
			continue
		case slash && i.kind() != unix.S_IFDIR:
			return at, unix.ENOTDIR
		}
		return at, 0
	}
	return place{}, unix.ELOOP
}
