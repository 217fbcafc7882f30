package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// baseRules are the settings of the chapter's table "Cases worth a test".
var baseRules = policy.NetworkRules{
	AllowedDomains: []string{"127.0.0.1", "localhost", "*.wild.test:8080"},
	DeniedDomains:  []string{"evil.test", "*:22"},
}

const (
	denied407 = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"srt\"\r\n" +
		"Content-Length: 0\r\nConnection: close\r\n\r\n"
	bad400    = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	failed502 = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

func refused403(reason string) string {
	return "HTTP/1.1 403 " + reason + "\r\nX-Proxy-Error: blocked-by-allowlist\r\nContent-Type: text/plain\r\n" +
		"Content-Length: 39\r\nConnection: close\r\n\r\nConnection blocked by network allowlist"
}

func resolved403(host, class string) string {
	body := "Connection to " + host + " blocked: resolved to " + class
	return fmt.Sprintf("HTTP/1.1 403 resolved to %s\r\nX-Proxy-Error: blocked-by-sandbox-runtime\r\nContent-Type: text/plain\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", class, len(body), body)
}

func TestCase1_NET24_ConnectNeedsCredentials(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules)
	p := h.dial()
	p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n", port)
	if got := p.rest(); got != denied407 {
		t.Errorf("without credentials: %q", got)
	}
	p = h.tunnel(fmt.Sprintf("127.0.0.1:%d", port))
	p.send("hello")
	p.want("hello")
	h.wantLines() // NET-73: 407 is not recorded
}

func TestNET24_39_ConnectAnswers(t *testing.T) {
	rules := baseRules
	rules.DeniedDomains = append([]string{"reason.test"}, rules.DeniedDomains...)
	rules.DeniedDomainReasons = map[string]string{"reason.test": "No <b>evil</b>\nplease é ✓"}
	closed := closedPort(t)
	for _, tc := range []struct{ name, target, answer, line string }{
		{"Case2 denied", "evil.test:443", refused403("host is on the deny list"), "evil.test:443 (host is on the deny list)"},
		{"Case2 case", "EVIL.test:443", refused403("host is on the deny list"), "EVIL.test:443 (host is on the deny list)"},
		{"Case2 dot", "evil.test.:443", refused403("host is on the deny list"), "evil.test.:443 (host is on the deny list)"},
		{"Case3 not listed", "nope.test:443", refused403("host is not on the allow list"), "nope.test:443 (host is not on the allow list)"},
		{"Case4 deny beats allow", "127.0.0.1:22", refused403("host is on the deny list"), "127.0.0.1:22 (host is on the deny list)"},
		{"Case4 port", "a.wild.test:8081", refused403("host is not on the allow list"), "a.wild.test:8081 (host is not on the allow list)"},
		{"Case4 strict subdomain", "wild.test:8080", refused403("host is not on the allow list"), "wild.test:8080 (host is not on the allow list)"},
		{"Case6 zone", "[::1%lo]:80", refused403("malformed host"), "::1%lo:80 (malformed host)"},
		{"Case6 star", "*.test:443", refused403("malformed host"), "*.test:443 (malformed host)"},
		{"Case6 no port", "127.0.0.1", bad400, ""},
		{"Case6 port 0", "127.0.0.1:0", bad400, ""},
		{"Case6 port 65536", "127.0.0.1:65536", bad400, ""},
		{"Case6 userinfo", "u:p@127.0.0.1:80", bad400, ""},
		{"Case6 path", "127.0.0.1:80/x", bad400, ""},
		{"NET24 empty host", ":443", bad400, ""},
		{"NET24 no target host", "[::1]", bad400, ""},
		{"NET24 port with sign", "127.0.0.1:+80", bad400, ""},
		{"NET24 bare IPv6", "::1:443", bad400, ""},
		{"NET9 percent", "%65vil.test:443", refused403("malformed host"), "%65vil.test:443 (malformed host)"},
		{"Case11 reason", "reason.test:443", refused403("No bevil/b please ? ?"), "reason.test:443 (No bevil/b please é ✓)"},
		{"Case15 closed port", fmt.Sprintf("127.0.0.1:%d", closed), failed502, ""},
		{"no such name", "a.wild.test:8080", failed502, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, rules, func(o *Options) { o.Resolver = &fakeResolver{} })
			if got := h.connectTo(tc.target).rest(); got != tc.answer {
				t.Errorf("CONNECT %s\n got %q\nwant %q", tc.target, got, tc.answer)
			}
			if tc.line == "" {
				h.wantLines()
			} else {
				h.wantLines("deny network-outbound " + tc.line)
			}
		})
	}
}

