package ns

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pair is a pipe whose writing end programs get.
func pair(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// writes appends the writing of text.
func writes(p *Program, out Slot, text string) Slot {
	return p.Call("write", "", syscall.SYS_WRITE, out.Arg(), p.Str(text), Int(len(text)))
}

// TestHandBegin_NextWhileTheLastIsBeingEnded: after Answering the next program is taken, in order, and none is lost.
func TestHandBegin_NextWhileTheLastIsBeingEnded(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	r, w := pair(t)
	for i := range 500 {
		p := h.Program()
		out := h.Pass(w)
		p.Answering()
		writes(p, out, string(rune('a'+i%26)))
		if i%7 == 0 {
			p.Call("fail", "", syscall.SYS_CLOSE, Int(-1)) // nobody is told
		}
		if err := h.Begin(); err != nil {
			t.Fatal(err)
		}
		res, err := h.End()
		if err != nil || res.Failed >= 0 {
			t.Fatal(i, res.Err(), err)
		}
	}
	p := h.Program()
	pid := p.Call("getpid", "", syscall.SYS_GETPID)
	res, err := h.Do()
	if v, ok := res.Value(pid); err != nil || !ok || v == 0 {
		t.Fatal(res, err)
	}
	got := make([]byte, 500)
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	for i, c := range got {
		if c != byte('a'+i%26) {
			t.Fatalf("at %d: %q", i, c)
		}
	}
}

func TestHandBegin_FailureIsTold(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	for range 50 {
		p := h.Program()
		p.Call("close", "nothing", syscall.SYS_CLOSE, Int(-1))
		p.Answering()
		if err := h.Begin(); err != nil {
			t.Fatal(err)
		}
		fds := []unix.PollFd{{Fd: int32(h.FD()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		if res, err := h.End(); err != nil || res.Failed != 0 || res.Errno != unix.EBADF || res.Subject != "nothing" {
			t.Fatal(res, err)
		}
	}
}

func TestHandBegin_WithoutAnsweringIsToldToo(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	pid := p.Call("getpid", "", syscall.SYS_GETPID)
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	res, err := h.End()
	if v, ok := res.Value(pid); err != nil || !ok || v == 0 {
		t.Error(res, err)
	}
}

func TestHandBegin_AnsweringIsLeftOutWithTheOthers(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	none := p.Call("close", "nothing", syscall.SYS_CLOSE, Int(-1))
	p.Tolerate(unix.EBADF)
	p.Answering()
	p.OnlyIf(none)
	p.Call("close", "nothing more", syscall.SYS_CLOSE, Int(-1))
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	if res, err := h.End(); err != nil || res.Subject != "nothing more" {
		t.Error(res, err)
	}
}

func TestHandBegin_Killed(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	_, w := pair(t)
	b.blockingOpen(h, w)
	if err := h.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.End(); !errors.Is(err, ErrHandKilled) {
		t.Errorf("End: %v", err)
	}
	if err := h.Begin(); !errors.Is(err, ErrHandKilled) {
		t.Errorf("the next Begin: %v", err)
	}
}

// TestHandBegin_AnsweringAtAnyTime has programs answer before, while and after End looks.
func TestHandBegin_AnsweringAtAnyTime(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	for i := range 3000 {
		p := h.Program()
		for range i % 60 {
			p.Call("getpid", "", syscall.SYS_GETPID)
		}
		p.Answering()
		if err := h.Begin(); err != nil {
			t.Fatal(err)
		}
		if res, err := h.End(); err != nil || res.Failed >= 0 {
			t.Fatal(i, res.Err(), err)
		}
	}
}
