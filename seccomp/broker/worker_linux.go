package broker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// worker takes one call after another and sees each through to its answer.
type worker struct {
	server *Server
	wake   chan struct{} // it has been chosen to receive, or there is nothing more to do
	note   notify.Notification
	role   bool          // it is the receiver, unless pool.holder has been taken from it
	ready  bool          // a call can be received, as the receiver has just been told
	path   [pathMax]byte // what is being read

	mu   sync.Mutex
	hand Hand // nil until it is needed

	umask      uint32 // the hand's
	umaskKnown bool

	killed bool
}

// errHandKilled is the cause when the Server was closed in the middle of a call.
var errHandKilled = errors.New("srt is ending")

// run is the life of a worker, which begins as the receiver.
func (w *worker) run() {
	p := &w.server.pool
	defer p.wait.Done()
	defer w.dropHand()
	for {
		if err := w.receive(); err != nil {
			w.server.network.stop() // nobody waits for anything any more
			p.ended(w, err)
			return
		}
		p.taken(w)
		w.answer()
		if !p.next(w) {
			p.ended(w, nil)
			return
		}
	}
}

// receive takes the next call.
func (w *worker) receive() error {
	l, ready := w.server.config.Listener, w.ready
	w.ready = false
	if ready {
		return l.ReceiveNow(&w.note)
	}
	return l.Receive(&w.note)
}

// answer performs one call. Whatever happens on the way, the call is answered.
func (w *worker) answer() {
	c := &call{w: w, s: w.server, id: w.note.ID, tid: int(w.note.PID), args: w.note.Args, root: -1}
	defer c.end()
	defer func() {
		if cause := recover(); cause != nil {
			w.dropHand() // it may be in the middle of something
			c.respond(failed(c.broken(fmt.Errorf("srt made a mistake: %v", cause))))
		}
	}()
	c.respond(c.perform())
}

// getHand gives the worker's hand, a new one if there is none.
func (w *worker) getHand() (Hand, error) {
	if w.hand == nil { // only this goroutine sets it
		w.server.pool.handOn(w, true)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed {
		return nil, errHandKilled
	}
	if w.hand == nil {
		h, err := w.server.config.NewHand()
		if err != nil {
			return nil, fmt.Errorf("start a hand: %w", err)
		}
		w.hand = h
	}
	return w.hand, nil
}

// dropHand ends the worker's hand.
func (w *worker) dropHand() {
	w.mu.Lock()
	h := w.hand
	w.hand, w.umaskKnown = nil, false
	w.mu.Unlock()
	if h != nil {
		_ = h.Close() // it is gone either way
	}
}

// kill ends the call that is under way, for good.
func (w *worker) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed = true
	if w.hand != nil {
		_ = w.hand.Kill() // one that has ended needs no killing
	}
}

// outcome is the answer to a call: its result, or errno. sent means that the hand has given it already, proceed that the
// kernel is to perform the call itself.
type outcome struct {
	value         int64
	errno         syscall.Errno
	sent, proceed bool
}

func failed(errno syscall.Errno) outcome { return outcome{errno: errno} }

// call is one call of a thread in the sandbox.
type call struct {
	w    *worker
	s    *Server
	id   uint64
	tid  int
	args [6]uint64
	name string // of the system call, for reports
	text string // a path of it, for reports

	inode uint64 // of the caller's socket, if that was made here
	bound bool   // it is of a family that is only ever bound

	thread  *thread // nil until needed
	status  status
	known   bool   // status has been read
	root    int    // descriptor of its own root directory, -1 if it has the sandbox's
	files   []held // closed at the end
	links   int    // symbolic links that were followed
	limited bool   // its rights were limited to those that it has in the sandbox
	walks   bool   // paths are walked, since the kernel would take /proc/self for the hand's
	noMagic bool   // the caller wants no magic link followed (RESOLVE_NO_MAGICLINKS)
	moving  bool   // it is a rename and holds Server.moving
	still   bool   // it holds Server.moving for reading (keepStill)
	failed  bool   // a failure has been reported
	delayed bool   // a refusal waits in refusal to be reported
	refusal *Denial
	told    bool          // a refusal has been reported
	judged  syscall.Errno // of the judge of changes, the last time it was asked

	watching bool     // it is looked at for a report: what fails is not the caller's to see, nor the person's
	unseen   bool     // that failed
	seen     []Denial // what will be reported of it, if nothing else is
}

// perform judges and performs the call. What is only observed goes on.
func (c *call) perform() outcome {
	if !c.observed() {
		return c.act()
	}
	out := outcome{proceed: true}
	if c.performs() {
		out = c.act()
	}
	c.tellSeen(out)
	return out
}

