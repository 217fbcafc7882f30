package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

func domains(t testing.TB, entries ...string) (list []config.Domain) {
	t.Helper()
	for _, entry := range entries {
		d, err := config.ParseDomain(entry, config.DomainForm{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

func TestTLS36_case1_TerminatedTunnel(t *testing.T) {
	o := serveOrigin(t, "name.test", func(_ *http.Request, body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: 1\r\n\r\n%s", len(body), body)
	})
	h := terminating(t, o)
	c := h.shake("name.test")
	for range 3 { // TLS-38: one connection for all
		status, header, body := c.ask("POST /p?q HTTP/1.1\r\nHost: evil.test\r\nx-b: 2\r\nX_c: 3\r\nConnection: x-gone\r\nx-gone: 1\r\nContent-Length: 5\r\n\r\nhello")
		if status != 200 || body != "hello" || header.Get("X-A") != "1" {
			t.Errorf("%d %v %q", status, header, body)
		}
	}
	c.tls.Close()
	h.free()
	want := fmt.Sprintf("POST /p?q HTTP/1.1\r\nHost: name.test:%d\r\nx-b: 2\r\nX_c: 3\r\nContent-Length: 5\r\n\r\nhello", o.port)
	if got := o.got(); len(got) != 3 || got[0] != want || got[2] != want { // TLS-32, case 12
		t.Errorf("\n got %q\nwant %q, three times", got, want)
	}
	if conns, shook := o.count(); conns != 1 || shook != 1 {
		t.Errorf("%d connections, %d handshakes", conns, shook)
	}
	h.wantLines()
}

func TestTLS1_WithoutTerminationTunnelsAreOpaque(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o, func(o *Options) { o.Terminate = nil })
	_, theirs := authorities()
	c := shakeOn(h.tunnel(h.target), "name.test", func(conf *tls.Config) { conf.RootCAs = poolOf(theirs) })
	if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
}

func TestTerminateNeedsAnAuthority(t *testing.T) {
	if _, err := New(Options{Terminate: &Termination{}}); !errors.Is(err, ErrInvalidOptions) {
		t.Error(err)
	}
}

func TestTLS16_OrderAndNothingDialledBefore(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	h.update(func(r *Rules) { r.Termination.MaxTunnels = 1 })
	first := h.tunnel(h.target) // takes the slot
	for _, tc := range []struct{ name, head, answer string }{
		{"no credentials", "CONNECT %s HTTP/1.1\r\n\r\n", "HTTP/1.1 407 "},
		{"no authority", "CONNECT x:y:%s HTTP/1.1\r\n" + auth + "\r\n", "HTTP/1.1 400 "},
		{"not allowed", "CONNECT not%s HTTP/1.1\r\n" + auth + "\r\n", "HTTP/1.1 403 "},
		{"no slot", "CONNECT %s HTTP/1.1\r\n" + auth + "\r\n", "HTTP/1.1 503 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := h.dial()
			p.send(tc.head, h.target)
			if got := p.rest(); !strings.HasPrefix(got, tc.answer) {
				t.Errorf("%q", got)
			}
		})
	}
	h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "name.test") })
	p := h.tunnel(h.target) // excluded before slots are looked at
	p.Close()
	first.Close()
	h.free()
	if conns, _ := o.count(); conns != 1 {
		t.Errorf("%d connections, of which the opaque tunnel made one", conns)
	}
}

func TestTLS17_ExcludedHostsStayOpaque(t *testing.T) {
	_, theirs := authorities()
	store, _ := masking(t, map[string]string{"GH_TOKEN": "the secret"})
	o := serveOrigin(t, "name.test", nil)
	log := &logBuffer{}
	h := terminating(t, o, func(opts *Options) { opts.Credentials, opts.Logger = store, log.logger() })
	c := h.shake("name.test")
	h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "*.other.test", "name.test") }) // TLS-2: from the next CONNECT
	if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
	opaque := shakeOn(h.tunnel(h.target), "name.test", func(conf *tls.Config) { conf.RootCAs = poolOf(theirs) })
	if status, _, _ := opaque.ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
	if got := log.String(); !strings.Contains(got, "GH_TOKEN") || strings.Contains(got, "the secret") {
		t.Errorf("log: %s", got)
	}
	h.wantLines()
}

func TestTLS18_BytesRightAfterTheConnectCount(t *testing.T) {
	ours, _ := authorities()
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	p := h.dial()
	// The client sends its ClientHello in the same segment as the CONNECT, and reads the 200 only then.
	both := &pipelining{TCPConn: p.TCPConn, head: fmt.Sprintf("CONNECT %s HTTP/1.1\r\n%s\r\n", h.target, auth)}
	c := tls.Client(both, &tls.Config{ServerName: "name.test", RootCAs: poolOf(ours)})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, h.get("/"))
	got := make([]byte, 15)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "HTTP/1.1 200 OK" {
		t.Errorf("%q, %v", got, err)
	}
}

