package runtime

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPrepare_KilledProcess: its death kills all of the sandbox.
func TestPrepare_KilledProcess_LIB17(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	cancelled := false
	c := sh(t, s, `trap '' TERM HUP INT; (trap '' TERM HUP INT; setsid sleep 300) & echo up; sleep 300`)
	c.Cancel = func() error { cancelled = true; return nil } // is for the context alone
	l := prepare(t, c)
	p := l.spawn()
	p.Stdout = w
	succeed(t, p.Start())
	w.Close()
	awaitUp(t, r)
	succeed(t, p.Process.Kill())
	_ = p.Wait()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 { // end of file: nobody is left
		t.Errorf("%q, %v", rest, err)
	}
	succeed(t, l.Release())
	if cancelled {
		t.Error("Cancel was called")
	}
	noChildren(t)
}

// TestPrepare_KilledDuringTheLaunch: at every point of a launch, the end of the process is the end of the command.
func TestPrepare_KilledDuringTheLaunch_LIB17(t *testing.T) {
	for _, phase := range []string{"identities read", "namespaces made", "files planned", "program done"} {
		spawned, killed := make(chan *exec.Cmd, 1), make(chan struct{})
		s := newSession(t, nil, WithTiming(func(now string) {
			if now == phase {
				p := <-spawned
				_ = p.Process.Kill()
				_ = p.Wait()
				close(killed)
			}
		}))
		r, w := pipe(t)
		l := prepare(t, sh(t, s, "sleep 300; echo ran"))
		p := l.spawn()
		p.Stdout = w
		succeed(t, p.Start())
		spawned <- p
		<-killed
		w.Close()
		if out, err := io.ReadAll(r); err != nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", phase, out, err)
		}
		succeed(t, l.Release())
		noChildren(t)
		if len(s.commands) > 0 || len(s.prepared) > 0 {
			t.Errorf("%s: the session still counts the command", phase)
		}
	}
}

func TestPrepare_Release(t *testing.T) {
	s := newSession(t, nil)
	before := leftovers{files: openFiles()}
	for i := range 3 { // never used, used, and both calls at once
		l := prepare(t, sh(t, s, "exit 3"))
		if i == 1 {
			if code := exitCode(t, l.spawn().Run()); code != 3 {
				t.Errorf("status %d", code)
			}
		}
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if len(s.prepared) > 0 || len(s.commands) > 0 {
			t.Error("the session still counts it")
		}
	}
	if extra := before.extraFiles(); len(extra) > 0 {
		t.Errorf("descriptors are left: %v", extra)
	}
	if err := new(Launch).Release(); err != nil {
		t.Error(err)
	}
}

// spawnCopy starts a launch whose own files may be closed by the time, as by a process that has inherited them.
func spawnCopy(t *testing.T, l *Launch) *exec.Cmd {
	t.Helper()
	p := l.spawn()
	p.ExtraFiles = nil
	for _, f := range l.Files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		succeed(t, err)
		c := os.NewFile(uintptr(fd), f.Name())
		t.Cleanup(func() { c.Close() })
		p.ExtraFiles = append(p.ExtraFiles, c)
	}
	return p
}

// TestPrepare_Unusable: a process that comes too late says why, and runs nothing.
func TestPrepare_Unusable(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *Sandbox, l *Launch, cancel context.CancelCauseFunc) error
		want string
	}{
		{"released", func(_ *Sandbox, l *Launch, _ context.CancelCauseFunc) error { return l.Release() }, errReleased.Error()},
		{"LIB-35 closed", func(s *Sandbox, _ *Launch, _ context.CancelCauseFunc) error { return s.Close() }, ErrClosed.Error()},
		{"LIB-51 shut down", func(s *Sandbox, _ *Launch, _ context.CancelCauseFunc) error { return s.Shutdown(context.Background()) }, ErrClosed.Error()},
		{"LIB-17 cancelled", func(_ *Sandbox, l *Launch, cancel context.CancelCauseFunc) error {
			cancel(errCause)
			<-l.prepared.deaf
			return nil
		}, errCause.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, nil)
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			l := prepare(t, plain(t, s.Command(ctx, "/bin/echo", "ran")))
			p := spawnCopy(t, l)
			succeed(t, c.end(s, l, cancel))
			var errs bytes.Buffer
			p.Stderr = &errs
			out, err := p.Output()
			if exitCode(t, err) != 1 || len(out) > 0 || !strings.Contains(errs.String(), c.want) {
				t.Errorf("%v, %q, %q", err, out, errs.String())
			}
		})
	}
}

