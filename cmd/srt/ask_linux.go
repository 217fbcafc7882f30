package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime"
)

// Why a host is refused that could not be asked about, for the program and the record.
const (
	reasonBackground = "srt is not in the foreground of its terminal, so it cannot ask"
	reasonRunsOn     = "the command could not be stopped to ask about it"
)

// borrower is the command whose terminal is borrowed.
type borrower interface {
	BorrowTerminal(tty *os.File) (giveBack func() error, err error)
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

// put implements dialog.
func (d *terminalDialog) put(ctx context.Context, t target, command string) (decision, error) {
	b := d.command.Load()
	if b == nil {
		return decision{}, errEnded
	}
	giveBack, err := (*b).BorrowTerminal(d.tty)
	switch {
	case errors.Is(err, runtime.ErrNotForeground):
		return decision{reason: reasonBackground}, nil
	case err != nil:
		d.debug("the command cannot be stopped for a question", err)
		return decision{reason: reasonRunsOn}, nil
	}
	answer, err := d.question(ctx, t, command)
	if err := giveBack(); err != nil {
		d.debug("the terminal cannot be given back", err)
	}
	if key, ok := errors.AsType[*keyboardInterrupt](err); ok {
		d.send(key)
		return decision{waiting: true}, nil
	}
	return answer, err
}

// question puts one question on a terminal that is srt's.
func (d *terminalDialog) question(ctx context.Context, t target, command string) (decision, error) {
	special, err := d.singleKeys()
	if err != nil {
		return decision{}, err
	}
	deadline := time.Now().Add(d.timeout)
	if err := errors.Join(d.tty.SetReadDeadline(deadline), d.tty.SetWriteDeadline(deadline.Add(lastWords))); err != nil {
		return decision{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = d.tty.SetDeadline(time.Unix(1, 0)) })() // as above
	if ctx.Err() != nil {
		return decision{}, context.Cause(ctx)
	}
	q := &questioning{tty: d.tty, keys: special, ctx: ctx, code: newCode()}
	text := questionText(t, command, q.code, d.timeout)
	if dumb(d.term) {
		text = "\r\n" + text
	} else {
		text = sane + text
	}
	if _, err := io.WriteString(d.tty, text); err != nil {
		return decision{}, err
	}
	return q.converse()
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
