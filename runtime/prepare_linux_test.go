package runtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/config"
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

// TestPrepare_KilledProcess: its death kills all of the sandbox.
func TestPrepare_KilledProcess_LIB17(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	cancelled := false
	c := sh(t, s, `trap '' TERM HUP INT; (trap '' TERM HUP INT; setsid sleep 300) & echo up; sleep 300`)
	c.Cancel = func() error { cancelled = true; return nil } // is for the context alone
	l := prepare(t, c)
	p := l.spawn()
	p.Stdout = w
	succeed(t, p.Start())
	w.Close()
	awaitUp(t, r)
	succeed(t, p.Process.Kill())
	_ = p.Wait()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 { // end of file: nobody is left
		t.Errorf("%q, %v", rest, err)
	}
	succeed(t, l.Release())
	if cancelled {
		t.Error("Cancel was called")
	}
	noChildren(t)
}

// TestPrepare_KilledDuringTheLaunch: at every point of a launch, the end of the process is the end of the command.
func TestPrepare_KilledDuringTheLaunch_LIB17(t *testing.T) {
	for _, phase := range []string{"identities read", "namespaces made", "files planned", "program done"} {
		spawned, killed := make(chan *exec.Cmd, 1), make(chan struct{})
		s := newSession(t, nil, WithTiming(func(now string) {
			if now == phase {
				p := <-spawned
				_ = p.Process.Kill()
				_ = p.Wait()
				close(killed)
			}
		}))
		r, w := pipe(t)
		l := prepare(t, sh(t, s, "sleep 300; echo ran"))
		p := l.spawn()
		p.Stdout = w
		succeed(t, p.Start())
		spawned <- p
		<-killed
		w.Close()
		if out, err := io.ReadAll(r); err != nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", phase, out, err)
		}
		succeed(t, l.Release())
		noChildren(t)
		if len(s.commands) > 0 || len(s.prepared) > 0 {
			t.Errorf("%s: the session still counts the command", phase)
		}
	}
}

func TestPrepare_Release(t *testing.T) {
	s := newSession(t, nil)
	before := leftovers{files: openFiles()}
	for i := range 3 { // never used, used, and both calls at once
		l := prepare(t, sh(t, s, "exit 3"))
		if i == 1 {
			if code := exitCode(t, l.spawn().Run()); code != 3 {
				t.Errorf("status %d", code)
			}
		}
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if len(s.prepared) > 0 || len(s.commands) > 0 {
			t.Error("the session still counts it")
		}
	}
	if extra := before.extraFiles(); len(extra) > 0 {
		t.Errorf("descriptors are left: %v", extra)
	}
	if err := new(Launch).Release(); err != nil {
		t.Error(err)
	}
}

// spawnCopy starts a launch whose own files may be closed by the time, as by a process that has inherited them.
func spawnCopy(t *testing.T, l *Launch) *exec.Cmd {
	t.Helper()
	p := l.spawn()
	p.ExtraFiles = nil
	for _, f := range l.Files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		succeed(t, err)
		c := os.NewFile(uintptr(fd), f.Name())
		t.Cleanup(func() { c.Close() })
		p.ExtraFiles = append(p.ExtraFiles, c)
	}
	return p
}

// TestPrepare_Unusable: a process that comes too late says why, and runs nothing.
func TestPrepare_Unusable(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *Sandbox, l *Launch, cancel context.CancelCauseFunc) error
		want string
	}{
		{"released", func(_ *Sandbox, l *Launch, _ context.CancelCauseFunc) error { return l.Release() }, errReleased.Error()},
		{"LIB-35 closed", func(s *Sandbox, _ *Launch, _ context.CancelCauseFunc) error { return s.Close() }, ErrClosed.Error()},
		{"LIB-51 shut down", func(s *Sandbox, _ *Launch, _ context.CancelCauseFunc) error { return s.Shutdown(context.Background()) }, ErrClosed.Error()},
		{"LIB-17 cancelled", func(_ *Sandbox, l *Launch, cancel context.CancelCauseFunc) error {
			cancel(errCause)
			<-l.prepared.deaf
			return nil
		}, errCause.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, nil)
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			l := prepare(t, plain(t, s.Command(ctx, "/bin/echo", "ran")))
			p := spawnCopy(t, l)
			succeed(t, c.end(s, l, cancel))
			var errs bytes.Buffer
			p.Stderr = &errs
			out, err := p.Output()
			if exitCode(t, err) != 1 || len(out) > 0 || !strings.Contains(errs.String(), c.want) {
				t.Errorf("%v, %q, %q", err, out, errs.String())
			}
		})
	}
}