// pipelining puts a head before the first bytes and takes the 200 off what comes.
type pipelining struct {
	*net.TCPConn
	head  string
	taken bool
}

func (c *pipelining) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(append([]byte(c.head), p...))
	n = max(n-len(c.head), 0)
	c.head = ""
	return n, err
}

func (c *pipelining) Read(p []byte) (int, error) {
	if !c.taken {
		c.taken = true
		if _, err := io.ReadFull(c.TCPConn, make([]byte, len(established))); err != nil {
			return 0, err
		}
	}
	return c.TCPConn.Read(p)
}

func TestTLS19_FirstBytes(t *testing.T) {
	for _, tc := range []struct {
		first string
		tls   bool
	}{
		{"\x16\x03\x00", true}, {"\x16\x03\x01", true}, {"\x16\x03\x03", true}, {"\x16\x03\x04", false}, {"\x16\x02\x01", false},
		{"\x17\x03\x01", false}, {"SSH", false}, {"\x80\x2e\x01", false},
	} {
		if got := isTLS([]byte(tc.first)); got != tc.tls {
			t.Errorf("%q: %v", tc.first, got)
		}
	}
	if isTLS([]byte{0x16, 0x03}) {
		t.Error("two bytes do not decide")
	}
}

func TestTLS20_case9_WhatIsNotTLSIsOpaque(t *testing.T) {
	_, port := echo(t)
	h := terminating(t, nil)
	h.update(func(r *Rules) { r.Termination.MaxTunnels, r.Termination.HandshakeTimeout = 1, 200*time.Millisecond })
	target := fmt.Sprintf("name.test:%d", port)
	p := h.tunnel(target)
	p.send("S")
	p.send("SH-2.0-x\r\n")
	p.want("SSH-2.0-x\r\n")
	second := h.tunnel(target) // the slot is free again
	second.send("GET / HTTP/1.1\r\n\r\n")
	second.want("GET / HTTP/1.1\r\n\r\n")
	<-time.After(250 * time.Millisecond) // TLS-42: the deadline does not apply any more
	p.send("more")
	p.CloseWrite()
	if got := p.rest(); got != "more" {
		t.Errorf("%q", got)
	}
	h.wantLines()
}

func TestTLS20_AFailedDialOnlyCloses(t *testing.T) {
	h := terminating(t, nil)
	p := h.tunnel(fmt.Sprintf("name.test:%d", closedPort(t)))
	p.send("SSH-2.0-x\r\n")
	if n, err := p.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	h.free()
	h.wantLines()
}

func TestTLS21_ClientsThatLeaveAreTornDown(t *testing.T) {
	port, touched := touchedServer(t)
	h := terminating(t, nil)
	target := fmt.Sprintf("name.test:%d", port)
	for _, first := range []string{"", "\x16", "\x16\x03", "SS"} {
		p := h.tunnel(target)
		p.send("%s", first)
		p.CloseWrite()
		if got := p.rest(); got != "" {
			t.Errorf("%q: %q", first, got)
		}
	}
	p := h.dial()
	p.send("CONNECT %s HTTP/1.1\r\n%s\r\n", target, auth)
	p.CloseWrite() // may come before or after the 200
	if got := p.rest(); got != "" && got != established {
		t.Errorf("%q", got)
	}
	h.free()
	if touched.Load() != 0 {
		t.Error("dialled")
	}
	h.wantLines()
}

func TestTLS22_REQ4_SOCKSIsNeverTerminated(t *testing.T) {
	_, port := echo(t)
	for _, refuse := range []bool{false, true} {
		h := terminating(t, nil, func(o *Options) { o.RefuseOpaqueTunnels = refuse })
		p := h.dial()
		p.send("\x05\x01\x02\x01\x03srt\x20%s%s", testToken, socksName(1, "name.test", port))
		p.want("\x05\x02\x01\x00")
		if refuse {
			p.want(socksAnswer(1))
			h.wantLines(fmt.Sprintf("deny socks-tunnel name.test:%d (refuseOpaqueTunnels)", port))
			continue
		}
		p.want(socksAnswer(0))
		p.send("\x16\x03\x01")
		p.want("\x16\x03\x01")
	}
}

func TestTLS24_case7_ALPN(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	p := h.tunnel(h.target)
	ours, _ := authorities()
	err := tls.Client(p.TCPConn, &tls.Config{ServerName: "name.test", RootCAs: poolOf(ours), NextProtos: []string{"h2"}}).Handshake()
	var alert tls.AlertError
	if !errors.As(err, &alert) && !strings.Contains(fmt.Sprint(err), "no application protocol") {
		t.Errorf("%v", err)
	}
	for _, offered := range [][]string{{"h2", "http/1.1"}, {"http/1.1"}, nil} {
		c := h.shake("name.test", func(conf *tls.Config) { conf.NextProtos = offered })
		if got := c.tls.ConnectionState().NegotiatedProtocol; offered != nil && got != "http/1.1" {
			t.Errorf("%q: %q", offered, got)
		}
		if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
			t.Error(status)
		}
	}
}

