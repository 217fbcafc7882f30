package broker

import (
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// changeSpecs finds a call that only a sandbox with a judge of changes puts to the broker (seccomp.Changes).
func changeSpecs(number int32) (spec, bool) {
	const cwd, nofollow = unix.AT_FDCWD, unix.AT_SYMLINK_NOFOLLOW
	find := func(name string, perform func(c *call) outcome) (spec, bool) {
		return spec{name: name, perform: func(c *call) outcome { return c.changed(perform) }}, true
	}
	switch number {
	case unix.SYS_UNLINKAT:
		return find("unlinkat", func(c *call) outcome { return c.remove(c.int(0), c.args[1], c.word(2)) })
	case unix.SYS_TRUNCATE:
		return find("truncate", func(c *call) outcome { return c.truncate(c.args[0], int64(c.args[1])) })
	case unix.SYS_FCHMOD:
		return find("fchmod", func(c *call) outcome { return c.onFD(c.int(0), modeTo(c.word(1))) })
	case unix.SYS_FCHMODAT:
		return find("fchmodat", func(c *call) outcome { return c.onPath(c.int(0), c.args[1], 0, modeTo(c.word(2))) })
	case unix.SYS_FCHMODAT2:
		return find("fchmodat2", func(c *call) outcome { return c.onPath(c.int(0), c.args[1], c.word(3), modeTo(c.word(2))) })
	case unix.SYS_FCHOWN:
		return find("fchown", func(c *call) outcome { return c.onFD(c.int(0), ownerTo(c.word(1), c.word(2))) })
	case unix.SYS_FCHOWNAT:
		return find("fchownat", func(c *call) outcome { return c.onPath(c.int(0), c.args[1], c.word(4), ownerTo(c.word(2), c.word(3))) })
	case unix.SYS_UTIMENSAT:
		return find("utimensat", func(c *call) outcome { return c.utimensat(c.int(0), c.args[1], c.args[2], c.word(3)) })
	case unix.SYS_SETXATTR:
		return find("setxattr", func(c *call) outcome { return c.setxattr(cwd, c.args[0], 0) })
	case unix.SYS_LSETXATTR:
		return find("lsetxattr", func(c *call) outcome { return c.setxattr(cwd, c.args[0], nofollow) })
	case unix.SYS_FSETXATTR:
		return find("fsetxattr", func(c *call) outcome { return c.setxattr(c.int(0), 0, onDescriptor) })
	case unix.SYS_REMOVEXATTR:
		return find("removexattr", func(c *call) outcome { return c.removexattr(cwd, c.args[0], 0) })
	case unix.SYS_LREMOVEXATTR:
		return find("lremovexattr", func(c *call) outcome { return c.removexattr(cwd, c.args[0], nofollow) })
	case unix.SYS_FREMOVEXATTR:
		return find("fremovexattr", func(c *call) outcome { return c.removexattr(c.int(0), 0, onDescriptor) })
	}
	if s, ok := numberSpecs(number); ok {
		return find(s.name, s.perform)
	}
	if s, ok := olderChangeSpecs(number); ok {
		return find(s.name, s.perform)
	}
	return spec{}, false
}

// changed performs such a call, which without a judge nobody may expect.
func (c *call) changed(perform func(c *call) outcome) outcome {
	if c.s.config.Changes == nil {
		return failed(c.broken(errNoChanges))
	}
	defer c.keepStill()()
	return perform(c)
}

// remove performs unlinkat(2), unlink(2) and rmdir(2).
func (c *call) remove(dirfd int32, at uint64, flags uint32) outcome {
	if flags&^unix.AT_REMOVEDIR != 0 {
		return failed(unix.EINVAL)
	}
	path, errno := c.pathAt(at)
	if errno != 0 {
		return failed(errno)
	}
	if c.text = path; path == "" {
		return failed(unix.ENOENT)
	}
	o, errno := c.originOf(dirfd, path)
	if errno != 0 {
		return failed(errno)
	}
	name, errno := c.locate(o, path, 0)
	switch {
	case errno != 0:
		return failed(errno)
	case !isName(name.last):
		return failed(notRemoved(name.last, flags))
	case name.object < 0:
		return failed(name.errno)
	}
	if out, denied := c.judgeName(name, fsview.AccessRemove); denied {
		return out
	}
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	p.Call("remove", name.last, unix.SYS_UNLINKAT, p.from(origin{name.dir}), p.Str(name.last), ns.Int(flags))
	return p.answered()
}

// notRemoved is the error for a path that ends in no name (do_rmdir and do_unlinkat of fs/namei.c).
func notRemoved(last string, flags uint32) unix.Errno {
	switch {
	case flags == 0:
		return unix.EISDIR
	case nameOf(last) == "..":
		return unix.ENOTEMPTY
	case nameOf(last) == ".":
		return unix.EINVAL
	}
	return unix.EBUSY
}

// truncate performs truncate(2). The hand opens the very file to write, which asks for the same rights.
func (c *call) truncate(at uint64, length int64) outcome {
	if length < 0 {
		return failed(unix.EINVAL)
	}
	file, errno := c.target(unix.AT_FDCWD, at, 0)
	if errno != 0 {
		return failed(errno)
	}
	i, errno := c.look(file.object)
	switch {
	case errno != 0:
		return failed(errno)
	case i.kind() == unix.S_IFDIR:
		return failed(unix.EISDIR)
	case i.kind() != unix.S_IFREG:
		return failed(unix.EINVAL)
	}
	if out, denied := c.judgeAttributes(file); denied {
		return out
	}
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	fd := p.ReopenFD("open", c.text, p.hand.PassFD(file.object), unix.O_WRONLY)
	p.Call("truncate", c.text, unix.SYS_FTRUNCATE, fd.Arg(), ns.Int(length))
	p.Close(fd)
	return p.answered()
}

// answered runs a program to which only the answer is missing: a result of 0.
func (p *program) answered() outcome {
	p.finish()
	r, errno := p.do()
	if errno != 0 {
		return failed(errno)
	}
	return p.c.made(&r)
}
