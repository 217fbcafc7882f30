package config

import (
	"errors"
	"strings"
	"testing"
)

var (
	hostOnly    = DomainForm{}
	allowedForm = DomainForm{Port: true}
	deniedForm  = DomainForm{Port: true, Any: true}
)

func TestCanonicalHost(t *testing.T) {
	for _, tc := range []struct{ rule, raw, want string }{
		{"NET-8 lower case", "EXAMPLE.com", "example.com"},
		{"NET-8 one trailing dot", "example.com.", "example.com"},
		{"NET-8 dotted decimal", "1.2.3.4", "1.2.3.4"},
		{"NET-8 trailing dot of an address", "127.0.0.1.", "127.0.0.1"},
		{"NET-8 one part", "2130706433", "127.0.0.1"},
		{"NET-8 two parts", "127.1", "127.0.0.1"},
		{"NET-8 three parts", "10.1.258", "10.1.1.2"},
		{"NET-8 octal", "0177.0.0.01", "127.0.0.1"},
		{"NET-8 hexadecimal", "0X7F.0.0.0x1", "127.0.0.1"},
		{"NET-8 one hexadecimal part", "0xffffffff", "255.255.255.255"},
		{"NET-8 zero", "0", "0.0.0.0"},
		{"NET-8 brackets", "[::1]", "::1"},
		{"NET-8 IPv6 compressed", "2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
		{"NET-8 mapped", "::ffff:127.0.0.1", "127.0.0.1"},
		{"NET-8 mapped in hexadecimal and brackets", "[::FFFF:7f00:1]", "127.0.0.1"},
		{"NET-9 one label is a host", "localhost", "localhost"},
		{"NET-9 underscore", "_a.B-c.com", "_a.b-c.com"},
		{"NET-9 hexadecimal-looking name", "a.0xg", "a.0xg"},
		{"NET-9 255 bytes", strings.Repeat("a.", 127) + "a", strings.Repeat("a.", 127) + "a"},
		{"NET-9 A-label", "XN--TDA.de.com", "xn--tda.de.com"},
	} {
		h, err := CanonicalHost(tc.raw)
		if err != nil || h.Name != tc.want {
			t.Errorf("%s: CanonicalHost(%q) = %q, %v; want %q", tc.rule, tc.raw, h.Name, err, tc.want)
		}
		if h.IsLiteral() && h.Addr.String() != h.Name {
			t.Errorf("%s: literal %q has address %v", tc.rule, h.Name, h.Addr)
		}
	}
}

func TestCanonicalHostMalformed(t *testing.T) {
	for rule, raw := range map[string]string{
		"NET-9 empty":                    "",
		"NET-9 only a dot":               ".",
		"NET-9 256 bytes":                strings.Repeat("a.", 127) + "aa",
		"NET-9 percent":                  "a%2eb.com",
		"NET-9 zone":                     "fe80::1%eth0",
		"NET-9 zone in brackets":         "[fe80::1%eth0]",
		"NET-9 NUL":                      "a\x00.com",
		"NET-9 CR":                       "a.com\r",
		"NET-9 LF":                       "a.com\n",
		"NET-9 space":                    " a.com",
		"NET-9 colon":                    "a.com:80",
		"NET-9 star":                     "*.a.com",
		"NET-9 at":                       "u@a.com",
		"NET-9 slash":                    "a.com/",
		"NET-9 not ASCII":                "ü.com",
		"NET-9 not UTF-8":                "a\xff.com",
		"NET-9 open bracket":             "[::1",
		"NET-9 closing bracket":          "::1]",
		"NET-9 brackets round a name":    "[a.com]",
		"NET-9 brackets round IPv4":      "[127.0.0.1]",
		"NET-9 dot after bracket":        "[::1].",
		"NET-9 dot after IPv6":           "::1.",
		"empty label":                    "a..com",
		"leading dot":                    ".a.com",
		"two trailing dots":              "a.com..",
		"five numbers":                   "1.2.3.4.5",
		"part too large":                 "256.0.0.1",
		"last part too large":            "1.2.65536",
		"number too large":               "4294967296",
		"huge number":                    "99999999999999999999999",
		"octal with 8":                   "08",
		"bare 0x":                        "0x",
		"name with a numeric last label": "a.1",
		"name with a hex last label":     "a.0x1",
		"mapped octal part":              "::ffff:010.0.0.1",
		"IPv6 with too many parts":       "1:2:3:4:5:6:7:8:9",
	} {
		h, err := CanonicalHost(raw)
		if !errors.Is(err, ErrMalformedHost) {
			t.Errorf("%s: CanonicalHost(%q) = %+v, %v; want ErrMalformedHost", rule, raw, h, err)
		}
		if h != (Host{}) {
			t.Errorf("%s: a malformed host came with %+v", rule, h)
		}
	}
}

func TestParseDomain(t *testing.T) {
	for _, tc := range []struct {
		rule, entry string
		form        DomainForm
		want        string // the canonical host, with "*." for a wildcard, "*" for any
		port        uint16
	}{
		{"CFG-41 host", "example.com", allowedForm, "example.com", 0},
		{"CFG-41 host and port", "example.com:443", allowedForm, "example.com", 443},
		{"CFG-41 bracketed", "[::1]", allowedForm, "::1", 0},
		{"CFG-41 bracketed and port", "[2001:DB8::1]:443", allowedForm, "2001:db8::1", 443},
		{"CFG-42 highest port", "x.com:65535", allowedForm, "x.com", 65535},
		{"CFG-43 bare IPv6 in a host-only list", "::1", hostOnly, "::1", 0},
		{"CFG-43 bracketed in a host-only list", "[0:0::1]", hostOnly, "::1", 0},
		{"CFG-44 compressed", "[0:0:0:0:0:0:0:1]", allowedForm, "::1", 0},
		{"CFG-44 zone dropped", "[fe80::1%eth0]", allowedForm, "fe80::1", 0},
		{"CFG-44 zone dropped, host-only", "fe80::1%eth0.1", hostOnly, "fe80::1", 0},
		{"CFG-44 mapped", "[::ffff:1.2.3.4]:80", allowedForm, "1.2.3.4", 80},
		{"CFG-44 brackets round a name", "[x.com]:80", allowedForm, "x.com", 80},
		{"CFG-44 brackets round IPv4", "[1.2.3.4]", hostOnly, "1.2.3.4", 0},
		{"CFG-45 localhost", "localhost", allowedForm, "localhost", 0},
		{"CFG-45 localhost with a port", "localhost:80", allowedForm, "localhost", 80},
		{"CFG-45 case", "Example.COM", allowedForm, "example.com", 0},
		{"CFG-46 wildcard", "*.example.com", allowedForm, "*.example.com", 0},
		{"CFG-46 no public-suffix list", "*.co.uk:8443", allowedForm, "*.co.uk", 8443},
		{"CFG-47 any", "*", deniedForm, "*", 0},
		{"CFG-47 any on a port", "*:22", deniedForm, "*", 22},
		{"CFG-49 IDNA", "ü.de.com", deniedForm, "xn--tda.de.com", 0},
		{"CFG-49 IDNA in a wildcard", "*.MÜNCHEN.de", hostOnly, "*.xn--mnchen-3ya.de", 0},
		{"CFG-49 non-transitional", "straße.de", hostOnly, "xn--strae-oqa.de", 0},
		{"CFG-49 ideographic full stop", "日本。jp", hostOnly, "xn--wgv71a.jp", 0},
		{"CFG-49 underscore beside IDNA", "_a.ü.com", hostOnly, "_a.xn--tda.com", 0},
		{"CFG-49 fullwidth digits", "１２７.1", hostOnly, "127.0.0.1", 0},
		{"CFG-49 shorthand", "127.1", deniedForm, "127.0.0.1", 0},
		{"CFG-49 hexadecimal", "0x7f.0.0.0x1:80", deniedForm, "127.0.0.1", 80},
		{"CFG-49 underscore and hyphen", "_x.a--b.com", hostOnly, "_x.a--b.com", 0},
	} {
		d, err := ParseDomain(tc.entry, tc.form)
		if err != nil {
			t.Errorf("%s: ParseDomain(%q): %v", tc.rule, tc.entry, err)
			continue
		}
		got := d.Host.Name
		if d.Wildcard {
			got = "*." + got
		}
		if d.Any {
			got = "*" + got
		}
		if got != tc.want || d.Port != tc.port || d.Text != tc.entry {
			t.Errorf("%s: ParseDomain(%q) = %+v; want %q port %d", tc.rule, tc.entry, d, tc.want, tc.port)
		}
	}
}

func TestParseDomainRefuses(t *testing.T) {
	everywhere := []DomainForm{hostOnly, allowedForm, deniedForm}
	withPorts := []DomainForm{allowedForm, deniedForm}
	for _, tc := range []struct {
		rule  string
		forms []DomainForm
		entry []string
	}{
		{"CFG-41", []DomainForm{hostOnly}, []string{"x.com:443", "[::1]:443", "*.x.com:1", "1.2.3.4:80", "*:22"}},
		{"CFG-42", withPorts, []string{"x.com:", "x.com:0", "x.com:080", "x.com:65536", "x.com:+1", "x.com:1 ", "x.com:a",
			"[::1]:", "[::1]:0", "*:", "*:0"}},
		{"CFG-43", withPorts, []string{"::1", "2001:db8::1:443", "x.com:443:1", "evil.com:443.allowed.com"}},
		{"CFG-44", everywhere, []string{"[::1", "[::1]x", "[::1]]", "::1]", "[]", "[::g]", "[fe80::1%]", "[fe80::1%a b]",
			"[*.x.com]", "[*]", "[x.com", "[foo]"}},
		{"CFG-45", everywhere, []string{"foo", "LOCALHOST", "2130706433", ".x.com", "x.com.", "x.com.:443", "com", "."}},
		{"CFG-46", everywhere, []string{"", "http://x.com", "x.com/", "x.com/a", "*.com", "*.localhost", "*.", "*.x.com.",
			"*.a..b", "a.*.com", "*x.com", "*.*.com", "*..com", "*.x.*", ":", ":443", "x..com"}},
		{"CFG-47", []DomainForm{hostOnly, allowedForm}, []string{"*", "*:443"}},
		{"CFG-49", everywhere, []string{" evil.com", "evil.com ", "user@evil.com", "a#.com", "a?.com", "a%.com", "a\tb.com",
			"a\x00.com", "1.2.3.4.5", "*.1.2.3.4", "*.127.1", "*.1.2.3.4.5", "300.1.1.1", "ü", "ü..com", "＊.x.com",
			"a／b.com", "a\xff.com", "a\ufffd.com", "xn--\u00fc.com", strings.Repeat("a.", 200) + "com"}},
	} {
		for _, form := range tc.forms {
			for _, entry := range tc.entry {
				d, err := ParseDomain(entry, form)
				if !errors.Is(err, ErrInvalidDomain) {
					t.Errorf("%s: ParseDomain(%q, %+v) = %+v, %v; want ErrInvalidDomain", tc.rule, entry, form, d, err)
				}
			}
		}
	}
}

func TestDomainErrorSubstance(t *testing.T) {
	_, err := ParseDomain("*", hostOnly)
	for _, want := range []string{`"*"`, "bracketed IPv6 literal", `"*.com" or "*" are not allowed`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CFG-47: %v does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "65535") {
		t.Errorf("CFG-47: a list without ports speaks of ports: %v", err)
	}
	_, err = ParseDomain("*.com", allowedForm)
	if err == nil || !strings.Contains(err.Error(), `what follows "*." has no dot`) {
		t.Errorf("CFG-46: the reason is about another part than the one at fault: %v", err)
	}
	_, err = ParseDomain("x.com:0\x1b[2J", allowedForm)
	if err == nil || !strings.Contains(err.Error(), "1-65535") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("CFG-47: want the port range and no raw control character: %v", err)
	}
}

