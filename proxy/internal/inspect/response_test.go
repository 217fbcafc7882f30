package inspect

import (
	"net/http"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// TestTLS35_Responses holds raw bytes of a server against raw bytes at the client, which asks for a close if the response
// leaves that open.
func TestTLS35_Responses(t *testing.T) {
	const (
		get11 = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		get10 = "GET / HTTP/1.0\r\n\r\n"
		head  = "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		bad   = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	)
	for _, tc := range []struct{ name, in, from, back string }{
		{
			"length", get11, "HTTP/1.1 200 Fine \xe9\r\nA: 1\r\nContent-Length: 2\r\nA: 2\r\n\r\nok",
			"HTTP/1.1 200 Fine \xe9\r\nA: 1\r\nContent-Length: 2\r\nA: 2\r\nConnection: close\r\n\r\nok",
		},
		{
			"chunked", get11, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2;a\r\nok\r\n0\r\nT: 1\r\n\r\n",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		},
		{
			"chunked for 1.0", get10, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n",
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok!",
		},
		{
			"interim ones are swallowed", get11, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + ok200,
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
		},
		{
			"HEAD", head, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n",
		},
		{
			"204 has no length", get11, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
		},
		{
			"304 keeps its length", get11, "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: a\r\n\r\n",
			"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: a\r\nConnection: close\r\n\r\n",
		},
		{
			"no reason", get11, "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
			"HTTP/1.1 200 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		},
		{
			"TLS-32 connection fields", get11, "HTTP/1.1 200 OK\r\nConnection: a, Content-Length\r\nA: 1\r\nKeep-Alive: 9\r\nB: 1\r\n" +
				"Upgrade: h2\r\nProxy-Authenticate: Basic\r\nTransfer_Encoding: chunked\r\nContent-Length: 2\r\n\r\nok",
			"HTTP/1.1 200 OK\r\nB: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
		},
		{"TLS-38 stray bytes do not spoil it", get11, ok200 + "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"},
		{"no HTTP", get11, "SSH-2.0-x\r\n\r\n", bad},
		{"bare LF", get11, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", bad},
		{"two lengths", get11, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", bad},
		{"length and coding", get11, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok", bad},
		{"other coding", get11, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", bad},
		{"folded line", get11, "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", bad},
		{"status 099", get11, "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", bad},
		{"101 unasked", get11, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2\r\nConnection: upgrade\r\n\r\n", bad},
		{"endless interim ones", get11, strings.Repeat("HTTP/1.1 102 P\r\n\r\n", 101) + ok200, bad},
		{"long head", get11, "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", bad},
		{"long but usable head", get11, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: " + strings.Repeat("a", 40<<10) + "\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: " + strings.Repeat("a", 40<<10) + "\r\nConnection: close\r\n\r\n"},
		{"nothing", get11, "", bad},
	} {
		t.Run("TLS-35 "+tc.name, func(t *testing.T) {
			h := &passing{}
			_, back := exchanged(t, h, &origin{answer: always(tc.from)}, tc.in)
			if back != tc.back {
				t.Errorf("back\n%q, want\n%q", back, tc.back)
			}
			if (tc.back == bad) != (len(h.failures) == 1) {
				t.Errorf("failures %v", h.failures)
			}
		})
	}
}

// TestTLS35_UntilClose: a body that ends with the connection is chunked for who knows that.
func TestTLS35_UntilClose(t *testing.T) {
	for _, tc := range []struct{ in, back string }{
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"},
	} {
		h := &passing{dial: scripted(t, "HTTP/1.1 200 OK\r\n\r\nok", false)}
		s := serve(t.Context(), t, h, quick)
		s.send(tc.in)
		s.expect(tc.back)
		s.CloseWrite()
		if rest := s.rest(); rest != "" {
			t.Errorf("then %q", rest)
		}
	}
}

// TestTLS38_CutShort: a response that does not come to its end must not look complete.
func TestTLS38_CutShort(t *testing.T) {
	for _, tc := range []struct {
		name, in, from string
		rst            bool
		back           string
		reset          bool
	}{
		{"length", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", false, "\r\n\r\nok", false},
		{"chunk", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", false, "2\r\nok\r\n", false},
		{"bad chunk", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nz\r\n", false, "2\r\nok\r\n", false},
		{"chunk for 1.0", "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok", false, "", true},
	} {
		t.Run("TLS-38 "+tc.name, func(t *testing.T) {
			h := &passing{dial: scripted(t, tc.from, tc.rst)}
			s := serve(t.Context(), t, h, quick)
			s.send(tc.in)
			got, err := readAll(s)
			if tc.reset != (err != nil) || !tc.reset && !strings.HasSuffix(got, tc.back) || strings.HasSuffix(got, "0\r\n\r\n") {
				t.Errorf("%q, %v", got, err)
			}
			if len(h.failures) > 0 {
				t.Errorf("failures %v", h.failures)
			}
		})
	}
}

// TestResponse: what the handler makes of a response's fields is sent, but for what says where the message ends.
func TestREQ20_Response(t *testing.T) {
	calls, saw := 0, ""
	h := &passing{judge: func(_ ctx, _ *Request, out *Outgoing) (*Outgoing, Answer) {
		out.Response = func(status int, h httphead.Header) httphead.Header {
			calls++
			saw = string(h.Append(nil))
			return httphead.Header{{Name: "X", Value: "y"}, {Name: "Content-Length", Value: "1"}, {Name: "Transfer-Encoding", Value: "chunked"}}
		}
		return out, nil
	}}
	o := &origin{answer: always("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: a\r\nConnection: b\r\nB: 1\r\nContent-Length: 2\r\n\r\nok")}
	_, back := exchanged(t, h, o, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if back != "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok" || calls != 1 ||
		saw != "Set-Cookie: a\r\nContent-Length: 2\r\n" {
		t.Errorf("%q; %d calls, saw %q", back, calls, saw)
	}
}

// TestSplitting: no field of a handler's becomes another one, or another message, in either direction.
func TestResponseSplitting(t *testing.T) {
	for _, f := range []httphead.Field{{Name: "A", Value: "b\r\nC: d"}, {Name: "A\r\nB", Value: ""}, {Name: "A", Value: "\x00"}, {Name: "", Value: "x"}, {Name: "A B", Value: "x"}, {Name: "A", Value: "\n"}} {
		for _, response := range []bool{false, true} {
			h := &passing{judge: func(_ ctx, _ *Request, out *Outgoing) (*Outgoing, Answer) {
				if !response {
					out.Header = append(out.Header, f)
				}
				out.Response = func(_ int, h httphead.Header) httphead.Header { return append(h, f) }
				return out, nil
			}}
			o := &origin{answer: always(ok200)}
			_, back := exchanged(t, h, o, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if !strings.HasPrefix(back, "HTTP/1.1 502 ") || len(h.failures) != 1 || !is(h.failures[0], ErrOutgoing) || o.dials > 0 != response {
				t.Errorf("%q, response %t: %q, %v, %d dials", f, response, back, h.failures, o.dials)
			}
		}
	}
}

// TestOutgoing: what a handler cannot mean is not sent.
func TestOutgoingRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Outgoing){
		"no Host":             func(o *Outgoing) { o.Header = nil },
		"two Hosts":           func(o *Outgoing) { o.Header = append(o.Header, httphead.Field{Name: "host", Value: "a"}) },
		"target with a space": func(o *Outgoing) { o.Target = "/ HTTP/1.1\r\nX: y" },
		"no body":             func(o *Outgoing) { o.Body = nil },
		"no dial":             func(o *Outgoing) { o.Dial = nil },
		"upgrade":             func(o *Outgoing) { o.Upgrade = "a\r\nb: c" },
		"body too short":      func(o *Outgoing) { o.Length = 4 },
		"body too long":       func(o *Outgoing) { o.Length = 2 },
		"body left out":       func(o *Outgoing) { o.Body, o.Length = strings.NewReader(""), 0 },
		"body breaks":         func(o *Outgoing) { o.Body, o.Length = broken{}, -1 },
		"body never moves":    func(o *Outgoing) { o.Body, o.Length = idle{}, -1 },
	} {
		h := &passing{judge: func(_ ctx, _ *Request, out *Outgoing) (*Outgoing, Answer) {
			spoil(out)
			return out, nil
		}}
		o := &origin{answer: func(r *http.Request) string { t.Errorf("%s: a whole request arrived", name); return ok200 }}
		_, back := exchanged(t, h, o, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
		if !strings.HasPrefix(back, "HTTP/1.1 502 ") || len(h.failures) != 1 || !is(h.failures[0], ErrOutgoing) {
			t.Errorf("%s: %q, %v", name, back, h.failures)
		}
	}
}
