package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A session that is killed cannot remove its files, so the next one does. Every session holds a lock (flock(2)) on its directory,
// which the kernel gives up with the process; systemd-tmpfiles(8) leaves alone what is locked, too.

// trustPrefix begins the names of such directories (TLS-8).
const trustPrefix = "srt-ca-"

// lockAfter is how long a session may take from making its directory to locking it.
const lockAfter = time.Minute

// lockTrust locks a directory, as long as the file is open. Without a lock, on a file system that has none, the directory is as
// good; it is nil then.
func lockTrust(dir string) *os.File {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil
	}
	return f
}

// sweepBatch is how many names of a directory are looked at between two looks at whether to stop.
const sweepBatch = 512

// sweepTrust removes what sessions of this user have left that were killed, until stop is closed: a directory for temporary files
// may hold any number of names. What cannot be removed stays.
func sweepTrust(parent string, stop <-chan struct{}) {
	dir, err := os.Open(parent)
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(sweepBatch)
		for _, name := range names {
			if strings.HasPrefix(name, trustPrefix) {
				sweepOne(filepath.Join(parent, name))
			}
		}
		if err != nil {
			return
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// sweepOne removes one directory, if it is this user's, of nobody else's making, and no session holds it. A young one is not even
// locked: its session may be about to, and would go on without a lock if it found it taken.
func sweepOne(dir string) {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || !isLeft(&st) {
		return
	}
	f := lockTrust(dir)
	if f == nil {
		return
	}
	defer f.Close()
	if unix.Fstat(int(f.Fd()), &st) != nil || !isLeft(&st) {
		return
	}
	_ = os.RemoveAll(dir) // it removes links, not what they lead to
}

// isLeft reports whether a directory may be one that a session has left.
func isLeft(st *unix.Stat_t) bool {
	return int(st.Uid) == os.Geteuid() && st.Mode&(unix.S_IFMT|0o777) == unix.S_IFDIR|0o700 &&
		time.Since(time.Unix(st.Mtim.Unix())) >= lockAfter
}
