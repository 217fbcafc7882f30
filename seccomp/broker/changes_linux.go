package broker

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

// changes tells how long what was read of a thread holds. Reading it takes longer than anything else that this process
// does for a call, and nothing but a few calls can change it: the filter puts those to the listener too (Config.Watched).
// They are let go on, since nothing is judged, and so take effect some time after they were received, before the thread
// makes its next call. Each of the two ends a generation; what was read in an earlier one holds no more.
//
// Two ways remain in which something changes without a call of the thread itself. Its umask can be changed by whoever
// shares its file system attributes (clone(2), CLONE_FS): as long as the effect of such a change is not certain, nothing
// is kept that it could be about. And a thread that executes a program takes the number of its process's first one
// (execve(2)): of a process whose threads have parted company, nothing is kept under that number.
type changes struct {
	mu         sync.Mutex
	generation atomic.Uint64 // changed under mu
	pending    atomic.Int32  // len(changing)
	changing   map[int]int   // thread -> process
	parted     map[int]bool  // processes whose threads may differ in their rights or umasks
	blind      bool          // there are too many to remember: nothing is kept any more
}

// maxChanging is how many live threads may have made no call after such a change, and how many live processes have parted.
const maxChanging = 1024

// now is the generation of what is read from here on, never 0.
func (ch *changes) now() uint64 { return ch.generation.Load() + 1 }

// settled says that a thread makes a call, so that any change of its own has taken effect.
func (ch *changes) settled(tid int) {
	if ch.pending.Load() == 0 {
		return
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if _, was := ch.changing[tid]; was {
		ch.forget(tid)
	}
}

// forget ends the change of a thread. ch.mu is held.
func (ch *changes) forget(tid int) {
	delete(ch.changing, tid)
	ch.pending.Store(int32(len(ch.changing)))
	ch.generation.Add(1)
}

// begin says that a thread of a process is about to change; parts that its process's threads may then differ.
func (ch *changes) begin(tid, process int, parts bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.generation.Add(1)
	if len(ch.changing) >= maxChanging || len(ch.parted) >= maxChanging {
		ch.prune()
	}
	if ch.changing == nil {
		ch.changing, ch.parted = map[int]int{}, map[int]bool{}
	}
	ch.changing[tid] = process
	ch.pending.Store(int32(len(ch.changing)))
	if parts {
		ch.parted[process] = true
	}
}

// prune drops those that have ended. Where that makes no room, nothing is kept any more. ch.mu is held.
func (ch *changes) prune() {
	for tid, process := range ch.changing {
		if ended(process, tid) {
			ch.forget(tid)
		}
	}
	for process := range ch.parted {
		if ended(process, process) {
			delete(ch.parted, process)
		}
	}
	if len(ch.changing) >= maxChanging || len(ch.parted) >= maxChanging {
		ch.blind, ch.changing, ch.parted = true, map[int]int{}, map[int]bool{}
		ch.pending.Store(0)
	}
}

// ended tells whether a thread of a process is gone.
func ended(process, tid int) bool { return errors.Is(unix.Tgkill(process, tid, 0), unix.ESRCH) }

// holds tells whether what was kept of a generation still holds.
func (ch *changes) holds(generation uint64) bool { return generation == ch.now() }

// mayKeep tells whether what was read of a thread in a generation can be kept.
func (ch *changes) mayKeep(generation uint64, tid, process int) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.blind || generation != ch.now() || tid == process && ch.parted[process] {
		return false
	}
	for other, of := range ch.changing {
		switch {
		case ended(of, other):
			ch.forget(other) // its change may have come after the reading
			return false
		case of == process, shareUmask(tid, other):
			return false
		}
	}
	return true
}

// kcmpFS is KCMP_FS of kcmp(2): file system information, of which the umask is a part.
const kcmpFS = 3

// shareUmask tells whether a change of one thread's umask may be one of the other's.
func shareUmask(a, b int) bool {
	order, _, errno := syscall.RawSyscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFS, 0, 0, 0)
	return errno != 0 || order == 0
}

// change performs a call that changes something about its thread. umask says that it is umask(2), which changes nothing
// else.
func (c *call) change(umask bool) outcome {
	if errno := c.readFreshStatus(); errno != 0 {
		return failed(errno)
	}
	s := &c.status
	parts := s.threads > 1
	if parts && umask {
		parts = c.umasksDiffer()
	}
	if !c.waits() {
		return failed(unix.EINTR)
	}
	c.s.changes.begin(c.tid, s.tgid, parts)
	return outcome{proceed: true}
}

// umasksDiffer tells whether a thread of the caller's process has another umask than the rest, or may have.
func (c *call) umasksDiffer() (differ bool) {
	err := c.onThread(func(t *thread) error {
		return readNames(t.dir, "task", func(name string) {
			tid, err := strconv.Atoi(name)
			differ = differ || err != nil || tid != c.tid && !shareUmask(c.tid, tid)
		})
	})
	return differ || err != nil
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
	if alive != nil || c.thread.asOf == 0 || !c.s.changes.holds(c.thread.asOf) {
		return false
	}
	if c.s.config.Rights != nil && capabilitiesOf(c.tid) != c.thread.known.effective {
		return false
	}
	c.status = c.thread.known
	return true
}

// capabilitiesOf is a thread's effective set (capget(2)). capset(2) is no call that the filter tells of, since pid 1 of
// every sandbox of root makes one at the start: asking costs less than that. A failure gives a set that nobody has.
func capabilitiesOf(tid int) uint64 {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(tid)}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return ^uint64(0)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
}

// remember keeps the caller's status for later calls, unless execve(2) could change it without a further call.
func (c *call) remember(generation uint64) {
	s, own := &c.status, c.s.config.Rights
	if !c.s.config.Watched || own != nil && !s.steady(own.Effective) || !c.s.changes.mayKeep(generation, c.tid, s.tgid) {
		return
	}
	c.thread.known, c.thread.asOf = *s, generation
}

// steady tells whether the thread keeps its rights when it executes another program (capabilities(7)): it is root with all
// that root has here, or somebody with no capability, not even one that an ambient set could raise.
func (s *status) steady(all ns.Capabilities) bool {
	for _, ids := range [][4]uint32{s.uids, s.gids} {
		if slices.Min(ids[:]) != slices.Max(ids[:]) {
			return false
		}
	}
	return s.uids[0] == 0 && ns.Capabilities(s.effective) == all || s.uids[0] != 0 && s.effective|s.permitted == 0
}
