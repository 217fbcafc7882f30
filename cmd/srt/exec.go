package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"
)

// errNoCommand is CLI-6.
var errNoCommand = errors.New("No command specified. Give one after srt exec -- (srt exec -- make), " +
	"or shell text with -c (srt -c 'make test').")

// exec is "srt exec": the words are the command's arguments, exactly (CLI-1).
func (a *app) exec(inv *invocation) int {
	return a.execute(inv, func(ctx context.Context, s session) process {
		return s.Command(ctx, inv.words[0], inv.words[1:]...)
	})
}

// compatible is "srt command...": the words go through a shell, except on Windows, where there is none whose quoting
// would keep them whole (CLI-8).
func (a *app) compatible(inv *invocation) int {
	if runtime.GOOS == "windows" {
		return a.exec(inv)
	}
	return a.execute(inv, func(ctx context.Context, s session) process {
		return s.Shell(ctx, shellWords(inv.words))
	})
}

// execute runs the command that prepare makes, or the text of -c, and returns srt's exit status (CLI-7 is the order).
func (a *app) execute(inv *invocation, prepare func(context.Context, session) process) int {
	switch {
	case inv.opts.command != "":
		prepare = func(ctx context.Context, s session) process { return s.Shell(ctx, inv.opts.command) }
	case len(inv.words) == 0:
		return a.fail(errNoCommand)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals, stop := catchSignals()
	defer stop()
	run := &execution{app: a, opts: &inv.opts, log: a.logger(&inv.opts), signals: signals, giveUp: cancel}
	return run.run(ctx, prepare)
}

// execution is one command from settings to exit status.
type execution struct {
	app     *app
	opts    *options
	log     *slog.Logger
	signals <-chan os.Signal
	giveUp  context.CancelFunc // ends a set-up that is under way
	control *control           // nil without --control-fd
	prompt  *prompt            // nil without --ask

	violations *violationLog // nil without --violations
	refused    refusals
	unwatched  bool // the command ran, under rules about files whose refusals nobody reports
}

func (e *execution) run(ctx context.Context, prepare func(context.Context, session) process) (status int) {
	e.app.timing(e.log, "arguments read")
	// Reading builds nothing, so a read that still blocks needs no waiting for: it ends with srt.
	read, stopped := await(e, 0, e.settings)
	if err := cmp.Or(stopped, read.err); err != nil {
		return e.app.fail(err)
	}
	var err error
	if e.control, err = e.openControl(); err != nil { // after the settings and before anything is built (CLI-7)
		return e.app.fail(err)
	}
	defer e.control.stop()
	if e.prompt, err = e.openPrompt(read.value.config); err != nil {
		return e.app.fail(err)
	}
	defer e.prompt.close()
	if err = e.startReport(); err != nil {
		return e.app.fail(err)
	}
	opened, stopped := await(e, e.app.grace, func() result[session] {
		s, err := e.app.open(ctx, read.value.config, e.sessionOptions(read.value))
		return result[session]{s, err}
	})
	if opened.value != nil {
		e.violations.follow(opened.value)
		defer func() { e.end(opened.value, status) }()
	}
	if err := cmp.Or(stopped, opened.err); err != nil {
		return e.app.fail(err)
	}
	e.app.timing(e.log, "sandbox ready")
	if err := e.readControl(ctx, opened.value); err != nil {
		return e.app.fail(err)
	}
	e.unwatched = e.filesUnwatched(read.value)
	return e.supervise(prepare(ctx, opened.value))
}

// settings reads the settings file.
func (e *execution) settings() result[*settings] {
	s, err := e.app.settings(e.opts, e.log)
	return result[*settings]{s, err}
}

// end ends the session and says what it has refused, to the last of it.
func (e *execution) end(s session, status int) {
	e.close(s)
	e.violations.finish(s.Total(), flushPatience)
	if status != 0 && !e.opts.quiet {
		e.summarise(status)
	}
}

// summarise says after a command that failed what was refused to it. That files are not watched is said beside that, and where
// nothing else was refused only to a person: a program that reads standard error would get it after each command that has
// nothing to do with the sandbox. A command that a signal ended, or that was not executed, has another cause.
func (e *execution) summarise(status int) {
	e.refused.write(e.app.stderr, e.unwatched)
	if e.unwatched && e.refused.none() && status < firstFailedStart && e.app.person != nil && e.app.person() {
		_, _ = io.WriteString(e.app.stderr, unwatchedAlone)
	}
}

func (e *execution) close(s session) {
	if err := s.Close(); err != nil {
		fmt.Fprintf(e.app.stderr, "Warning: the sandbox could not be removed completely: %v\n", err)
	}
	e.app.timing(e.log, "sandbox closed")
}

// result is what a step returned.
type result[T any] struct {
	value T
	err   error
}

// await runs a step of the set-up beside the signals and the control channel. When a signal comes first (CLI-14), or the
// channel fails (CLI-28), the set-up is told to give up and await returns why the command never runs, with what the step
// still returned within patience, so that the caller can remove it. Past that the step is left behind: a sandbox ends
// when srt does (CLI-17).
func await[T any](e *execution, patience time.Duration, step func() T) (value T, stopped error) {
	done := make(chan T, 1)
	go func() { done <- step() }()
	select {
	case value = <-done:
		return value, nil
	case sig := <-e.signals:
		stopped = fmt.Errorf("interrupted by %s", lookUp(sig).name)
	case stopped = <-e.control.lost():
	}
	e.giveUp()
	select {
	case value = <-done:
	case <-time.After(patience):
	}
	return value, stopped
}
