//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// readerPatience is how long srt waits at its start for the reader of a FIFO, which may be started beside it, and readerPause
// how long between two looks.
const (
	readerPatience = 2 * time.Second
	readerPause    = 5 * time.Millisecond
)

// openReport opens a file to append to, which no command inherits. It does not follow a link in the place of the file: a
// command that ran before may have left one there, and what is written holds names of its choosing. The links of /dev are
// the system's. Nor does it wait for long at a FIFO, which such a command may have left as well.
func openReport(path string) (*os.File, error) {
	if link := linkOnWay(path); link != "" {
		return nil, fmt.Errorf("%s on the way to it is a symbolic link, which whoever can write there can have lead anywhere; "+
			"name the file by where it is", link)
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND | unix.O_NONBLOCK | unix.O_NOCTTY
	look := os.Stat
	if !strings.HasPrefix(path, "/dev/") {
		flags |= unix.O_NOFOLLOW
		look = os.Lstat
	}
	for deadline := time.Now().Add(readerPatience); ; time.Sleep(readerPause) { //nolint:forbidigo // no event tells that a FIFO has a reader
		f, err := os.OpenFile(path, flags, 0o600) // #nosec G304 -- the caller's own
		if err == nil {
			return f, nil
		}
		var kind os.FileMode
		if info, lookErr := look(path); lookErr == nil {
			kind = info.Mode().Type()
		}
		switch {
		case kind == os.ModeSymlink:
			return nil, errors.New("it is a symbolic link, which whoever can write there can have lead anywhere")
		case kind != os.ModeNamedPipe || !errors.Is(err, unix.ENXIO): // fifo(7)
			return nil, err
		case time.Now().After(deadline):
			return nil, errors.New("it is a FIFO that nobody reads; start its reader first, or name another file if you expect none there")
		}
	}
}

// linkOnWay is a directory on the way to a file that is a symbolic link, beneath the working directory, where commands
// usually may write; empty for none. Links elsewhere, in /var for example, are the system's or the person's.
func linkOnWay(path string) string {
	cwd, err := os.Getwd()
	if err != nil {
		return ""
	}
	path = strings.TrimPrefix(path, cwd+"/")
	for i, c := range path { // as it is spelled: link/.. is not where it seems
		dir := path[:i]
		if c != '/' || !filepath.IsLocal(dir) {
			continue
		}
		if info, err := os.Lstat(dir); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return dir
		}
	}
	return ""
}

// duplicate gives a descriptor of the caller's a number of srt's own and says where commands could open the same, unless it is
// one of the command's own streams. The descriptor must be open for writing.
func duplicate(fd int) (*os.File, ownPlace, error) {
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
		return nil, ownPlace{}, errors.New("the descriptor is not open")
	case err != nil:
		return nil, ownPlace{}, err
	case flags&unix.O_ACCMODE != unix.O_WRONLY && flags&unix.O_ACCMODE != unix.O_RDWR:
		return nil, ownPlace{}, errors.New("the descriptor is not open for writing")
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) // #nosec G115 -- not negative
	if err != nil {
		return nil, ownPlace{}, err
	}
	f := os.NewFile(uintptr(own), descriptorPrefix+strconv.Itoa(fd)) // #nosec G115 -- not negative
	if fd <= 2 {
		return f, ownPlace{}, nil
	}
	unix.CloseOnExec(fd)
	place, err := placeOfDescriptor(fd)
	if err != nil {
		f.Close() // nothing was written
		return nil, ownPlace{}, err
	}
	return f, place, nil
}
