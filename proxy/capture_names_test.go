package proxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

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

// TestNET7_CapturePossible: what could be allowed is what the lists, the list of the command, or the callback might allow.
func TestNET7_CapturePossible(t *testing.T) {
	lists := &policy.CommandLists{}
	ask := func(context.Context, Question) (Answer, error) { return Answer{}, nil }
	rules := policy.NetworkRules{AllowedDomains: []string{"name.test:443"}, DeniedDomains: []string{"evil.test"}}
	strict := rules
	strict.StrictAllowlist = true
	for _, tc := range []struct {
		what                 string
		rules                policy.NetworkRules
		ask                  func(context.Context, Question) (Answer, error)
		named, other, denied bool
	}{
		{"lists alone", rules, nil, true, false, false},
		{"callback", rules, ask, true, true, false},
		{"strict", strict, ask, true, false, false},
	} {
		c := capture(t, tc.rules, func(o *Options) { o.Ask, o.Commands = tc.ask, lists })
		for name, want := range map[string]bool{"name.test": tc.named, "other.test": tc.other, "evil.test": tc.denied} {
			if got := c.Possible(name); got != want {
				t.Errorf("%s: %s: %v", tc.what, name, got)
			}
		}
		c.wantAll()
	}
	c := capture(t, rules, func(o *Options) { o.Commands = lists })
	c.Capture = c.harness.server.NewCapture(c.names, longKey)
	if _, err := lists.Register(longKey, []string{"listed.test"}); err != nil {
		t.Fatal(err)
	}
	if !c.Possible("listed.test") || c.Possible("other.test") {
		t.Error("NET-15: the list of the command")
	}
	lists.Reset()
	if c.Possible("listed.test") {
		t.Error("NET-15: the list of the command after a reset")
	}
}

const longKey = "a key of more than 22 characters"

// TestNET7_NamesThatCannotBeAllowedThroughTheStub floods the resolver of a sandbox, as a program in it can.
func TestNET7_NamesThatCannotBeAllowedThroughTheStub(t *testing.T) {
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"allowed.test"}})
	c.names.Possible = c.Possible
	d := NewDNS(c.names, nil)
	for i := range maxNames + 1 {
		if got := exchangeDNS(t, d, queryFor(fmt.Sprintf("n%d.a.test", i), dnsmessage.TypeA)); len(got.Answers) != 1 {
			t.Fatalf("name %d: %s", i, dnsOutcome(got))
		}
	}
	if got := dnsOutcome(exchangeDNS(t, d, queryFor("allowed.test", dnsmessage.TypeA))); !strings.HasSuffix(got, " 198.18.0.1") {
		t.Error(got)
	}
	last := c.addresses(fmt.Sprintf("n%d.a.test", maxNames), 80)[0]
	if _, err := c.Judge(testPID, last); err == nil {
		t.Error("allowed")
	}
	c.wantAll(fmt.Sprintf("deny network-outbound n%d.a.test:80 (host is not on the allow list)", maxNames))
}
