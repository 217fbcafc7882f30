package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTLS30_TLS31_case14_MalformedRequests(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	for _, tc := range []struct{ name, request, line string }{
		{"two framings", "POST /a?k=secret HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "POST /a?… (malformed request ("},
		{"bare LF", "GET / HTTP/1.1\nHost: x\n\n", " (malformed request ("},
		{"folded line", "GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", "GET /a (malformed request ("},
		{"space in the target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "(malformed request-target: percent-encode its bytes outside printable ASCII)"},
		{"raw é", "GET /é HTTP/1.1\r\nHost: x\r\n\r\n", "(malformed request-target: percent-encode its bytes outside printable ASCII)"},
		{"space before the colon", "GET /a HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", "GET /a (malformed request ("},
		{"no Host", "GET /a HTTP/1.1\r\n\r\n", "GET /a (malformed request ("},
		{"repeated length", "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "POST /a (malformed request ("},
		{"gzip coding", "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "POST /a (malformed request ("},
		{"a head over 16 KiB", "GET /a HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", " (malformed request ("},
		{"a request line of its own kind", "nonsense\r\n\r\n", "- (malformed request ("},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(h.lines())
			c := h.shake("name.test")
			status, header, body := c.ask("%s", tc.request)
			if status != 400 || header.Get("X-Proxy-Error") != "blocked-by-sandbox-runtime" || header.Get("Connection") != "" || !strings.HasPrefix(body, "malformed request") {
				t.Errorf("%d %v %q", status, header, body)
			}
			c.ended()
			lines := h.lines()[before:]
			if len(lines) != 1 || !strings.Contains(lines[0], tc.line) || !strings.HasPrefix(lines[0], "deny http-request ") || strings.Contains(lines[0], "secret") {
				t.Errorf("%q, want ...%s", lines, tc.line)
			}
		})
	}
	o.untouched()
	h.free()
}

func TestTLS31_ClientsThatMerelyLeft(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	for _, part := range []string{"", "GE", "GET / HTTP/1.1\r\nHo", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"} {
		c := h.shake("name.test")
		c.send("%s", part)
		c.tls.Close()
	}
	h.free()
	h.wantLines()
}

func TestTLS32_AbsoluteFormAndFronting(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	for _, match := range []bool{false, true} {
		h := terminating(t, o, func(o *Options) { o.RequireHostMatch = match })
		for _, tc := range []struct {
			target, host string
			matched      int // with requireHostMatch
			reason       string
		}{
			{"http://evil.test/p", h.target, 421, "request-target authority does not match the request target\n"},
			{"https://u@" + h.target + "/p", h.target, 421, "request-target authority does not match the request target\n"},
			{"https://" + h.target + "/p", h.target, 200, "ok"},
			{"/p", "evil.test", 421, "Host header does not match the request target\n"},
			{"/p", strings.ToUpper(h.target), 200, "ok"},
			{"/p", "name.test", 421, "Host header does not match the request target\n"}, // the port is not that of https
			{"/p", h.target + "\r\nHost: " + h.target, 421, "more than one Host header\n"},
		} {
			status, _, body := h.shake("name.test").ask("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", tc.target, tc.host)
			switch {
			case match && (status != tc.matched || body != tc.reason):
				t.Errorf("%+v: %d %q", tc, status, body)
			case !match && status != 200:
				t.Errorf("%+v: %d %q", tc, status, body)
			}
		}
		for _, raw := range o.got() {
			if want := fmt.Sprintf("GET /p HTTP/1.1\r\nHost: %s\r\n\r\n", h.target); !match && raw != want {
				t.Errorf("\n got %q\nwant %q", raw, want)
			}
		}
		h.free()
	}
}

func TestTLS35_UpgradesAndNestedConnect(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	for _, request := range []string{
		"CONNECT name.test:443 HTTP/1.1\r\nHost: name.test:443\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
	} {
		c := h.shake("name.test")
		if status, _, body := c.ask("%s", request); status != 501 {
			t.Errorf("%q: %d %q", request, status, body)
		}
		c.ended()
	}
	o.untouched()
	h.free()
}

const openSocket = "GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n" +
	"Sec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n\r\n"

func TestTLS35_WebSocket(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	o.answer = func(r *http.Request, _ string) string {
		if r.URL.Path == "/no" {
			return plainOK
		}
		return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: a\r\nSet-Cookie: b\r\n\r\nfirst frame"
	}
	asked := 0
	h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken}, func(opts *Options) {
		opts.StripResponseHeaders = []string{"set_cookie"}
		opts.Filter = func(context.Context, *FilterRequest) (FilterDecision, error) {
			asked++
			return FilterDecision{Action: FilterAllow}, nil
		}
	})
	c := h.shake("name.test")
	c.send(openSocket, fakes["GH_TOKEN"])
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Sec-WebSocket-Accept") != "a" ||
		resp.Header.Get("Set-Cookie") != "" {
		t.Fatalf("%+v, %v", resp, err)
	}
	c.want("first frame")
	c.send("%s", h.get("/raw")) // the server of this test reads on
	c.want("HTTP/1.1 101 ")
	c.tls.Close()
	got := o.got()
	want := fmt.Sprintf("GET /chat HTTP/1.1\r\nHost: %s\r\nSec-WebSocket-Key: k\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", h.target, secretToken)
	if got[0] != want || got[1] != h.get("/raw") || asked != 1 {
		t.Errorf("\n got %q\nwant %q, asked %d times", got, want, asked)
	}
	h.free()
}

func TestREQ4_WebSocketsCannotBeRead(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o, func(o *Options) { o.RefuseOpaqueTunnels = true })
	c := h.shake("name.test")
	if status, _, body := c.ask(openSocket, "x"); status != 403 || body != "a WebSocket carries what cannot be inspected\n" {
		t.Errorf("%d %q", status, body)
	}
	c.ended()
	o.untouched()
	h.wantLines(fmt.Sprintf("deny http-request GET https://%s/chat (a WebSocket carries what cannot be inspected)", h.target))
}

func TestTLS35_ResponseSplitting(t *testing.T) {
	for _, tc := range []struct {
		name, response string
		status         int
		clean          bool // another request may follow
	}{
		{"no head", "nonsense\r\n\r\n", 502, false},
		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", 502, false},
		{"bare CR in a value", "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c\r\nContent-Length: 0\r\n\r\n", 502, false},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 30\r\n\r\n", 502, false},
		{"two framings", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502, false},
		{"a second response", plainOK + "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npoison!", 200, true},
		{"101 unasked", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 502, false},
		{"1xx first", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + plainOK, 200, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := serveOrigin(t, "name.test", func(*http.Request, string) string { return tc.response })
			h := terminating(t, o)
			c := h.shake("name.test")
			status, _, body := c.ask("%s", h.get("/"))
			if status != tc.status || status == 200 && body != "ok" || status == 502 && body != "Bad Gateway" {
				t.Errorf("%d %q", status, body)
			}
			if !tc.clean {
				c.ended()
			} else if status, _, body := c.ask("%s", h.get("/")); status != 200 || body != "ok" {
				t.Errorf("then %d %q", status, body)
			}
			h.free()
		})
	}
}

func TestREQ2_FilterInATunnel(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	seen := make(chan FilterRequest, 1)
	observed := make(chan string, 1)
	h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken}, func(opts *Options) {
		opts.StripResponseHeaders = []string{"content-type"}
		opts.Filter = func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			if r.RequestTarget == "/deny" {
				return FilterDecision{}, nil
			}
			if r.RequestTarget == "/err" {
				return FilterDecision{Action: FilterAllow}, errors.New("no")
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || string(body) != "body" {
				t.Errorf("body %q, %v", body, err)
			}
			seen <- *r
			return FilterDecision{
				Action: FilterAllow, SetHeaders: []HeaderField{{Name: "X-Set", Value: r.Header[1].Value}},
				OnResponse: func(status int, _ []HeaderField) { observed <- fmt.Sprint(status) },
			}, nil
		}
	})
	c := h.shake("name.test")
	if status, _, _ := c.ask("POST /p HTTP/1.1\r\nHost: x\r\nA: %s\r\nContent-Length: 4\r\n\r\nbody", fakes["GH_TOKEN"]); status != 200 {
		t.Error(status)
	}
	r := <-seen
	if r.Scheme != "https" || r.SNI != "name.test" || r.Host != "name.test" || int(r.Port) != o.port || r.URL != "https://"+h.target+"/p" ||
		r.Header[1].Value != fakes["GH_TOKEN"] { // REQ-13: never a real value
		t.Errorf("%+v", r)
	}
	if got := <-observed; got != "200" {
		t.Error(got)
	}
	// REQ-17: what the filter sets may carry a sentinel.
	want := fmt.Sprintf("POST /p HTTP/1.1\r\nHost: %s\r\nA: %s\r\nContent-Length: 4\r\nX-Set: %s\r\n\r\nbody", h.target, secretToken, secretToken)
	if got := o.got(); len(got) != 1 || sortedHead(got[0]) != sortedHead(want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	for _, path := range []string{"/deny", "/err"} {
		c := h.shake("name.test")
		if status, header, _ := c.ask("%s", h.get(path)); status != 403 || header.Get("X-Proxy-Error") != "blocked-by-sandbox-runtime" {
			t.Error(status)
		}
		c.ended()
	}
	if len(o.got()) != 1 {
		t.Errorf("%q", o.got())
	}
	h.wantLines(
		fmt.Sprintf("deny http-request GET https://%s/deny (denied by sandbox policy)", h.target),
		fmt.Sprintf("deny http-request GET https://%s/err (sandbox policy check failed: no)", h.target),
	)
}

func TestREQ12_case21_ClientLeavesDuringTheFilter(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	asked, ended := make(chan struct{}), make(chan struct{})
	h := terminating(t, o, func(opts *Options) {
		opts.Filter = func(ctx context.Context, _ *FilterRequest) (FilterDecision, error) {
			close(asked)
			<-ctx.Done()
			close(ended)
			return FilterDecision{Action: FilterAllow}, nil
		}
	})
	c := h.shake("name.test")
	c.send("%s", h.get("/"))
	<-asked
	c.Close()
	<-ended
	h.free()
	if conns, _ := o.count(); conns != 0 {
		t.Error("dialled")
	}
}

func TestTLS43_IdleTunnels(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	h.server.inspection.FirstHead, h.server.inspection.Idle = 100*time.Millisecond, 100*time.Millisecond
	c := h.shake("name.test")
	c.ended() // close_notify, and not a cut
	c.Close()
	c = h.shake("name.test")
	if status, header, _ := c.ask("%s", h.get("/")); status != 200 || header.Get("Keep-Alive") != "timeout=5" {
		t.Errorf("%d %v", status, header)
	}
	c.ended()
	c.Close()
	h.free()
}

// sortedHead makes heads comparable whose framing field may stand anywhere.
func sortedHead(raw string) string {
	head, body, _ := strings.Cut(raw, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	var length string
	kept := lines[:0]
	for _, line := range lines {
		if strings.HasPrefix(line, "Content-Length:") {
			length = line
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(append(kept, length), "\r\n") + "\r\n\r\n" + body
}
