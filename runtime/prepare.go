package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Launch is a prepared command, for callers that have their own way of spawning: a library for pseudo-terminals, a
// supervisor, a runtime of another language. They start Path with Args (Args[0] included), Env and Dir, with standard streams
// of their own, and with Files as descriptors 3, 4 and so on, as os/exec does with ExtraFiles.
//
// The process stands for the command. Its standard streams are the command's, and are held to the same rules as those of
// [Cmd.Start] (*StreamError). It ends with the command's exit status, 128+n for signal n, once all that the command started
// is gone and what the launch made on the host is removed; with 126, 127 or 1 and a line on standard error if there was no
// command to run. Signals that it is sent go to the command's process group. When it is killed, so is the sandbox, and when
// the process of the session ends, both do. If srt killed the command, because its context ended for example, the status is
// 137, with a line that says why.
//
// It is the caller's own program, executed anew from a descriptor (so nobody can have exchanged it), and takes some 7 ms to
// start. Package runtime recognises it before main runs. Initialisers of packages that come before, by the
// order of import paths, do run in it: they should have no effects that show.
//
// Where the process leads a session whose controlling terminal is its standard input, as libraries for pseudo-terminals
// arrange, it hands the terminal over: the command leads a session of its own on it, with job control, keys that send
// signals, changes of size, and SIGHUP at the end, as if it had been spawned there itself. Spawned into the caller's own
// process group the command has the place on the terminal that Start would give it. Anywhere else a terminal is for reading
// and writing only: keys that send signals work, by way of the process; job control and /dev/tty do not.
//
// What does not reach the command, since it is a child of the session's process: the resource limits, priority, umask,
// control group and signal dispositions of the process that was spawned. Another user or group than the session's is refused.
// SIGSTOP stops the process alone. SIGTSTP is passed on, but a command without a terminal is not stopped by it unless it
// handles it (an orphaned process group, setpgid(2)). SIGURG is not passed on.
//
// A Launch is a value of one command and serves for one process; a second one is refused. Release is safe for concurrent use.
type Launch struct {
	// Path is the program to execute, absolute, and valid only in the process to be: it leads to one of Files.
	Path string
	// Dir is the working directory, absolute.
	Dir string
	// Args and Env hold nothing of the command and no secret: they show in process listings. Env is never empty.
	Args, Env []string
	// Files are owned by the Launch and closed by Release.
	Files []*os.File

	prepared *prepared
}

// errPrepared is Wait for a command that was prepared.
var errPrepared = errors.New("the command was prepared; wait for the process that was spawned for it, then release the launch")

// Prepare readies the command for a process that the caller spawns itself, see [Launch]. What can be found wrong beforehand
// is: the errors are those of Start, and Stdin, Stdout and Stderr, which the process brings, must not be set.
//
// The launch begins when the process begins, and is made under the configuration that is in force then (LIB-16): an update
// between Prepare and that counts. Args, Env, Dir and AllowDomains are fixed by Prepare; Env and Dir are the caller's of now
// where they were not set, and are filled in. The list of AllowDomains is in force from Prepare to Release. So may be one by
// [Sandbox.AllowDomains] under Key.
//
// Key may be called at any time; Kill, Signal, Pid and Violations answer once the command runs. Wait is an error. The end of
// the context, Shutdown and Close make the launch unusable, if no process has begun; one that has is treated as by Start.
//
// Release must be called, whether the launch was used or not.
func (c *Cmd) Prepare() (*Launch, error) {
	if !c.claim() {
		return nil, errUsed
	}
	l, err := c.ready()
	if err != nil {
		c.streams.abandon() // of StdinPipe and its siblings
		return nil, err
	}
	return l, nil
}

// ready does the work of Prepare.
func (c *Cmd) ready() (*Launch, error) {
	if err := c.misused(); err != nil {
		return nil, err
	}
	for i, set := range [...]bool{c.Stdin != nil, c.Stdout != nil, c.Stderr != nil} {
		if set {
			name := [...]string{"Stdin", "Stdout", "Stderr"}[i]
			return nil, &LaunchError{"open the streams", c.Path, fmt.Errorf("%s is set, but a prepared command has the standard "+
				"streams of the process that is spawned for it. Give it to that process", name)}
		}
	}
	if err := c.chooseShell(); err != nil {
		return nil, &LaunchError{"find the shell", c.Path, err}
	}
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	if err := c.configure(); err != nil { // to be found wrong now; what counts is chosen when the process begins
		return nil, &LaunchError{"apply the override", c.Path, err}
	}
	if err := c.settle(); err != nil {
		return nil, &LaunchError{"prepare", c.Path, err}
	}
	l, err := c.await()
	if err != nil && !errors.Is(err, ErrClosed) {
		err = &LaunchError{"prepare", c.Path, err}
	}
	return l, err
}

// settle fixes what the command is started with: the caller may change its own meanwhile.
func (c *Cmd) settle() error {
	if c.Env == nil {
		c.Env = os.Environ()
	}
	cwd, _, err := surroundings(c.Dir, c.Env)
	if err != nil {
		return err
	}
	c.Dir, c.Args, c.Env, c.AllowDomains = cwd, slices.Clone(c.Args), slices.Clone(c.Env), slices.Clone(c.AllowDomains)
	return nil
}

// Release ends what the launch is for: no process can use it any more, a command that still runs is killed, its AllowDomains
// are taken back and Files are closed. When it returns nothing is left of it in this process. It is idempotent, and is called
// after the spawned process has ended, or instead of spawning one, but not by the command's Cancel, whose return it waits for.
func (l *Launch) Release() error {
	if l.prepared == nil {
		return nil // none of Prepare's: nothing was made
	}
	return l.prepared.release(l.Files)
}

// revokeAll makes the launches of all prepared commands unusable: the session takes no more.
func (s *Sandbox) revokeAll() {
	s.mu.Lock()
	list := make([]*prepared, 0, len(s.prepared))
	for p := range s.prepared {
		list = append(list, p)
	}
	s.mu.Unlock()
	for _, p := range list {
		p.revoke(ErrClosed)
	}
}
