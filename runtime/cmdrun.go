package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ExitError is a command that ended with a status other than 0. Package os/exec has a type of the same name, which only it
// can make; this one answers the same questions.
type ExitError struct {
	// Code is the status: 1 to 255; 128+n for a command that signal n ended; 127 for one that was not found and 126 for
	// one that cannot be executed.
	Code int
	// Reason is set for a command that could not be executed: "make: command not found".
	Reason string
	// Stderr is the beginning and the end of what the command wrote to standard error, if it was Output that ran it and
	// Stderr was not set.
	Stderr []byte
}

// Error says how the command ended.
func (e *ExitError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// ExitCode is the status, as Code.
func (e *ExitError) ExitCode() int { return e.Code }

// maxSignal is the greatest number of a signal (signal(7)).
const maxSignal = 64

// Signal is the signal that ended the command, if a status of 128+n stands for one. A command may also choose such a
// status, as shells do for what they ran; the two cannot be told apart.
func (e *ExitError) Signal() (sig syscall.Signal, ok bool) {
	if n := e.Code - 128; n > 0 && n <= maxSignal && e.Reason == "" {
		return syscall.Signal(n), true
	}
	return 0, false
}

// LaunchError says why a command was not started. Err can be examined with errors.Is and errors.As.
type LaunchError struct {
	Op   string // what failed: "check the command", "find the shell", "apply the override", "open the streams", "start"
	Path string // the program
	Err  error
}

// Error gives the reason, which says by itself what it is about.
func (e *LaunchError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *LaunchError) Unwrap() error { return e.Err }

// errUsed is the misuse of a Cmd that was started before.
var errUsed = errors.New("the command was already started or prepared; a Cmd is for one start: make another one")

// Start launches the command. When it returns nil the sandbox is complete and the command is being executed; whether
// that succeeded is known from Wait. It fails closed: on an error, a *LaunchError, the cause of a context that has ended or
// ErrClosed, no process, descriptor or goroutine of it is left (LIB-17).
func (c *Cmd) Start() error {
	if !c.claim() {
		return errUsed
	}
	err := c.launch()
	if err != nil {
		c.streams.abandon()
	}
	return err
}

// claim makes the command used, and tells whether it was not before.
func (c *Cmd) claim() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	free := !c.claimed
	c.claimed = true
	return free
}

// launch does the work of Start.
func (c *Cmd) launch() error {
	if err := c.misused(); err != nil {
		return err
	}
	if err := c.chooseShell(); err != nil {
		return &LaunchError{"find the shell", c.Path, err}
	}
	return c.begin()
}

// begin is the launch itself, once it is known what of.
func (c *Cmd) begin() error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	s := c.sandbox
	if err := s.register(c); err != nil {
		return err
	}
	p, err := c.confine()
	if err != nil {
		c.leave()
		return err
	}
	c.follow(p)
	return nil
}

// chooseShell puts ShellPath in its place.
func (c *Cmd) chooseShell() error {
	if c.script == "" || c.ShellPath == "" {
		return c.err
	}
	shell, err := findShell(c.ShellPath)
	c.Path, c.Args = shell, []string{shell, "-c", c.script}
	return err
}

// confine starts the process under the configuration that is in force now, and under no other (LIB-16).
func (c *Cmd) confine() (process, error) {
	s := c.sandbox
	if err := c.configure(); err != nil {
		return nil, &LaunchError{"apply the override", c.Path, err}
	}
	if err := c.streams.open(c); err != nil {
		return nil, &LaunchError{"open the streams", c.Path, err}
	}
	if err := c.allowDomains(); err != nil {
		return nil, &LaunchError{"allow domains", c.Path, err}
	}
	s.store.Register(c.Key(), c.text())
	c.known = true
	p, err := c.start()
	if err != nil {
		if ended := c.endedEarly(); ended != nil {
			return nil, ended // that is why, whatever it was that it cut short
		}
		return nil, &LaunchError{"start", c.Path, err}
	}
	// A context or a session that ended meanwhile has not seen the process.
	if err := c.endedEarly(); err != nil {
		_ = p.kill()    // may have ended by itself
		_, _ = p.wait() // says that it was killed
		return nil, err
	}
	return p, nil
}

