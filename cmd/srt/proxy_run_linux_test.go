package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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

// openFiles counts the descriptors of srt proxy, which root alone may look at: nobody else does (PRX-8).
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if os.Getuid() != 0 {
		if err == nil {
			t.Error("PRX-8: another process of its user may look into it")
		}
		return 0
	}
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
