package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// supervise starts the command, passes signals on to it and returns the status srt ends with (CLI-12 to CLI-16).
func (e *execution) supervise(p process) int {
	// Most of the set-up happens in here. A command that had been started all the same dies with its sandbox.
	started, sig := await(e, e.app.grace, func() result[process] { return result[process]{p, p.Start()} })
	switch {
	case sig != nil:
		return e.interrupted(*sig)
	case started.err != nil:
		return e.status(started.err)
	}
	e.app.timing(e.log, "command started")
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()

	var (
		deadline <-chan time.Time // set by the first signal that escalates
		fatal    forwarded        // that signal
		killed   bool             // the deadline passed and the sandbox was killed for it
	)
	for {
		select {
		case err := <-ended:
			e.app.timing(e.log, "command ended")
			if killed {
				return fatal.status()
			}
			return e.ended(err)
		case caught := <-e.signals:
			sig := lookUp(caught)
			if e.app.terminalSends(sig, p) {
				continue
			}
			e.forward(p, sig)
			if sig.escalates && deadline == nil {
				fatal, deadline = sig, time.After(e.app.grace)
			}
		case <-deadline:
			err := p.Kill()
			if errors.Is(err, os.ErrProcessDone) {
				deadline = nil // it has ended by itself; what it ended with is on its way
				continue
			}
			killed = true
			if err != nil {
				return e.app.fail(fmt.Errorf("the sandbox could not be killed after %s: %w", fatal.name, err))
			}
		}
	}
}

func (e *execution) forward(p process, sig forwarded) {
	e.log.Debug("forwarding " + sig.name)
	if err := p.Signal(sig.signal); err != nil {
		// The command has just ended, or the deadline will end it.
		e.log.Debug("forwarding "+sig.name+" failed", "error", err)
	}
}

// ended turns the end of a command that had started into srt's exit status. An error that is no status says what ended
// the sandbox instead: "Process killed by signal: SIGKILL" (CLI-16).
func (e *execution) ended(err error) int {
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return e.status(err)
	}
	fmt.Fprintln(e.app.stderr, err)
	return exitFailure
}

// status turns what Start or Wait returned into srt's exit status, and says why if nobody else has.
func (e *execution) status(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.sentence != "" {
			e.app.fail(exit)
		}
		return exit.code
	}
	return e.app.fail(err)
}
