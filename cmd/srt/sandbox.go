package main

import (
	"context"
	"errors"
	"iter"
	"os"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
)

// openSession is the opener of the real command line: a sandbox of package runtime.
func openSession(ctx context.Context, cfg *config.Config, opts sessionOptions) (session, error) {
	list := []runtime.Option{
		runtime.WithLogger(opts.debug),
		runtime.WithWarnings(opts.warning),
		runtime.WithTiming(opts.timing),
		runtime.WithOwnFiles(opts.ownFiles...),
		runtime.WithPrivateFiles(opts.privateFiles...),
		runtime.WithNullDescriptor(opts.nullDescriptor),
		runtime.WithFixedLaunch(),
		runtime.WithoutCoreDumps(),
		runtime.WithAsk(opts.ask),
		runtime.WithMonitor(opts.monitor),
		runtime.WithOnViolation(opts.violation),
	}
	sandbox, err := runtime.New(ctx, cfg, list...)
	if err != nil {
		return nil, err
	}
	return &sandboxSession{sandbox: sandbox, debug: opts.debugging}, nil
}

// sandboxSession gives a runtime.Sandbox the shape of session.
type sandboxSession struct {
	sandbox *runtime.Sandbox
	debug   bool
}

func (s *sandboxSession) Command(ctx context.Context, name string, arg ...string) process {
	return s.prepare(s.sandbox.Command(ctx, name, arg...))
}

func (s *sandboxSession) Shell(ctx context.Context, text string) process {
	return s.prepare(s.sandbox.Shell(ctx, text))
}

func (s *sandboxSession) Explain(ctx context.Context) (explanation, error) {
	return s.sandbox.Explain(ctx)
}

func (s *sandboxSession) Update(ctx context.Context, cfg *config.Config) ([]string, error) {
	return s.sandbox.Update(ctx, cfg)
}

func (s *sandboxSession) Watch(ctx context.Context, buffer int) iter.Seq[runtime.Violation] {
	return s.sandbox.Violations().Watch(ctx, runtime.WatchBuffer(buffer))
}

func (s *sandboxSession) Total() uint64 { return s.sandbox.Violations().Total() }

func (s *sandboxSession) Lost() uint64 { return s.sandbox.Violations().Lost() }

// Close kills what still runs in the sandbox, which must not outlive srt (CLI-17), and ends the session.
func (s *sandboxSession) Close() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errLeaving)
	if err := s.sandbox.Shutdown(ctx); err != errLeaving { //nolint:errorlint // joined with another one, it is to be told
		return err
	}
	return nil
}

// errLeaving is why a command is killed that still runs when srt ends.
var errLeaving = errors.New("srt ends")

// prepare gives the command srt's own streams, unchanged (CLI-10).
func (s *sandboxSession) prepare(cmd *runtime.Cmd) process {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Debug = s.debug
	return &sandboxProcess{cmd}
}

// sandboxProcess gives a runtime.Cmd the shape of process.
type sandboxProcess struct{ *runtime.Cmd }

func (p *sandboxProcess) Start() error { return asExitError(p.Cmd.Start()) }

func (p *sandboxProcess) Wait() error { return asExitError(p.Cmd.Wait()) }

// asExitError turns the end of a command into the command line's own type and leaves every other error alone.
func asExitError(err error) error {
	var exit *runtime.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	return &exitError{code: exit.Code, sentence: exit.Reason}
}
