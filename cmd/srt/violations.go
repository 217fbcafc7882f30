package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// Where the lines of --violations may go besides a file.
const (
	toStdout         = "-"
	descriptorPrefix = "fd:"
)

// violationBuffer is by how many refusals the reader of --violations may lag before some are lost. They take memory only
// while they wait.
const violationBuffer = 8192

// flushPatience is how long srt waits at its end for a reader of --violations that is slow.
const flushPatience = 2 * time.Second

// setViolations takes a file name, "-" or "fd:N".
func (o *options) setViolations(target string) error {
	if target == "" {
		return errors.New("it must be a file, - for standard output, or fd:<n>")
	}
	if digits, found := strings.CutPrefix(target, descriptorPrefix); found {
		if n, err := strconv.ParseUint(digits, 10, 31); err != nil || n < 1 {
			return errors.New("after fd: there must be the number of a descriptor that is open for writing, and not 0; " +
				"for a file of such a name write ./" + target)
		}
	}
	o.violations = target
	return nil
}

// violationLog writes what the sandbox refuses as JSON lines to where --violations says. It never holds up the command:
// what its reader is too slow for is lost, and a line says how much.
type violationLog struct {
	target string
	out    io.Writer
	place  ownPlace // of what out is
	warn   func(text string)

	session session
	done    chan struct{} // closed when everything is written; nil before follow
	written atomic.Uint64 // sequence number of the last refusal that was dealt with
	lost    uint64        // at the source, as already said
	unsaid  uint64        // lost because writing failed
	failed  bool          // a write failed, which was said
	torn    bool          // the last write failed within a line
	buf     []byte
}

// violationsError is a --violations that cannot be written to. Nothing has been run.
type violationsError struct{ target, reason string }

// Error is one sentence.
func (e *violationsError) Error() string {
	return fmt.Sprintf("--violations=%s is not usable: %s. Refusing to run the command without the report it asks for.", e.target, e.reason)
}

// openViolations opens what --violations names, before anything is built. Opening a FIFO waits a little for its reader.
func (e *execution) openViolations() result[*violationLog] {
	target := e.opts.violations
	l := &violationLog{target: target, warn: func(text string) { fmt.Fprintf(e.app.stderr, "Warning: %s\n", text) }}
	if err := l.open(e.app); err != nil {
		var path *os.PathError
		if errors.As(err, &path) { // it says the name once more
			err = path.Err
		}
		return result[*violationLog]{err: &violationsError{target, err.Error()}}
	}
	return result[*violationLog]{value: l}
}

// startReport opens what --violations names. The error is why nothing runs: a signal can end the waiting for a reader.
func (e *execution) startReport() error {
	if e.opts.violations == "" {
		return nil
	}
	opened, stopped := await(e, 0, e.openViolations)
	e.violations = opened.value
	return cmp.Or(stopped, opened.err)
}

func (l *violationLog) open(a *app) (err error) {
	digits, numbered := strings.CutPrefix(l.target, descriptorPrefix)
	switch {
	case l.target == toStdout:
		l.out = a.stdout
		if f, ok := a.stdout.(*os.File); ok {
			// Under a number of its own: a reader that goes away must not end srt by SIGPIPE (package os, "SIGPIPE").
			l.out, _, err = duplicate(int(f.Fd())) // #nosec G115 -- a descriptor
		}
		return err
	case numbered:
		n, err := strconv.Atoi(digits)
		if err == nil {
			l.out, l.place, err = duplicate(n)
		}
		return err
	}
	f, err := openReport(l.target)
	if err != nil {
		return err
	}
	l.out = f
	if l.place, err = placeOf(f); err != nil {
		f.Close() // nothing was written
	}
	return err
}

// ownPlace is where commands could open the report once more.
func (l *violationLog) ownPlace() ownPlace {
	if l == nil {
		return ownPlace{}
	}
	return l.place
}

// follow writes what s refuses from now on.
func (l *violationLog) follow(s session) {
	if l == nil {
		return
	}
	l.session, l.done = s, make(chan struct{})
	watched := s.Watch(context.Background(), violationBuffer) // here and not in the goroutine: nothing is missed before it runs
	go func() {
		defer close(l.done)
		l.writeAll(watched)
	}()
}

func (l *violationLog) writeAll(watched iter.Seq[runtime.Violation]) {
	last := uint64(0)
	for v := range watched {
		if v.Seq > last+1 {
			l.unsaid += v.Seq - last - 1
		}
		last = v.Seq
		l.tellLosses()
		l.buf = append(v.AppendJSON(l.buf[:0]), '\n')
		if !l.write() {
			l.unsaid++
		}
		l.written.Store(last)
	}
	l.tellLosses()
}

// tellLosses writes how many refusals are missing at this point of the stream, if any are.
func (l *violationLog) tellLosses() {
	if lost := l.session.Lost(); lost > l.lost {
		l.buf = append(violation.AppendLossJSON(l.buf[:0], lost-l.lost, violation.LostAtSource, time.Now()), '\n')
		if l.write() {
			l.lost = lost
		}
	}
	if l.unsaid > 0 {
		l.buf = append(violation.AppendLossJSON(l.buf[:0], l.unsaid, violation.LostAtReader, time.Now()), '\n')
		if l.write() {
			l.unsaid = 0
		}
	}
}

// write writes one line. The first failure is said on standard error; later lines are tried all the same, since a full disk
// may get room again.
func (l *violationLog) write() bool {
	line := l.buf
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.out.Write(line)
	if err == nil {
		l.torn = false
		return true
	}
	l.torn = l.torn && n == 0 || n > 0
	if !l.failed {
		l.failed = true
		var errno syscall.Errno
		if errors.As(err, &errno) {
			err = errno
		}
		l.warn(fmt.Sprintf("refusals cannot be written to --violations=%s: %v", l.target, err))
	}
	return false
}

// finish waits until what the session has refused is written. The session is closed. A reader that does not read is not
// waited for for long.
func (l *violationLog) finish(total uint64, patience time.Duration) {
	if l == nil || l.done == nil {
		return
	}
	select {
	case <-l.done:
		if c, ok := l.out.(io.Closer); ok && l.out != io.Writer(os.Stdout) {
			if err := c.Close(); err != nil && !l.failed { // network file systems tell here that there was no room
				l.warn(fmt.Sprintf("refusals may be missing in --violations=%s: %v", l.target, err))
			}
		}
	case <-time.After(patience):
		l.warn(fmt.Sprintf("%d refusals could not be written to --violations=%s: its reader does not read", total-l.written.Load(), l.target))
	}
}
