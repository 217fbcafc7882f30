package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// selfSigned makes a certificate that no authority vouches for; change may alter it.
func selfSigned(t *testing.T, name string, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLS36_case11_UpstreamsThatCannotBeVerified(t *testing.T) {
	_, theirs := authorities()
	wrong, err := theirs.Leaf("other.test")
	if err != nil {
		t.Fatal(err)
	}
	expired := selfSigned(t, "name.test", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })
	expiredRoot, err := x509.ParseCertificate(expired.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, cause string
		shows       tls.Certificate
		trusted     *x509.Certificate
	}{
		{"self-signed", "signed by an authority that srt does not know", selfSigned(t, "name.test", nil), nil},
		{"wrong name", "the server's certificate is not valid for name.test", *wrong, nil},
		{"expired", "has expired or is not yet valid", expired, expiredRoot},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := serveOriginAs(t, &tls.Config{Certificates: []tls.Certificate{tc.shows}}, nil)
			h := terminating(t, o, func(opts *Options) {
				if tc.trusted != nil {
					pool := x509.NewCertPool()
					pool.AddCert(tc.trusted)
					opts.Terminate.Roots = func() *x509.CertPool { return pool }
				}
			})
			c := h.shake("name.test")
			status, header, body := c.ask("%s", h.get("/"))
			if status != 502 || header.Get("X-Proxy-Error") != "upstream-tls" || !strings.Contains(body, tc.cause) || strings.Count(body, "\n") != 1 {
				t.Errorf("%d %v %q", status, header, body)
			}
			c.ended()
			o.untouched()
			h.free()
			h.wantLines() // VIO-16
		})
	}
}

func TestTLS36_UpstreamsThatAreNone(t *testing.T) {
	for _, tc := range []struct {
		name, cause string
		serve       func(*net.TCPConn)
	}{
		{"plain HTTP", "the server does not speak TLS\n", func(c *net.TCPConn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }},
		{"closes", "the server closed the connection during the TLS handshake\n", func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1<<14)) }},
		{"refuses", "the server refused the TLS handshake (handshake failure)\n", func(c *net.TCPConn) {
			_, _ = c.Read(make([]byte, 1<<14))
			_, _ = io.WriteString(c, "\x15\x03\x03\x00\x02\x02\x28")
			_, _ = io.Copy(io.Discard, c)
		}},
		{"silent", "the server did not complete the TLS handshake in time\n", func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := terminating(t, nil, func(o *Options) { o.Limits.Dial = 300 * time.Millisecond })
			h.target = fmt.Sprintf("name.test:%d", serveEach(t, tc.serve).Port)
			status, header, body := h.shake("name.test").ask("%s", h.get("/"))
			if status != 502 || header.Get("X-Proxy-Error") != "upstream-tls" || body != tc.cause {
				t.Errorf("%d %v %q", status, header, body)
			}
			h.free()
		})
	}
}

func TestTLS38_OtherFailures(t *testing.T) {
	h := terminating(t, nil)
	h.target = fmt.Sprintf("name.test:%d", closedPort(t))
	status, header, body := h.shake("name.test").ask("%s", h.get("/"))
	if status != 502 || header.Get("X-Proxy-Error") != "" || body != "Bad Gateway" {
		t.Errorf("%d %v %q", status, header, body)
	}
	h.free()
}

func TestTLS37_RefusedAddresses(t *testing.T) {
	h := terminating(t, nil, func(o *Options) { o.Resolver = resolves("name.test", "169.254.169.254", "10.0.0.1") })
	h.rules.Network = mustNetwork(t, "10.0.0.0/8")
	h.target = "name.test:443"
	status, header, body := h.shake("name.test").ask("%s", h.get("/"))
	if status != 403 || header.Get("X-Proxy-Error") != "blocked-by-sandbox-runtime" || !strings.HasPrefix(body, "Connection to name.test blocked: resolved to ") {
		t.Errorf("%d %v %q", status, header, body)
	}
	lines := h.lines()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "deny network-outbound name.test:443 (resolved to ") || strings.Contains(body+lines[0], "169.254") {
		t.Errorf("%q", lines)
	}
	h.free()
}

