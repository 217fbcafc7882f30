package proxy

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// ruledRequests are rules about the host of these tests, compiled.
func ruledRequests(t testing.TB, rules ...config.RequestRule) *policy.RequestRules {
	t.Helper()
	r, err := policy.NewRequestRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readOnly lets GET and HEAD of one subtree through, and nothing else to the host.
func readOnly(t testing.TB) *policy.RequestRules {
	return ruledRequests(t,
		config.RequestRule{Hosts: []string{"name.test"}, Paths: []string{"/repos/x/secret"}, Action: config.ActionDeny, Reason: "ask first"},
		config.RequestRule{Hosts: []string{"name.test"}, Methods: []string{"GET", "HEAD"}, Paths: []string{"/repos/x", "/repos/x/**"}, Action: config.ActionAllow})
}

// ruledRow is a request and what becomes of it; reason is empty if it goes on.
type ruledRow struct {
	method, path, field string
	status              int
	reason              string
}

const (
	noRule      = "no network.requestRules entry allows this request"
	twoReadings = "ambiguous request-target: servers read it as different paths, which network.requestRules decides differently"
)

var ruledRows = []ruledRow{
	{"GET", "/repos/x/issues?page=2", "", 200, ""},
	{"GET", "/repos/x", "X-Other: DELETE", 200, ""},
	{"HEAD", "/repos/x/a", "", 200, ""},
	{"GET", "/repos/%78/a", "", 200, ""},
	{"GET", "/repos/x/a", "X-HTTP-Method-Override: GET", 200, ""},
	{"POST", "/repos/x/issues", "", 403, noRule},
	{"GET", "/repos/y", "", 403, noRule},
	{"GET", "/repos/x/secret", "", 403, "ask first"},
	{"GET", "/repos/x/%73ecret", "", 403, "ask first"},
	{"get", "/repos/x/a", "", 403, noRule},
	{"GET", "/repos/x/../y", "", 400, reasonAmbiguousTarget},
	{"GET", "/repos/x/..%2fy", "", 400, twoReadings},
	{"GET", "/repos/x/..;/y", "", 400, twoReadings},
	{"GET", "/repos/x/secret%2F", "", 200, ""}, // neither reading is the path that is denied
	{"GET", "/repos/x/secret;a", "", 400, twoReadings},
	{"GET", "/repos/x/a", "X-HTTP-Method-Override: DELETE", 403, noRule},
	{"GET", "/repos/x/a", "X-Original-URL: /repos/x/b", 200, ""},
	{"GET", "/repos/x/a", "X-Original-URL: /repos/y", 403, noRule},
	{"GET", "/repos/x/a", "x_rewrite.url:  repos/x/secret", 403, "ask first"},
	{"GET", "/repos/x/a", "X-Rewrite-URL: https://name.test/repos/y?/repos/x/", 403, noRule},
	{"GET", "/repos/x/a", "X-Rewrite-URL: /repos/x/../y", 400, twoReadings},
	{"GET", "/repos/x/a", "X-Rewrite-URL: https://name.test", 403, noRule},
	{"GET", "/repos/x/a", "x_http.method: put", 403, noRule},
	{"GET", "/repos/x/a", "X-Method-Override:   DELETE ", 403, noRule},
}

// TestRequestRulesInTunnels holds that each request in a terminated tunnel is judged, whether there is a filter or not, and
// that what is refused leaves no trace upstream.
func TestRequestRulesInTunnels(t *testing.T) {
	for _, filtered := range []bool{false, true} {
		o := serveOrigin(t, "name.test", nil)
		asked := 0
		h := terminating(t, o, func(o *Options) {
			if filtered {
				o.Filter = func(context.Context, *FilterRequest) (FilterDecision, error) {
					asked++
					return FilterDecision{Action: FilterAllow}, nil
				}
			}
		})
		h.update(func(r *Rules) { r.Requests = readOnly(t) })
		var lines []string
		passed := 0
		for _, row := range ruledRows {
			c := h.shake("name.test")
			field := row.field
			if field != "" {
				field += "\r\n"
			}
			c.send("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", row.method, row.path, h.target, field)
			status, header, body := c.response(row.method)
			if status != row.status || row.reason != "" && body != row.reason+"\n" {
				t.Errorf("%+v: %d %q", row, status, body)
			}
			if wantMark := map[int]string{400: markAmbiguous, 403: markRuntime}[row.status]; header.Get("X-Proxy-Error") != wantMark {
				t.Errorf("%+v: mark %q", row, header.Get("X-Proxy-Error"))
			}
			if row.reason == "" {
				passed++
			} else {
				lines = append(lines, "deny http-request "+row.method+" https://"+h.target+row.path+" ("+row.reason+")")
			}
			c.tls.Close()
		}
		h.free()
		if got := o.got(); len(got) != passed || filtered && asked != passed {
			t.Errorf("%d requests reached the server and %d the filter, of %d", len(got), asked, passed)
		}
		h.wantLines(lines...)
		for _, e := range h.events {
			if !strings.HasPrefix(e.Rule, "network.requestRules") && e.Rule != ruleAmbiguous {
				t.Errorf("%s: rule %q", e.Line(), e.Rule)
			}
		}
	}
}

// TestRequestRulesInCleartext holds the same of plain requests, whose absolute form names the host.
func TestRequestRulesInCleartext(t *testing.T) {
	for _, row := range ruledRows {
		r := inCleartext(t, row.method, "http://name.test"+row.path, slices.DeleteFunc([]string{row.field}, func(s string) bool { return s == "" })...)
		r.rules = &Rules{Requests: readOnly(t)}
		s := start(t, onlyTest).server
		a, refused := s.judgeRequest(t.Context(), r)
		if refused != (row.reason != "") || refused && (a.body != row.reason+"\n" || !strings.HasPrefix(a.status, fmt.Sprint(row.status))) {
			t.Errorf("%+v: %v %+v", row, refused, a)
		}
	}
}

// TestRequestRulesNormalize holds that with "normalize" the normalized form is judged and goes out, filter or none, and that
// "asSpelled" does not let an ambiguous target through.
func TestRequestRulesNormalize(t *testing.T) {
	for mode, want := range map[string]struct {
		status int
		path   string
	}{config.TargetNormalize: {0, "/repos/x/b"}, config.TargetAsSpelled: {400, ""}, "": {400, ""}} {
		s := start(t, onlyTest, func(o *Options) { o.AmbiguousRequestTarget = mode }).server
		r := inTunnel(t, "GET", "/repos/x/a/../b")
		r.host, r.rules = canonical(t, "name.test"), &Rules{Requests: readOnly(t)}
		a, refused := s.judgeRequest(t.Context(), r)
		if refused != (want.status != 0) || refused && a.status != "400 Bad Request" || !refused && r.path != want.path {
			t.Errorf("REQ-7 %q: %v %+v, %s", mode, refused, a, r.path)
		}
	}
	// At a host that no rule with paths names, a target is nobody's business without a filter (REQ-8).
	s := start(t, onlyTest, func(o *Options) { o.AmbiguousRequestTarget = config.TargetNormalize }).server
	r := inTunnel(t, "GET", "/repos/x/a/../b")
	r.rules = &Rules{Requests: readOnly(t)}
	if _, refused := s.judgeRequest(t.Context(), r); refused || r.path != "/repos/x/a/../b" {
		t.Errorf("REQ-8: %v, %s", refused, r.path)
	}
}

// TestRequestRulesRefuseTheUnreadable holds that nothing passes to a host that rules name which srt cannot read, by whichever
// way it comes, and that other hosts are not concerned.
func TestRequestRulesRefuseTheUnreadable(t *testing.T) {
	_, port := echo(t)
	rules := readOnly(t)
	h := terminating(t, nil)
	h.update(func(r *Rules) { r.Requests = rules })
	at := fmt.Sprintf("name.test:%d", port)
	p := h.tunnel(at)
	p.send("SSH-2.0-x\r\n")
	if got := p.rest(); got != "" {
		t.Errorf("a tunnel without TLS: %q", got)
	}
	h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "name.test") })
	if got := h.connectTo(at).rest(); !strings.HasPrefix(got, "HTTP/1.1 403 Forbidden\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+reasonUnreadable) {
		t.Errorf("an excluded host: %q", got)
	}
	p = h.dial()
	p.send("\x05\x01\x02\x01\x03srt\x20%s%s", testToken, socksName(1, "name.test", port))
	p.want("\x05\x02\x01\x00")
	p.want(socksAnswer(1))
	h.wantLines(
		fmt.Sprintf("deny http-request CONNECT %s (%s)", at, reasonUnreadable),
		fmt.Sprintf("deny http-request CONNECT %s (%s)", at, reasonUnreadable),
		fmt.Sprintf("deny socks-tunnel %s (%s)", at, reasonUnreadable),
	)
	p = h.dial() // another host
	p.send("\x05\x01\x02\x01\x03srt\x20%s%s", testToken, socksName(1, "127.0.0.1", port))
	p.want("\x05\x02\x01\x00")
	p.want(socksAnswer(0))
}

