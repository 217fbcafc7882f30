package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// tempDir is the directory for temporary files of a command (FS-50, CLI-52).
type tempDir struct {
	path string
	own  bool   // it is one of the default ones and granted for writing
	note string // why it is not the first choice
}

// defaultTempDir is the name that the settings of compatible tools expect.
const defaultTempDir = "/tmp/claude"

// chooseTempDir gives the first directory that exists, is the caller's own and is no link. The default ones are made if
// they are absent: they are not in the user's tree, and stay, because another sandbox may be using them. /dev/shm is
// private to each sandbox and always there.
func chooseTempDir(env []string, uid int) tempDir {
	var notes []string
	if dir := policy.TempDir(env); dir != defaultTempDir {
		err := usableTempDir(dir, uid)
		if err == nil {
			return tempDir{path: filepath.Clean(dir)}
		}
		notes = append(notes, fmt.Sprintf("TMPDIR: %s is not used: %v", dir, err))
	}
	for _, dir := range []string{defaultTempDir, defaultTempDir + "-" + strconv.Itoa(uid)} {
		err := os.Mkdir(dir, 0o700)
		if err == nil || errors.Is(err, os.ErrExist) {
			err = usableTempDir(dir, uid)
		}
		if err == nil {
			return tempDir{path: dir, own: true, note: strings.Join(notes, "; ")}
		}
		notes = append(notes, fmt.Sprintf("TMPDIR: %s is not used: %v", dir, err))
	}
	return tempDir{path: "/dev/shm", note: strings.Join(notes, "; ")}
}

// usableTempDir holds FS-50: a directory that is a link or another user's is not used.
func usableTempDir(dir string, uid int) error {
	if !filepath.IsAbs(dir) {
		return errors.New("not an absolute path")
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return errors.New("it is a symbolic link")
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return errors.New("it is not a directory")
	case int(st.Uid) != uid:
		return fmt.Errorf("it belongs to user %d", st.Uid)
	}
	return unix.Access(dir, unix.W_OK|unix.X_OK)
}
