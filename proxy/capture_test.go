package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

const testPID = 4711

// capturing is a Capture of a server with names.
type capturing struct {
	*harness
	*Capture
	names *Names
}

func capture(t *testing.T, rules policy.NetworkRules, change ...func(*Options)) *capturing {
	t.Helper()
	names, err := NewNames()
	if err != nil {
		t.Fatal(err)
	}
	h := serving(start(t, rules, change...))
	return &capturing{h, h.server.NewCapture(names, "the key"), names}
}

// serving waits until the listener is served, so that a test without a client does not close the server before.
func serving(h *harness) *harness {
	h.t.Helper()
	if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.listeners) == 1 }) {
		h.t.Fatal("the listener is not served")
	}
	return h
}

// addresses are those of a name, one of each family, with a port.
func (c *capturing) addresses(name string, port int) []netip.AddrPort {
	c.t.Helper()
	v4, v6, err := c.names.Addresses(name)
	if err != nil {
		c.t.Fatal(err)
	}
	return []netip.AddrPort{
		netip.AddrPortFrom(v4, uint16(port)), netip.AddrPortFrom(v6, uint16(port)), netip.AddrPortFrom(netip.AddrFrom16(v4.As16()), uint16(port)),
	}
}

// open judges and dials, which must work, and relays; it returns the program's end.
func (c *capturing) open(dst netip.AddrPort) *peer {
	c.t.Helper()
	w, err := c.Judge(testPID, dst)
	if err != nil {
		c.t.Fatalf("Judge(%v): %v", dst, err)
	}
	u, err := w.Dial(c.t.Context())
	if err != nil {
		c.t.Fatalf("Dial(%v): %v", dst, err)
	}
	program, srt := tcpPair(c.t)
	u.Relay(srt, nil)
	return program
}

// tcpPair is a connection over loopback.
func tcpPair(t testing.TB) (*peer, net.Conn) {
	t.Helper()
	l := listen(t)
	p := connect(t, l.Addr().String())
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// wantAll checks the lines, and that each event names the thread and the command.
func (c *capturing) wantAll(lines ...string) {
	c.t.Helper()
	c.wantLines(lines...)
	for _, e := range c.events {
		if e.PID != testPID || e.CommandID != "the key" || e.Time.IsZero() {
			c.t.Errorf("event: %+v", e)
		}
	}
}

// settled waits until no connection and no slot is taken.
func (c *capturing) settled() {
	c.t.Helper()
	if !settles(func() bool { return c.held() == 0 && len(c.srv().slots) == 0 }) {
		c.t.Errorf("%d connections and %d slots are held", c.held(), len(c.srv().slots))
	}
}

// server is ambiguous between harness and Capture.
func (c *capturing) srv() *Server { return c.harness.server }

func TestNET7_JudgeOfCapturedConnections(t *testing.T) {
	rules := policy.NetworkRules{
		AllowedDomains: []string{"127.0.0.1", "name.test:443", "10.1.1.1:80", "[2001:db8::1]"}, DeniedDomains: []string{"evil.test", "*:22"},
		DeniedDomainReasons: map[string]string{"evil.test": "No evil"},
	}
	for _, tc := range []struct {
		name    string
		dst     func(*capturing) netip.AddrPort
		refused string // host:port (reason); empty: allowed
	}{
		{"allowed name", func(c *capturing) netip.AddrPort { return c.addresses("name.test", 443)[0] }, ""},
		{"allowed name, IPv6", func(c *capturing) netip.AddrPort { return c.addresses("name.test", 443)[1] }, ""},
		{"allowed name, mapped", func(c *capturing) netip.AddrPort { return c.addresses("name.test", 443)[2] }, ""},
		{"its port", func(c *capturing) netip.AddrPort { return c.addresses("name.test", 80)[0] }, "name.test:80 (host is not on the allow list)"},
		{"another name", func(c *capturing) netip.AddrPort { return c.addresses("Nope.test.", 443)[1] }, "nope.test:443 (host is not on the allow list)"},
		{"denied name", func(c *capturing) netip.AddrPort { return c.addresses("evil.test", 443)[0] }, "evil.test:443 (No evil)"},
		{"denied port", func(c *capturing) netip.AddrPort { return c.addresses("name.test", 22)[0] }, "name.test:22 (host is on the deny list)"},
		{"literal", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("10.1.1.1:80") }, ""},
		{"literal, mapped", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("[::ffff:10.1.1.1]:80") }, ""},
		{"literal, IPv6", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("[2001:db8::1]:80") }, ""},
		{"another port of a literal", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("10.1.1.1:81") }, "10.1.1.1:81 (host is not on the allow list)"},
		{"another literal", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("[2001:db8::2]:80") }, "2001:db8::2:80 (host is not on the allow list)"},
		{"a zone is dropped", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("[fe80::1%lo]:80") }, "fe80::1:80 (host is not on the allow list)"},
		{"unbound synthetic", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("198.18.200.200:443") }, "198.18.200.200:443 (host is not on the allow list)"},
		{"unbound synthetic, mapped", func(*capturing) netip.AddrPort { return netip.MustParseAddrPort("[::ffff:198.19.1.1]:443") }, "198.19.1.1:443 (host is not on the allow list)"},
		{"unbound synthetic, IPv6", func(c *capturing) netip.AddrPort {
			a := c.addresses("name.test", 1)[1].Addr().As16()
			a[15] ^= 0x55
			return netip.AddrPortFrom(netip.AddrFrom16(a), 443)
		}, "-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := capture(t, rules)
			dst := tc.dst(c)
			if tc.refused == "-" {
				tc.refused = violation.HostPort(dst.Addr().String(), dst.Port()) + " (host is not on the allow list)"
			}
			w, err := c.Judge(testPID, dst)
			if tc.refused == "" {
				if err != nil || w == nil {
					t.Errorf("refused: %v", err)
				}
				c.wantAll()
				return
			}
			var refusal *CaptureError
			if w != nil || !errors.As(err, &refusal) || Errno(err) != syscall.EACCES || !errors.Is(err, syscall.EACCES) {
				t.Fatalf("%v, %v", w, err)
			}
			if got := refusal.Target + " (" + refusal.Reason + ")"; got != tc.refused {
				t.Errorf("got %q, want %q", got, tc.refused)
			}
			c.wantAll("deny network-outbound " + tc.refused)
		})
	}
}

