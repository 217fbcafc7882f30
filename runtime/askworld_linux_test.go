package runtime

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// askWorld is a session whose every way out is a proxy behind it, to which every name exists.
type askWorld struct {
	*Sandbox
	t *testing.T

	mu      sync.Mutex
	reached []string // host:port of what was let through
	lines   []string // of violations
}

// newAskWorld makes one that asks f; change may alter the configuration.
func newAskWorld(t *testing.T, f AskFunc, change func(*config.Config), list ...AskOption) *askWorld {
	t.Helper()
	return newWayOut(t, change, WithAsk(f, list...))
}

// newWayOut makes one with options of the test's own.
func newWayOut(t *testing.T, change func(*config.Config), list ...Option) *askWorld {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &askWorld{t: t}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	cfg := config.Default()
	cfg.Network.ParentProxy.HTTP = "http://" + l.Addr().String()
	cfg.Network.ParentProxy.HTTPS = cfg.Network.ParentProxy.HTTP
	if change != nil {
		change(cfg)
	}
	record := WithOnViolation(func(e violation.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, e.Line())
	})
	w.Sandbox, err = New(t.Context(), cfg, append(list, record)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// serve is the proxy behind the session: it answers every request with "hello".
func (w *askWorld) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.reached = append(w.reached, req.Host)
	w.mu.Unlock()
	if req.Method == http.MethodConnect {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		if _, err = http.ReadRequest(r); err != nil {
			return
		}
	}
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello\n")
}

// askWays are shell functions: each connects to a host in one way and prints "hello", or the refusal.
const askWays = `
by_proxy() { curl -sSv -p --max-time 50 http://$1/ 2>&1 | grep -aE '^hello|^< HTTP/1.1 403' | tr -d '\r'; }
plain() { curl -sSi --max-time 50 http://$1/ 2>&1 | grep -aE '^hello|^HTTP/1.1 403' | tr -d '\r'; }
socks() { curl -sS --max-time 50 -x "$FTP_PROXY" http://$1/ 2>/dev/null || echo refused; }
captured() { (exec 3<>/dev/tcp/$1/80; printf 'GET / HTTP/1.0\r\nHost: x\r\n\r\n' >&3; tail -n1 <&3) 2>/dev/null || echo refused; }
`

// command prepares a script that may use askWays.
func (w *askWorld) command(script string) (*Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := w.Shell(w.t.Context(), askWays+script)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin", "HOME="}, w.t.TempDir()
	cmd.Stdout, cmd.Stderr, cmd.Text = &out, os.Stderr, "the text"
	return cmd, &out
}

// prints runs a script and wants this output.
func (w *askWorld) prints(script, want string, change ...func(*Cmd)) {
	w.t.Helper()
	cmd, out := w.command(script)
	for _, f := range change {
		f(cmd)
	}
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%s: %v", script, err)
	}
	if got := strings.TrimSpace(out.String()); got != want {
		w.t.Errorf("%s prints %q, want %q", script, got, want)
	}
}

// got are what was let through and the lines of violations until now.
func (w *askWorld) got() (reached, lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reached), slices.Clone(w.lines)
}

// eventuallyTrue waits for something that happens for sure.
func eventuallyTrue(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(askSoon); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never happens that " + what)
		}
	}
}

var waysOut = []string{"by_proxy", "plain", "socks", "captured"}