func TestCase5_NET8_SpellingsOfLoopback(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules)
	for _, host := range []string{"127.1", "0x7f.0.0.1", "2130706433", "017700000001", "[::ffff:7f00:1]", "127.0.0.1."} {
		p := h.tunnel(fmt.Sprintf("%s:%d", host, port))
		p.send("x")
		p.want("x")
	}
	h.wantLines()
}

func TestNET23_24_UnreadableHeads(t *testing.T) {
	h := start(t, baseRules)
	tooLarge := "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	for _, tc := range []struct{ name, request, answer string }{
		{"no request", "hello\r\n\r\n", bad400},
		{"HTTP/2.0", "CONNECT a:1 HTTP/2.0\r\n\r\n", bad400},
		{"bare LF", "CONNECT 127.0.0.1:80 HTTP/1.1\n\n", bad400},
		{"bad name", "CONNECT 127.0.0.1:80 HTTP/1.1\r\nX y: 1\r\n\r\n", bad400},
		{"two spaces", "CONNECT  127.0.0.1:80 HTTP/1.1\r\n\r\n", bad400},
		{"NET23 head over 16 KiB", "CONNECT 127.0.0.1:80 HTTP/1.1\r\nX: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", tooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := h.dial()
			p.send("%s", tc.request)
			if got := p.rest(); got != tc.answer {
				t.Errorf("\n got %q\nwant %q", got, tc.answer)
			}
		})
	}
	h.wantLines()
}

func TestNET18_Credentials(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules)
	wrong := "f" + testToken[1:]
	for _, tc := range []struct {
		name, field string
		ok          bool
	}{
		{"Case8 any user", credentials("bob", testToken), true},
		{"Case8 empty user", credentials("", testToken), false},
		{"wrong token", credentials("srt", wrong), false},
		{"short token", credentials("srt", testToken[:31]), false},
		{"token and more", credentials("srt", testToken+"0"), false},
		{"no colon", "Proxy-Authorization: Basic " + "c3J0" + "\r\n", false},
		{"scheme in any case", strings.Replace(auth, "Basic", "bASIC", 1), true},
		{"other scheme", strings.Replace(auth, "Basic", "Bearer", 1), false},
		{"no base64", "Proxy-Authorization: Basic !!!\r\n", false},
		{"twice", auth + auth, false},
		{"in Authorization", strings.Replace(auth, "Proxy-", "", 1), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := h.dial()
			p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", port, tc.field)
			if tc.ok {
				p.want(established)
			} else if got := p.rest(); got != denied407 {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestZeroValueRefusesEverybody(t *testing.T) {
	h := start(t, baseRules, func(o *Options) { o.Token = "" })
	for _, field := range []string{"", credentials("srt", ""), credentials("srt", testToken)} {
		p := h.dial()
		p.send("CONNECT 127.0.0.1:80 HTTP/1.1\r\n%s\r\n", field)
		if got := p.rest(); got != denied407 {
			t.Errorf("%q: %q", field, got)
		}
	}
	h = start(t, baseRules, func(o *Options) { o.Policy = nil })
	if got := h.connectTo("127.0.0.1:80").rest(); got != refused403("sandbox policy unavailable") {
		t.Errorf("without a policy: %q", got)
	}
	for _, o := range []Options{{Token: "short"}, {Token: strings.ToUpper(testToken)}, {Token: testToken, Open: true}} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), testToken) {
			t.Errorf("New(%+v): %v", o, err)
		}
	}
}

func TestNET21_Attribution(t *testing.T) {
	key := "the key"
	for _, tc := range []struct{ user, want string }{
		{"srt", ""},
		{"srt.dGhlIGtleQ==", key},
		{"srt.", ""},
		{"srt.???", ""},
		{"bob.dGhlIGtleQ==", ""},
		{"srt." + strings.Repeat("A", 252), ""}, // case 26
	} {
		h := start(t, baseRules)
		p := h.dial()
		p.send("CONNECT evil.test:443 HTTP/1.1\r\n%s\r\n", credentials(tc.user, testToken))
		p.rest()
		if len(h.events) != 1 || h.events[0].CommandID != tc.want || h.events[0].Entry != "evil.test" || h.events[0].Rule != "network.deniedDomains.0" {
			t.Errorf("%q: %+v", tc.user, h.events)
		}
	}
}

