package broker

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/notify"
)

// Where pidfd_getfd(2) is refused, as by the default profile of Docker, this process cannot take a copy of a caller's socket. So it
// makes the sockets itself, and keeps a copy of each until the socket is connected or listens: from then on nothing is to be done
// to it. A copy keeps the socket from being closed for good, which nobody sees of one that leads nowhere yet but by its address:
// where that is in the way, the copies that are alone are dropped (sweep).
//
//	caller                      worker
//	socket(AF_INET, ...) -----> makes it, puts it into the caller (SECCOMP_IOCTL_NOTIF_ADDFD), keeps a copy by the socket's number
//	connect(s, address) ------> which number has the caller's s? takes the copy of that, and goes on as everywhere

// madeSockets are those copies. Its zero value is ready for use.
type madeSockets struct {
	mu    sync.Mutex
	limit int
	byID  map[uint64]*madeSocket
	order list.List // of *madeSocket, the one used least lately first
}

type madeSocket struct {
	inode uint64
	fd    int
	place *list.Element
}

// maxMade is how many copies are kept, and madeShare which part of this process's descriptors they may take.
const (
	maxMade   = 4096
	madeShare = 4
)

// makeSocket performs socket(2).
func (c *call) makeSocket(domain, kind, protocol int32) outcome {
	if conf := c.s.config.Confined; conf == nil || !conf.Made {
		return failed(c.broken(errNoConfined))
	}
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	if kind&^(flags|0xf) != 0 {
		return failed(unix.EINVAL)
	}
	fd, err := unix.Socket(int(domain), int(kind)|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		return failed(errnoIn(err))
	}
	a := notify.AddFD{ID: c.id, Source: uint32(fd), Flags: notify.AddSend}
	if kind&unix.SOCK_CLOEXEC != 0 {
		a.TargetFlags = unix.O_CLOEXEC
	}
	inode, err := inodeOf(fd)
	if err != nil {
		unix.Close(fd)
		return failed(c.broken(fmt.Errorf("look at a socket that was made: %w", err)))
	}
	c.s.made.keep(inode, fd) // before the caller has it and uses it
	if _, err := c.s.config.Listener.AddFD(a); err != nil {
		c.s.made.drop(inode)
		if errors.Is(err, notify.ErrCallEnded) {
			return failed(unix.EINTR)
		}
		return failed(errnoIn(err)) // EMFILE: the caller's limit
	}
	return outcome{sent: true}
}

// keep takes on a copy, which it owns.
func (m *madeSockets) keep(inode uint64, fd int) {
	m.mu.Lock()
	if m.byID == nil {
		m.byID, m.limit = map[uint64]*madeSocket{}, shareOfFiles(maxMade, madeShare)
	}
	full := len(m.byID) >= m.limit
	m.mu.Unlock()
	if full {
		m.sweep()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.byID) >= m.limit {
		m.remove(m.order.Front().Value.(*madeSocket))
	}
	s := &madeSocket{inode: inode, fd: fd}
	s.place = m.order.PushBack(s)
	m.byID[inode] = s
}

// remove is drop with m.mu held.
func (m *madeSockets) remove(s *madeSocket) {
	delete(m.byID, s.inode)
	m.order.Remove(s.place)
	unix.Close(s.fd) // it is connected to nobody but, perhaps, a program on this machine: nothing lingers
}

// drop gives up the copy of a socket, if there is one.
func (m *madeSockets) drop(inode uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.byID[inode]; s != nil {
		m.remove(s)
	}
}

// take gives a copy of the copy, which is the caller's. ok is false where there is none.
func (m *madeSockets) take(inode uint64) (fd int, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byID[inode]
	if s == nil {
		return -1, false, nil
	}
	m.order.MoveToBack(s.place)
	fd, err = unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	return fd, true, err
}

// close gives up all.
func (m *madeSockets) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.byID {
		m.remove(s)
	}
}

// sweep drops the copies of sockets that no process has any more, and tells how many. One that is on its way from one process to
// another counts as gone: a later connect on it fails.
func (m *madeSockets) sweep() int {
	m.mu.Lock()
	candidates := make(map[uint64]struct{}, len(m.byID))
	for inode := range m.byID {
		candidates[inode] = struct{}{}
	}
	m.mu.Unlock()
	if len(candidates) == 0 {
		return 0
	}
	eachProcessSocket(func(inode uint64) { delete(candidates, inode) })
	for inode := range candidates {
		m.drop(inode)
	}
	return len(candidates)
}

// eachProcessSocket calls visit for each socket that a process but this one has, as far as this one may see them
// (proc_pid_fd(5)).
func eachProcessSocket(visit func(inode uint64)) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	own := strconv.Itoa(os.Getpid())
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil || p.Name() == own {
			continue
		}
		dir := "/proc/" + p.Name() + "/fd"
		files, err := os.ReadDir(dir)
		if err != nil {
			continue // another user's, or gone
		}
		for _, f := range files {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+f.Name(), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
				visit(st.Ino)
			}
		}
	}
}

// duplicateMade takes a copy of one of the caller's sockets that was made here. Any other is connected already, as one that was
// accepted or is half of a pair.
func (c *call) duplicateMade(fd int32) (int, syscall.Errno) {
	var st unix.Stat_t
	err := c.onThread(func(t *thread) error { return unix.Fstatat(t.dir, "fd/"+strconv.Itoa(int(fd)), &st, 0) })
	switch {
	case errors.Is(err, unix.ENOENT):
		return -1, unix.EBADF
	case err != nil:
		return -1, c.broken(fmt.Errorf("look at a descriptor of the caller: %w", err))
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return -1, unix.ENOTSOCK
	}
	copied, ok, err := c.s.made.take(st.Ino)
	switch {
	case err != nil:
		return -1, c.broken(fmt.Errorf("copy a socket that was made for the caller: %w", err))
	case !ok:
		return -1, unix.EISCONN
	}
	c.inode = st.Ino
	return c.holdCopy(copied), 0
}

// settleMade gives up the copy of a socket after which nothing is to be done to it any more.
func (c *call) settleMade(o outcome) {
	if c.inode == 0 {
		return
	}
	switch c.name {
	case "listen":
		if o.errno != 0 {
			return
		}
	case "connect":
		if o.errno != 0 && o.errno != unix.EINPROGRESS && o.errno != unix.EALREADY && o.errno != unix.EISCONN {
			return
		}
	default:
		if !c.bound || o.errno != 0 {
			return
		}
	}
	c.s.made.drop(c.inode)
}
