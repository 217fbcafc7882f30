package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
)

// errNoChanges says that a call came that only a sandbox with a judge of changes puts to the broker.
var errNoChanges = errors.New("there is no judge of changes")

// onDescriptor, as the flags of a call, says that it has no path and is about its descriptor.
const onDescriptor = 1 << 31

// setter appends to a program the change of an object, which an O_PATH descriptor of the hand is for.
type setter func(p *program, object ns.Slot)

// modeTo is chmod(2). The name of the hand's own descriptor leads to the very object; of a symbolic link, to the link itself
// (proc_pid_fd(5)).
func modeTo(mode uint32) setter {
	return func(p *program, object ns.Slot) {
		name := p.Name(object)
		p.Call("change the mode of", p.c.text, unix.SYS_FCHMODAT, ns.Int(ns.HandFDs), name, ns.Int(mode))
	}
}

// ownerTo is chown(2).
func ownerTo(uid, gid uint32) setter {
	return func(p *program, object ns.Slot) {
		p.Call("change the owner of", p.c.text, unix.SYS_FCHOWNAT, object.Arg(), p.Str(""), ns.Int(uid), ns.Int(gid), ns.Int(unix.AT_EMPTY_PATH))
	}
}

// timesTo is utimensat(2): times as in memory, nil for now.
func timesTo(times []byte) setter {
	return func(p *program, object ns.Slot) {
		name := p.Name(object)
		at := zero
		if times != nil {
			at = p.Bytes(times)
		}
		p.Call("change the times of", p.c.text, unix.SYS_UTIMENSAT, ns.Int(ns.HandFDs), name, at, zero)
	}
}

// onPath changes the attributes of what a path leads to. flags are AT_SYMLINK_NOFOLLOW and AT_EMPTY_PATH.
func (c *call) onPath(dirfd int32, at uint64, flags uint32, set setter) outcome {
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return failed(unix.EINVAL)
	}
	object, errno := c.target(dirfd, at, flags)
	if errno != 0 {
		return failed(errno)
	}
	return c.onObject(object, set)
}

// onFD changes the attributes of what a descriptor is for.
func (c *call) onFD(fd int32, set setter) outcome {
	object, errno := c.opened(fd)
	if errno != 0 {
		return failed(errno)
	}
	return c.onObject(object, set)
}

// onObject judges and performs a change of attributes.
func (c *call) onObject(object place, set setter) outcome {
	if out, denied := c.judgeAttributes(object); denied {
		return out
	}
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	set(p, p.hand.PassFD(object.object))
	return p.answered()
}

// judgeAttributes judges a change of what is there. The mode, owner and times of a device are not what is written to it: these
// only change where a command may make one, in a write root.
func (c *call) judgeAttributes(at place) (out outcome, denied bool) {
	where, errno := c.whereObject(at)
	if errno != 0 {
		return failed(errno), true
	}
	if out, denied := c.judgeChange(at.object, where, fsview.AccessWrite); denied {
		return out, true
	}
	i, errno := c.look(at.object)
	if errno != 0 {
		return failed(errno), true
	}
	if i.kind() != unix.S_IFCHR && i.kind() != unix.S_IFBLK {
		return out, false
	}
	return c.judgeChange(at.object, where, fsview.AccessCreate)
}

// target finds what a path leads to, or with AT_EMPTY_PATH and no path what a descriptor does.
func (c *call) target(dirfd int32, at uint64, flags uint32) (place, syscall.Errno) {
	path, errno := c.pathAt(at)
	if errno != 0 {
		return place{}, errno
	}
	if c.text = path; path == "" && flags&unix.AT_EMPTY_PATH == 0 {
		return place{}, unix.ENOENT
	}
	o, errno := c.originOf(dirfd, path)
	if errno != 0 {
		return place{}, errno
	}
	follow := uint32(unix.AT_SYMLINK_FOLLOW)
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		follow = 0
	}
	return c.linked(twoPaths{from: path, flags: follow}, o)
}

// opened finds what a descriptor of the caller's is for. One with O_PATH is for finding alone (open(2)).
func (c *call) opened(fd int32) (place, syscall.Errno) {
	if fd < 0 {
		return place{}, unix.EBADF
	}
	o, errno := c.originOf(fd, "")
	if errno != 0 {
		return place{}, errno
	}
	flags, errno := c.flagsOf(fd)
	switch {
	case errno != 0:
		return place{}, errno
	case flags&unix.O_PATH != 0:
		return place{}, unix.EBADF
	}
	return place{object: o.fd, magic: true}, 0
}

// errFDInfo says that the kernel's account of a descriptor is not understood.
var errFDInfo = errors.New("a file of /proc/PID/fdinfo is not understood")

