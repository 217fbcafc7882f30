package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

func mustNetwork(t testing.TB, r NetworkRules) *Network {
	t.Helper()
	n, err := NewNetwork(r)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// chapterRules is the configuration of "Cases worth a test".
func chapterRules() NetworkRules {
	return NetworkRules{
		AllowedDomains: []string{"127.0.0.1", "localhost", "*.wild.test:8080"},
		DeniedDomains:  []string{"evil.test", "*:22"},
	}
}

func TestDecide(t *testing.T) {
	n := mustNetwork(t, chapterRules())
	const echo = 40001
	for _, test := range []struct {
		name, host string
		port       uint16
		allowed    bool
		reason     string
		rule       string
	}{
		{"case 2 denied", "evil.test", 443, false, ReasonDenied, "evil.test"},
		{"case 2 NET-10 case", "EVIL.test", 443, false, ReasonDenied, "evil.test"},
		{"case 2 NET-8 trailing dot", "evil.test.", 443, false, ReasonDenied, "evil.test"},
		{"case 3 off the list", "nope.test", 443, false, ReasonNotAllowed, ""},
		{"case 4 deny beats allow", "127.0.0.1", 22, false, ReasonDenied, "*:22"},
		{"case 4 port of a wildcard", "a.wild.test", 8081, false, ReasonNotAllowed, ""},
		{"case 4 strict subdomain", "wild.test", 8080, false, ReasonNotAllowed, ""},
		{"case 5 two parts", "127.1", echo, true, "", "127.0.0.1"},
		{"case 5 hexadecimal", "0x7f.0.0.1", echo, true, "", "127.0.0.1"},
		{"case 5 decimal", "2130706433", echo, true, "", "127.0.0.1"},
		{"case 5 octal", "017700000001", echo, true, "", "127.0.0.1"},
		{"case 5 mapped", "[::ffff:7f00:1]", echo, true, "", "127.0.0.1"},
		{"case 5 literal with trailing dot", "127.0.0.1.", echo, true, "", "127.0.0.1"},
		{"case 6 zone", "[::1%lo]", 80, false, ReasonMalformed, ""},
		{"case 6 wildcard", "*.test", 443, false, ReasonMalformed, ""},
		{"case 7 NUL", "evil.com\x00.a.wild.test", 8080, false, ReasonMalformed, ""},
		{"case 7 CR LF", "a\r\nb.wild.test", 8080, false, ReasonMalformed, ""},
		{"case 7 zone in a name", "::ffff:1.2.3.4%x.wild.test", 8080, false, ReasonMalformed, ""},
		{"case 7 empty", "", 8080, false, ReasonMalformed, ""},
		{"NET-9 space", "a b.wild.test", 8080, false, ReasonMalformed, ""},
		{"NET-9 at sign", "u@127.0.0.1", 80, false, ReasonMalformed, ""},
		{"NET-9 slash", "127.0.0.1/x", 80, false, ReasonMalformed, ""},
		{"NET-9 beyond ASCII", "é.wild.test", 8080, false, ReasonMalformed, ""},
		{"NET-9 over 255 bytes", strings.Repeat("a.", 130) + "wild.test", 8080, false, ReasonMalformed, ""},
		{"NET-9 malformed before denied", "evil.test%", 22, false, ReasonMalformed, ""},
		{"NET-10 deep subdomain", "A.b.C.wild.test.", 8080, true, "", "*.wild.test:8080"},
		{"NET-10 deny on a port", "a.wild.test", 22, false, ReasonDenied, "*:22"},
		{"NET-10 name that ends alike", "xwild.test", 8080, false, ReasonNotAllowed, ""},
		{"NET-7 subdomain of an exact deny", "a.evil.test", 443, false, ReasonNotAllowed, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := n.Decide(test.host, test.port)
			if v.Allowed != test.allowed || v.Reason != test.reason || v.Entry != test.rule {
				t.Errorf("Decide(%q, %d) = %+v", test.host, test.port, v)
			}
			if v.Malformed != (test.reason == ReasonMalformed) || v.Denied != (test.reason == ReasonDenied) {
				t.Errorf("flags do not fit the reason: %+v", v)
			}
			if v.Malformed != (v.Host == config.Host{}) {
				t.Errorf("host %+v with Malformed=%v", v.Host, v.Malformed)
			}
		})
	}
}