func TestPrepare_ServesForOneProcess(t *testing.T) {
	s := newSession(t, nil)
	r, w := pipe(t)
	in, feed := pipe(t)
	l := prepare(t, sh(t, s, "echo up; read -r line; exit 4"))
	first := l.spawn()
	first.Stdin, first.Stdout = in, w
	succeed(t, first.Start())
	awaitUp(t, r)
	var errs bytes.Buffer
	second := l.spawn()
	second.Stderr = &errs
	if code := exitCode(t, second.Run()); code != 1 || !strings.Contains(errs.String(), errTwice.Error()) {
		t.Errorf("%d, %q", code, errs.String())
	}
	_, err := feed.WriteString("on\n")
	succeed(t, err)
	if code := exitCode(t, first.Wait()); code != 4 {
		t.Errorf("the first one: status %d", code)
	}
	third := l.spawn()
	errs.Reset()
	third.Stderr = &errs
	if code := exitCode(t, third.Run()); code != 1 || !strings.Contains(errs.String(), errTwice.Error()) {
		t.Errorf("after the end: %d, %q", code, errs.String())
	}
}

// TestPrepare_LostDescriptors: without them the process runs nothing, least of all the embedder's main.
func TestPrepare_LostDescriptors(t *testing.T) {
	s := newSession(t, nil)
	l := prepare(t, sh(t, s, "echo ran"))
	exe, err := os.Executable()
	succeed(t, err)
	for _, extra := range [][]*os.File{nil, {os.Stderr, l.Files[1]}} {
		p := l.spawn()
		p.Path, p.ExtraFiles = exe, extra
		out, err := p.CombinedOutput()
		if exitCode(t, err) != 1 || !strings.HasPrefix(string(out), "srt: descriptor 3 is not that of a prepared command") {
			t.Errorf("%q, %v", out, err)
		}
	}
}

// TestPrepare_WrongMessages: what is no stand-in gets nothing, and does not use up the launch.
func TestPrepare_WrongMessages(t *testing.T) {
	s := newSession(t, nil)
	before := leftovers{files: openFiles()}
	l := prepare(t, sh(t, s, "exit 6"))
	for _, m := range [][]byte{{'x'}, {'H'}, {'H', 1}, {'H', 1, 1}, bytes.Repeat([]byte("H"), 100)} {
		for _, rights := range [][]byte{nil, unix.UnixRights(0), unix.UnixRights(0, 0, 1, 2), unix.UnixRights(0, 0, 0, 0, 0, 0)} {
			_, err := unix.SendmsgN(int(l.Files[0].Fd()), m, rights, nil, 0)
			succeed(t, err)
		}
	}
	if code := exitCode(t, l.spawn().Run()); code != 6 {
		t.Errorf("status %d, want 6", code)
	}
	succeed(t, l.Release())
	if extra := before.extraFiles(); len(extra) > 0 {
		t.Errorf("descriptors are left: %v", extra)
	}
}

