package ns

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFailedStepIsNamed(t *testing.T) {
	p := newProgram(t)
	p.Call("open", "/nonexistent", unix.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str("/nonexistent"), Int(0), Int(0))
	_, _, err := run(t, minimal(p, "/bin/sh", "-c", "echo the command must not run"))
	var e *StepError
	if !errors.As(err, &e) || e.Op != "open" || e.Subject != "/nonexistent" || !errors.Is(err, unix.ENOENT) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "ENOENT") {
		t.Errorf("%q does not name the error as the kernel does", err)
	}
}

func TestInterpreter(t *testing.T) {
	p := newProgram(t)
	absent := p.Call("open", "absent", unix.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str("/nonexistent"), Int(0), Int(0))
	p.Tolerate(unix.ENOENT)
	p.Call("write", "left out", unix.SYS_WRITE, Int(1), p.Str("no"), Int(2))
	p.OnlyIf(absent)
	p.Call("write", "1", unix.SYS_WRITE, Int(1), p.Str("a"), Int(1))
	p.Unless(absent)
	pid := p.Call("getpid", "", unix.SYS_GETPID)
	addr, _ := p.Buffer(8)
	p.Store(addr, 0, pid)
	p.Expect("be", "pid 1", addr, 0, 1<<32-1, 1, unix.ESRCH)
	p.Call("write", "2", unix.SYS_WRITE, Int(1), p.Str("b"), Int(1))
	p.OnlyIf(pid)
	p.Call("write", "3", unix.SYS_WRITE, Int(1), p.Str("no"), Int(2))
	p.Unless(pid)
	out, _, err := run(t, minimal(p, "/bin/true"))
	if err != nil || out != "ab" {
		t.Errorf("%q, %v; want ab", out, err)
	}
	p = newProgram(t)
	addr, _ = p.Buffer(8)
	p.Expect("find", "seven", addr, 0, ^uint64(0), 7, unix.ESTALE)
	if _, _, err := run(t, minimal(p, "/bin/true")); !errors.Is(err, unix.ESTALE) {
		t.Errorf("an expectation that does not hold: %v, want ESTALE", err)
	}
}

// TestManySteps has more results than fit in 16 bits: each must stay its own.
func TestManySteps(t *testing.T) {
	p := newProgram(t)
	first := p.Call("getpid", "", unix.SYS_GETPID)
	for range 1<<16 + 10 {
		p.Call("getuid", "", unix.SYS_GETUID)
	}
	last := p.Call("dup", "", unix.SYS_DUP, Int(1))
	addr, _ := p.Buffer(16)
	p.Store(addr, 0, first)
	p.Store(addr, 8, last)
	p.Expect("keep", "the first result", addr, 0, 1<<32-1, 1, unix.ERANGE)
	p.Expect("keep", "the last result", addr, 8, 1<<32-1, firstFree, unix.ERANGE)
	if _, _, err := run(t, minimal(p, "/bin/true")); err != nil {
		t.Error(err)
	}
}

// TestProgramThatDoesNotFit must end as an error of the start, not as a program without its end.
func TestProgramThatDoesNotFit(t *testing.T) {
	p := newProgram(t)
	p.data = len(p.mem) - 1024
	for range 100 {
		p.Str("twenty bytes of text")
	}
	p.Call("getpid", "", unix.SYS_GETPID)
	if _, _, err := run(t, minimal(p, "/bin/true")); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("data: %v", err)
	}
	p = newProgram(t)
	p.steps = len(p.mem) / 2 / stepSize
	p.Call("getpid", "", unix.SYS_GETPID)
	if _, _, err := run(t, minimal(p, "/bin/true")); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("steps: %v", err)
	}
}
