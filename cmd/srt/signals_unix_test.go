//go:build unix

package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSignals(t *testing.T) {
	send := func(sig syscall.Signal) { _ = syscall.Kill(os.Getpid(), sig) }
	diesBySignal := func(f *fake) func(os.Signal) {
		return func(sig os.Signal) { f.ended <- &exitError{code: 128 + int(sig.(syscall.Signal))} }
	}
	handles := func(f *fake) func(os.Signal) {
		return func(os.Signal) { f.ended <- &exitError{code: 5} }
	}
	ignores := func(*fake) func(os.Signal) { return nil }
	tests := []struct {
		name    string
		signal  syscall.Signal
		command func(*fake) func(os.Signal)
		status  int
		calls   string
	}{
		{"CLI-15 SIGTERM ends it", syscall.SIGTERM, diesBySignal, 143, "open,start,signal terminated,close"},
		{"CLI-15 SIGINT ends it", syscall.SIGINT, diesBySignal, 130, "open,start,signal interrupt,close"},
		{"CLI-15 the command chooses", syscall.SIGTERM, handles, 5, "open,start,signal terminated,close"},
		{"CLI-15 SIGTERM escalates", syscall.SIGTERM, ignores, 143, "open,start,signal terminated,kill,close"},
		{"CLI-15 SIGHUP escalates", syscall.SIGHUP, ignores, 129, "open,start,signal hangup,kill,close"},
		{"CLI-15 SIGQUIT escalates", syscall.SIGQUIT, ignores, 131, "open,start,signal quit,kill,close"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			f.onWait = func() { send(tt.signal) }
			f.onSignal = tt.command(f)
			status, _, stderr := cli(t, f, "exec", "x")
			if calls := strings.Join(f.calls, ","); status != tt.status || stderr != "" || calls != tt.calls {
				t.Errorf("got %d, %q, %s; want %d, silence, %s", status, stderr, calls, tt.status, tt.calls)
			}
		})
	}
}

// TestKillOfWhatHasEnded: a command that has ended by itself, and whose sandbox is still being cleared away when the grace is over, has
// its own status.
func TestKillOfWhatHasEnded(t *testing.T) {
	f := newFake()
	f.onWait = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }
	f.onSignal = func(os.Signal) {}
	f.onKill = func() error {
		f.ended <- &exitError{code: 7}
		return os.ErrProcessDone
	}
	status, _, stderr := cli(t, f, "exec", "x")
	if calls := strings.Join(f.calls, ","); status != 7 || stderr != "" || calls != "open,start,signal terminated,kill,close" {
		t.Errorf("CLI-15: got %d, %q, %s", status, stderr, calls)
	}
}

func TestSIGINTNeverEscalates(t *testing.T) {
	f := newFake()
	f.onWait = func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }
	f.onSignal = func(os.Signal) {
		time.AfterFunc(50*time.Millisecond, func() { f.ended <- nil }) // Ten times the grace of these tests.
	}
	status, _, _ := cli(t, f, "exec", "x")
	if calls := strings.Join(f.calls, ","); status != 0 || calls != "open,start,signal interrupt,close" {
		t.Errorf("CLI-15: got %d, %s", status, calls)
	}
}

func TestSignalBeforeTheCommand(t *testing.T) {
	for _, sig := range forwardedSignals {
		t.Run("CLI-14 "+sig.name, func(t *testing.T) {
			f := newFake()
			f.onOpen = func(ctx context.Context) {
				_ = syscall.Kill(os.Getpid(), sig.signal)
				<-ctx.Done() // A set-up that gives up when it is told to.
			}
			f.openErr = context.Canceled
			status, _, stderr := cli(t, f, "exec", "x")
			if calls := strings.Join(f.calls, ","); status != 1 || stderr != "Error: interrupted by "+sig.name+"\n" || calls != "open" {
				t.Errorf("got %d, %q, %s; want 1, one line, open", status, stderr, calls)
			}
		})
	}
}

func TestSetUpThatFinishesAnyway(t *testing.T) {
	f := newFake()
	f.onOpen = func(ctx context.Context) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-ctx.Done()
	}
	status, _, _ := cli(t, f, "exec", "x")
	if calls := strings.Join(f.calls, ","); status != 1 || calls != "open,close" {
		t.Errorf("CLI-14: got %d, %s; want 1 and a sandbox that is removed", status, calls)
	}
}

func TestSignalDuringStart(t *testing.T) {
	f := newFake()
	f.onStart = func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		<-f.ctx.Done() // A start that gives up when it is told to.
	}
	f.startErr = context.Canceled
	status, _, stderr := cli(t, f, "exec", "x")
	if calls := strings.Join(f.calls, ","); status != 1 || stderr != "Error: interrupted by SIGTERM\n" || calls != "open,start,close" {
		t.Errorf("CLI-14: got %d, %q, %s; want 1, one line, open,start,close", status, stderr, calls)
	}
}
