package broker

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// olderChangeSpecs are the calls that newer architectures have not: those without a directory descriptor.
func olderChangeSpecs(number int32) (spec, bool) {
	const cwd = unix.AT_FDCWD
	switch number {
	case unix.SYS_UNLINK:
		return spec{name: "unlink", perform: func(c *call) outcome { return c.remove(cwd, c.args[0], 0) }}, true
	case unix.SYS_RMDIR:
		return spec{name: "rmdir", perform: func(c *call) outcome { return c.remove(cwd, c.args[0], unix.AT_REMOVEDIR) }}, true
	case unix.SYS_CHMOD:
		return spec{name: "chmod", perform: func(c *call) outcome { return c.onPath(cwd, c.args[0], 0, modeTo(c.word(1))) }}, true
	case unix.SYS_CHOWN:
		return spec{name: "chown", perform: func(c *call) outcome { return c.onPath(cwd, c.args[0], 0, ownerTo(c.word(1), c.word(2))) }}, true
	case unix.SYS_LCHOWN:
		return spec{name: "lchown", perform: func(c *call) outcome {
			return c.onPath(cwd, c.args[0], unix.AT_SYMLINK_NOFOLLOW, ownerTo(c.word(1), c.word(2)))
		}}, true
	case unix.SYS_UTIME:
		return spec{name: "utime", perform: func(c *call) outcome { return c.olderTimes(cwd, c.args[0], c.args[1], utimeSize) }}, true
	case unix.SYS_UTIMES:
		return spec{name: "utimes", perform: func(c *call) outcome { return c.olderTimes(cwd, c.args[0], c.args[1], pairSize) }}, true
	case unix.SYS_FUTIMESAT:
		return spec{name: "futimesat", perform: func(c *call) outcome { return c.olderTimes(c.int(0), c.args[1], c.args[2], pairSize) }}, true
	}
	return spec{}, false
}

// olderTimes performs the calls with times in microseconds, or in seconds alone.
func (c *call) olderTimes(dirfd int32, at, timesAt uint64, size int) outcome {
	older, errno := c.timesAt(timesAt, size)
	if errno != 0 {
		return failed(errno)
	}
	times, errno := nanoseconds(older)
	switch {
	case errno != 0:
		return failed(errno)
	case at != 0:
		return c.onPath(dirfd, at, 0, timesTo(times))
	case dirfd == unix.AT_FDCWD:
		return failed(unix.EFAULT)
	}
	return c.onFD(dirfd, timesTo(times))
}

// nanoseconds makes two of struct timespec of two times in seconds, or in seconds and microseconds.
func nanoseconds(older []byte) ([]byte, syscall.Errno) {
	if older == nil {
		return nil, 0
	}
	var times []byte
	size := len(older) / 2
	for i := range 2 {
		one := older[i*size:][:size]
		nanos := uint64(0)
		if size > 8 {
			micros := binary.NativeEndian.Uint64(one[8:])
			if micros >= 1_000_000 {
				return nil, unix.EINVAL
			}
			nanos = micros * 1000
		}
		times = binary.NativeEndian.AppendUint64(append(times, one[:8]...), nanos)
	}
	return times, 0
}
