//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow has an opening fail on a link.
const noFollow = unix.O_NOFOLLOW

// duplicate gives a descriptor of the caller's a number of srt's own and says what file it is, if it is one by a name and
// none of the command's own streams. The descriptor must be open for writing.
func duplicate(fd int) (*os.File, string, error) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0) // #nosec G115 -- not negative
	if err == nil && fd > 2 && flags&unix.FD_CLOEXEC != 0 {
		// No program begins with such a descriptor: this one is srt's own, opened at a number that was free.
		err = unix.EBADF
	}
	if err == nil {
		flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) // #nosec G115 -- not negative
	}
	switch {
	case errors.Is(err, unix.EBADF):
		return nil, "", errors.New("the descriptor is not open")
	case err != nil:
		return nil, "", err
	case flags&unix.O_ACCMODE != unix.O_WRONLY && flags&unix.O_ACCMODE != unix.O_RDWR:
		return nil, "", errors.New("the descriptor is not open for writing")
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) // #nosec G115 -- not negative
	if err != nil {
		return nil, "", err
	}
	f := os.NewFile(uintptr(own), descriptorPrefix+strconv.Itoa(fd)) // #nosec G115 -- not negative
	if fd <= 2 {
		return f, "", nil
	}
	unix.CloseOnExec(fd)
	return f, fileOf(fd), nil
}

// fileOf is the path of the regular file that a descriptor leads to, empty if it has none that still does.
func fileOf(fd int) string {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return ""
	}
	return pathOf(fd, &st)
}

// pathOf is the absolute path by which what a descriptor leads to could be opened once more; empty for what has no name, or
// not by that one any more.
func pathOf(fd int, st *unix.Stat_t) string {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	var there unix.Stat_t
	if err != nil || !filepath.IsAbs(path) || unix.Stat(path, &there) != nil || there.Dev != st.Dev || there.Ino != st.Ino {
		return ""
	}
	return path
}
