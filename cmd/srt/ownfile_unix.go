//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// placeOf tells where an open file could be opened once more. The error is why commands could not be kept from it.
func placeOf(f *os.File) (p ownPlace, err error) {
	conn, err := f.SyscallConn() // and not Fd, which would make it blocking
	if err != nil {
		return ownPlace{}, err
	}
	controlErr := conn.Control(func(fd uintptr) { p, err = placeOfDescriptor(int(fd)) }) // #nosec G115 -- a descriptor
	return p, errors.Join(controlErr, err)
}

func placeOfDescriptor(fd int) (p ownPlace, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return p, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		p.own, err = nameOf(fd, &st)
	case unix.S_IFIFO:
		p.private, err = nameOf(fd, &st)
	}
	return p, err
}

// nameOf is the absolute path by which the file or FIFO that a descriptor leads to could be opened once more, empty for what
// has no name, or none any more. The error is why commands could not be kept from it by its name: it has several (FS-45), or
// the one that it has cannot be told. Which it is, is the kernel's word (proc_pid_fd(5)); the path that the descriptor was
// opened by may lead elsewhere by now. Without such a word, on systems on which no command is confined, there is no name.
func nameOf(fd int, st *unix.Stat_t) (string, error) {
	if runtime.GOOS != "linux" || st.Nlink == 0 {
		return "", nil
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", fmt.Errorf("its name cannot be told, and so the command not be kept from it: %w", err)
	}
	if !filepath.IsAbs(path) { // "pipe:[4026]"
		return "", nil
	}
	if st.Nlink > 1 {
		return "", errOtherName
	}
	var there, now unix.Stat_t
	switch err := unix.Lstat(path, &there); {
	case err == nil && there.Dev == st.Dev && there.Ino == st.Ino:
		return path, nil
	case unix.Fstat(fd, &now) == nil && now.Nlink == 0: // removed meanwhile
		return "", nil
	}
	return "", fmt.Errorf("it is not to be found by its name, %q, and so the command cannot be kept from it", path)
}
