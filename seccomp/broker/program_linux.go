package broker

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

// program is a program of system calls for a hand, with the steps that calls have in common.
type program struct {
	*ns.Program
	c       *call
	hand    Hand
	answers bool // it ends with an answer to the caller
	umask   bool // it sets the caller's umask
}

// program begins a program that acts with the caller's rights. umask says that it makes something, whose mode the caller's
// umask limits.
func (c *call) program(umask bool) (*program, syscall.Errno) {
	hand, err := c.w.getHand()
	if err != nil {
		return nil, c.broken(err)
	}
	own := c.s.config.Rights
	if own != nil || umask {
		if errno := c.readStatus(); errno != 0 {
			return nil, errno
		}
	}
	p := &program{Program: hand.Program(), c: c, hand: hand}
	if p.umask = umask && (!c.w.umaskKnown || c.w.umask != c.status.umask); p.umask {
		p.Call("set the umask", "", unix.SYS_UMASK, ns.Int(c.status.umask))
	}
	if own != nil {
		if errno := c.limitRights(); errno != 0 {
			return nil, errno
		}
	}
	if own != nil && !c.actsAs(own) {
		p.ActAs(ns.Identity{UID: c.status.uids[3], GID: c.status.gids[3], Groups: c.status.groups,
			Effective: ns.Capabilities(c.status.effective)})
	}
	return p, 0
}

// actsAs tells whether the caller's rights are those of the hand.
func (c *call) actsAs(id *ns.Identity) bool {
	s := &c.status
	return s.uids[3] == id.UID && s.gids[3] == id.GID && ns.Capabilities(s.effective) == id.Effective && slices.Equal(s.groups, id.Groups)
}

// do runs the program. On an errno that says so, the hand is lost and the failure reported.
func (p *program) do() (ns.HandResult, syscall.Errno) {
	if !p.c.waits() {
		return ns.HandResult{}, unix.EINTR // nobody is there to see it
	}
	r, err := p.run()
	if err != nil {
		p.c.w.dropHand()
		return r, p.c.broken(err)
	}
	if p.umask {
		p.c.w.umask, p.c.w.umaskKnown = p.c.status.umask, true
	}
	return r, 0
}

// idle is how long what a call holds is kept after its answer while no other comes.
const idle = 5 * time.Millisecond

// run runs the program. If its end is the caller's answer, the receiver does not wait for the hand but for a next call, and so
// is not woken for nothing.
func (p *program) run() (ns.HandResult, error) {
	c := p.c
	pool := &c.s.pool
	if !p.answers || c.moving || !pool.await(c.w) {
		pool.handOn(c.w, false)
		return p.hand.Do()
	}
	if err := p.hand.Begin(); err != nil {
		return ns.HandResult{}, err
	}
	c.w.ready = c.s.config.Listener.Ready(p.hand.FD(), idle)
	pool.awaited(c.w)
	if !p.hand.Answered() {
		pool.handOn(c.w, c.w.ready)
	}
	return p.hand.End()
}

// from is the descriptor argument for a place to start at.
func (p *program) from(o origin) ns.Arg {
	if o.fd < 0 {
		return ns.Int(unix.AT_FDCWD) // with an absolute path it does not matter
	}
	return p.hand.PassFD(o.fd).Arg()
}

// statx is struct statx: its size and where what is compared lies in it (statx(2)).
const (
	statxSize  = 256
	statxNlink = 16 // stx_uid is its upper half
	statxGID   = 24 // stx_mode is in its upper half
)

// openat2 appends openat2(2).
func (p *program) openat2(what string, at ns.Arg, path string, how openHow) ns.Slot {
	return p.Call("open", what, unix.SYS_OPENAT2, at, p.Str(path), p.Bytes(how.bytes()), ns.Int(howSize))
}

// parent appends the opening of the directory that a name is in. For a name in the origin itself nothing is opened, and
// opened is false.
func (p *program) parent(at ns.Arg, dir string, resolve uint64) (parent ns.Arg, opened bool) {
	if dir == "" {
		return at, false
	}
	return p.openat2("the directory", at, dir, openHow{flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		resolve: resolve | unix.RESOLVE_NO_MAGICLINKS}).Arg(), true
}

// finish appends the answer to the caller: the call's result is 0.
func (p *program) finish() {
	p.answers = true
	p.Answering()
	p.Call("answer", "the caller", unix.SYS_IOCTL, ns.Int(ns.HandListener), ns.Int(uintptr(notify.IoctlSend)),
		p.Bytes(notify.Result(p.c.id, 0, 0).Bytes()))
}

// finishFD appends the answer to the caller: the call's result is a copy of the descriptor fd. refine, if not nil, is
// applied to each step.
//
// The hand closes its own before the caller goes on, in two control calls for that reason: as long as the hand has one, a
// program file counts as being written (ETXTBSY), a lock on the file outlives the caller's close, and those who watch the
// file are told of its closing too late. It also keeps a hand that is killed from answering without a descriptor.
func (p *program) finishFD(fd ns.Slot, cloexec bool, refine func()) {
	if refine == nil {
		refine = func() {}
	}
	a := notify.AddFD{ID: p.c.id}
	if cloexec {
		a.TargetFlags = unix.O_CLOEXEC
	}
	arg := p.Bytes(a.Bytes())
	p.Store(arg, notify.AddFDSource, fd)
	refine()
	number := p.Call("hand over", "the descriptor", unix.SYS_IOCTL, ns.Int(ns.HandListener), ns.Int(uintptr(notify.IoctlAddFD)), arg)
	refine()
	p.Close(fd)
	p.answers = true
	p.Answering()
	refine()
	answer := p.Bytes(notify.Result(p.c.id, 0, 0).Bytes())
	p.Store(answer, notify.ResponseVal, number)
	refine()
	p.Call("answer", "the caller", unix.SYS_IOCTL, ns.Int(ns.HandListener), ns.Int(uintptr(notify.IoctlSend)), answer)
	refine()
}
