package bpf

import (
	"slices"
	"strings"
	"sync"
)

// maxHistory is how many changes of a sandbox are kept: the calls that wait are about the newest of them.
const maxHistory = 8192

// History is what the processes of a sandbox have changed about names, in the order in which their calls returned, from when
// its tracing began. A call that was refused is told a moment later; where its path led when it was refused follows from what
// is there now and what has changed since. Safe for concurrent use; nil is one in which nothing happened.
type History struct {
	settle  func() // takes what has been written by now out of the kernel's buffer
	askGaps func() // has noteGaps called with what the kernel says; both nil in one that nothing is added to

	mu     sync.Mutex
	ring   []Change // the change n at n % maxHistory
	count  uint64
	gaps   uint32
	byName map[string][]uint64 // the places of changes by the last names of their paths, unknown ones by ""
}

// Settle has everything in the history that happened by now, and gives its end. It waits for nothing but other readers of the
// kernel's buffer.
func (h *History) Settle() (end uint64) {
	if h == nil {
		return 0
	}
	if h.settle != nil {
		h.settle()
	}
	return h.end()
}

// Known tells whether all that happened from a place on is known. It asks the kernel.
func (h *History) Known(since uint64) bool {
	if h == nil {
		return true
	}
	if h.askGaps != nil {
		h.askGaps()
	}
	place, _ := h.Next(nil, since)
	return place == h.end()
}

// Next is the first change, from a place on, that is unknown or whose paths end in one of some names, and its place; that is
// the end where there is none.
func (h *History) Next(names []string, from uint64) (place uint64, c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first := h.count - uint64(len(h.ring)); from < first {
		return from, c // forgotten
	}
	next := h.count
	h.each(names, func(places []uint64) {
		if i, _ := slices.BinarySearch(places, from); i < len(places) {
			next = min(next, places[i])
		}
	})
	if next == h.count {
		return next, c
	}
	return next, h.ring[next%maxHistory]
}

// Last is the place of the last such change before a place; ok is false where there is none since the beginning.
func (h *History) Last(names []string, before uint64) (place uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(names, func(places []uint64) {
		if i, _ := slices.BinarySearch(places, before); i > 0 && (!ok || places[i-1] > place) {
			place, ok = places[i-1], true
		}
	})
	if first := h.count - uint64(len(h.ring)); !ok && first > 0 && before > 0 {
		return min(first, before) - 1, true // forgotten
	}
	return place, ok
}

// each calls use with the places of names, and with those of what is unknown. The caller holds mu.
func (h *History) each(names []string, use func(places []uint64)) {
	use(h.byName[""])
	for _, name := range names {
		if places := h.byName[name]; name != "" && len(places) > 0 {
			use(places)
		}
	}
}

// LastName is the name that a path ends in; empty where it ends in none, as in "..".
func (p TracedPath) LastName() string {
	text := p.Text
	if text == "" {
		text = p.Dir
	}
	text = strings.TrimRight(text, "/")
	if text = text[strings.LastIndexByte(text, '/')+1:]; text == "." || text == ".." {
		return ""
	}
	return text
}

// names are those by which a change is found.
func (c *Change) names() (list []string) {
	if c.Kind == ChangeUnknown {
		return []string{""}
	}
	old, made := c.Old.LastName(), c.New.LastName()
	if old != "" {
		list = append(list, old)
	}
	if made != "" && made != old {
		list = append(list, made)
	}
	return list
}

// At is the change at a place before the end. It is ChangeUnknown where that is forgotten or was lost.
func (h *History) At(place uint64) Change {
	h.mu.Lock()
	defer h.mu.Unlock()
	if place >= h.count || h.count-place > uint64(len(h.ring)) {
		return Change{}
	}
	return h.ring[place%maxHistory]
}

func (h *History) end() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

func (h *History) add(c Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.put(c)
}

// put adds a change. The caller holds mu.
func (h *History) put(c Change) {
	if h.byName == nil {
		h.byName = map[string][]uint64{}
	}
	if len(h.ring) < maxHistory {
		h.ring = append(h.ring, c)
	} else {
		old := &h.ring[h.count%maxHistory]
		for _, name := range old.names() { // it is the oldest of each
			if places := h.byName[name][1:]; len(places) > 0 {
				h.byName[name] = places
			} else {
				delete(h.byName, name)
			}
		}
		*old = c
	}
	for _, name := range c.names() {
		h.byName[name] = append(h.byName[name], h.count)
	}
	h.count++
}

// noteGaps notes how many changes found no room in the kernel's buffer so far.
func (h *History) noteGaps(total uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if int32(total-h.gaps) > 0 { // records of several processors come in any order
		h.gaps = total
		h.put(Change{})
	}
}