func TestTLS25_case6_ServerNames(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	for _, tc := range []struct {
		name, leaf string
		match      bool
		status     int
	}{
		{"FOO.example", "foo.example", false, 200},
		{"", "name.test", false, 200},
		{"foo_bar.example", "name.test", false, 200},
		{"name.test", "name.test", true, 200},
		{"", "name.test", true, 200},
		{"foo.example", "name.test", true, 421},
		{"foo_bar.example", "name.test", true, 421},
	} {
		t.Run(fmt.Sprintf("%s, %v", tc.name, tc.match), func(t *testing.T) {
			h := terminating(t, o, func(o *Options) { o.RequireHostMatch = tc.match })
			c := h.shake(tc.name, func(conf *tls.Config) { conf.InsecureSkipVerify = true })
			ours, _ := authorities()
			leaf := c.tls.ConnectionState().PeerCertificates[0]
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: poolOf(ours), DNSName: tc.leaf}); err != nil {
				t.Error(err)
			}
			if status, _, _ := c.ask("%s", h.get("/")); status != tc.status {
				t.Error(status)
			}
		})
	}
}

func TestTLS41_case10_Slots(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	h.update(func(r *Rules) { r.Termination.MaxTunnels = 2 })
	first, second := h.shake("name.test"), h.shake("name.test")
	const taken = "HTTP/1.1 503 Service Unavailable\r\nX-Proxy-Error: too-many-tunnels\r\nContent-Type: text/plain\r\n" +
		"Content-Length: 39\r\nConnection: close\r\n\r\ntoo many TLS-terminated tunnels at once"
	line := fmt.Sprintf("deny http-request CONNECT name.test:%d (the sandbox's limit of 2 TLS-terminated tunnels at once is reached; "+
		"the limit is network.tlsTerminate.maxTunnels in the sandbox's configuration)", o.port)
	for range 3 { // VIO-15: one line
		if got := h.connectTo(h.target).rest(); got != taken {
			t.Errorf("%q", got)
		}
	}
	h.wantLines(line)
	p := h.dial() // another command is told of its own
	p.send("CONNECT %s HTTP/1.1\r\n%s\r\n", h.target, credentials("srt.b3RoZXI=", testToken))
	if got := p.rest(); got != taken {
		t.Errorf("%q", got)
	}
	h.wantLines(line, line)
	first.Close() // half of the slots
	settles(func() bool {
		h.server.tunnels.mu.Lock()
		defer h.server.tunnels.mu.Unlock()
		return h.server.tunnels.taken == 1
	})
	third := h.shake("name.test")
	if got := h.connectTo(h.target).rest(); got != taken {
		t.Errorf("%q", got)
	}
	h.wantLines(line, line, line)
	h.update(func(r *Rules) { r.Termination.MaxTunnels = 3 }) // TLS-2
	fourth := h.shake("name.test")
	for _, c := range []*secured{second, third, fourth} {
		if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
			t.Error(status)
		}
		c.Close()
	}
	h.free()
}

func TestTLS42_case8_UnfinishedHandshakes(t *testing.T) {
	for _, first := range []string{"", "\x16\x03", "\x16\x03\x01\x02\x00\x01\x00"} {
		h := terminating(t, nil)
		h.update(func(r *Rules) { r.Termination.HandshakeTimeout = 100 * time.Millisecond })
		p := h.tunnel("name.test:443")
		p.send("%s", first)
		if _, err := io.ReadAll(p.br); err != nil && isTimeout(err) {
			t.Errorf("%q: %v", first, err)
		}
		h.free()
		h.wantLines()
	}
}

func TestTLS42_IsNeverAppliedLater(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	h.update(func(r *Rules) { r.Termination.HandshakeTimeout = 300 * time.Millisecond })
	c := h.shake("name.test")
	<-time.After(350 * time.Millisecond)
	for range 2 {
		if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
			t.Error(status)
		}
	}
}

func TestREQ4_RefuseOpaqueTunnels(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o, func(o *Options) { o.RefuseOpaqueTunnels = true })
	h.update(func(r *Rules) { r.Termination.Exclude = domains(t, "excluded.name.test") })
	if status, _, _ := h.shake("name.test").ask("%s", h.get("/")); status != 200 {
		t.Error(status)
	}
	if got := h.connectTo("excluded.name.test:443").rest(); !strings.HasPrefix(got, "HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-sandbox-runtime\r\n") ||
		!strings.HasSuffix(got, "\r\n\r\nthis proxy does not tunnel CONNECTs it cannot inspect") {
		t.Errorf("%q", got)
	}
	p := h.tunnel(h.target)
	p.send("SSH-2.0-x\r\n")
	if got := p.rest(); got != "" {
		t.Errorf("%q", got)
	}
	h.wantLines(
		"deny http-request CONNECT excluded.name.test:443 (this proxy does not tunnel CONNECTs it cannot inspect)",
		fmt.Sprintf("deny http-request CONNECT name.test:%d (tunnel carries no TLS and cannot be inspected)", o.port),
	)
	h.free()
}