// endedEarly tells why the command is not to be started any more: its context has ended, or its session is closing.
func (c *Cmd) endedEarly() error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.sandbox.isClosing() {
		return ErrClosed
	}
	return nil
}

// follow watches over a started process until its end.
func (c *Cmd) follow(p process) {
	c.ended, c.stopped = make(chan struct{}), make(chan struct{})
	c.mu.Lock()
	c.process = p
	c.mu.Unlock()
	c.streams.begin()
	c.stop = context.AfterFunc(c.ctx, c.interrupt)
	go func() {
		c.code, c.waitErr = p.wait()
		if c.stop() {
			close(c.stopped) // an end of the context that comes later does not count
		}
		c.leave()
		close(c.ended)
	}()
}

// leave takes back what the session holds for the command. Nothing is left of it, or it never came to be.
func (c *Cmd) leave() {
	c.withheld = withheld{} // fakes of files can be large
	c.disallowDomains()
	if c.known {
		c.keepViolations()
	}
	c.sandbox.forget(c)
}

// interrupt ends the command because its context has ended.
func (c *Cmd) interrupt() {
	defer close(c.stopped)
	c.interrupted.at = time.Now()
	cancel := c.Cancel
	if cancel == nil {
		cancel, c.interrupted.killed = c.Kill, true
	}
	err := cancel()
	switch {
	case err == nil:
		c.interrupted.err = context.Cause(c.ctx)
	case !errors.Is(err, os.ErrProcessDone):
		c.interrupted.err = fmt.Errorf("cancel the command: %w", err)
	}
	if c.WaitDelay <= 0 {
		return
	}
	delay := time.NewTimer(c.WaitDelay)
	defer delay.Stop()
	select {
	case <-c.ended:
	case <-delay.C:
		c.interrupted.killed = c.Kill() == nil || c.interrupted.killed
	}
}

// interruption is what the end of the context did to a running command. The zero value is nothing.
type interruption struct {
	at     time.Time
	err    error // the context's cause, or why Cancel failed
	killed bool  // srt killed the command for it
}

// Wait waits until the command and everything it started are gone, what the launch made on the host is removed, and the
// streams are copied (LIB-18). It returns nil for exit status 0, an *ExitError for another one, or an error that says what
// ended the sandbox. When the command was ended because its context has, that is the context's cause; a command that a
// Cancel of the caller's has made exit with a status of its own gives that status. Like os/exec it returns
// exec.ErrWaitDelay when copying took longer than WaitDelay, and an error of copying, if there is nothing else to say.
//
// It must be called once, after Start has returned nil.
func (c *Cmd) Wait() error {
	c.mu.Lock()
	p, waited := c.process, c.waited
	c.waited = c.waited || p != nil
	c.mu.Unlock()
	switch {
	case c.prepared != nil:
		return errPrepared
	case p == nil:
		return errNotStarted
	case waited:
		return errors.New("Wait was already called for this command")
	}
	return c.outcome()
}

// outcome waits for the end of a command that was started, and says how it ended.
func (c *Cmd) outcome() error {
	<-c.ended
	<-c.stopped
	copied := c.streams.finish(c.WaitDelay, c.interrupted.at)
	own := c.waitErr == nil && c.code != 0 && !c.interrupted.killed // a status that it chose
	switch {
	case c.interrupted.err != nil && !own:
		return c.interrupted.err
	case c.waitErr != nil:
		return c.waitErr
	case c.code != 0:
		return &ExitError{Code: c.code}
	}
	return copied
}

// Run is Start and Wait.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}
