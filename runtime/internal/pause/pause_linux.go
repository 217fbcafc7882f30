package pause

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ErrStillRunning is returned for descendants that cannot be stopped: they multiply faster than they are seen, or are more
// than there are descriptors for. They go on as if nothing had been tried.
var ErrStillRunning = errors.New("processes keep running although they were told to stop")

const (
	// settle is the time in which everything must have stopped and stand.
	settle = 2 * time.Second
	// look is the pause between two looks.
	look = time.Millisecond
	// maxProcesses is how many descendants there may be; each takes a descriptor while it is stopped.
	maxProcesses = 4096
)

// Paused are descendants that stand still. Resume must be called once.
type Paused struct {
	root   Identity
	held   map[int]*held
	before record
}

// Identity is a process, which its number alone is only until it was waited for.
type Identity struct {
	pid     int
	started uint64
}

// Identify gives the identity of whoever has a number now. It is that of the caller's own child if that was not waited for
// until after Identify has returned. The error is ErrElsewhere where /proc has another process at that number.
func Identify(pid int) (Identity, error) {
	if procElsewhere() {
		return Identity{}, ErrElsewhere
	}
	p, err := readProcess(pid)
	return Identity{pid, p.started}, err
}

// ErrHidden is returned where /proc hides a descendant from the caller (proc(5), hidepid).
var ErrHidden = errors.New("processes are hidden, so that not all can be stopped")

// ErrElsewhere is returned where /proc counts processes as another pid namespace does than the caller's, as it does for an srt inside a
// sandbox in mode nested: whoever is found there by a number is another process than the one that has it here.
var ErrElsewhere = errors.New("/proc counts processes as another pid namespace does, so that none can be found there by its number")

// ErrEnded is returned for a process that has ended.
var ErrEnded = errors.New("the process has ended")

// held is one descendant.
type held struct {
	process
	pidfd  int
	ours   bool // stopped by us; what was stopped before stays so
	stands int  // at the last look
}

// Below stops every descendant of a process, not the process itself, and returns when no thread of them runs code of its
// own any more: each is stopped, or in a system call at whose end it will be. Descendants that were stopped already stay
// so after Resume. The caller must be allowed to send them signals. Whether they stay stopped is theirs to influence; see
// StoodStill.
//
// A process is signalled by a pidfd that was proven to be of the process that was seen, so no other one that has come to
// its number is touched.
func Below(root Identity) (*Paused, error) {
	p := &Paused{root: root, held: map[int]*held{}}
	still := 0
	begun := time.Now()
	for time.Since(begun) < settle {
		moving, err := p.round()
		if err == nil && !moving {
			// A look takes a while: what was seen standing may have been continued by what was seen running. Nothing was left
			// to do that in a second look.
			if still++; still >= 2 && (p.allStopped() || time.Since(begun) > patient) {
				still = 0
				var agreed bool
				if agreed, err = p.remember(); agreed {
					return p, nil
				}
			}
		}
		if err != nil {
			return nil, errors.Join(err, p.Resume())
		}
		if moving {
			still = 0
		}
		time.Sleep(look) //nolint:forbidigo // no event tells that all stand still
	}
	return nil, errors.Join(ErrStillRunning, p.Resume())
}

// allStopped tells whether nothing was in a call that no signal interrupts.
func (p *Paused) allStopped() bool {
	for _, h := range p.held {
		if h.stands == waiting {
			return false
		}
	}
	return true
}

// round looks once and stops what runs, parents before their children: a shell that still ran would be told that its job
// has stopped (wait(2), WUNTRACED). It tells whether anything ran.
func (p *Paused) round() (moving bool, err error) {
	list, err := p.root.descendants() // every parent stands before its children
	if err != nil {
		return false, err
	}
	settled := map[int]bool{p.root.pid: true}
	for _, seen := range list {
		if !settled[seen.parent] {
			moving = true
			continue
		}
		h, known := p.held[seen.pid]
		if known && h.started != seen.started {
			unix.Close(h.pidfd) // that one has ended
			delete(p.held, seen.pid)
			known = false
		}
		if !known {
			if h, err = p.hold(seen); err != nil {
				return false, err
			}
		}
		if h == nil || p.stop(h, seen) { // nil: it has ended, and its children are somebody else's now
			moving = true
			continue
		}
		settled[seen.pid] = true
	}
	return moving, nil
}

// stop stops one descendant that is not yet, and tells whether it was running.
func (p *Paused) stop(h *held, seen process) (running bool) {
	h.process = seen
	h.stands = stateOf(seen.pid)
	if h.stands == standing {
		return false // by us, or before
	}
	// One that waits has the signal when its call ends; it is sent again in case another process has taken it away
	// (SIGCONT).
	running = h.stands != waiting || !h.ours
	if err := unix.PidfdSendSignal(h.pidfd, unix.SIGSTOP, nil, 0); err != nil {
		return !errors.Is(err, unix.ESRCH) // it has ended; or must not be signalled, and runs on
	}
	h.ours = true
	return running
}

// hold opens a descendant; nil if it has ended.
func (p *Paused) hold(seen process) (*held, error) {
	if len(p.held) == maxProcesses {
		return nil, fmt.Errorf("%w: there are more than %d", ErrStillRunning, maxProcesses)
	}
	fd, err := unix.PidfdOpen(seen.pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, nil //nolint:nilnil // documented
	case err != nil:
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	// The descriptor is of whoever has the number now: the one that was seen, if that is still there.
	if now, err := readProcess(seen.pid); err != nil || now.started != seen.started || now.parent != seen.parent {
		unix.Close(fd)
		return nil, nil //nolint:nilnil // documented
	}
	h := &held{process: seen, pidfd: fd}
	p.held[seen.pid] = h
	return h, nil
}

// HasGroup tells whether a process group, as the caller's pid namespace numbers it, has a member among the descendants.
func (p *Paused) HasGroup(pgrp int) bool {
	for _, h := range p.held {
		if h.group == pgrp {
			return true
		}
	}
	return false
}

// Resume lets those go on that Below has stopped, children before their parents: so no parent, a shell above all, is told
// that a child has stopped.
func (p *Paused) Resume() error {
	list := make([]*held, 0, len(p.held))
	for _, h := range p.held {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b *held) int { return cmp.Compare(b.depth, a.depth) })
	var errs []error
	for _, h := range list {
		if h.ours {
			if err := unix.PidfdSendSignal(h.pidfd, unix.SIGCONT, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, os.NewSyscallError("pidfd_send_signal SIGCONT", err))
			}
		}
		unix.Close(h.pidfd)
	}
	clear(p.held)
	return errors.Join(errs...)
}
