package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestTLS40_NoProxy: what noProxy names goes directly, resolved and checked by srt, and the parent hears nothing of it.
func TestTLS40_NoProxy(t *testing.T) {
	o := serveOrigin(t, "direct.name.test", nil)
	var asked atomic.Int32
	parent := serveEach(t, func(c *net.TCPConn) {
		asked.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 502 No\r\n\r\n")
	})
	for noProxy, want := range map[string]struct{ status, asked int }{
		"direct.name.test": {200, 0}, "name.test": {200, 0}, "other.test": {502, 1},
	} {
		asked.Store(0)
		behind, err := ParseParent("", fmt.Sprintf("http://127.0.0.1:%d", parent.Port), noProxy)
		if err != nil {
			t.Fatal(err)
		}
		h := terminating(t, o, func(opts *Options) { opts.Parent, opts.Resolver = behind, resolves("direct.name.test", "127.0.0.1") })
		h.target = "direct." + h.target
		status, _, _ := h.shake("direct.name.test").ask("%s", h.get("/"))
		if got := int(asked.Load()); status != want.status || got != want.asked {
			t.Errorf("noProxy %q: %d, the parent was asked %d times, want %+v", noProxy, status, got, want)
		}
		h.free()
	}
}

// TestTLS28_NoRevocationListIsServed: /srt.crl is a path as any other, in a tunnel and in cleartext, and none of the proxy's own.
func TestTLS28_NoRevocationListIsServed(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	if status, _, body := h.shake("name.test").ask("%s", h.get("/srt.crl")); status != 200 || body != "ok" {
		t.Errorf("in a tunnel: %d %q", status, body)
	}
	plain := script(t, ok200)
	for _, tc := range []struct{ target, host, answer string }{
		{fmt.Sprintf("http://127.0.0.1:%d/srt.crl", plain.port), "127.0.0.1", "HTTP/1.1 200 "},
		{"http://denied.test/srt.crl", "denied.test", "HTTP/1.1 403 "},
		{"/srt.crl", h.addr, "HTTP/1.1 400 "},
	} {
		p := h.dial()
		p.send("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", tc.target, tc.host, auth)
		if got := p.rest(); !strings.HasPrefix(got, tc.answer) || strings.Contains(got, "pkix-crl") {
			t.Errorf("%s: %q", tc.target, got)
		}
	}
	if got := <-plain.got; !strings.HasPrefix(got, "GET /srt.crl ") {
		t.Errorf("upstream %q", got)
	}
}

// TestTLS17_PlainRequestsToExcludedHosts: only tunnels are left alone. What comes in cleartext is filtered, and credentials go into it
// where that is switched on.
func TestTLS17_PlainRequestsToExcludedHosts(t *testing.T) {
	store, fakes := masking(t, map[string]string{"GH_TOKEN": secretToken}, "127.0.0.1")
	s := script(t, ok200)
	h := terminating(t, nil, func(o *Options) {
		o.Credentials, o.AllowPlaintextInject = store, true
		o.Filter = func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			if r.RequestTarget == "/deny" {
				return FilterDecision{Status: 451}, nil
			}
			return FilterDecision{Action: FilterAllow}, nil
		}
	})
	h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "127.0.0.1") })
	for path, answer := range map[string]string{"/deny": "HTTP/1.1 451 ", "/": "HTTP/1.1 200 "} {
		p := h.dial()
		p.send("GET http://127.0.0.1:%d%s HTTP/1.1\r\nHost: a\r\nA: %s\r\nConnection: close\r\n%s\r\n", s.port, path, fakes["GH_TOKEN"], auth)
		if got := p.rest(); !strings.HasPrefix(got, answer) {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := <-s.got; !strings.Contains(got, "A: "+secretToken+"\r\n") {
		t.Errorf("upstream %q", got)
	}
}

// TestCRED20_OpaqueTunnelsKeepTheFake: through an excluded host's tunnel, one without TLS and SOCKS every byte goes as it came.
func TestCRED20_OpaqueTunnelsKeepTheFake(t *testing.T) {
	_, theirs := authorities()
	o := serveOrigin(t, "name.test", nil)
	h, fakes, _ := injecting(t, o, map[string]string{"GH_TOKEN": secretToken}, func(opts *Options) { opts.AllowPlaintextInject = true })
	fake := fakes["GH_TOKEN"]
	h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "name.test") })
	excluded := shakeOn(h.tunnel(h.target), "name.test", func(conf *tls.Config) { conf.RootCAs = poolOf(theirs) })
	if status, _, _ := excluded.ask("GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n", fake); status != 200 {
		t.Error(status)
	}
	if got := o.got(); len(got) != 1 || !strings.Contains(got[0], "A: "+fake+"\r\n") {
		t.Errorf("excluded: %q", got)
	}
	h.update(func(r *Rules) { r.Termination.Exclude = nil })
	_, port := echo(t)
	request := "GET / HTTP/1.1\r\nA: " + fake + "\r\n\r\n"
	opaque := h.tunnel(fmt.Sprintf("name.test:%d", port))
	opaque.send("%s", request)
	opaque.want(request)
	socks := h.dial()
	socks.send("%s%s", socksLogin("srt", testToken), socksName(1, "name.test", port))
	socks.want(socksAdmitted + socksAnswer(0))
	socks.send("%s", request)
	socks.want(request)
}