// resolvedRules allow the names of cases 16 to 21.
func resolvedRules(more ...string) policy.NetworkRules {
	return policy.NetworkRules{AllowedDomains: append([]string{"name.test", "x.localhost"}, more...)}
}

func TestResolvedAddresses(t *testing.T) {
	denyOne := resolvedRules()
	denyOne.DeniedDomains = []string{"10.9.8.7"}
	ranged := resolvedRules()
	ranged.DeniedResolvedAddresses = []string{"10.0.0.0/8"}
	for _, tc := range []struct {
		name  string
		rules policy.NetworkRules
		host  string
		addrs []string
		class string
	}{
		{"Case16", resolvedRules(), "name.test", []string{"169.254.169.254"}, "a link-local address"},
		{"Case18", denyOne, "name.test", []string{"127.0.0.2", "10.9.8.7"}, "a deny-listed address / a loopback address"},
		{"Case18 other order", denyOne, "name.test", []string{"10.9.8.7", "127.0.0.2"}, "a deny-listed address / a loopback address"},
		{"Case19 NAT64", resolvedRules(), "name.test", []string{"64:ff9b::7f00:1"}, "a loopback address"},
		{"Case19 6to4", resolvedRules(), "name.test", []string{"2002:7f00:1::"}, "a loopback address"},
		{"Case19 mapped", resolvedRules(), "name.test", []string{"::ffff:127.0.0.2"}, "a loopback address"},
		{"Case20 localhost", resolvedRules(), "x.localhost", []string{"10.1.1.1"}, "a non-loopback address"},
		{"Case21 listed", ranged, "name.test", []string{"10.1.1.1"}, "a listed address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, tc.rules, func(o *Options) { o.Resolver = resolves(tc.host, tc.addrs...) })
			got := h.connectTo(tc.host + ":443").rest()
			if want := resolved403(tc.host, tc.class); got != want {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
			for _, addr := range tc.addrs {
				if strings.Contains(got, addr) {
					t.Errorf("the answer shows %s", addr)
				}
			}
			h.wantLines("deny network-outbound " + tc.host + ":443 (resolved to " + tc.class + ")")
		})
	}
}

func TestCase20_NET53_OwnAddress(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		addr, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if addr = addr.Unmap(); !addr.Is4() || addr.IsLoopback() {
			continue
		}
		h := start(t, resolvedRules(), func(o *Options) { o.Resolver = resolves("name.test", addr.String()) })
		if got, want := h.connectTo("name.test:443").rest(), resolved403("name.test", "one of this host's addresses"); got != want {
			t.Errorf("\n got %q\nwant %q", got, want)
		}
	}
	var own ownAddresses
	if !own.has(netip.MustParseAddr("127.0.0.1")) || own.has(netip.MustParseAddr("192.0.2.77")) {
		t.Errorf("own addresses: %v", own.set)
	}
}

