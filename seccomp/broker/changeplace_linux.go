package broker

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// Where a sandbox has no mounts of its own, this process sees what the sandbox sees, and finds things by itself where that needs
// nobody else: what the kernel has at hand (RESOLVE_CACHED), for a caller who may search the same directories. A hand does the
// rest, as for any other sandbox.

// locate finds the directory of a path's last component, and what is there.
func (c *call) locate(o origin, path string, resolve uint64) (place, syscall.Errno) {
	if c.s.config.Changes == nil || c.rooted() || c.walks {
		return c.locateByHand(o, path, resolve)
	}
	at, errno := c.locateHere(o, path, resolve)
	if errno == unix.EAGAIN {
		at, errno = c.locateByHand(o, path, resolve)
	}
	switch {
	case errno == unix.EACCES && resolve&^unix.RESOLVE_NO_MAGICLINKS == 0:
		return c.walk(o, path, resolve) // so a hand may not look where the links to the caller's own descriptors lead
	case errno != 0:
		return at, errno
	}
	m, errno := c.mounted(at.dir)
	if errno == 0 && m.proc {
		return c.walk(o, path, resolve) // /proc/self would be srt's, or the hand's
	}
	return at, errno
}

// locateHere is locate without a hand: EAGAIN says that it takes one.
func (c *call) locateHere(o origin, path string, resolve uint64) (place, syscall.Errno) {
	dir, last := splitPath(path)
	if last == "" {
		last = "."
	}
	parent, errno := c.parentHere(o, dir, resolve)
	switch {
	case errno != 0 && mayBeCallers(errno) && resolve&^unix.RESOLVE_NO_MAGICLINKS == 0:
		return c.walk(o, path, resolve)
	case errno != 0:
		return place{}, errno
	}
	var object int
	if isName(last) {
		object, errno = c.openHere(parent, nameOf(last), unix.O_NOFOLLOW, resolve)
	} else {
		object, errno = c.openHere(here(o), path, unix.O_NOFOLLOW, resolve)
	}
	switch errno {
	case 0:
		return place{dir: parent, last: last, object: object}, 0
	case unix.EAGAIN, unix.EACCES: // the latter is the directory's: it may not be searched
		return place{}, errno
	}
	return place{dir: parent, last: last, object: -1, errno: errno}, 0
}

// here is where a path starts for this process.
func here(o origin) int {
	if o.fd < 0 {
		return unix.AT_FDCWD // with an absolute path it does not matter
	}
	return o.fd
}

// parentHere opens the directory that a name is in.
func (c *call) parentHere(o origin, dir string, resolve uint64) (int, syscall.Errno) {
	if !c.searchesAlike() {
		return -1, unix.EAGAIN
	}
	if dir == "" {
		return o.fd, 0
	}
	return c.openHere(here(o), dir, unix.O_DIRECTORY, resolve)
}

func (c *call) openHere(at int, path string, flags, resolve uint64) (int, syscall.Errno) {
	fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: flags | unix.O_PATH | unix.O_CLOEXEC,
		Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS | resolveCached})
	if err != nil {
		return -1, systemErrno(err)
	}
	return c.hold(fd), 0
}

// searchesAlike tells whether the caller may search the directories that this process may, and no others.
func (c *call) searchesAlike() bool {
	var caller ns.Capabilities
	if own := c.s.config.Rights; own != nil {
		if c.readStatus() != 0 || !c.actsAs(own) {
			return false
		}
		caller = own.Effective
	}
	return searchesAll(caller) == c.s.searches.read()
}

// searchesAll tells whether capabilities let their holder search every directory (capabilities(7)).
func searchesAll(s ns.Capabilities) bool {
	return s&ns.CapabilitySet(unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH) != 0
}

// ownSearch is whether this process may search every directory.
type ownSearch struct {
	once sync.Once
	all  bool
}

func (o *ownSearch) read() bool {
	o.once.Do(func() { o.all = searchesAll(ns.Capabilities(capabilitiesOf(0))) })
	return o.all
}

// seenMount is what is known of a mount: whether this process sees it at all, and whether it is a procfs.
type seenMount struct{ known, proc bool }

// seenMounts remembers the mounts that this process sees (proc_pid_mountinfo(5)), by their ids.
type seenMounts struct {
	mu sync.Mutex
	at map[uint64]seenMount
}

// errMounts says that the kernel's list of mounts is not understood.
var errMounts = errors.New("a line of /proc/self/mountinfo is not understood")

// find looks for a mount, in a fresh list if the one at hand does not have it.
func (t *seenMounts) find(id uint64) (seenMount, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok := t.at[id]; ok {
		return m, nil
	}
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return seenMount{}, err
	}
	if t.at, err = parseSeen(string(text)); err != nil {
		return seenMount{}, err
	}
	return t.at[id], nil
}

func parseSeen(text string) (map[uint64]seenMount, error) {
	found := map[uint64]seenMount{}
	for line := range strings.Lines(text) {
		first, second, parted := strings.Cut(line, " - ")
		number, _, _ := strings.Cut(first, " ")
		id, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !parted {
			return nil, errMounts
		}
		kind, _, _ := strings.Cut(second, " ")
		found[id] = seenMount{known: true, proc: kind == "proc"}
	}
	return found, nil
}

// mounted is the mount that a descriptor of this process lies on.
func (c *call) mounted(fd int) (seenMount, syscall.Errno) {
	i, errno := c.look(fd)
	if errno != 0 {
		return seenMount{}, errno
	}
	m, err := c.s.mounts.find(i.Mnt_id)
	if err != nil {
		return seenMount{}, c.broken(err)
	}
	return m, 0
}
