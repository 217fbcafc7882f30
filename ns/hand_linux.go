package ns

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HandConfig says whose hand to start.
type HandConfig struct {
	// Process is the sandbox, started, with Prepared.AllowHands before that.
	Process *Process
	// Ruleset is the Landlock ruleset that the command is held by (landlock_restrict_self(2)). It stays the caller's. It
	// may only be nil with Unrestricted, where the command has none either. For a confined sandbox it may not, and is what the
	// hand alone is held by, which may be another one than the command's (Program.RestrictCommand).
	Ruleset      *os.File
	Unrestricted bool
	// Listener is the seccomp listener of the sandbox (seccomp_unotify(2)), HandListener in programs. It stays the
	// caller's. With nil, HandListener is a descriptor without use.
	Listener *os.File
	// Keep are the capabilities that the hand keeps, valid in the sandbox's user namespace alone. A hand of a confined sandbox,
	// which has no such namespace, keeps those of them that the host process has; they are valid in the host process's.
	Keep Capabilities
}

// A Hand is a process that makes system calls in a sandbox on behalf of the host side, one Program after another. It is in
// all namespaces of the sandbox but that of the pids, so that nothing in the sandbox can see, signal or trace it, and it
// is held by the same mounts, the same Landlock rules and the same identity as the command. It has no controlling
// terminal, and no descriptors but those of a program. Its Landlock domain is one of its own with the same rules: so it may
// not look into the command's processes (EACCES for /proc/PID/maps, environ, mem, cwd, exe and what fd/N leads to), which
// a process may only do within its own domain or beneath it (landlock(7)).
//
// A hand of a confined sandbox is in the namespaces of the host process. What keeps the command from it is the scope of the
// command's Landlock domain (Config.Confined), and that it is not dumpable.
//
// It is a copy of the host process, whose memory nothing in the sandbox can reach. It ends with the host process, in the
// middle of a call if need be.
//
// One goroutine at a time writes a program and runs it. Kill and Close are safe for concurrent use with everything.
type Hand struct {
	// Two programs take turns: the hand may still be at the end of one that has answered already (Begin).
	programs [2]*Program
	turn     int        // which of them is being written or run
	state    *handState // in the first program's memory
	result   HandResult // of the program that is under way
	pid      int
	ctl      int
	life     int // writing end of the pipe that the hand's life depends on

	busy sync.Mutex // held by Do
	in   inbox
	gone error // why it cannot be used any more

	mu     sync.Mutex
	killed bool
	reaped bool
	closed bool
}

// handSize is the memory of a hand's program: more than 1,000 steps and a dozen of the longest paths.
const handSize = 256 << 10

var (
	// ErrNoHands says that a sandbox was started without Prepared.AllowHands.
	ErrNoHands = errors.New("ns: the sandbox was started without leave for hands (Prepared.AllowHands)")
	// ErrHandKilled is the cause when Kill or Close has ended a hand.
	ErrHandKilled = errors.New("ns: the hand was killed")
	// ErrHandGone is the cause when a hand has ended otherwise. It holds nothing any more; start another one.
	ErrHandGone = errors.New("ns: the hand of the sandbox has ended unexpectedly; its last program may have been done in part")
)

// StartHand starts a hand and waits until it is part of the sandbox. It fails closed: on an error, a *StepError for a step
// that failed, no process is left. After the sandbox has been waited for it returns os.ErrProcessDone. The caller closes
// the hand; the sandbox's end does not. It is safe for concurrent use.
func StartHand(c HandConfig) (*Hand, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Process.confined {
		own, err := ownCapabilities()
		if err != nil {
			return nil, err
		}
		c.Keep &= own
	}
	h, err := newHand(c.Keep, c.Process.ungrouped)
	if err != nil {
		return nil, err
	}
	if err := h.start(&c); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	// Processes that are forked from now on have no use for this memory.
	for _, p := range h.programs {
		if err := unix.Madvise(p.mem, unix.MADV_DONTFORK); err != nil {
			return nil, errors.Join(os.NewSyscallError("madvise", err), h.Close())
		}
	}
	r, err := h.Do()
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// newHand maps a hand's memory. ungrouped says that setgroups(2) is refused in its sandbox, as it may be in all of this process's
// user namespace.
func newHand(keep Capabilities, ungrouped bool) (*Hand, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return nil, &StepError{Op: "ask for the supplementary groups", Err: err}
	}
	h := &Hand{ctl: -1, life: -1, reaped: true}
	fixedGroups := keep != 0 && (ungrouped || groupsAreFixed())
	for i := range h.programs {
		size := handSize + 8*len(groups)
		if i == 0 {
			size += 2 * int(unsafe.Sizeof(launchpad{})) // half of a program's memory is for other things
		}
		p, err := mapProgram(size, "map memory for a hand")
		if err != nil {
			return nil, errors.Join(err, h.release())
		}
		p.keep, p.fixedGroups, p.start = keep, fixedGroups, p.data
		h.programs[i] = p
	}
	p := h.programs[0]
	h.state = (*handState)(unsafe.Pointer(unsafe.SliceData(p.alloc(int(unsafe.Sizeof(handState{})), 8))))
	p.pad = (*launchpad)(unsafe.Pointer(unsafe.SliceData(p.alloc(int(unsafe.Sizeof(launchpad{})), 16))))
	p.pad.own.hand = h.state
	list, _ := p.Buffer(4 * len(groups))
	h.state.self.groups, h.state.self.ngroups = list.value, uintptr(len(groups))
	p.start = p.data
	s := h.state
	s.prepare(&s.msg)
	for i, p := range h.programs {
		p.word = &s.runs[i].word
	}
	h.in.prepare()
	return h, p.err
}

