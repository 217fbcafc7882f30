package broker

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// A connect to a path of AF_UNIX (unix(7)) leaves the sandbox if the socket there is one of the host: network namespaces
// part abstract names, not paths (NET-80, NET-81). So it is judged, and then performed on the very object that was judged.
//
//	caller                  worker                                            hand
//	connect(s, "a/b") ----> reads "a/b" once; takes a copy of s
//	                        which socket file is a/b?           -------->    opens it O_PATH, may the caller write to it?
//	                        bound in this sandbox, or at an     <--------
//	                        allowed location?
//	                        connect s to that very object:      -------->    fchdir to its own descriptors; connect s to "17",
//	<--- the answer         done, or wait for room              <--------    the name of that object there
//
// A path is never looked up a second time, so a name that changes meanwhile leads nowhere else. The hand connects with
// the caller's effective ids, which is what the peer is told (SO_PEERCRED): a peer in the sandbox sees the caller's user
// and group, and 0 for the process, because a hand is in no pid namespace that the peer could see.
//
// Of the sockets that were bound in the sandbox a Server remembers some thousands (ownSockets). One that has been forgotten
// counts as the host's.

// whyUnix and whyNames say why a socket of the host is refused.
const (
	whyUnix  = "network.allowUnixSockets names no such socket; where the command may write, it names those that were there at its start"
	whyNames = "network.allowUnixSockets names this socket, but its file has more than one name and the others may not be allowed"
)

// connectUnix performs connect(2) on a socket of AF_UNIX, of which socket is a copy. What makes no name (an abstract name,
// which the socket's network namespace holds, an address that dissolves an association or that is no good) is the
// kernel's to judge.
func (c *call) connectUnix(socket int, address []byte) outcome {
	path, ok := unixName(address)
	if !ok {
		if c.s.config.Confined != nil && !c.s.config.Unix.All {
			return failed(unix.ECONNREFUSED) // as in a namespace where nobody has that name
		}
		return c.joinUnix(&unixPeer{socket: socket, object: -1, address: address})
	}
	c.text = path
	object, errno := c.findUnix(path)
	if errno != 0 {
		return failed(errno)
	}
	i, errno := c.look(object)
	switch {
	case errno != 0:
		return failed(errno)
	case i.kind() != unix.S_IFSOCK:
		return failed(unix.ECONNREFUSED)
	}
	if out, denied := c.judgeUnix(object, &i); denied {
		return out
	}
	return c.joinUnix(&unixPeer{socket: socket, object: object, id: identityOf(&i)})
}

// findUnix opens, O_PATH, what a path leads to, links followed, if the caller may write to it, which is what connect(2)
// asks for.
func (c *call) findUnix(path string) (object int, errno syscall.Errno) {
	o, errno := c.originOf(unix.AT_FDCWD, path)
	if errno != 0 {
		return -1, errno
	}
	if c.rooted() {
		return c.walkUnix(o, path)
	}
	p, errno := c.program(false)
	if errno != 0 {
		return -1, errno
	}
	found := p.openat2(path, p.from(o), path, openHow{flags: unix.O_PATH | unix.O_CLOEXEC, resolve: unix.RESOLVE_NO_MAGICLINKS})
	p.mayWrite(path, found)
	p.SendFiles(0, path, found)
	r, errno := p.do()
	if errno != 0 {
		return -1, errno
	}
	_, opened := r.Value(found)
	fds := c.own(&r, 1)
	switch {
	case r.Failed < 0:
		return fds[0], c.whole(fds[0])
	case !opened && mayBeCallers(r.Errno):
		return c.walkUnix(o, path)
	}
	return -1, r.Errno
}

// mayWrite appends the question whether the caller may write to an object (faccessat2(2)): a failure is the answer.
func (p *program) mayWrite(path string, object ns.Slot) {
	p.Call("ask for the right to write to", path, unix.SYS_FACCESSAT2, object.Arg(), p.Str(""), ns.Int(unix.W_OK),
		ns.Int(unix.AT_EMPTY_PATH|unix.AT_EACCESS))
}

// walkUnix is findUnix for a path that may mean something else for a hand than for the caller.
func (c *call) walkUnix(o origin, path string) (object int, errno syscall.Errno) {
	for { // until there are too many links
		at, errno := c.locate(o, path, 0)
		switch {
		case errno != 0:
			return -1, errno
		case at.object < 0:
			return -1, at.errno
		}
		i, errno := c.look(at.object)
		if errno != 0 {
			return -1, errno
		}
		if i.kind() == unix.S_IFLNK {
			if errno := c.followLast(&o, &path, &at, &i, 0); errno != 0 {
				return -1, errno
			}
			if !at.magic {
				continue
			}
			if i, errno = c.look(at.object); errno != 0 {
				return -1, errno
			}
		}
		if strings.HasSuffix(at.last, "/") && i.kind() != unix.S_IFDIR {
			return -1, unix.ENOTDIR
		}
		p, errno := c.program(false)
		if errno != 0 {
			return -1, errno
		}
		p.mayWrite(path, p.hand.PassFD(at.object))
		r, errno := p.do()
		switch {
		case errno != 0:
			return -1, errno
		case r.Failed >= 0:
			return -1, r.Errno
		}
		return at.object, 0
	}
}

// judgeUnix judges the connecting to a socket file: by whether it is one of the sandbox, else by where it lies.
func (c *call) judgeUnix(object int, i *info) (out outcome, denied bool) {
	rules, id := &c.s.config.Unix, identityOf(i)
	if rules.All || c.s.unix.own.has(id, object) {
		return out, false
	}
	location, err := c.where(object)
	switch {
	case err != nil: // it lies deeper than the kernel can say, which no rule does
		return c.refuse(unix.EACCES, c.text, whyUnix), true
	case !strings.HasPrefix(location, "/"):
		return failed(unix.ECONNREFUSED), true // a socket itself, by a name in /proc: no file that one could be bound to
	case rules.Allowed == nil || !rules.Allowed(location, id.dev, id.ino):
		return c.refuse(unix.EACCES, location, whyUnix), true
	case i.Nlink > 1:
		return c.refuse(unix.EACCES, location, whyNames), true
	}
	same, errno := c.isAt(location, i)
	switch {
	case errno != 0:
		return failed(errno), true
	case !same:
		return c.refuse(unix.EACCES, location, whyUnix), true
	}
	return out, false
}

// isAt tells whether it is the object i that the sandbox's own mounts show at a location, and not those of a mount
// namespace that a command has made, or a name that is gone.
func (c *call) isAt(location string, i *info) (bool, syscall.Errno) {
	p, errno := c.program(false)
	if errno != 0 {
		return false, errno
	}
	at := p.openat2(location, ns.Int(unix.AT_FDCWD), location, openHow{flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	p.SendFiles(0, location, at)
	r, errno := p.do()
	if errno != 0 {
		return false, errno
	}
	fds := c.own(&r, 1)
	if r.Failed >= 0 {
		return false, 0
	}
	if errno := c.whole(fds[0]); errno != 0 {
		return false, errno
	}
	there, errno := c.look(fds[0])
	return errno == 0 && identityOf(&there) == identityOf(i), errno
}