// TestRequestRulesWithoutTermination holds that a CONNECT to a host that rules name is refused where TLS stays closed.
func TestRequestRulesWithoutTermination(t *testing.T) {
	h := terminating(t, nil, func(o *Options) { o.Terminate = nil })
	h.update(func(r *Rules) { r.Requests = readOnly(t) })
	if got := h.connectTo("name.test:443").rest(); !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.HasSuffix(got, reasonUnreadable) {
		t.Errorf("%q", got)
	}
}

// TestRequestRulesOfCapturedConnections holds the same of programs that know no proxy.
func TestRequestRulesOfCapturedConnections(t *testing.T) {
	_, port := echo(t)
	c := capturedTLS(t, func(o *Options) { o.Policy().Requests = readOnly(t) })
	p := c.open(c.addresses("name.test", port)[0])
	p.send("SSH-2.0-x\r\n")
	if b, err := io.ReadAll(p.br); isTimeout(err) || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	c.settled()
	if lines := c.lines(); len(lines) != 1 || !strings.HasSuffix(lines[0], " ("+reasonUnreadable+")") {
		t.Errorf("%q", lines)
	}
}

// TestRequestRulesAreLive holds that a change counts from the next request of an open tunnel on, and that a WebSocket, whose
// messages are no requests, does not pass.
func TestRequestRulesAreLive(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	c := h.shake("name.test")
	if status, _, _ := c.ask("%s", h.get("/repos/y")); status != 200 {
		t.Fatal(status)
	}
	h.update(func(r *Rules) { r.Requests = readOnly(t) })
	if status, _, _ := c.ask("%s", h.get("/repos/x")); status != 200 {
		t.Fatal(status)
	}
	if status, _, _ := c.ask("%s", h.get("/repos/y")); status != 403 {
		t.Error(status)
	}
	h.update(func(r *Rules) {
		r.Requests = ruledRequests(t, config.RequestRule{Hosts: []string{"name.test"}, Action: config.ActionAllow})
	})
	if status, _, body := h.shake("name.test").ask(openSocket, "x"); status != 403 || body != reasonUnreadable+"\n" {
		t.Errorf("%d %q", status, body)
	}
}
