package ns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSignalAndKill(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(*Process) error
		code int
		err  bool
	}{
		{"TERM", func(p *Process) error { return p.Signal(unix.SIGTERM) }, 143, false},
		{"kill", func(p *Process) error { return p.Kill() }, 0, true},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cfg := minimal(newProgram(t), "/bin/sh", "-c", "echo up; exec sleep 60")
		null, _ := os.Open(os.DevNull)
		cfg.Stdin, cfg.Stdout, cfg.Stderr = null, w, w
		p, err := cfg.start()
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(r, make([]byte, 3))
		if err := c.act(p); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		st, err := p.Wait()
		var killed *KilledError
		if errors.As(err, &killed) != c.err || st.Code != c.code {
			t.Errorf("%s: %v, %v", c.name, st, err)
		}
		if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("Kill after the end: %v", err)
		}
		r.Close()
		null.Close()
	}
}

// TestSignalAfterTheEnd: a sandbox that has ended, and that nobody has waited for yet, takes no signal.
func TestSignalAfterTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, _ := os.Open(os.DevNull)
	defer null.Close()
	cfg := minimal(newProgram(t), "/bin/true")
	cfg.Stdin, cfg.Stdout, cfg.Stderr = null, w, w
	p, err := cfg.start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err != nil { // its pid 1 holds none of the streams
		t.Fatal(err)
	}
	for err = p.Signal(unix.SIGTERM); err == nil; err = p.Signal(unix.SIGTERM) {
		time.Sleep(time.Millisecond)
	}
	if !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// holdSandbox is the re-executed half of the tests that kill the host process: it holds a sandbox that runs a script, and has
// its pid 1 hold descriptor 3, count times.
func holdSandbox(script string, count int) {
	program, err := NewProgram()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c := minimal(program, "/bin/sh", "-c", script)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Hold = slices.Repeat([]*os.File{os.NewFile(3, "to hold")}, count)
	p, err := c.start()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p.Wait()
	os.Exit(0)
}

// killHost starts a host process with a sandbox, waits until the script has written "up", and kills the host process. It
// gives what the script's processes write to, and what pid 1 holds.
func killHost(t *testing.T, script string) (out, held *os.File) {
	t.Helper()
	out, outw := heldPipe(t)
	held, heldw := heldPipe(t)
	host := exec.Command("/proc/self/exe", "hold-a-sandbox", script, "1")
	host.Stdout, host.Stderr, host.ExtraFiles = outw, outw, []*os.File{heldw}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	outw.Close()
	heldw.Close()
	up := make([]byte, 3)
	if _, err := io.ReadFull(out, up); err != nil || string(up) != "up\n" {
		t.Fatalf("%q, %v", up, err)
	}
	host.Process.Kill()
	host.Wait()
	return out, held
}

// TestNothingOutlivesTheHost kills the host process with SIGKILL: the pipe that every process of the sandbox holds
// comes to its end only when all are gone (CLI-17).
func TestNothingOutlivesTheHost_CLI17(t *testing.T) {
	r, _ := killHost(t, "setsid sleep 300 & echo up; exec sleep 300")
	r.SetReadDeadline(time.Now().Add(30 * time.Second))
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("processes of the sandbox are still alive: %q, %v", rest, err)
	}
}

// TestHold_NoMoreThanTheLimit: where the limit of open files lets pid 1 take a part only, nothing runs.
func TestHold_NoMoreThanTheLimit(t *testing.T) {
	_, w := heldPipe(t)
	host := exec.Command("/bin/sh", "-c", fmt.Sprintf(`ulimit -n 16; exec "$0" hold-a-sandbox "echo ran" %d`, maxFiles), testBinary(t))
	host.ExtraFiles = []*os.File{w}
	out, err := host.CombinedOutput()
	if err == nil || !strings.Contains(string(out), fixedSteps[fixedHold]) || !strings.Contains(string(out), "ulimit -n") ||
		strings.Contains(string(out), "ran") {
		t.Errorf("%s%v, want the step that failed and what to do", out, err)
	}
}

// testBinary is the path of this program.
func testBinary(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHold_OutlastsEveryProcess_FS54: what is held is not let go while a process of the sandbox can still act. The kernel
// takes its time over one with much memory, which it frees before it closes descriptors.
func TestHold_OutlastsEveryProcess_FS54(t *testing.T) {
	out, held := killHost(t, `exec /usr/bin/python3 -c 'import time; much = b"x" * (150 << 20); print("up", flush=True); time.sleep(300)'`)
	outlasts(t, held, out)
}

// TestHold_OutlastsWhatTheCommandLeft_FS54: the same where the command ends by itself and leaves a process behind.
func TestHold_OutlastsWhatTheCommandLeft_FS54(t *testing.T) {
	out, outw := heldPipe(t)
	held, heldw := heldPipe(t)
	in, _ := heldPipe(t)
	l := minimal(newProgram(t), "/bin/sh", "-c", `mkfifo up 2>/dev/null
		/usr/bin/python3 -c 'import time; much = b"x" * (150 << 20); open("up", "w").close(); time.sleep(300)' &
		: <up; exit 3`)
	t.Chdir(t.TempDir())
	l.Stdin, l.Stdout, l.Stderr, l.Hold = in, outw, outw, []*os.File{heldw}
	process, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	outw.Close()
	heldw.Close()
	outlasts(t, held, out)
	if st, err := process.Wait(); err != nil || st.Code != 3 {
		t.Errorf("%v, %v", st, err)
	}
}

// outlasts waits until nobody holds the one pipe, when the other must have come to its end.
func outlasts(t *testing.T, held, out *os.File) {
	t.Helper()
	held.SetReadDeadline(time.Now().Add(30 * time.Second))
	if rest, err := io.ReadAll(held); err != nil {
		t.Fatalf("pid 1 is still alive: %q, %v", rest, err)
	}
	if !atEnd(t, out) {
		t.Error("a process outlasted what pid 1 held")
	}
}

func TestStartsAtOnce(t *testing.T) {
	errs := make(chan error)
	const n = 20
	for i := range n {
		go func() {
			c := minimal(newProgram(t), "/bin/sh", "-c", fmt.Sprintf("exit %d", i))
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				errs <- err
				return
			}
			defer null.Close()
			c.Stdin, c.Stdout, c.Stderr = null, null, null
			p, err := c.start()
			if err != nil {
				errs <- err
				return
			}
			st, err := p.Wait()
			if err == nil && st.Code != i {
				err = fmt.Errorf("status %d, want %d", st.Code, i)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for range b.N {
		if _, _, err := run(b, minimal(newProgram(b), "/bin/true")); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPreparedAndNotStarted(t *testing.T) {
	c := minimal(newProgram(t), "/bin/true")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.Stdin, c.Stdout, c.Stderr = null, null, null
	p, err := Prepare(&c.Config, c.program)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(p.process.pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}
