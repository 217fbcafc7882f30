package broker

import "golang.org/x/sys/unix"

// bindWhole binds a socket of a sandbox without mounts by the path that the caller gave, since that is what getsockname(2) says
// afterwards and what programs tell others to connect to (multiprocessing of Python's). at is the place that the path was found to
// lead to and that was judged. ok is false where the last component in its directory has to do.
//
// The kernel follows the path once more. Of the sandbox's own, nothing moves meanwhile (startMove); of the host's processes
// something may, which is why the socket must lie at the place afterwards, and why a name that a rule is about is not bound so:
// what could come to lie elsewhere, by the doing of others and among what the hand may write to, is a socket file, which nobody can
// read or execute, by a name that no rule knows.
func (c *call) bindWhole(socket int, o origin, path string, at place) (out outcome, ok bool) {
	dir, last := splitPath(path)
	if dir == "" || !isName(last) || last != at.last || c.s.config.Judge.Suspect(nameOf(last)) || !c.leadsTo(o, dir, at.dir) {
		return out, false
	}
	return c.bindFrom(socket, o, unixAddress(path), true, func() outcome {
		fd, err := c.boundConfined(origin{at.dir}, unixAddress(last))
		if err != nil {
			return failed(c.broken(err))
		}
		defer unix.Close(fd)
		c.boundUnix(socket, func() (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) })
		return outcome{}
	}), true
}

// leadsTo tells whether a path leads a hand to a directory, on the same mount. In /proc it would not be the caller's.
func (c *call) leadsTo(o origin, path string, dir int) bool {
	p, errno := c.program(false)
	if errno != 0 {
		return false
	}
	opened := p.openat2("the directory", p.from(o), path, openHow{flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		resolve: unix.RESOLVE_NO_MAGICLINKS})
	p.SendFiles(0, "the directory", opened)
	r, errno := p.do()
	if errno != 0 {
		return false
	}
	fds := c.own(&r, 1)
	if r.Failed >= 0 || fds[0] < 0 {
		return false
	}
	there, errno := c.look(fds[0])
	if errno != 0 {
		return false
	}
	here, errno := c.look(dir)
	return errno == 0 && identityOf(&there) == identityOf(&here) && there.Mnt_id == here.Mnt_id
}
