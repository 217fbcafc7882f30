package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// scripted is an upstream server that records what it gets and answers with fixed bytes. It reads one request, head and
// body, for each answer, and closes after the last.
type scripted struct {
	port int
	got  chan string
}

func script(t testing.TB, answers ...string) *scripted {
	s := &scripted{got: make(chan string, 64)}
	s.port = serveEach(t, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		for _, answer := range answers {
			request, err := rawRequest(br)
			if err != nil {
				return
			}
			s.got <- request
			if _, err := io.WriteString(c, answer); err != nil {
				return
			}
		}
	}).Port
	return s
}

// rawRequest reads the bytes of one request.
func rawRequest(br *bufio.Reader) (string, error) {
	head, err := httphead.ReadHead(br, nil)
	if err != nil {
		return "", err
	}
	req, err := httphead.ParseRequest(head)
	if err != nil {
		return "", err
	}
	framing, length, err := req.Framing()
	if err != nil {
		return "", err
	}
	out := string(head)
	switch framing {
	case httphead.ByLength:
		body := make([]byte, length)
		if _, err := io.ReadFull(br, body); err != nil {
			return "", err
		}
		out += string(body)
	case httphead.Chunked:
		for !strings.HasSuffix(out, "\r\n0\r\n\r\n") && !strings.Contains(out, "\r\n0\r\nT") || !strings.HasSuffix(out, "\r\n\r\n") {
			b, err := br.ReadByte()
			if err != nil {
				return "", err
			}
			out += string(b)
		}
	}
	return out, nil
}

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

func plain403(reason string, last bool) string {
	body := "Connection blocked by network allowlist\n" + reason + "\n"
	end := ""
	if last {
		end = "Connection: close\r\n"
	}
	return fmt.Sprintf("HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-allowlist\r\nContent-Type: text/plain\r\n"+
		"Content-Length: %d\r\n%s\r\n%s", len(body), end, body)
}

// plainAnswer is one request and all that srt says about it.
type plainAnswer struct{ name, request, answer, line string }

// plainAnswers is the part of the table "HTTP answers" that plain requests can meet.
func plainAnswers(t *testing.T) []plainAnswer {
	resolved := "Connection to name.test blocked: resolved to a loopback address\n"
	closed := closedPort(t)
	return []plainAnswer{
		{"Case3 not listed", "GET http://nope.test:81/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			plain403("host is not on the allow list", false), "deny network-outbound nope.test:81 (host is not on the allow list)"},
		{"refused with a body", "POST http://nope.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n" + auth + "\r\nhi",
			plain403("host is not on the allow list", true), "deny network-outbound nope.test:80 (host is not on the allow list)"},
		{"resolved", "GET http://name.test/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			fmt.Sprintf("HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-sandbox-runtime\r\nContent-Type: text/plain\r\n"+
				"Content-Length: %d\r\n\r\n%s", len(resolved), resolved),
			"deny network-outbound name.test:80 (resolved to a loopback address)"},
		{"no credentials", "GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n",
			"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"srt\"\r\nContent-Length: 0\r\n\r\n", ""},
		{"dial failed", fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n%s\r\n", closed, auth),
			"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nBad Gateway", ""},
		{"dial failed, HEAD", fmt.Sprintf("HEAD http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n%s\r\n", closed, auth),
			"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\n", ""},
		{"no such name", "GET http://a.wild.test:8080/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
			"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nBad Gateway", ""},
		{"origin form", "GET / HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"bad port", "GET http://127.0.0.1:0/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"empty port", "GET http://127.0.0.1:/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"no host", "GET http:///x HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"ftp", "GET ftp://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"ws", "GET ws://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"scheme with a long s", "GET http\u017f://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"encoded host", "GET http://%65vil.test/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"backslash", "GET http://127.0.0.1\\@evil.test\\/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n", bad400, ""},
		{"Case14 TE and CL", "POST http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n" + auth + "\r\n", bad400, ""},
		{"Case14 two CLs", "POST http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n" + auth + "\r\n", bad400, ""},
		{"Case14 folded", "GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n" + auth + "\r\n", bad400, ""},
		{"NET31 coding", "POST http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n" + auth + "\r\n", bad400, ""},
		{"NET31 no Host", "GET http://127.0.0.1/ HTTP/1.1\r\n" + auth + "\r\n", bad400, ""},
		{"NET32 Expect", "GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nExpect: cake\r\n" + auth + "\r\n",
			"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", ""},
		{"bad chunk", fmt.Sprintf("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n%s\r\nzz\r\n", script(t, ok200).port, auth),
			"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", ""},
	}
}

func TestNET28_31_39_PlainAnswers(t *testing.T) {
	rules := baseRules
	rules.AllowedDomains = append([]string{"name.test"}, rules.AllowedDomains...)
	for _, tc := range plainAnswers(t) {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, rules, func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.5") })
			p := h.dial()
			p.send("%s", tc.request)
			p.want(tc.answer)
			if strings.Contains(tc.answer, "Connection: close") {
				if rest := p.rest(); rest != "" {
					t.Errorf("then: %q", rest)
				}
			} else {
				// The connection stays open: the next request is served.
				p.send("GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", auth)
				p.want(bad400)
			}
			if tc.line == "" {
				h.wantLines()
			} else {
				h.wantLines(tc.line)
			}
		})
	}
}

