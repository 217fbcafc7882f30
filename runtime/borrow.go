package runtime

import (
	"errors"
	"fmt"
	"os"
)

// ErrNotForeground is returned by [Cmd.BorrowTerminal] when another job has the terminal: to read from it then would stop
// the caller (SIGTTIN), and to take it would take it from that job.
var ErrNotForeground = errors.New("another job is in the foreground of the terminal")

// borrower is a process whose terminal can be borrowed.
type borrower interface {
	borrow(tty *os.File) (giveBack func() error, err error)
}

// BorrowTerminal lets the caller talk to the person at a terminal that it shares with the command, without the command
// listening or joining in. tty is the caller's controlling terminal; it stays the caller's to close, and should be opened
// before the command starts: programs may lock a terminal against further opening (ioctl_tty(2), TIOCEXCL).
//
// Every process of the command is stopped, whatever its group and session, and the caller's process group becomes the
// foreground one. Nothing of the sandbox reads a key, writes over the question or takes a signal of the keyboard meanwhile;
// what was typed ahead is dropped. giveBack restores the terminal's modes and its foreground group, has programs that draw
// the whole screen draw it anew (SIGWINCH), and lets the processes go on; it does so once, and is to be called soon: the
// command's time stands still, that of its peers does not. Calls that the pause interrupts are made again by the kernel,
// as with every SIGSTOP (signal(7)).
//
// What the caller shows and reads is beyond the reach of the command only from here to giveBack. What the command wrote
// before is on the screen, may look like anything, and may have asked the terminal itself to type something: so ask for an
// answer that nobody could have foreseen.
//
// It fails with [ErrNotForeground]; with an error for processes that cannot be stopped; with one that matches
// errors.ErrUnsupported on other systems than Linux; and with the error of a terminal that has hung up. Nothing has
// changed then. It may be called from any goroutine after Start, by one at a time.
func (c *Cmd) BorrowTerminal(tty *os.File) (giveBack func() error, err error) {
	p := c.begun()
	if p == nil {
		return nil, errNotStarted
	}
	b, ok := p.(borrower)
	if !ok {
		return nil, fmt.Errorf("borrow the terminal of a command: %w", errors.ErrUnsupported)
	}
	return b.borrow(tty)
}
