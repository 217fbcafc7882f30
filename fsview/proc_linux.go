package fsview

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// ProcEntries lists the names in /proc that are not of processes, "self" and such left out: for
// CompileOptions.ProcEntries. The kernel gives them before the first process (proc_root_readdir in fs/proc/root.c), so
// that the cost does not grow with the processes of the host.
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
	var names []string
	// Not all at once: what comes after them in the same buffer is made for each process of the host, at a cost.
	buf := make([]byte, 512)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			return names, err
		}
		list, err := hostTree{}.appendEntries(nil, "/proc", buf[:n])
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			switch {
			case e.Name[0] >= '1' && e.Name[0] <= '9':
				return names, nil
			case !e.Type.IsRegular() && !e.Type.IsDir(): // links to what is of the process that asks
			default:
				names = append(names, e.Name)
			}
		}
	}
}

// freshProc puts the new pid namespace's /proc over the yard.
//
// Its entries that are not of processes are the kernel's, shared with every /proc of the machine: a change of their mode
// or owner, for which procfs asks no more than to be their owner, shows on the host. Where user id 0 is the host's, each
// gets a read-only mount of its own. They are copied while all of /proc is read-only, which spares the setting of each.
func (c *compiler) freshProc() {
	if len(c.opts.ProcEntries) == 0 {
		c.put("/proc", c.proc, c.open("/proc"))
		return
	}
	c.setAttr("restrict the mount at", "/proc", c.proc.Arg(), "", unix.AT_EMPTY_PATH, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	c.put("/proc", c.proc, c.open("/proc"))
	for _, name := range c.opts.ProcEntries {
		if hiddenInProc(name) {
			continue
		}
		c.bind("/proc/"+name, "/proc/"+name, 0)
	}
	c.setAttr("open for processes' own entries", "/proc", ns.Int(unix.AT_FDCWD), "/proc", 0, unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
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
