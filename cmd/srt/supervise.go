package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// supervise starts the command, passes signals on to it and returns the status srt ends with (CLI-12 to CLI-16).
func (e *execution) supervise(p process) int {
	// Most of the set-up happens in here. A command that had been started all the same dies with its sandbox.
	started, stopped := await(e, e.app.grace, func() result[process] { return result[process]{p, p.Start()} })
	switch {
	case stopped != nil:
		return e.app.fail(stopped)
	case started.err != nil:
		return e.status(started.err)
	}
	e.app.timing(e.log, "command started")
	e.prompt.attach(p)
	defer e.prompt.end()
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	s := &supervision{execution: e, process: p}
	for {
		select {
		case err := <-ended:
			e.app.timing(e.log, "command ended")
			return s.status(err)
		case caught := <-e.signals:
			s.caught(lookUp(caught))
		case err := <-e.control.lost():
			s.lost(err)
		case <-s.deadline:
			if err := s.kill(); err != nil {
				return e.app.fail(err)
			}
		}
	}
}

// supervision is what has happened to a running command.
type supervision struct {
	*execution
	process  process
	deadline <-chan time.Time // set by what first asked for its end
	fatal    forwarded        // the signal that did
	killed   bool             // the deadline passed and the sandbox was killed for it
	failed   bool             // the control channel failed: no status of the command's counts (CLI-28)
}

// caught passes a signal on (CLI-15).
func (s *supervision) caught(sig forwarded) {
	s.prompt.interrupt() // the command must be able to take the signal
	if s.app.terminalSends(sig, s.process) {
		return
	}
	s.forward(s.process, sig)
	if sig.escalates {
		s.escalate(sig)
	}
}

// lost ends the command because its control channel has failed before the first line (CLI-28).
func (s *supervision) lost(err error) {
	s.failed = true
	s.app.fail(err)
	sig := lookUp(syscall.SIGTERM)
	s.forward(s.process, sig)
	s.escalate(sig)
}

func (s *supervision) escalate(sig forwarded) {
	if s.deadline == nil {
		s.fatal, s.deadline = sig, time.After(s.app.grace)
	}
}

// kill ends the sandbox after the deadline.
func (s *supervision) kill() error {
	err := s.process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		s.deadline = nil // it has ended by itself; what it ended with is on its way
		return nil
	}
	s.killed = true
	if err != nil {
		return fmt.Errorf("the sandbox could not be killed after %s: %w", s.fatal.name, err)
	}
	return nil
}

// status is srt's exit status after the end of the command.
func (s *supervision) status(err error) int {
	switch {
	case s.failed:
		return exitFailure
	case s.killed:
		return s.fatal.status()
	}
	return s.ended(err)
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
