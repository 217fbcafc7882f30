package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// TestNetworkCases walks the chapter's table "Cases worth a test" as far as clients of the proxy see it. Each case is also
// covered in more depth beside the rules that it is about.
func TestNetworkCases(t *testing.T) {
	for name, f := range map[string]func(*testing.T, *harness, int){
		"case01": func(t *testing.T, h *harness, x int) {
			p := h.dial()
			p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n", x)
			if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 407 ") || !strings.Contains(got, "\r\nProxy-Authenticate: Basic realm=\"srt\"\r\n") {
				t.Errorf("%q", got)
			}
			p = h.tunnel(fmt.Sprintf("127.0.0.1:%d", x))
			p.send("echo")
			p.want("echo")
		},
		"case02": func(_ *testing.T, h *harness, _ int) {
			h.refused("host is on the deny list", "evil.test:443", "EVIL.test:443", "evil.test.:443")
		},
		"case03": func(_ *testing.T, h *harness, _ int) {
			h.refused("host is not on the allow list", "nope.test:443")
			p := h.dial()
			p.send("GET http://nope.test:81/ HTTP/1.1\r\nHost: a\r\n%s\r\n", auth)
			p.want(plain403("host is not on the allow list", false))
		},
		"case04": func(_ *testing.T, h *harness, _ int) {
			h.refused("host is on the deny list", "127.0.0.1:22")
			h.refused("host is not on the allow list", "a.wild.test:8081", "wild.test:8080")
		},
		"case05": func(_ *testing.T, h *harness, x int) {
			for _, host := range []string{"127.1", "0x7f.0.0.1", "2130706433", "017700000001", "[::ffff:7f00:1]", "127.0.0.1."} {
				p := h.tunnel(fmt.Sprintf("%s:%d", host, x))
				p.send("echo")
				p.want("echo")
			}
			h.wantLines()
		},
		"case06": func(t *testing.T, h *harness, _ int) {
			h.refused("malformed host", "[::1%lo]:80", "*.test:443")
			for _, target := range []string{"127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "u:p@127.0.0.1:80", "127.0.0.1:80/x"} {
				if got := h.connectTo(target).rest(); got != bad400 {
					t.Errorf("%s: %q", target, got)
				}
			}
			h.wantLines("deny network-outbound ::1%lo:80 (malformed host)", "deny network-outbound *.test:443 (malformed host)")
		},
		"case07": func(t *testing.T, h *harness, _ int) {
			for _, name := range []string{"evil.com\x00.a.wild.test", "a\r\nb.wild.test", "::ffff:1.2.3.4%x.wild.test", ""} {
				h.socks(t, socksLogin("srt", testToken)+socksName(1, name, 8080), socksAdmitted+socksAnswer(2))
			}
		},
		"case08": func(t *testing.T, h *harness, x int) {
			h.socks(t, socksLogin("bob", testToken), "\x05\x02\x01\x01")
			h.socks(t, socksLogin("srt", strings.Repeat("0", 32)), "\x05\x02\x01\x01")
			for user, want := range map[string]string{"bob": established, "": denied407} {
				p := h.dial()
				p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", x, credentials(user, testToken))
				p.want(want)
			}
		},
		"case09": func(t *testing.T, h *harness, x int) {
			for command, kind := range map[byte]string{2: "BIND", 3: "UDP ASSOCIATE"} {
				t.Log(kind)
				h.socks(t, socksLogin("srt", testToken)+socksName(command, "127.0.0.1", x), socksAdmitted+socksAnswer(7))
			}
			p := h.dial()
			p.send("%s%s", socksLogin("srt", testToken), socksAddr("::ffff:127.0.0.1", x))
			p.want(socksAdmitted + socksAnswer(0))
			h.socks(t, "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "")
		},
		"case10": func(t *testing.T, h *harness, x int) {
			p := h.dial()
			p.send("\x05\x01\x00%s", socksName(1, "github.com", 22))
			_ = p.CloseWrite()
			got, ok := strings.CutPrefix(p.rest(), "\x05\x00"+socksAnswer(0))
			if !ok || readSSH(t, got) != "host is on the deny list" {
				t.Errorf("%q", got)
			}
			h.wantLines("deny network-outbound github.com:22 (host is on the deny list)")
			if h.events[0].CommandID != "" {
				t.Error("the line is attributed")
			}
			h.socks(t, "\x05\x01\x00"+socksAddr("127.0.0.1", x), "\x05\x00"+socksAnswer(2))
		},
		"case11": func(_ *testing.T, h *harness, _ int) {
			h.connectTo("why.test:443").want(refused403("No bevil/b please ? ?"))
			h.wantLines("deny network-outbound why.test:443 (No bevil/b please é ✓)")
		},
		"case15": func(t *testing.T, h *harness, _ int) {
			s := script(t, ok200)
			p := h.dial()
			get := fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n", s.port)
			p.send("%s%s\r\n%s\r\n", get, auth, get)
			p.want(ok200 + "HTTP/1.1 407 Proxy Authentication Required\r\n")
			closed := closedPort(t)
			h.connectTo(fmt.Sprintf("127.0.0.1:%d", closed)).want("HTTP/1.1 502 Bad Gateway\r\n")
			h.socks(t, socksLogin("srt", testToken)+socksAddr("127.0.0.1", closed), socksAdmitted+socksAnswer(5))
			h.wantLines()
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, x := echo(t)
			f(t, start(t, caseRules(), func(o *Options) { o.Resolver = &fakeResolver{} }), x)
		})
	}
}