// TestCRED20_PlainRequestsOverAParent: with the opt-in the parent proxy is shown the real value, as it is the next hop.
func TestCRED20_PlainRequestsOverAParent(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		s := script(t, ok200)
		behind, err := ParseParent(fmt.Sprintf("http://127.0.0.1:%d", s.port), "", "")
		if err != nil {
			t.Fatal(err)
		}
		h, fakes, _ := injecting(t, nil, map[string]string{"GH_TOKEN": secretToken}, func(o *Options) { o.Parent, o.AllowPlaintextInject = behind, allowed })
		p := h.dial()
		p.send("GET http://name.test/ HTTP/1.1\r\nHost: name.test\r\nA: %s\r\nConnection: close\r\n%s\r\n", fakes["GH_TOKEN"], auth)
		p.rest()
		want := fakes["GH_TOKEN"]
		if allowed {
			want = secretToken
		}
		if got := <-s.got; !strings.HasPrefix(got, "GET http://name.test/ ") || !strings.Contains(got, "A: "+want+"\r\n") {
			t.Errorf("allowed %v: %q", allowed, got)
		}
	}
}

// TestCRED25_EncodedBodiesAreNoted: that nothing is looked for in them is said, and holds none of them.
func TestCRED25_EncodedBodiesAreNoted(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h, fakes, log := injecting(t, o, map[string]string{"GH_TOKEN": secretToken})
	fake := fakes["GH_TOKEN"]
	for _, coding := range []string{"gzip", "identity", "br, gzip"} {
		before := strings.Count(log.String(), "Content-Encoding")
		c := h.shake("name.test")
		if status, _, _ := c.ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", coding, len(fake), fake); status != 200 {
			t.Error(status)
		}
		c.tls.Close()
		got := o.got()
		if !strings.HasSuffix(got[len(got)-1], "\r\n\r\n"+fake) || strings.Count(log.String(), "Content-Encoding") != before+1 {
			t.Errorf("%s: %q, log %s", coding, got[len(got)-1], log)
		}
	}
	h.free()
}

// TestREQ3_RefusalsClose: every refusal says that the connection ends, which it does, and names its kind; a request right behind it gets
// nothing and goes nowhere.
func TestREQ3_RefusalsClose(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	filter := func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		return FilterDecision{Reason: "no " + r.RequestTarget}, nil
	}
	h := terminating(t, o, filtered(Filtering{Filter: filter}), func(opts *Options) { opts.RequireHostMatch = true })
	for _, tc := range []struct{ line, host, status, mark, body string }{
		{"GET /a", h.target, "403 Forbidden", markRuntime, "no /a\n"},
		{"GET /a", "evil.test", "421 Misdirected Request", markRuntime, "Host header does not match the request target\n"},
		{"TRACE /a", h.target, "405 Method Not Allowed", markRuntime, "the TRACE method is not forwarded\n"},
		{"GET /a/../b", h.target, "400 Bad Request", markAmbiguous, reasonAmbiguousTarget + "\n"},
		{"GET ftp://h/", h.target, "400 Bad Request", markRuntime, reasonMalformedTarget + "\n"},
	} {
		c := h.shake("name.test")
		c.send("%s HTTP/1.1\r\nHost: %s\r\n\r\n%s", tc.line, tc.host, h.get("/behind"))
		want := fmt.Sprintf("HTTP/1.1 %s\r\nX-Proxy-Error: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			tc.status, tc.mark, len(tc.body), tc.body)
		c.br = bufio.NewReader(c.tls)
		if got := c.rest(); got != want {
			t.Errorf("%s:\n got %q\nwant %q", tc.line, got, want)
		}
		c.Close()
	}
	if n := len(h.lines()); n != 5 {
		t.Errorf("%d violations: %q", n, h.lines())
	}
	if conns, _ := o.count(); conns != 0 {
		t.Errorf("%d connections upstream", conns)
	}
	h.free()
}