func TestNET8CanonicalHostInVerdict(t *testing.T) {
	n := mustNetwork(t, chapterRules())
	for host, want := range map[string]config.Host{
		"A.Wild.Test.":    {Name: "a.wild.test"},
		"2130706433":      {Name: "127.0.0.1", Addr: netip.MustParseAddr("127.0.0.1")},
		"[0:0:0:0:0::1]":  {Name: "::1", Addr: netip.MustParseAddr("::1")},
		"::ffff:10.0.0.1": {Name: "10.0.0.1", Addr: netip.MustParseAddr("10.0.0.1")},
	} {
		if got := n.Decide(host, 8080).Host; got != want {
			t.Errorf("Decide(%q).Host = %+v, want %+v", host, got, want)
		}
	}
}

func TestNET1EmptyListsAllowNothing(t *testing.T) {
	n := mustNetwork(t, NetworkRules{AllowedDomains: []string{}})
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]", "a.test"} {
		if v := n.Decide(host, 443); v.Allowed || v.Reason != ReasonNotAllowed {
			t.Errorf("Decide(%q) = %+v", host, v)
		}
	}
}

func TestNET39NoPolicyDeniesEverything(t *testing.T) {
	for name, n := range map[string]*Network{"nil": nil, "zero": {}} {
		for _, host := range []string{"localhost", "127.0.0.1", "a.test", "b%d"} {
			for call, v := range map[string]Verdict{"Decide": n.Decide(host, 443), "DenyOnly": n.DenyOnly(host, 443)} {
				if v.Allowed || v.Reason != ReasonUnavailable {
					t.Errorf("%s: %s(%q) = %+v", name, call, host, v)
				}
			}
		}
		if len(n.JudgeAddress(config.Host{Name: "a.test"}, 443, netip.MustParseAddr("192.0.2.1"), notOwn)) == 0 {
			t.Errorf("%s: an address may be dialled", name)
		}
		if !n.Strict() {
			t.Errorf("%s: lists may be widened", name)
		}
	}
}

func TestNET7StrictAllowlist(t *testing.T) {
	for _, strict := range []bool{false, true} {
		r := chapterRules()
		r.StrictAllowlist = strict
		n := mustNetwork(t, r)
		if n.Strict() != strict {
			t.Errorf("Strict() = %v, want %v", n.Strict(), strict)
		}
		if !n.Decide("localhost", 80).Allowed || n.Decide("nope.test", 80).Allowed {
			t.Errorf("strict=%v changes what the two lists say", strict)
		}
	}
}

func TestNET74Reasons(t *testing.T) {
	n := mustNetwork(t, NetworkRules{
		AllowedDomains: []string{"*.x.test"},
		DeniedDomains:  []string{"Evil.test", "*.x.test:25", "127.1", "quiet.test", "blank.test"},
		DeniedDomainReasons: map[string]string{
			"Evil.test":   "No <b>evil</b>\nplease é ✓",
			"*.x.test:25": "no mail from here",
			"127.1":       "not this host",
			"evil.test":   "the key is not spelled as the entry",
			"other.test":  "no such entry",
			"quiet.test":  "",
			"blank.test":  "<\x00>",
		},
	})
	for _, test := range []struct {
		host   string
		port   uint16
		reason string
	}{
		{"evil.TEST.", 443, "No <b>evil</b>\nplease é ✓"}, // raw: each way out cleans it in its own way
		{"a.x.test", 25, "no mail from here"},
		{"2130706433", 1, "not this host"},
		{"other.test", 443, ReasonNotAllowed},
		{"quiet.test", 443, ReasonDenied},
		{"blank.test", 443, ReasonDenied},
	} {
		if v := n.Decide(test.host, test.port); v.Allowed || v.Reason != test.reason {
			t.Errorf("Decide(%q, %d) = %+v, want reason %q", test.host, test.port, v, test.reason)
		}
	}
	if v := n.Decide("a.x.test", 26); !v.Allowed {
		t.Errorf("NET-10: another port than the denied one: %+v", v)
	}
}

