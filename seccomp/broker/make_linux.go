package broker

import (
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// maker makes one name: mkdir, mknod, symlink.
type maker struct {
	// add appends the call itself, which makes last in the directory parent.
	add func(p *program, parent, last ns.Arg)
	// umask says that the mode of what is made depends on the caller's umask.
	umask bool
	// dir says that a directory is made, link that a symbolic link is.
	dir, link bool
}

// make performs a call that makes a name at a path.
func (c *call) make(dirfd int32, path string, m maker) outcome {
	c.text = path
	if path == "" {
		return failed(unix.ENOENT)
	}
	o, errno := c.originOf(dirfd, path)
	if errno != 0 {
		return failed(errno)
	}
	if c.s.config.Changes != nil {
		defer c.keepStill()()
	} else if m.dir && c.s.config.Judge.Moves() {
		c.s.moving.RLock()
		defer c.s.moving.RUnlock()
	}
	if dir, last := splitPath(path); last != "" && !c.rooted() && !c.suspect(last) && !(m.link && c.judgesLinks()) {
		p, errno := c.program(m.umask)
		if errno != 0 {
			return failed(errno)
		}
		step := p.Len()
		parent, opened := p.parent(p.from(o), dir, 0)
		m.add(p, parent, p.Str(last))
		p.finish()
		r, errno := p.do()
		if errno != 0 {
			return failed(errno)
		}
		if !opened || r.Failed != step || !mayBeCallers(r.Errno) {
			return c.made(&r)
		}
	}
	if out, slow := c.makeHere(o, path, m); !slow {
		return out
	}
	at, errno := c.locate(o, path, 0)
	if errno != 0 {
		return failed(errno)
	}
	return c.makeAt(at, m)
}

// makeAt judges the making of a name at a place and performs it there.
func (c *call) makeAt(at place, m maker) outcome {
	why, denied, errno := c.mayCreate(at)
	switch {
	case errno != 0:
		return failed(errno)
	case denied && at.object >= 0:
		return failed(unix.EEXIST) // as without a rule: nothing would be made
	case denied && at.errno != unix.ENOENT:
		return failed(at.errno)
	case denied:
		return c.refuse(c.readOnly(), c.named(at), why)
	}
	if m.link && at.object < 0 && at.errno == unix.ENOENT {
		if out, denied := c.judgeRedirect(at); denied {
			return out
		}
	}
	p, errno := c.program(m.umask)
	if errno != 0 {
		return failed(errno)
	}
	m.add(p, p.from(origin{at.dir}), p.Str(at.last))
	p.finish()
	r, errno := p.do()
	if errno != 0 {
		return failed(errno)
	}
	return c.made(&r)
}

// judgesLinks tells whether the judge has to know of every symbolic link that is made.
func (c *call) judgesLinks() bool {
	judge := c.s.config.Judge
	return judge.Moves() || judge.Reads()
}

// judgeRedirect judges that a symbolic link comes to be at a place.
func (c *call) judgeRedirect(at place) (out outcome, denied bool) {
	if !c.judgesLinks() {
		return out, false
	}
	location, errno := c.location(at)
	if errno != 0 {
		return failed(errno), true
	}
	if why, denied := c.s.config.Judge.Redirect(location); denied {
		return c.refuse(unix.EROFS, location, why), true
	}
	return out, false
}

// suspect tells whether a last component may be refused somewhere. To a judge of changes every place counts.
func (c *call) suspect(last string) bool {
	return isName(last) && (c.s.config.Changes != nil || c.s.config.Judge.Suspect(nameOf(last)))
}

// made is the answer after a program that ends with an answer of its own.
func (c *call) made(r *ns.HandResult) outcome {
	if r.Failed < 0 {
		return outcome{sent: true}
	}
	return failed(r.Errno)
}

// mkdir performs mkdir(2) and mkdirat(2).
func (c *call) mkdir(dirfd int32, at uint64, mode uint32) outcome {
	path, errno := c.pathAt(at)
	if errno != 0 {
		return failed(errno)
	}
	return c.make(dirfd, path, maker{umask: true, dir: true, add: func(p *program, parent, last ns.Arg) {
		p.Call("make the directory", path, unix.SYS_MKDIRAT, parent, last, ns.Int(mode))
	}})
}

// mknod performs mknod(2) and mknodat(2).
func (c *call) mknod(dirfd int32, at uint64, mode uint32, dev uint32) outcome {
	switch mode & unix.S_IFMT { // which the kernel looks at before anything else (may_mknod of fs/namei.c)
	case unix.S_IFREG, unix.S_IFCHR, unix.S_IFBLK, unix.S_IFIFO, unix.S_IFSOCK, 0:
	case unix.S_IFDIR:
		return failed(unix.EPERM)
	default:
		return failed(unix.EINVAL)
	}
	path, errno := c.pathAt(at)
	if errno != 0 {
		return failed(errno)
	}
	return c.make(dirfd, path, maker{umask: true, add: func(p *program, parent, last ns.Arg) {
		p.Call("make the node", path, unix.SYS_MKNODAT, parent, last, ns.Int(mode), ns.Int(dev))
	}})
}

// symlink performs symlink(2) and symlinkat(2).
func (c *call) symlink(target uint64, dirfd int32, at uint64) outcome {
	text, errno := c.pathAt(target)
	if errno != 0 {
		return failed(errno)
	}
	if text == "" {
		return failed(unix.ENOENT)
	}
	path, errno := c.pathAt(at)
	if errno != 0 {
		return failed(errno)
	}
	return c.make(dirfd, path, maker{link: true, add: func(p *program, parent, last ns.Arg) {
		p.Call("make the link", path, unix.SYS_SYMLINKAT, p.Str(text), parent, last)
	}})
}
