package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/internal/standin"
)

// prepared is a command that waits for the process that stands for it (package standin), and then what joins the two.
type prepared struct {
	cmd     *Cmd
	door    *net.UnixConn
	unwatch func() bool             // ends the watch over the context
	cancel  context.CancelCauseFunc // of the command's context: a launch under way ends
	caller  *standin.Caller         // set before the launch begins

	revoking sync.Once
	deaf     chan struct{} // closed when nobody is taken any more
	running  sync.WaitGroup
	aborted  atomic.Bool // the command is to be killed as soon as there is one

	releasing  sync.Once
	releaseErr error
}

// The first descriptors of the process, after its standard streams: those of Launch.Files.
const (
	doorFD    = 3
	programFD = 4
)

// Why a launch is refused to a process.
var (
	errReleased = errors.New("the launch was released")
	errTwice    = errors.New("the launch was used before; prepare the command anew for each process")
)

// expect notes a prepared command.
func (s *Sandbox) expect(p *prepared) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusing {
		return ErrClosed
	}
	if s.prepared == nil {
		s.prepared = map[*prepared]struct{}{}
	}
	s.prepared[p] = struct{}{}
	return nil
}

// expectNot forgets it.
func (s *Sandbox) expectNot(p *prepared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.prepared, p)
}

// await makes the launch and waits, in the background, for the process that uses it.
func (c *Cmd) await() (*Launch, error) {
	door, theirs, err := standin.Pair()
	if err != nil {
		return nil, err
	}
	files := []*os.File{theirs}
	undo := func() {
		_ = door.Close() // nothing was sent
		closeFiles(&files)
	}
	program, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		undo()
		return nil, fmt.Errorf("open this program, for the process that is to be spawned: %w", err)
	}
	files = append(files, os.NewFile(uintptr(program), "/proc/self/exe"))
	p := &prepared{cmd: c, door: door, deaf: make(chan struct{})}
	if err := c.allowDomains(); err != nil {
		undo()
		return nil, err
	}
	if err := c.sandbox.expect(p); err != nil {
		c.disallowDomains()
		undo()
		return nil, err
	}
	outer := c.ctx
	c.ctx, p.cancel = context.WithCancelCause(outer)
	c.prepared = p
	go p.listen()
	p.unwatch = context.AfterFunc(outer, func() { p.revoke(context.Cause(outer)) })
	return &Launch{Path: fmt.Sprintf("/proc/self/fd/%d", programFD), Dir: c.Dir, Args: standin.Args(doorFD), Env: standin.Env(), Files: slices.Clone(files), prepared: p}, nil
}

// listen takes the first process that comes and refuses the others.
func (p *prepared) listen() {
	defer close(p.deaf)
	for used := false; ; {
		caller, err := standin.Accept(p.door)
		switch {
		case errors.Is(err, standin.ErrMalformed):
			p.cmd.sandbox.opts.logger.Warn("a prepared command was refused to what came for it", "reason", err)
		case err != nil:
			return
		case used:
			caller.End(exitFailure, errTwice.Error())
			caller.Close()
		default:
			used = true
			p.caller = caller
			p.running.Add(1)
			go p.run()
		}
	}
}

// exitFailure is the status of a process for which there is no command.
const exitFailure = 1

// run is the command's life, from the moment that the process that stands for it has come.
func (p *prepared) run() {
	defer p.running.Done()
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		p.attend()
	}()
	status, text := p.verdict(p.live())
	p.caller.End(status, text)
	p.caller.Close()
	<-attended
	p.cancel(nil)
}

// live launches the command and waits for its end.
func (p *prepared) live() error {
	if err := p.refuseOthers(); err != nil {
		return err
	}
	c := p.cmd
	c.streams.files, c.streams.given = p.caller.Streams, true
	if err := c.begin(); err != nil {
		return err
	}
	if p.aborted.Load() { // before there was anything to kill
		_ = c.Kill() // may have ended by itself
	}
	p.letGo()
	_ = p.caller.Started(c.InCallersGroup()) // attend notices a process that is gone
	return c.outcome()
}

// refuseOthers refuses a process of another user: the command would run as the session's all the same.
func (p *prepared) refuseOthers() error {
	if uid, gid := os.Geteuid(), os.Getegid(); p.caller.UID != uid || p.caller.GID != gid {
		return fmt.Errorf("the process of the prepared command was spawned with user id %d and group id %d, but sandboxed commands run with those of "+
			"their session, %d and %d. Spawn it with these, or have the session in a process with those", p.caller.UID, p.caller.GID, uid, gid)
	}
	return nil
}

// letGo closes the streams that have another end, which is to see when the command closes them. Files stay, for their
// positions, and terminals.
func (p *prepared) letGo() {
	for _, f := range p.caller.Streams {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) != nil {
			continue
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO, unix.S_IFSOCK:
			f.Close()
		}
	}
}

// attend passes on what the process is sent, until it is gone, and then the command is to be.
func (p *prepared) attend() {
	for {
		sig, err := p.caller.Signal()
		if err != nil {
			p.abort(errStandInGone)
			return
		}
		_ = p.cmd.Signal(sig) // may have ended
	}
}

// errStandInGone is the end of the process that stands for the command.
var errStandInGone = errors.New("the process that was spawned for the prepared command has ended")

// abort kills the command, or ends its launch.
func (p *prepared) abort(why error) {
	p.aborted.Store(true)
	if errors.Is(p.cmd.Kill(), errNotStarted) {
		p.cancel(why)
	}
}

// verdict is what the process is to say and to end with.
func (p *prepared) verdict(err error) (status int, text string) {
	if err == nil {
		return 0, ""
	}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.Code, exit.Reason
	}
	if killed, ok := errors.AsType[*ns.KilledError](err); ok {
		return 128 + int(killed.Signal), err.Error()
	}
	if p.cmd.interrupted.killed || p.cmd.ctx.Err() != nil {
		return 128 + int(unix.SIGKILL), err.Error()
	}
	return exitFailure, err.Error()
}

// revoke lets no process use the launch from now on. One that has is not concerned.
func (p *prepared) revoke(why error) {
	p.revoking.Do(func() {
		standin.Refuse(p.door, exitFailure, why.Error())
	})
	<-p.deaf
}

// release does the work of Launch.Release.
func (p *prepared) release(files []*os.File) error {
	p.releasing.Do(func() {
		p.unwatch()
		p.revoke(errReleased)
		p.abort(errReleased)
		p.running.Wait()
		p.cancel(errReleased)
		c := p.cmd
		if c.disallow != nil {
			c.disallow()
		}
		c.sandbox.expectNot(p)
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		p.releaseErr = errors.Join(errs...)
	})
	return p.releaseErr
}

// chooseSession is the function of that name, for a command that may stand elsewhere than its caller.
func (p *prepared) chooseSession(stdin, stdout *os.File, landlockABI int) ns.Session {
	if p == nil {
		return chooseSession(stdin, stdout, landlockABI)
	}
	if p.caller.Terminal {
		return ns.SessionTerminal
	}
	pid := p.caller.PID // 0 in a pid namespace that is not below this one
	if group, err := unix.Getpgid(pid); pid > 0 && err == nil && group == unix.Getpgrp() {
		return chooseSession(stdin, stdout, landlockABI)
	}
	return ns.SessionNew // another job's terminal is not to be meddled with
}
