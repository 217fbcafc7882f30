package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
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

	"github.com/srt-sandbox/srt/proxy/mitm"
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

func TestPRX3_StartsThatFail(t *testing.T) {
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		for frame, why := range map[string]string{
			`{"t":"hello","proto":2,"allowedDomains":[],"deniedDomains":[]}`: "bad hello",
			`{"t":"hello","proto":1,"allowedDomains":[]}`:                    "bad hello",
			``:              "frame is not valid JSON",
			`{"a":1,"a":1}`: "duplicate key in frame",
		} {
			child, mine := pairOf(t)
			run := p.start(t, "--listen 127.0.0.1:0 --decider-fd 3", child)
			sendTo(t, mine, frame)
			run.exits("cases 1 to 4", 2, "srt proxy: decider unavailable: "+why)
		}
		child, mine := pairOf(t)
		run := p.start(t, "--listen 127.0.0.1:0 --decider-fd 3", child)
		_, _ = mine.Write([]byte{0, 0x10, 0, 1})
		run.exits("case 3", 2, "srt proxy: decider unavailable: oversized frame")
		child, mine = pairOf(t)
		run = p.start(t, "--listen 127.0.0.1:0 --decider-fd 3", child)
		mine.Close()
		run.exits("PRX-3", 2, "srt proxy: decider unavailable: decider closed the stream")

		for name, end := range map[string]func(*proxyProcess, *os.File){
			"SIGTERM":         func(run *proxyProcess, _ *os.File) { _ = run.cmd.Process.Signal(unix.SIGTERM) },
			"SIGINT":          func(run *proxyProcess, _ *os.File) { _ = run.cmd.Process.Signal(unix.SIGINT) },
			"lifeline closed": func(_ *proxyProcess, lifeline *os.File) { lifeline.Close() },
		} {
			child, mine := pairOf(t)
			lifelineChild, lifeline := pipeOf(t)
			run := p.start(t, "--listen 127.0.0.1:0 --decider-fd 3 --lifeline-fd 4", child, lifelineChild)
			hearFrom(t, mine) // it is up
			end(run, lifeline)
			run.exits("PRX-3", 2, "srt proxy: decider unavailable: "+name)
		}
	})
}

func TestPRX3_DescriptorsThatAreNotUsable(t *testing.T) {
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		listening := func() *os.File {
			f, err := ln.(*net.TCPListener).File()
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		socket := func(kind int) *os.File {
			fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { unix.Close(fds[1]) })
			return os.NewFile(uintptr(fds[0]), "socket")
		}
		null := func(flags int) *os.File {
			f, err := os.OpenFile("/dev/null", flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		readEnd := func() *os.File { r, _ := pipeOf(t); return r }
		writeEnd := func() *os.File { _, w := pipeOf(t); return w }
		stream := func() *os.File { return socket(unix.SOCK_STREAM) }
		for _, test := range []struct {
			args  string
			files []*os.File
			said  string
		}{
			{"--listen 127.0.0.1:0 --decider-fd 77", nil, "--decider-fd 77 is not usable: it is not open (EBADF)"},
			{"--listen-fd 4 --decider-fd 3", []*os.File{stream(), stream()}, "--listen-fd 4 is not usable: it is a socket that does not listen"},
			{"--listen-fd 4 --decider-fd 3", []*os.File{stream(), readEnd()}, "--listen-fd 4 is not usable: it is not a socket"},
			{"--listen-fd 4 --decider-fd 3", []*os.File{listening(), listening()}, "--decider-fd 3 is not usable: it is a socket that listens; hand over a connection"},
			{"--listen-fd 4 --decider-fd 3", []*os.File{socket(unix.SOCK_SEQPACKET), listening()}, "--decider-fd 3 is not usable: it is not a stream socket"},
			{"--listen-fd 4 --decider-fd 3", []*os.File{readEnd(), listening()}, "--decider-fd 3 is not usable: it is not a socket; two pipes..."},
			{"--listen-fd 5 --decider-in 3 --decider-out 4", []*os.File{writeEnd(), writeEnd(), listening()}, "--decider-in 3 is not usable: it is open for writing only"},
			{"--listen-fd 5 --decider-in 3 --decider-out 4", []*os.File{readEnd(), readEnd(), listening()}, "--decider-out 4 is not usable: it is open for reading only"},
			{"--listen-fd 5 --decider-in 3 --decider-out 4", []*os.File{null(os.O_RDWR), writeEnd(), listening()}, "--decider-in 3 is not usable: it is neither a socket nor a pipe"},
			{"--listen-fd 4 --decider-fd 3 --lifeline-fd 5", []*os.File{stream(), listening(), null(os.O_RDONLY)}, "--lifeline-fd 5 is not usable: it is neither a socket nor a pipe"},
			{"--listen-fd 4 --decider-fd 3 --ca-fd 5", []*os.File{stream(), listening(), writeEnd()}, "--ca-fd 5 is not usable: it is open for writing only"},
			{"--listen-fd 4 --decider-fd 3 --ca-fd 5", []*os.File{stream(), listening(), null(os.O_RDONLY)}, "--ca-fd 5: certificate authority: there is no PEM CERTIFICATE block"},
			{"--listen " + ln.Addr().String() + " --decider-fd 3", []*os.File{stream()}, "cannot listen on " + ln.Addr().String() + ":..."},
			{"--listen 0.0.0.0:0 --decider-fd 3", []*os.File{stream()}, "--listen 0.0.0.0:0 is not a loopback address..."},
			{"--listen-fd 3x --decider-fd 3", []*os.File{stream()}, "option '--listen-fd' argument '3x' is invalid..."},
		} {
			p.start(t, test.args, test.files...).exits(test.args, 2, "srt proxy: "+test.said)
		}
	})
}

