package fsview

import (
	"errors"
	"io/fs"
	"syscall"
)

// Info is what the planner knows of one object of the disk.
type Info struct {
	ID   Identity
	UID  int    // owner
	Link uint64 // number of hard links
}

// IsDir reports whether the object is a directory.
func (i Info) IsDir() bool { return i.ID.Type == fs.ModeDir }

// IsLink reports whether the object is a symbolic link.
func (i Info) IsLink() bool { return i.ID.Type == fs.ModeSymlink }

// passesReadOnly reports whether the object can be opened for writing, or connected to, although its mount is read-only:
// what is written there does not go to the file system (sb_permission in fs/namei.c).
func (i Info) passesReadOnly() bool {
	return i.ID.Type == fs.ModeNamedPipe || i.ID.Type == fs.ModeSocket
}

// DirEntry is a name in a directory.
type DirEntry struct {
	Name string
	Type fs.FileMode // type bits; never unknown
}

// Tree is the disk as the planner reads it. Paths are absolute. Errors wrap a syscall.Errno. ReadDir may be called
// from two goroutines at once; the other methods need not be safe for that.
type Tree interface {
	// Lstat describes the object at path without following a link there (lstat(2)).
	Lstat(path string) (Info, error)
	// Readlink is the target of the link at path (readlink(2)).
	Readlink(path string) (string, error)
	// ReadDir lists a directory without "." and "..", in any order (getdents64(2)). A path that is a symbolic link is
	// ENOTDIR or ELOOP.
	ReadDir(path string) ([]DirEntry, error)
	// ReadFile gives at most the first limit bytes of a regular file. It never waits, and never follows a link at path:
	// anything but a regular file is an error.
	ReadFile(path string, limit int) ([]byte, error)
	// CanCreate asks whether the caller may create names in the directory as it is now: write and search permission
	// with the effective ids (faccessat2(2), AT_EACCESS).
	CanCreate(path string) error
	// IgnoresCase tells whether one name of a directory can be looked up by others: in other letter case, for the most part.
	// Where that cannot be found out it says yes.
	IgnoresCase(path string) bool
	// CanSearch asks whether the caller may look up names in the directory as it is now.
	CanSearch(path string) error
}

// absent reports whether err means that there is nothing at a path (FS-11).
func absent(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) ||
		errors.Is(err, syscall.ENAMETOOLONG)
}

// transient are the errors after which a question is asked once more (FS-11).
var transient = [...]syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN}

// again runs ask, and a second time when the first answer was a transient error.
func again[T any](path string, ask func(string) (T, error)) (T, error) {
	value, err := ask(path)
	if err == nil {
		return value, nil
	}
	for _, errno := range transient {
		if errors.Is(err, errno) {
			return ask(path)
		}
	}
	return value, err
}
