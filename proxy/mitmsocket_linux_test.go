package proxy

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// mitmProxy in front of a proxy of another make, which has no Unix socket of its own: a relay of bytes gives it one.
func TestNET63_RealProxyOnASocket(t *testing.T) {
	addr, port := farServer(t)
	behind := startTinyproxy(t, false)
	path := filepath.Join(socketDir(t), "mitm")
	relaySocket(t, path, behind.port)
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{addr.String()}}, withMITM(mustMITM(t, path, addr.String())))
	target := netip.AddrPortFrom(addr, uint16(port))
	for _, p := range []*peer{c.tunnel(target.String()), c.open(target)} {
		p.send("hello")
		p.want("hello")
	}
	p := c.dial()
	p.send("GET http://%s/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", target, auth)
	if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") && !strings.HasPrefix(got, "HTTP/1.0 200 OK\r\n") || !strings.Contains(got, "GET /x HTTP/1.") {
		t.Errorf("%q", got)
	}
	c.wantLines()
}

// relaySocket makes a Unix socket that leads to a port of loopback.
func relaySocket(t *testing.T, path string, port int) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				in.Close()
				continue
			}
			wg.Go(func() { _, _ = io.Copy(out, in); _ = closeWrite(out) })
			wg.Go(func() { _, _ = io.Copy(in, out); in.Close(); out.Close() })
		}
	})
	// Registered before the server under test, so that this runs after that is closed, which ends the copies.
	t.Cleanup(func() { l.Close(); wg.Wait() })
}