func TestPRX10_Authorities(t *testing.T) {
	text, _ := exampleCA(t)
	other, _ := exampleCA(t)
	certificate, key := cutPEM(text, "CERTIFICATE"), cutPEM(text, "PRIVATE KEY")
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		for name, test := range map[string]struct{ text, said string }{
			"no key":         {certificate, "certificate authority: there is no PEM PRIVATE KEY block"},
			"no certificate": {key, "certificate authority: there is no PEM CERTIFICATE block"},
			"another key":    {certificate + cutPEM(other, "PRIVATE KEY"), "certificate authority: key does not match certificate public key"},
			"too long":       {strings.Repeat("#", 1<<20+1), "it holds more than 1 MiB; a certificate and its key, in PEM, are expected"},
		} {
			child, _ := pairOf(t)
			r, w := pipeOf(t)
			run := p.start(t, "--listen 127.0.0.1:0 --decider-fd 3 --ca-fd 4", child, r)
			_, _ = io.WriteString(w, test.text)
			w.Close()
			run.exits("PRX-10 "+name, 2, "srt proxy: --ca-fd 4: "+test.said)
		}
		child, mine := pairOf(t)
		r, w := pipeOf(t)
		run := p.start(t, "-d --listen 127.0.0.1:0 --decider-fd 3 --ca-fd 4", child, r)
		_, _ = io.WriteString(w, key+certificate)
		_ = run.cmd.Process.Signal(unix.SIGCONT)
		w.Close()
		hearFrom(t, mine)
		sendTo(t, mine, proxyHello)
		where := run.line("srt proxy: serving %s")
		conn, err := net.Dial("tcp", where)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
		if line, _ := bufio.NewReader(conn).ReadString('\n'); line != "HTTP/1.1 200 Connection Established\r\n" {
			t.Errorf("PRX-12: %q", line)
		}
		_ = run.cmd.Process.Signal(unix.SIGTERM)
		_ = run.cmd.Wait()
		<-run.read
		for line := range strings.Lines(key) {
			if line = strings.TrimSpace(line); len(line) > 8 && strings.Contains(run.stderr.String(), line) {
				t.Errorf("PRX-8: the key is in the log")
			}
		}
	})
}

// exampleCA is an authority with its key, as PEM, and it.
func exampleCA(t *testing.T) (string, *mitm.CA) {
	t.Helper()
	out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "-", "-subj", "/CN=test", "-days", "2",
		"-addext", "basicConstraints=critical,CA:TRUE").Output()
	if err != nil {
		t.Fatalf("openssl: %v", err)
	}
	ca, err := mitm.FromPEM(out, out)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), ca
}

// cutPEM is the block of a type.
func cutPEM(text, kind string) string {
	_, rest, _ := strings.Cut(text, "-----BEGIN "+kind+"-----")
	body, _, _ := strings.Cut(rest, "-----END ")
	return "-----BEGIN " + kind + "-----" + body + "-----END " + kind + "-----\n"
}

