package fsview

import (
	"io/fs"
	"sync/atomic"
)

// The mandatory search spends its time in system calls that list directories. On more than one processor the second half
// of a start's directories is listed by a second goroutine, while the first half is listed and judged.

// dirListing is a directory that was read, with those beneath it that were read too.
type dirListing struct {
	entries []DirEntry
	err     error
	below   []*dirListing // by index of entries; nil, or nil for one, where nothing was read
}

func (s *search) read(dir string) *dirListing {
	l := &dirListing{}
	l.entries, l.err = again(dir, s.b.res.tree.ReadDir)
	return l
}

// readDeep reads dir, level directories beneath a start, and all beneath it that the search descends into.
func (s *search) readDeep(dir string, level int) *dirListing {
	l := s.read(dir)
	if l.err != nil {
		return l
	}
	l.below = make([]*dirListing, len(l.entries))
	for i := range l.entries {
		if e := &l.entries[i]; s.descends(e, level) && e.Name[0] != '.' {
			l.below[i] = s.readDeep(join(dir, e.Name), level+1)
		}
	}
	return l
}

// descends reports whether the search goes into a directory's entry, names that it knows aside.
func (s *search) descends(e *DirEntry, level int) bool {
	return e.Type == fs.ModeDir && level+1 <= s.depth-1 && e.Name != "node_modules"
}

// readAhead is a directory whose entries are read from the end by a second goroutine. Each entry is claimed by one side:
// the searching one takes a beginning of the list, the other the rest.
type readAhead struct {
	below   []*dirListing
	claimed []atomic.Bool
	done    chan struct{} // closed when the second goroutine has ended; nil if there is none
}

// worthwhile is how many directories make a second goroutine pay.
const worthwhile = 4

// readAhead starts reading beneath dir, if that is a start and holds enough. What was read before is used as it is.
func (s *search) readAhead(dir string, level int, have *dirListing) *readAhead {
	r := &readAhead{below: have.below}
	if level > 0 || r.below != nil || dir == "/" {
		return r
	}
	count := 0
	for i := range have.entries {
		if s.descends(&have.entries[i], level) {
			count++
		}
	}
	if count < worthwhile {
		return r
	}
	r.below = make([]*dirListing, len(have.entries))
	r.claimed = make([]atomic.Bool, len(have.entries))
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		for i := len(have.entries) - 1; i >= 0 && !r.claimed[i].Swap(true); i-- {
			if e := &have.entries[i]; s.descends(e, level) && e.Name[0] != '.' {
				r.below[i] = s.readDeep(join(dir, e.Name), level+1)
			}
		}
	}()
	return r
}

// take gives what was read of entry i, nil if the caller has to read it.
func (r *readAhead) take(i int) *dirListing {
	switch {
	case r.below == nil:
		return nil
	case r.done == nil:
		return r.below[i]
	case !r.claimed[i].Swap(true):
		return nil
	}
	<-r.done
	return r.below[i]
}

// wait ends the reading ahead. Entries that were not taken are not read any more, but for the one being read.
func (r *readAhead) wait() {
	if r.done == nil {
		return
	}
	for i := range r.claimed {
		r.claimed[i].Store(true)
	}
	<-r.done
}
