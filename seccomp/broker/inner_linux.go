package broker

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// A sandbox within the sandbox (Config.Roots), such as an srt's inside, is held by mounts of its own and by a Landlock domain of its
// own. A hand goes through the caller's mounts, but two things there hold for whoever is in the mount namespace, or in the domain, and
// a hand is in neither. They are held here.

// isMountPoint tells whether something is mounted, in the caller's mount namespace, on the name of a place: the kernel renames no
// such name, nor replaces it, for who is in that namespace (is_local_mountpoint in fs/namespace.c), and takes the mount off for
// everybody else. The mount may lie beneath another one that covers it, so that only the list tells. Where it cannot be read it is so.
func (c *call) isMountPoint(at place) bool {
	if at.object < 0 || !isName(at.last) {
		return false
	}
	where, errno := c.location(at)
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.tid) + "/mountinfo")
	if errno != 0 || err != nil || !c.waits() {
		return true
	}
	want := mountEscapes.Replace(where)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == want {
			return true
		}
	}
	return false
}

// mountEscapes writes a name as mountinfo does (proc_pid_mountinfo(5)).
var mountEscapes = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`)

// unwritable tells whether an opening to write of a FIFO or a device is refused because it lies where the caller's mounts are
// read-only. That does not count for these in itself (read-only mounts, mount(8)): Landlock would refuse them to the caller, and
// does not hold the hand. The devices that are the same whichever file names them, and the caller's terminal, harm nobody.
func (c *call) unwritable(object int, i *info, how openHow) bool {
	special := i.kind() == unix.S_IFIFO || i.kind() == unix.S_IFCHR || i.kind() == unix.S_IFBLK
	if !c.rooted() || !special || how.flags&unix.O_ACCMODE == unix.O_RDONLY {
		return false
	}
	if i.kind() == unix.S_IFCHR {
		if _, same := fsview.MemoryDevice(i.Rdev_major, i.Rdev_minor); same || i.Rdev_major == ttyMajor {
			return false
		}
	}
	fs, errno := c.fileSystem(object)
	return errno != 0 || fs.Flags&unix.ST_RDONLY != 0
}
