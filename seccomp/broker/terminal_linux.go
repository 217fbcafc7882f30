package broker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Device numbers (Documentation/admin-guide/devices.txt): /dev/tty is 5:0, and pseudo terminals have eight major numbers.
const (
	ttyMajor    = 5
	ptsMajor    = 136
	ptsMajorEnd = 144
	ptsPerMajor = 256
)

// openTerminal opens /dev/tty, which means the caller's controlling terminal. A hand has none, so opening the device
// there only tells whether the caller may.
func (c *call) openTerminal(object int, how openHow) outcome {
	p, errno := c.program(false)
	if errno != 0 {
		return failed(errno)
	}
	p.ReopenFD("open", "/dev/tty", p.hand.PassFD(object), reopenFlags(how)|unix.O_NONBLOCK|unix.O_NOCTTY)
	r, errno := p.do()
	switch {
	case errno != 0:
		return failed(errno)
	case r.Failed < 0:
		return failed(c.broken(errors.New("a hand has a controlling terminal")))
	case r.Errno != unix.ENXIO:
		return failed(r.Errno)
	}
	var number uint64
	err := c.onThread(func(t *thread) (err error) {
		number, err = terminalOf(t.dir)
		return err
	})
	if err != nil {
		return failed(c.broken(fmt.Errorf("read /proc/%d/stat: %w", c.tid, err)))
	}
	if number == 0 {
		return failed(unix.ENXIO)
	}
	if own, err := terminalOf(-1); err == nil && own == number {
		// A terminal belongs to one session: the caller is in this process's own.
		fd, err := unix.Open("/dev/tty", reopenFlags(how)|unix.O_NOCTTY, 0)
		if err != nil {
			return failed(unix.ENXIO)
		}
		return c.give(c.hold(fd), how)
	}
	return c.openPTS(number, how)
}

// openPTS opens a pseudo terminal by the name that it has in the sandbox.
func (c *call) openPTS(number uint64, how openHow) outcome {
	major, minor := unix.Major(number), unix.Minor(number)
	if major < ptsMajor || major >= ptsMajorEnd {
		return failed(unix.ENXIO)
	}
	name := "/dev/pts/" + strconv.Itoa(int(major-ptsMajor)*ptsPerMajor+int(minor))
	fd, errno := c.step(-1, name)
	if errno != 0 {
		return failed(unix.ENXIO)
	}
	i, errno := c.look(fd)
	if errno != 0 {
		return failed(errno)
	}
	if i.kind() != unix.S_IFCHR || i.Rdev_major != major || i.Rdev_minor != minor {
		return failed(unix.ENXIO)
	}
	how.flags |= unix.O_NOCTTY
	return c.reopenWatched(fd, how)
}

// terminalOf reads the device number of a process's controlling terminal, 0 for none (proc_pid_stat(5)). dir is its
// directory in /proc, -1 for this process's own.
func terminalOf(dir int) (uint64, error) {
	name := "stat"
	if dir < 0 {
		dir, name = unix.AT_FDCWD, "/proc/self/stat"
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return 0, os.NewSyscallError("read", err)
	}
	return parseTerminal(buf[:n])
}

// errStat says that the kernel's account of a process is not understood.
var errStat = errors.New("/proc/PID/stat is not understood")

// parseTerminal finds the device number in the text of a stat file: the fifth field after the name, which is in
// parentheses and may hold anything.
func parseTerminal(text []byte) (uint64, error) {
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const state, tty = 0, 4
	if len(f) <= tty || len(f[state]) != 1 {
		return 0, errStat
	}
	n, err := strconv.ParseInt(string(f[tty]), 10, 32)
	if err != nil {
		return 0, errStat
	}
	return uint64(uint32(n)), nil
}
