package runtime

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/internal/standin"
)

// prepare readies a command, released at the end of the test.
func prepare(t *testing.T, c *Cmd) *Launch {
	t.Helper()
	l, err := c.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// spawn is how a caller starts a launch with package os/exec.
func (l *Launch) spawn() *exec.Cmd {
	return &exec.Cmd{Path: l.Path, Args: l.Args, Env: l.Env, Dir: l.Dir, ExtraFiles: l.Files}
}

// exitCode is the status that a process ended with.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	succeed(t, err)
	return 0
}

// TestPrepare_StandsForTheCommand: streams, arguments, directory, environment and status are the command's.
func TestPrepare_StandsForTheCommand(t *testing.T) {
	s := newSession(t, nil)
	c := sh(t, s, `cat; pwd; echo "$VALUE $SANDBOX_RUNTIME" "$@" >&2; exit 7`)
	c.Args, c.Env = append(c.Args, "sh", "a b;$(id)"), append(c.Env, "VALUE=of the command")
	l := prepare(t, c)
	p := l.spawn()
	var out, errs bytes.Buffer
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader("in\n"), &out, &errs
	if code := exitCode(t, p.Run()); code != 7 {
		t.Errorf("status %d, want 7", code)
	}
	if want := "in\n" + c.Dir + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if want := "of the command 1 a b;$(id)\n"; errs.String() != want {
		t.Errorf("%q, want %q", errs.String(), want)
	}
	if l.Dir != c.Dir || !filepath.IsAbs(l.Dir) {
		t.Errorf("Dir %q, want %q", l.Dir, c.Dir)
	}
	succeed(t, l.Release())
	noChildren(t)
}

func TestPrepare_ExitStatuses_CLI13(t *testing.T) {
	s := newSession(t, nil)
	for _, c := range []struct {
		cmd  *Cmd
		code int
		text string // of what is on standard error
	}{
		{sh(t, s, "exit 0"), 0, ""}, {sh(t, s, "exit 255"), 255, ""}, {sh(t, s, "kill -TERM $$"), 143, ""}, {sh(t, s, "kill -KILL $$"), 137, ""},
		{plain(t, s.Command(t.Context(), "no-such-program")), 127, "srt: no-such-program: "},
		{plain(t, s.Command(t.Context(), "/etc/passwd")), 126, "srt: /etc/passwd: "},
	} {
		var errs bytes.Buffer
		p := prepare(t, c.cmd).spawn()
		p.Stderr = &errs
		code := exitCode(t, p.Run())
		if code != c.code || !strings.HasPrefix(errs.String(), c.text) || c.text == "" && errs.Len() > 0 {
			t.Errorf("%v: %d, %q, want %d", c.cmd.Args, code, errs.String(), c.code)
		}
	}
}

// TestPrepare_StreamsAreRefusedAsByStart: what would lead out of the sandbox does so from another process too.
func TestPrepare_StreamsAreRefusedAsByStart_FS46(t *testing.T) {
	s := newSession(t, nil)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	succeed(t, err)
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	var errs bytes.Buffer
	p := prepare(t, sh(t, s, "echo ran >&2")).spawn()
	p.Stdin, p.Stderr = socket, &errs
	if code := exitCode(t, p.Run()); code != 1 || !strings.Contains(errs.String(), "standard input is a socket") || strings.Contains(errs.String(), "ran") {
		t.Errorf("%d, %q", code, errs.String())
	}
	dir, err := os.Open(t.TempDir())
	succeed(t, err)
	defer dir.Close()
	p = prepare(t, sh(t, s, "cd /dev/fd/0 && touch made")).spawn() // opened again, in the sandbox's own view
	p.Stdin = dir
	if code := exitCode(t, p.Run()); code == 0 {
		t.Error("the command wrote through a directory of the host's")
	}
}

// TestPrepare_PositionsAreReturned: who shares a file with the process goes on where the command left off.
func TestPrepare_PositionsAreReturned(t *testing.T) {
	s := newSession(t, nil)
	f, err := os.CreateTemp(t.TempDir(), "")
	succeed(t, err)
	defer f.Close()
	_, err = f.WriteString("one\ntwo\n")
	succeed(t, err)
	in, err := os.Open(f.Name())
	succeed(t, err)
	defer in.Close()
	c := sh(t, s, "read -r line; echo $line")
	c.Dir = filepath.Dir(f.Name())
	p := prepare(t, c).spawn()
	p.Stdin = in
	out, err := p.Output()
	succeed(t, err)
	rest, err := io.ReadAll(in)
	if err != nil || string(out) != "one\n" || string(rest) != "two\n" {
		t.Errorf("%q, then %q, %v", out, rest, err)
	}
}

