package broker

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rootOnce is the sandbox's own root directory, as a hand sees it.
type rootOnce struct {
	mu    sync.Mutex
	known bool
	root  info
}

// sameObject tells whether two descriptors lead to the same object on the same mount.
func (c *call) sameObject(a, b int) bool {
	i, errno := c.look(a)
	if errno != 0 {
		return false
	}
	j, errno := c.look(b)
	return errno == 0 && sameInfo(&i, &j)
}

func sameInfo(a, b *info) bool {
	return a.Ino == b.Ino && a.Dev_major == b.Dev_major && a.Dev_minor == b.Dev_minor && a.Mnt_id == b.Mnt_id
}

// readRoot finds out whether the caller has a root directory of its own (chroot(2), mount namespaces of its own). Only
// where Config.Roots allows that.
func (c *call) readRoot() syscall.Errno {
	if !c.s.config.Roots {
		return 0
	}
	sandbox, errno := c.s.root.ask(c)
	if errno != 0 {
		return errno
	}
	fd, errno := c.openOf("root")
	if errno != 0 {
		return errno
	}
	i, errno := c.look(fd)
	if errno == 0 && !sameInfo(&i, &sandbox) {
		c.root = fd
	}
	return errno
}

// mapsRoot is what a hand of root keeps of such a caller's capabilities: writing an id map that has the sandbox's id 0 takes it of
// whoever opened the file, over the namespace around (verify_root_map in kernel/user_namespace.c). No other call that is
// performed asks for it, and a hand has it only where commands of root do.
const mapsRoot = 1 << unix.CAP_SETFCAP

// limitRights takes the capabilities off a caller in a user namespace of its own, whose capabilities are worth nothing
// in the sandbox's (user_namespaces(7)). The sandbox's is the one that was made in this process's.
func (c *call) limitRights() syscall.Errno {
	if !c.s.config.Roots || c.limited {
		return 0
	}
	var inside bool
	err := c.onThread(func(t *thread) (err error) {
		inside, err = inSandboxNamespace(t.dir)
		return err
	})
	if err != nil {
		return c.broken(fmt.Errorf("ask for the caller's user namespace: %w", err))
	}
	c.limited = true
	if !inside {
		c.status.effective &= mapsRoot
	}
	return 0
}

// inSandboxNamespace tells whether the parent of a thread's user namespace is this process's own.
func inSandboxNamespace(thread int) (bool, error) {
	fd, err := unix.Openat(thread, "ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	parent, err := unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
	if err != nil {
		return false, err
	}
	defer unix.Close(parent)
	var theirs, own unix.Stat_t
	if err := errors.Join(unix.Fstat(parent, &theirs), unix.Stat("/proc/self/ns/user", &own)); err != nil {
		return false, err
	}
	return theirs.Ino == own.Ino && theirs.Dev == own.Dev, nil
}

// rooted tells whether the caller's root directory is its own.
func (c *call) rooted() bool { return c.root >= 0 }

// rootOf is where the caller's absolute paths start.
func (c *call) rootOf() (origin, syscall.Errno) { return origin{c.root}, 0 }

func (o *rootOnce) ask(c *call) (info, syscall.Errno) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		return o.root, 0
	}
	fd, errno := c.step(-1, "/")
	if errno != 0 {
		return info{}, errno
	}
	o.root, errno = c.look(fd)
	o.known = errno == 0
	return o.root, errno
}