// act judges and performs the call.
func (c *call) act() outcome {
	spec, ok := specs(c.w.note.Arch, c.w.note.Nr)
	if !ok && c.w.note.Arch == nativeArch() {
		spec, ok = changeSpecs(c.w.note.Nr)
	}
	if !ok {
		return failed(c.broken(fmt.Errorf("call number %d of architecture %#x is none that this broker performs", c.w.note.Nr, c.w.note.Arch)))
	}
	c.name = spec.name
	if c.tid == 0 {
		return failed(c.broken(errors.New("the caller is in no pid namespace that srt can see")))
	}
	c.s.changes.settled(c.tid)
	if spec.pathless {
		return spec.perform(c) // pid 1, whose root nobody can read, makes such a call too
	}
	if errno := c.readRoot(); errno != 0 {
		return failed(errno)
	}
	return spec.perform(c)
}

// respond answers the call. A caller that is gone needs no answer.
func (c *call) respond(o outcome) {
	if o.sent {
		return
	}
	c.settleMade(o)
	c.endCopies()
	var err error
	switch {
	case o.proceed:
		err = c.s.config.Listener.Continue(c.id)
	default:
		err = c.s.config.Listener.Respond(c.id, o.value, o.errno)
	}
	if err != nil && !errors.Is(err, notify.ErrCallEnded) {
		_ = c.broken(err) // which reports it; there is no other answer to give
	}
}

// held is a descriptor that a call holds. A copied one is that of something of the caller's.
type held struct {
	fd     int
	copied bool
}

// end gives back what the call held.
func (c *call) end() {
	for _, f := range c.files {
		c.s.closeHeld(f)
	}
	c.files = nil
	if c.thread != nil {
		c.s.threads.put(c.thread)
		c.thread = nil
	}
}

func (s *Server) closeHeld(f held) {
	if f.copied {
		s.closeCopy(f.fd)
	} else {
		unix.Close(f.fd)
	}
}

// endCopies gives back the copies of what is the caller's, which so knows of no other than its own when it goes on: a port
// is free again once it has closed them.
func (c *call) endCopies() {
	kept := c.files[:0]
	for _, f := range c.files {
		if f.copied {
			c.s.closeHeld(f)
		} else {
			kept = append(kept, f)
		}
	}
	c.files = kept
}

// hold has a descriptor closed at the end of the call.
func (c *call) hold(fd int) int {
	c.files = append(c.files, held{fd, false})
	return fd
}

// holdCopy has a copy of one of the caller's descriptors closed when the call is answered.
func (c *call) holdCopy(fd int) int {
	c.files = append(c.files, held{fd, true})
	return fd
}

// drop closes a descriptor before the end of the call.
func (c *call) drop(fd int) {
	f := held{fd, false}
	if i := slices.IndexFunc(c.files, func(f held) bool { return f.fd == fd }); i >= 0 {
		f = c.files[i]
		c.files = slices.Delete(c.files, i, i+1)
	}
	c.s.closeHeld(f)
}

// own takes over the descriptors that a hand sent: -1 for one that did not come.
func (c *call) own(r *ns.HandResult, count int) []int {
	fds := make([]int, count)
	for i := range fds {
		fds[i] = -1
		if i < len(r.Files) && r.Files[i] != nil {
			if fd, err := unix.FcntlInt(r.Files[i].Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
				fds[i] = c.hold(fd)
			}
		}
	}
	r.Close()
	return fds
}

// broken reports an unexpected failure and gives the error that the caller sees. A caller that is gone meanwhile is none.
func (c *call) broken(err error) syscall.Errno {
	if c.watching {
		c.unseen = true
		return unix.EIO
	}
	if !c.failed && c.s.config.Listener.Valid(c.id) == nil {
		c.failed = true
		c.s.report(Denial{PID: c.tid, Call: c.name, Path: c.text, Err: err})
	}
	return unix.EIO
}

// refuse reports a refusal and answers with errno.
func (c *call) refuse(errno syscall.Errno, path, why string) outcome {
	d := Denial{PID: c.tid, Process: c.comm(), Call: c.name, Path: path, Why: why}
	if c.delayed {
		c.refusal = &d
	} else {
		c.told = true
		c.s.report(d)
	}
	return failed(errno)
}

// tellDelayed reports the refusal of a call that could have succeeded otherwise.
func (c *call) tellDelayed() {
	if c.refusal != nil {
		c.told = true
		c.s.report(*c.refusal)
	}
}

// waits tells whether the call still waits for its answer: only then is what was read by way of the thread's number the
// caller's own.
func (c *call) waits() bool { return c.s.config.Listener.Valid(c.id) == nil }