func TestTLS37_OneLookupForATunnel(t *testing.T) {
	o := serveOrigin(t, "name.test", func(*http.Request, string) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
	})
	names := &fakeResolver{answers: map[string][][]string{"name.test": {{"127.0.0.1"}, {"127.0.0.1", "127.0.0.2"}}}}
	h := terminating(t, o, func(opts *Options) { opts.Resolver = names })
	c := h.shake("name.test")
	for range 3 {
		if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
			t.Error(status)
		}
	}
	if n := names.count("name.test"); n != 1 {
		t.Errorf("%d lookups", n)
	}
	if conns, _ := o.count(); conns != 3 {
		t.Errorf("%d connections", conns)
	}
	h.update(func(*Rules) {}) // another set of rules: what was checked by the old one counts no more
	if status, _, _ := c.ask("%s", h.get("/")); status != 200 || names.count("name.test") != 2 {
		t.Errorf("%d, %d lookups", status, names.count("name.test"))
	}
}

func TestTLS37_AFailureIsLookedUpAgain(t *testing.T) {
	h := terminating(t, nil)
	tun := newTunnel(h.server, asking{host: "name.test", port: uint16(closedPort(t))}, hostOf(t, "name.test"))
	rules := h.server.policy()
	tun.checked, tun.checkedBy = addrOf("127.0.0.1"), rules
	if _, err := tun.dialTarget(t.Context()); err == nil || tun.checked.IsValid() {
		t.Errorf("%v, still %v", err, tun.checked)
	}
}

func TestTLS38_StaleConnectionsAreNotReplayed(t *testing.T) {
	n := 0
	o := serveOrigin(t, "name.test", func(*http.Request, string) string {
		if n++; n == 2 {
			return "" // closes instead of answering
		}
		return plainOK
	})
	h := terminating(t, o)
	c := h.shake("name.test")
	c.ask("%s", h.get("/1"))
	c.send("%s", h.get("/2"))
	c.ended()
	if got := o.got(); len(got) != 2 {
		t.Errorf("%q", got)
	}
	h.free()
}

func TestTLS36_SessionsAreResumedWithinACommandOnly(t *testing.T) {
	resumed := make(chan bool, 8)
	_, theirs := authorities()
	leaf, err := theirs.Leaf("name.test")
	if err != nil {
		t.Fatal(err)
	}
	o := serveOriginAs(t, &tls.Config{
		Certificates:     []tls.Certificate{*leaf},
		VerifyConnection: func(s tls.ConnectionState) error { resumed <- s.DidResume; return nil },
	}, nil)
	h := terminating(t, o)
	for i, tc := range []struct {
		user    string
		resumes bool
	}{{"srt", false}, {"srt", true}, {"srt.b3RoZXI=", false}, {"srt.b3RoZXI=", true}} {
		p := h.dial()
		p.send("CONNECT %s HTTP/1.1\r\n%s\r\n", h.target, credentials(tc.user, testToken))
		p.want(established)
		c := shakeOn(p, "name.test")
		if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
			t.Error(status)
		}
		if got := <-resumed; got != tc.resumes {
			t.Errorf("%d: resumed: %v", i, got)
		}
	}
}

func TestTLS40_ParentProxies(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	asked := make(chan string, 4)
	parent := serveEach(t, func(c *net.TCPConn) {
		p := &peer{TCPConn: c, t: t}
		head := make([]byte, 1024)
		n, _ := p.Read(head)
		asked <- string(head[:n])
		up, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
		if err != nil {
			return
		}
		defer up.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, c); up.Close() }()
		_, _ = io.Copy(c, up)
	})
	behind, err := ParseParent("", fmt.Sprintf("http://u:p@127.0.0.1:%d", parent.Port), "direct.name.test")
	if err != nil {
		t.Fatal(err)
	}
	h := terminating(t, o, func(opts *Options) { opts.Parent, opts.Resolver = behind, resolves("none.test") })
	c := h.shake("name.test")
	if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
	want := fmt.Sprintf("CONNECT name.test:%d HTTP/1.1\r\nHost: name.test:%d\r\nProxy-Authorization: Basic dTpw\r\n\r\n", o.port, o.port)
	if got := <-asked; got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestNET28_PlainPathUsesTheRootsOfTermination(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	p := h.dial()
	p.send("GET https://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", h.target, h.target, auth)
	if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("%q", got)
	}
}

func TestTLS23_SSLKEYLOGFILEIsIgnored(t *testing.T) {
	path := t.TempDir() + "/keys"
	t.Setenv("SSLKEYLOGFILE", path)
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	if status, _, _ := h.shake("name.test").ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
	if exists(path) {
		t.Error("keys were written")
	}
}