func TestCase17_NET58_ExemptWithItsPort(t *testing.T) {
	_, port := echo(t)
	rules := resolvedRules(fmt.Sprintf("127.0.0.1:%d", port))
	h := start(t, rules, func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	p := h.tunnel(fmt.Sprintf("name.test:%d", port))
	p.send("x")
	p.want("x")
	if got := h.connectTo("name.test:3001").rest(); got != resolved403("name.test", "a loopback address") {
		t.Errorf("other port: %q", got)
	}
}

// TestCase22 also shows that survivors are tried in turn, in the order of the resolver (NET-51).
func TestCase22_NET51_OneLookupForEachDial(t *testing.T) {
	_, port := echo(t)
	r := &fakeResolver{answers: map[string][][]string{"name.test": {
		{"127.0.0.2", "127.0.0.1"}, {"127.0.0.2"}, {"127.0.0.9", "127.0.0.1"},
	}}}
	// 127.0.0.9 is allowed and closed; 127.0.0.2 must never be dialled.
	rules := resolvedRules(fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.9:%d", port))
	touched := make(chan struct{}, 1)
	serveOn(t, fmt.Sprintf("127.0.0.2:%d", port), func(*net.TCPConn) { touched <- struct{}{} })
	h := start(t, rules, func(o *Options) { o.Resolver = r })
	target := fmt.Sprintf("name.test:%d", port)
	for i, ok := range []bool{true, false, true} {
		p := h.connectTo(target)
		if ok {
			p.want(established)
			p.send("x")
			p.want("x")
		} else if got := p.rest(); got != resolved403("name.test", "a loopback address") {
			t.Errorf("round %d: %q", i, got)
		}
		if n := r.count("name.test"); n != i+1 {
			t.Errorf("round %d: %d lookups", i, n)
		}
	}
	select {
	case <-touched:
		t.Error("an address that was refused has been connected")
	default:
	}
}

// blockingResolver answers when it is told to, or fails when the dial is given up.
type blockingResolver struct{ asked, givenUp chan struct{} }

func (r blockingResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	close(r.asked)
	<-ctx.Done()
	close(r.givenUp)
	return nil, ctx.Err()
}

func TestCase36_NET25_ClientLeavesBeforeTheTunnelIsUp(t *testing.T) {
	for _, tc := range []struct {
		name  string
		leave func(*peer)
	}{
		{"end of input", func(p *peer) { p.CloseWrite() }},
		{"gone", func(p *peer) { p.Close() }},
		{"over 64 KiB", func(p *peer) { p.Write(make([]byte, earlyLimit+1)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := blockingResolver{make(chan struct{}), make(chan struct{})}
			h := start(t, resolvedRules(), func(o *Options) { o.Resolver = r })
			p := h.connectTo("name.test:443")
			<-r.asked
			tc.leave(p)
			<-r.givenUp
			if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.conns) == 0 }) {
				t.Error("the descriptor was not released")
			}
		})
	}
}

func TestNET25_EarlyBytesComeFirst(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules)
	early := strings.Repeat("0123456789abcdef", 4000) // 64,000 bytes
	p := h.dial()
	p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\nContent-Length: 3\r\n%s\r\n%s", port, auth, early)
	p.want(established)
	p.send("and the rest")
	p.want(early + "and the rest")
}

func TestNET25_HalfClose(t *testing.T) {
	addr := serveEach(t, func(c *net.TCPConn) {
		all, _ := io.ReadAll(c)
		fmt.Fprintf(c, "got %d", len(all))
	})
	h := start(t, baseRules)
	p := h.tunnel(fmt.Sprintf("127.0.0.1:%d", addr.Port))
	p.send("%s", strings.Repeat("x", 1<<20))
	p.CloseWrite()
	if got := p.rest(); got != "got 1048576" {
		t.Errorf("%q", got)
	}
}

func TestNET38_OpaqueTunnels(t *testing.T) {
	h := start(t, baseRules, func(o *Options) { o.RefuseOpaqueTunnels = true })
	body := "this proxy does not tunnel CONNECTs it cannot inspect"
	want := fmt.Sprintf("HTTP/1.1 403 Forbidden\r\nX-Proxy-Error: blocked-by-sandbox-runtime\r\nContent-Type: text/plain\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	if got := h.connectTo("127.0.0.1:443").rest(); got != want {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	h.wantLines("deny http-request CONNECT 127.0.0.1:443 (this proxy does not tunnel CONNECTs it cannot inspect)")
}

func TestNET16_UpdateAppliesToTheNextConnection(t *testing.T) {
	_, port := echo(t)
	closed, _ := policy.NewNetwork(policy.NetworkRules{AllowedDomains: []string{}})
	open, _ := policy.NewNetwork(baseRules)
	var current atomic.Pointer[Rules]
	current.Store(&Rules{Network: closed})
	h := start(t, baseRules, func(o *Options) { o.Policy = current.Load })
	target := fmt.Sprintf("127.0.0.1:%d", port)
	if got := h.connectTo(target).rest(); got != refused403("host is not on the allow list") {
		t.Errorf("before: %q", got)
	}
	current.Store(&Rules{Network: open})
	p := h.tunnel(target)
	current.Store(&Rules{Network: closed})
	p.send("still open")
	p.want("still open")
	if got := h.connectTo(target).rest(); got != refused403("host is not on the allow list") {
		t.Errorf("after: %q", got)
	}
}
