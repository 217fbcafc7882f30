package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// anyway tries a destination on every path and reports how it ended: "" connected, else the classes that it was refused
// for, or "failed".
func (c *capturing) anyway(host string, port int) map[string]string {
	c.t.Helper()
	out := map[string]string{}
	outcome := func(path, text, granted, failed string) {
		switch {
		case strings.HasPrefix(text, granted):
			out[path] = ""
		case strings.HasPrefix(text, failed):
			out[path] = "failed"
		default:
			_, rest, _ := strings.Cut(text, "resolved to ")
			line, _, _ := strings.Cut(rest, "\r\n")
			line, _, _ = strings.Cut(line, "\n")
			out[path] = line
		}
	}
	// Whatever it connects to ends the connection.
	outcome("CONNECT", c.connectTo(fmt.Sprintf("%s:%d", host, port)).rest(), established, "HTTP/1.1 502 ")
	p := c.dial()
	p.send("GET http://%s:%d/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", host, port, auth)
	outcome("plain", p.rest(), "HTTP/1.1 200 ", "HTTP/1.1 502 ")
	p = c.dial()
	p.send("%s%s", socksLogin("srt", testToken), socksName(1, host, port))
	answer := strings.TrimPrefix(p.rest(), socksAdmitted)
	if strings.HasPrefix(answer, socksAnswer(2)) { // which names no classes: the line does
		lines := c.lines()
		answer = strings.TrimSuffix(lines[len(lines)-1], ")")
	}
	outcome("SOCKS", answer, socksAnswer(0), "\x05")
	dst := c.addresses(host, port)[0]
	w, err := c.Judge(testPID, dst)
	if err != nil {
		c.t.Fatal(err)
	}
	u, err := w.Dial(c.t.Context())
	var resolved *ResolvedError
	switch {
	case err == nil:
		_ = u.Close()
		out["captured"] = ""
	case errors.As(err, &resolved):
		if Errno(err) != syscall.EACCES {
			c.t.Errorf("%v: errno %v", err, Errno(err))
		}
		out["captured"] = strings.TrimPrefix(resolved.Reason(), "resolved to ")
	default:
		out["captured"] = "failed"
	}
	return out
}

// ready200 is a server that answers whatever comes, and what does not come, with 200.
func ready200(t *testing.T, addr string) (port int, touched *atomic.Int32) {
	t.Helper()
	touched = new(atomic.Int32)
	return serveOn(t, addr, func(c *net.TCPConn) {
		touched.Add(1)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}).Port, touched
}

// wantAnyway checks that a destination ends alike on every path.
func (c *capturing) wantAnyway(host string, port int, want string) {
	c.t.Helper()
	for path, got := range c.anyway(host, port) {
		if got != want {
			c.t.Errorf("%s to %s:%d: %q, want %q", path, host, port, got, want)
		}
	}
}

// dialled leads every dial beyond 127.0.0.1 to a server of the test's own and notes where it was meant to go. It must be
// installed before the first client.
type dialled struct {
	mu sync.Mutex
	to []string
}

func (c *capturing) lead(port int) *dialled {
	d := &dialled{}
	c.srv().connectTCP = func(ctx context.Context, dialer *net.Dialer, to netip.AddrPort) (net.Conn, error) {
		d.mu.Lock()
		d.to = append(d.to, to.String())
		d.mu.Unlock()
		return connectTCP(ctx, dialer, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)))
	}
	return d
}

// wantCount waits for a number of connections: a server may learn of one only after its client is done.
func wantCount(t *testing.T, n *atomic.Int32, want int32) {
	t.Helper()
	if !settles(func() bool { return n.Load() >= want }) || n.Load() != want {
		t.Errorf("%d connections, want %d", n.Load(), want)
	}
}

