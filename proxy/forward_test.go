package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// forwarding serves a further listener of a server by Forward and returns its address.
func (h *harness) forwarding(port int) string {
	h.t.Helper()
	return h.serving(func(l net.Listener) error { return h.server.Forward(l, port) })
}

// serving runs a function with a listener until the server closes and returns the address.
func (h *harness) serving(serve func(net.Listener) error) string {
	h.t.Helper()
	l := listen(h.t)
	served := make(chan error, 1)
	go func() { served <- serve(l) }()
	h.t.Cleanup(func() {
		_ = h.server.Close()
		if err := <-served; err != nil {
			h.t.Error(err)
		}
	})
	return l.Addr().String()
}

// The bytes of a client reach an external proxy as they are, credentials and all, and no policy is asked (NET-64).
func TestNET64_ForwardIsUnfiltered(t *testing.T) {
	_, port := echo(t)
	h := start(t, nowhere)
	addr := h.forwarding(port)
	for _, bytes := range []string{
		"CONNECT evil.test:443 HTTP/1.1\r\n" + auth + "\r\n", "GET http://evil.test/ HTTP/1.1\r\nA:\x00\r\n\r\n", "\x05\x01\x00", "\x04\x01\x00\x50",
		strings.Repeat("x", 1<<18),
	} {
		p := connect(t, addr)
		p.send("%s", bytes)
		p.CloseWrite() // and the answer still comes
		if got := p.rest(); got != bytes {
			t.Errorf("%d bytes came back as %d", len(bytes), len(got))
		}
	}
	h.wantLines()
}

func TestNET64_ForwardToAProxyThatSpeaksFirst(t *testing.T) {
	addr := serveEach(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "hello") })
	h := start(t, nowhere)
	if got := connect(t, h.forwarding(addr.Port)).rest(); got != "hello" {
		t.Errorf("%q", got)
	}
}

func TestNET64_ForwardToIPv6Loopback(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatalf("this host has no IPv6 loopback: %v", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	serveOn(t, fmt.Sprintf("[::1]:%d", port), func(c *net.TCPConn) { _, _ = io.WriteString(c, "six") })
	h := start(t, nowhere)
	if got := connect(t, h.forwarding(port)).rest(); got != "six" {
		t.Errorf("%q", got)
	}
}

func TestNET64_ForwardToNobody(t *testing.T) {
	h := start(t, nowhere)
	for _, port := range []int{closedPort(t), 0, -1, 65536} {
		p := connect(t, h.forwarding(port))
		if got, err := io.ReadAll(p.br); len(got) > 0 {
			t.Errorf("port %d: %q, %v", port, got, err)
		}
		if !settles(func() bool { return h.held() == 0 && len(h.server.slots) == 0 }) {
			t.Errorf("port %d: connections are held", port)
		}
	}
	h.wantLines()
}

// With one external proxy srt serves the other side, which needs no authentication beside an external HTTP proxy and is
// filtered all the same (NET-18).
func TestNET64_LocalSOCKSBesideAnExternalHTTPProxy(t *testing.T) {
	_, port := echo(t)
	h := start(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}}, func(o *Options) { o.Token, o.Open = "", true })
	external := serveEach(t, func(c *net.TCPConn) { _, _ = io.WriteString(c, "external") })
	http := h.forwarding(external.Port)
	socks := h.serving(func(l net.Listener) error { return h.server.ServeFor(l, "the key", nil) })
	if got := connect(t, http).rest(); got != "external" {
		t.Errorf("%q", got)
	}
	p := connect(t, socks)
	p.send("\x05\x01\x00%s", socksAddr("127.0.0.1", port))
	p.want("\x05\x00" + socksAnswer(0))
	p = connect(t, socks)
	p.send("\x05\x01\x00%s", socksName(1, "evil.test", port))
	p.want("\x05\x00" + socksAnswer(2))
	h.wantLines(fmt.Sprintf("deny network-outbound evil.test:%d (host is not on the allow list)", port))
	if h.events[0].CommandID != "the key" {
		t.Errorf("attributed to %q", h.events[0].CommandID)
	}
}