func TestPrepare_Refusals(t *testing.T) {
	s := newSession(t, nil)
	for _, c := range []struct {
		name   string
		change func(*Cmd)
		want   string
	}{
		{"Stdin", func(c *Cmd) { c.Stdin = os.Stdin }, "Stdin is set"},
		{"StdoutPipe", func(c *Cmd) { _, err := c.StdoutPipe(); succeed(t, err) }, "Stdout is set"},
		{"Stderr", func(c *Cmd) { c.Stderr = &bytes.Buffer{} }, "Stderr is set"},
		{"CLI-50 Dir", func(c *Cmd) { c.Dir = "relative" }, "not an absolute path"},
		{"LIB-32 short id", func(c *Cmd) { c.ID, c.AllowDomains = "short", []string{"a.example"} }, "AllowDomains"},
		{"LIB-31 entry", func(c *Cmd) { c.AllowDomains = []string{"*.com"} }, "AllowDomains"},
		{"LIB-11 shell", func(c *Cmd) { c.script, c.ShellPath = "x", "no-such-shell" }, "not found in PATH"},
	} {
		before := leftovers{files: openFiles()}
		cmd := sh(t, s, "true")
		c.change(cmd)
		l, err := cmd.Prepare()
		if _, ok := errors.AsType[*LaunchError](err); !ok || l != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if extra := before.extraFiles(); len(extra) > 0 {
			t.Errorf("%s: descriptors are left: %v", c.name, extra)
		}
		if _, err := cmd.Prepare(); !errors.Is(err, errUsed) {
			t.Errorf("%s, a second time: %v", c.name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errCause)
	if _, err := plain(t, s.Command(ctx, "true")).Prepare(); err != errCause { //nolint:errorlint // the cause itself
		t.Errorf("%v", err)
	}
	c := sh(t, s, "true")
	prepare(t, c)
	if err := c.Start(); !errors.Is(err, errUsed) {
		t.Errorf("Start after Prepare: %v", err)
	}
	if err := c.Wait(); !errors.Is(err, errPrepared) {
		t.Errorf("Wait after Prepare: %v", err)
	}
	if err := c.Kill(); !errors.Is(err, errNotStarted) {
		t.Errorf("Kill before the process: %v", err)
	}
	succeed(t, s.Close())
	if _, err := sh(t, s, "true").Prepare(); !errors.Is(err, ErrClosed) {
		t.Errorf("Prepare after Close: %v", err)
	}
}

// TestPrepare_BeginsWithTheProcess: what is in force then is what counts, and what the caller changes meanwhile is not.
func TestPrepare_BeginsWithTheProcess_LIB16(t *testing.T) {
	dir := t.TempDir()
	succeed(t, os.WriteFile(dir+"/secret", []byte("seen\n"), 0o600))
	s := newSession(t, nil)
	c := sh(t, s, `cat secret; echo "$VALUE"`)
	c.Dir, c.Env = dir, append(c.Env, "VALUE=first")
	mine := c.Env
	l := prepare(t, c)
	mine[len(mine)-1] = "VALUE=second"
	cfg := s.Config()
	cfg.Filesystem.DenyRead = []config.PathEntry{{Path: dir + "/secret"}}
	_, err := s.Update(t.Context(), cfg)
	succeed(t, err)
	out, err := l.spawn().Output()
	succeed(t, err)
	if string(out) != "first\n" {
		t.Errorf("%q", out)
	}
}

// TestPrepare_AllowDomains: the list is in force from Prepare to Release, and no longer.
func TestPrepare_AllowDomains_LIB31(t *testing.T) {
	s := newSession(t, nil)
	c := sh(t, s, "true")
	c.AllowDomains = []string{"only.example"}
	host, err := config.CanonicalHost("only.example")
	succeed(t, err)
	inForce := func(when string, want bool) {
		t.Helper()
		if _, ok := s.lists.Allows(c.Key(), host, 443); ok != want {
			t.Errorf("in force %s: %v", when, ok)
		}
	}
	inForce("before Prepare", false)
	l := prepare(t, c)
	inForce("after Prepare", true)
	succeed(t, l.spawn().Run())
	inForce("before Release", true)
	succeed(t, l.Release())
	inForce("after Release", false)
}

// TestPrepare_Override_LIB13: it is judged at once, and counts.
func TestPrepare_Override_LIB13(t *testing.T) {
	s := newSession(t, nil)
	c := sh(t, s, "touch made")
	c.Override = &config.Override{Filesystem: &config.FilesystemOverride{AllowWrite: []config.PathEntry{{Path: c.Dir}}}}
	succeed(t, prepare(t, c).spawn().Run())
	if _, err := os.Stat(c.Dir + "/made"); err != nil {
		t.Error(err)
	}
}

// TestPrepare_CancelledWhileItRuns: the context ends the command as it does one of Start.
func TestPrepare_CancelledWhileItRuns_LIB17(t *testing.T) {
	s := newSession(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r, w := pipe(t)
	var errs bytes.Buffer
	c := plain(t, s.Command(ctx, "/bin/sh", "-c", "echo up; sleep 300"))
	p := prepare(t, c).spawn()
	p.Stdout, p.Stderr = w, &errs
	succeed(t, p.Start())
	awaitUp(t, r)
	awaitRunning(c)
	if c.Pid() == p.Process.Pid {
		t.Errorf("Pid %d is that of the process", c.Pid())
	}
	cancel(errCause)
	if code := exitCode(t, p.Wait()); code != 137 || errs.String() != "srt: "+errCause.Error()+"\n" {
		t.Errorf("%d, %q", code, errs.String())
	}
}

// TestPrepare_ReleasedDuringTheLaunch: a launch may be released at every point, and nothing is left.
func TestPrepare_ReleasedDuringTheLaunch_LIB18(t *testing.T) {
	for _, phase := range []string{"identities read", "namespaces made", "files planned", "program done"} {
		released := make(chan error, 1)
		launches := make(chan *Launch, 1)
		s := newSession(t, nil, WithTiming(func(now string) {
			if now == phase {
				l := <-launches
				go func() { released <- l.Release() }()
				for !l.prepared.aborted.Load() { // Release waits for the launch, which is to end now
					time.Sleep(time.Millisecond)
				}
			}
		}))
		before := leftovers{files: openFiles()}
		c := sh(t, s, "sleep 300; echo ran")
		c.Cancel = func() error { return nil } // Release does not depend on it
		l := prepare(t, c)
		p := l.spawn()
		var errs bytes.Buffer
		p.Stderr = &errs
		r, w := pipe(t)
		p.Stdout = w
		succeed(t, p.Start())
		launches <- l
		succeed(t, <-released)
		if code := exitCode(t, p.Wait()); code != 137 || !strings.HasPrefix(errs.String(), "srt: ") {
			t.Errorf("%s: %d, %q", phase, code, errs.String())
		}
		w.Close()
		if out, err := io.ReadAll(r); err != nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", phase, out, err)
		}
		r.Close()
		noChildren(t)
		if extra := before.extraFiles(); len(extra) > 0 {
			t.Errorf("%s: descriptors are left: %v", phase, extra)
		}
	}
}

// TestPrepare_OtherUsers: the command would have the session's rights.
func TestPrepare_OtherUsers(t *testing.T) {
	s := newSession(t, nil)
	const nobody = 65534
	for _, c := range []struct{ uid, gid int }{{os.Getuid(), nobody}, {nobody, os.Getgid()}} {
		l := prepare(t, sh(t, s, "echo ran"))
		p := l.spawn()
		p.Dir = "/"
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.uid), Gid: uint32(c.gid), NoSetGroups: true}}
		out, err := p.CombinedOutput()
		if errors.Is(err, syscall.EPERM) && os.Getuid() != 0 {
			continue // only root can spawn so
		}
		if exitCode(t, err) != 1 || !strings.Contains(string(out), "Spawn it with these") {
			t.Errorf("%+v: %q, %v", c, out, err)
		}
	}
}

