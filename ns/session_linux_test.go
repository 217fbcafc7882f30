package ns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSessionTerminal_CLI10: a terminal that no session has becomes the command's, in the foreground.
func TestSessionTerminal_CLI10(t *testing.T) {
	master, tty := freeTerminal(t)
	l := minimal(newProgram(t), "/bin/sh", "-c", `
		exec 9<>/dev/tty && echo opened >&9
		trap 'exit 7' INT; echo up; while :; do sleep 0.01; done`)
	l.Session, l.Stdin, l.Stdout, l.Stderr = SessionTerminal, tty, tty, tty
	p, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	tty.Close()
	master.SetReadDeadline(time.Now().Add(30 * time.Second))
	var seen strings.Builder
	for buf := make([]byte, 256); !strings.Contains(seen.String(), "up\r\n"); {
		n, err := master.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			t.Fatalf("%q, %v", seen.String(), err)
		}
	}
	if seen.String() != "opened\r\nup\r\n" {
		t.Errorf("%q", seen.String())
	}
	if _, err := io.WriteString(master, "\x03"); err != nil {
		t.Error(err)
	}
	if st, err := p.Wait(); err != nil || st.Code != 7 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestSessionTerminal_NoTerminal: without one nothing runs.
func TestSessionTerminal_NoTerminal(t *testing.T) {
	r, w := heldPipe(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	l := minimal(newProgram(t), "/bin/sh", "-c", "echo ran")
	l.Session, l.Stdin, l.Stdout, l.Stderr = SessionTerminal, null, w, w
	p, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	var step *StepError
	if _, err := p.Wait(); !errors.As(err, &step) || step.Op != fixedSteps[fixedTerminal] || !errors.Is(err, unix.ENOTTY) {
		t.Errorf("%v", err)
	}
	if out, err := io.ReadAll(r); err != nil || len(out) > 0 {
		t.Errorf("%q, %v", out, err)
	}
}

// freeTerminal is a pseudo-terminal of no session (pty(7)).
func freeTerminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}
