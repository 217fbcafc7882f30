package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

// control is the control channel of one run: a descriptor of the caller's on which whole configurations arrive, one a line
// (CLI-20 to CLI-32). It is opened before anything is built and read from when the sandbox is up; the command never gets
// it.
type control struct {
	fd    int
	input controlInput
	// privateFile is the absolute path of what the channel is, where it has a name: a FIFO or a file. No command may open
	// it, to read what is sent or to send something itself (CLI-30). Empty for what has no name.
	privateFile string

	session session
	log     *slog.Logger
	stderr  io.Writer
	lines   lineSplitter
	seen    bool       // a line has arrived, of whatever kind (CLI-28)
	failed  chan error // holds the one error that ends the command (CLI-28)

	// idle is closed when what was sent before the command's start has been applied, as far as that can be told.
	idle     chan struct{}
	idleOnce sync.Once
	early    int // bytes that have been read for it
}

// controlInput reads from the descriptor of a control channel. It never changes the descriptor's open file description,
// the blocking mode included: other processes have it too (CLI-30).
type controlInput interface {
	// read waits for bytes and returns some; they are valid until the next call. whole is false if more came in the same
	// message and is lost. The error is io.EOF at the end of input, errControlStopped after stop, else why the
	// descriptor cannot be read.
	read() (data []byte, whole bool, err error)
	// ready tells whether read would return at once.
	ready() bool
	// stop has read return, now and ever after. A read that is in the kernel and that another process has robbed of its
	// bytes stays there until bytes come or srt ends; nothing waits for it. stop is called once, from any goroutine.
	stop()
}

// errControlStopped ends the reading of a channel that is not needed any more.
var errControlStopped = errors.New("the control channel is not read any more")

// withoutChannel is the end of every sentence about a channel that cannot do its work.
const withoutChannel = "Refusing to run the command without the control channel it asks for."

// controlError is a descriptor that cannot be a control channel (CLI-21).
type controlError struct {
	fd     int
	reason string
}

// Error returns the sentence of CLI-21 without its "Error: " prefix.
func (e *controlError) Error() string {
	return fmt.Sprintf("--control-fd %d is not usable: %s. %s", e.fd, e.reason, withoutChannel)
}

// openControl checks the descriptor that --control-fd names and returns the channel, nil without that option. It reads
// nothing and never waits (CLI-21).
func (e *execution) openControl() (*control, error) {
	if e.opts.controlFD == 0 {
		return nil, nil //nolint:nilnil // no channel is what a nil *control stands for
	}
	c := &control{fd: e.opts.controlFD, log: e.log, stderr: e.app.stderr, failed: make(chan error, 1), idle: make(chan struct{})}
	var err error
	if c.input, c.privateFile, err = openDescriptor(c.fd); err != nil {
		return nil, err
	}
	return c, nil
}

// number is where the command finds the null device; 0 without a channel.
func (c *control) number() int {
	if c == nil {
		return 0
	}
	return c.fd
}

// hidden are the files that no command may open because of the channel.
func (c *control) hidden() []string {
	if c == nil {
		return nil
	}
	return list(c.privateFile)
}

// lost delivers the error of a channel that failed before its first line; never without a channel.
func (c *control) lost() <-chan error {
	if c == nil {
		return nil
	}
	return c.failed
}

// controlPatience bounds the time for which a command waits for what was sent before its start. It is used up only where
// another process reads the channel as well and was faster.
const controlPatience = 2 * time.Second

// readControl reads the channel from now on and puts what arrives in force in s, one line after another (CLI-24, CLI-26).
// What has been sent already is in force when it returns, so that it counts from the first connection of the command. The
// error is why the command never starts: a signal, or a channel that failed (CLI-14, CLI-28).
func (e *execution) readControl(ctx context.Context, s session) error {
	c := e.control
	if c == nil {
		return nil
	}
	c.session = s
	go c.serve(ctx)
	_, stopped := await(e, 0, func() struct{} {
		select {
		case <-c.idle:
		case <-time.After(controlPatience):
		}
		return struct{}{}
	})
	select {
	case err := <-c.failed:
		return cmp.Or(stopped, err)
	default:
		return stopped
	}
}

// stop ends the reading. It does not wait for a line that is being applied: the session is safe for that.
func (c *control) stop() {
	if c != nil {
		c.input.stop()
	}
}

