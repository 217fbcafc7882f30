package escape

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// snapshot is everything about the trees beneath the world that an attacker could change, by path.
func (w *world) snapshot(trees ...string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, tree := range trees {
		if !filepath.IsAbs(tree) {
			tree = filepath.Join(w.dir, tree)
		}
		w.must(filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				all[path] = "error: " + err.Error()
				return nil
			}
			all[path] = describe(path)
			return nil
		}))
	}
	return all
}

// describe is the state of one object. Access times are left out: reading is no change.
func describe(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "error: " + err.Error()
	}
	text := fmt.Sprintf("inode %d mode %o owner %d:%d links %d size %d mtime %d.%09d", st.Ino, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim.Sec, st.Mtim.Nsec)
	names := make([]byte, 4096)
	if n, err := unix.Llistxattr(path, names); err == nil {
		text += fmt.Sprintf(" xattrs %q", names[:n])
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		b, err := os.ReadFile(path)
		if len(b) > 200 {
			b = b[:200]
		}
		text += fmt.Sprintf(" content %q %v", b, err)
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		text += fmt.Sprintf(" to %q %v", target, err)
	}
	return text
}

// difference lists what is not the same in two snapshots.
func difference(before, after map[string]string) string {
	var lines []string
	for path, was := range before {
		if is, ok := after[path]; !ok {
			lines = append(lines, "gone: "+path)
		} else if is != was {
			lines = append(lines, "changed: "+path+"\n  was "+was+"\n  is  "+is)
		}
	}
	for path, is := range after {
		if _, ok := before[path]; !ok {
			lines = append(lines, "new: "+path+"\n  is  "+is)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// owner is the user a file belongs to.
func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
