package ns

import (
	"errors"
	"fmt"
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

// blockingOpen appends an open that waits for somebody at the FIFO's other end, after a byte to w.
func (b *box) blockingOpen(h *Hand, w *os.File) {
	p := h.Program()
	out := h.Pass(w)
	p.Call("write", "", syscall.SYS_WRITE, out.Arg(), p.Str("x"), Int(1))
	openAt(p, b.path("fifo"), unix.O_RDONLY)
}

func TestHandKilledInACall(t *testing.T) {
	for name, end := range map[string]func(*Hand) error{"kill": (*Hand).Kill, "close": (*Hand).Close} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, true)
			h := b.hand(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			done := make(chan error, 1)
			b.blockingOpen(h, w)
			go func() {
				_, err := h.Do()
				done <- err
			}()
			io.ReadFull(r, make([]byte, 1))
			w.Close()
			if err := end(h); err != nil {
				t.Error(err)
			}
			if err := <-done; !errors.Is(err, ErrHandKilled) {
				t.Errorf("Do: %v", err)
			}
			if _, err := h.Do(); !errors.Is(err, ErrHandKilled) {
				t.Errorf("the next Do: %v", err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if err := h.Kill(); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("Kill after Close: %v", err)
			}
		})
	}
}

func TestHandThatEndsByItself(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	p.Call("exit", "", syscall.SYS_EXIT_GROUP, Int(3))
	if _, err := h.Do(); !errors.Is(err, ErrHandGone) {
		t.Errorf("%v", err)
	}
	if _, err := h.Do(); !errors.Is(err, ErrHandGone) {
		t.Errorf("the next: %v", err)
	}
}

// holdHand is the re-executed half of TestHandDoesNotOutliveTheHost. Descriptor 3 is a pipe that the hand alone holds on.
func holdHand(dir string) {
	b := &box{dir: dir}
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(b.open(true))
	h, err := StartHand(b.config())
	fail(err)
	if os.Args[3] == "blocked" {
		b.blockingOpen(h, os.NewFile(3, "pipe"))
	} else {
		p := h.Program()
		p.Call("write", "", syscall.SYS_WRITE, h.PassFD(3).Arg(), p.Str("x"), Int(1))
		// Held in the hand for the whole test: a copy above the numbers that a program's end closes is not possible, so
		// the program itself waits, for a time that no test takes.
		ts := &unix.Timespec{Sec: 3600}
		p.Call("sleep", "", syscall.SYS_NANOSLEEP, Pointer(p, ts), Int(0))
	}
	_, err = h.Do()
	fail(err)
}

// TestHandDoesNotOutliveTheHost kills the host process while its hand is in a call (CLI-17). The pipe comes to its end only
// when the hand is gone.
func TestHandDoesNotOutliveTheHost_CLI17(t *testing.T) {
	for _, how := range []string{"blocked", "asleep"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		host := exec.Command("/proc/self/exe", "hold-a-hand", t.TempDir(), how)
		host.Stdout, host.Stderr, host.ExtraFiles = os.Stderr, os.Stderr, []*os.File{w}
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		host.Process.Kill()
		host.Wait()
		r.SetReadDeadline(time.Now().Add(30 * time.Second))
		if rest, err := io.ReadAll(r); err != nil {
			t.Errorf("%s: the hand is still alive: %q, %v", how, rest, err)
		}
		r.Close()
	}
}

// TestIdleHandDoesNotOutliveTheHost does so while the hand waits for a program.
func TestIdleHandDoesNotOutliveTheHost(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	unix.Close(h.ctl)
	h.ctl = -1
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, h.pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Error(err)
	}
	if _, err := h.Do(); !errors.Is(err, ErrHandGone) {
		t.Errorf("%v", err)
	}
}

func TestHandsAtOnce(t *testing.T) {
	b := newBox(t, true)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			h, err := StartHand(b.config())
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Close()
			for j := range 50 {
				p := h.Program()
				openAt(p, b.path(fmt.Sprintf("rw/%d-%d", i, j)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
				if r, err := h.Do(); err != nil || r.Err() != nil {
					t.Errorf("%d %d: %v, %v", i, j, r.Err(), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestHandsAsAnotherUser runs the tests of this file again as an ordinary user, when root runs them.
func TestHandsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("got user id %d, want 0: the other tests run as an ordinary user already", os.Geteuid())
	}
	dir, err := os.MkdirTemp("", "srt-hands")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const uid = 61184 // nobody's
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("/proc/self/exe", "-test.run", "Hand", "-test.v")
	run.Dir, run.Env = "/", []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHandIsHeld_FS26_FS44") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestHandHasNoTerminal runs itself again with a controlling terminal, which /dev/tty must lead this process to and a hand
// nowhere.
func TestHandHasNoTerminal(t *testing.T) {
	if os.Getenv("SRT_TEST_TERMINAL") != "" {
		tty, err := os.Open("/dev/tty")
		if err != nil {
			t.Fatal(err)
		}
		tty.Close()
		b := newBox(t, true)
		h := b.hand(t)
		openAt(h.Program(), "/dev/tty", unix.O_RDONLY)
		if r := do(t, h); r.Errno != unix.ENXIO {
			t.Errorf("%v, want ENXIO", r.Err())
		}
		return
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	run := exec.Command("/proc/self/exe", "-test.run", "^TestHandHasNoTerminal$", "-test.v")
	run.Stdin, run.Env = tty, append(os.Environ(), "SRT_TEST_TERMINAL=1")
	run.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHandHasNoTerminal") {
		t.Errorf("%v\n%s", err, out)
	}
}
