package proxy

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

func mustParent(t *testing.T, httpURL, httpsURL, noProxy string) *Parent {
	t.Helper()
	p, err := ParseParent(httpURL, httpsURL, noProxy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCase29_NET62_Bypass(t *testing.T) {
	p := mustParent(t, "http://parent.test:3128", "",
		" direct.test , *.star.test,.dot.test,10.1.0.0/16,exact.test:8080,10.9.9.9,[2001:db8::1]:80,2001:db8:1::/48,10.0.0.0/99,::2, UPPER.test.")
	for host, direct := range map[string]bool{
		"sub.direct.test": true, "direct.test": true, "notdirect.test": false, "10.1.2.3": true, "exact.test": true,
		"10.2.2.3": false, "star.test": true, "a.star.test": true, "dot.test": true, "a.b.dot.test": true,
		"10.9.9.9": true, "10.0.0.1": false, "[2001:db8::1]": true, "[2001:db8:1::5]": true, "[2001:db8:2::5]": false,
		"[::2]": true, "upper.test": true, "localhost": true, "127.0.0.1": true, "127.9.9.9": true, "[::1]": true,
		"a.localhost": false, "other.test": false,
	} {
		h, err := config.CanonicalHost(host)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.route(h, false) == nil; got != direct {
			t.Errorf("%s: direct %v", host, got)
		}
	}
	all := mustParent(t, "http://parent.test:3128", "", "a.test,*")
	if h, _ := config.CanonicalHost("other.test"); all.route(h, true) != nil {
		t.Error("* does not bypass everything")
	}
}

func TestNET60_WhichURL(t *testing.T) {
	h, _ := config.CanonicalHost("a.test")
	for _, tc := range []struct{ http, https, plain, tunnel string }{
		{"http://a:1", "http://b:2", "a", "b"},
		{"a:1", "", "a", "a"},
		{"", "https://b", "", "b"},
	} {
		p := mustParent(t, tc.http, tc.https, "")
		for _, q := range []struct {
			plain bool
			want  string
		}{{true, tc.plain}, {false, tc.tunnel}} {
			got := ""
			if e := p.route(h, q.plain); e != nil {
				got = e.host.Name
			}
			if got != q.want {
				t.Errorf("%+v plain %v: %q", tc, q.plain, got)
			}
		}
	}
	if p := mustParent(t, "", "", "x"); p != nil || p.route(h, true) != nil {
		t.Error("no URL gives a parent")
	}
}

func TestNET61_URLs(t *testing.T) {
	for _, tc := range []struct {
		url, auth string
		tls       bool
		port      uint16
	}{
		{"http://p.test", "", false, 80},
		{"HTTPS://p.test/", "", true, 443},
		{"p.test:3128", "", false, 3128},
		{"http://u:p%40@p.test:1", "u:p@", false, 1},
		{"http://u@p.test:1", "u:", false, 1},
		{"http://u:p%zz@p.test:1", "u:p%zz", false, 1},
		{"http://u:p@q@p.test:1", "u:p@q", false, 1},
		{"u:p@p.test:1", "u:p", false, 1},
		{"http://[::1]:8080", "", false, 8080},
	} {
		e, err := parseEndpoint(tc.url)
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		want := ""
		if tc.auth != "" {
			want = "Basic " + base64.StdEncoding.EncodeToString([]byte(tc.auth))
		}
		if e.auth != want || e.tls != tc.tls || e.port != tc.port {
			t.Errorf("%s: %+v", tc.url, e)
		}
	}
	for _, bad := range []string{
		"socks5://p.test:1", "p.test", "http://", "http://u:secret@", "http://p.test:0", "http://p.test:x", "http://u:secret@p test:1",
		"ftp://u:secret@p.test", "http://u:secret@p.test:1:2", "http://[::1", "://p:1",
	} {
		_, err := ParseParent(bad, "", "")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestCFG33_ParentFromEnvironment(t *testing.T) {
	text := func(s string) *string { return &s }
	h, _ := config.CanonicalHost("a.test")
	for _, tc := range []struct {
		name          string
		http, https   *string
		env           map[string]string
		plain, tunnel string
		notes         int
		fails         bool
	}{
		{"nothing", nil, nil, nil, "", "", 0, false},
		{"setting wins", text("c:1"), nil, map[string]string{"HTTP_PROXY": "e:1"}, "c", "c", 0, false},
		{"upper case wins", nil, nil, map[string]string{"HTTP_PROXY": "e:1", "http_proxy": "f:1"}, "e", "e", 0, false},
		{"set without a value", nil, nil, map[string]string{"HTTP_PROXY": "", "http_proxy": "f:1"}, "", "", 0, false},
		{"https set without a value", nil, nil, map[string]string{"HTTP_PROXY": "e:1", "HTTPS_PROXY": ""}, "e", "", 0, false},
		{"https alone", nil, nil, map[string]string{"https_proxy": "e:1"}, "", "e", 0, false},
		{"malformed variable", nil, nil, map[string]string{"HTTP_PROXY": "socks5://u:secret@e:1", "HTTPS_PROXY": "f:1"}, "", "f", 1, false},
		{"malformed setting", text("socks5://u:secret@e:1"), nil, nil, "", "", 0, true},
		{"no proxy", nil, nil, map[string]string{"HTTP_PROXY": "e:1", "no_proxy": "a.test"}, "", "", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, notes, err := ParentFromEnvironment(tc.http, tc.https, nil, func(name string) (string, bool) {
				v, ok := tc.env[name]
				return v, ok
			})
			if (err != nil) != tc.fails || len(notes) != tc.notes || strings.Contains(fmt.Sprint(notes, err), "secret") {
				t.Fatalf("%v, %q", err, notes)
			}
			for plain, want := range map[bool]string{true: tc.plain, false: tc.tunnel} {
				got := ""
				if e := p.route(h, plain); e != nil {
					got = e.host.Name
				}
				if got != want {
					t.Errorf("plain %v: %q, want %q", plain, got, want)
				}
			}
		})
	}
}

// parentRules allow a name that only the parent can resolve.
var parentRules = policy.NetworkRules{AllowedDomains: []string{"far.test", "127.0.0.1"}}

// fakeParent is a parent proxy that answers and then echoes.
func fakeParent(t *testing.T, answer string) (port int, got chan string) {
	got = make(chan string, 8)
	return serveEach(t, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		request, err := rawRequest(br)
		if err != nil {
			return
		}
		got <- request
		_, _ = io.WriteString(c, answer)
		_, _ = io.Copy(c, br)
	}).Port, got
}

func TestCase30_NET61_TunnelThroughParent(t *testing.T) {
	port, got := fakeParent(t, "HTTP/1.0 299 Whatever\r\n\r\nearly ")
	h := start(t, parentRules, func(o *Options) {
		o.Parent = mustParent(t, "", fmt.Sprintf("http://u:p%%40@127.0.0.1:%d", port), "")
		o.Resolver = &fakeResolver{} // far.test must not be looked up here
	})
	p := h.tunnel("far.test.:22")
	p.send("hello")
	p.want("early hello")
	want := "CONNECT far.test:22 HTTP/1.1\r\nHost: far.test:22\r\nProxy-Authorization: Basic " +
		base64.StdEncoding.EncodeToString([]byte("u:p@")) + "\r\n\r\n"
	if r := <-got; r != want {
		t.Errorf("\n got %q\nwant %q", r, want)
	}
	p = h.dial()
	p.send("%s%s", socksLogin("srt", testToken), socksName(1, "far.test", 443))
	p.want(socksAdmitted + socksAnswer(0) + "early ")
}

func TestNET61_ParentRefuses(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 403 No\r\n\r\n", "HTTP/1.1 407 No\r\n\r\n", "HTTP/1.1 302 No\r\n\r\n", "HTTP/2 200 OK\r\n\r\n", "SSH-2.0-x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 17<<10) + "\r\n\r\n",
	} {
		port, _ := fakeParent(t, answer)
		h := start(t, parentRules, func(o *Options) { o.Parent = mustParent(t, "", fmt.Sprintf("127.0.0.1:%d", port), "") })
		if got := h.connectTo("far.test:443").rest(); got != failed502 {
			t.Errorf("%q: %q", answer, got)
		}
		p := h.dial()
		p.send("%s%s", socksLogin("srt", testToken), socksName(1, "far.test", 443))
		if got := p.rest(); got != socksAdmitted+socksAnswer(4) {
			t.Errorf("%q: %q", answer, got)
		}
		h.wantLines()
	}
	h := start(t, parentRules, func(o *Options) { o.Parent = mustParent(t, "", fmt.Sprintf("127.0.0.1:%d", closedPort(t)), "") })
	if got := h.connectTo("far.test:443").rest(); got != failed502 {
		t.Errorf("dead parent: %q", got)
	}
}