func (c *control) serve(ctx context.Context) {
	defer c.becomeIdle()
	apply := func(l controlLine) { c.line(ctx, l) }
	for {
		c.noteIdle()
		data, whole, err := c.input.read()
		switch {
		case err == nil:
			c.early += len(data)
			c.lines.write(data, apply)
			if !whole {
				c.lines.lose("the rest of the message is lost: a message holds at most 16 MiB")
			}
		case errors.Is(err, errControlStopped):
			return
		case errors.Is(err, io.EOF):
			c.lines.end(apply)
			c.log.Debug(fmt.Sprintf("control fd %d: end of input; the last config stays in force", c.fd)) // CLI-27
			return
		default:
			c.fail(err)
			return
		}
	}
}

// noteIdle tells a command that waits to start that nothing more has been sent, or so much that it is not waited for.
func (c *control) noteIdle() {
	select {
	case <-c.idle:
	default:
		if c.early > maxControlLine || !c.input.ready() {
			c.becomeIdle()
		}
	}
}

func (c *control) becomeIdle() { c.idleOnce.Do(func() { close(c.idle) }) }

// fail ends the command if no line had arrived (CLI-28), else only the channel (CLI-29).
func (c *control) fail(err error) {
	if !c.seen {
		c.failed <- fmt.Errorf("control fd %d failed before delivering an update: %s. %s", c.fd, errnoText(err), withoutChannel)
		return
	}
	fmt.Fprintf(c.stderr, "Error reading control fd %d: %s. The control channel is closed; no further updates will be applied.\n",
		c.fd, errnoText(err))
}

// line puts one line in force, or says that it is invalid (CLI-23 to CLI-25).
func (c *control) line(ctx context.Context, l controlLine) {
	c.seen = true
	if l.blank() {
		return
	}
	cfg, notLive, err := c.apply(ctx, l)
	switch {
	case ctx.Err() != nil: // the run is over, and what it would have meant is of no interest any more
	case err != nil:
		fmt.Fprintf(c.stderr, "Invalid config on control fd %d: ignored, previous config still in force\n", c.fd)
		if c.log.Enabled(ctx, slog.LevelDebug) {
			c.log.Debug(fmt.Sprintf("control fd %d: invalid config", c.fd), "reason", withoutUserinfo(err.Error()), "line", shown(l.text))
		}
	default:
		c.report(cfg, notLive)
	}
}

func (c *control) apply(ctx context.Context, l controlLine) (cfg *config.Config, notLive []string, err error) {
	if l.damaged != "" {
		return nil, nil, errors.New(l.damaged)
	}
	if cfg, err = config.Decode(l.text); err == nil {
		notLive, err = c.session.Update(ctx, cfg)
	}
	return cfg, notLive, err
}

// report says, under debug, what an accepted line did (CLI-32, CFG-14).
func (c *control) report(cfg *config.Config, notLive []string) {
	c.log.Debug(fmt.Sprintf("control fd %d: new config in force", c.fd))
	if len(notLive) > 0 {
		c.log.Debug(fmt.Sprintf("control fd %d: no effect on the running command, since these are fixed at its start: %s",
			c.fd, strings.Join(notLive, ", ")))
	}
	for _, key := range cfg.UnknownKeys() {
		c.log.Debug(fmt.Sprintf("control fd %d: unknown settings key ignored: %s", c.fd, key.Path))
	}
}

// shownOfLine is how much of an invalid line a debug line repeats.
const shownOfLine = 1 << 10

// shown is what a debug line repeats of an invalid line. It is not valid, so that nobody knows where a secret would stand:
// whatever could be a name and password before a host is left out (CLI-11, CLI-25), and so is a word that is cut.
func shown(text []byte) string {
	if len(text) < shownOfLine {
		return withoutUserinfo(string(text))
	}
	text = text[:shownOfLine]
	return withoutUserinfo(string(text[:bytes.LastIndexAny(text, wordEnds)+1])) + "..."
}

// wordEnds are the characters that userinfo cannot hold (RFC 3986, section 3.2.1).
const wordEnds = "\"\\<>{}[] \t\r\n"

// withoutUserinfo replaces what stands before an "@", back to the end of the word before it or to "://".
func withoutUserinfo(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "@")
		if !found {
			b.WriteString(text)
			return b.String()
		}
		from := strings.LastIndexAny(before, wordEnds) + 1
		if scheme := strings.Index(before[from:], "://"); scheme >= 0 {
			from += scheme + len("://")
		}
		b.WriteString(before[:from])
		if from < len(before) {
			b.WriteString("***")
		}
		b.WriteString("@")
		text = after
	}
}
