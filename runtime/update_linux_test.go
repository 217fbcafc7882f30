package runtime

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestNet_case34_NET1_NET16_RulesChangeWhileTheCommandRuns: with an empty list a process reaches nothing, by the proxy or without it;
// when the rules have changed, the same process does.
func TestNet_case34_NET1_NET16_RulesChangeWhileTheCommandRuns(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(context.Background(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, questions := pipe(t)
	answers, out := pipe(t)
	cmd := s.Shell(context.Background(), `while read -r how; do
		case $how in
		proxy) { exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://127.0.0.1:`+port+`/ HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\nConnection: close\r\n\r\n' \
			"$(u=${http_proxy#http://}; printf %s "${u%%@*}" | sed 's/%3D/=/g; s/%2B/+/g; s/%2F/\//g' | base64 -w0)" >&3 && head -c 15 <&3; } 2>/dev/null; echo;;
		direct) (exec 3<>/dev/tcp/127.0.0.1/`+port+` && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && head -c 15 <&3) 2>/dev/null; echo;;
		esac
	done`)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME="}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.TempDir(), in, out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	ask := func(how string) string {
		if _, err := io.WriteString(questions, how+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		for strings.HasSuffix(line, "\r\n") { // the answer was cut behind its first line
			more, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			line = strings.TrimSuffix(line, "\r\n") + more
		}
		return strings.TrimSpace(line)
	}
	if got := ask("proxy"); got != "HTTP/1.1 403 Fo" {
		t.Errorf("by the proxy, nothing allowed: %q", got)
	}
	if got := ask("direct"); got != "" {
		t.Errorf("directly, nothing allowed: %q", got)
	}
	changed := s.Config()
	changed.Network.AllowedDomains = []string{"127.0.0.1:" + port}
	if notLive, err := s.Update(t.Context(), changed); err != nil || len(notLive) > 0 {
		t.Fatal(notLive, err)
	}
	if got := ask("proxy"); got != "HTTP/1.1 200 OK" {
		t.Errorf("by the proxy, now allowed: %q", got)
	}
	if got := ask("direct"); got != "HTTP/1.0 200 OK" && got != "HTTP/1.1 200 OK" {
		t.Errorf("directly, now allowed: %q", got)
	}
	questions.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