func TestNET50_ResolvedAddressesOnEveryPath(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rules policy.NetworkRules
		host  string
		addrs []string
		want  string
	}{
		{"case16 link-local", resolvedRules(), "name.test", []string{"169.254.169.254"}, "a link-local address"},
		{"case18", policy.NetworkRules{AllowedDomains: []string{"name.test"}, DeniedDomains: []string{"10.9.8.7"}}, "name.test",
			[]string{"127.0.0.2", "10.9.8.7"}, "a deny-listed address / a loopback address"},
		{"case18 other order", policy.NetworkRules{AllowedDomains: []string{"name.test"}, DeniedDomains: []string{"10.9.8.7"}}, "name.test",
			[]string{"10.9.8.7", "127.0.0.2"}, "a deny-listed address / a loopback address"},
		{"case18 port of the deny entry", policy.NetworkRules{AllowedDomains: []string{"name.test"}, DeniedDomains: []string{"10.9.8.7:1"}}, "name.test",
			[]string{"10.9.8.7"}, ""},
		{"case19 NAT64", resolvedRules(), "name.test", []string{"64:ff9b::7f00:1"}, "a loopback address"},
		{"case19 6to4", resolvedRules(), "name.test", []string{"2002:7f00:1::"}, "a loopback address"},
		{"case19 mapped", resolvedRules(), "name.test", []string{"::ffff:127.0.0.2"}, "a loopback address"},
		{"case19 another NAT64 prefix is dialled", resolvedRules(), "name.test", []string{"64:ff9b:1::7f00:1"}, ""},
		{"case20 localhost", resolvedRules(), "x.localhost", []string{"10.1.1.1"}, "a non-loopback address"},
		{"case21 private address is dialled", resolvedRules(), "name.test", []string{"10.1.1.1"}, ""},
		{"case21 listed", policy.NetworkRules{AllowedDomains: []string{"name.test"}, DeniedResolvedAddresses: []string{"10.0.0.0/8"}}, "name.test",
			[]string{"10.1.1.1"}, "a listed address"},
		{"NET-52 no answers", resolvedRules(), "name.test", nil, "failed"},
		{"NET-53 unspecified", resolvedRules(), "name.test", []string{"0.0.0.0"}, "an unspecified address"},
		{"NET-53 multicast", resolvedRules(), "name.test", []string{"ff02::1"}, "a multicast address"},
		{"NET-53 metadata", resolvedRules(), "name.test", []string{"fd00:ec2::254"}, "a cloud metadata address"},
		{"NET-55 what a mapped answer is", resolvedRules("127.0.0.2:443"), "name.test", []string{"::127.0.0.2"}, "a loopback address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			port, _ := ready200(t, "127.0.0.1:0")
			c := capture(t, tc.rules, func(o *Options) { o.Resolver = resolves(tc.host, tc.addrs...) })
			d := c.lead(port)
			c.wantAnyway(tc.host, 443, tc.want)
			lines := 4
			switch tc.want {
			case "":
				to := net.JoinHostPort(tc.addrs[0], "443")
				if want := []string{to, to, to, to}; !slices.Equal(d.to, want) {
					t.Errorf("dialled %q, want %q", d.to, want)
				}
				lines = 0
			case "failed":
				lines = 0 // NET-73
				fallthrough
			default:
				if len(d.to) > 0 {
					t.Errorf("dialled %q", d.to)
				}
			}
			if got := c.lines(); len(got) != lines {
				t.Errorf("%d lines: %q", len(got), got)
			}
			for _, line := range c.lines() {
				if line != "deny network-outbound "+tc.host+":443 (resolved to "+tc.want+")" {
					t.Errorf("%q", line)
				}
			}
		})
	}
}

func TestNET53_case20_OwnAddressOnEveryPath(t *testing.T) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		addr, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if addr = addr.Unmap(); addr.IsLoopback() || addr.IsLinkLocalUnicast() {
			continue
		}
		c := capture(t, resolvedRules(), func(o *Options) { o.Resolver = resolves("name.test", addr.String()) })
		c.wantAnyway("name.test", 443, "one of this host's addresses")
	}
}

func TestNET58_case17_ExemptionHasAPort(t *testing.T) {
	port, _ := ready200(t, "127.0.0.1:0")
	other, touched := ready200(t, "127.0.0.1:0")
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"name.test", fmt.Sprintf("127.0.0.1:%d", port)}},
		func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	c.wantAnyway("name.test", port, "")
	c.wantAnyway("name.test", other, "a loopback address")
	if touched.Load() != 0 {
		t.Error("the other port was connected")
	}
}

// A destination that is a literal is not judged again (NET-50), whatever deniedResolvedAddresses says.
func TestNET50_case21_Literal(t *testing.T) {
	port, touched := ready200(t, "127.0.0.1:0")
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}, DeniedResolvedAddresses: []string{"127.0.0.0/8"}})
	if got := c.connectTo(fmt.Sprintf("127.0.0.1:%d", port)).rest(); !strings.HasPrefix(got, established) {
		t.Errorf("%q", got)
	}
	c.open(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))).rest()
	wantCount(t, touched, 2)
}

