package fsview

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// ProcEntries lists the names in /proc that are not of processes, "self" and such left out: for
// CompileOptions.ProcEntries. The kernel gives them before the first process (proc_root_readdir in fs/proc/root.c), so
// that the cost does not grow with the processes of the host. The list must not be changed. Safe for concurrent use.
func ProcEntries() ([]string, error) {
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	known := lastProc.Load()
	if known != nil && known.is(fd) {
		return known.names, nil
	}
	names, size, err := readProc(fd)
	if err != nil {
		return nil, err
	}
	if known, ok := newProcList(fd, size); ok {
		lastProc.Store(known)
	}
	return names, nil
}

// procList is what the kernel said of /proc up to endOfNames, and what that means.
type procList struct {
	raw   []byte
	names []string
}

// lastProc is what was read last. The same bytes say the same: endOfNames among them tells that no name follows.
var lastProc atomic.Pointer[procList]

// newProcList reads the first size bytes again, in the way in which they will be compared.
func newProcList(fd, size int) (*procList, bool) {
	l := &procList{raw: make([]byte, size)}
	n, err := l.read(fd, l.raw)
	if err != nil {
		return nil, false
	}
	names, used, end, err := namesIn(nil, l.raw[:n])
	l.names = names
	return l, err == nil && end == endFound && used == size
}

// is tells whether /proc begins with that list. There is room for no more, so that the kernel does not come to the processes.
func (l *procList) is(fd int) bool {
	now := make([]byte, len(l.raw))
	n, err := l.read(fd, now)
	return err == nil && bytes.Equal(now[:n], l.raw)
}

func (*procList) read(fd int, buf []byte) (int, error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return 0, err
	}
	return unix.Getdents(fd, buf)
}

// endOfNames is the link that the kernel gives after all of them, before the processes (proc_pid_readdir in fs/proc/base.c).
const endOfNames = "self"

// nameEnd is what ended the names in an answer.
type nameEnd uint8

const (
	endNone    nameEnd = iota // the answer did
	endFound                  // endOfNames
	endProcess                // a process, though endOfNames was not there
)

// readProc reads the names one after another, and tells in how many bytes they and endOfNames are, 0 if that is not there.
func readProc(fd int) (names []string, size int, err error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, 0, err
	}
	// Not all at once: what comes after them in the same buffer is made for each process of the host, at a cost.
	buf := make([]byte, 512)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			return names, 0, err
		}
		var used int
		var end nameEnd
		names, used, end, err = namesIn(names, buf[:n])
		size += used
		switch {
		case err != nil:
			return nil, 0, err
		case end == endFound:
			return names, size, nil
		case end == endProcess:
			return names, 0, nil
		}
	}
}

// namesIn appends the names in an answer of getdents64(2), and tells how many bytes of it were read up to what ended them.
func namesIn(names []string, buf []byte) (_ []string, used int, end nameEnd, err error) {
	for used < len(buf) {
		record, ok := firstRecord(buf[used:])
		if !ok {
			return nil, 0, endNone, unix.EIO
		}
		used += len(record)
		list, err := hostTree{}.appendEntries(nil, "/proc", record)
		if err != nil {
			return nil, 0, endNone, err
		}
		for _, e := range list { // one, or none
			switch {
			case e.Name == endOfNames:
				return names, used, endFound, nil
			case e.Name[0] >= '1' && e.Name[0] <= '9':
				return names, used, endProcess, nil
			case e.Type.IsRegular() || e.Type.IsDir(): // not links to what is of the process that asks
				names = append(names, e.Name)
			}
		}
	}
	return names, used, endNone, nil
}

// firstRecord is the first struct linux_dirent64 in an answer of getdents64(2).
func firstRecord(buf []byte) ([]byte, bool) {
	if len(buf) <= direntName {
		return nil, false
	}
	size := int(binary.NativeEndian.Uint16(buf[direntReclen:]))
	if size <= direntName || size > len(buf) {
		return nil, false
	}
	return buf[:size], true
}

// attachProc puts the sandbox's /proc over the yard: the one of the new pid namespace, or a copy of the surrounding one. That is
// read-only as a whole, unless the command may make user namespaces: it writes their id maps there.
//
// Its entries that are not of processes are the kernel's, shared with every /proc of the machine: a change of their mode
// or owner, for which procfs asks no more than to be their owner, shows on the host. Where user id 0 is the host's, each
// gets a read-only mount of its own. They are copied while all of /proc is read-only, which spares the setting of each.
func (c *compiler) attachProc() {
	if c.opts.procStays() {
		c.put("/proc", c.proc, c.open("/proc"))
		return
	}
	c.setAttr("restrict the mount at", "/proc", c.proc.Arg(), "", unix.AT_EMPTY_PATH, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	c.put("/proc", c.proc, c.open("/proc"))
	flags := 0
	if c.opts.HostProc {
		flags = unix.MS_REC // what is mounted there is locked to it
	}
	for _, name := range c.opts.ProcEntries {
		if hiddenInProc(name) {
			continue
		}
		c.bind("/proc/"+name, "/proc/"+name, flags)
	}
	c.setAttr("open for processes' own entries", "/proc", ns.Int(unix.AT_FDCWD), "/proc", 0, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	if c.opts.HostProc {
		c.p.Tolerate(syscall.EPERM) // the surrounding one is read-only as a whole
	}
}

// hiddenInProc tells whether the table of system.go covers an entry of /proc anyway.
func hiddenInProc(name string) bool {
	for _, k := range kernelPaths {
		if k.how == hidden && strings.TrimPrefix(k.path, "/proc/") == name {
			return true
		}
	}
	return false
}
