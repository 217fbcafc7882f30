package fsview

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// Host is the disk of this machine. It holds no descriptor between calls and is safe for use by several goroutines.
// Errors are bare unix.Errno values.
func Host() Tree { return hostTree{} }

type hostTree struct {
	unknown bool // an entry may be of unknownType
}

// Lstat implements Tree.
func (hostTree) Lstat(path string) (Info, error) {
	var st unix.Stat_t
	if err := ignoringEINTR(func() error { return unix.Lstat(path, &st) }); err != nil {
		return Info{}, err
	}
	return Info{
		ID:   Identity{Dev: st.Dev, Ino: st.Ino, Type: modeType(st.Mode)},
		UID:  int(st.Uid),
		Link: uint64(st.Nlink),
	}, nil
}

// Readlink implements Tree.
func (hostTree) Readlink(path string) (string, error) {
	buf := make([]byte, 256)
	for {
		n, err := unix.Readlink(path, buf)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n < len(buf):
			return string(buf[:n]), nil
		default:
			buf = make([]byte, 2*len(buf))
		}
	}
}

// ReadFile implements Tree.
func (hostTree) ReadFile(path string, limit int) ([]byte, error) {
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := ignoringEINTR(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EINVAL
	}
	buf := make([]byte, limit)
	for have := 0; ; {
		n := 0
		err := ignoringEINTR(func() (err error) { n, err = unix.Read(fd, buf[have:]); return err })
		if err != nil {
			return nil, err
		}
		if have += n; n == 0 || have == limit {
			return buf[:have], nil
		}
	}
}

// CanCreate implements Tree.
func (hostTree) CanCreate(path string) error {
	return ignoringEINTR(func() error {
		return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	})
}

// CanSearch implements Tree.
func (hostTree) CanSearch(path string) error {
	return ignoringEINTR(func() error { return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) })
}

// direntBuffers hold what one getdents64 call returns. A large one halves the calls for a large directory.
var direntBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// ListTypes implements typedLister.
func (hostTree) ListTypes(path string) ([]DirEntry, error) {
	return hostTree{unknown: true}.ReadDir(path)
}

// ReadDir implements Tree. It asks getdents64 itself: os.ReadDir sorts, and stats the directory first, which is a third
// of the time of the mandatory search.
func (t hostTree) ReadDir(path string) ([]DirEntry, error) {
	var fd int
	err := ignoringEINTR(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := direntBuffers.Get().(*[]byte)
	defer direntBuffers.Put(buf)
	var list []DirEntry
	for {
		var n int
		err := ignoringEINTR(func() (err error) { n, err = unix.Getdents(fd, *buf); return err })
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return list, nil
		}
		if list, err = t.appendEntries(list, path, (*buf)[:n]); err != nil {
			return nil, err
		}
	}
}

// The layout of struct linux_dirent64 (getdents64(2)).
const (
	direntReclen = 16 // uint16 after d_ino and d_off
	direntType   = 18
	direntName   = 19
)

// appendEntries decodes the records of one getdents64 answer.
func (t hostTree) appendEntries(list []DirEntry, dir string, buf []byte) ([]DirEntry, error) {
	for len(buf) > direntName {
		size := int(binary.NativeEndian.Uint16(buf[direntReclen:]))
		if size <= direntName || size > len(buf) {
			return nil, unix.EIO
		}
		record := buf[:size]
		buf = buf[size:]
		name := record[direntName:]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if len(name) == 0 || string(name) == "." || string(name) == ".." {
			continue
		}
		e := DirEntry{Name: string(name), Type: modeType(uint32(record[direntType]) << 12)} // IFTODT of dirent.h
		if record[direntType] == unix.DT_UNKNOWN {
			info, err := t.Lstat(join(dir, e.Name))
			switch {
			case absent(err):
				continue
			case err != nil && !t.unknown:
				return nil, err
			case err != nil:
				info.ID.Type = unknownType
			}
			e.Type = info.ID.Type
		}
		list = append(list, e)
	}
	return list, nil
}

// modeType converts the file type of st_mode (inode(7)).
func modeType(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFBLK:
		return fs.ModeDevice
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFREG:
		return 0
	default:
		return fs.ModeIrregular
	}
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
