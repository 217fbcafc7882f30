package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// FuzzAuthority: whatever a client asks a tunnel to, only the allowed host on the allowed port gets through, and what is
// dialled and shown is the canonical form of it.
func FuzzAuthority(f *testing.F) {
	network, err := policy.NewNetwork(policy.NetworkRules{AllowedDomains: []string{"a.test:443", "127.0.0.1:80"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, ok := parseAuthority(s)
		if !ok {
			return
		}
		if a.port == 0 || a.host == "" || !strings.HasPrefix(s, a.host) || strings.ContainsAny(a.host, ":") != strings.HasPrefix(s, "[") {
			if !strings.HasPrefix(s, "[") || !strings.HasSuffix(a.host, "]") {
				t.Errorf("%q: %+v", s, a)
			}
		}
		v := network.Decide(a.host, a.port)
		if !v.Allowed {
			return
		}
		name := hostPort(v.Host, a.port)
		if name != "a.test:443" && name != "127.0.0.1:80" {
			t.Errorf("%q is allowed as %q", s, name)
		}
		again, ok := parseAuthority(name)
		if h, err := config.CanonicalHost(again.host); !ok || err != nil || h != v.Host {
			t.Errorf("%q: %q does not read as itself", s, name)
		}
	})
}

// FuzzForwardedHead: a head that srt forwards reads, for the parser of net/http, as the very request that was judged.
func FuzzForwardedHead(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		head, err := httphead.ReadHead(bufio.NewReader(bytes.NewReader(data)), nil)
		if err != nil {
			return
		}
		req, err := httphead.ParseRequest(head)
		if err != nil {
			return
		}
		e := &exchange{req: req}
		var ok bool
		if e.framing, e.length, err = req.Framing(); err != nil {
			return
		}
		if e.target, ok = parseTarget(req.Method, req.Target); !ok {
			return
		}
		if e.host, err = config.CanonicalHost(e.target.host); err != nil {
			return
		}
		var out bytes.Buffer
		x := &transfer{client: &client{Server: &Server{shared: &shared{}}}, exchange: e, up: &upstream{}}
		out.WriteString(req.Method + " " + e.target.path + " HTTP/1.1\r\n")
		out.Write(x.appendFields(nil))
		out.WriteString("rest")
		checkForwarded(t, out.Bytes(), x)
	})
}

func checkForwarded(t *testing.T, out []byte, x *transfer) {
	br := bufio.NewReader(bytes.NewReader(out))
	got, err := http.ReadRequest(br)
	if err != nil {
		// net/http is stricter about targets (it wants RFC 3986's escapes) and methods. Then there is nothing to compare,
		// and the head must still be one for our own parser.
		head, err := httphead.ReadHead(bufio.NewReader(bytes.NewReader(out)), nil)
		if err != nil || string(out[len(head):]) != "rest" {
			t.Errorf("%q: %v", out, err)
		}
		return
	}
	if got.Method != x.req.Method || got.RequestURI != x.target.path || got.Host != x.target.hostField(x.host) {
		t.Errorf("%q reads as %s %s for %s", out, got.Method, got.RequestURI, got.Host)
	}
	for _, name := range hopByHop {
		if _, has := got.Header[http.CanonicalHeaderKey(name)]; has && name != "Transfer-Encoding" {
			t.Errorf("%q has %s", out, name)
		}
	}
	chunked := len(got.TransferEncoding) == 1 && got.TransferEncoding[0] == "chunked"
	switch x.framing {
	case httphead.Chunked:
		if !chunked {
			t.Errorf("%q is not chunked", out)
		}
	default:
		if chunked || max(got.ContentLength, 0) != x.length {
			t.Errorf("%q has a body of %d, want %d", out, got.ContentLength, x.length)
		}
	}
	if rest, _ := io.ReadAll(br); string(rest) != "rest" {
		t.Errorf("%q: then %q", out, rest)
	}
}

// FuzzConversation: no input on a connection makes the server dial what is not allowed, answer with a broken line, or hang
// on to the connection.
func FuzzConversation(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		h := start(t, policy.NetworkRules{DeniedDomains: []string{"*"}})
		p := h.dial()
		if _, err := p.Write(data); err != nil {
			return // it was refused before all of it was sent
		}
		_ = p.CloseWrite()
		got, err := io.ReadAll(p.br)
		if err != nil && len(data) < lingerBytes && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("%q: after %q: %v", data, got, err)
		}
		if len(data) > 0 && (data[0] == 4 || data[0] == 5) {
			return
		}
		for len(got) > 0 {
			resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(got)), nil)
			if err != nil || resp.StatusCode < 400 {
				t.Fatalf("%q: answer %q, %v", data, got, err)
			}
			head, _, _ := bytes.Cut(got, []byte("\r\n\r\n"))
			got = got[len(head)+4:]
			if !bytes.HasPrefix(data, []byte("HEAD")) && !bytes.Contains(data, []byte("\nHEAD")) {
				got = got[min(int(resp.ContentLength), len(got)):]
			} else {
				return
			}
		}
	})
}
