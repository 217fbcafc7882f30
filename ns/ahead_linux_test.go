package ns

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What is before Ahead is done before the program is written to its end, and what it opened is no part of the rest.
func TestAheadIsRunWhileTheRestIsWritten(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.Listen(0, 3128, 1080)
	left := p.Call("open", "/", syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str("/"), Int(unix.O_PATH), Int(0)) // and not closed
	p.Ahead()
	c := minimal(p, "/bin/sh", "-c", "ls -l /proc/self/fd; cat /proc/net/tcp")
	r, w := c.output(t)
	prepared, err := Prepare(&c.Config, p)
	if err != nil {
		t.Fatal(err)
	}
	m, fds, err := prepared.process.receive() // nobody has given the word yet
	if err != nil || m[0] != msgFile || len(fds) != 4 {
		t.Fatalf("message %v with %d descriptors, %v; want the listeners", m, len(fds), err)
	}
	prepared.process.store(int(m[1]), fds)
	p.Call("stat", "what is closed", syscall.SYS_FCHDIR, left.Arg())
	p.OnlyIf(left)
	proc, err := prepared.Start(&c.Command)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(proc)
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	if st, err := proc.Wait(); err != nil || st.Code != 0 {
		t.Errorf("%v, %v", st, err)
	}
	if !strings.Contains(out, "0100007F:0C38") { // 127.0.0.1:3128
		t.Errorf("nothing listens:\n%s", out)
	}
	if strings.Contains(out, "-> /\n") {
		t.Errorf("a descriptor was left open:\n%s", out)
	}
}

// A step that fails is reported by its name, on either side of Ahead, and whoever asks for the namespaces of what is gone hears
// of it too.
func TestAheadThatFails(t *testing.T) {
	for name, before := range map[string]bool{"before": true, "after": false} {
		p := newProgram(t)
		p.Call("try", "what works", syscall.SYS_GETPID)
		if before {
			p.Call("try", "what fails", syscall.SYS_CLOSE, Int(-1))
		}
		p.Ahead()
		p.Call("try", "what works", syscall.SYS_GETPID)
		if !before {
			p.Call("try", "what fails", syscall.SYS_CLOSE, Int(-1))
		}
		c := minimal(p, "/bin/echo", "the command must not run")
		out, _, err := run(t, c)
		step, ok := errors.AsType[*StepError](err)
		if !ok || step.Subject != "what fails" || !errors.Is(step.Err, unix.EBADF) || out != "" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	p := newProgram(t)
	p.Call("try", "what fails", syscall.SYS_CLOSE, Int(-1))
	p.Ahead()
	c := minimal(p, "/bin/true")
	_, w := c.output(t)
	defer w.Close()
	prepared, err := Prepare(&c.Config, p)
	for err == nil { // until it has ended
		err = prepared.AllowHands()
		closeAll(prepared.process.entries[:])
	}
	if step, ok := errors.AsType[*StepError](err); !ok || step.Subject != "what fails" {
		t.Errorf("asked for its namespaces: %v", err)
	}
	if prepared != nil {
		if err := prepared.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What was sent before the word to go on is closed with a process that never gets it.
func TestAheadAndNotStarted(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.Listen(0, 3128, 1080)
	p.ListenCapture(4)
	p.Ahead()
	c := minimal(p, "/bin/true")
	_, w := c.output(t)
	defer w.Close()
	before := openFiles()
	prepared, err := Prepare(&c.Config, p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(prepared.process.ctl.Fd()), Events: unix.POLLIN}}, -1); err != nil {
		t.Fatal(err)
	}
	if err := prepared.Close(); err != nil {
		t.Error(err)
	}
	if after := openFiles(); after != before {
		t.Errorf("%d descriptors were open and %d are", before, after)
	}
}
