package credential

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openSource opens a file to read at an absolute path without links. A link on the way, put there since the path was
// resolved, is not followed (openat2(2)): the fake of another file would show what is not masked in it. Nothing waits, for
// the other end of a FIFO for example.
func openSource(location string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, location, &how)
		if err == nil {
			return os.NewFile(uintptr(fd), location), nil
		}
		// EAGAIN: something was renamed meanwhile.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return nil, err
		}
	}
}
