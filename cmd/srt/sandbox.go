package main

import (
	"context"
	"errors"
	"os"

	"github.com/srt-sandbox/srt/runtime"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// openSession is the opener of the real command line: a sandbox of package runtime.
func openSession(ctx context.Context, cfg *config.Config, opts sessionOptions) (session, error) {
	list := []runtime.Option{
		runtime.WithLogger(opts.debug),
		runtime.WithWarnings(opts.warning),
		runtime.WithTiming(opts.timing),
		runtime.WithOwnFiles(opts.ownFiles...),
		runtime.WithOnViolation(func(event violation.Event) { opts.violation(event.Line()) }),
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

func (s *sandboxSession) Close() error { return s.sandbox.Close() }

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
