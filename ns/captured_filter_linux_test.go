package ns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// filterFile gives a filter as package seccomp has it, as data: this package knows none.
func filterFile(t *testing.T, name string) []byte {
	t.Helper()
	program, err := os.ReadFile("../seccomp/filters/" + name + "_" + runtime.GOARCH + ".bpf")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// asksNothing fails the test if a call is put to the listener before the last process under its filter is gone, and ends the
// sandbox then: nobody would answer.
func asksNothing(t *testing.T, listener *os.File, process *Process) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		fds := []unix.PollFd{{Fd: int32(listener.Fd()), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				t.Error(err)
			case fds[0].Revents&unix.POLLIN != 0:
				t.Error("a call was put to the host side")
				if err := process.Kill(); err != nil {
					t.Error(err)
				}
			}
			return
		}
	}()
	return done
}

// startUnderFilter starts a shell under the filters of a sandbox whose connections are captured. The listener is
// Process.Files[0]; what is read from r is the shell's output.
func startUnderFilter(t *testing.T, script string) (process *Process, r *os.File) {
	t.Helper()
	p := newProgram(t)
	p.LoopbackUp()
	p.ProhibitRoutes()
	p.ListenCapture(1)
	p.Undumpable()
	p.KeepCapabilities(0)
	p.NoNewPrivs()
	for _, name := range []string{"base", "namespaces", "unix-datagram"} {
		p.Filter(name, filterFile(t, name))
	}
	listener := p.FilterWithListener("network", filterFile(t, "network"))
	p.SendFiles(0, "the listener", listener)
	p.Close(listener)
	l := minimal(p, "/bin/sh", "-c", script)
	r, w := l.output(t)
	prepared, err := Prepare(&l.Config, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := prepared.AllowHands(); err != nil {
		t.Fatal(errors.Join(err, prepared.Close()))
	}
	process, err = prepared.Start(&l.Command)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeFiles(process) })
	return process, r
}

// TestNetworkFilter_ThisPackageAsksNothing_NET84: from the filter on, neither the rest of the launch program nor pid 1 makes a
// call that the filter of connections puts to the host side, which may not be serving yet: not while it hands over
// descriptors, starts the command, passes signals on, sees it stop, and reaps it and orphans.
func TestNetworkFilter_ThisPackageAsksNothing_NET84(t *testing.T) {
	process, r := startUnderFilter(t, `trap 'echo signal; exit 3' USR1
(sleep 0 &)
kill -STOP $$
echo up
while :; do sleep 0.01; done`)
	done := asksNothing(t, process.Files[0], process)
	h, err := StartHand(HandConfig{Process: process, Unrestricted: true, Listener: process.Files[0]})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	// The command stops itself at some time; a SIGCONT that comes before that is lost.
	for ready := 0; ready < 1; {
		if err := process.Signal(unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		fds := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
		if ready, err = unix.Poll(fds, 5); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(r, make([]byte, len("up\n"))); err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	// The shell may say before that of its sleep, which gets the signal too.
	if st, err := process.Wait(); err != nil || st.Code != 3 || !bytes.HasSuffix(out, []byte("signal\n")) {
		t.Errorf("%v, %v, %q; want status 3 by the signal", st, err, out)
	}
	<-done
}

// TestNetworkFilter_IsInForce: the command's own connect is put to the host side.
func TestNetworkFilter_IsInForce(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.NoNewPrivs()
	listener := p.FilterWithListener("network", filterFile(t, "network"))
	p.SendFiles(0, "the listener", listener)
	p.Close(listener)
	l := minimal(p, "/usr/bin/python3", "-I", "-S", "-c", fmt.Sprintf(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os._exit(ctypes.get_errno() if libc.syscall(%d, 0, 0, 0) else 0)`, unix.SYS_CONNECT))
	_, w := l.output(t)
	process, err := l.start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(process)
	answerOne(t, process.Files[0], unix.SYS_CONNECT, unix.EHOSTDOWN)
	if st, err := process.Wait(); err != nil || st.Code != int(unix.EHOSTDOWN) {
		t.Errorf("connect was answered %d (%v), want the host side's EHOSTDOWN (%d)", st.Code, err, unix.EHOSTDOWN)
	}
}
