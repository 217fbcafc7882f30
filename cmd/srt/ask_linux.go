package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime"
)

// Why a host is refused that could not be asked about, for the program and the record.
const (
	reasonBackground = "srt is not in the foreground of its terminal, so it cannot ask"
	reasonRunsOn     = "the command could not be stopped to ask about it"
	reasonDisturbed  = "the command ran while srt asked about it"
)

// disturbedText precedes a question that was put before and disturbed.
const disturbedText = "srt: the command ran during the last question although it was stopped, so no answer to that counts, and what it\r\n" +
	"     showed may have been the command's. This is the question, anew:\r\n"

// How a question is kept from a command that continues itself although it was stopped.
const (
	// maxDisturbed is how many questions about a host may be disturbed before it is refused.
	maxDisturbed = 3
	// lookEvery is the time between two looks at the command while a question stands. They only end a disturbed question soon:
	// an answer that allows is preceded by one of its own.
	lookEvery = 100 * time.Millisecond
)

// borrower is the command whose terminal is borrowed.
type borrower interface {
	BorrowTerminal(tty *os.File) (*runtime.Loan, error)
}

// terminalDialog puts questions on the terminal that srt was started on. It is opened once, before the command runs, which
// could lock it.
type terminalDialog struct {
	tty     *os.File
	term    string // TERM
	timeout time.Duration
	command atomic.Pointer[borrower]
	debug   func(text string, err error)
}

// lastWords is how long it may take to say that the time is over, on a terminal that takes nothing at the moment.
const lastWords = time.Second

// sane brings a terminal back to showing plain text whatever a program has told it (ECMA-48, DEC STD 070): CAN and ST end
// what it was in the middle of; then plain letters, ASCII, no insertion, lines that wrap, no margins, a cursor that shows, and
// nothing below it. Terminals that know less ignore the rest.
const sane = "\x18\x1b\\\x1b[0m\x1b(B\x0f\x1b[4l\x1b[?7h\x1b[?69l\x1b7\x1b[r\x1b8\x1b[?25h\r\n\x1b[J"

// errNoTerminal says that there is nobody to ask.
var errNoTerminal = errors.New("--ask needs somebody to ask: standard error is not a terminal, or not the one that srt was " +
	"started on. Run srt in a terminal without redirecting its standard error, or leave --ask out and name the hosts in network.allowedDomains.")

// openTerminal opens the controlling terminal, if standard error is one.
func openTerminal() (*os.File, error) {
	if _, err := unix.IoctlGetTermios(unix.Stderr, unix.TCGETS); err != nil {
		return nil, errNoTerminal
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoTerminal, err)
	}
	return tty, nil
}

// openDialog makes the dialog of --ask.
func (a *app) openDialog(timeout time.Duration, debug func(string, error)) (*terminalDialog, error) {
	tty, err := a.terminal()
	if err != nil {
		return nil, err
	}
	return &terminalDialog{tty: tty, term: a.getenv("TERM"), timeout: timeout, debug: debug}, nil
}

// attach gives the dialog the command.
func (d *terminalDialog) attach(p process) {
	if b, ok := p.(borrower); ok {
		d.command.Store(&b)
	}
}

// close closes the terminal.
func (d *terminalDialog) close() { d.tty.Close() }

// put implements dialog. A question that the command has disturbed is put anew, with another code, a few times.
func (d *terminalDialog) put(ctx context.Context, t target, command string) (decision, error) {
	defer ignoreStops()()
	text := func(code string) string { return questionText(t, command, code, d.timeout) }
	for range maxDisturbed {
		answer, err := d.putOnce(ctx, text)
		if !errors.Is(err, runtime.ErrDisturbed) {
			return answer, err
		}
		d.debug("a question was disturbed", err)
		text = func(code string) string { return disturbedText + questionText(t, command, code, d.timeout) }
	}
	return decision{reason: reasonDisturbed}, nil
}

// ignoreStops has the process not be stopped for using the terminal in the background, until what it returns is called: a
// command that runs during a question can put it there.
func ignoreStops() (undo func()) {
	var changed []os.Signal
	for _, sig := range []os.Signal{unix.SIGTTIN, unix.SIGTTOU} {
		if !signal.Ignored(sig) {
			signal.Ignore(sig)
			changed = append(changed, sig)
		}
	}
	return func() {
		if len(changed) > 0 { // none would be all
			signal.Reset(changed...)
		}
	}
}

