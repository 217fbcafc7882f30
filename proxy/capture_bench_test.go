package proxy

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// BenchmarkCaptured opens a captured connection to a name, sends one byte there and back, and closes it: what a program
// that knows no proxy costs on the host side, but for the broker.
func BenchmarkCaptured(b *testing.B) {
	_, port := echo(b)
	names, err := NewNames()
	if err != nil {
		b.Fatal(err)
	}
	h := start(b, policy.NetworkRules{AllowedDomains: []string{"name.test", fmt.Sprintf("127.0.0.1:%d", port)}},
		func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	c := h.server.NewCapture(names, "the key")
	l := listen(b)
	buf := make([]byte, 1)
	b.Run("Judge", func(b *testing.B) {
		dst := bound(b, names, port)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Judge(testPID, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("connection", func(b *testing.B) {
		dst := bound(b, names, port)
		b.ReportAllocs()
		for b.Loop() {
			w, err := c.Judge(testPID, dst)
			if err != nil {
				b.Fatal(err)
			}
			u, err := w.Dial(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			program, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			end, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			u.Relay(end, nil)
			if _, err := program.Write(buf); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(program, buf); err != nil {
				b.Fatal(err)
			}
			program.Close()
		}
	})
}

// bound is an address that stands for name.test.
func bound(b *testing.B, names *Names, port int) netip.AddrPort {
	b.Helper()
	v4, _, err := names.Addresses("name.test")
	if err != nil {
		b.Fatal(err)
	}
	return netip.AddrPortFrom(v4, uint16(port))
}
