package placeholder

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// index finds the record behind an object.
type index struct {
	object map[fileID]*record
	mark   map[string]*record
}

func (s *Session) index(c *contents) *index {
	k := &index{object: make(map[fileID]*record, len(c.byID)), mark: make(map[string]*record, len(c.byID))}
	for _, r := range c.live() {
		k.mark[r.mark] = r
		if r.made != nil && s.st.sameBoot(r) {
			k.object[r.made.id] = r
		}
	}
	return k
}

// find reports that a placeholder lies at name in the directory at, and takes hold of it. path names it in errors.
func (s *Session) find(known *index, at int, path, name string) (bool, error) {
	o, err := inspect(at, name)
	if isAbsent(err) {
		return false, err
	}
	if err != nil {
		return false, &Error{Op: "inspect", Path: path, Err: err, Advice: "make its directory searchable, or deny that"}
	}
	r := known.mark[o.mark]
	if r == nil {
		r = known.object[o.id]
	}
	switch {
	case r == nil && o.mark != "" && o.looks():
		return false, &Error{Op: "rely on", Path: path, Err: ErrForeign,
			Advice: "wait until the other srt has ended, or remove the empty file or directory if none is running"}
	case r == nil || !r.proves(o, s.st.sameBoot(r), atName):
		return false, nil
	}
	if r.dir {
		if empty, err := isEmpty(at, name); err != nil || !empty {
			return false, err
		}
	}
	return true, s.share(r)
}

// share takes hold of a record of the journal.
func (s *Session) share(r *record) error {
	if s.own[r.id] {
		return nil
	}
	if err := s.st.setLock(unix.F_RDLCK, r.id, 1); err != nil {
		return stateFailure("share a placeholder by a lock in", s.st.path, err)
	}
	s.keep(r)
	return nil
}

func (s *Session) keep(r *record) {
	s.own[r.id] = true
	s.held = append(s.held, r)
}

// choose takes hold of the placeholders that are there and returns records of those that have to be made, without
// numbers yet.
func (s *Session) choose(c *contents, names []Name) ([]*record, error) {
	for _, n := range names {
		if meaningful(n.Path) {
			return nil, &Error{Op: "hold", Path: n.Path, Err: ErrMeaning,
				Advice: "deny the directory around it, or take it out of the rules"}
		}
	}
	known := s.index(c)
	todo := map[string]*record{}
	var order []*record
	for _, n := range names {
		r, err := s.locate(known, n)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		if first := todo[r.path()]; first != nil {
			// One missing parent of several names.
			first.dir = first.dir || r.dir
			continue
		}
		todo[r.path()] = r
		order = append(order, r)
	}
	return order, nil
}

// locate finds the outermost missing part of a name. It is nil when nothing has to be made: a placeholder stands there
// already, or something else does.
func (s *Session) locate(known *index, n Name) (*record, error) {
	r := &record{dir: n.Dir}
	r.where, r.name = split(n.Path)
	fd, err := openDir(r.where)
	for isAbsent(err) && r.where != "/" {
		r.dir = true
		r.where, r.name = split(r.where)
		fd, err = openDir(r.where)
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		err = ErrObstructed
	}
	if err != nil {
		return nil, &Error{Op: "look for", Path: n.Path, Err: err,
			Advice: "deny the deepest directory of it that can be reached, or take it out of the rules"}
	}
	o, err := observe(fd)
	if err != nil {
		unix.Close(fd)
		return nil, &Error{Op: "look for", Path: n.Path, Err: err, Advice: "take it out of the rules"}
	}
	r.parent = o.id
	if !s.keepParent(o.id, fd) {
		defer unix.Close(fd)
	}
	// The directory may be a placeholder itself, and then stands for all beneath it.
	if dir, name := split(r.where); o.dir && r.where != "/" && o.looks() {
		if up, err := openDir(dir); err == nil {
			defer unix.Close(up)
			if found, err := s.find(known, up, r.where, name); err != nil || found {
				return nil, err
			}
		}
	}
	_, err = s.find(known, fd, r.path(), r.name)
	if isAbsent(err) {
		return r, nil
	}
	return nil, err
}

