package broker

import (
	"sync"
	"syscall"
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
