//go:build unix

package mitm

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const errIsDirectory = syscall.EISDIR

// openNonblocking opens a file for reading; a pipe that nobody writes does not make it wait (open(2), O_NONBLOCK).
func openNonblocking(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// systemErrnoName is the name of the error number in an error, or "".
func systemErrnoName(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return unix.ErrnoName(errno)
}