// TestTLS1_TLS39_TLS42_TLS43_Defaults: the counts and times that other tests shorten.
func TestTLS1_TLS39_TLS42_TLS43_Defaults(t *testing.T) {
	if got := (&TerminationRules{}); got.limit() != 256 || got.timeout() != 10*time.Second {
		t.Errorf("TLS-1: %d tunnels, %v", got.limit(), got.timeout())
	}
	if got := (Limits{}).orDefaults().Dial; got != 30*time.Second || firstHead != 10*time.Second {
		t.Errorf("TLS-39: %v; TLS-43: %v", got, firstHead)
	}
}

// TestCRED36_CRED22_ResponsesAreNotTouched: what a server repeats is passed on, the value and a sentinel alike. Where a value may not go
// there is none to be repeated.
func TestCRED36_CRED22_ResponsesAreNotTouched(t *testing.T) {
	repeats := func(r *http.Request, body string) string {
		answer := r.Header.Get("A") + " " + body
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nB: %s\r\nContent-Length: %d\r\n\r\n%s", r.Header.Get("A"), len(answer), answer)
	}
	o := serveOrigin(t, "name.test", repeats)
	for host, want := range map[string]string{"name.test": secretToken, "elsewhere.test": ""} {
		store, fakes := masking(t, map[string]string{"GH_TOKEN": secretToken}, host)
		fake := fakes["GH_TOKEN"]
		if want == "" {
			want = fake
		}
		h := terminating(t, o, func(opts *Options) { opts.Credentials = store })
		status, header, body := h.shake("name.test").ask("POST / HTTP/1.1\r\nHost: x\r\nA: %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", fake, len(fake), fake)
		if status != 200 || header.Get("B") != want || body != want+" "+fake {
			t.Errorf("for %s: %d %q %q", host, status, header.Get("B"), body)
		}
		h.free()
	}
}

// TestCRED35_DebugLinesCutURLs: no query is in a log or a violation, whatever becomes of its request.
func TestCRED35_DebugLinesCutURLs(t *testing.T) {
	const query = "key=query-secret"
	o := serveOrigin(t, "name.test", func(r *http.Request, _ string) string {
		return map[string]string{"/broken": "nonsense\r\n\r\n", "/cut": ""}[r.URL.Path] + map[bool]string{true: plainOK}[r.URL.Path == "/ok"]
	})
	h, fakes, log := injecting(t, o, map[string]string{"GH_TOKEN": secretToken}, func(opts *Options) {
		opts.RequireHostMatch = true
		opts.Filter = func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			if strings.HasPrefix(r.RequestTarget, "/panic") {
				panic("at " + r.Method)
			}
			return FilterDecision{Action: FilterAllow, OnResponse: func(int, []HeaderField) { panic("again") }}, nil
		}
	})
	for _, line := range []string{"GET /ok", "GET /broken", "GET /cut", "GET /panic", "GET /a/..", "TRACE /ok", "GET ftp://h/", "GET http://evil.test/", "G(T /ok",
		"GET /ok#x", "CONNECT /ok", "GET /ok?t=" + fakes["GH_TOKEN"] + "&"} {
		mark := "?"
		if strings.Contains(line, "?") {
			mark = ""
		}
		c := h.shake("name.test")
		c.send("%s%s%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, mark, query, h.target)
		_, _ = io.ReadAll(c.br)
		c.Close()
		p := h.dial()
		p.send("%s HTTP/1.1\r\nHost: name.test:1\r\nConnection: close\r\n%s\r\n", strings.Replace(line, " /", " http://name.test:1/", 1)+mark+query, auth)
		_, _ = io.ReadAll(p.br)
	}
	h.free()
	_ = h.server.Close()
	if said := log.String() + strings.Join(h.lines(), "\n"); strings.Contains(said, "query-secret") || !strings.Contains(said, "GH_TOKEN") {
		t.Errorf("%s", said)
	}
}

// TestTLS20_OpaqueTunnelsTakeTheUsualRoute: bytes that are no TLS go through the parent proxy, as they would without termination.
func TestTLS20_OpaqueTunnelsTakeTheUsualRoute(t *testing.T) {
	asked := make(chan string, 1)
	parent := serveEach(t, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		line, _ := br.ReadString('\n')
		for next := line; next != "\r\n" && next != ""; {
			next, _ = br.ReadString('\n')
		}
		asked <- line
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		_, _ = io.Copy(c, br)
	})
	behind, err := ParseParent("", fmt.Sprintf("http://127.0.0.1:%d", parent.Port), "")
	if err != nil {
		t.Fatal(err)
	}
	h := terminating(t, nil, func(o *Options) { o.Parent, o.Resolver = behind, &fakeResolver{} }) // the parent resolves
	p := h.tunnel("name.test:22")
	p.send("SSH-2.0-x\r\n")
	if got := <-asked; got != "CONNECT name.test:22 HTTP/1.1\r\n" {
		t.Errorf("%q", got)
	}
	p.want("SSH-2.0-x\r\n")
	h.wantLines()
}
