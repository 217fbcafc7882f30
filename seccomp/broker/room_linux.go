package broker

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// room says EMFILE before anything is made, as open(2) does: the kernel takes a descriptor number before it looks at the
// path, but here it is given only at the end.
func (c *call) room() syscall.Errno {
	var full bool
	err := c.onThread(func(t *thread) (err error) {
		full, err = t.full()
		return err
	})
	switch {
	case err != nil:
		return c.broken(fmt.Errorf("count the descriptors of the caller: %w", err))
	case full:
		return unix.EMFILE
	}
	return 0
}

// A thread that has this many descriptors fewer than it may is not asked again for a while: the question costs more than
// anything else that this process does for a call.
const (
	ample     = 512
	amplyTime = time.Millisecond
)

// full tells whether the thread may have no further descriptor (RLIMIT_NOFILE, getrlimit(2)). Before Linux 6.2 the kernel
// does not say how many it has, and the call then fails after the file was made.
func (t *thread) full() (bool, error) {
	now := time.Now()
	if now.Before(t.room) {
		return false, nil
	}
	var limit unix.Rlimit
	err := unix.Prlimit(t.tid, unix.RLIMIT_NOFILE, nil, &limit)
	if errors.Is(err, unix.EPERM) {
		limit.Cur, err = t.openFilesLimit() // it has other ids, and without a user namespace this process may lack CAP_SYS_RESOURCE
	}
	if err != nil {
		return false, err
	}
	var fds unix.Statx_t
	if err := unix.Statx(t.dir, "fd", unix.AT_STATX_DONT_SYNC, unix.STATX_SIZE, &fds); err != nil {
		return false, err
	}
	if limit.Cur > ample && fds.Size < limit.Cur-ample {
		t.room = now.Add(amplyTime)
	}
	if fds.Size < limit.Cur {
		return false, nil
	}
	// There may be some above a limit that was lowered since: those do not count.
	below, err := t.countBelow(limit.Cur)
	return below >= limit.Cur, err
}

// openFilesLimit reads the soft limit from what everybody may read (proc_pid_limits(5)).
func (t *thread) openFilesLimit() (uint64, error) {
	fd, err := unix.Openat(t.dir, "limits", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 4<<10)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0, err
	}
	return parseOpenFiles(string(buf[:n]))
}

// errLimits says that the kernel's account of a thread's limits is not understood.
var errLimits = errors.New("/proc/PID/limits has no line for open files that is understood")

// parseOpenFiles finds the soft limit of open files in the text of the file.
func parseOpenFiles(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		if f := strings.Fields(rest); ok && len(f) > 0 {
			return strconv.ParseUint(f[0], 10, 64) // it cannot be unlimited (fs.nr_open)
		}
	}
	return 0, errLimits
}

// countBelow counts the descriptors with numbers below limit.
func (t *thread) countBelow(limit uint64) (n uint64, err error) {
	err = readNames(t.dir, "fd", func(name string) {
		if fd, err := strconv.ParseUint(name, 10, 32); err == nil && fd < limit {
			n++
		}
	})
	return n, err
}

// readNames calls visit with each name in the directory name of dir.
func readNames(dir int, name string, visit func(name string)) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 64<<10)
	for {
		got, err := unix.Getdents(fd, buf)
		if err != nil || got == 0 {
			return err
		}
		_, _, names := unix.ParseDirent(buf[:got], -1, nil)
		for _, name := range names {
			visit(name)
		}
	}
}
