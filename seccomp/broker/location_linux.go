package broker

import (
	"errors"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// where is where a descriptor of this process leads, as the sandbox sees it: the kernel names the place within the
// descriptor's own mounts (d_path of fs/d_path.c), which are the sandbox's. A directory may lie deeper than the kernel can
// say in one go.
func (c *call) where(fd int) (string, error) {
	at, err := readLink(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd))
	if !errors.Is(err, unix.ENAMETOOLONG) {
		return at, err
	}
	for range attempts {
		before := c.s.moves.Load()
		if at, err = c.climb(fd); err != nil {
			return "", err
		}
		// What was read step by step holds if nothing was moved meanwhile; a call that moves something itself holds the
		// lock, which keeps the others off.
		if c.moving || before%2 == 0 && c.s.moves.Load() == before {
			return at, nil
		}
	}
	return "", errUnsteady
}

var (
	errUnsteady = errors.New("directories were moved all the time while it was asked where one is")
	errNameless = errors.New("a directory has no name in the one above it")
)

// climb names a directory by climbing up to where the kernel can name it.
func (c *call) climb(fd int) (string, error) {
	below := ""
	cur := fd
	for {
		up, err := unix.Openat(cur, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		name, err := nameIn(up, cur)
		if cur != fd {
			unix.Close(cur)
		}
		cur = up
		below = path.Join(name, below)
		if err == nil {
			var at string
			if at, err = readLink(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(up)); err == nil {
				unix.Close(up)
				return joinLocation(at, below), nil
			}
		}
		if !errors.Is(err, unix.ENAMETOOLONG) {
			unix.Close(up)
			return "", err
		}
	}
}

// nameIn finds the name of a directory in the one above it.
func nameIn(dir, child int) (string, error) {
	var want, got unix.Stat_t
	if err := unix.Fstat(child, &want); err != nil {
		return "", err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Getdents(dir, buf)
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", errNameless
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if err := unix.Fstatat(dir, name, &got, unix.AT_SYMLINK_NOFOLLOW); err == nil && got.Dev == want.Dev && got.Ino == want.Ino {
				return name, nil
			}
		}
	}
}

// readLink reads a symbolic link of any length.
func readLink(dir int, name string) (string, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}
