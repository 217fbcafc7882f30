package ns

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A program that ends with an answer to somebody else, a call of the sandbox, need not be waited for: Answering, Begin and
// End leave out the message that would wake the host side when it has nothing to do yet.

// Answering appends the mark behind which nothing of the program matters to the host side, whatever becomes of it: what
// follows answers a call of the sandbox. With Do it has no effect. OnlyIf and Unless apply to it.
func (p *Program) Answering() {
	p.append(step{kind: kindAnswered, args: [6]uintptr{fixed(p.word).value}}, label{"answer", ""})
}

// Begin has the hand run the program and does not wait. Unless it returns an error, as Do would, End must follow.
func (h *Hand) Begin() error { return h.begin(silent) }

// Answered tells whether the program of Begin has come to Answering. End then does not wait, and the next program can be
// written and begun at once: the hand takes it when it is done with this one.
func (h *Hand) Answered() bool {
	return atomic.LoadUint32(&h.state.runs[h.turn].word) == answered
}

// FD is a descriptor that becomes readable when End would not wait, but for Answered. It stays the hand's: nothing may be
// read from it.
func (h *Hand) FD() int { return h.ctl }

// lookAgain is how often End looks whether a program has answered.
const lookAgain = time.Millisecond

// End waits until the program of Begin has answered, or is done without that, and is Do in all else. It must follow Begin,
// before the next Program.
func (h *Hand) End() (HandResult, error) {
	defer h.busy.Unlock()
	for {
		switch atomic.LoadUint32(&h.state.runs[h.turn].word) {
		case answered:
			r := h.result
			h.result = HandResult{}
			return r, nil
		case told:
			return h.finish()
		}
		fds := [...]unix.PollFd{{Fd: int32(h.ctl), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds[:], int(lookAgain/time.Millisecond)); n != 0 && !errors.Is(err, unix.EINTR) {
			return h.finish()
		}
	}
}