func TestNET61_PlainThroughParent(t *testing.T) {
	s := script(t, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno", ok200)
	h := start(t, parentRules, func(o *Options) { o.Parent = mustParent(t, fmt.Sprintf("http://u:p@127.0.0.1:%d", s.port), "", "") })
	p := h.dial()
	for i, answer := range []string{"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno", ok200} {
		p.send("GET http://x@FAR.test.:80/a?b#c HTTP/1.1\r\nHost: x\r\n%s\r\n", auth)
		p.want(answer)
		want := "GET http://far.test/a?b HTTP/1.1\r\nHost: far.test\r\nProxy-Authorization: Basic " +
			base64.StdEncoding.EncodeToString([]byte("u:p")) + "\r\n\r\n"
		if got := <-s.got; got != want {
			t.Errorf("%d:\n got %q\nwant %q", i, got, want)
		}
	}
	h.wantLines()
}

// authorityFor makes a certificate authority and a server certificate for names.
func authorityFor(t *testing.T, names ...string) (*x509.CertPool, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for _, name := range names {
		if addr, err := netip.ParseAddr(name); err == nil {
			template.IPAddresses = append(template.IPAddresses, addr.AsSlice())
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestNET61_ParentOverTLS(t *testing.T) {
	pool, cert := authorityFor(t, "127.0.0.1")
	port := serveEach(t, func(c *net.TCPConn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		defer s.Close()
		br := bufio.NewReader(s)
		if _, err := rawRequest(br); err != nil {
			return
		}
		_, _ = io.WriteString(s, "HTTP/1.1 200 OK\r\n\r\n")
		all, _ := io.ReadAll(br)
		fmt.Fprintf(s, "got %s", all)
	}).Port
	parent := mustParent(t, "", fmt.Sprintf("https://127.0.0.1:%d", port), "")
	h := start(t, parentRules, func(o *Options) { o.Parent = parent })
	if got := h.connectTo("far.test:443").rest(); got != failed502 {
		t.Errorf("unknown authority: %q", got)
	}
	h.server.roots = pool
	p := h.tunnel("far.test:443")
	p.send("hello")
	p.CloseWrite()
	if got := p.rest(); got != "got hello" {
		t.Errorf("%q", got)
	}
}

func TestNET28_HTTPSTarget(t *testing.T) {
	pool, cert := authorityFor(t, "secure.test")
	port := serveEach(t, func(c *net.TCPConn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		defer s.Close()
		request, err := rawRequest(bufio.NewReader(s))
		if err != nil {
			return
		}
		fmt.Fprintf(s, "HTTP/1.1 200 %s\r\nContent-Length: %d\r\n\r\n%s", s.ConnectionState().ServerName, len(request), request)
	}).Port
	rules := policy.NetworkRules{AllowedDomains: []string{"secure.test", "other.test", "127.0.0.1"}}
	h := start(t, rules, func(o *Options) {
		o.Resolver = &fakeResolver{answers: map[string][][]string{"secure.test": {{"127.0.0.1"}}, "other.test": {{"127.0.0.1"}}}}
	})
	h.server.roots = pool
	for name, want := range map[string]string{"secure.test": "HTTP/1.1 200 secure.test\r\n", "other.test": "HTTP/1.1 502 Bad Gateway\r\n"} {
		p := h.dial()
		p.send("GET https://%s:%d/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", name, port, auth)
		got := p.rest()
		if !strings.HasPrefix(got, want) || strings.Contains(got, "Basic") {
			t.Errorf("%s: %q", name, got)
		}
		if name == "secure.test" && !strings.HasSuffix(got, fmt.Sprintf("GET /x HTTP/1.1\r\nHost: secure.test:%d\r\n\r\n", port)) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
