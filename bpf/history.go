package bpf

import "sync"

// maxHistory is how many changes of a sandbox are kept: the calls that wait are about the newest of them.
const maxHistory = 8192

// History is what the processes of a sandbox have changed about names, in the order in which their calls returned, from when
// its tracing began. A call that was refused is told a moment later; where its path led when it was refused follows from what
// is there now and what has changed since. Safe for concurrent use; nil is one in which nothing happened.
type History struct {
	settle  func() // takes what has been written by now out of the kernel's buffer
	askGaps func() // has noteGaps called with what the kernel says; both nil in one that nothing is added to

	mu    sync.Mutex
	ring  []Change // the change n at n % maxHistory
	count uint64
	gaps  uint32
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
	for at := since; at < h.end(); at++ {
		if h.At(at).Kind == ChangeUnknown {
			return false
		}
	}
	return true
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
	if len(h.ring) < maxHistory {
		h.ring = append(h.ring, c)
	} else {
		h.ring[h.count%maxHistory] = c
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