func caseRules() policy.NetworkRules {
	rules := baseRules
	rules.DeniedDomains = append([]string{"why.test"}, rules.DeniedDomains...)
	rules.DeniedDomainReasons = map[string]string{"why.test": "No <b>evil</b>\nplease é ✓"}
	return rules
}

// refused wants each target to be refused by NET-7, with one line that spells the host as it was asked for.
func (h *harness) refused(reason string, targets ...string) {
	h.t.Helper()
	for _, target := range targets {
		before := len(h.lines())
		if got := h.connectTo(target).rest(); got != refused403(reason) {
			h.t.Errorf("%s: %q", target, got)
		}
		want := "deny network-outbound " + strings.NewReplacer("[", "", "]", "").Replace(target) + " (" + reason + ")" // VIO-11
		if lines := h.lines()[before:]; len(lines) != 1 || lines[0] != want {
			h.t.Errorf("%s: %q", target, lines)
		}
	}
}

// socks sends the messages of a SOCKS client and wants an answer after which the connection is closed.
func (h *harness) socks(t *testing.T, sent, want string) {
	t.Helper()
	p := h.dial()
	p.send("%s", sent)
	if got := p.rest(); got != want {
		t.Errorf("%q: %q, want %q", sent, got, want)
	}
}

// TestNetworkCasesOfPlainRequests is the part of the table about single requests.
func TestNetworkCasesOfPlainRequests(t *testing.T) {
	allow := filtered(Filtering{Filter: allowing(FilterDecision{})})
	hostMatch := func(o *Options) { o.RequireHostMatch = true }
	const head, closing = "GET http://127.0.0.1:PORT", "Connection: close\r\n"
	for _, tc := range []struct {
		name, request string
		change        func(*Options)
		status        string
		upstream      string // empty: nothing is forwarded
		line          string
	}{
		{"case12", "GET http://evil.test@127.0.0.1:PORT/x HTTP/1.1\r\nHost: a\r\n", nil, "200 OK", "GET /x HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ""},
		{"case13", head + "/ HTTP/1.1\r\nHost: other\r\nConnection: X-Foo\r\nX-Foo: 1\r\nTE: trailers\r\nUpgrade: websocket\r\n", nil, "200 OK",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ""},
		{"case14 TE and CL", head + "/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", nil, "400 Bad Request", "", ""},
		{"case14 two CLs", head + "/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n", nil, "400 Bad Request", "", ""},
		{"case14 folded", head + "/ HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n", nil, "400 Bad Request", "", ""},
		{"case14 17 KiB", head + "/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 17<<10) + "\r\n", nil, "431 Request Header Fields Too Large", "", ""},
		{"case27 dots", head + "/a/../b?tok=1 HTTP/1.1\r\nHost: a\r\n", allow, "400 Bad Request", "", "GET http://127.0.0.1:PORT/a/../b?… (" + reasonAmbiguousTarget + ")"},
		{"case27 slashes", head + "/a//b HTTP/1.1\r\nHost: a\r\n", allow, "200 OK", "GET /a//b HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ""},
		{"case27 escaped", head + "/a%2Fb HTTP/1.1\r\nHost: a\r\n", allow, "200 OK", "GET /a%2Fb HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ""},
		{"case27 TRACE", "TRACE http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\n", allow, "405 Method Not Allowed", "", "TRACE http://127.0.0.1:PORT/ (the TRACE method is not forwarded)"},
		{"case28 wrong", head + "/ HTTP/1.1\r\nHost: other\r\n", hostMatch, "421 Misdirected Request", "", "GET http://127.0.0.1:PORT/ (Host header does not match the request target)"},
		{"case28 doubled", head + "/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\n", hostMatch, "421 Misdirected Request", "", "GET http://127.0.0.1:PORT/ (more than one Host header)"},
		{"case28 dotted", head + "/ HTTP/1.1\r\nHost: 127.0.0.1.:PORT\r\n", hostMatch, "421 Misdirected Request", "", "GET http://127.0.0.1:PORT/ (Host header does not match the request target)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := script(t, ok200)
			port := func(text string) string { return strings.ReplaceAll(text, "PORT", fmt.Sprint(s.port)) }
			if tc.change == nil {
				tc.change = func(*Options) {}
			}
			h := start(t, baseRules, tc.change)
			p := h.dial()
			p.send("%s", port(tc.request)+closing+auth+"\r\n")
			if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 "+tc.status+"\r\n") {
				t.Errorf("%q", got)
			}
			upstream := ""
			if len(s.got) > 0 {
				upstream = <-s.got
			}
			if upstream != port(tc.upstream) {
				t.Errorf("upstream: %q", upstream)
			}
			if tc.line == "" {
				h.wantLines()
			} else {
				h.wantLines("deny http-request " + port(tc.line))
			}
		})
	}
}

// TestNET13_EveryPath: a callback is asked by plain requests and by SOCKS as by CONNECT, and its answer is told.
func TestNET13_EveryPath(t *testing.T) {
	_, x := echo(t)
	server := script(t, ok200).port
	for _, allow := range []bool{true, false} {
		var asked []string
		h := start(t, policy.NetworkRules{}, func(o *Options) {
			o.Ask = func(_ context.Context, q Question) (Answer, error) {
				asked = append(asked, fmt.Sprintf("%s %s %d %s", q.Host, q.Spelled, q.Port, q.Key))
				return Answer{Allow: allow, Reason: map[bool]string{false: "not\nnow"}[allow]}, nil
			}
		})
		user := credentials("srt.a2V5", testToken)
		plain, socks := h.dial(), h.dial()
		plain.send("GET http://127.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", server, user)
		if allow {
			plain.want(ok200)
		} else {
			plain.want(plain403("not now", false))
		}
		socks.send("%s%s", socksLogin("srt.a2V5", testToken), socksName(1, "2130706433", x))
		if allow {
			socks.want(socksAdmitted + socksAnswer(0))
			socks.send("echo")
			socks.want("echo")
		} else if got := socks.rest(); got != socksAdmitted+socksAnswer(2) {
			t.Errorf("%q", got)
		}
		// Port 0 is no destination, and nobody is asked about it.
		h.socks(t, socksLogin("srt", testToken)+socksAddr("127.0.0.1", 0), socksAdmitted+socksAnswer(2))
		want := []string{fmt.Sprintf("127.0.0.1 127.1 %d key", server), fmt.Sprintf("127.0.0.1 2130706433 %d key", x)}
		if strings.Join(asked, ",") != strings.Join(want, ",") {
			t.Errorf("asked %q, want %q", asked, want)
		}
	}
}

// TestNET13_PlainClientThatLeaves: while the callback of a plain request waits, the client may leave; nothing is dialled.
func TestNET13_PlainClientThatLeaves(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	s := script(t, ok200)
	h := start(t, policy.NetworkRules{}, func(o *Options) {
		o.Ask = func(ctx context.Context, _ Question) (Answer, error) {
			close(asked)
			<-ctx.Done()
			close(ended)
			return Answer{Allow: true}, nil
		}
	})
	p := h.dial()
	p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", s.port, auth)
	<-asked
	p.Close()
	<-ended
	if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.conns) == 0 }) || len(s.got) != 0 {
		t.Error("the client was not released, or the request was forwarded")
	}
}
