package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPRX1_VersionAndDebug: --version is the proxy's wherever it stands, as --help is, and neither opens anything; -d is a debug log.
func TestPRX1_VersionAndDebug(t *testing.T) {
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		for words, want := range map[string]string{
			"--version": "srt-proxy ", "--listen-fd 3x --version": "srt-proxy ", "--decider-fd 77 --version": "srt-proxy ", "--bogus -h": "Usage: srt proxy ",
		} {
			cmd := exec.Command(p.binary, append([]string{"proxy"}, strings.Fields(words)...)...)
			cmd.SysProcAttr = p.attr
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), want) || said.Len() != 0 || want == "srt-proxy " && strings.Count(out.String(), "\n") != 1 {
				t.Errorf("%s: %v, %q, %q", words, err, &out, &said)
			}
		}
		said := map[bool]int{}
		for _, debug := range []bool{false, true} {
			child, mine := pairOf(t)
			args := "--listen 127.0.0.1:0 --decider-fd 3"
			if debug {
				args = "-d " + args
			}
			run := p.start(t, args, child)
			hearFrom(t, mine)
			sendTo(t, mine, proxyHello)
			mine.Close()
			_ = run.cmd.Wait()
			<-run.read
			said[debug] = strings.Count(run.stderr.String(), "\n")
		}
		if said[false] != 2 || said[true] <= said[false] {
			t.Errorf("%d lines with -d, %d without", said[true], said[false])
		}
	})
}

// TestPRX8_NoProcessAndNoFile: while it serves, and after it, there is no process of the proxy's own and no file, wherever it might put one;
// and a proxy that its environment names is not asked.
func TestPRX8_NoProcessAndNoFile(t *testing.T) {
	text, _ := exampleCA(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		_ = http.Serve(server, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hi") }))
	}()
	forProxyUsers(t, func(t *testing.T, p *proxyTest) {
		for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
			t.Setenv(name, "http://127.0.0.1:1") // nobody answers there
		}
		child, mine := pairOf(t)
		r, w := pipeOf(t)
		cmd := exec.Command(p.binary, strings.Fields("proxy -d --listen 127.0.0.1:0 --decider-fd 3 --ca-fd 4")...)
		cmd.Env = append(os.Environ(), "TMPDIR="+p.dir, "HOME="+p.dir, "SRT_PROXY_REPORT_RSS_MS=")
		cmd.Dir, cmd.SysProcAttr, cmd.ExtraFiles = p.dir, p.attr, []*os.File{child, r}
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		_, _ = w.WriteString(text)
		w.Close()
		hearFrom(t, mine)
		sendTo(t, mine, proxyHello)
		in := bufio.NewScanner(said)
		where := ""
		for where == "" && in.Scan() {
			if rest, serving := strings.CutPrefix(in.Text(), "srt proxy: serving "); serving {
				where = rest
			}
		}
		go func() { _, _ = io.Copy(io.Discard, said) }() // so that it never waits for a reader
		conn, err := net.Dial("tcp", where)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET http://%[1]s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", server.Addr())
		hearFrom(t, mine)
		sendTo(t, mine, `{"t":"verdict","id":1,"action":"allow"}`)
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("beside a proxy of the environment: %v, %v", resp, err)
		}
		children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
		for _, path := range children {
			if list, err := os.ReadFile(path); err != nil || len(list) != 0 {
				t.Errorf("%s: %q, %v", path, list, err)
			}
		}
		if len(children) == 0 {
			t.Error("the kernel shows no children: this test shows nothing")
		}
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
		if left, err := os.ReadDir(p.dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// TestPRX35_TheGuideTellsOfTheScheme: what a decider cannot learn from a question, its author is told.
func TestPRX35_TheGuideTellsOfTheScheme(t *testing.T) {
	guide, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(guide), "\n## proxy\n")
	if words := strings.Join(strings.Fields(section), " "); !found || !strings.Contains(words, "There is no scheme in `req`") {
		t.Error("docs/cli.md does not say that a question has no scheme")
	}
}

// TestPRX7_ValuesThatAreNone: what is no positive integer asks for no report, and stops nothing.
func TestPRX7_ValuesThatAreNone(t *testing.T) {
	for _, value := range []string{"", "0", "-5", "x", "1.5", "99999999999999999999"} {
		var said bytes.Buffer
		p := &proxyRun{app: &app{stderr: &said, getenv: func(string) string { return value }}}
		stop := p.reportMemory()
		<-time.After(20 * time.Millisecond)
		stop()
		if said.Len() > 0 {
			t.Errorf("%q: %s", value, &said)
		}
	}
}
