package policy

import (
	"net/netip"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

const (
	four = "127.0.0.1:3000"
	six  = "[::1]:3000"
)

// TestNET3_NET10_Loopback is the table of who may be reached at a loopback address without a proxy.
func TestNET3_NET10_Loopback(t *testing.T) {
	lists := func(s ...string) []string { return s }
	for _, tc := range []struct {
		name        string
		allow, deny []string
		want        map[string]string // by destination: the host of the entry; all others are refused
	}{
		{"nothing", nil, nil, nil},
		{"the name", lists("localhost:3000"), nil, map[string]string{four: "localhost", six: "localhost", "[::ffff:127.0.0.1]:3000": "localhost"}},
		{"the name on another port", lists("localhost:3001"), nil, nil},
		{"the name on every port", lists("localhost"), nil, map[string]string{four: "localhost", six: "localhost", "127.0.0.1:22": "localhost",
			"[::ffff:127.0.0.1]:3000": "localhost"}},
		{"an address", lists("127.0.0.1:3000"), nil, map[string]string{four: "127.0.0.1", "[::ffff:127.0.0.1]:3000": "127.0.0.1"}},
		{"the other address", lists("[::1]"), nil, map[string]string{six: "::1"}},
		{"the address comes before the name", lists("localhost", "[::1]:3000"), lists("*:22"), map[string]string{four: "localhost", six: "::1",
			"[::ffff:127.0.0.1]:3000": "localhost"}},
		{"another address of loopback", lists("127.0.0.2"), nil, map[string]string{"127.0.0.2:3000": "127.0.0.2"}},
		{"a name beneath it", lists("app.localhost:3000"), nil, map[string]string{four: "app.localhost", six: "app.localhost", "[::ffff:127.0.0.1]:3000": "app.localhost"}},
		{"localhost before names beneath it", lists("app.localhost:3000", "localhost:3000"), nil, map[string]string{four: "localhost", six: "localhost",
			"[::ffff:127.0.0.1]:3000": "localhost"}},
		{"a wildcard names no host", lists("*.app.localhost"), nil, nil},
		{"names that end alike", lists("notlocalhost.test", "localhost.test"), nil, nil},
		{"the name denied, an address allowed", lists("127.0.0.1:3000", "[::1]"), lists("localhost"), nil},
		{"the name denied on another port", lists("127.0.0.1:3000"), lists("localhost:22"), map[string]string{four: "127.0.0.1", "[::ffff:127.0.0.1]:3000": "127.0.0.1"}},
		{"an address denied, the name allowed", lists("localhost"), lists("127.0.0.1", "*:22"), map[string]string{six: "localhost"}},
		{"every host denied", lists("localhost", "127.0.0.1"), lists("*"), nil},
		{"the port denied", lists("localhost", "127.0.0.1"), lists("*:3000", "*:22"), nil},
		{"the name beneath it denied, localhost allowed", lists("localhost:3000"), lists("app.localhost"), map[string]string{four: "localhost", six: "localhost",
			"[::ffff:127.0.0.1]:3000": "localhost"}},
		{"the name beneath it allowed and denied", lists("app.localhost:3000"), lists("app.localhost:3000"), nil},
		{"one name beneath it denied by a wildcard", lists("a.b.localhost", "c.localhost:3000"), lists("*.b.localhost"), map[string]string{four: "c.localhost",
			six: "c.localhost", "[::ffff:127.0.0.1]:3000": "c.localhost"}},
		{"what is not of loopback", lists("10.1.1.1", "0.0.0.0", "[::]"), nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, err := NewNetwork(NetworkRules{AllowedDomains: tc.allow, DeniedDomains: tc.deny})
			if err != nil {
				t.Fatal(err)
			}
			for _, dst := range []string{four, six, "[::ffff:127.0.0.1]:3000", "127.0.0.1:22", "127.0.0.2:3000", "10.1.1.1:3000", "0.0.0.0:3000", "[::]:3000"} {
				v := n.Loopback(netip.MustParseAddrPort(dst))
				if want, ok := tc.want[dst]; v.Allowed != ok || ok && v.Host.Name != want {
					t.Errorf("%s: %+v, want %q", dst, v, want)
				}
				if v.Allowed != (v.Reason == "") || v.Allowed && (v.Entry == "" || v.Denied) {
					t.Errorf("%s: %+v contradicts itself", dst, v)
				}
			}
		})
	}
	for _, n := range []*Network{nil, {}} {
		if v := n.Loopback(netip.MustParseAddrPort(four)); v.Allowed || v.Reason != ReasonUnavailable {
			t.Errorf("%+v", v)
		}
	}
}