// A program that tries both addresses of a name wants one thing; one that tries again, another one, and so does another
// thread, port or name.
func TestNET70_BothAddressesOfANameAreOneRefusal(t *testing.T) {
	c := capture(t, policy.NetworkRules{})
	const want = "deny network-outbound %s (host is not on the allow list)"
	evil, other := c.addresses("evil.test", 80), c.addresses("other.test", 80)
	port := c.addresses("evil.test", 81)
	var lines []string
	for _, try := range []struct {
		pid     int
		dst     netip.AddrPort
		refusal string // empty: it is not reported
	}{
		{1, evil[0], "evil.test:80"}, {2, evil[1], "evil.test:80"}, {1, port[1], "evil.test:81"}, {1, other[1], "other.test:80"},
		{1, evil[1], ""}, {2, evil[0], ""}, {1, evil[0], "evil.test:80"}, {1, evil[0], "evil.test:80"}, {1, evil[1], ""},
		{1, netip.MustParseAddrPort("10.0.0.1:80"), "10.0.0.1:80"}, {1, netip.MustParseAddrPort("[2001:db8::1]:80"), "2001:db8::1:80"},
	} {
		if w, err := c.Judge(try.pid, try.dst); w != nil || !errors.Is(err, syscall.EACCES) {
			t.Errorf("%v: %v, %v", try.dst, w, err)
		}
		if try.refusal != "" {
			lines = append(lines, fmt.Sprintf(want, try.refusal))
		}
	}
	c.wantLines(lines...)
	for pid := range 3 * maxAttempts {
		_, _ = c.Judge(pid+10, evil[0])
	}
	if len(c.Capture.refused) > maxAttempts {
		t.Errorf("%d attempts are remembered", len(c.Capture.refused))
	}
}

