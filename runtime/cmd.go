package runtime

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// Cmd is one command of a session, shaped like that of package os/exec. Sandbox.Command and Sandbox.Shell make one. It is
// single-use: a second Start is an error.
//
// Its fields are set before Start, by one goroutine, and not changed after it. Key may be called at any time; Signal, Kill,
// Pid and InCallersGroup from any goroutine once Start has returned (LIB-50).
type Cmd struct {
	// Path is the program: a name that is looked up on the PATH of Env inside the sandbox, or a path with a slash.
	Path string
	// Args are its arguments, Args[0] included, delivered as given (LIB-11).
	Args []string
	// Env is the environment that the command's own is made from; nil is the caller's. Denied variables are removed
	// and the sandbox's own added (NET-90). A NUL byte in an entry is an error.
	Env []string
	// Dir is the working directory, absolute; empty is the caller's. Relative entries of the settings are taken from it. It
	// must exist; where the settings hide it, the command starts in its home or at the top instead, with a warning (FS-49).
	Dir string
	// ShellPath is the shell of a script (Sandbox.Shell): a path, or a name that is looked up on the caller's PATH. Empty is
	// bash, or /bin/sh where there is none.
	ShellPath string

	// Stdin, Stdout and Stderr are the standard streams; nil is the null device. An *os.File is passed on as it is and stays
	// the caller's to close. Anything else is copied through a pipe, and Wait waits for the copying. Equal, comparable values
	// of Stdout and Stderr share one descriptor, and at most one goroutine at a time calls Write.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Cancel is called when the command's context ends while it runs; nil kills the whole tree (LIB-17). If it returns
	// os.ErrProcessDone, the end of the context does not count.
	Cancel func() error
	// WaitDelay bounds how long the command may live after its context has ended, before it is killed, and how long Wait
	// waits for copying after the end of the command or of the context, whichever was first. 0 is no bound.
	WaitDelay time.Duration

	// ID is the attribution key of the command, by which its violations are found. Empty draws a random one (VIO-1).
	ID string
	// Text is what the command is called in violations and what ignoreViolations matches. Empty is the script, or the words
	// joined by spaces.
	Text string
	// Override changes the session's configuration for this command alone (LIB-13). It is read by Start.
	Override *config.Override
	// AllowDomains are hosts that this command may reach beyond those of the session, from Start to its end (LIB-31).
	AllowDomains []string
	// Debug adds SRT_DEBUG=true to the environment (CLI-2).
	Debug bool

	sandbox *Sandbox
	ctx     context.Context
	script  string // of Shell
	err     error  // why the command cannot be started at all

	prepared *prepared // by Prepare; nil for a command of Start

	drawKey sync.Once
	key     string

	// From Start to the end.
	state    *state         // in force when the launch began (LIB-16)
	cfg      *config.Config // of this command: the state's, with the override
	withheld                // credentials that are kept from the command
	streams  streams
	known    bool          // to the store
	disallow func()        // takes AllowDomains back; nil: there are none
	stop     func() bool   // ends the watch over the context
	stopped  chan struct{} // closed when interrupt has returned, or never will be called
	ended    chan struct{} // closed when nothing is left of the command
	// What the command ended with, of ended, and what its context did to it, of stopped.
	code        int
	waitErr     error
	interrupted interruption

	mu      sync.Mutex
	claimed bool // Start or Prepare was called
	waited  bool // Wait was
	process process
	left    bool               // the session has nothing of it any more, and
	refused []violation.Record // this is what it was refused last
}

// process is a started command, as a platform's backend sees it.
type process interface {
	// wait returns the exit status, *ns.ExecError's meaning as *ExitError, or why the sandbox itself ended. When it returns,
	// nothing that the launch made on the host is left (LIB-18). It is called once.
	wait() (int, error)
	pid() int
	signal(syscall.Signal) error
	inCallersGroup() bool
	kill() error
}

// errNotStarted is what is asked of a command too early.
var errNotStarted = errors.New("the command was not started; call Start first")

// Command prepares a program with exactly these arguments; no shell is involved (LIB-11). When ctx ends, every process
// of the command is killed. It panics if ctx is nil.
func (s *Sandbox) Command(ctx context.Context, name string, arg ...string) *Cmd {
	if ctx == nil {
		panic("runtime: nil context for a command")
	}
	return &Cmd{Path: name, Args: append([]string{name}, arg...), sandbox: s, ctx: ctx}
}

// Shell prepares a script for bash as found on the caller's PATH, or for /bin/sh where there is none (CLI-8); ShellPath
// chooses another shell.
func (s *Sandbox) Shell(ctx context.Context, script string) *Cmd {
	shell, err := findShell("")
	c := s.Command(ctx, shell, "-c", script)
	c.script, c.err = script, err
	return c
}

// findShell gives the absolute path of a shell, by name or path; empty is the default one.
func findShell(name string) (string, error) {
	const usual = "bash"
	shell, err := exec.LookPath(cmp.Or(name, usual))
	if err == nil && filepath.IsAbs(shell) {
		return shell, nil
	}
	if name != "" {
		if err == nil || errors.Is(err, exec.ErrDot) {
			return name, fmt.Errorf("the shell %q would be found in the working directory; give its absolute path", name)
		}
		return name, fmt.Errorf("Shell '%s' not found in PATH", name)
	}
	if _, err := os.Stat(plainShell); err != nil {
		return usual, fmt.Errorf("Shell 'bash' not found in PATH, and there is no %s", plainShell)
	}
	return plainShell, nil
}

// plainShell is on every POSIX system.
const plainShell = "/bin/sh"

// keyBytes is the size of a random attribution key (VIO-1): 128 bits, which nobody guesses.
const keyBytes = 16

// Key is the attribution key of the command: its ID, or a random one that is drawn once. ID is not changed after the first
// call.
func (c *Cmd) Key() string {
	c.drawKey.Do(func() {
		if c.key = c.ID; c.key == "" {
			random := make([]byte, keyBytes)
			rand.Read(random) // never fails (crypto/rand)
			c.key = base64.RawURLEncoding.EncodeToString(random)
		}
	})
	return c.key
}

// text is what the command is called.
func (c *Cmd) text() string {
	switch {
	case c.Text != "":
		return c.Text
	case c.script != "":
		return c.script
	}
	return strings.Join(c.Args, " ")
}

// begun gives the process, nil before Start has returned.
func (c *Cmd) begun() process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Signal sends a signal to the command's process group. After the command has ended it returns os.ErrProcessDone.
func (c *Cmd) Signal(sig os.Signal) error {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not a signal of this system", sig)
	}
	p := c.begun()
	if p == nil {
		return errNotStarted
	}
	return p.signal(n)
}

// Kill ends every process of the command at once. After the command has ended it returns os.ErrProcessDone.
func (c *Cmd) Kill() error {
	p := c.begun()
	if p == nil {
		return errNotStarted
	}
	return p.kill()
}

// Pid is the process id, as the host sees it, of the process at the root of the command's tree: on Linux pid 1 of its
// sandbox. It is 0 before Start has returned, and may be another process's once the command has ended.
func (c *Cmd) Pid() int {
	p := c.begun()
	if p == nil {
		return 0
	}
	return p.pid()
}

// InCallersGroup tells whether the command is in the caller's process group, as in a shell's pipeline: what the terminal
// sends to the one it sends to the other.
func (c *Cmd) InCallersGroup() bool {
	p := c.begun()
	return p != nil && p.inCallersGroup()
}
