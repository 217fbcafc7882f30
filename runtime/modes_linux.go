package runtime

import (
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// refusedByModes is the file or directory of the host whose modes would refuse an access to this process's user, and so to a
// command of its, without any sandbox; empty if none would, or it cannot be told without waiting for a disk. Root passes all of
// them. call is the name of the system call, empty for none: what the owner of a file alone may do is no matter of its modes.
func refusedByModes(location, call string, a fsview.Access) string {
	if os.Geteuid() == 0 {
		return ""
	}
	what, ask := location, uint32(unix.R_OK)
	switch a {
	case fsview.AccessWrite:
		ask = unix.W_OK
	case fsview.AccessCreate, fsview.AccessRemove:
		what, ask = path.Dir(location), unix.W_OK|unix.X_OK
	}
	fd, err := openCached(what)
	if err != nil {
		return unsearchable(what)
	}
	defer unix.Close(fd)
	if a == fsview.AccessWrite && ownersCall(call) {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && int(st.Uid) != os.Geteuid() {
			return what
		}
		return ""
	}
	if errors.Is(unix.Faccessat(fd, "", ask, unix.AT_EACCESS|unix.AT_EMPTY_PATH), unix.EACCES) {
		return what
	}
	return ""
}

// ownersCall tells whether a call is for the owner of a file, whatever its modes.
func ownersCall(call string) bool {
	for _, what := range [...]string{"chmod", "chown", "utim"} {
		if strings.Contains(call, what) {
			return true
		}
	}
	return false
}

// unsearchable is the first directory on the way to a path that this process may not search.
func unsearchable(location string) string {
	for at := 1; at < len(location); at++ {
		if location[at] != '/' {
			continue
		}
		fd, err := openCached(location[:at])
		if err != nil {
			return ""
		}
		err = unix.Faccessat(fd, "", unix.X_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH)
		unix.Close(fd)
		if errors.Is(err, unix.EACCES) {
			return location[:at]
		}
	}
	return ""
}

// openCached finds a path without links, for asking alone, if the kernel has it at hand.
func openCached(location string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, location, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: resolveCached | unix.RESOLVE_NO_MAGICLINKS})
}
