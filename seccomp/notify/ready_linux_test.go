package notify

import (
	"errors"
	"os"
	"testing"
	"time"
)

// long is more than a test takes: what waits so long and comes back was woken.
const long = time.Hour

func TestListener_ReadySaysWhatThereIs(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !s.Ready(int(r.Fd()), long) {
		t.Fatal("a call waits")
	}
	var n Notification
	if err := s.ReceiveNow(&n); err != nil || n.ID == 0 {
		t.Fatalf("received %+v, %v", n, err)
	}
	if s.Ready(int(r.Fd()), time.Millisecond) {
		t.Error("no call waits, and time is over")
	}
	w.Close()
	if s.Ready(int(r.Fd()), long) {
		t.Error("the other descriptor is readable, and no call waits")
	}
	if err := s.Respond(n.ID, 42, 0); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, s); got.Value != 42 {
		t.Errorf("the call gave %+v, want 42", got)
	}
	if s.Ready(int(r.Fd()), long) {
		t.Error("nobody is left who could call")
	}
	if err := s.Receive(&n); !errors.Is(err, ErrGone) {
		t.Errorf("receive: %v, want ErrGone", err)
	}
}

// What Ready has said may have ended when ReceiveNow comes: that waits for the next call, or the end, as Receive does.
func TestListener_ReceiveNowPassesOverADeadCall(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if !s.Ready(int(r.Fd()), long) {
		t.Fatal("a call waits")
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.end() // says that it was killed
	var n Notification
	if err := s.ReceiveNow(&n); !errors.Is(err, ErrGone) {
		t.Errorf("received %+v, %v; want ErrGone", n, err)
	}
}

func TestListener_StopEndsReady(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if s.Ready(int(r.Fd()), long) {
		t.Error("a call waits, but nothing is to be received any more")
	}
	var n Notification
	if err := s.Receive(&n); !errors.Is(err, ErrStopped) {
		t.Errorf("receive: %v, want ErrStopped", err)
	}
}
