package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/proxy/mitm"
)

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
		mine.Close() // before the start: a close over a hello that nobody read is a reset, which has words of its own
		run = p.start(t, "--listen 127.0.0.1:0 --decider-fd 3", child)
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
