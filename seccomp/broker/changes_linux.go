package broker

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// changes tells how long what was read of a thread holds. Reading it takes longer than anything else that this process
// does for a call, and nothing but a few calls can change it: the filter puts those to the listener too (Config.Watched).
// They are let go on, since nothing is judged, and so take effect some time after they were received. Until the thread
// makes its next call, nothing about the threads of its process is kept.
type changes struct {
	mu         sync.Mutex
	generation uint64
	changing   map[int]int // thread -> process
}

// maxChanging is how many threads may be remembered that made no call after such a change, most of which have ended.
const maxChanging = 1024

// now is the generation of what is read from here on, never 0.
func (ch *changes) now() uint64 {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.generation + 1
}

// settled says that a thread makes a call, so that any change of its own has taken effect.
func (ch *changes) settled(tid int) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if _, was := ch.changing[tid]; was {
		delete(ch.changing, tid)
		ch.generation++
	}
}

// begin says that a thread of a process is about to change.
func (ch *changes) begin(tid, process int) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.generation++
	if ch.changing == nil || len(ch.changing) >= maxChanging {
		// What was kept is of an earlier generation. All that can be late now is a umask that a forgotten thread changes,
		// in other threads of its process and until one of them makes a further change.
		ch.changing = map[int]int{}
	}
	ch.changing[tid] = process
}

// holds tells whether what was read in a generation still holds for the threads of a process.
func (ch *changes) holds(generation uint64, process int) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if generation != ch.generation+1 {
		return false
	}
	for _, p := range ch.changing {
		if p == process {
			return false
		}
	}
	return true
}

// change performs a call that changes something about its thread.
func (c *call) change() outcome {
	if errno := c.readStatus(); errno != 0 {
		return failed(errno)
	}
	if !c.waits() {
		return failed(unix.EINTR)
	}
	c.s.changes.begin(c.tid, c.status.tgid)
	return outcome{proceed: true}
}

// remembered fills in the caller's status from an earlier call, if it still holds.
func (c *call) remembered() bool {
	if !c.s.config.Watched {
		return false
	}
	alive := c.onThread(func(t *thread) error {
		if t.checked {
			return nil
		}
		return unix.Faccessat(t.dir, "fd", unix.F_OK, 0)
	})
	if alive != nil || c.thread.asOf == 0 || !c.s.changes.holds(c.thread.asOf, c.thread.known.tgid) {
		return false
	}
	c.status = c.thread.known
	return true
}

// remember keeps the caller's status for later calls, unless execve(2) could change it without a further call.
func (c *call) remember(generation uint64) {
	s, own := &c.status, c.s.config.Rights
	if !c.s.config.Watched || own != nil && !s.steady(own.Effective) || !c.s.changes.holds(generation, s.tgid) {
		return
	}
	c.thread.known, c.thread.asOf = *s, generation
}

// steady tells whether the thread keeps its rights when it executes another program (capabilities(7)): it is root with all
// that root has here, or somebody with no capability.
func (s *status) steady(all ns.Capabilities) bool {
	for _, ids := range [][4]uint32{s.uids, s.gids} {
		if slices.Min(ids[:]) != slices.Max(ids[:]) {
			return false
		}
	}
	return s.uids[0] == 0 && ns.Capabilities(s.effective) == all || s.uids[0] != 0 && s.effective == 0
}
