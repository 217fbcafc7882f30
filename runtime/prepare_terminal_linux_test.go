package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/config"
)

// embedderName is Args[0] of this program where it is an embedder of its own, which spawns a prepared command and ends with
// its status.
const embedderName = "srt-test-embedder"

func init() {
	if os.Args[0] == embedderName {
		os.Exit(embed(os.Args[1], os.Args[2]))
	}
}

// embed runs a script. kind is how its process is spawned: "group" for a foreground group of its own.
func embed(kind, script string) int {
	signal.Notify(make(chan os.Signal, 16), syscall.SIGINT) // of the terminal; ignored it would be so for what is spawned
	s, err := New(context.Background(), config.Default())
	if err != nil {
		return embedFailed(err)
	}
	c := s.Command(context.Background(), "/bin/bash", "-c", script)
	c.Env, c.Dir = []string{"PATH=/usr/bin:/bin", "HOME="}, "/"
	l, err := c.Prepare()
	if err != nil {
		return embedFailed(err)
	}
	p := l.spawn()
	p.Stdin, p.Stdout, p.Stderr = os.Stdin, os.Stdout, os.Stderr
	if kind == "group" {
		p.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
	err = p.Run()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	if err = errors.Join(err, l.Release(), s.Close()); err != nil {
		return embedFailed(err)
	}
	return code
}

func embedFailed(err error) int {
	fmt.Fprintln(os.Stderr, "embedder:", err)
	return 99
}

// embedder is the command that runs this program as one.
func embedder(t *testing.T, kind, script string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	succeed(t, err)
	return &exec.Cmd{Path: exe, Args: []string{embedderName, kind, script}}
}

// TestPrepare_KilledEmbedder: the end of the session's process is the end of the command and of the process that stands for it.
func TestPrepare_KilledEmbedder_CLI17(t *testing.T) {
	r, w := pipe(t)
	p := embedder(t, "", "trap '' TERM HUP; setsid sleep 300 & echo up; sleep 300")
	p.Stdout, p.Stderr = w, w
	succeed(t, p.Start())
	w.Close()
	awaitUp(t, r)
	succeed(t, p.Process.Kill())
	_ = p.Wait()
	out, err := io.ReadAll(r) // end of file: nobody is left
	if err != nil || string(out) != "srt: the process that ran the sandboxed command has ended, and the command with it\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// console is a pseudo-terminal, seen from the side of the person.
type console struct {
	t    *testing.T
	ptmx *os.File
	seen bytes.Buffer
}

// openConsole gives the person's side and the program's (pty(7)).
func openConsole(t *testing.T) (c *console, tty *os.File) {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	succeed(t, err)
	t.Cleanup(func() { ptmx.Close() })
	var number int
	succeed(t, control(ptmx, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	}))
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	succeed(t, err)
	t.Cleanup(func() { tty.Close() })
	return &console{t: t, ptmx: ptmx}, tty
}

// onConsole starts a process as libraries for pseudo-terminals do: it leads a session on the terminal.
func onConsole(t *testing.T, p *exec.Cmd) *console {
	t.Helper()
	c, tty := openConsole(t)
	p.Stdin, p.Stdout, p.Stderr = tty, tty, tty
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	succeed(t, p.Start())
	tty.Close()
	t.Cleanup(func() { endProcess(p) })
	return c
}

// endProcess ends a process of a test that has failed.
func endProcess(p *exec.Cmd) {
	if p.ProcessState == nil {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// expect reads until a text has come.
func (c *console) expect(text string) {
	c.t.Helper()
	succeed(c.t, c.ptmx.SetReadDeadline(time.Now().Add(30*time.Second)))
	buf := make([]byte, 4096)
	for !strings.Contains(c.seen.String(), text) {
		n, err := c.ptmx.Read(buf)
		c.seen.Write(buf[:n])
		if err != nil {
			c.t.Fatalf("%q has not come: %v\n%s", text, err, c.seen.String())
		}
	}
	_, rest, _ := strings.Cut(c.seen.String(), text)
	c.seen.Reset()
	c.seen.WriteString(rest)
}

func (c *console) send(keys string) {
	c.t.Helper()
	_, err := c.ptmx.WriteString(keys)
	succeed(c.t, err)
}

// rest reads to the end.
func (c *console) rest() string {
	_, _ = io.Copy(&c.seen, c.ptmx) // ends with EIO
	return c.seen.String()
}

// TestPrepare_PseudoTerminal: what a library for them spawns has the terminal as if there was no sandbox.
func TestPrepare_PseudoTerminal_CLI10(t *testing.T) {
	s := newSession(t, nil)
	t.Run("keys, sizes and the controlling terminal", func(t *testing.T) {
		p := prepare(t, plain(t, s.Command(t.Context(), "/bin/bash", "-c", `
			trap 'echo winch $(stty size)' WINCH
			trap 'echo int; exit 21' INT
			exec 9<>/dev/tty && echo opened >&9
			read -r line; echo "got $line"
			while :; do sleep 0.01; done`))).spawn()
		c := onConsole(t, p)
		c.expect("opened")
		c.send("word\n")
		c.expect("got word")
		succeed(t, control(c.ptmx, func(fd int) error {
			return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 44})
		}))
		c.expect("winch 33 44")
		c.send("\x03")
		c.expect("int")
		if code := exitCode(t, p.Wait()); code != 21 {
			t.Errorf("status %d", code)
		}
	})
	t.Run("job control", func(t *testing.T) {
		cmd := plain(t, s.Command(t.Context(), "/bin/bash", "--norc", "--noprofile", "-i"))
		cmd.Env = append(cmd.Env, "PS1=ready$ ", "INPUTRC=/dev/null", "HISTFILE=", "TERM=dumb")
		p := prepare(t, cmd).spawn()
		c := onConsole(t, p)
		c.expect("ready$ ")
		if strings.Contains(c.seen.String(), "no job control") {
			t.Error("the shell has no job control")
		}
		c.send("echo go; cat\n")
		c.expect("go\r\n") // what is typed while the shell still edits the line is no line for cat
		c.send("hello\n")
		c.expect("hello\r\nhello")
		c.send("\x1a")
		c.expect("Stopped")
		c.expect("ready$ ")
		c.send("fg\n")
		c.expect("cat")
		c.send("again\n")
		c.expect("again\r\nagain")
		c.send("\x03")
		c.expect("ready$ ")
		c.send("exit 5\n")
		if code := exitCode(t, p.Wait()); code != 5 {
			t.Errorf("status %d, %q", code, c.rest())
		}
	})
	t.Run("hang-up", func(t *testing.T) {
		r, w := pipe(t)
		p := prepare(t, sh(t, s, `trap 'echo hung up >&2; exit 22' HUP; echo up >&2; while :; do sleep 0.01; done`)).spawn()
		c, tty := openConsole(t)
		p.Stdin, p.Stdout, p.Stderr = tty, tty, w
		p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		succeed(t, p.Start())
		tty.Close()
		awaitUp(t, r)
		c.ptmx.Close()
		if code := exitCode(t, p.Wait()); code != 22 {
			t.Errorf("status %d", code)
		}
	})
	t.Run("signals to the process", func(t *testing.T) {
		p := prepare(t, sh(t, s, `trap 'exit 23' TERM; echo up; while :; do sleep 0.01; done`)).spawn()
		c := onConsole(t, p)
		c.expect("up")
		succeed(t, p.Process.Signal(syscall.SIGTERM))
		if code := exitCode(t, p.Wait()); code != 23 {
			t.Errorf("status %d", code)
		}
	})
	t.Run("a command that is refused", func(t *testing.T) {
		p := prepare(t, plain(t, s.Command(t.Context(), "no-such-program"))).spawn()
		c := onConsole(t, p)
		c.expect("srt: no-such-program: ")
		if code := exitCode(t, p.Wait()); code != 127 {
			t.Errorf("status %d", code)
		}
	})
}

// TestPrepare_CallersTerminal: spawned on the caller's own terminal, keys reach the command once.
func TestPrepare_CallersTerminal_CLI10(t *testing.T) {
	// bash may keep a signal that comes just before it reads.
	const script = `trap 'n=$((n+1)); echo int' INT; trap 'echo end; exit $((40+n))' TERM; echo up
		while [ -z "$n" ]; do sleep 0.01; done; read -r line; echo "got $line"; kill -TERM $$; while :; do sleep 0.01; done`
	for _, kind := range []string{"", "group"} {
		t.Run("spawned in the group "+kind, func(t *testing.T) {
			p := embedder(t, kind, script)
			c := onConsole(t, p)
			c.expect("up")
			c.send("\x03")
			c.expect("int")
			c.send("line\n")
			c.expect("got line")
			c.expect("end")
			if code := exitCode(t, p.Wait()); code != 41 {
				t.Errorf("status %d, %q", code, c.rest())
			}
		})
	}
	t.Run("in a pipeline", func(t *testing.T) {
		c, tty := openConsole(t)
		r, w := pipe(t)
		p := embedder(t, "", script)
		p.Stdin, p.Stdout, p.Stderr = tty, w, w
		p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		succeed(t, p.Start())
		t.Cleanup(func() { endProcess(p) })
		tty.Close()
		w.Close()
		awaitUp(t, r)
		c.send("\x03")
		got := make([]byte, 4)
		if _, err := io.ReadFull(r, got); err != nil || string(got) != "int\n" {
			t.Fatalf("%q, %v", got, err)
		}
		c.send("line\n")
		out, err := io.ReadAll(r)
		if code := exitCode(t, p.Wait()); code != 41 || err != nil || string(out) != "got line\nend\n" {
			t.Errorf("status %d, %q, %v", code, out, err)
		}
	})
}
