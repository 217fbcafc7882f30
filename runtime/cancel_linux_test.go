package runtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

var errCause = errors.New("not wanted any more")

// TestLIB17_CancelledAtEveryPoint: wherever a launch is when its context ends, the cause is what comes back, and nothing is
// left: no process, no descriptor, no goroutine.
func TestLIB17_CancelledAtEveryPoint(t *testing.T) {
	for _, c := range []struct {
		phase string
		ran   bool // the command may have begun
	}{
		{"before", false}, {"identities read", false}, {"namespaces made", false}, {"files planned", false}, {"program of", false},
		{"program done", true}, {"after", true},
	} {
		t.Run(c.phase, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			reached := c.phase == "before" || c.phase == "after"
			s := newSession(t, nil, WithTiming(func(phase string) {
				if strings.HasPrefix(phase, c.phase) {
					reached = true
					cancel(errCause)
				}
			}))
			before := leftovers{files: openFiles()}
			cmd := plain(t, s.Command(ctx, "/bin/sh", "-c", "echo ran; sleep 300"))
			var out bytes.Buffer
			cmd.Stdin, cmd.Stdout = strings.NewReader("never read"), &out
			if c.phase == "before" {
				cancel(errCause)
			}
			err := cmd.Start()
			if c.phase == "after" {
				succeed(t, err)
				cancel(errCause)
				err = cmd.Wait()
			}
			if err != errCause { //nolint:errorlint // the cause itself, not something about it
				t.Errorf("%v, want the cause", err)
			}
			if !reached {
				t.Error("the launch has no such phase")
			}
			if out.Len() > 0 && !c.ran {
				t.Errorf("the command ran: %q", out.String())
			}
			noChildren(t)
			if extra := before.extraFiles(); len(extra) > 0 {
				t.Errorf("descriptors are left: %v", extra)
			}
			if len(s.commands) != 0 {
				t.Error("the session still counts the command")
			}
		})
	}
}

// TestLIB17_PipesOfALaunchThatFails: what was made for a command that does not come to be is closed.
func TestLIB17_PipesOfALaunchThatFails(t *testing.T) {
	s := newSession(t, nil)
	before := leftovers{files: openFiles()}
	c := plain(t, s.Command(t.Context(), "/bin/true"))
	c.Dir = "relative"
	in, err := c.StdinPipe()
	succeed(t, err)
	_, err = c.StdoutPipe()
	succeed(t, err)
	c.Stderr = &bytes.Buffer{}
	var launch *LaunchError
	if err := c.Start(); !errors.As(err, &launch) || launch.Op != "start" || launch.Path != "/bin/true" {
		t.Errorf("%v", err)
	}
	if _, err := in.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the pipe: %v", err)
	}
	if extra := before.extraFiles(); len(extra) > 0 {
		t.Errorf("descriptors are left: %v", extra)
	}
}

// TestLIB17_TheWholeTreeIsKilled: no process of the command outlives its context, whatever it has done to be left alone.
func TestLIB17_TheWholeTreeIsKilled(t *testing.T) {
	s := newSession(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	r, w := pipe(t)
	c := plain(t, s.Command(ctx, "/bin/sh", "-c", `trap '' TERM HUP INT; setsid sh -c 'trap "" TERM HUP INT; echo up; sleep 300; echo more' & wait; sleep 300`))
	c.Stdout = w
	succeed(t, c.Start())
	w.Close()
	up := make([]byte, 3)
	if _, err := io.ReadFull(r, up); err != nil {
		t.Fatal(err)
	}
	cancel(errCause)
	if err := c.Wait(); err != errCause { //nolint:errorlint // the cause itself
		t.Errorf("%v", err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 { // end of file: nobody holds the other end
		t.Errorf("%q, %v", rest, err)
	}
	noChildren(t)
}

// TestLIB50_Cancel: a Cancel of the caller's takes the place of the kill, as in os/exec.
func TestLIB50_Cancel(t *testing.T) {
	refusal := errors.New("cannot")
	for _, c := range []struct {
		name, script string
		cancel       func(*Cmd) error
		delay        time.Duration
		want         func(error) bool
	}{
		{"it ends well", `trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`, (*Cmd).terminate, 0, func(err error) bool { return errors.Is(err, errCause) }},
		{"a status of its own", `trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done`, (*Cmd).terminate, 0,
			func(err error) bool { e, ok := errors.AsType[*ExitError](err); return ok && e.Code == 5 }},
		{"it does not listen", `trap '' TERM; echo up; while :; do sleep 0.01; done`, (*Cmd).terminate, 20 * time.Millisecond, func(err error) bool { return errors.Is(err, errCause) }},
		{"it is done", `echo up; read x; exit 0`, func(c *Cmd) error { return os.ErrProcessDone }, 0, func(err error) bool { return err == nil }},
		{"it cannot", `echo up; read x; exit 0`, func(*Cmd) error { return refusal }, 0, func(err error) bool { return errors.Is(err, refusal) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, nil)
			ctx, cancel := context.WithCancelCause(context.Background())
			cmd := plain(t, s.Command(ctx, "/bin/sh", "-c", c.script))
			called := make(chan struct{})
			cmd.Cancel = func() error {
				defer close(called)
				return c.cancel(cmd)
			}
			cmd.WaitDelay = c.delay
			in, err := cmd.StdinPipe()
			succeed(t, err)
			r, w := pipe(t)
			cmd.Stdout = w
			succeed(t, cmd.Start())
			w.Close()
			if _, err := io.ReadFull(r, make([]byte, 3)); err != nil {
				t.Fatal(err)
			}
			cancel(errCause)
			<-called
			in.Close()
			if err := cmd.Wait(); !c.want(err) {
				t.Errorf("%v", err)
			}
			noChildren(t)
		})
	}
}

func (c *Cmd) terminate() error { return c.Signal(syscall.SIGTERM) }

// TestLIB51_AContextThatEndsAfterTheCommandDoesNotCount: what has ended by itself has its own status.
func TestLIB51_AContextThatEndsAfterTheCommandDoesNotCount(t *testing.T) {
	s := newSession(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	c := plain(t, s.Command(ctx, "/bin/true"))
	succeed(t, c.Start())
	<-c.ended
	cancel(errCause)
	succeed(t, c.Wait())
}