// A resolver that answers differently each time never leads to an address that was not judged (NET-51).
func TestNET51_case22_RebindingResolverOnEveryPath(t *testing.T) {
	port, good := ready200(t, "127.0.0.1:0")
	_, bad := ready200(t, fmt.Sprintf("127.0.0.2:%d", port))
	var flips [][]string
	for range 32 {
		flips = append(flips, []string{"127.0.0.1"}, []string{"127.0.0.2"}, []string{"127.0.0.2", "127.0.0.1"})
	}
	r := &fakeResolver{answers: map[string][][]string{"name.test": flips}}
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"name.test", fmt.Sprintf("127.0.0.1:%d", port)}}, func(o *Options) { o.Resolver = r })
	const rounds = 24 // of four paths, one lookup for each dial
	for range rounds {
		for path, got := range c.anyway("name.test", port) {
			if got != "" && got != "a loopback address" {
				t.Errorf("%s: %q", path, got)
			}
		}
	}
	if n := r.count("name.test"); n != 4*rounds {
		t.Errorf("%d lookups for %d dials", n, 4*rounds)
	}
	if bad.Load() != 0 {
		t.Errorf("the refused address was connected %d times", bad.Load())
	}
	wantCount(t, good, 4*rounds*2/3)
}

// The name stays in what is sent on (NET-51), and each survivor is tried in turn.
func TestNET51_NextSurvivorOnEveryPath(t *testing.T) {
	port, touched := ready200(t, "127.0.0.1:0")
	rules := policy.NetworkRules{AllowedDomains: []string{"name.test", fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.9:%d", port)}}
	c := capture(t, rules, func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.9", "127.0.0.1") }) // nobody listens on the first
	c.wantAnyway("name.test", port, "")
	wantCount(t, touched, 4)
}

// Whoever bypasses the parent is dialled; through it no address is looked up or judged here (NET-50).
func TestNET62_case29_BypassOnEveryPath(t *testing.T) {
	server, _ := ready200(t, "127.0.0.1:0")
	parent, requests := fakeParent(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	for _, tc := range []struct{ host, dialled string }{
		{"sub.direct.test", "192.0.2.7:1"}, {"10.1.2.3", "10.1.2.3:1"}, {"exact.test", "192.0.2.8:1"}, {"10.2.2.3", ""}, {"other.test", ""},
	} {
		t.Run(tc.host, func(t *testing.T) {
			c := capture(t, policy.NetworkRules{AllowedDomains: []string{"*.direct.test", "10.1.2.3", "exact.test", "10.2.2.3", "other.test"}}, func(o *Options) {
				o.Resolver = &fakeResolver{answers: map[string][][]string{"sub.direct.test": {{"192.0.2.7"}}, "exact.test": {{"192.0.2.8"}}}}
				o.Parent = mustParent(t, fmt.Sprintf("127.0.0.1:%d", parent), "", "direct.test,10.1.0.0/16,exact.test:8080")
			})
			var d *dialled
			if tc.dialled != "" {
				d = c.lead(server)
			}
			target := tc.host + ":1"
			p := c.connectTo(target)
			p.want(established)
			p = c.dial()
			p.send("GET http://%s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", target, auth)
			p.want("HTTP/1.1 200 OK\r\n")
			p = c.dial()
			p.send("%s%s", socksLogin("srt", testToken), socksName(1, tc.host, 1))
			p.want(socksAdmitted + socksAnswer(0))
			dst, err := netip.ParseAddr(tc.host)
			if err != nil {
				dst = c.addresses(tc.host, 1)[0].Addr()
			}
			c.open(netip.AddrPortFrom(dst, 1))
			if d != nil {
				if want := []string{tc.dialled, tc.dialled, tc.dialled, tc.dialled}; !slices.Equal(d.to, want) {
					t.Errorf("dialled %q, want %q", d.to, want)
				}
				return
			}
			for _, want := range []string{"CONNECT " + target, "GET http://" + target + "/", "CONNECT " + target, "CONNECT " + target} {
				if r := <-requests; !strings.HasPrefix(r, want+" ") {
					t.Errorf("the parent got %q, want %q", r, want)
				}
			}
		})
	}
	select {
	case r := <-requests:
		t.Errorf("the parent got %q as well", r)
	default:
	}
}
