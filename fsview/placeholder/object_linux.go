package placeholder

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// attribute is the extended attribute that holds a placeholder's mark.
const attribute = "user.srt.placeholder"

// setxattr is a variable so that tests can be on a file system without extended attributes.
var setxattr = unix.Setxattr

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// open opens a name beneath at; the descriptor is the caller's.
func open(at int, name string, flags int) (int, error) { return openMode(at, name, flags, 0) }

func openMode(at int, name string, flags int, mode uint32) (fd int, err error) {
	err = ignoringEINTR(func() error {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC|unix.O_NOCTTY, mode)
		return err
	})
	return fd, err
}

// openDir opens the directory at an absolute path as O_PATH, following no link of any kind on the way (openat2(2)).
func openDir(p string) (fd int, err error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	err = ignoringEINTR(func() error {
		fd, err = unix.Openat2(unix.AT_FDCWD, p, how)
		return err
	})
	if errors.Is(err, unix.ENOSYS) { // a sandbox of srt around this process cannot give it such a descriptor
		return openDirByName(p)
	}
	return fd, err
}

// openDirByName is openDir, name by name: a link on the way is no directory (ENOTDIR).
func openDirByName(p string) (int, error) {
	fd, err := open(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY)
	for _, name := range strings.FieldsFunc(p, func(r rune) bool { return r == '/' }) {
		if err != nil {
			break
		}
		dir := fd
		fd, err = open(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		unix.Close(dir)
	}
	return fd, err
}

// observe says what an open object is, without its mark.
func observe(fd int) (*observed, error) {
	var st unix.Statx_t
	err := ignoringEINTR(func() error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	})
	if err != nil {
		return nil, err
	}
	kind := st.Mode & unix.S_IFMT
	o := &observed{
		id:       fileID{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino},
		dir:      kind == unix.S_IFDIR,
		regular:  kind == unix.S_IFREG,
		mode:     uint32(st.Mode &^ unix.S_IFMT),
		uid:      st.Uid,
		nlink:    st.Nlink,
		size:     st.Size,
		modified: nanoseconds(st.Mtime),
		changed:  nanoseconds(st.Ctime),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		o.born = nanoseconds(st.Btime)
	}
	return o, nil
}

func nanoseconds(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

// inspect says what lies at name in the directory at, its mark and the content of a short file included. It opens nothing but O_PATH before it knows
// that the object is a file or a directory: opening a FIFO or a device has effects.
func inspect(at int, name string) (*observed, error) {
	fd, err := open(at, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	o, err := observe(fd)
	if err != nil || !(o.dir || o.regular) {
		return o, err
	}
	o.mark = markOf(fd)
	if o.regular && o.size > 0 && o.size <= maxText {
		o.content = contentOf(fd)
	}
	return o, nil
}

// contentOf is the content of a short regular file opened as O_PATH, "" when it cannot be read.
func contentOf(fd int) string {
	file, err := open(unix.AT_FDCWD, link(fd), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return ""
	}
	defer unix.Close(file)
	var buf [maxText + 1]byte
	n := 0
	err = ignoringEINTR(func() (err error) { n, err = unix.Read(file, buf[:]); return err })
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// markOf is the mark of an object opened as O_PATH, "" when it has none or it cannot be read. Extended attributes are
// refused on such a descriptor; its own link in /proc leads to the very object.
func markOf(fd int) string {
	var buf [markLen + 1]byte
	n := 0
	err := ignoringEINTR(func() (err error) { n, err = unix.Getxattr(link(fd), attribute, buf[:]); return err })
	if err != nil || !isMark(string(buf[:n])) {
		return ""
	}
	return string(buf[:n])
}

// link is a path that leads to the object behind a descriptor of this process.
func link(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func chmodPath(fd int, mode uint32) error {
	return ignoringEINTR(func() error { return unix.Chmod(link(fd), mode) })
}

// isEmpty reports that a directory has no entries.
func isEmpty(at int, name string) (bool, error) {
	fd, err := open(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	for {
		n := 0
		err := ignoringEINTR(func() (err error) { n, err = unix.Getdents(fd, buf); return err })
		if err != nil || n == 0 {
			return err == nil, err
		}
		if _, _, names := unix.ParseDirent(buf[:n], 1, nil); len(names) > 0 {
			return false, nil
		}
	}
}

// syncDir makes what was created and removed in a directory durable.
func syncDir(at int, name string) error {
	fd, err := open(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return ignoringEINTR(func() error { return unix.Fsync(fd) })
}

// errNotNew is an object that is not the one this process has just made: somebody put another in its place.
var errNotNew = errors.New("it was replaced while it was made")

// create makes r's object, still unfinished, in the directory at and returns a descriptor of it.
func (r *record) create(at int) (int, error) {
	fd, mode, err := r.open(at)
	if err != nil {
		return -1, err
	}
	o, err := observe(fd)
	if err == nil && !r.fresh(o) {
		err = errNotNew
	}
	if err == nil && o.mode != mode {
		err = chmodPath(fd, mode) // the umask
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (r *record) open(at int) (fd int, mode uint32, err error) {
	if !r.dir {
		fd, err = openMode(at, r.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, unfinishedFile)
		if err == nil {
			crash("created")
		}
		return fd, unfinishedFile, err
	}
	if err := ignoringEINTR(func() error { return unix.Mkdirat(at, r.name, unfinishedDir) }); err != nil {
		return -1, 0, err
	}
	crash("created")
	fd, err = open(at, r.name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || isAbsent(err) {
		err = errNotNew
	}
	return fd, unfinishedDir, err
}

// fresh reports that o can be what was just made for r. No call makes a directory and opens it, so another may have been
// put in its place; that one must not be changed. Only an unfinished one has the sticky bit and is writable by its owner
// alone; it may have inherited the set-group-ID bit.
func (r *record) fresh(o *observed) bool {
	if !r.dir {
		return o.regular
	}
	return o.dir && o.mode&sticky != 0 && o.mode&^(unfinishedDir|setgid) == 0 &&
		(o.born == 0 || o.born >= r.time-int64(clockSkew))
}

// setMark marks the object behind an O_PATH descriptor, and reports whether its file system has such attributes.
func (r *record) setMark(fd int) (bool, error) {
	err := ignoringEINTR(func() error {
		return setxattr(link(fd), attribute, []byte(r.mark), unix.XATTR_CREATE)
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT),
		errors.Is(err, fs.ErrPermission):
		return false, nil
	default:
		return false, err
	}
}

// write gives the file its text, for which there is room in one block: the kernel writes all of it or nothing.
func (r *record) write(fd int) error {
	if r.text() == "" {
		return nil
	}
	return ignoringEINTR(func() error { _, err := unix.Write(fd, []byte(r.text())); return err })
}

// describe sets r.made to what the object is. Before it is finished its ctime says nothing.
func (r *record) describe(fd int, marked, finished bool) error {
	o, err := observe(fd)
	if err != nil {
		return err
	}
	r.made = &evidence{id: o.id, mode: o.mode, uid: o.uid, marked: marked, born: o.born, modified: o.modified}
	if finished {
		r.made.changed = o.changed
	}
	return nil
}
