package ns

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A copy of a Go program has no use for the program's heap: all that a forked process touches is in memory set aside for it, its
// stack included. So the heap is left out of the copy (MADV_DONTFORK, madvise(2)). The kernel then neither copies its page tables
// nor makes every page of it fault at the host side's next write, which is most of what forking a running program costs, and
// grows with it. It is also why nothing that the program keeps there is in a sandbox's pid 1.
//
// That is a matter of cost: where the heap is not found, all of it is copied. What is left out for its content is in words_linux.go.

// heap is this program's.
var heap goHeap

// goHeap finds the heap and leaves it out of forks. It is safe for concurrent use.
type goHeap struct {
	mu         sync.Mutex
	forks      int // under way
	start, end uintptr
	searched   bool
	sample     *uintptr // something in it
	records    records
	words      words
}

// arenaSize is what the runtime reserves for the heap at a time, at a multiple of it, one upon another and never given back
// (heapArenaBytes in the runtime's malloc.go).
const arenaSize = 64 << 20

// apart is how far the heap must be from where the kernel puts mappings, so that no other mapping borders on it: the runtime
// asks for a place far away from these where the address space is large enough.
const apart = 1 << 40

// leaveOut begins a fork. place is an address that the kernel has chosen for a mapping, keep is what the process needs.
func (h *goHeap) leaveOut(place uintptr, keep ...[]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.search(place)
	if h.forks++; h.forks == 1 {
		h.records.renew()
		h.words.find()
		h.advise(unix.MADV_DONTFORK)
	}
	for _, mem := range keep { // it may have taken the place of something that was left out before
		start := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
		_, _ = sys(unix.SYS_MADVISE, start, uintptr(len(mem)), unix.MADV_DOFORK, 0, 0, 0)
	}
}

// takeIn ends a fork. Whoever else forks then finds all as it was.
func (h *goHeap) takeIn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.forks--; h.forks == 0 {
		h.advise(unix.MADV_DOFORK)
	}
}

func (h *goHeap) advise(advice uintptr) {
	// A refusal costs time alone.
	if h.start < h.end {
		_, _ = sys(unix.SYS_MADVISE, h.start, h.end-h.start, advice, 0, 0, 0)
	}
	for _, r := range append(h.records.regions, h.words.region) {
		_, _ = sys(unix.SYS_MADVISE, r.start, r.end-r.start, advice, 0, 0, 0)
	}
}

// search finds the heap the first time, and what has been added to it since.
func (h *goHeap) search(place uintptr) {
	if !h.searched {
		h.searched = true
		h.sample = new(uintptr)
		h.start = fixed(h.sample).value &^ (arenaSize - 1)
		h.end = h.start
		if max(place, h.start)-min(place, h.start) < apart {
			return
		}
		for h.start > arenaSize && mapped(h.start-arenaSize) {
			h.start -= arenaSize
		}
		h.end += arenaSize
	}
	for h.start < h.end && mapped(h.end) {
		h.end += arenaSize
	}
}

// mapped tells whether there is memory in all of an arena. What msync(2) does to anonymous memory beside is nothing.
func mapped(arena uintptr) bool {
	_, errno := sys(unix.SYS_MSYNC, arena, arenaSize, unix.MS_ASYNC, 0, 0, 0)
	return errno == 0
}