func TestNET43DenyOnly(t *testing.T) {
	n := mustNetwork(t, chapterRules())
	for _, test := range []struct {
		name, host string
		port       uint16
		want       Verdict
	}{
		{"case 10 denied by port", "github.com", 22, Verdict{Denied: true, Reason: ReasonDenied, Rule: "network.deniedDomains.1", Entry: "*:22"}},
		{"denied by name", "EVIL.test", 80, Verdict{Denied: true, Reason: ReasonDenied, Rule: "network.deniedDomains.0", Entry: "evil.test"}},
		{"the allow list is not asked", "127.0.0.1", 80, Verdict{}},
		{"off every list", "nope.test", 80, Verdict{}},
		{"bad host", "a b", 22, Verdict{Malformed: true, Reason: ReasonMalformed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := n.DenyOnly(test.host, test.port)
			got.Host = config.Host{}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestNET12BadEntries(t *testing.T) {
	for _, test := range []struct {
		name, where, entry string
		rules              NetworkRules
		kind               error
	}{
		{"* allowed", "network.allowedDomains[1]", `"*"`, NetworkRules{AllowedDomains: []string{"a.test", "*"}}, config.ErrInvalidDomain},
		{"*:80 allowed", "network.allowedDomains[0]", `"*:80"`, NetworkRules{AllowedDomains: []string{"*:80"}}, config.ErrInvalidDomain},
		{"top-level wildcard", "network.allowedDomains[0]", `"*.com"`, NetworkRules{AllowedDomains: []string{"*.com"}}, config.ErrInvalidDomain},
		{"URL denied", "network.deniedDomains[0]", `"https://a.test"`, NetworkRules{DeniedDomains: []string{"https://a.test"}}, config.ErrInvalidDomain},
		{"port 0", "network.deniedDomains[0]", `"a.test:0"`, NetworkRules{DeniedDomains: []string{"a.test:0"}}, config.ErrInvalidDomain},
		{"NET-11 bare IPv6", "network.allowedDomains[0]", `"::1"`, NetworkRules{AllowedDomains: []string{"::1"}}, config.ErrInvalidDomain},
		{"NET-56 brackets", "network.deniedResolvedAddresses[0]", `"[::1]"`, NetworkRules{DeniedResolvedAddresses: []string{"[::1]"}}, config.ErrInvalidAddress},
		{"NET-56 leading zero", "network.deniedResolvedAddresses[1]", `"010.0.0.1"`, NetworkRules{DeniedResolvedAddresses: []string{"::/0", "010.0.0.1"}}, config.ErrInvalidAddress},
		{"NET-56 short mapped prefix", "network.deniedResolvedAddresses[0]", `"::ffff:10.0.0.0/95"`, NetworkRules{DeniedResolvedAddresses: []string{"::ffff:10.0.0.0/95"}}, config.ErrInvalidAddress},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, err := NewNetwork(test.rules)
			if n != nil || !errors.Is(err, test.kind) {
				t.Fatalf("got %v, %v; want an error of kind %v", n, err, test.kind)
			}
			if !strings.HasPrefix(err.Error(), test.where+": ") || !strings.Contains(err.Error(), test.entry) {
				t.Errorf("error %q names neither %s nor %s", err, test.where, test.entry)
			}
		})
	}
}

func TestNetworkKeepsNoReferenceToItsRules(t *testing.T) {
	r := chapterRules()
	r.DeniedDomainReasons = map[string]string{"evil.test": "no"}
	n := mustNetwork(t, r)
	r.AllowedDomains[0], r.DeniedDomains[0], r.DeniedDomainReasons["evil.test"] = "evil.test", "a.test", "yes"
	if v := n.Decide("evil.test", 80); !v.Denied || v.Reason != "no" || v.Entry != "evil.test" || v.Rule != "network.deniedDomains.0" {
		t.Errorf("a later change of the rules shows: %+v", v)
	}
}

// spellings gives ways to write a host that NET-8 makes one.
func spellings(h config.Host) []string {
	out := []string{h.Name, strings.ToUpper(h.Name)}
	switch {
	case !h.IsLiteral():
		out = append(out, h.Name+".")
	case h.Addr.Is4():
		b := h.Addr.As4()
		mapped := netip.AddrFrom16(h.Addr.As16()).String()
		out = append(out, h.Name+".", mapped, "["+mapped+"]", atonSpelling(b, 8), atonSpelling(b, 16), wholeNumber(b))
	default:
		out = append(out, "["+h.Name+"]", "["+h.Addr.StringExpanded()+"]")
	}
	return out
}

func FuzzDecide(f *testing.F) {
	for _, seed := range []string{"evil.test", "127.0.0.1", "::1", "a.b.evil.test.", "0x7f.1", "xn--mnchen-3ya.de", "[::ffff:1.2.3.4]", "evil.com\x00.ok.test", "1.2.3.4.5", "fe80::1%eth0"} {
		f.Add(seed, uint16(443))
	}
	f.Fuzz(func(t *testing.T, raw string, port uint16) {
		host, err := config.CanonicalHost(raw)
		everything := mustNetwork(t, NetworkRules{AllowedDomains: []string{"*.ok.test", "127.0.0.1", "localhost"}})
		v := everything.Decide(raw, port)
		if (err != nil) != v.Malformed || v.Malformed && v.Allowed || v.Allowed != (v.Reason == "") {
			t.Fatalf("Decide(%q, %d) = %+v, canonical host error %v", raw, port, v, err)
		}
		if everything.DenyOnly(raw, port).Allowed {
			t.Fatalf("DenyOnly(%q, %d) allows", raw, port)
		}
		entry := host.Name
		if host.Addr.Is6() {
			entry = "[" + entry + "]"
		}
		r := NetworkRules{AllowedDomains: []string{entry}, DeniedDomains: []string{entry}}
		n, bad := NewNetwork(r)
		if err != nil || bad != nil {
			return // no host, or one that cannot be an entry (no dot)
		}
		for _, s := range spellings(host) {
			if v := n.Decide(s, port); v.Allowed || !v.Denied || v.Host != host {
				t.Errorf("deny %q: Decide(%q, %d) = %+v", entry, s, port, v)
			}
		}
		r.DeniedDomains = nil
		for _, s := range spellings(host) {
			if v := mustNetwork(t, r).Decide(s, port); !v.Allowed {
				t.Errorf("allow %q: Decide(%q, %d) = %+v", entry, s, port, v)
			}
		}
	})
}

func TestFirstEntryOfTheListDecides(t *testing.T) {
	entries := []string{"*.c.test:81", "*:82", "b.c.test", "*.b.c.test", "*.c.test", "b.c.test:83", "*", "10.1.1.1", "a.b.c.test"}
	n := mustNetwork(t, NetworkRules{DeniedDomains: entries})
	for _, host := range []string{"a.b.c.test", "b.c.test", "c.test", "x.c.test", "test", "10.1.1.1", "1.10.1.1.1.test", "[::1]"} {
		for _, port := range []uint16{80, 81, 82, 83} {
			want := ""
			for _, entry := range entries {
				d, err := config.ParseDomain(entry, config.DomainForm{Port: true, Any: true})
				if err != nil {
					t.Fatal(err)
				}
				if h, _ := config.CanonicalHost(host); want == "" && d.Matches(h, port) {
					want = entry
				}
			}
			if v := n.Decide(host, port); v.Entry != want {
				t.Errorf("Decide(%q, %d): entry %q, want %q", host, port, v.Entry, want)
			}
		}
	}
}

// The cost of a decision must not grow with the lists: block lists are long, and every connection is judged.
func BenchmarkDecide(b *testing.B) {
	r := chapterRules()
	for i := range 10000 {
		r.DeniedDomains = append(r.DeniedDomains, fmt.Sprintf("host%d.example.test", i), fmt.Sprintf("*.zone%d.example.test", i))
	}
	for name, rules := range map[string]NetworkRules{"few": chapterRules(), "20000": r} {
		n := mustNetwork(b, rules)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				n.Decide("a.wild.test", 8080)
			}
		})
	}
}

