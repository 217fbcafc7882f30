package broker

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// bind performs bind(2): a path makes a name, and whether an address is one cannot be told from registers.
func (c *call) bind(fd int32, at uint64, size int32) outcome {
	socket, errno := c.socket(fd)
	if errno != 0 {
		return failed(errno)
	}
	if errno := checkSockaddrSize(size); errno != 0 {
		return failed(errno)
	}
	address, errno := c.bytesAt(at, int(size))
	if errno != 0 {
		return failed(errno)
	}
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return failed(unix.ENOTSOCK)
	}
	path, ok := unixName(address)
	if domain != unix.AF_UNIX || !ok {
		return c.bindNameless(socket, domain, address)
	}
	if errno := c.readRoot(); errno != 0 {
		return failed(errno)
	}
	c.text = path
	confined := c.withoutMounts()
	if confined {
		defer c.startMove()() // until the file is known that this makes (boundConfined)
	} else {
		defer c.keepStill()()
	}
	o, errno := c.originOf(unix.AT_FDCWD, path)
	if errno != 0 {
		return failed(errno)
	}
	if !confined && !c.rooted() && !c.suspectPath(path) {
		// The whole path: it is what getsockname(2) says afterwards.
		out := c.bindAt(socket, o, address, true)
		if out.sent || !mayBeCallers(out.errno) {
			return out
		}
	}
	return c.bindJudged(socket, o, path)
}

// withoutMounts tells whether the judge alone keeps the sandbox from making names.
func (c *call) withoutMounts() bool { return c.s.config.Confined != nil || c.s.config.Changes != nil }

// bindJudged binds to a path by where it leads.
func (c *call) bindJudged(socket int, o origin, path string) outcome {
	place, errno := c.locate(o, path, 0)
	if errno != 0 {
		return failed(errno)
	}
	switch {
	case place.object >= 0:
		return failed(unix.EADDRINUSE)
	case place.errno != unix.ENOENT:
		return failed(place.errno)
	}
	why, denied, errno := c.mayCreate(place)
	switch {
	case errno != 0:
		return failed(errno)
	case denied:
		return c.refuse(c.readOnly(), c.named(place), why)
	}
	if c.withoutMounts() && !c.rooted() {
		if out, ok := c.bindWhole(socket, o, path, place); ok {
			return out
		}
	}
	return c.bindAt(socket, origin{place.dir}, unixAddress(place.last), true)
}

// bindAt binds a copy of the caller's socket, in the directory o if the address is a path. A path is remembered before the
// caller has its answer, so that nobody can connect to it too early.
func (c *call) bindAt(socket int, o origin, address []byte, inDir bool) outcome {
	return c.bindFrom(socket, o, address, inDir, func() outcome {
		c.boundUnix(socket, func() (int, error) { return c.boundConfined(o, address) })
		return outcome{}
	})
}

// bindFrom is bindAt with what is to be done once a path is bound, which gives the answer to the caller.
func (c *call) bindFrom(socket int, o origin, address []byte, inDir bool, bound func() outcome) outcome {
	p, errno := c.program(inDir)
	if errno != 0 {
		return failed(errno)
	}
	s := p.hand.PassFD(socket)
	if inDir && o.fd >= 0 {
		p.Call("enter", "the directory", unix.SYS_FCHDIR, p.from(o))
	}
	entered := p.Len()
	p.Call("bind", "the socket", unix.SYS_BIND, s.Arg(), p.Bytes(address), ns.Int(len(address)))
	if !inDir {
		p.finish()
	}
	r, errno := p.do()
	if inDir && o.fd >= 0 && errno == 0 {
		c.leaveDirectory()
	}
	switch {
	case errno != 0:
		return failed(errno)
	case r.Failed >= 0 && r.Failed < entered && r.Errno == unix.ENOTDIR:
		return failed(unix.ENOTDIR)
	}
	if inDir && r.Failed < 0 {
		return bound()
	}
	return c.made(&r)
}

// leaveDirectory takes the hand back to the root directory, so that it keeps no other in use.
func (c *call) leaveDirectory() {
	hand, err := c.w.getHand()
	if err != nil {
		return // it is gone, and with it its directory
	}
	p := hand.Program()
	p.Call("leave", "the directory", unix.SYS_CHDIR, p.Str("/"))
	if r, err := hand.Do(); err != nil || r.Failed >= 0 {
		c.w.dropHand()
	}
}

// socket takes a copy of one of the caller's descriptors, which must be a socket.
func (c *call) socket(fd int32) (int, syscall.Errno) {
	copied, errno := c.duplicate(fd)
	if errno != 0 {
		return -1, errno
	}
	var st unix.Stat_t
	if err := unix.Fstat(copied, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return -1, unix.ENOTSOCK
	}
	return copied, 0
}

// duplicate takes a copy of one of the caller's descriptors. It is the caller's if the call still waits afterwards.
func (c *call) duplicate(fd int32) (int, syscall.Errno) {
	if fd < 0 {
		return -1, unix.EBADF
	}
	if conf := c.s.config.Confined; conf != nil && conf.Made {
		return c.duplicateMade(fd)
	}
	copied := -1
	take := func(pidfd int) (err error) {
		copied, err = unix.PidfdGetfd(pidfd, int(fd), 0)
		return err
	}
	err := c.onPidfd(take)
	if errors.Is(err, unix.EINVAL) { // an older kernel
		pidfd, errno := c.processPidfd()
		if errno != 0 {
			return -1, errno
		}
		err = take(pidfd)
	}
	switch {
	case errors.Is(err, unix.EBADF):
		return -1, unix.EBADF
	case err != nil:
		return -1, c.broken(fmt.Errorf("copy a socket of the caller (pidfd_getfd): %w", err))
	}
	return c.holdCopy(copied), 0
}

// pidfdThread is PIDFD_THREAD of Linux 6.9: a descriptor of a thread, not of its process (pidfd_open(2)).
const pidfdThread = unix.O_EXCL

// processPidfd is a descriptor of the caller's process, for kernels that have none of threads. It serves if the two share
// their descriptors: else the same number means something else (clone(2), CLONE_FILES).
func (c *call) processPidfd() (int, syscall.Errno) {
	if errno := c.readStatus(); errno != 0 {
		return -1, errno
	}
	if c.status.tgid != c.tid {
		const kcmpFiles = 2
		if same, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(c.status.tgid), uintptr(c.tid), kcmpFiles, 0, 0, 0); errno != 0 || same != 0 {
			return -1, c.broken(errors.New("the calling thread has descriptors of its own, which takes Linux 6.9"))
		}
	}
	fd, err := unix.PidfdOpen(c.status.tgid, 0)
	if err != nil {
		return -1, c.broken(fmt.Errorf("open a descriptor of the caller (pidfd_open): %w", err))
	}
	return c.hold(fd), 0
}