func TestPRX4_5_6_AnInheritedSocket(t *testing.T) {
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		for name, end := range map[string]func(run *proxyProcess, decider, lifeline *os.File){
			"SIGTERM":                            func(run *proxyProcess, _, _ *os.File) { _ = run.cmd.Process.Signal(unix.SIGTERM) },
			"SIGINT":                             func(run *proxyProcess, _, _ *os.File) { _ = run.cmd.Process.Signal(unix.SIGINT) },
			"lifeline closed":                    func(_ *proxyProcess, _, lifeline *os.File) { lifeline.Close() },
			"decider: decider closed the stream": func(_ *proxyProcess, decider, _ *os.File) { decider.Close() },
			"decider: verdict for id 9, which nothing waits on": func(_ *proxyProcess, decider, _ *os.File) {
				sendTo(t, decider, `{"t":"verdict","id":9,"action":"allow"}`)
			},
		} {
			path := filepath.Join(p.dir, "s"+strconv.Itoa(len(name)))
			socket := unixListener(t, path)
			_ = os.Chmod(path, 0o777)
			child, mine := pairOf(t)
			lifelineChild, lifeline := pipeOf(t)
			conn, err := net.Dial("unix", path) // waits in the backlog
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
			run := p.start(t, "--listen-fd 3 --decider-fd 4 --lifeline-fd 5", socket, child, lifelineChild)
			if got := hearFrom(t, mine); got != `{"t":"hello","proto":1}` {
				t.Fatal(got)
			}
			_, _ = lifeline.WriteString("case 29: bytes are ignored\n")
			sendTo(t, mine, proxyHello)
			run.line("srt proxy: serving fd 3")
			if got := hearFrom(t, mine); !strings.HasPrefix(got, `{"t":"req","id":1,`) {
				t.Fatal(got)
			}
			end(run, mine, lifeline)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("PRX-6: %s: the pending request gets no answer: %v", name, err)
			}
			if resp.StatusCode != 503 || resp.Header.Get("X-Deny-Reason") != "decider_unavailable" {
				t.Errorf("case 20: %s: %v", name, resp)
			}
			run.exits("PRX-5", 0, "srt proxy: serving fd 3\nsrt proxy: stopped ("+name+")")
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("PRX-6: %s: %v", name, err)
			}
		}
	})
}

func TestPRX1_TwoPipes(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		_ = http.Serve(server, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hi") }))
	}()
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		questionsMine, questions := pipeOf(t)
		verdicts, verdictsMine := pipeOf(t)
		run := p.start(t, "--listen 127.0.0.1:0 --decider-in 3 --decider-out 4", verdicts, questions)
		hearFrom(t, questionsMine)
		sendTo(t, verdictsMine, proxyHello)
		where := run.line("srt proxy: serving %s")
		before := openFiles(t, run.cmd.Process.Pid)
		for id := 1; id <= 50; id++ {
			conn, err := net.Dial("tcp", where)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "GET http://%[1]s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", server.Addr())
			hearFrom(t, questionsMine)
			sendTo(t, verdictsMine, fmt.Sprintf(`{"t":"verdict","id":%d,"action":"allow"}`, id))
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%v, %v", resp, err)
			}
			conn.Close()
		}
		for deadline := time.Now().Add(proxyPatience); openFiles(t, run.cmd.Process.Pid) > before+1; { // the poller's own may have come
			if time.Now().After(deadline) {
				t.Fatalf("%d descriptors are open, %d were", openFiles(t, run.cmd.Process.Pid), before)
			}
		}
		questionsMine.Close() // it does not read any more, and nothing is written that could tell
		run.exits("PRX-60", 0, "srt proxy: serving "+where+"\nsrt proxy: stopped (decider: decider closed the output stream)")
	})
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestPRX7_Memory(t *testing.T) {
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		child, _ := pairOf(t)
		cmd := exec.Command(p.binary, "proxy", "--listen", "127.0.0.1:0", "--decider-fd", "3")
		cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = []string{"SRT_PROXY_REPORT_RSS_MS=5"}, []*os.File{child}, p.attr
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		in := bufio.NewReader(out)
		for range 2 {
			if line, err := in.ReadString('\n'); !regexp.MustCompile(`\Asrt-proxy rss [1-9]\d{5,9}\n\z`).MatchString(line) {
				t.Fatalf("%q, %v", line, err)
			}
		}
	})
}

func TestPRX2_AnyInterfaceIsWarnedOf(t *testing.T) {
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		child, mine := pairOf(t)
		run := p.start(t, "--listen 0.0.0.0:0 --listen-any-interface --decider-fd 3", child)
		run.line("srt proxy: warning: 0.0.0.0:0 is not a loopback address%s")
		hearFrom(t, mine)
		sendTo(t, mine, proxyHello)
		run.line("srt proxy: serving %s")
	})
}
