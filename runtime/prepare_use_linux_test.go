package runtime

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/config"
)

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

// TestPrepare_NoDescriptorsLeft: a session that cannot take the process's streams says so by going away from it, runs nothing,
// and takes the next one.
func TestPrepare_NoDescriptorsLeft(t *testing.T) {
	s := newSession(t, nil)
	l := prepare(t, sh(t, s, "exit 6"))
	in, start := pipe(t)
	p := l.spawn()
	p.Path, p.Args = "/bin/bash", []string{"bash", "-c", `read -r line; exec -a "$1" "$0" "$2" </dev/null`, l.Path, l.Args[0], l.Args[1]}
	var errs bytes.Buffer
	p.Stdin, p.Stderr = in, &errs
	succeed(t, p.Start())
	var limit unix.Rlimit
	succeed(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	next, err := unix.Dup(0)
	succeed(t, err)
	unix.Close(next)
	full := unix.Rlimit{Cur: uint64(next) + 2, Max: limit.Max}
	succeed(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &full, nil))
	_, err = start.WriteString("go\n")
	failed := p.Wait()
	succeed(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &limit, nil))
	succeed(t, err)
	if code := exitCode(t, failed); code != 1 || !strings.Contains(errs.String(), "for want of descriptors") {
		t.Errorf("%d, %q", code, errs.String())
	}
	if code := exitCode(t, l.spawn().Run()); code != 6 {
		t.Errorf("the next one: status %d, want 6", code)
	}
}

// TestPrepare_HostsOfTheCommand: what the spawned command connects to is judged by its own list, which can change while it runs.
func TestPrepare_HostsOfTheCommand_LIB31_LIB32(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	succeed(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	host := net.JoinHostPort("localhost", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port))
	s := newSession(t, nil)
	in, feed := pipe(t)
	r, w := pipe(t)
	c := sh(t, s, `while read -r line; do curl -fsS --noproxy "" "http://`+host+`" 2>/dev/null || echo -n no; echo; done`)
	c.AllowDomains = []string{host}
	p := prepare(t, c).spawn()
	p.Stdin, p.Stdout = in, w
	succeed(t, p.Start())
	w.Close()
	answers := bufio.NewScanner(r)
	ask := func(when, want string) {
		t.Helper()
		_, err := feed.WriteString("\n")
		succeed(t, err)
		if !answers.Scan() || answers.Text() != want {
			t.Errorf("%s: %q, want %q", when, answers.Text(), want)
		}
	}
	ask("with the list of Prepare", "here")
	remove, err := s.AllowDomains(c.Key(), []string{"other.example"})
	succeed(t, err)
	ask("with another list in its place", "no")
	again, err := s.AllowDomains(c.Key(), []string{host})
	succeed(t, err)
	remove() // not this one
	ask("with a third", "here")
	again()
	ask("with none", "no")
	feed.Close()
	succeed(t, p.Wait())
}
