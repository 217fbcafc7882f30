package broker

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { probes["change-fifo"] = probeChangeFIFO }

// probeChangeFIFO has an opening wait for a reader while names are moved and made.
func probeChangeFIFO(string) any {
	if err := unix.Mkfifo("fifo", 0o600); err != nil {
		return err.Error()
	}
	opened := make(chan error, 1)
	go func() {
		f, err := os.OpenFile("fifo", os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString("through")
			_ = f.Close()
		}
		opened <- err
	}()
	for range 200 { // some of these come after the opening has begun to wait
		if err := os.Mkdir("a", 0o755); err != nil {
			return err.Error()
		}
		if err := os.Rename("a", "b"); err != nil {
			return err.Error()
		}
		if err := os.Remove("b"); err != nil {
			return err.Error()
		}
	}
	f, err := os.Open("fifo")
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(f)
	if err != nil || string(text) != "through" {
		return "read " + string(text)
	}
	if err := <-opened; err != nil {
		return err.Error()
	}
	return "ok"
}

// TestChanges_AnOpeningThatWaitsHoldsUpNobody: a FIFO waits for its other end, and renames need no call to be under way.
func TestChanges_AnOpeningThatWaitsHoldsUpNobody(t *testing.T) {
	var answer string
	runSandbox(t, setup{changes: &changeJudge{}, walls: true, watched: true, probe: "change-fifo", folder: memoryFolder(t)}, &answer)
	if answer != "ok" {
		t.Error(answer)
	}
}
