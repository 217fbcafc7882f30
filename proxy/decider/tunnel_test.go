package decider

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/mitm"
)

// tlsWorld is a proxy that inspects, and a TLS server behind it.
type tlsWorld struct {
	*running
	clientRoots *x509.CertPool
}

func newTLSWorld(t *testing.T, opts ...Option) *tlsWorld {
	t.Helper()
	authority, err := mitm.Generate(mitm.GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	serverCA, err := mitm.Generate(mitm.GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := serverCA.Leaf("u.test")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	serverRoots, clientRoots := x509.NewCertPool(), x509.NewCertPool()
	serverRoots.AddCert(serverCA.Certificate())
	clientRoots.AddCert(authority.Certificate())
	opts = append([]Option{WithCA(authority), WithRoots(serverRoots)}, opts...)
	w := &tlsWorld{start(t, allowAll, opts...), clientRoots}
	w.up = serveUpstream(ln)
	return w
}

// connect opens a tunnel without shaking hands.
func (w *tlsWorld) connect(target string) *client {
	w.t.Helper()
	c := w.dial()
	c.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n")
	line, err := c.br.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 Connection Established") {
		w.t.Fatalf("CONNECT: %q, %v", line, err)
	}
	if line, _ = c.br.ReadString('\n'); line != "\r\n" {
		w.t.Fatalf("CONNECT: %q", line)
	}
	return c
}

// secure shakes hands in a tunnel.
func (w *tlsWorld) secure(c *client, config *tls.Config) (*client, *tls.Conn, error) {
	conn := tls.Client(c.Conn, config)
	return &client{conn, w.t, bufio.NewReader(conn)}, conn, conn.HandshakeContext(context.Background())
}

// inside opens a tunnel to the upstream as an ordinary client.
func (w *tlsWorld) inside() *client {
	w.t.Helper()
	c, _, err := w.secure(w.connect(w.up.host), &tls.Config{RootCAs: w.clientRoots, ServerName: "u.test"})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *tlsWorld) get(c *client, host string) {
	w.t.Helper()
	c.say("GET /p?q HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: mine\r\nCookie: c\r\nX_API.Key: k\r\n\r\n")
}

func TestPRX12_14_CredentialInATunnel(t *testing.T) {
	w := newTLSWorld(t)
	c := w.inside()
	for id := 1; id <= 2; id++ {
		w.get(c, w.up.host)
		req := w.want("req", id)
		if req["sni"] != "u.test" || req["host"] != "u.test" || req["path"] != "/p" || req["query"] != "q" {
			t.Errorf("PRX-35: %v", req)
		}
		w.send(`{"t":"verdict","id":%d,"action":"allow","cred":"o","credential":"s"}`, id)
		if got := c.hears("GET"); got.status != 200 {
			t.Fatal(got)
		}
		if got, want := w.up.last().head, "GET /p?q HTTP/1.1\r\nHost: "+w.up.host+"\r\nAuthorization: Bearer s\r\n\r\n"; got != want {
			t.Errorf("case 8: upstream got %q", got)
		}
	}
	if n := w.up.dialled(); n != 1 {
		t.Errorf("PRX-14: %d upstream connections", n)
	}
}

func TestPRX12_LeafAndALPN(t *testing.T) {
	w := newTLSWorld(t)
	_, conn, err := w.secure(w.connect(w.up.host), &tls.Config{
		RootCAs: w.clientRoots, ServerName: "other.test", InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	state := conn.ConnectionState()
	if err := state.PeerCertificates[0].VerifyHostname("u.test"); err != nil || state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("PRX-12: %v, ALPN %q", err, state.NegotiatedProtocol)
	}
}

func TestPRX23_24_InsideATunnel(t *testing.T) {
	w := newTLSWorld(t)
	for _, test := range []struct {
		name, line string
		host       string
		status     int
		mark       mark
		text       string
	}{
		{"PRX-23 absolute form", "GET https://%/", "%", 400, "bad_request", malformedTarget},
		{"PRX-23 asterisk", "OPTIONS *", "%", 400, "bad_request", malformedTarget},
		{"PRX-23 CONNECT", "CONNECT %", "%", 400, "bad_request", malformedTarget},
		{"case 22", "GET /", "other.test", 421, "misdirected", refusals[4].text},
		{"case 22 no port", "GET /", "u.test", 421, "misdirected", refusals[4].text},
		{"PRX-25", "TRACE /", "%", 405, "method_refused", "the TRACE method is not forwarded"},
	} {
		c := w.inside()
		c.say(strings.ReplaceAll(test.line+" HTTP/1.1\r\nHost: "+test.host+"\r\n\r\n", "%", w.up.host))
		c.refused(test.name, test.status, test.mark, test.text)
	}
	for name, sni := range map[string]string{"case 22": "other.test", "not a plain name": "u_x.test"} {
		c, _, err := w.secure(w.connect(w.up.host), &tls.Config{ServerName: sni, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		c.say("GET / HTTP/1.1\r\nHost: " + w.up.host + "\r\n\r\n")
		c.refused(name, 421, "misdirected", refusals[4].text)
	}
	c := w.inside()
	c.say("GET / HTTP/1.1\r\nHost: " + w.up.host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	c.closed("PRX-14 upgrade")
	c, _, err := w.secure(w.connect(w.up.host), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	w.get(c, w.up.host)
	if req := w.want("req", 1); req["sni"] != nil {
		t.Errorf("PRX-24: %v", req)
	}
	w.allow(1)
	if got := c.hears("GET"); got.status != 200 {
		t.Error(got)
	}
}

func TestPRX12_13_NotTLSAndSilence(t *testing.T) {
	w := newTLSWorld(t, withLimits(func(l *limits) { l.handshake = 300 * time.Millisecond }))
	c := w.connect(w.up.host)
	c.say("SSH-2.0-x\r\n")
	c.closed("case 26")
	c = w.connect(w.up.host)
	c.say("\x16\x03\x04")
	c.closed("PRX-12 version")
	w.connect(w.up.host).closed("case 26 silence")
	c = w.connect(w.up.host)
	c.say("\x16\x03\x01\x02")
	c.closed("PRX-13 half a ClientHello")
}

func TestPRX13_HeadAndIdle(t *testing.T) {
	w := newTLSWorld(t, withLimits(func(l *limits) { l.head, l.idle = 300*time.Millisecond, 300*time.Millisecond }))
	c := w.inside()
	c.say("GET / HTTP/1.1\r\nHo")
	c.closed("PRX-13 half a head")
	c = w.inside()
	w.get(c, w.up.host)
	w.want("req", 1)
	if _, err := c.readByte(600 * time.Millisecond); !isTimeout(err) {
		t.Errorf("PRX-13: a whole request is timed out: %v", err)
	}
	w.allow(1)
	c.hears("GET")
	c.closed("PRX-13 idle")
}

func TestPRX13_TooManyTunnels(t *testing.T) {
	w := newTLSWorld(t, withLimits(func(l *limits) { l.tunnels = 2 }))
	first := w.connect(w.up.host)
	w.connect(w.up.host)
	c := w.dial()
	c.say("CONNECT " + w.up.host + " HTTP/1.1\r\n\r\n")
	if got := c.hears("CONNECT"); got.status != 400 {
		// HTTP/1.1 without Host is no request, with or without a free slot.
		t.Errorf("PRX-24: %v", got)
	}
	c = w.dial()
	c.say("CONNECT " + w.up.host + " HTTP/1.1\r\nHost: " + w.up.host + "\r\n\r\n")
	c.refused("case 27", 503, "too_many_tunnels", "too many TLS-terminated tunnels at once")
	_ = first.Close()
	for deadline := time.Now().Add(patience); ; { // the slot comes back when the tunnel is found closed
		c := w.dial()
		c.say("CONNECT " + w.up.host + " HTTP/1.1\r\nHost: " + w.up.host + "\r\n\r\n")
		if line, _ := c.br.ReadString('\n'); strings.HasPrefix(line, "HTTP/1.1 200") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the slot of a closed tunnel is lost")
		}
	}
}

func TestPRX14_UpstreamIsVerified(t *testing.T) {
	w := newTLSWorld(t, WithRoots(x509.NewCertPool()))
	w.always(`"action":"allow"`)
	c := w.inside()
	w.get(c, w.up.host)
	if got := c.hears("GET"); got.status != 502 || got.header.Get("X-Deny-Reason") != "" {
		t.Errorf("PRX-66: %v", got)
	}
	if got := w.up.last().head; got != "" {
		t.Errorf("PRX-14: an unverified server got %q", got)
	}
}

func TestPRX22_CONNECT(t *testing.T) {
	w := newTLSWorld(t)
	for _, target := range []string{"other.test:443", "no.u.test:443"} {
		c := w.dial()
		c.say("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n")
		c.refused(target, 403, "host_not_allowed", "Connection blocked by network allowlist")
	}
}

func TestPRX70_Options(t *testing.T) {
	for name, option := range map[string]Option{
		"timeout": WithVerdictTimeout(0), "strip": WithStripResponseHeaders("a b"), "placement": WithPlacements(Placement{Host: "A"}),
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		mine, theirs := net.Pipe()
		if err := Serve(t.Context(), ln, theirs, option); err == nil || !strings.HasPrefix(err.Error(), ErrInvalidOptions.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := mine.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: something is sent", name)
		}
		if _, err := ln.Accept(); err == nil {
			t.Errorf("%s: the listener stays open", name)
		}
	}
}

func TestPRX69_LongHeadsAreFew(t *testing.T) {
	r := start(t, allowAll, withLimits(func(l *limits) { l.longHeads = 1 }))
	first := r.dial()
	first.say("GET http://" + r.up.host + "/ HTTP/1.1\r\n")
	request := "GET http://U/?" + strings.Repeat("q", 100<<10) + " HTTP/1.1\r\nHost: U\r\n\r\n"
	c := r.say("GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n") // both have been accepted
	c.hears("GET")
	r.say(request).refused("a second long head", 400, "bad_request", "")
	first.say("Host: " + r.up.host + "\r\na: " + strings.Repeat("b", 60000) + "\r\nb: " + strings.Repeat(" ", 100<<10) + "c\r\n\r\n")
	r.want("req", 1)
	r.allow(1)
	if got := first.hears("GET"); got.status != 200 {
		t.Errorf("the first: %v", got)
	}
}
