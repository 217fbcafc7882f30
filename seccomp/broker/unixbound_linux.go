package broker

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// unixIdentity is a socket file, whatever its names.
type unixIdentity struct {
	dev, ino uint64
}

func identityOf(i *info) unixIdentity {
	return unixIdentity{unix.Mkdev(i.Dev_major, i.Dev_minor), i.Ino}
}

// unixSockets is what a Server knows of the sandbox's sockets of AF_UNIX, and who waits to be connected to one.
type unixSockets struct {
	own      ownSockets
	timeouts unixTimeouts
	queue    unixQueue
	trying   atomic.Int32 // workers that try to connect
}

// ownSockets are the socket files that were bound in the sandbox. A file is told from a later one with the same number by
// what its file system calls it for good (name_to_handle_at(2)), or else by a descriptor that is kept of it: as long as
// that is open, no other file has its number. Its zero value is ready for use.
type ownSockets struct {
	withoutHandles bool // descriptors are kept of all, as where no file system has handles

	mu    sync.Mutex
	named ownSet // by handle
	held  ownSet // by descriptor
}

// maxNamed and maxHeld are how many are remembered in either way, and heldShare which part of this process's descriptors they
// may take.
const (
	maxNamed  = 16384
	maxHeld   = 1024
	heldShare = 4
)

// shareOfFiles is how many there may be of what takes a descriptor: at most most, and a part of those that this process may
// have.
func shareOfFiles(most, part int) int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 1
	}
	return int(max(1, min(uint64(most), r.Cur/uint64(part))))
}

// ownSocket is one of them.
type ownSocket struct {
	id     unixIdentity
	fd     int    // O_PATH; -1 with a handle
	handle string // "" with a descriptor
	binder int    // process that bound it
	place  *list.Element
}

// ownSet is a number of them. Where there are too many, those of the process that has bound most of them make room first,
// and of these the one that was used least lately: so that no program can have another's forgotten.
type ownSet struct {
	limit   int
	byID    map[unixIdentity]*ownSocket
	binders map[int]*list.List // of *ownSocket, the one used least lately first
	spared  int                // how many make room until those without a name are looked for again
}

// siocUnixFile is SIOCUNIXFILE of linux/un.h: an O_PATH descriptor of the file that a socket is bound to. It takes
// CAP_NET_ADMIN over the socket's network namespace, which this process has over the sandbox's.
const siocUnixFile = 0x89e0

// boundUnix remembers the file that a socket of the sandbox was bound to just now. It is to be called before the caller of
// bind(2) has its answer. On a failure, which is reported, the socket counts as one of the host.
//
// open gives a descriptor of that file in a sandbox without a network namespace, over which this process may have no rights.
func (c *call) boundUnix(socket int, open func() (int, error)) {
	if c.s.config.Unix.All {
		return // nobody asks
	}
	binder := c.tid
	if c.known {
		binder = c.status.tgid
	}
	if c.s.config.Confined == nil {
		open = nil
	}
	if err := c.s.unix.own.remember(socket, binder, open); err != nil {
		c.s.report(Denial{Call: "bind", Err: err})
	}
}

func (o *ownSockets) remember(socket, binder int, open func() (int, error)) error {
	fd, err := unix.IoctlRetInt(socket, siocUnixFile)
	if open != nil && errors.Is(err, unix.EPERM) {
		fd, err = open()
	}
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
	s := &ownSocket{id: identityOf(&i), fd: fd, binder: binder}
	if !o.withoutHandles {
		s.handle = handleOf(fd, i.Dev_major)
	}
	if s.handle != "" {
		s.fd = -1
		unix.Close(fd)
	}
	for _, fd := range o.add(s) {
		unix.Close(fd)
	}
	return nil
}

// add takes one on, and gives the descriptors of what has made room, to be closed.
func (o *ownSockets) add(s *ownSocket) (closing []int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.named.prepare(func() int { return maxNamed })
	o.held.prepare(func() int { return shareOfFiles(maxHeld, heldShare) })
	set, other := &o.named, &o.held
	if s.handle == "" {
		set, other = other, set
	}
	closing = append(other.drop(other.byID[s.id]), set.drop(set.byID[s.id])...)
	return append(closing, set.add(s)...)
}