// flagsOf are the flags that a descriptor of the caller's was opened with (proc_pid_fdinfo(5)).
func (c *call) flagsOf(fd int32) (flags uint32, errno syscall.Errno) {
	var text [128]byte // the flags are on the second line
	n := 0
	err := c.onThread(func(t *thread) error {
		file, err := unix.Openat(t.dir, "fdinfo/"+strconv.Itoa(int(fd)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(file)
		n, err = unix.Read(file, text[:])
		return err
	})
	if errors.Is(err, unix.ENOENT) {
		return 0, unix.EBADF // closed meanwhile
	}
	if err == nil {
		err = errFDInfo
		for line := range bytes.Lines(text[:max(n, 0)]) {
			if value, is := bytes.CutPrefix(line, []byte("flags:")); is && number(bytes.TrimSpace(value), 8, &flags) {
				return flags, 0
			}
		}
	}
	return 0, c.broken(fmt.Errorf("read /proc/%d/fdinfo/%d: %w", c.tid, fd, err))
}

// Values of a time's nanoseconds (utimensat(2)), and the sizes of what times are in: two of struct timespec or timeval, or
// struct utimbuf.
const (
	nanoOmit  = 1<<30 - 2 // UTIME_OMIT
	pairSize  = 32
	utimeSize = 16
)

// utimensat performs utimensat(2). It looks at nothing where nothing is to be changed.
func (c *call) utimensat(dirfd int32, at, timesAt uint64, flags uint32) outcome {
	times, errno := c.timesAt(timesAt, pairSize)
	switch {
	case errno != 0:
		return failed(errno)
	case times != nil && nano(times, 0) == nanoOmit && nano(times, 1) == nanoOmit:
		return outcome{}
	case at != 0:
		return c.onPath(dirfd, at, flags, timesTo(times))
	case dirfd == unix.AT_FDCWD:
		return failed(unix.EFAULT) // it is a path that is missing
	case flags != 0:
		return failed(unix.EINVAL)
	}
	return c.onFD(dirfd, timesTo(times))
}

func nano(times []byte, i int) uint64 { return binary.NativeEndian.Uint64(times[16*i+8:]) }

// timesAt reads times, nil for none: now.
func (c *call) timesAt(at uint64, size int) ([]byte, syscall.Errno) {
	if at == 0 {
		return nil, 0
	}
	return c.bytesAt(at, size)
}

// Limits of an extended attribute's name and value (linux/limits.h).
const (
	xattrNameMax = 255
	xattrSizeMax = 64 << 10
)

// nameAt reads the name of an extended attribute.
func (c *call) nameAt(at uint64) (string, syscall.Errno) {
	name, errno := c.pathAt(at)
	if errno == unix.ENAMETOOLONG || errno == 0 && (name == "" || len(name) > xattrNameMax) {
		return "", unix.ERANGE
	}
	return name, errno
}

// setxattr performs setxattr(2), lsetxattr(2) and fsetxattr(2), whose further arguments are alike.
func (c *call) setxattr(fd int32, at uint64, flags uint32) outcome {
	how, size := c.word(4), c.args[3]
	if how&^(unix.XATTR_CREATE|unix.XATTR_REPLACE) != 0 {
		return failed(unix.EINVAL)
	}
	name, errno := c.nameAt(c.args[1])
	switch {
	case errno != 0:
		return failed(errno)
	case size > xattrSizeMax:
		return failed(unix.E2BIG)
	}
	value, errno := c.bytesAt(c.args[2], int(size))
	if errno != 0 {
		return failed(errno)
	}
	return c.onAttribute(fd, at, flags, func(p *program, object ns.Arg) {
		p.Call("set an attribute of", p.c.text, unix.SYS_SETXATTR, object, p.Str(name), p.Bytes(value), ns.Int(size), ns.Int(how))
	})
}

// removexattr performs removexattr(2), lremovexattr(2) and fremovexattr(2).
func (c *call) removexattr(fd int32, at uint64, flags uint32) outcome {
	name, errno := c.nameAt(c.args[1])
	if errno != 0 {
		return failed(errno)
	}
	return c.onAttribute(fd, at, flags, func(p *program, object ns.Arg) {
		p.Call("remove an attribute of", p.c.text, unix.SYS_REMOVEXATTR, object, p.Str(name))
	})
}

// onAttribute changes an extended attribute. The calls have no form with a directory before Linux 6.13, so the hand goes into the
// directory of its own descriptors, in which the object's name leads to it.
func (c *call) onAttribute(fd int32, at uint64, flags uint32, set func(p *program, object ns.Arg)) outcome {
	var object place
	var errno syscall.Errno
	if flags == onDescriptor {
		object, errno = c.opened(fd)
	} else {
		object, errno = c.target(fd, at, flags)
	}
	if errno != 0 {
		return failed(errno)
	}
	if out, denied := c.judgeAttributes(object); denied {
		return out
	}
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	name := p.Name(p.hand.PassFD(object.object))
	p.Call("enter", "the hand's descriptors", unix.SYS_FCHDIR, ns.Int(ns.HandFDs))
	set(p, name)
	r, errno := p.do()
	if errno != 0 {
		return failed(errno)
	}
	c.leaveDirectory()
	if r.Failed >= 0 {
		return failed(r.Errno)
	}
	return outcome{}
}