// What is only looked up is reported too, once and when no connection comes; one that comes is the report.
func TestNET70_NamesThatAreOnlyLookedUp(t *testing.T) {
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"name.test:443"}, DeniedDomains: []string{"*.evil.test"}})
	for range 2 {
		for _, name := range []string{"only.test", "a.evil.test", "name.test", "connected.test", "host", "bad..test"} {
			c.LookedUp(name)
		}
	}
	if _, err := c.Judge(testPID, c.addresses("connected.test", 80)[0]); err == nil {
		t.Error("allowed")
	}
	c.wantLines("deny network-outbound connected.test:80 (host is not on the allow list)")
	c.tellLookups()
	want := []string{"deny network-outbound connected.test:80 (host is not on the allow list)",
		"deny dns-query a.evil.test (host is on the deny list)", "deny dns-query bad..test (malformed host)",
		"deny dns-query only.test (host is not on the allow list)"}
	c.wantLines(want...)
	c.LookedUp("only.test")
	c.LookedUp("connected.test")
	c.LookedUp("late.test")
	c.Close()
	c.LookedUp("after.test")
	c.wantLines(append(want, "deny dns-query late.test (host is not on the allow list)")...)
	for i := range 3 * maxLookups {
		c.connecting(fmt.Sprint("n", i))
	}
	if c.lookups.timer != nil || len(c.lookups.waiting) > 0 || len(c.lookups.told) > maxLookups {
		t.Errorf("after Close: %v, %d, %d", c.lookups.timer, len(c.lookups.waiting), len(c.lookups.told))
	}
	for _, e := range c.events {
		if e.CommandID != "the key" || e.Rule == "" && e.Reason != policy.ReasonMalformed {
			t.Errorf("%+v", e)
		}
	}
}

// A literal of the synthetic ranges stands for nothing, even if the policy names it or a callback would allow it.
func TestNET7_UnboundSyntheticIsNeverAsked(t *testing.T) {
	a := always(true, "")
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"198.18.200.200"}}, asks(a))
	if _, err := c.Judge(testPID, netip.MustParseAddrPort("198.18.200.200:443")); Errno(err) != syscall.EACCES {
		t.Errorf("%v", err)
	}
	if a.count() != 0 {
		t.Error("asked")
	}
}

func TestNET50_case16_case19_CapturedNameThatResolvesToWhatIsRefused(t *testing.T) {
	for addr, class := range map[string]string{
		"169.254.169.254": "a link-local address", "127.0.0.1": "a loopback address", "64:ff9b::7f00:1": "a loopback address",
		"100.100.100.200": "a cloud metadata address",
	} {
		c := capture(t, resolvedRules(), func(o *Options) { o.Resolver = resolves("name.test", addr) })
		w, err := c.Judge(testPID, c.addresses("name.test", 80)[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Dial(t.Context())
		var resolved *ResolvedError
		if !errors.As(err, &resolved) || Errno(err) != syscall.EACCES {
			t.Errorf("%s: %v", addr, err)
		}
		c.wantAll("deny network-outbound name.test:80 (resolved to " + class + ")")
		c.settled()
	}
}

func TestNET38_Captured(t *testing.T) {
	for _, a := range []*asked{nil, always(true, "")} {
		rules := policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}}
		if a != nil {
			rules = nowhere
		}
		c := capture(t, rules, func(o *Options) {
			o.RefuseOpaqueTunnels = true
			if a != nil {
				o.Ask = a.ask
			}
		})
		w, err := c.Judge(testPID, netip.MustParseAddrPort("127.0.0.1:443"))
		if a != nil && err == nil {
			_, err = w.Dial(t.Context())
		}
		if Errno(err) != syscall.EACCES {
			t.Errorf("%v", err)
		}
		c.wantAll("deny http-request CONNECT 127.0.0.1:443 (this proxy does not tunnel CONNECTs it cannot inspect)")
		c.settled()
	}
}

// Judge does not wait for the callback; Dial does.
func TestNET13_CapturedAsksWhenItIsDialled(t *testing.T) {
	_, port := echo(t)
	a := always(true, "")
	c := capture(t, nowhere, asks(a), func(o *Options) { o.Resolver = resolves("name.test", "192.0.2.1") })
	dst := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port))
	w, err := c.Judge(testPID, dst)
	if err != nil || a.count() != 0 {
		t.Fatalf("%v, asked %d times", err, a.count())
	}
	if c.Loopback(dst) != nil {
		t.Error("Loopback answers for the callback")
	}
	u, err := w.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = u.Close()
	want := Question{Host: "127.0.0.1", Spelled: "127.0.0.1", Port: uint16(port), Key: "the key", PID: testPID}
	if a.count() != 1 || a.questions[0] != want {
		t.Errorf("%+v, want %+v", a.questions, want)
	}
	a.answer = func(context.Context) (Answer, error) { return Answer{Reason: "not now"}, nil }
	if w, err = c.Judge(testPID, c.addresses("name.test", 443)[1]); err != nil {
		t.Fatal(err)
	}
	if _, err = w.Dial(t.Context()); Errno(err) != syscall.EACCES {
		t.Errorf("%v", err)
	}
	c.wantAll("deny network-outbound name.test:443 (not now)")
	c.settled()
}

