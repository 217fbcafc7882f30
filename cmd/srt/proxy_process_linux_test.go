package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// proxyPatience bounds what must happen in these tests.
const proxyPatience = 30 * time.Second

const proxyHello = `{"t":"hello","proto":1,"allowedDomains":["127.0.0.1"],"deniedDomains":[]}`

// proxyTest is the real srt, run by one user.
type proxyTest struct {
	binary string
	dir    string // that the user may write to
	attr   *syscall.SysProcAttr
}

// forProxyUsers runs a test as who runs the tests and, for root, as the ordinary user, too.
func forProxyUsers(t *testing.T, test func(*testing.T, *proxyTest)) {
	root := scratch(t)
	binary := filepath.Join(root, "srt")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Run("uid "+strconv.Itoa(os.Getuid()), func(t *testing.T) { test(t, &proxyTest{binary: binary, dir: t.TempDir()}) })
	name := os.Getenv(testUserVariable)
	if os.Getuid() != 0 || name == "" {
		return
	}
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	t.Run("user "+name, func(t *testing.T) {
		dir := scratch(t)
		if err := giveTo(dir, account); err != nil {
			t.Fatal(err)
		}
		test(t, &proxyTest{binary, dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}})
	})
}

// proxyProcess is one running srt proxy. Its files are 3, 4, ... in the order given.
type proxyProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout bytes.Buffer
	mu     sync.Mutex
	stderr strings.Builder
	lines  chan string
	read   chan struct{}
}

func (p *proxyTest) start(t *testing.T, args string, files ...*os.File) *proxyProcess {
	t.Helper()
	run := &proxyProcess{t: t, lines: make(chan string, 1000), read: make(chan struct{})}
	run.cmd = exec.Command(p.binary, append([]string{"proxy"}, strings.Fields(args)...)...)
	run.cmd.Env = []string{"SRT_PROXY_REPORT_RSS_MS=20"}
	run.cmd.SysProcAttr, run.cmd.ExtraFiles, run.cmd.Stdout = p.attr, files, &run.stdout
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	run.cmd.Stderr = w
	if err := run.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, w) {
		f.Close()
	}
	go func() {
		defer close(run.read)
		defer r.Close()
		for in := bufio.NewScanner(r); in.Scan(); {
			if rss := regexp.MustCompile(`^srt-proxy rss [1-9]\d{5,}$`); rss.MatchString(in.Text()) {
				continue
			}
			run.mu.Lock()
			run.stderr.WriteString(in.Text() + "\n")
			run.mu.Unlock()
			run.lines <- in.Text()
		}
	}()
	t.Cleanup(func() { _ = run.cmd.Process.Kill(); <-run.read })
	return run
}

// line waits for a line on standard error and returns what stands in the place of %s.
func (p *proxyProcess) line(want string) string {
	p.t.Helper()
	before, after, _ := strings.Cut(want, "%s")
	for {
		select {
		case got := <-p.lines:
			if strings.HasPrefix(got, before) && strings.HasSuffix(got, after) {
				return strings.TrimSuffix(strings.TrimPrefix(got, before), after)
			}
			p.t.Fatalf("standard error says %q, want %q", got, want)
		case <-time.After(proxyPatience):
			p.t.Fatalf("standard error does not say %q", want)
		}
	}
}

// exits waits for the end and checks status and all that was said (a prefix, if it ends in "..."), and that standard output
// stayed silent (PRX-4).
func (p *proxyProcess) exits(name string, status int, said string) {
	p.t.Helper()
	timer := time.AfterFunc(proxyPatience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	_ = p.cmd.Wait()
	<-p.read
	got := p.stderr.String()
	prefix, open := strings.CutSuffix(said, "...")
	if p.cmd.ProcessState.ExitCode() != status || open && !strings.HasPrefix(got, prefix) || !open && got != said+"\n" || strings.Count(got, "\n") > strings.Count(said, "\n")+1 {
		p.t.Errorf("%s: status %d, says %q; want %d, %q", name, p.cmd.ProcessState.ExitCode(), got, status, said)
	}
	if p.stdout.Len() > 0 {
		p.t.Errorf("%s: standard output says %q", name, &p.stdout)
	}
}

// pairOf makes a connected pair: the child's end and this one.
func pairOf(t *testing.T) (child *os.File, mine *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SetNonblock(fds[1], true)
	child, mine = os.NewFile(uintptr(fds[0]), "child"), os.NewFile(uintptr(fds[1]), "mine")
	t.Cleanup(func() { child.Close(); mine.Close() })
	return child, mine
}

func pipeOf(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// sendTo writes a frame and hearFrom reads one.
func sendTo(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
		t.Fatal(err)
	}
}

func hearFrom(t *testing.T, r *os.File) string {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(proxyPatience))
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// unixListener makes a listening Unix socket, for the child.
func unixListener(t *testing.T, path string) *os.File {
	t.Helper()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	f, err := ln.File()
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	t.Cleanup(func() { f.Close() })
	return f
}