// release gives the memory back.
func (h *Hand) release() error {
	var errs []error
	for _, p := range h.programs {
		if p != nil {
			errs = append(errs, p.Release())
		}
	}
	return errors.Join(errs...)
}

// fixed is the address of something in a program's memory, which never moves.
func fixed[T any](v *T) Arg { return Arg{value: uintptr(unsafe.Pointer(v))} }

// start forks the hand. Its set-up is then the first program, not run yet.
func (h *Hand) start(c *HandConfig) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &StepError{Op: "make a socket pair", Err: err}
	}
	h.ctl = pair[0]
	defer unix.Close(pair[1])
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return &StepError{Op: "make a pipe", Err: err}
	}
	h.life = pipe[1]
	defer unix.Close(pipe[0])

	proc := c.Process
	proc.mu.Lock() // until the fork, which copies the descriptors of the namespaces
	defer proc.mu.Unlock()
	switch {
	case proc.reaped:
		return os.ErrProcessDone
	case proc.entries[0] == nil && !proc.hands:
		return ErrNoHands
	}
	for i := range h.state.streams {
		h.state.streams[i] = uintptr(pipe[0]) // a place that is not taken must not be free either
	}
	h.state.streams[ctlFD] = uintptr(pair[1])
	h.place(HandListener, c.Listener)
	h.place(rulesetFD, c.Ruleset)
	for i, f := range proc.entries {
		h.place(namespacesFD+i, f)
	}
	h.setUp(c, proc.entries)
	pid, errno := fork(0, h.programs[0].pad, h.programs[0].mem, h.programs[1].mem)
	runtime.KeepAlive(c)
	if errno != 0 {
		return &StepError{Op: "make a hand (clone)", Err: errno}
	}
	h.pid, h.reaped = int(pid), false
	return nil
}

// place sets which descriptor of this process the hand has at a number.
func (h *Hand) place(number int, f *os.File) {
	if f != nil {
		h.state.streams[number] = f.Fd()
	}
}

// Program gives a program of the hand, empty. What the last one's result points to is no longer valid. It is run once, by
// Do or Begin, after which the next one is to be asked for.
func (h *Hand) Program() *Program {
	h.turn = 1 - h.turn
	p := h.program()
	p.reset()
	return p
}

func (h *Hand) program() *Program { return h.programs[h.turn] }

// Pass lets the next program have a copy of a descriptor. The file stays the caller's and must be open until Do returns. At
// most 16 descriptors go with one program, numbered in order from HandFirst on.
func (h *Hand) Pass(f *os.File) Slot { return h.PassFD(int(f.Fd())) }

// PassFD is Pass for a bare descriptor.
func (h *Hand) PassFD(fd int) Slot { return h.program().pass(fd) }

// Kill ends the hand at once, in whatever call it is: a Do that is under way returns ErrHandKilled. The hand cannot be used
// any more but must still be closed. After Close it returns os.ErrProcessDone.
func (h *Hand) Kill() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reaped {
		return os.ErrProcessDone
	}
	h.killed = true
	return os.NewSyscallError("kill", unix.Kill(h.pid, unix.SIGKILL))
}

// Close ends the hand, waits until it is gone, and gives back what belongs to it, the program and results of HandResult
// included. It is idempotent.
func (h *Hand) Close() error {
	_ = h.Kill() // a Do that is under way returns
	h.busy.Lock()
	defer h.busy.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.gone == nil {
		h.gone = ErrHandKilled
	}
	var errs []error
	for !h.reaped {
		_, err := syscall.Wait4(h.pid, nil, 0, nil) // killed, and never stopped by a signal that could be blocked
		if !errors.Is(err, syscall.EINTR) {
			h.reaped = true
			errs = append(errs, os.NewSyscallError("wait4", err))
		}
	}
	for _, fd := range []int{h.ctl, h.life} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return errors.Join(append(errs, h.release())...)
}
