package placeholder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// journalLimit is how long a journal may be, in bytes: a hundred thousand lines.
const journalLimit = 16 << 20

// read reads the journal under the lock. None is an empty one.
func (s *store) read() (*contents, error) {
	fd, err := open(int(s.dir.Fd()), journalName, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) {
		s.size, s.torn = 0, false
		return parse(nil), nil
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), journalName)
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, journalLimit+1))
	if err != nil {
		return nil, err
	}
	if len(data) > journalLimit {
		return nil, unix.EFBIG // no session makes so many placeholders: it is not srt's
	}
	c := parse(data)
	s.size, s.torn = int64(len(data)), c.torn
	return c, nil
}

// appendLines adds lines to the journal, and with sync does not return before they are on the disk.
func (s *store) appendLines(lines []string, sync bool) error {
	if len(lines) == 0 {
		return nil
	}
	where := path.Join(s.path, journalName)
	fd, err := openOwn(int(s.dir.Fd()), journalName, unix.O_WRONLY|unix.O_APPEND)
	if err != nil {
		return stateFailure("open the journal", where, err)
	}
	f := os.NewFile(uintptr(fd), where)
	defer f.Close()
	text := strings.Join(lines, "")
	if s.torn {
		text = "\n" + text
	}
	if _, err := f.WriteString(text); err != nil {
		// What was written of it would be torn; the next reader leaves that out, but the room is needed.
		return stateFailure("write the journal", where, errors.Join(err, f.Truncate(s.size)))
	}
	// An empty one may be new, its name not on the disk yet.
	fresh := s.size == 0
	s.size, s.torn = s.size+int64(len(text)), false
	if !sync {
		return nil
	}
	if err := ignoringEINTR(func() error { return unix.Fdatasync(fd) }); err != nil {
		return stateFailure("sync the journal", where, err)
	}
	if fresh {
		if err := s.dir.Sync(); err != nil {
			return stateFailure("sync the state directory", s.path, err)
		}
	}
	return nil
}

// smallJournal is what a journal may grow to before lines about what is gone are taken out.
const smallJournal = 64 << 10

// tidy ends a change: it records what is gone and empties or shortens a journal that has become mostly history.
// Everything that is gone is gone from the disk by now, so nothing has to be synced.
func (s *store) tidy(c *contents, gone []*record) error {
	lines := make([]string, 0, len(gone))
	for _, r := range gone {
		lines = append(lines, r.dropLine())
		delete(c.byID, r.id)
	}
	switch {
	case len(c.byID) == 0:
		return s.empty()
	case s.size > smallJournal && c.lines > 4*len(c.byID):
		return s.rewrite(c)
	default:
		return s.appendLines(lines, false)
	}
}

func (s *store) empty() error {
	if s.size == 0 {
		return nil
	}
	fd, err := open(int(s.dir.Fd()), journalName, unix.O_WRONLY|unix.O_NOFOLLOW)
	if err == nil {
		defer unix.Close(fd)
		err = ignoringEINTR(func() error { return unix.Ftruncate(fd, 0) })
	}
	if err != nil {
		return stateFailure("empty the journal", path.Join(s.path, journalName), err)
	}
	s.size, s.torn = 0, false
	return nil
}

// rewrite replaces the journal by one of the live records alone.
func (s *store) rewrite(c *contents) error {
	where := path.Join(s.path, newJournal)
	fd, err := openOwn(int(s.dir.Fd()), newJournal, unix.O_WRONLY|unix.O_TRUNC)
	if err != nil {
		return stateFailure("make a shorter journal", where, err)
	}
	f := os.NewFile(uintptr(fd), where)
	defer f.Close()
	var text strings.Builder
	for _, r := range c.live() {
		text.WriteString(r.makeLine())
		if r.made != nil {
			text.WriteString(r.madeLine())
		}
	}
	if _, err := f.WriteString(text.String()); err != nil {
		return stateFailure("write a shorter journal", where, err)
	}
	if err := f.Sync(); err != nil {
		return stateFailure("sync a shorter journal", where, err)
	}
	crash("rewritten")
	dir := int(s.dir.Fd())
	if err := ignoringEINTR(func() error { return unix.Renameat(dir, newJournal, dir, journalName) }); err != nil {
		return stateFailure("replace the journal", where, err)
	}
	s.size, s.torn = int64(text.Len()), false
	if err := s.dir.Sync(); err != nil {
		return stateFailure("sync the state directory", s.path, err)
	}
	return nil
}