// has tells whether a file, of which object is a descriptor, is one that was bound in the sandbox, and keeps it from being
// forgotten soon.
func (o *ownSockets) has(id unixIdentity, object int) bool {
	o.mu.Lock()
	held, named := o.held.byID[id], o.named.byID[id]
	o.held.use(held)
	o.named.use(named)
	o.mu.Unlock()
	return held != nil || named != nil && named.handle == handleOf(object, unix.Major(id.dev))
}

// close forgets all. Nothing may be under way.
func (o *ownSockets) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.held.byID {
		unix.Close(s.fd)
	}
	o.held, o.named = ownSet{}, ownSet{}
}

func (s *ownSet) prepare(limit func() int) {
	if s.byID == nil {
		s.byID, s.binders, s.limit = map[unixIdentity]*ownSocket{}, map[int]*list.List{}, limit()
	}
}

// add takes one on. The set has none with its number.
func (s *ownSet) add(n *ownSocket) (closing []int) {
	if len(s.byID) >= s.limit {
		closing = s.makeRoom()
	}
	mine := s.binders[n.binder]
	if mine == nil {
		mine = list.New()
		s.binders[n.binder] = mine
	}
	n.place = mine.PushBack(n)
	s.byID[n.id] = n
	return closing
}

// use says that one, if it is not nil, is used.
func (s *ownSet) use(n *ownSocket) {
	if n != nil {
		s.binders[n.binder].MoveToBack(n.place)
	}
}

// drop forgets one, if it is not nil.
func (s *ownSet) drop(n *ownSocket) (closing []int) {
	if n == nil {
		return nil
	}
	delete(s.byID, n.id)
	mine := s.binders[n.binder]
	mine.Remove(n.place)
	if mine.Len() == 0 {
		delete(s.binders, n.binder)
	}
	if n.fd >= 0 {
		closing = append(closing, n.fd)
	}
	return closing
}

// makeRoom forgets those that have lost their last name, if that was not in vain lately, or else one.
func (s *ownSet) makeRoom() (closing []int) {
	if s.spared--; s.spared < 0 {
		defer func() { s.spared = s.limit/8 - len(closing) }()
		for _, n := range s.byID {
			if n.fd >= 0 && !named(n.fd) {
				closing = append(closing, s.drop(n)...)
			}
		}
	}
	if len(s.byID) < s.limit {
		return closing
	}
	var most *list.List
	for _, l := range s.binders {
		if most == nil || l.Len() > most.Len() {
			most = l
		}
	}
	return append(closing, s.drop(most.Front().Value.(*ownSocket))...)
}

// named tells whether a file has a name, as far as is known without asking for it anywhere.
func named(fd int) bool {
	var i unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_NLINK, &i)
	return err == nil && i.Nlink > 0
}

// Types of file handles (linux/exportfs.h; shmem_encode_fh of mm/shmem.c).
const (
	handleInodeGeneration = 1
	handleBtrfs           = 0x4d
	tmpfsHandleSize       = 12
)

// handleOf gives what a file system calls a file for good: its number, and a generation that is another one when the number
// is given out again. "" says that it has no such thing, or that it cannot be relied on: file systems without a device of
// their own may be the work of a program (fuse(4)), but for tmpfs and Btrfs.
func handleOf(fd int, major uint32) string {
	h, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	if err != nil || !lasting(h.Type(), h.Size(), major) {
		return ""
	}
	return string(binary.NativeEndian.AppendUint32(h.Bytes(), uint32(h.Type())))
}

func lasting(kind int32, size int, major uint32) bool {
	switch {
	case size == 0:
		return false
	case major != 0:
		return true
	}
	return kind == handleInodeGeneration && size == tmpfsHandleSize || kind == handleBtrfs
}