// TestPrepare_CancelledWhileItRuns: the context ends the command as it does one of Start.
func TestPrepare_CancelledWhileItRuns_LIB17(t *testing.T) {
	s := newSession(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r, w := pipe(t)
	var errs bytes.Buffer
	c := plain(t, s.Command(ctx, "/bin/sh", "-c", "echo up; sleep 300"))
	p := prepare(t, c).spawn()
	p.Stdout, p.Stderr = w, &errs
	succeed(t, p.Start())
	awaitUp(t, r)
	awaitRunning(c)
	if c.Pid() == p.Process.Pid {
		t.Errorf("Pid %d is that of the process", c.Pid())
	}
	cancel(errCause)
	if code := exitCode(t, p.Wait()); code != 137 || errs.String() != "srt: "+errCause.Error()+"\n" {
		t.Errorf("%d, %q", code, errs.String())
	}
}

// TestPrepare_ReleasedDuringTheLaunch: a launch may be released at every point, and nothing is left.
func TestPrepare_ReleasedDuringTheLaunch_LIB18(t *testing.T) {
	for _, phase := range []string{"identities read", "namespaces made", "files planned", "program done"} {
		released := make(chan error, 1)
		launches := make(chan *Launch, 1)
		s := newSession(t, nil, WithTiming(func(now string) {
			if now == phase {
				l := <-launches
				go func() { released <- l.Release() }()
				for !l.prepared.aborted.Load() { // Release waits for the launch, which is to end now
					time.Sleep(time.Millisecond)
				}
			}
		}))
		before := leftovers{files: openFiles()}
		c := sh(t, s, "sleep 300; echo ran")
		c.Cancel = func() error { return nil } // Release does not depend on it
		l := prepare(t, c)
		p := l.spawn()
		var errs bytes.Buffer
		p.Stderr = &errs
		r, w := pipe(t)
		p.Stdout = w
		succeed(t, p.Start())
		launches <- l
		succeed(t, <-released)
		if code := exitCode(t, p.Wait()); code != 137 || !strings.HasPrefix(errs.String(), "srt: ") {
			t.Errorf("%s: %d, %q", phase, code, errs.String())
		}
		w.Close()
		if out, err := io.ReadAll(r); err != nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", phase, out, err)
		}
		r.Close()
		noChildren(t)
		if extra := before.extraFiles(); len(extra) > 0 {
			t.Errorf("%s: descriptors are left: %v", phase, extra)
		}
	}
}

// TestPrepare_CancelledDuringTheLaunch: the process says why, and nothing is left.
func TestPrepare_CancelledDuringTheLaunch_LIB17(t *testing.T) {
	for _, phase := range []string{"identities read", "namespaces made", "files planned", "program done"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		s := newSession(t, nil, WithTiming(func(now string) {
			if now == phase {
				cancel(errCause)
			}
		}))
		var errs bytes.Buffer
		l := prepare(t, plain(t, s.Command(ctx, "/bin/sh", "-c", "sleep 300; echo ran")))
		p := l.spawn()
		p.Stderr = &errs
		out, err := p.Output()
		if code := exitCode(t, err); code != 137 || len(out) > 0 || errs.String() != "srt: "+errCause.Error()+"\n" {
			t.Errorf("%s: %d, %q, %q", phase, code, out, errs.String())
		}
		succeed(t, l.Release())
		noChildren(t)
		if len(s.commands) > 0 {
			t.Errorf("%s: the session still counts the command", phase)
		}
	}
}

// TestPrepare_CloseAndShutdownWhileItRuns: a command that runs outlives Close, and Shutdown waits for it.
func TestPrepare_CloseAndShutdownWhileItRuns_LIB35_LIB51(t *testing.T) {
	for name, end := range map[string]func(*Sandbox) error{
		"Close": (*Sandbox).Close, "Shutdown": func(s *Sandbox) error { return s.Shutdown(context.Background()) },
	} {
		s := newSession(t, nil)
		r, w := pipe(t)
		in, feed := pipe(t)
		c := sh(t, s, "echo up; read -r line; exit 8")
		p := prepare(t, c).spawn()
		p.Stdin, p.Stdout = in, w
		succeed(t, p.Start())
		awaitUp(t, r)
		awaitRunning(c) // else Close ends the launch
		ended := make(chan error, 1)
		go func() { ended <- end(s) }()
		if name == "Close" {
			succeed(t, <-ended)
		}
		_, err := feed.WriteString("on\n")
		succeed(t, err)
		if code := exitCode(t, p.Wait()); code != 8 {
			t.Errorf("%s: status %d", name, code)
		}
		if name != "Close" {
			succeed(t, <-ended)
		}
	}
}

// TestPrepare_EndsAtAnyMoment: whoever ends it, and whenever, nothing is left.
func TestPrepare_EndsAtAnyMoment_LIB17(t *testing.T) {
	s := newSession(t, nil)
	before := leftovers{files: openFiles()}
	ends := []func(p *exec.Cmd, l *Launch, cancel context.CancelFunc){
		func(p *exec.Cmd, _ *Launch, _ context.CancelFunc) { _ = p.Process.Kill() },
		func(_ *exec.Cmd, l *Launch, _ context.CancelFunc) { _ = l.Release() },
		func(_ *exec.Cmd, _ *Launch, cancel context.CancelFunc) { cancel() },
		func(p *exec.Cmd, _ *Launch, _ context.CancelFunc) { _ = p.Process.Signal(syscall.SIGTERM) },
	}
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for i := range 15 {
				ctx, cancel := context.WithCancel(context.Background())
				c := s.Command(ctx, "/bin/sh", "-c", "exec sleep 300")
				c.Env, c.Dir = []string{"PATH=/usr/bin:/bin", "HOME="}, "/"
				l, err := c.Prepare()
				if err != nil {
					t.Error(err)
					cancel()
					return
				}
				p := l.spawn()
				if err := p.Start(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(i) * 2 * time.Millisecond) // to be at another point each time
				ends[(worker+i)%len(ends)](p, l, cancel)
				if p.Wait() == nil {
					t.Error("a command that was ended has succeeded")
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	workers.Wait()
	noChildren(t)
	if extra := before.extraFiles(); len(extra) > 0 {
		t.Errorf("descriptors are left: %v", extra)
	}
	if len(s.commands) > 0 || len(s.prepared) > 0 {
		t.Error("the session still counts commands")
	}
}
