package runtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

// newSession starts a session that ends with the test. change may be nil.
func newSession(t *testing.T, change func(*config.Config), opts ...Option) *Sandbox {
	t.Helper()
	cfg := config.Default()
	if change != nil {
		change(cfg)
	}
	s, err := New(context.Background(), cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// plain gives a command surroundings that do not depend on who tests.
func plain(t *testing.T, c *Cmd) *Cmd {
	t.Helper()
	c.Env, c.Dir = []string{"PATH=/usr/bin:/bin", "HOME="}, t.TempDir()
	return c
}

// sh is a script for /bin/sh in plain surroundings.
func sh(t *testing.T, s *Sandbox, script string) *Cmd {
	t.Helper()
	return plain(t, s.Command(t.Context(), "/bin/sh", "-c", script))
}

// succeed fails the test if a command that was to be started and to end well did not.
func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onlyReader and onlyWriter hide that something is a file.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

func TestLIB18_ReadersAndWritersAreCopiedWhole(t *testing.T) {
	s := newSession(t, nil)
	in := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // more than a pipe holds
	var out bytes.Buffer
	c := plain(t, s.Command(t.Context(), "cat"))
	c.Stdin, c.Stdout = bytes.NewReader(in), onlyWriter{&out}
	succeed(t, c.Run())
	if !bytes.Equal(out.Bytes(), in) {
		t.Errorf("%d bytes of %d came back", out.Len(), len(in))
	}
}

func TestLIB18_EqualWritersAreOneDescriptor(t *testing.T) {
	s := newSession(t, nil)
	out, err := sh(t, s, `for i in 1 2 3; do echo out; echo err >&2; done; [ /dev/fd/1 -ef /dev/fd/2 ] && echo same`).CombinedOutput()
	succeed(t, err)
	if want := strings.Repeat("out\nerr\n", 3) + "same\n"; string(out) != want {
		t.Errorf("%q", out)
	}
}

// uncomparable is a writer that == panics for.
type uncomparable struct{ write []func([]byte) }

func (u uncomparable) Write(p []byte) (int, error) {
	u.write[0](p)
	return len(p), nil
}

func TestLIB18_WritersThatCannotBeCompared(t *testing.T) {
	s := newSession(t, nil)
	var out, errs bytes.Buffer
	c := sh(t, s, `echo out; echo err >&2`)
	c.Stdout = uncomparable{[]func([]byte){func(p []byte) { out.Write(p) }}}
	c.Stderr = uncomparable{[]func([]byte){func(p []byte) { errs.Write(p) }}}
	succeed(t, c.Run())
	if out.String() != "out\n" || errs.String() != "err\n" {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
}

// TestLIB11_FilesAreStreamsAsTheyAre: an *os.File is the command's descriptor, and nothing copies.
func TestLIB11_FilesAreStreamsAsTheyAre(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	c := sh(t, s, `stat -Lc %i /dev/fd/1`)
	c.Stdout = w
	succeed(t, c.Run())
	w.Close()
	out, err := io.ReadAll(r)
	succeed(t, err)
	var st syscall.Stat_t
	succeed(t, syscall.Fstat(int(r.Fd()), &st))
	if got := strings.TrimSpace(string(out)); got != strconv.FormatUint(st.Ino, 10) {
		t.Errorf("the command's standard output is %s, want the caller's pipe %d", got, st.Ino)
	}
	var nothing *os.File
	c = sh(t, s, `cat; echo lost`)
	c.Stdin, c.Stdout, c.Stderr = nothing, nothing, nothing
	succeed(t, c.Run())
}

func TestLIB11_case24_ArgumentsArriveAsGiven(t *testing.T) {
	s := newSession(t, nil)
	out, err := plain(t, s.Command(t.Context(), "printf", "<%s>", "a b;$(id)", "", "it's", "*")).Output()
	succeed(t, err)
	if want := "<a b;$(id)><><it's><*>"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
}

func TestLIB11_Shell(t *testing.T) {
	s := newSession(t, nil)
	out, err := plain(t, s.Shell(t.Context(), `echo "$0" $((1+1))`)).Output()
	if err != nil || !strings.HasSuffix(strings.Fields(string(out))[0], "sh") || !strings.HasSuffix(string(out), " 2\n") {
		t.Errorf("%q, %v", out, err)
	}
	c := plain(t, s.Shell(t.Context(), `echo "$0"`))
	c.ShellPath = "/bin/sh"
	if out, err := c.Output(); err != nil || string(out) != "/bin/sh\n" {
		t.Errorf("%q, %v", out, err)
	}
	c = plain(t, s.Shell(t.Context(), `true`))
	c.ShellPath = "no-such-shell"
	var launch *LaunchError
	if err := c.Start(); !errors.As(err, &launch) || err.Error() != "Shell 'no-such-shell' not found in PATH" {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	succeed(t, os.WriteFile("fake", []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", ".")
	c = plain(t, s.Shell(t.Context(), `true`))
	c.ShellPath = "fake"
	if err := c.Start(); err == nil || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("a shell of the working directory: %v", err)
	}
}

func TestLIB50_Pipes(t *testing.T) {
	s := newSession(t, nil)
	c := sh(t, s, `read -r x; echo "got $x"; echo bad >&2`)
	in, err := c.StdinPipe()
	succeed(t, err)
	out, err := c.StdoutPipe()
	succeed(t, err)
	errs, err := c.StderrPipe()
	succeed(t, err)
	for _, again := range []func() error{
		func() error { _, err := c.StdinPipe(); return err }, func() error { _, err := c.StdoutPipe(); return err },
		func() error { _, err := c.Output(); return err }, func() error { _, err := c.CombinedOutput(); return err },
	} {
		if err := again(); err == nil || !strings.Contains(err.Error(), "already set") {
			t.Errorf("%v", err)
		}
	}
	succeed(t, c.Start())
	if _, err := c.StderrPipe(); err == nil {
		t.Error("a pipe after the start")
	}
	_, err = io.WriteString(in, "this\n")
	succeed(t, err)
	got, err := io.ReadAll(out)
	succeed(t, err)
	bad, err := io.ReadAll(errs)
	succeed(t, err)
	succeed(t, c.Wait())
	if string(got) != "got this\n" || string(bad) != "bad\n" {
		t.Errorf("%q, %q", got, bad)
	}
	if _, err := in.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Wait has not closed the pipe: %v", err)
	}
}

func TestLIB50_ACmdIsForOneStart(t *testing.T) {
	s := newSession(t, nil)
	c := sh(t, s, "exit 3")
	if err := c.Wait(); !errors.Is(err, errNotStarted) {
		t.Errorf("Wait before Start: %v", err)
	}
	for name, call := range map[string]func() error{"Kill": c.Kill, "Signal": func() error { return c.Signal(syscall.SIGTERM) }} {
		if err := call(); !errors.Is(err, errNotStarted) {
			t.Errorf("%s before Start: %v", name, err)
		}
	}
	if c.Pid() != 0 {
		t.Errorf("Pid before Start: %d", c.Pid())
	}
	succeed(t, c.Start())
	if c.Pid() <= 0 {
		t.Errorf("Pid: %d", c.Pid())
	}
	if err := c.Start(); !errors.Is(err, errUsed) {
		t.Errorf("a second Start: %v", err)
	}
	var exit *ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%v", err)
	}
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "already called") {
		t.Errorf("a second Wait: %v", err)
	}
	if err := c.Kill(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Kill after the end: %v", err)
	}
	failed := plain(t, s.Command(t.Context(), "/bin/true"))
	failed.Dir = "relative"
	if err := failed.Start(); err == nil || errors.Is(err, errUsed) {
		t.Fatalf("%v", err)
	}
	failed.Dir = "/"
	if err := failed.Start(); !errors.Is(err, errUsed) {
		t.Errorf("a Start after one that failed: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil context was taken")
		}
	}()
	s.Command(nil, "true") //nolint:staticcheck // that is what is tested
}

func TestLIB50_ExitErrors(t *testing.T) {
	s := newSession(t, nil)
	for _, c := range []struct {
		script string
		code   int
		sig    syscall.Signal
	}{{"exit 1", 1, 0}, {"exit 128", 128, 0}, {"kill -TERM $$", 143, syscall.SIGTERM}, {"kill -KILL $$", 137, syscall.SIGKILL}, {"exit 255", 255, 0}} {
		_, err := sh(t, s, "echo why >&2; "+c.script).Output()
		var exit *ExitError
		if !errors.As(err, &exit) {
			t.Errorf("%s: %v", c.script, err)
			continue
		}
		sig, ok := exit.Signal()
		if exit.ExitCode() != c.code || sig != c.sig || ok != (c.sig != 0) || string(exit.Stderr) != "why\n" {
			t.Errorf("%s: %d, %v, %v, %q", c.script, exit.ExitCode(), sig, ok, exit.Stderr)
		}
	}
	_, err := plain(t, s.Command(t.Context(), "no-such-program")).Output()
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 127 || exit.Reason == "" {
		t.Errorf("%v", err)
	}
	if _, ok := exit.Signal(); ok {
		t.Error("a program that was not found died of a signal")
	}
}

// failing fails after some bytes.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestLIB18_CopyingThatFailsIsTold(t *testing.T) {
	s := newSession(t, nil)
	broken := errors.New("broken")
	c := sh(t, s, "cat >/dev/null; exit 0")
	c.Stdin = failing{broken}
	if err := c.Run(); !errors.Is(err, broken) {
		t.Errorf("a reader: %v", err)
	}
	c = sh(t, s, "echo x; exit 0")
	c.Stdout = failing{broken}
	if err := c.Run(); !errors.Is(err, broken) {
		t.Errorf("a writer: %v", err)
	}
	c = sh(t, s, "echo x; exit 4")
	c.Stdout = failing{broken}
	var exit *ExitError
	if err := c.Run(); !errors.As(err, &exit) {
		t.Errorf("the status comes first: %v", err)
	}
	// A command need not read all of its input.
	c = sh(t, s, "head -c 1 >/dev/null")
	c.Stdin = onlyReader{endless{}}
	succeed(t, c.Run())
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestLIB50_WaitDelayBoundsTheCopying: somebody outside the sandbox may hold the other end of a pipe.
func TestLIB50_WaitDelayBoundsTheCopying(t *testing.T) {
	var held int
	var c *Cmd
	s := newSession(t, nil, WithTiming(func(phase string) {
		if phase == "identities read" {
			held, _ = syscall.Dup(int(c.streams.theirs[1].Fd())) // of standard output, after that of standard input
		}
	}))
	c = sh(t, s, "echo out")
	var out bytes.Buffer
	c.Stdout, c.WaitDelay = &out, time.Millisecond
	err := c.Run()
	syscall.Close(held)
	if !errors.Is(err, exec.ErrWaitDelay) || out.String() != "out\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestVIO1_KeysAndTexts(t *testing.T) {
	s := newSession(t, nil)
	a, b := s.Command(t.Context(), "make", "all"), s.Shell(t.Context(), "make all; x")
	if len(a.Key()) != 22 || a.Key() == b.Key() {
		t.Errorf("%q, %q", a.Key(), b.Key())
	}
	if first := a.Key(); a.Key() != first {
		t.Errorf("%q, then %q", first, a.Key())
	}
	if a.text() != "make all" || b.text() != "make all; x" {
		t.Errorf("%q, %q", a.text(), b.text())
	}
	a = s.Command(t.Context(), "make")
	a.ID, a.Text = "id-1", "the build"
	if a.Key() != "id-1" || a.text() != "the build" {
		t.Errorf("%q, %q", a.Key(), a.text())
	}
}

// TestLIB18_WaitReturnsWhenAllIsGone: what the command left running in its sandbox is gone, and holds no stream.
func TestLIB18_WaitReturnsWhenAllIsGone(t *testing.T) {
	s := newSession(t, nil)
	out, err := sh(t, s, `(trap '' HUP TERM; setsid sleep 300) & setsid setsid sleep 300 & echo up`).Output()
	if err != nil || string(out) != "up\n" {
		t.Errorf("%q, %v", out, err)
	}
	noChildren(t)
}

// noChildren fails if this process has a child.
func noChildren(t *testing.T) {
	t.Helper()
	var ws syscall.WaitStatus
	if pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("a process is left: %d, %v", pid, err)
	}
}