// TestPrepare_EndsOfPipesAreTheCommands: neither the process nor the session holds a pipe that the command has closed.
func TestPrepare_EndsOfPipesAreTheCommands(t *testing.T) {
	s := newSession(t, nil)
	in, feed := pipe(t)
	r, w := pipe(t)
	p := prepare(t, sh(t, s, `read -r line; exec <&- >&-; sleep 300`)).spawn()
	p.Stdin, p.Stdout = in, w
	succeed(t, p.Start())
	in.Close()
	w.Close()
	_, err := feed.WriteString("go\n")
	succeed(t, err)
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	for err == nil {
		_, err = feed.WriteString("nobody reads this\n")
	}
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v, want a broken pipe", err)
	}
	succeed(t, p.Process.Kill())
	_ = p.Wait()
}

// TestPrepare_NoSecretsShow: what other processes of the user can read of it has nothing of the command.
func TestPrepare_NoSecretsShow(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	c := sh(t, s, "echo up; sleep 300")
	c.Args, c.Env = append(c.Args, "hunter2"), append(c.Env, "PASSWORD=hunter2")
	l := prepare(t, c)
	p := l.spawn()
	p.Stdout = w
	succeed(t, p.Start())
	awaitUp(t, r)
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Process.Pid) + "/" + name)
		succeed(t, err)
		for _, secret := range []string{"hunter2", *s.token.Load(), c.Key()} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s shows %q: %q", name, secret, text)
			}
		}
		if len(text) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	comm, err := os.ReadFile("/proc/" + strconv.Itoa(p.Process.Pid) + "/comm")
	if err != nil || string(comm) != standin.Name+"\n" {
		t.Errorf("%q, %v", comm, err)
	}
	succeed(t, l.Release())
	if code := exitCode(t, p.Wait()); code != 137 {
		t.Errorf("released while it ran: status %d, want 137", code)
	}
}

// awaitUp reads the line "up".
func awaitUp(t *testing.T, r io.Reader) {
	t.Helper()
	up := make([]byte, 3)
	if _, err := io.ReadFull(r, up); err != nil || string(up) != "up\n" {
		t.Fatalf("%q, %v", up, err)
	}
}

// TestPrepare_TheCommandInheritsNothing: the launch's descriptors are not the command's.
func TestPrepare_TheCommandInheritsNothing(t *testing.T) {
	s := newSession(t, nil)
	out, err := prepare(t, sh(t, s, `for fd in /proc/self/fd/*; do [ -e $fd ] && echo ${fd##*/}; done; ls -l /proc/self/fd | grep -c socket`)).spawn().Output()
	if lines := strings.Fields(string(out)); exitCode(t, err) != 1 || strings.Join(lines, " ") != "0 1 2 0" {
		t.Errorf("%q, %v", out, err)
	}
}

// awaitRunning waits until the session has the command in its hands, which is a moment after it begins.
func awaitRunning(c *Cmd) {
	for c.Pid() == 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestPrepare_SignalsReachTheCommandsGroup(t *testing.T) {
	s := newSession(t, nil)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP, 40} {
		r, w := pipe(t)
		// A child of its group hears it as well.
		c := plain(t, s.Command(t.Context(), "/bin/bash", "-c", `
			trap 'echo parent; exit 9' `+strconv.Itoa(int(sig))+`
			bash -c "trap 'echo child; exit' `+strconv.Itoa(int(sig))+`; echo up; while :; do sleep 0.01; done" &
			while :; do sleep 0.01; done`))
		p := prepare(t, c).spawn()
		p.Stdout = w
		succeed(t, p.Start())
		w.Close()
		awaitUp(t, r)
		succeed(t, p.Process.Signal(sig))
		out, err := io.ReadAll(r)
		succeed(t, err)
		if code := exitCode(t, p.Wait()); code != 9 || !strings.Contains(string(out), "parent\n") {
			t.Errorf("%v: status %d, %q", sig, code, out)
		}
	}
}

// TestPrepare_SignalsThatEndIt: the status of a command that a signal ended is the one of a shell's.
func TestPrepare_SignalsThatEndIt(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	p := prepare(t, sh(t, s, "echo up; sleep 300")).spawn()
	p.Stdout = w
	succeed(t, p.Start())
	awaitUp(t, r)
	succeed(t, p.Process.Signal(syscall.SIGTERM))
	if code := exitCode(t, p.Wait()); code != 143 {
		t.Errorf("status %d, want 143", code)
	}
}

// TestPrepare_IgnoredSignalsStayIgnored: as under nohup(1).
func TestPrepare_IgnoredSignalsStayIgnored(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	l := prepare(t, sh(t, s, "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done"))
	p := l.spawn()
	p.Path, p.Args = "/bin/bash", []string{"bash", "-c", `trap '' HUP; exec -a "$1" "$0" "$2"`, l.Path, l.Args[0], l.Args[1]}
	p.Stdout = w
	succeed(t, p.Start())
	awaitUp(t, r)
	succeed(t, p.Process.Signal(syscall.SIGHUP))
	succeed(t, p.Process.Signal(syscall.SIGTERM))
	if code := exitCode(t, p.Wait()); code != 5 {
		t.Errorf("status %d, want 5", code)
	}
}
