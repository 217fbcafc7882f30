package placeholder

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// retention is how long a record is kept whose directory cannot be reached or is another one by now: its volume may come
// back. After that the project has most likely been deleted.
const retention = 30 * 24 * time.Hour

// Sweep removes what sessions that have died left behind (FS-52, FS-54). state is the absolute path of the state
// directory. Every start calls it: where there is no such directory, or nothing is recorded, it costs one or two system
// calls. An error says what could not be removed; that stays in the journal for the next call.
func Sweep(state string) error {
	return visit(state, func(st *store, c *contents) error { return st.sweep(c, c.live(), nil) })
}

// List returns the placeholders of all sessions of this state directory, in path order. A plan denies writing those that
// lie beneath its write roots: a command that removes one lifts the deny of another sandbox. Nothing is changed.
func List(state string) ([]Placeholder, error) {
	var list []Placeholder
	err := visit(state, func(_ *store, c *contents) error {
		for _, r := range c.live() {
			list = append(list, Placeholder{Path: r.path(), Dir: r.dir})
		}
		return nil
	})
	slices.SortFunc(list, byPath)
	return list, err
}

// visit runs f under the lock of the journal, unless there is nothing in it.
func visit(state string, f func(*store, *contents) error) error {
	if err := checkPath(state); err != nil {
		return err
	}
	var st unix.Stat_t
	err := ignoringEINTR(func() error { return unix.Lstat(state+"/"+journalName, &st) })
	if isAbsent(err) || (err == nil && st.Size == 0) {
		return nil
	}
	s, err := openState(state, false)
	if err != nil {
		return err
	}
	defer s.close()
	c, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	return f(s, c)
}

// sweep removes the placeholders of those records that no other session relies on, and ends the change of the journal.
// parents are the descriptors of a session that is being released, and nil when dead ones are cleaned up after: then a
// directory that cannot be reached is no error.
func (s *store) sweep(c *contents, records []*record, parents map[fileID]int) error {
	var free []*record
	var failures []error
	for _, r := range records {
		relied, err := s.relied(r.id)
		if err != nil {
			failures = append(failures, err)
		}
		if !relied {
			free = append(free, r)
		}
	}
	slices.SortStableFunc(free, func(a, b *record) int { return strings.Compare(a.where, b.where) })
	var gone []*record
	for len(free) > 0 {
		n := 1
		for n < len(free) && free[n].where == free[0].where && free[n].parent == free[0].parent && free[n].boot == free[0].boot {
			n++
		}
		done, err := s.clear(free[:n], parents)
		gone = append(gone, done...)
		failures = append(failures, err)
		free = free[n:]
	}
	crash("cleared")
	failures = append(failures, s.tidy(c, gone))
	return errors.Join(failures...)
}

// clear removes what lies in one directory, and returns the records that need not be kept.
func (s *store) clear(group []*record, parents map[fileID]int) (gone []*record, err error) {
	at, err := s.reach(group[0], parents)
	if err != nil {
		for _, r := range group {
			if time.Now().UnixNano()-r.time > int64(retention) {
				gone = append(gone, r)
			}
		}
		if parents == nil {
			return gone, nil
		}
		return gone, group[0].leftover("reach the directory of", err)
	}
	defer at.close()
	var failures []error
	for _, r := range group {
		if err := r.remove(at.fd, s.sameBoot(r)); err != nil {
			failures = append(failures, err)
			continue
		}
		gone = append(gone, r)
	}
	// The record must not be gone from the disk before its object. A directory that may be written but not read cannot
	// be synced; nothing but a power cut within seconds would show that.
	_ = syncDir(at.fd, ".")
	return gone, errors.Join(failures...)
}

// directory is an O_PATH descriptor of a directory of placeholders.
type directory struct {
	fd       int
	borrowed bool
}

func (d directory) close() {
	if !d.borrowed {
		unix.Close(d.fd)
	}
}

var errMoved = errors.New("another directory lies there now")

// reach opens the directory of r and proves that it is the recorded one.
func (s *store) reach(r *record, parents map[fileID]int) (directory, error) {
	if fd, ok := parents[r.parent]; ok && s.sameBoot(r) {
		return directory{fd: fd, borrowed: true}, nil
	}
	fd, err := openDir(r.where)
	if err != nil {
		return directory{}, err
	}
	o, err := observe(fd)
	if err == nil && (o.id.ino != r.parent.ino || (s.sameBoot(r) && o.id.dev != r.parent.dev)) {
		err = errMoved
	}
	if err != nil {
		unix.Close(fd)
		return directory{}, err
	}
	return directory{fd: fd}, nil
}

// remove removes r's object from the directory at. It is nil when nothing of it is left, or what lies there is not proven
// to be it.
func (r *record) remove(at int, sameBoot bool) error {
	// A process may have died between the two steps of take.
	if o, err := inspect(at, r.aside()); err == nil && !r.dir && r.proves(o, sameBoot, aside) {
		if err := unlink(at, r.aside(), 0); err != nil {
			return r.leftover("remove", err)
		}
	}
	o, err := inspect(at, r.name)
	switch {
	case isAbsent(err):
		return nil
	case err != nil:
		return r.leftover("inspect", err)
	case !r.proves(o, sameBoot, atName):
		return nil
	}
	crash("proven")
	if !r.dir {
		return r.take(at, o)
	}
	err = unlink(at, r.name, unix.AT_REMOVEDIR)
	// It has entries, or another object has taken its place: not ours any more.
	if err == nil || isAbsent(err) || errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) ||
		errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return r.leftover("remove", err)
}

// take unlinks a file that is o. No call removes a name only if it leads to a given object, and a user's file may be
// renamed onto the name after it was proven. So the name is moved aside first and looked at again.
func (r *record) take(at int, o *observed) error {
	err := rename(at, r.name, r.aside())
	switch {
	case isAbsent(err):
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EEXIST):
		// The file system cannot rename without replacing.
		if err := unlink(at, r.name, 0); err != nil {
			return r.leftover("remove", err)
		}
		return nil
	case err != nil:
		return r.leftover("remove", err)
	}
	crash("aside")
	now, err := inspect(at, r.aside())
	if err == nil && now.id == o.id && now.regular && now.size == o.size && now.modified == o.modified {
		err = unlink(at, r.aside(), 0)
	} else if err == nil {
		err = rename(at, r.aside(), r.name)
	}
	if err != nil && !isAbsent(err) {
		return r.leftover("remove or put back "+r.aside()+", moved from", err)
	}
	return nil
}

func unlink(at int, name string, flags int) error {
	return ignoringEINTR(func() error { return unix.Unlinkat(at, name, flags) })
}

func rename(at int, from, to string) error {
	return ignoringEINTR(func() error { return unix.Renameat2(at, from, at, to, unix.RENAME_NOREPLACE) })
}

func (r *record) leftover(op string, err error) error {
	return &Error{Op: op + " the placeholder", Path: r.path(), Err: err,
		Advice: "it is tried again at the next start; an empty file or directory there can be removed by hand"}
}