// TestPrepare_CancelledDuringTheLaunch: the process says why, and nothing is left.
func TestPrepare_CancelledDuringTheLaunch_LIB17(t *testing.T) {
	for _, phase := range []string{"identities read", "namespaces made", "files planned", "program done"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		s := newSession(t, nil, WithTiming(func(now string) {
			if now == phase {
				cancel(errCause)
			}
		}))
		var errs bytes.Buffer
		l := prepare(t, plain(t, s.Command(ctx, "/bin/sh", "-c", "sleep 300; echo ran")))
		p := l.spawn()
		p.Stderr = &errs
		out, err := p.Output()
		if code := exitCode(t, err); code != 137 || len(out) > 0 || errs.String() != "srt: "+errCause.Error()+"\n" {
			t.Errorf("%s: %d, %q, %q", phase, code, out, errs.String())
		}
		succeed(t, l.Release())
		noChildren(t)
		if len(s.commands) > 0 {
			t.Errorf("%s: the session still counts the command", phase)
		}
	}
}

// TestPrepare_CloseAndShutdownWhileItRuns: a command that runs outlives Close, and Shutdown waits for it.
func TestPrepare_CloseAndShutdownWhileItRuns_LIB35_LIB51(t *testing.T) {
	for name, end := range map[string]func(*Sandbox) error{
		"Close": (*Sandbox).Close, "Shutdown": func(s *Sandbox) error { return s.Shutdown(context.Background()) },
	} {
		s := newSession(t, nil)
		r, w := pipe(t)
		in, feed := pipe(t)
		c := sh(t, s, "echo up; read -r line; exit 8")
		p := prepare(t, c).spawn()
		p.Stdin, p.Stdout = in, w
		succeed(t, p.Start())
		awaitUp(t, r)
		awaitRunning(c) // else Close ends the launch
		ended := make(chan error, 1)
		go func() { ended <- end(s) }()
		if name == "Close" {
			succeed(t, <-ended)
		}
		_, err := feed.WriteString("on\n")
		succeed(t, err)
		if code := exitCode(t, p.Wait()); code != 8 {
			t.Errorf("%s: status %d", name, code)
		}
		if name != "Close" {
			succeed(t, <-ended)
		}
	}
}

func TestPrepare_ManyAtOnce_LIB17(t *testing.T) {
	s := newSession(t, nil)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			c := s.Command(context.Background(), "/bin/sh", "-c", "exit "+strconv.Itoa(i))
			c.Env, c.Dir = []string{"PATH=/usr/bin:/bin", "HOME="}, "/"
			l, err := c.Prepare()
			if err != nil {
				t.Error(err)
				return
			}
			err = l.spawn().Run()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code, err = exit.ExitCode(), nil
			}
			if err != nil || code != i {
				t.Errorf("%d: %d, %v", i, code, err)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	noChildren(t)
}