// keepParent takes over the descriptor of a directory, unless there are too many or it has one.
func (s *Session) keepParent(id fileID, fd int) bool {
	if _, ok := s.parents[id]; ok || len(s.parents) >= maxParents {
		return false
	}
	s.parents[id] = fd
	return true
}

// make makes the objects of new records: recorded, synced, made, described.
func (s *Session) make(todo []*record) error {
	if err := s.number(todo); err != nil {
		return err
	}
	lines := make([]string, len(todo))
	for i, r := range todo {
		lines[i] = r.makeLine()
	}
	crash("numbered")
	if err := s.st.appendLines(lines, true); err != nil {
		return err
	}
	crash("recorded")
	for _, r := range todo {
		s.keep(r)
	}
	var finished []string
	for _, r := range todo {
		made, err := s.makeOne(r)
		if err != nil {
			return errors.Join(err, s.st.appendLines(finished, false))
		}
		if made {
			finished = append(finished, r.madeLine())
		}
	}
	crash("made")
	return s.st.appendLines(finished, false)
}

// number gives new records consecutive numbers and locks them: one lock for all.
func (s *Session) number(todo []*record) error {
	var seed [8 + markLen/2]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return stateFailure("draw a number for", s.st.path, err)
	}
	// The numbers stay below maxID whatever is drawn.
	base := binary.NativeEndian.Uint64(seed[:8])>>3 | 1
	now, uid := time.Now().UnixNano(), uint32(os.Geteuid())
	for i, r := range todo {
		mark := seed[8:]
		r.id, r.time, r.uid, r.boot = base+uint64(i), now, uid, s.st.boot
		// The last four bytes count, so that each object has a mark of its own.
		binary.BigEndian.PutUint32(mark[len(mark)-4:], uint32(i)&math.MaxUint32)
		r.mark = hex.EncodeToString(mark)
	}
	if err := s.st.setLock(unix.F_RDLCK, base, uint64(len(todo))); err != nil {
		return stateFailure("lock new placeholders in", s.st.path, err)
	}
	return nil
}

// makeOne makes one object. It is false when something came to exist at the name meanwhile, which is then the plan's.
func (s *Session) makeOne(r *record) (bool, error) {
	at, err := s.st.reach(r, s.parents)
	if err != nil {
		return false, r.failure("reach the directory of", err)
	}
	defer at.close()
	fd, err := r.create(at.fd)
	if errors.Is(err, fs.ErrExist) {
		r.lost = true
		return false, nil
	}
	if err != nil {
		return false, r.failure("make", err)
	}
	defer unix.Close(fd)
	marked, err := r.setMark(fd)
	if err != nil {
		return false, r.failure("mark", err)
	}
	crash("marked")
	if err := r.write(fd); err != nil {
		return false, r.failure("write", err)
	}
	crash("written")
	if !marked {
		// Nothing but the journal will prove it once the sticky bit is gone.
		if err := r.describe(fd, false, false); err != nil {
			return false, r.failure("inspect", err)
		}
		if err := s.st.appendLines([]string{r.madeLine()}, true); err != nil {
			return false, err
		}
		crash("described")
	}
	if err := chmodPath(fd, r.finalMode()); err != nil {
		return false, r.failure("set the mode of", err)
	}
	if err := r.describe(fd, marked, true); err != nil {
		return false, r.failure("inspect", err)
	}
	crash("finished")
	return true, nil
}

func (r *record) failure(op string, err error) error {
	return &Error{Op: op + " the placeholder", Path: r.path(), Err: err,
		Advice: "it stands for a denied name that does not exist; make its directory writable, or deny the whole directory"}
}