func TestDomainMatches(t *testing.T) {
	for _, tc := range []struct {
		rule, entry, host string
		port              uint16
		want              bool
	}{
		{"CFG-50 subdomain", "*.example.com", "a.b.example.com", 80, true},
		{"CFG-50 not itself", "*.example.com", "example.com", 80, false},
		{"CFG-50 not itself, dot and case", "*.example.com", "EXAMPLE.com.", 80, false},
		{"CFG-50 case and dot", "example.com", "EXAMPLE.com.", 80, true},
		{"CFG-50 not a longer label", "*.example.com", "notexample.com", 80, false},
		{"CFG-50 never a literal", "*.example.com", "1.2.3.4", 80, false},
		{"CFG-50 exact is exact", "example.com", "a.example.com", 80, false},
		{"CFG-50 shorthand", "127.1", "127.0.0.1", 80, true},
		{"CFG-50 shorthand asked", "127.0.0.1", "2130706433", 80, true},
		{"CFG-50 mapped", "127.0.0.1", "[::ffff:127.0.0.1]", 80, true},
		{"CFG-50 IDNA", "ü.de.com", "xn--tda.de.com", 80, true},
		{"NET-10 any", "*", "1.2.3.4", 80, true},
		{"NET-10 port", "x.com:443", "x.com", 443, true},
		{"NET-10 other port", "x.com:443", "x.com", 80, false},
		{"NET-10 any on a port", "*:22", "x.com", 22, true},
		{"NET-10 any on another port", "*:22", "x.com", 23, false},
		{"case 10", "[2001:DB8::1]:443", "2001:db8::1", 443, true},
		{"case 10", "[2001:DB8::1]:443", "2001:db8::1", 80, false},
	} {
		d, err := ParseDomain(tc.entry, deniedForm)
		if err != nil {
			t.Fatal(err)
		}
		h, err := CanonicalHost(tc.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Matches(h, tc.port); got != tc.want {
			t.Errorf("%s: %q matches %s:%d = %v", tc.rule, tc.entry, tc.host, tc.port, got)
		}
	}
	if (Domain{}).Matches(Host{}, 0) || (Domain{Wildcard: true}).Matches(Host{Name: "a.b"}, 0) {
		t.Error("the zero Domain matches something")
	}
}

func TestDomainCovers(t *testing.T) {
	for _, tc := range []struct {
		by, other string
		want      bool
	}{
		{"a.com", "a.com", true},
		{"a.com:443", "a.com", true},
		{"A.com", "a.COM", true},
		{"a.com", "x.a.com", false},
		{"*.b.com", "x.b.com", true},
		{"*.b.com", "b.com", false},
		{"*.b.com", "*.b.com", true},
		{"*.b.com", "*.c.b.com", true},
		{"*.c.b.com", "*.b.com", false},
		{"a.b.com", "*.b.com", false},
		{"a.b.com", "*.a.b.com", false},
		{"*.b.com", "*.xb.com", false},
		{"127.1", "127.0.0.1", true},
		{"[::1]:80", "::1", true},
		{"*", "*.b.com", true},
		{"*.b.com", "*", false},
	} {
		by, err := ParseDomain(tc.by, deniedForm)
		if err != nil {
			t.Fatal(err)
		}
		form := hostOnly
		form.Any = true
		other, err := ParseDomain(tc.other, form)
		if err != nil {
			t.Fatal(err)
		}
		if got := by.Covers(other); got != tc.want {
			t.Errorf("CFG-72: %q covers %q = %v", tc.by, tc.other, got)
		}
	}
	if (Domain{}).Covers(Domain{}) {
		t.Error("CFG-72: the zero Domain covers something")
	}
}

func TestParseAddressRange(t *testing.T) {
	for entry, want := range map[string]string{
		"10.0.0.0/8":             "10.0.0.0/8",
		"10.1.2.3/8":             "10.0.0.0/8",
		"10.0.0.1":               "10.0.0.1/32",
		"10.0.0.0/008":           "10.0.0.0/8",
		"0.0.0.0/0":              "0.0.0.0/0",
		"::ffff:10.0.0.0/104":    "10.0.0.0/8",
		"::ffff:10.0.0.1":        "10.0.0.1/32",
		"::ffff:0:0/96":          "0.0.0.0/0",
		"fe80::1%en0":            "fe80::1/128",
		"fe80::1%en0/64":         "fe80::/64",
		"2001:DB8::/32":          "2001:db8::/32",
		"::/0":                   "::/0",
		"fd00:0:0:0:0:0:0:1/128": "fd00::1/128",
	} {
		got, err := ParseAddressRange(entry)
		if err != nil || got.String() != want {
			t.Errorf("CFG-55: ParseAddressRange(%q) = %v, %v; want %s", entry, got, err, want)
		}
	}
	for _, entry := range []string{"", "[::1]", "example.com", "127.1", "010.0.0.1", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/a",
		"10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/0008", " 10.0.0.1", "10.0.0.1 ", "10.0.0.0 /8", "10.0.0.0/8/8", "::1/129",
		"::ffff:10.0.0.0/95", "::ffff:0:0/0", "fe80::1%", "fe80::1%a b", "10.0.0.1%eth0", "2130706433", "0x7f.0.0.1"} {
		got, err := ParseAddressRange(entry)
		if !errors.Is(err, ErrInvalidAddress) {
			t.Errorf("CFG-55: ParseAddressRange(%q) = %v, %v; want ErrInvalidAddress", entry, got, err)
		}
	}
}

func TestErrorsForThePerson(t *testing.T) {
	_, err := CanonicalHost("secret host")
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "malformed host: it ") {
		t.Errorf("NET-75: the error repeats the host, or says nothing: %v", err)
	}
	_, err = ParseDomain(strings.Repeat("ü", 10_000), hostOnly)
	if err == nil || len(err.Error()) > 1500 || !strings.Contains(err.Error(), "(20000 bytes)") {
		t.Errorf("a long entry is not cut: %v", err)
	}
}
