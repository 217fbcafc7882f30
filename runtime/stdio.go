package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"syscall"
	"time"
)

// streams are the standard streams of one command. A stream that is no file of the caller's is a pipe: the command has one
// end, and the other is copied from or to by a goroutine, or is the caller's (StdinPipe and its siblings).
type streams struct {
	files [3]*os.File // what the command gets; not owned, but for those in theirs
	given bool        // files are there already
	// theirs are the command's ends that were opened here. They are closed once it has them, or never will.
	theirs []*os.File
	// ours are the other ends. They are closed when all is copied: that of standard input by who copies, the others by finish.
	ours   []*os.File
	copies []func() error // run by begin, in a goroutine each
	copied chan error     // what each of them returned
}

// open makes the command's streams.
func (s *streams) open(c *Cmd) error {
	if s.given {
		return nil
	}
	for fd, open := range [3]func(*Cmd) (*os.File, error){s.openStdin, s.openStdout, s.openStderr} {
		f, err := open(c)
		if err != nil {
			return err
		}
		s.files[fd] = f
	}
	return nil
}

func (s *streams) openStdin(c *Cmd) (*os.File, error) {
	switch in := c.Stdin.(type) {
	case nil:
		return s.null()
	case *os.File:
		if in == nil {
			return s.null()
		}
		return in, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.theirs, s.ours = append(s.theirs, r), append(s.ours, w)
	in := c.Stdin
	s.copies = append(s.copies, func() error {
		_, err := io.Copy(w, in)
		if errors.Is(err, syscall.EPIPE) {
			err = nil // the command does not want more
		}
		return errors.Join(err, w.Close())
	})
	return r, nil
}

func (s *streams) openStdout(c *Cmd) (*os.File, error) { return s.output(c.Stdout) }

func (s *streams) openStderr(c *Cmd) (*os.File, error) {
	if c.Stderr != nil && equal(c.Stderr, c.Stdout) {
		return s.files[1], nil
	}
	return s.output(c.Stderr)
}

// equal compares two writers, which may be of a type that cannot be compared.
func equal(a, b io.Writer) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.ValueOf(a).Comparable() && a == b
}

func (s *streams) output(w io.Writer) (*os.File, error) {
	switch out := w.(type) {
	case nil:
		return s.null()
	case *os.File:
		if out == nil {
			return s.null()
		}
		return out, nil
	}
	r, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.theirs, s.ours = append(s.theirs, theirs), append(s.ours, r)
	s.copies = append(s.copies, func() error {
		_, err := io.Copy(w, r)
		r.Close() // a command that goes on writing is told
		return err
	})
	return theirs, nil
}

// null is the null device for a stream that nobody wants. Each stream has one of its own: access modes differ.
func (s *streams) null() (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		s.theirs = append(s.theirs, f)
	}
	return f, err
}

// begin copies, once the command has its ends.
func (s *streams) begin() {
	closeFiles(&s.theirs)
	if len(s.copies) == 0 {
		return
	}
	s.copied = make(chan error, len(s.copies))
	for _, work := range s.copies {
		go func() { s.copied <- work() }()
	}
}

// abandon closes what was opened for a command that does not come to be.
func (s *streams) abandon() {
	closeFiles(&s.theirs)
	closeFiles(&s.ours)
	s.copies = nil
}

// finish waits for what is being copied, for no longer than the delay, counted from a moment (the zero time: now), unless it
// is 0. It then closes what is left.
func (s *streams) finish(delay time.Duration, from time.Time) (err error) {
	defer closeFiles(&s.ours)
	var late <-chan time.Time
	for left := len(s.copies); left > 0; left-- {
		if late == nil && delay > 0 && len(s.copied) < left { // a timer is for those that take longer
			if !from.IsZero() {
				delay -= time.Since(from)
			}
			timer := time.NewTimer(delay)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case copied := <-s.copied:
			err = errors.Join(err, copied)
		case <-late:
			closeFiles(&s.ours)
			for range left {
				<-s.copied //nolint:errcheck // it is about the closing
			}
			return exec.ErrWaitDelay
		}
	}
	return err
}

// closeFiles closes files and forgets them.
func closeFiles(list *[]*os.File) {
	for _, f := range *list {
		f.Close() // pipes and devices: nothing that a close could fail to write
	}
	*list = nil
}