// exchangeWith sends one request through the proxy to a scripted server and returns what each side saw.
func exchangeWith(t *testing.T, s *scripted, request string, change ...func(*Options)) (upstream, client string) {
	t.Helper()
	h := start(t, baseRules, change...)
	p := h.dial()
	p.send("%s", strings.ReplaceAll(request, "PORT", fmt.Sprint(s.port)))
	client = p.rest()
	select {
	case upstream = <-s.got:
	default:
	}
	return upstream, client
}

func TestNET28_29_30_32_Forwarding(t *testing.T) {
	closing := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
	for _, tc := range []struct{ name, request, upstream, answer, client string }{
		{"Case12 userinfo", "GET http://evil.test@127.0.0.1:PORT/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"GET /x HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ok200, closing},
		{"Case13 hop-by-hop", "GET http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: other\r\nConnection: X-Foo, close\r\nX-Foo: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: 1\r\nProxy-Connection: keep-alive\r\nTrailer: a\r\nX-Bar: 2\r\n" + auth + "\r\n",
			"GET /x HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX-Bar: 2\r\n\r\n", ok200, closing},
		{"as spelled", "GET HTTP://127.1:PORT/a/../b//c%2f?q=%zz&#frag HTTP/1.1\r\nX-One: 1\r\nhOST: a\r\nX-oNe:   2 \r\nConnection: close\r\n" + auth + "\r\n",
			"GET /a/../b//c%2f?q=%zz& HTTP/1.1\r\nX-One: 1\r\nhOST: 127.0.0.1:PORT\r\nX-oNe: 2\r\n\r\n",
			"HTTP/1.1 200 All  right\r\nset-COOKIE: a\r\nX: 1\r\nset-COOKIE: b\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 All  right\r\nset-COOKIE: a\r\nX: 1\r\nset-COOKIE: b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"},
		{"no path, query", "GET http://127.0.0.1:PORT?a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"GET /?a HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ok200, closing},
		{"OPTIONS of the server", "OPTIONS http://127.0.0.1:PORT HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ok200, closing},
		{"NET36 TRACE", "TRACE http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"TRACE / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", ok200, closing},
		{"Connection cannot take the length", "POST http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close, content-length, host\r\nContent-Length: 3\r\n" + auth + "\r\nabc",
			"POST / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 3\r\n\r\nabc", ok200, closing},
		{"NET31 chunked GET with trailers", "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n" + auth + "\r\n3;x=y\r\nabc\r\n00\r\nT: 1\r\nContent-Length: 9\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n", ok200, closing},
		{"NET32 100-continue", "POST http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n" + auth + "\r\nabc",
			"POST / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
			"HTTP/1.1 100 Continue\r\n\r\n" + ok200, "HTTP/1.1 100 Continue\r\n\r\n" + closing},
		{"1xx and response trailers", "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
			"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n",
			"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n"},
		{"HTTP/1.0 client", "GET http://127.0.0.1:PORT/ HTTP/1.0\r\n" + auth + "\r\n",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
			"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n",
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi"},
		{"until close", "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nhi",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
		{"HEAD", "HEAD http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"HEAD / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"},
		{"304", "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"},
		{"NET30 response fields", "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + auth + "\r\n",
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
			"HTTP/1.1 200 OK\r\nProxy-Authenticate: Basic\r\nConnection: X-A\r\nX-A: 1\r\nX_Strip.me: 1\r\nKeep-Alive: 5\r\nUpgrade: h2\r\nContent-Length: 2\r\n\r\nhi", closing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := script(t, tc.answer)
			upstream, client := exchangeWith(t, s, tc.request, func(o *Options) { o.StripResponseHeaders = []string{"x-strip-ME"} })
			if want := strings.ReplaceAll(tc.upstream, "PORT", fmt.Sprint(s.port)); upstream != want {
				t.Errorf("upstream\n got %q\nwant %q", upstream, want)
			}
			if client != tc.client {
				t.Errorf("client\n got %q\nwant %q", client, tc.client)
			}
			if strings.Contains(upstream, "Basic") {
				t.Error("the credentials reached the upstream server")
			}
		})
	}
}

func TestNET33_ResponsesThatCannotBeRelayed(t *testing.T) {
	for name, answer := range map[string]string{
		"status 099":     "HTTP/1.1 099 X\r\n\r\n",
		"status 1000":    "HTTP/1.1 1000 X\r\n\r\n",
		"bad field":      "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n",
		"NUL in a value": "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
		"bare LF":        "HTTP/1.1 200 OK\nA: b\n\n",
		"two lengths":    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"TE and CL":      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"101":            "HTTP/1.1 101 Switching\r\n\r\n",
		"no HTTP":        "SSH-2.0-x\r\n",
		"nothing":        "",
		"head too large": "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 17<<10) + "\r\n\r\n",
		"ends in a head": "HTTP/1.1 200 OK\r\nA: b\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, client := exchangeWith(t, script(t, answer), "GET http://127.0.0.1:PORT/ HTTP/1.0\r\n"+auth+"\r\n")
			if client != "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 11\r\nConnection: close\r\n\r\nBad Gateway" {
				t.Errorf("%q", client)
			}
		})
	}
}

func TestCase15_NET28_EachRequestIsJudged(t *testing.T) {
	s := script(t, ok200, ok200)
	h := start(t, baseRules)
	p := h.dial()
	p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\nGET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n\r\n", s.port, auth, s.port)
	p.want(ok200 + strings.Replace(denied407, "Connection: close\r\n", "", 1))
	p.send("GET http://evil.test/ HTTP/1.1\r\nHost: a\r\n%s\r\n", auth)
	p.want(plain403("host is on the deny list", false))
	p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", s.port, auth)
	p.want(ok200)
	h.wantLines("deny network-outbound evil.test:80 (host is on the deny list)")
}

func TestCase28_NET34_RequireHostMatch(t *testing.T) {
	for _, tc := range []struct {
		target, hosts, reason string
	}{
		{"http://127.0.0.1:PORT/", "Host: 127.0.0.1:PORT\r\n", ""},
		{"http://LOCALHOST:PORT/", "Host: localhost:PORT\r\n", ""},
		{"http://127.1:PORT/", "Host: 127.1:PORT\r\n", ""},
		{"http://127.1:PORT/", "Host: 127.0.0.1:PORT\r\n", ""},
		{"http://127.0.0.1:PORT/p?q", "Host: other:PORT\r\n", "Host header does not match the request target"},
		{"http://127.0.0.1:PORT/p", "Host: 127.0.0.1\r\n", "Host header does not match the request target"},
		{"http://127.0.0.1:PORT/p", "Host: 127.0.0.1:1PORT\r\n", "Host header does not match the request target"},
		{"http://127.0.0.1:PORT/p", "Host: [127.0.0.1]:PORT\r\n", "Host header does not match the request target"},
		{"http://localhost:PORT/p", "Host: localhost.:PORT\r\n", "Host header does not match the request target"},
		{"http://localhost:PORT/p", "Host:\r\n", "Host header does not match the request target"},
		{"http://localhost:PORT/p", "Host: localhost:PORT\r\nHOST: localhost:PORT\r\n", "more than one Host header"},
	} {
		s := script(t, ok200)
		request := strings.ReplaceAll("GET "+tc.target+" HTTP/1.1\r\n"+tc.hosts+"Connection: close\r\n"+auth+"\r\n", "PORT", fmt.Sprint(s.port))
		h := start(t, baseRules, func(o *Options) { o.RequireHostMatch = true })
		p := h.dial()
		p.send("%s", request)
		got := p.rest()
		if tc.reason == "" {
			if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
				t.Errorf("%s %q: %q", tc.target, tc.hosts, got)
			}
			continue
		}
		want := fmt.Sprintf("HTTP/1.1 421 Misdirected Request\r\nX-Proxy-Error: blocked-by-sandbox-runtime\r\nContent-Type: text/plain\r\n"+
			"Content-Length: %d\r\nConnection: close\r\n\r\n%s\n", len(tc.reason)+1, tc.reason)
		if got != want {
			t.Errorf("%s %q:\n got %q\nwant %q", tc.target, tc.hosts, got, want)
		}
		url := strings.ReplaceAll(tc.target, "PORT", fmt.Sprint(s.port))
		if before, _, cut := strings.Cut(url, "?"); cut {
			url = before + "?…"
		}
		h.wantLines("deny http-request GET " + url + " (" + tc.reason + ")")
	}
}

func TestCase11_ReasonInAPlainAnswer(t *testing.T) {
	rules := policy.NetworkRules{DeniedDomains: []string{"evil.test"}, DeniedDomainReasons: map[string]string{"evil.test": "No <b>evil</b>\nplease é ✓"}}
	h := start(t, rules)
	p := h.dial()
	p.send("GET http://evil.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", auth)
	body := "Connection blocked by network allowlist\nNo bevil/b please é ✓\n"
	want := fmt.Sprintf("HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-allowlist\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	if got := p.rest(); got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}
