package broker

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// mountKind is what matters of a mount.
type mountKind struct {
	remote bool // a lookup on it may ask another process or machine
	sealed bool // it is read-only
}

// mountTable remembers what kind the mounts of the sandbox are. The zero value is ready.
type mountTable struct {
	mu   sync.Mutex
	kind map[uint64]mountKind
}

// localTypes are file systems whose lookups are answered by this kernel from memory or from a disk. A type that is not here may
// ask somebody else (FUSE, NFS, 9P), who need not answer.
var localTypes = [...]string{"ext4", "tmpfs", "overlay", "proc", "xfs", "btrfs", "sysfs", "devpts", "devtmpfs", "mqueue", "ramfs", "rootfs",
	"ext2", "ext3", "f2fs", "zfs", "bcachefs", "squashfs", "erofs", "iso9660", "udf", "vfat", "exfat", "ntfs3", "cgroup", "cgroup2",
	"hugetlbfs", "securityfs", "debugfs", "tracefs", "configfs", "bpf", "pstore", "efivarfs", "binfmt_misc", "nsfs", "fusectl"}

// find is what a mount is like. One that is not known yet is looked for in the caller's list of mounts; ok is false for one that
// is not in there.
func (t *mountTable) find(c *call, id uint64) (m mountKind, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, ok = t.kind[id]; ok {
		return m, true
	}
	var text []byte
	err := c.onThread(func(th *thread) error {
		fd, err := unix.Openat(th.dir, "mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "mountinfo")
		defer f.Close()
		text, err = io.ReadAll(f)
		return err
	})
	if err != nil || !c.waits() {
		return m, false
	}
	t.kind = parseMounts(text)
	if c.s.config.Roots {
		// The command mounts, too: an overlay of its own may show what is another's to answer.
		for id, m := range overlays(text) {
			t.kind[id] = m
		}
	}
	m, ok = t.kind[id]
	return m, ok
}

// parseMounts reads a list of mounts (proc_pid_mountinfo(5)).
func parseMounts(text []byte) map[uint64]mountKind {
	kinds := map[uint64]mountKind{}
	eachMount(text, func(id uint64, options, fsType []byte) {
		kinds[id] = mountKind{remote: !isLocal(fsType), sealed: hasOption(options, "ro")}
	})
	return kinds
}

// overlays are those of a list that are overlays, as mounts that may ask somebody else.
func overlays(text []byte) map[uint64]mountKind {
	kinds := map[uint64]mountKind{}
	eachMount(text, func(id uint64, options, fsType []byte) {
		if string(fsType) == "overlay" {
			kinds[id] = mountKind{remote: true, sealed: hasOption(options, "ro")}
		}
	})
	return kinds
}

// eachMount calls f for each line that is understood: the number, the options of the mount, and the type of what is mounted.
func eachMount(text []byte, f func(id uint64, options, fsType []byte)) {
	for line := range bytes.Lines(text) {
		mount, system, ok := bytes.Cut(line, []byte(" - "))
		fields := bytes.Fields(mount)
		if !ok || len(fields) < 6 {
			continue
		}
		id, err := strconv.ParseUint(string(fields[0]), 10, 64)
		if err != nil {
			continue
		}
		fsType, _, _ := bytes.Cut(system, []byte(" "))
		f(id, fields[5], fsType)
	}
}

func isLocal(fsType []byte) bool {
	for _, t := range localTypes {
		if t == string(fsType) {
			return true
		}
	}
	return false
}

func hasOption(options []byte, option string) bool {
	for o := range bytes.SplitSeq(options, []byte(",")) {
		if string(o) == option {
			return true
		}
	}
	return false
}
