package broker

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// thread is a thread of the sandbox, by its directory in this process's /proc. The directory is tied to the thread, not to
// its number: once that has ended, nothing is found there any more, whoever has the number then.
type thread struct {
	tid    int
	dir    int // O_PATH, /proc/TID
	status int // its file status, -1 until needed
	pidfd  int // of the thread that has the number now, -1 until needed; not tied to dir
	used   uint64

	room time.Time // until then it has far fewer descriptors than it may have

	known   status // as it was in the generation
	asOf    uint64 // generation; 0: not known
	checked bool   // it was seen to live in the call that uses it
}

func openThread(tid int) (*thread, error) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &thread{tid: tid, dir: dir, status: -1, pidfd: -1}, nil
}

func (t *thread) close() {
	unix.Close(t.dir)
	for _, fd := range [...]int{t.status, t.pidfd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// readStatus reads the thread's status file.
func (t *thread) readStatus(buf []byte) ([]byte, error) {
	if t.status < 0 {
		fd, err := unix.Openat(t.dir, "status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		t.status = fd
	}
	n, err := unix.Pread(t.status, buf, 0)
	return buf[:max(n, 0)], err
}

// threadCache keeps the directories of threads that called lately. An entry is taken out while it is used.
type threadCache struct {
	mu      sync.Mutex
	entries map[int]*thread
	clock   uint64
}

// maxThreads is how many are kept.
const maxThreads = 128

// take gives the entry of a thread number, which may be that of an earlier thread, or a new one.
func (c *threadCache) take(tid int) (*thread, error) {
	c.mu.Lock()
	t := c.entries[tid]
	delete(c.entries, tid)
	c.mu.Unlock()
	if t != nil {
		return t, nil
	}
	return openThread(tid)
}

// put keeps an entry for the next call.
func (c *threadCache) put(t *thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[t.tid]; old != nil {
		old.close()
	} else if len(c.entries) >= maxThreads {
		c.evict()
	}
	c.clock++
	t.used, t.checked = c.clock, false
	c.entries[t.tid] = t
}

// evict drops the half that was not used for longest.
func (c *threadCache) evict() {
	for tid, t := range c.entries {
		if c.clock-t.used >= maxThreads/2 {
			t.close()
			delete(c.entries, tid)
		}
	}
}

func (c *threadCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tid, t := range c.entries {
		t.close()
		delete(c.entries, tid)
	}
}

// onThread runs f on the caller's directory. A kept directory may be that of an ended thread with the same number, so a
// failure counts only on a new one.
func (c *call) onThread(f func(t *thread) error) error {
	kept := c.thread != nil
	if c.thread == nil {
		t, err := c.s.threads.take(c.tid)
		if err != nil {
			return err
		}
		c.thread, kept = t, t.used != 0
	}
	err := f(c.thread)
	if err == nil || !kept {
		c.thread.checked = c.thread.checked || err == nil
		return err
	}
	c.thread.close()
	c.thread = nil
	t, err := openThread(c.tid)
	if err != nil {
		return err
	}
	c.thread, t.checked = t, true
	return f(t)
}

// onPidfd runs f on a descriptor of the calling thread (PIDFD_THREAD, Linux 6.9: EINVAL before). It is kept: while the
// thread lives that it is for, no other has the number, and once it has ended every use fails with ESRCH. That counts
// only for a new one. It says nothing about the thread's directory.
func (c *call) onPidfd(f func(pidfd int) error) error {
	if c.thread == nil {
		t, err := c.s.threads.take(c.tid)
		if err != nil {
			return err
		}
		c.thread = t
	}
	t, kept := c.thread, c.thread.pidfd >= 0
	if kept {
		if err := f(t.pidfd); !errors.Is(err, unix.ESRCH) {
			return err
		}
		unix.Close(t.pidfd)
		t.pidfd = -1
	}
	fd, err := unix.PidfdOpen(c.tid, pidfdThread)
	if err != nil {
		return err
	}
	t.pidfd = fd
	return f(fd)
}

// statusBuffer is more than the file ever has, a long list of groups included (NGROUPS_MAX is 65,536 of 11 digits).
const statusBuffer = 8 << 10

// readStatus fills in c.status.
func (c *call) readStatus() syscall.Errno {
	if c.known {
		return 0
	}
	if c.remembered() {
		c.known = true
		return 0
	}
	return c.readFreshStatus()
}

// readFreshStatus is readStatus for what may have changed a moment ago.
func (c *call) readFreshStatus() syscall.Errno {
	now := c.s.changes.now()
	err := c.onThread(func(t *thread) (err error) {
		c.status, err = t.parsedStatus()
		return err
	})
	if err != nil {
		return c.broken(fmt.Errorf("read /proc/%d/status: %w", c.tid, err))
	}
	c.known = true
	c.remember(now)
	return 0
}

// parsedStatus reads and parses the status file, with a larger buffer where the list of groups is long.
func (t *thread) parsedStatus() (s status, err error) {
	var first [statusBuffer]byte
	buf := first[:]
	for {
		text, err := t.readStatus(buf)
		if err != nil {
			return s, err
		}
		if len(text) < len(buf) {
			return parseStatus(text)
		}
		if len(buf) > 1<<20 {
			return s, errStatus
		}
		buf = make([]byte, 8*len(buf))
	}
}

// origin is where a path starts: a descriptor of this process, or the root directory of the hand, which is the sandbox's.
type origin struct{ fd int }

var atRoot = origin{-1}

// originOf opens what a relative path starts at: the working directory, or the descriptor dirfd.
func (c *call) originOf(dirfd int32, path string) (origin, syscall.Errno) {
	if path != "" && path[0] == '/' {
		return c.rootOf()
	}
	name := "cwd"
	if dirfd != unix.AT_FDCWD {
		if dirfd < 0 {
			return atRoot, unix.EBADF
		}
		name = "fd/" + strconv.Itoa(int(dirfd))
	}
	fd, errno := c.openOf(name)
	return origin{fd}, errno
}

// openOf opens, O_PATH, what a link in the caller's /proc directory leads to, whatever and wherever it is.
func (c *call) openOf(name string) (int, syscall.Errno) {
	fd := -1
	err := c.onThread(func(t *thread) (err error) {
		fd, err = unix.Openat(t.dir, name, unix.O_PATH|unix.O_CLOEXEC, 0)
		return err
	})
	switch {
	case err == nil:
		return c.hold(fd), 0
	case errors.Is(err, unix.ENOENT) && name != "cwd" && name != "root":
		return -1, unix.EBADF // no such descriptor
	}
	return -1, c.broken(fmt.Errorf("open /proc/%d/%s: %w", c.tid, name, err))
}
