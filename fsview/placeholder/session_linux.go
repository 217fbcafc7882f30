package placeholder

import (
	"errors"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Session is a set of names that are held for one sandbox. It is safe for use by several goroutines.
type Session struct {
	where string // the state directory

	mu       sync.Mutex
	released bool
	st       *store // nil until something has to be looked up
	held     []*record
	own      map[uint64]bool // the numbers of held
	// parents are O_PATH descriptors of directories that hold placeholders: they lead there even when a directory on the
	// way was renamed meanwhile.
	parents map[fileID]int
}

// maxParents bounds the descriptors that a session keeps. Beyond it the recorded path leads to the directory.
const maxParents = 64

// Hold makes a placeholder for each name that does not exist, or shares the one that another session made, and holds them
// until [Session.Release]. A name that exists and is no placeholder is left as it is. state is the absolute path of the
// state directory (see DefaultState), which is made when it is missing.
//
// It also removes what dead sessions left. It either holds everything or returns an error and leaves nothing behind that
// the next start does not remove: an *Error, with ErrState, ErrBusy, ErrForeign, ErrChanged, ErrObstructed or ErrPath
// where one of these is the reason (FS-30, FS-54).
func Hold(state string, names []Name) (*Session, error) {
	list, err := sortedNames(names)
	if err != nil {
		return nil, err
	}
	if err := checkPath(state); err != nil {
		return nil, err
	}
	s := &Session{where: state, own: map[uint64]bool{}, parents: map[fileID]int{}}
	if len(list) == 0 {
		return s, nil
	}
	if s.st, err = openState(state, true); err != nil {
		return nil, err
	}
	if err := s.hold(list); err != nil {
		// What was made is in the journal. A failure to remove it is the next start's.
		_ = s.Release()
		return nil, err
	}
	return s, nil
}

func (s *Session) hold(names []Name) error {
	c, err := s.st.begin()
	if err != nil {
		return err
	}
	defer s.st.end()
	// Another session's leftovers that cannot be removed stay in the journal and are no reason not to start.
	_ = s.st.sweep(c, c.live(), nil)
	todo, err := s.choose(c, names)
	if err != nil || len(todo) == 0 {
		return err
	}
	return s.make(todo)
}

// Placeholders are the objects that have to be denied in place of the names, in path order.
func (s *Session) Placeholders() []Placeholder {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Placeholder, 0, len(s.held))
	for _, r := range s.held {
		if !r.lost {
			list = append(list, Placeholder{Path: r.path(), Dir: r.dir})
		}
	}
	slices.SortFunc(list, byPath)
	return list
}

// File is the descriptor whose open file description owns the session's locks, or nil when nothing is held. It stays
// the session's; a process that was forked with a copy keeps the locks for as long as it has the copy open.
func (s *Session) File() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == nil {
		return nil
	}
	return s.st.lock
}

// Volatile reports that the state directory is in memory, as it is in a sandbox in a sandbox: when the machine or the
// outer sandbox stops before [Session.Release], nothing remembers the placeholders. It is worth a warning.
func (s *Session) Volatile() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.released && s.st != nil && s.st.volatile()
}

// Adopt makes the session rely on those placeholders of other sessions that are among paths, all that the final plan
// denies: absolute locations. Without it the end of the other session would lift the deny. An object that is no
// placeholder is passed over. ErrChanged: a path is gone, so the plan has to be made again; ErrForeign: a placeholder that
// cannot be shared.
func (s *Session) Adopt(paths []string) error {
	for _, p := range paths {
		if p != "/" {
			if err := checkPath(p); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return &Error{Op: "share placeholders by", Path: s.where, Err: ErrReleased,
			Advice: "this is a mistake of the caller; report it"}
	}
	c, done, err := s.beginAdopt()
	if err != nil {
		return err
	}
	defer done()
	known := s.index(c)
	for _, p := range paths {
		if err := s.adoptPath(known, p); err != nil {
			return err
		}
	}
	return nil
}

// beginAdopt reads the journal, where there is one.
func (s *Session) beginAdopt() (*contents, func(), error) {
	if s.st == nil {
		st, err := openState(s.where, false)
		if isAbsent(err) {
			return parse(nil), func() {}, nil
		}
		if err != nil {
			return nil, nil, err
		}
		s.st = st
	}
	c, err := s.st.begin()
	return c, s.st.end, err
}

func (s *Session) adoptPath(known *index, p string) error {
	if p == "/" {
		return nil
	}
	dir, name := split(p)
	at, err := openDir(dir)
	if err == nil {
		defer unix.Close(at)
		_, err = s.find(known, at, p, name)
	}
	if isAbsent(err) {
		return &Error{Op: "deny", Path: p, Err: ErrChanged, Advice: "it was removed while srt started; start again"}
	}
	if _, ok := errors.AsType[*Error](err); err != nil && !ok {
		return &Error{Op: "look for a placeholder at", Path: p, Err: err, Advice: "deny the directory around it"}
	}
	return err
}

// Release ends the session: each placeholder that no other session relies on, and that is still what was made, is
// removed. What cannot be removed stays in the journal for the next start and is an error. A second call does nothing.
func (s *Session) Release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil
	}
	s.released = true
	defer s.close()
	if len(s.held) == 0 {
		return nil
	}
	c, err := s.st.begin()
	if err != nil {
		return err
	}
	defer s.st.end()
	mine := make([]*record, 0, len(s.held))
	for _, r := range s.held {
		// The journal's word counts: the record may have been forgotten by now.
		if now := c.byID[r.id]; now != nil && now.mark == r.mark {
			mine = append(mine, now)
		}
	}
	crash("releasing")
	return s.st.sweep(c, mine, s.parents)
}

func (s *Session) close() {
	for _, fd := range s.parents {
		unix.Close(fd)
	}
	s.parents = nil
	if s.st != nil {
		s.st.unlockAll()
		s.st.close()
	}
}
