package placeholder

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	journalName = "journal"
	newJournal  = "journal.new"
	lockName    = "lock"
)

// patience is how long another process may hold the journal's lock. Its work is a few system calls and at most a few
// synced writes for each placeholder.
var patience = 20 * time.Second

// crash is called between any two steps whose order matters. Tests die there.
var crash = func(string) {}

// store is an open state directory. A session keeps it for its life.
type store struct {
	path string
	dir  *os.File // the directory, to read and to sync
	lock *os.File // its open file description owns the locks
	boot string
	// What was read under the lock: the journal's size, and whether its last line has no end.
	size int64
	torn bool
}

// openState opens the state directory. With create it is made when it is missing; without, that is fs.ErrNotExist.
func openState(dir string, create bool) (*store, error) {
	if err := checkPath(dir); err != nil {
		return nil, err
	}
	if create {
		if err := makeState(dir); err != nil {
			return nil, stateFailure("make the state directory", dir, err)
		}
	}
	fd, err := open(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, stateFailure("open the state directory", dir, err)
	}
	s := &store{path: dir, dir: os.NewFile(uintptr(fd), dir), boot: bootID()}
	if err := ownDirectory(fd); err != nil {
		s.close()
		return nil, stateFailure("use the state directory", dir, err)
	}
	lock, err := openOwn(fd, lockName, unix.O_RDWR)
	if err != nil {
		s.close()
		return nil, stateFailure("open the lock of the journal", path.Join(dir, lockName), err)
	}
	s.lock = os.NewFile(uintptr(lock), path.Join(dir, lockName))
	return s, nil
}

// openOwn opens a file of the state directory, and makes it when it is missing: mode 0600 whatever the umask.
func openOwn(at int, name string, flags int) (int, error) {
	fd, err := openMode(at, name, flags|unix.O_CREAT|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, err
	}
	o, err := observe(fd)
	if err == nil && o.mode != 0o600 {
		err = ignoringEINTR(func() error { return unix.Fchmod(fd, 0o600) })
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

var errNotOwn = errors.New("it is not a directory of your own, or others may write to it")

// ownDirectory is nil when nobody but the caller can change what lies in the directory. It takes from others the right to
// look: whoever can open the lock file can hold up a start.
func ownDirectory(fd int) error {
	o, err := observe(fd)
	if err != nil {
		return err
	}
	if int(o.uid) != os.Geteuid() || o.mode&0o022 != 0 {
		return errNotOwn
	}
	if o.mode&0o077 == 0 {
		return nil
	}
	return ignoringEINTR(func() error { return unix.Fchmod(fd, 0o700) })
}

// volatile reports that the directory is in memory. An unknown file system is taken to be on a disk.
func (s *store) volatile() bool {
	var st unix.Statfs_t
	err := ignoringEINTR(func() error { return unix.Fstatfs(int(s.dir.Fd()), &st) })
	return err == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

// makeState makes the directory and what leads to it. Nothing is made in a directory of another user: that user's own
// programs could not use it afterwards.
func makeState(dir string) error {
	err := ignoringEINTR(func() error { return unix.Mkdir(dir, 0o700) })
	switch {
	case err == nil:
		return chmodNew(dir)
	case errors.Is(err, unix.EEXIST):
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	if err := makeState(path.Dir(dir)); err != nil {
		return err
	}
	if err := ignoringEINTR(func() error { return unix.Mkdir(dir, 0o700) }); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return chmodNew(dir)
}

// chmodNew undoes the umask and syncs the directory around the new one, so that the journal cannot get lost with it.
func chmodNew(dir string) error {
	fd, err := open(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	o, err := observe(fd)
	if err != nil || int(o.uid) != os.Geteuid() {
		return err
	}
	if o.mode&0o700 != 0o700 {
		if err := chmodPath(fd, 0o700); err != nil {
			return err
		}
	}
	return syncDir(unix.AT_FDCWD, path.Dir(dir))
}

func (s *store) close() {
	s.dir.Close()
	if s.lock != nil {
		s.lock.Close()
	}
}

// stateError is ErrState with the system's error behind it.
type stateError struct{ err error }

func (e stateError) Error() string   { return ErrState.Error() + ": " + e.err.Error() }
func (e stateError) Unwrap() []error { return []error{ErrState, e.err} }

func stateFailure(op, p string, err error) error {
	return &Error{Op: op, Path: p, Err: stateError{err}, Advice: "make it a writable directory of your own with mode 0700, " +
		"or set XDG_STATE_HOME to another one outside of every write root"}
}

// bootID names the running boot, "-" when it cannot be told.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(text))
	if err != nil || id == "" || strings.ContainsAny(id, " \n") {
		return "-"
	}
	return id
}

// sameBoot reports that r was written in the running boot.
func (s *store) sameBoot(r *record) bool { return r.boot != "-" && r.boot == s.boot }

// begin takes the lock of the journal and reads it. end gives it back.
func (s *store) begin() (*contents, error) {
	if err := s.acquire(); err != nil {
		return nil, err
	}
	c, err := s.read()
	if err != nil {
		s.end()
		return nil, stateFailure("read the journal", path.Join(s.path, journalName), err)
	}
	return c, nil
}

func (s *store) end() {
	// Unlocking a range of an open descriptor cannot fail but for memory; closing it unlocks in any case.
	_ = s.setLock(unix.F_UNLCK, 0, 1)
}

// acquire waits for byte 0. It asks again and again: a waiting call could not be given up.
func (s *store) acquire() error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.setLock(unix.F_WRLCK, 0, 1)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			return stateFailure("lock the journal", s.path, err)
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return &Error{Op: "lock the journal in", Path: s.path, Err: ErrBusy,
				Advice: "another srt hangs, perhaps on a file system that does not answer; end it and try again"}
		}
	}
}

// setLock sets or clears this description's lock on n bytes from first (fcntl_locking(2), open file description locks).
func (s *store) setLock(kind int16, first, n uint64) error {
	return ignoringEINTR(func() error {
		return unix.FcntlFlock(s.lock.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart,
			Start: int64(first), Len: int64(n)})
	})
}

// unlockAll gives up the locks on all records, in copies of the description as well.
func (s *store) unlockAll() {
	_ = s.setLock(unix.F_UNLCK, 1, 0)
}

// relied reports that another session holds the record. It is asked under the lock of the journal, without which no
// session takes a new hold.
func (s *store) relied(id uint64) (bool, error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(id), Len: 1}
	err := ignoringEINTR(func() error { return unix.FcntlFlock(s.lock.Fd(), unix.F_OFD_GETLK, &l) })
	if err != nil {
		return true, stateFailure("ask for a lock in", s.path, err)
	}
	return l.Type != unix.F_UNLCK, nil
}
