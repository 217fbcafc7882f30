package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrNotForeground is returned by [Cmd.BorrowTerminal] when another job has the terminal: to read from it then would stop
// the caller (SIGTTIN), and to take it would take it from that job.
var ErrNotForeground = errors.New("another job is in the foreground of the terminal")

// ErrDisturbed is returned by [Loan.Undisturbed] when the command has run although it was stopped, or when the terminal is
// not the caller's any more. What was read may be what the command has led the person to type: drop it, give the terminal
// back, and refuse or ask anew.
var ErrDisturbed = errors.New("the command ran while its terminal was borrowed")

// errNoLoan is a Loan that BorrowTerminal has not returned.
var errNoLoan = errors.New("nothing is borrowed")

// borrower is a process whose terminal can be borrowed.
type borrower interface {
	borrow(tty *os.File) (lent, error)
}

// lent is what a Loan does.
type lent interface {
	io.ReadWriter
	undisturbed() error
	giveBack() error
}

// Loan is a terminal that a command has lent its caller; see [Cmd.BorrowTerminal]. Read and Write are for one goroutine
// each; Undisturbed may be called at the same time. Nothing may be called together with GiveBack or after it.
type Loan struct{ lent lent }

// Read reads what is typed. It never stops the caller: where the terminal is not the caller's any more it fails with EIO
// (tty_ioctl(4), SIGTTIN). The deadlines of the terminal's file count.
func (l *Loan) Read(p []byte) (int, error) {
	if l.lent == nil {
		return 0, errNoLoan
	}
	return l.lent.Read(p)
}

// Write writes to the terminal, and never stops the caller either.
func (l *Loan) Write(p []byte) (int, error) {
	if l.lent == nil {
		return 0, errNoLoan
	}
	return l.lent.Write(p)
}

// Undisturbed tells whether until now, since [Cmd.BorrowTerminal] has returned, no process of the command has run, even for
// an instant, and the terminal is still the caller's. The error matches [ErrDisturbed] if not; every other means that
// nobody knows. It takes milliseconds, and reads the status of every process of the host.
func (l *Loan) Undisturbed() error {
	if l.lent == nil {
		return errNoLoan
	}
	return l.lent.undisturbed()
}

// GiveBack restores the terminal's modes and its foreground group, has programs that draw the whole screen draw it anew
// (SIGWINCH), and lets the processes go on. It does so once; called again it returns the same.
func (l *Loan) GiveBack() error {
	if l.lent == nil {
		return errNoLoan
	}
	return l.lent.giveBack()
}

// BorrowTerminal lets the caller talk to the person at a terminal that it shares with the command, without the command
// listening or joining in. tty is the caller's controlling terminal; it stays the caller's to close, and should be opened
// before the command starts: programs may lock a terminal against further opening (ioctl_tty(2), TIOCEXCL).
//
// Every process of the command is stopped, whatever its group and session, and the caller's process group becomes the
// foreground one; what was typed ahead is dropped. The loan is to be given back soon: the command's time stands still, that
// of its peers does not. Calls that the pause interrupts are made again by the kernel, as with every SIGSTOP (signal(7)).
//
// A stopped process reads no key, writes nothing over a question and takes no signal of the keyboard. But it can have
// arranged to be continued: by a timer, or by a key, that sends it SIGCONT. That cannot be prevented, but it is always
// noticed: what was shown and read is beyond the reach of the command only if [Loan.Undisturbed] says so after the reading.
// Never act on an answer that allows anything before that.
//
// What the command wrote before is on the screen, may look like anything, and may have asked the terminal itself to type
// something: so ask for an answer that nobody could have foreseen.
//
// It fails with [ErrNotForeground]; with an error for processes that cannot be stopped; with one that matches
// errors.ErrUnsupported on other systems than Linux; and with the error of a terminal that has hung up. Nothing has
// changed then. It may be called from any goroutine after Start, by one at a time.
func (c *Cmd) BorrowTerminal(tty *os.File) (*Loan, error) {
	p := c.begun()
	if p == nil {
		return nil, errNotStarted
	}
	b, ok := p.(borrower)
	if !ok {
		return nil, fmt.Errorf("borrow the terminal of a command: %w", errors.ErrUnsupported)
	}
	l, err := b.borrow(tty)
	if err != nil {
		return nil, err
	}
	return &Loan{l}, nil
}