// pipeFor makes a pipe for a stream that is not set, before Start.
func (c *Cmd) pipeFor(name string, isSet bool) (r, w *os.File, err error) {
	c.mu.Lock()
	claimed := c.claimed
	c.mu.Unlock()
	switch {
	case isSet:
		return nil, nil, errors.New(name + " is already set; a pipe would have to take its place")
	case claimed:
		return nil, nil, errors.New(name + ": a pipe is made before the command is started")
	}
	return os.Pipe()
}

// StdinPipe returns what is connected to the command's standard input. Wait closes it after the command has ended; a command
// that reads to the end of its input needs it closed before. It must be called before Start.
func (c *Cmd) StdinPipe() (io.WriteCloser, error) {
	r, w, err := c.pipeFor("Stdin", c.Stdin != nil)
	if err != nil {
		return nil, err
	}
	c.Stdin = r
	c.streams.theirs, c.streams.ours = append(c.streams.theirs, r), append(c.streams.ours, w)
	return w, nil
}

// StdoutPipe returns what is connected to the command's standard output. Wait closes it, so everything is to be read before
// Wait is called. It must be called before Start, and neither Run nor Output goes with it.
func (c *Cmd) StdoutPipe() (io.ReadCloser, error) { return c.outputPipe("Stdout", &c.Stdout) }

// StderrPipe is StdoutPipe for standard error.
func (c *Cmd) StderrPipe() (io.ReadCloser, error) { return c.outputPipe("Stderr", &c.Stderr) }

func (c *Cmd) outputPipe(name string, stream *io.Writer) (io.ReadCloser, error) {
	r, w, err := c.pipeFor(name, *stream != nil)
	if err != nil {
		return nil, err
	}
	*stream = w
	c.streams.theirs, c.streams.ours = append(c.streams.theirs, w), append(c.streams.ours, r)
	return r, nil
}

// Output is Run and what the command wrote to standard output. If Stderr is not set, an *ExitError has the beginning and the
// end of what it wrote there.
func (c *Cmd) Output() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("Stdout is already set, so Output cannot collect it")
	}
	var out bytes.Buffer
	c.Stdout = &out
	var saved *excerpt
	if c.Stderr == nil {
		saved = &excerpt{}
		c.Stderr = saved
	}
	err := c.Run()
	if exit, ok := errors.AsType[*ExitError](err); ok && saved != nil {
		exit.Stderr = saved.bytes()
	}
	return out.Bytes(), err
}

// CombinedOutput is Run and what the command wrote to standard output and standard error, in that order.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil || c.Stderr != nil {
		return nil, errors.New("Stdout or Stderr is already set, so CombinedOutput cannot collect them")
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}

// excerptHalf is how many bytes an excerpt keeps of the beginning, and of the end.
const excerptHalf = 32 << 10

// excerpt keeps the beginning and the end of what is written to it. The zero value is ready.
type excerpt struct {
	head, tail []byte // tail is a ring once it is full
	next       int    // in the ring: where the oldest byte is
	dropped    int64
}

// Write implements io.Writer. It never fails.
func (e *excerpt) Write(p []byte) (int, error) {
	n := len(p)
	take := min(excerptHalf-len(e.head), len(p))
	e.head, p = append(e.head, p[:take]...), p[take:]
	if over := len(p) - excerptHalf; over > 0 { // these would be overwritten at once
		e.dropped += int64(over)
		p = p[over:]
	}
	take = min(excerptHalf-len(e.tail), len(p))
	e.tail, p = append(e.tail, p[:take]...), p[take:]
	e.dropped += int64(len(p))
	for len(p) > 0 {
		copied := copy(e.tail[e.next:], p)
		p, e.next = p[copied:], (e.next+copied)%excerptHalf
	}
	return n, nil
}

// bytes is what was kept, with a line between the two halves where something is missing.
func (e *excerpt) bytes() []byte {
	out := append([]byte(nil), e.head...)
	if e.dropped > 0 {
		out = fmt.Appendf(out, "\n... %d bytes are left out here ...\n", e.dropped)
	}
	out = append(out, e.tail[e.next:]...)
	return append(out, e.tail[:e.next]...)
}
