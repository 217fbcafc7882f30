package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// TestNET7_SyntheticAddressesThroughTheProxies: a client that looks a name up by itself and asks a proxy for the address means the
// name. An address that stands for no name is refused, even where a list has it.
func TestNET7_SyntheticAddressesThroughTheProxies(t *testing.T) {
	_, port := echo(t)
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"name.test", fmt.Sprintf("127.0.0.1:%d", port), "198.18.200.200"},
		DeniedDomains: []string{"evil.test"}}, func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	addr := c.serving(func(l net.Listener) error { return c.srv().ServeFor(l, "the key", c.names) })
	for _, tc := range []struct {
		name, host string
		want       string // of the answer to CONNECT
	}{
		{"an allowed name's", c.addresses("name.test", port)[0].Addr().String(), "HTTP/1.1 200 "},
		{"its IPv6 one", "[" + c.addresses("name.test", port)[1].Addr().String() + "]", "HTTP/1.1 200 "},
		{"a denied name's", c.addresses("evil.test", port)[0].Addr().String(), "HTTP/1.1 403 host is on the deny list"},
		{"another name's", c.addresses("other.test", port)[0].Addr().String(), "HTTP/1.1 403 host is not on the allow list"},
		{"nobody's", "198.18.200.200", "HTTP/1.1 403 host is not on the allow list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := connect(t, addr)
			p.send("CONNECT %s:%d HTTP/1.1\r\n%s\r\n", tc.host, port, credentials("srt", testToken))
			if got := p.take(len(tc.want)); got != tc.want {
				t.Errorf("CONNECT: %q", got)
			}
			granted := byte(0x02)
			if strings.HasSuffix(tc.want, "200 ") {
				granted = 0x00
			}
			p = connect(t, addr)
			p.send("%s%s", socksLogin("srt", testToken), socksLiteral(tc.host, port))
			if got := p.take(6); got[5] != granted {
				t.Errorf("SOCKS: % x", got)
			}
		})
	}
}

// socksLiteral is a CONNECT of SOCKS5 to an address.
func socksLiteral(host string, port int) string {
	a := netip.MustParseAddr(strings.Trim(host, "[]"))
	kind := byte(addressIPv4)
	if a.Is6() {
		kind = addressIPv6
	}
	return string(append(append([]byte{5, 1, 0, kind}, a.AsSlice()...), byte(port>>8), byte(port)))
}
