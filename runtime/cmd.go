package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Cmd is one command of a session. It is single-use. Its fields are set before Start and not changed after it; Signal
// and Kill may be called from any goroutine once Start has returned.
type Cmd struct {
	// Path is the program: a name that is looked up on the PATH of Env inside the sandbox, or a path with a slash.
	Path string
	// Args are its arguments, Args[0] included.
	Args []string
	// Env is the environment that the command's own is made from; nil is the caller's. Denied variables are removed
	// and the sandbox's own added (NET-90).
	Env []string
	// Dir is the working directory, absolute; empty is the caller's. Relative entries of the settings are taken from it.
	Dir string
	// Stdin, Stdout and Stderr are the standard streams, passed on as they are; nil is the null device. They stay the
	// caller's to close.
	Stdin, Stdout, Stderr *os.File
	// Debug adds SRT_DEBUG=true to the environment (CLI-2).
	Debug bool

	sandbox *Sandbox
	ctx     context.Context
	script  string // of Shell
	err     error  // why the command cannot be started at all

	mu      sync.Mutex
	process process
	stop    func() bool
}

// process is a started command, as a platform's backend sees it.
type process interface {
	// wait returns the exit status, *ns.ExecError's meaning as *ExitError, or why the sandbox itself ended.
	wait() (int, error)
	signal(syscall.Signal) error
	inCallersGroup() bool
	kill() error
}

// ExitError is a command that ended with a status other than 0.
type ExitError struct {
	// Code is the status: 1 to 255; 128+n for a command that signal n ended; 127 for one that was not found and 126 for
	// one that cannot be executed.
	Code int
	// Reason is set for a command that could not be executed: "make: command not found".
	Reason string
}

func (e *ExitError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// LaunchError says why a command was not started. Err can be examined with errors.Is and errors.As.
type LaunchError struct {
	Name string
	Err  error
}

func (e *LaunchError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *LaunchError) Unwrap() error { return e.Err }

// Command prepares a program with exactly these arguments; no shell is involved (LIB-11). When ctx ends, every process
// of the command is killed.
func (s *Sandbox) Command(ctx context.Context, name string, arg ...string) *Cmd {
	return &Cmd{Path: name, Args: append([]string{name}, arg...), sandbox: s, ctx: ctx}
}

// Shell prepares a script for bash as found on the caller's PATH, or for /bin/sh where there is none (CLI-8).
func (s *Sandbox) Shell(ctx context.Context, script string) *Cmd {
	shell, err := exec.LookPath("bash")
	if err != nil || !filepath.IsAbs(shell) {
		shell = "/bin/sh"
		if _, err := os.Stat(shell); err != nil {
			c := s.Command(ctx, "bash")
			c.err = errors.New("Shell 'bash' not found in PATH, and there is no /bin/sh")
			return c
		}
	}
	c := s.Command(ctx, shell, "-c", script)
	c.script = script
	return c
}

// Start launches the command. When it returns nil the sandbox is complete and the command is being executed; whether
// that succeeded is known from Wait. It fails closed: on an error no process of it is left.
func (c *Cmd) Start() error {
	if c.err != nil {
		return &LaunchError{c.Path, c.err}
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if err := c.sandbox.register(c); err != nil {
		return err
	}
	p, err := c.start()
	if err != nil {
		c.sandbox.forget(c)
		return &LaunchError{c.Path, err}
	}
	c.mu.Lock()
	c.process = p
	c.mu.Unlock()
	c.stop = context.AfterFunc(c.ctx, func() { _ = p.kill() }) // may have ended by itself
	// A session that was closed meanwhile has not seen the process.
	if c.sandbox.isClosed() {
		_ = p.kill() // may have ended by itself
	}
	return nil
}

func (s *Sandbox) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Wait waits until the command and everything it started are gone. It returns nil for exit status 0, an *ExitError for
// another one, the cause of a context that ended, or an error that says what ended the sandbox.
func (c *Cmd) Wait() error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return errors.New("the command was not started")
	}
	code, err := p.wait()
	c.sandbox.forget(c)
	if !c.stop() && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	switch {
	case err != nil:
		return err
	case code != 0:
		return &ExitError{Code: code}
	}
	return nil
}

// Run is Start and Wait.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Signal sends a signal to the command's process group.
func (c *Cmd) Signal(sig os.Signal) error {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not a signal of this system", sig)
	}
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return errors.New("the command was not started")
	}
	return p.signal(n)
}

// InCallersGroup tells whether the command is in the caller's process group, as in a shell's pipeline: what the terminal
// sends to the one it sends to the other.
func (c *Cmd) InCallersGroup() bool {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	return p != nil && p.inCallersGroup()
}

// Kill ends every process of the command at once. After the command has ended it returns os.ErrProcessDone.
func (c *Cmd) Kill() error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.kill()
}