// A deny of localhost is one of its addresses on every way, and a name that leads to them does not lead there either.
func TestNET7_DenyOfLocalhost(t *testing.T) {
	n, err := NewNetwork(NetworkRules{AllowedDomains: []string{"127.0.0.1", "[::1]", "127.0.0.2", "app.localhost"}, DeniedDomains: []string{"localhost:80"}})
	if err != nil {
		t.Fatal(err)
	}
	for host, denied := range map[string]bool{"127.0.0.1": true, "0x7f.1": true, "::1": true, "localhost": true, "127.0.0.2": false, "app.localhost": false} {
		if v := n.Decide(host, 80); v.Denied != denied || denied && v.Entry != "localhost:80" {
			t.Errorf("%s: %+v", host, v)
		}
		if v := n.Decide(host, 81); v.Denied {
			t.Errorf("%s on another port: %+v", host, v)
		}
	}
	app := config.Host{Name: "app.localhost"}
	for _, addr := range localhostAddrs() {
		if got := ClassText(n.JudgeAddress(app, 80, addr, nil)...); got != "a deny-listed address" {
			t.Errorf("%s: %q", addr, got)
		}
		if got := n.JudgeAddress(app, 81, addr, nil); got != nil {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestNET15_LoopbackOfACommand(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	n, err := NewNetwork(NetworkRules{DeniedDomains: []string{"b.localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	var lists CommandLists
	for _, tc := range []struct{ entry, dst, want string }{
		{"localhost:3000", four, "localhost"}, {"localhost:3000", six, "localhost"}, {"localhost:3000", "127.0.0.2:3000", ""},
		{"localhost:3001", four, ""}, {"127.0.0.1", four, "127.0.0.1"}, {"127.0.0.1", six, ""}, {"a.localhost", six, "a.localhost"},
		{"b.localhost", six, ""}, {"10.1.1.1", "10.1.1.1:80", ""},
	} {
		if _, err := lists.Register(id, []string{tc.entry}); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{id: tc.want, id + "x": "", "": ""} {
			host, entry, ok := lists.Loopback(key, netip.MustParseAddrPort(tc.dst), n)
			if host.Name != want || ok != (want != "") || ok && entry != tc.entry {
				t.Errorf("%s to %s: %v, %q, %t", tc.entry, tc.dst, host, entry, ok)
			}
		}
	}
	if _, _, ok := (*CommandLists)(nil).Loopback(id, netip.MustParseAddrPort(four), n); ok {
		t.Error("no lists allow")
	}
}

// TestNET3_DecideDirect: the answer about a spelling is that about the addresses that it stands for.
func TestNET3_DecideDirect(t *testing.T) {
	for _, tc := range []struct {
		allow, deny []string
		host        string
		want        string // the entry that allows
		denied      bool
	}{
		{[]string{"127.0.0.1:3000"}, nil, "localhost", "127.0.0.1:3000", false},
		{[]string{"127.0.0.1:3000"}, nil, "app.localhost", "127.0.0.1:3000", false},
		{[]string{"127.0.0.1:3000"}, nil, "[::1]", "", false},
		{[]string{"localhost:3000"}, nil, "[::1]", "localhost:3000", false},
		{[]string{"localhost:3000"}, nil, "127.1", "localhost:3000", false},
		{[]string{"localhost"}, []string{"127.0.0.1"}, "localhost", "localhost", false},
		{[]string{"localhost"}, []string{"127.0.0.1", "[::1]"}, "localhost", "", true},
		{[]string{"127.0.0.1"}, []string{"localhost"}, "127.0.0.1", "", true},
		{[]string{"localhost"}, []string{"app.localhost"}, "app.localhost", "", true},
		{[]string{"*.app.localhost"}, nil, "x.app.localhost", "*.app.localhost", false},
		{[]string{"a.test", "127.0.0.1"}, nil, "a.test", "a.test", false},
		{[]string{"127.0.0.1"}, nil, "b.test", "", false},
		{[]string{"127.0.0.1"}, nil, "10.1.1.1", "", false},
	} {
		n, err := NewNetwork(NetworkRules{AllowedDomains: tc.allow, DeniedDomains: tc.deny})
		if err != nil {
			t.Fatal(err)
		}
		v := n.DecideDirect(tc.host, 3000)
		if v.Allowed != (tc.want != "") || v.Allowed && v.Entry != tc.want || v.Denied != tc.denied {
			t.Errorf("%v, %v: %s: %+v", tc.allow, tc.deny, tc.host, v)
		}
		if h, _ := config.CanonicalHost(tc.host); v.Host != h {
			t.Errorf("%s: the verdict is about %v", tc.host, v.Host)
		}
	}
}
