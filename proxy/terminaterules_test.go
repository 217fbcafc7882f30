package proxy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// ruled is rules that let requests to read only a part of name.test.
func ruled(t testing.TB) *policy.RequestRules {
	t.Helper()
	rules, err := policy.NewRequestRules([]config.RequestRule{
		{Hosts: []string{"name.test"}, Methods: []string{"GET"}, Paths: []string{"/repos/x/**"}, Action: config.ActionAllow},
		{Hosts: []string{"name.test"}, Methods: []string{"DELETE"}, Action: config.ActionDeny, Reason: "nothing is deleted"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func TestRequestRulesInATunnel(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	early := h.shake("name.test")
	h.update(func(r *Rules) { r.Requests = ruled(t) }) // from the next request
	for _, tc := range []struct {
		method, path string
		status       int
		reason       string
	}{
		{"GET", "/repos/x/a", 200, ""},
		{"POST", "/repos/x/a", 403, "no network.requestRules entry allows this request"},
		{"GET", "/repos/y", 403, "no network.requestRules entry allows this request"},
		{"DELETE", "/repos/x/a", 403, "nothing is deleted"},
		{"GET", "/repos/x/..%2fy", 400, ""},
		{"GET", "/repos/x/../y", 400, ""},
	} {
		before := len(h.lines())
		status, _, body := early.ask("%s %s HTTP/1.1\r\nHost: x\r\n\r\n", tc.method, tc.path)
		if status != tc.status || tc.reason != "" && body != tc.reason+"\n" {
			t.Errorf("%s %s: %d %q", tc.method, tc.path, status, body)
		}
		if refused := len(h.lines()) - before; (refused == 1) != (tc.status != 200) {
			t.Errorf("%s %s: %d lines", tc.method, tc.path, refused)
		}
		if tc.status != 200 {
			early.ended()
			early = h.shake("name.test")
		}
	}
	if got := o.got(); len(got) != 1 {
		t.Errorf("%q", got)
	}
	h.free()
}

func TestRequestRulesRefuseWhatCannotBeRead(t *testing.T) {
	const unread = "network.requestRules names this host, and this tunnel cannot be read"
	o := serveOrigin(t, "name.test", nil)
	connect := fmt.Sprintf("deny http-request CONNECT name.test:%d (%s)", o.port, unread)
	for _, tc := range []struct {
		name string
		set  func(*Options)
		ask  func(*testing.T, *inspecting)
		line string
	}{
		{"no termination", func(o *Options) { o.Terminate = nil }, func(t *testing.T, h *inspecting) {
			if got := h.connectTo(h.target).rest(); !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.HasSuffix(got, "\r\n\r\n"+unread) {
				t.Errorf("%q", got)
			}
		}, connect},
		{"excluded", nil, func(t *testing.T, h *inspecting) {
			h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "name.test") })
			if got := h.connectTo(h.target).rest(); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
				t.Errorf("%q", got)
			}
		}, connect},
		{"not TLS", nil, func(t *testing.T, h *inspecting) {
			p := h.tunnel(h.target)
			p.send("SSH-2.0-x\r\n")
			if got := p.rest(); got != "" {
				t.Errorf("%q", got)
			}
		}, connect},
		{"SOCKS", nil, func(_ *testing.T, h *inspecting) {
			p := h.dial()
			p.send("\x05\x01\x02\x01\x03srt\x20%s%s", testToken, socksName(1, "name.test", o.port))
			p.want("\x05\x02\x01\x00" + socksAnswer(1))
		}, fmt.Sprintf("deny socks-tunnel name.test:%d (%s)", o.port, unread)},
		{"WebSocket", nil, func(t *testing.T, h *inspecting) {
			request := strings.Replace(fmt.Sprintf(openSocket, "x"), "/chat", "/repos/x/chat", 1)
			if status, _, body := h.shake("name.test").ask("%s", request); status != 403 || body != unread+"\n" {
				t.Errorf("%d %q", status, body)
			}
		}, fmt.Sprintf("deny http-request GET https://name.test:%d/repos/x/chat (%s)", o.port, unread)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var change []func(*Options)
			if tc.set != nil {
				change = append(change, tc.set)
			}
			h := terminating(t, o, change...)
			h.update(func(r *Rules) { r.Requests = ruled(t) })
			tc.ask(t, h)
			h.wantLines(tc.line)
		})
	}
	o.untouched()
}

func TestRequestRulesRefuseCapturedConnectionsThatCannotBeRead(t *testing.T) {
	_, port := echo(t)
	c := capturedTLS(t, func(opts *Options) { opts.Policy().Requests = ruled(t) })
	p := c.open(c.addresses("name.test", port)[0])
	p.send("SSH-2.0-x\r\n")
	if n, err := p.Read(make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("%d, %v", n, err)
	}
	c.settled()
	c.wantAll(fmt.Sprintf("deny http-request CONNECT name.test:%d (%s)", port, reasonUnreadable))
	open := capture(t, onlyTest, func(opts *Options) { opts.Policy().Requests = ruled(t) }) // not terminated: not even dialled
	if _, err := open.Judge(testPID, open.addresses("name.test", port)[0]); err == nil {
		t.Error("let through")
	}
}