// putOnce stops the command and puts a question. The error matches runtime.ErrDisturbed if the command has run meanwhile.
func (d *terminalDialog) putOnce(ctx context.Context, text func(code string) string) (decision, error) {
	b := d.command.Load()
	if b == nil {
		return decision{}, errEnded
	}
	loan, err := (*b).BorrowTerminal(d.tty)
	switch {
	case errors.Is(err, runtime.ErrNotForeground):
		return decision{reason: reasonBackground}, nil
	case err != nil:
		d.debug("the command cannot be stopped for a question", err)
		return decision{reason: reasonRunsOn}, nil
	}
	answer, err := d.question(ctx, loan, text)
	if err := loan.GiveBack(); err != nil {
		d.debug("the terminal cannot be given back", err)
	}
	if key, ok := errors.AsType[*keyboardInterrupt](err); ok {
		d.send(key)
		return decision{waiting: true}, nil
	}
	return answer, err
}

// watch looks at the command until the context ends, and ends the question if that has run. It returns how to wait for its
// end.
func watch(ctx context.Context, loan *runtime.Loan, end context.CancelCauseFunc) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			begun := time.Now()
			if err := loan.Undisturbed(); err != nil {
				end(err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(lookEvery, 10*time.Since(begun))): // on a host with very many processes it takes longer
			}
		}
	}()
	return func() { <-done }
}

// question puts one question on a terminal that is srt's.
func (d *terminalDialog) question(ctx context.Context, loan *runtime.Loan, text func(code string) string) (decision, error) {
	special, err := d.singleKeys()
	if err != nil {
		return decision{}, disturbed(loan, err)
	}
	deadline := time.Now().Add(d.timeout)
	if err := errors.Join(d.tty.SetReadDeadline(deadline), d.tty.SetWriteDeadline(deadline.Add(lastWords))); err != nil {
		return decision{}, err
	}
	ctx, end := context.WithCancelCause(ctx)
	// Nothing may change a deadline, or look at the command, once this has returned.
	ended := make(chan struct{})
	notice := context.AfterFunc(ctx, func() { defer close(ended); _ = d.tty.SetDeadline(time.Unix(1, 0)) }) // as above
	wait := watch(ctx, loan, end)
	defer func() {
		if !notice() {
			<-ended
		}
		end(nil)
		wait()
	}()
	q := &questioning{tty: loan, keys: special, ctx: ctx, code: newCode(), undisturbed: loan.Undisturbed}
	prelude := sane
	if dumb(d.term) {
		prelude = "\r\n"
	}
	if ctx.Err() != nil {
		return decision{}, context.Cause(ctx)
	}
	if _, err := io.WriteString(loan, prelude+text(q.code)); err != nil {
		return decision{}, disturbed(loan, err)
	}
	answer, err := q.converse()
	return answer, disturbed(loan, err)
}

// disturbed says that the command has run if that is behind an error of the terminal, and gives every other as it is.
func disturbed(loan *runtime.Loan, err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok && errno == unix.EIO {
		if now := loan.Undisturbed(); errors.Is(now, runtime.ErrDisturbed) {
			return now
		}
	}
	return err
}

// singleKeys has the terminal give single keys, show none and send no signals; the loan's end undoes it. The special
// characters are those of the program that had it.
func (d *terminalDialog) singleKeys() (special keys, err error) {
	raw, err := d.tty.SyscallConn()
	if err != nil {
		return special, err
	}
	outer := raw.Control(func(fd uintptr) {
		var modes *unix.Termios
		if modes, err = unix.IoctlGetTermios(int(fd), unix.TCGETS); err != nil {
			return
		}
		special = keys{modes.Cc[unix.VINTR], modes.Cc[unix.VQUIT], modes.Cc[unix.VERASE], modes.Cc[unix.VKILL], modes.Cc[unix.VEOF]}
		modes.Iflag = modes.Iflag&unix.IUTF8 | unix.ICRNL
		modes.Oflag = unix.OPOST
		modes.Lflag = 0
		modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 1, 0
		err = os.NewSyscallError("ioctl TCSETS", unix.IoctlSetTermios(int(fd), unix.TCSETS, modes))
	})
	return special, errors.Join(outer, err)
}

// send sends the signal of a key to the foreground process group, as the terminal would have.
func (d *terminalDialog) send(key *keyboardInterrupt) {
	sig := unix.SIGINT
	if key.quit {
		sig = unix.SIGQUIT
	}
	raw, err := d.tty.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // a terminal that has hung up sends SIGHUP by itself
		if front, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil && front > 1 {
			_ = unix.Kill(-front, sig) // it may have ended
		}
	})
}