func TestNET7_PossibleOnSomePort(t *testing.T) {
	rules := NetworkRules{
		AllowedDomains: []string{"name.test", "port.test:443", "*.wild.test:80", "both.test:22", "more.test:22", "more.test:23", "shut.test", "10.1.1.1:80"},
		DeniedDomains:  []string{"*:22", "shut.test", "*.shut.wild.test", "a.wild.test:80", "b.wild.test:81", "off.test"},
	}
	for host, want := range map[string]struct{ allowed, undenied bool }{
		"name.test":        {true, true},
		"port.test":        {true, true},
		"x.wild.test":      {true, true},
		"wild.test":        {false, true},
		"a.wild.test":      {false, true}, // the only port that is allowed is denied
		"b.wild.test":      {true, true},
		"both.test":        {false, true},
		"more.test":        {true, true},
		"shut.test":        {false, false},
		"x.shut.wild.test": {false, false},
		"off.test":         {false, false},
		"unheard.test":     {false, true},
		"10.1.1.1":         {true, true},
	} {
		h, err := config.CanonicalHost(host)
		if err != nil {
			t.Fatal(err)
		}
		n := mustNetwork(t, rules)
		if allowed, undenied := n.Possible(h); allowed != want.allowed || undenied != want.undenied {
			t.Errorf("%s: allowed %v, undenied %v", host, allowed, undenied)
		}
		for _, port := range []uint16{1, 22, 23, 80, 81, 443} { // what is decided for a port was possible
			v := n.Decide(host, port)
			if v.Allowed && !want.allowed || !v.Denied && !want.undenied {
				t.Errorf("%s:%d: %+v", host, port, v)
			}
		}
		for _, none := range []*Network{nil, {}} {
			if allowed, undenied := none.Possible(h); allowed || undenied {
				t.Errorf("%s without rules: allowed %v, undenied %v", host, allowed, undenied)
			}
		}
		all := mustNetwork(t, NetworkRules{AllowedDomains: rules.AllowedDomains, DeniedDomains: []string{"*"}})
		if allowed, undenied := all.Possible(h); allowed || undenied {
			t.Errorf("%s with all denied: allowed %v, undenied %v", host, allowed, undenied)
		}
	}
}
