package broker

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// unixIdentity is a socket file, whatever its names.
type unixIdentity struct {
	dev, ino uint64
}

func identityOf(i *info) unixIdentity {
	return unixIdentity{unix.Mkdev(i.Dev_major, i.Dev_minor), i.Ino}
}

// boundFile is a socket file that was bound in the sandbox. As long as its descriptor is open, no other file can have its
// inode number, whether or not it has a name.
type boundFile struct {
	fd int // O_PATH
	at uint64
}

// unixSockets is what a Server knows of the sandbox's own sockets of AF_UNIX, and who waits to be connected to one. Its zero
// value is ready for use.
type unixSockets struct {
	mu    sync.Mutex
	bound map[unixIdentity]boundFile
	clock uint64
	limit int // 0: not asked for yet

	timeouts unixTimeouts
	waiters  unixWaiters
}

// maxBound is how many are remembered, and boundShare which part of this process's descriptors they may take at most.
const (
	maxBound   = 1024
	boundShare = 4
)

// siocUnixFile is SIOCUNIXFILE of linux/un.h: an O_PATH descriptor of the file that a socket is bound to. It takes
// CAP_NET_ADMIN over the socket's network namespace, which this process has over the sandbox's.
const siocUnixFile = 0x89e0

// boundUnix remembers the file that a socket of the sandbox was bound to just now. It is to be called before the caller of
// bind(2) has its answer. On a failure, which is reported, the socket counts as one of the host.
func (s *Server) boundUnix(socket int) {
	if s.config.Unix.All {
		return // nobody asks
	}
	if err := s.unix.remember(socket); err != nil {
		s.report(Denial{Call: "bind", Err: err})
	}
}

func (u *unixSockets) remember(socket int) error {
	fd, err := unix.IoctlRetInt(socket, siocUnixFile)
	switch {
	case errors.Is(err, unix.EPERM):
		return nil // it was made outside and handed in: what it serves is not the sandbox's alone
	case err != nil:
		return fmt.Errorf("ask which file a socket of the sandbox was bound to, so that it cannot be connected to (SIOCUNIXFILE): %w", err)
	}
	var i info
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &i.Statx_t); err != nil {
		unix.Close(fd)
		return fmt.Errorf("look at the file that a socket of the sandbox was bound to, so that it cannot be connected to (statx): %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bound == nil {
		u.bound, u.limit = map[unixIdentity]boundFile{}, boundLimit()
	}
	id := identityOf(&i)
	if old, ok := u.bound[id]; ok {
		unix.Close(old.fd)
	} else if len(u.bound) >= u.limit {
		u.forget()
	}
	u.clock++
	u.bound[id] = boundFile{fd, u.clock}
	return nil
}

// boundLimit is how many files this process keeps open.
func boundLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1
	}
	return int(max(1, min(maxBound, r.Cur/boundShare)))
}

// forget makes room: of all that have lost their last name, or else of the oldest. u.mu is held.
func (u *unixSockets) forget() {
	var oldest unixIdentity
	first := u.clock + 1
	for id, b := range u.bound {
		var st unix.Stat_t
		if err := unix.Fstat(b.fd, &st); err != nil || st.Nlink == 0 {
			unix.Close(b.fd)
			delete(u.bound, id)
			continue
		}
		if b.at < first {
			oldest, first = id, b.at
		}
	}
	if len(u.bound) >= u.limit {
		unix.Close(u.bound[oldest].fd)
		delete(u.bound, oldest)
	}
}

// has tells whether a file is one that was bound in the sandbox.
func (u *unixSockets) has(id unixIdentity) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.bound[id]
	return ok
}

// close forgets all. Nothing may be under way.
func (u *unixSockets) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, b := range u.bound {
		unix.Close(b.fd)
		delete(u.bound, id)
	}
}