func TestNET15_CapturedListOfTheCommand(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	h := serving(start(t, nowhere, commands(t, id, "127.0.0.1:80")))
	dst := netip.MustParseAddrPort("127.0.0.1:80")
	for key, ok := range map[string]bool{id: true, id + "x": false, "": false} {
		c := h.server.NewCapture(nil, key)
		if _, err := c.Judge(testPID, dst); (err == nil) != ok {
			t.Errorf("%q: %v", key, err)
		}
		if (c.Loopback(dst) != nil) != ok {
			t.Errorf("%q: Loopback %v", key, !ok)
		}
	}
}

func TestCaptureLoopback(t *testing.T) {
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1:5432", "[::1]", "10.1.1.1"}, DeniedDomains: []string{"[::1]:22"}})
	for dst, want := range map[string]string{
		"127.0.0.1:5432": "[127.0.0.1:5432]", "127.0.0.1:5433": "[]", "[::ffff:127.0.0.1]:5432": "[127.0.0.1:5432]", "127.0.0.2:5432": "[]",
		"[::1]:80": "[[::1]:80]", "[::1]:22": "[]", "0.0.0.0:5432": "[]", "10.1.1.1:80": "[]",
	} {
		if got := fmt.Sprint(c.Loopback(netip.MustParseAddrPort(dst))); got != want {
			t.Errorf("%s: %v", dst, got)
		}
	}
	c.wantAll()
}

// What the name localhost allows is dialled at the address that the program asked for, whatever the resolver says, unless
// the name has a way of its own.
func TestCaptureLocalhost(t *testing.T) {
	_, port := echo(t)
	rules := policy.NetworkRules{AllowedDomains: []string{fmt.Sprintf("localhost:%d", port)}}
	for _, routed := range []bool{false, true} {
		c := capture(t, rules, func(o *Options) {
			o.Resolver = resolves("localhost", "127.0.0.9")
			if routed {
				withMITM(mustMITM(t, "/nonexistent/mitm.sock", "localhost"))(o)
			}
		})
		dst := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
		want := fmt.Sprintf("[127.0.0.1:%d [::1]:%d]", port, port)
		if got := fmt.Sprint(c.Loopback(dst)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		w, err := c.Judge(testPID, dst)
		if err != nil {
			t.Fatal(err)
		}
		u, err := w.Dial(t.Context())
		if (err != nil) != routed {
			t.Errorf("routed %t: %v", routed, err)
		}
		if err == nil {
			_ = u.Close()
		}
		c.wantAll()
		c.settled()
	}
}

func TestNET70_Datagrams(t *testing.T) {
	c := capture(t, nowhere)
	for _, dst := range append(c.addresses("name.test", 443),
		netip.MustParseAddrPort("198.18.200.200:53"), netip.MustParseAddrPort("8.8.8.8:53"), netip.MustParseAddrPort("[::ffff:8.8.8.8]:53"),
		netip.MustParseAddrPort("8.8.8.8:53"), netip.MustParseAddrPort("[2001:db8::1]:443")) {
		c.Datagram(testPID, dst)
	}
	c.wantAll("deny network-outbound 8.8.8.8:53 (UDP is not forwarded)", "deny network-outbound 2001:db8::1:443 (UDP is not forwarded)")
	for i := range 3 * maxDatagrams {
		c.Datagram(testPID, netip.AddrPortFrom(netip.AddrFrom4([4]byte{9, 0, byte(i >> 8), byte(i)}), 53))
	}
	if n := len(c.lines()); n != maxDatagrams {
		t.Errorf("%d destinations were reported", n)
	}
}
