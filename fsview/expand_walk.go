package fsview

import (
	"io/fs"
	"slices"
	"sort"
	"sync"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
)

// active is what is left to match of a query beneath a directory.
type active struct {
	query *query
	left  glob.States
}

// walkDir is a directory that may hold matches.
type walkDir struct {
	path string // a location
	left []active
	via  *passage // the links that led there; nil when there were none
}

// passage is a symbolic link that a walk went through (FS-18).
type passage struct {
	held  []string // what has to stay for the link to lead where it does (FS-42)
	outer *passage // the link before it
}

// hold keeps the links of a way in place for the sake of a match that they lead to.
func (p *passage) hold(b *builder, why *rule) {
	for ; p != nil; p = p.outer {
		b.hold(location{held: p.held}, why)
	}
}

// match is one object that a query matches.
type match struct {
	path  string
	query *query
	via   *passage
}

// linkFound is a symbolic link at which matching may go on.
type linkFound struct {
	dir, name string
	matches   []*query
	left      []active
	via       *passage
}

// unlisted is a directory that could not be listed, or an object that may be one.
type unlisted struct {
	path string
	err  error
	left []active
	via  *passage
}

// harvest is what one walk found. Each list is in path order.
type harvest struct {
	matches  []match
	links    []linkFound
	unlisted []unlisted
}

// typedLister is a Tree that can name an entry whose type is not reported and cannot be looked up.
type typedLister interface {
	// ListTypes is ReadDir, but the Type of such an entry is unknownType, and listing does not fail for its sake.
	ListTypes(path string) ([]DirEntry, error)
}

// unknownType is no type of an object.
const unknownType = fs.ModeDir | fs.ModeIrregular

// walk lists directories on the lookout for matches. It asks for listings alone, from two goroutines when there are
// enough directories to list: what the matches are is asked afterwards, from one.
type walk struct {
	list   func(string) ([]DirEntry, error)
	follow bool // symbolic links are reported as such; else they are objects like others
	seen   map[string][]active

	mu    sync.Mutex
	ready sync.Cond // signalled when the queue grows, or nobody works any more
	queue []walkDir
	busy  int
}

func newWalk(t Tree, follow bool) *walk {
	w := &walk{list: t.ReadDir, follow: follow}
	if typed, ok := t.(typedLister); ok {
		w.list = typed.ListTypes
	}
	w.ready.L = &w.mu
	return w
}

// drain walks from each of these directories to the end.
func (w *walk) drain(queue []walkDir) *harvest {
	w.queue = queue
	found := &harvest{}
	for len(w.queue) > 0 && len(w.queue) < worthwhile { // alone, as long as there is little
		d := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		w.queue = append(w.queue, w.visit(d, found)...)
	}
	if len(w.queue) > 0 {
		second := &harvest{}
		var done sync.WaitGroup
		done.Go(func() { w.work(second) })
		w.work(found)
		done.Wait()
		found.matches = append(found.matches, second.matches...)
		found.links = append(found.links, second.links...)
		found.unlisted = append(found.unlisted, second.unlisted...)
	}
	found.sort()
	return found
}

// work visits directories until nobody has any.
func (w *walk) work(found *harvest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.queue) == 0 {
			if w.busy == 0 {
				w.ready.Broadcast()
				return
			}
			w.ready.Wait()
		}
		d := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		w.busy++
		w.mu.Unlock()
		below := w.visit(d, found)
		w.mu.Lock()
		w.busy--
		w.queue = append(w.queue, below...)
		if len(below) > 0 || w.busy == 0 {
			w.ready.Signal()
		}
	}
}

// visit lists one directory, and gives the directories in it beneath which there may be matches.
func (w *walk) visit(d walkDir, found *harvest) (below []walkDir) {
	if d.via != nil {
		if d.left = w.unseen(d.path, d.left); len(d.left) == 0 {
			return nil
		}
	}
	entries, err := again(d.path, w.list)
	switch {
	case absent(err):
		return nil // removed since it was found
	case err != nil:
		found.unlisted = append(found.unlisted, unlisted{d.path, err, d.left, d.via})
		return nil
	}
	for _, a := range d.left {
		if a.query.deep && len(entries) > 0 && a.left.Matches() {
			found.matches = append(found.matches, match{d.path, a.query, d.via})
		}
	}
	var left []active
	var matches []*query
	for i := range entries {
		e := &entries[i]
		if d.path == "/" && (e.Name == "proc" || e.Name == "dev" || e.Name == "sys") {
			continue // the sandbox's own, as under a deny of `/` (FS-22, FS-47)
		}
		left, matches = left[:0], matches[:0]
		for _, a := range d.left {
			next, isMatch := a.left.Step(e.Name)
			if isMatch {
				matches = append(matches, a.query)
			}
			if !next.Empty() {
				left = append(left, active{a.query, next})
			}
		}
		if len(left)+len(matches) == 0 {
			continue
		}
		if at := w.entry(&d, e, left, matches, found); at != "" {
			if slices.Equal(left, d.left) { // usual beneath `**`
				below = append(below, walkDir{at, d.left, d.via})
			} else {
				below = append(below, walkDir{at, slices.Clone(left), d.via})
			}
		}
	}
	return below
}

// entry reports what an entry is, and gives its path when it is a directory to be visited.
func (w *walk) entry(d *walkDir, e *DirEntry, left []active, matches []*query, found *harvest) (descend string) {
	switch {
	case e.Type == unknownType:
		left = slices.Clone(left)
		for _, q := range matches {
			left = append(left, active{query: q})
		}
		found.unlisted = append(found.unlisted, unlisted{join(d.path, e.Name), errUnknownType, left, d.via})
		return ""
	case e.Type == fs.ModeSymlink && w.follow:
		found.links = append(found.links, linkFound{d.path, e.Name, slices.Clone(matches), slices.Clone(left), d.via})
		return ""
	case len(matches) == 0 && e.Type != fs.ModeDir:
		return ""
	}
	at := join(d.path, e.Name)
	for _, q := range matches {
		if e.Type != fs.ModeSymlink || q.list != listAllowWrite { // no link on the way (FS-55)
			found.matches = append(found.matches, match{at, q, d.via})
		}
	}
	if e.Type != fs.ModeDir || len(left) == 0 {
		return ""
	}
	return at
}

// unseen gives what has not been looked for yet in a directory that links lead to, so that links which lead in circles
// come to an end.
func (w *walk) unseen(dir string, left []active) []active {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = make(map[string][]active)
	}
	var fresh []active
	for _, a := range left {
		known := slices.ContainsFunc(w.seen[dir], func(b active) bool { return a.query == b.query && a.left.SubsetOf(b.left) })
		if !known {
			fresh = append(fresh, a)
			w.seen[dir] = append(w.seen[dir], a)
		}
	}
	return fresh
}

func (h *harvest) sort() {
	sort.SliceStable(h.matches, func(i, j int) bool { return h.matches[i].path < h.matches[j].path })
	sort.SliceStable(h.unlisted, func(i, j int) bool { return h.unlisted[i].path < h.unlisted[j].path })
	sort.SliceStable(h.links, func(i, j int) bool {
		a, b := &h.links[i], &h.links[j]
		if a.dir != b.dir {
			return a.dir < b.dir
		}
		return a.name < b.name
	})
}
