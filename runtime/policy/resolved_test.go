package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// atonSpelling writes an IPv4 address as inet_aton(3) reads it, in octal (8) or hexadecimal (16).
func atonSpelling(b [4]byte, base int) string {
	if base == 8 {
		return fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3])
	}
	return fmt.Sprintf("0x%x.0X%x.%d", b[0], b[1], int(b[2])<<8|int(b[3]))
}

func wholeNumber(b [4]byte) string {
	return fmt.Sprint(uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))
}

func notOwn(netip.Addr) bool { return false }

// judge answers for a name as the chapter writes it.
func judge(t *testing.T, r NetworkRules, name string, port uint16, addr string, isOwn func(netip.Addr) bool) string {
	t.Helper()
	h, err := config.CanonicalHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return ClassText(mustNetwork(t, r).JudgeAddress(h, port, netip.MustParseAddr(addr), isOwn)...)
}

func TestNET53Classes(t *testing.T) {
	r := NetworkRules{DeniedDomains: []string{"192.0.2.7:443", "[2001:db8::7]", "*:22"}, DeniedResolvedAddresses: []string{"198.51.100.0/24", "2001:db8:5::/48"}}
	for addr, want := range map[string]string{
		"192.0.2.7":            "a deny-listed address",
		"2001:db8::7":          "a deny-listed address",
		"127.0.0.1":            "a loopback address",
		"127.255.255.254":      "a loopback address",
		"::1":                  "a loopback address",
		"0.0.0.0":              "an unspecified address",
		"0.255.255.255":        "an unspecified address",
		"::":                   "an unspecified address",
		"169.254.169.254":      "a link-local address",
		"169.254.0.0":          "a link-local address",
		"fe80::1":              "a link-local address",
		"fe80::1%eth0":         "a link-local address",
		"febf::1":              "a link-local address",
		"224.0.0.1":            "a multicast address",
		"239.255.255.255":      "a multicast address",
		"ff02::1":              "a multicast address",
		"255.255.255.255":      "the broadcast address",
		"100.100.100.200":      "a cloud metadata address",
		"168.63.129.16":        "a cloud metadata address",
		"192.0.0.192":          "a cloud metadata address",
		"fd00:ec2::254":        "a cloud metadata address",
		"fd00:ec2:ffff::1":     "a cloud metadata address",
		"fd20:ce::254":         "a cloud metadata address",
		"fd00:c1::a9fe:a9fe":   "a cloud metadata address",
		"fd00:42::42":          "a cloud metadata address",
		"fd00:a9fe:a9fe::1":    "a cloud metadata address",
		"fd00:100::100:200":    "a cloud metadata address",
		"198.51.100.9":         "a listed address",
		"2001:db8:5::9":        "a listed address",
		"203.0.113.5":          "one of this host's addresses",
		"::ffff:203.0.113.5":   "one of this host's addresses",
		"126.255.255.255":      "",
		"128.0.0.0":            "",
		"1.0.0.0":              "",
		"::2:0:0":              "",
		"169.253.255.255":      "",
		"169.255.0.0":          "",
		"fec0::1":              "",
		"fe7f::1":              "",
		"223.255.255.255":      "",
		"240.0.0.0":            "",
		"255.255.255.254":      "",
		"100.100.100.201":      "",
		"168.63.129.17":        "",
		"fd00:ec3::1":          "",
		"fd20:ce::255":         "",
		"fd00:42::43":          "",
		"10.0.0.1":             "", // RFC 1918, CGNAT and ULA are open unless listed
		"172.16.0.1":           "",
		"192.168.0.1":          "",
		"100.64.0.1":           "",
		"fd12::1":              "",
		"192.0.2.8":            "",
		"2001:db8::8":          "",
		"198.51.101.0":         "",
		"2001:4860:4860::8888": "",
	} {
		own := func(a netip.Addr) bool { return a == netip.MustParseAddr("203.0.113.5") }
		if got := judge(t, r, "a.test", 443, addr, own); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	if got := judge(t, r, "a.test", 444, "192.0.2.7", notOwn); got != "" {
		t.Errorf("NET-53: a deny-listed literal on another port than its own: %q", got)
	}
	if got := judge(t, r, "a.test", 22, "203.0.113.9", notOwn); got != "" {
		t.Errorf("NET-53: *:22 is no literal, got %q", got)
	}
	if got := mustNetwork(t, r).JudgeAddress(config.Host{Name: "a.test"}, 443, netip.Addr{}, notOwn); !slices.Equal(got, []Class{ClassUnparsable}) {
		t.Errorf("NET-53: no address: %v", got)
	}
}

func TestNET52ChapterCases(t *testing.T) {
	own := func(a netip.Addr) bool { return a == netip.MustParseAddr("192.168.7.2") }
	for _, test := range []struct {
		name  string
		rules NetworkRules
		host  string
		port  uint16
		addr  string
		want  string
	}{
		{"case 16", NetworkRules{}, "a.test", 80, "169.254.169.254", "a link-local address"},
		{"case 17 NET-58 allow-listed port", NetworkRules{AllowedDomains: []string{"a.test", "127.0.0.1:3000"}}, "a.test", 3000, "127.0.0.1", ""},
		{"case 17 NET-58 another port", NetworkRules{AllowedDomains: []string{"a.test", "127.0.0.1:3000"}}, "a.test", 3001, "127.0.0.1", "a loopback address"},
		{"case 19 NAT64", NetworkRules{}, "a.test", 80, "64:ff9b::7f00:1", "a loopback address"},
		{"case 19 6to4", NetworkRules{}, "a.test", 80, "2002:7f00:1::", "a loopback address"},
		{"case 19 mapped", NetworkRules{}, "a.test", 80, "::ffff:127.0.0.2", "a loopback address"},
		{"case 19 other NAT64 prefix", NetworkRules{}, "a.test", 80, "64:ff9b:1::7f00:1", ""},
		{"case 20 NET-57", NetworkRules{}, "x.localhost", 80, "10.1.1.1", "a non-loopback address"},
		{"case 20 own", NetworkRules{}, "a.test", 80, "192.168.7.2", "one of this host's addresses"},
		{"case 21 private", NetworkRules{}, "a.test", 80, "10.1.1.1", ""},
		{"case 21 listed", NetworkRules{DeniedResolvedAddresses: []string{"10.0.0.0/8"}}, "a.test", 80, "10.1.1.1", "a listed address"},
		{"case 21 NET-50 literal destination", NetworkRules{DeniedResolvedAddresses: []string{"10.0.0.0/8"}}, "10.1.1.1", 80, "10.1.1.1", ""},
		{"case 21 NET-58 allow-listed literal", NetworkRules{AllowedDomains: []string{"10.1.1.1"}, DeniedResolvedAddresses: []string{"10.0.0.0/8"}}, "a.test", 80, "10.1.1.1", ""},
		{"NET-58 deny wins over allow", NetworkRules{AllowedDomains: []string{"10.1.1.1"}, DeniedDomains: []string{"10.1.1.1:80"}}, "a.test", 80, "10.1.1.1", "a deny-listed address"},
		{"NET-58 own address allow-listed", NetworkRules{AllowedDomains: []string{"192.168.7.2"}}, "a.test", 80, "192.168.7.2", ""},
		{"NET-58 mapped answer", NetworkRules{AllowedDomains: []string{"127.0.0.2"}}, "a.test", 80, "::ffff:127.0.0.2", ""},
		{"NET-50 a literal judged for another address", NetworkRules{}, "10.1.1.1", 80, "127.0.0.1", "a loopback address"},
		{"NET-55 compatible", NetworkRules{}, "a.test", 80, "::7f00:1", "a loopback address"},
		{"NET-55 translated", NetworkRules{}, "a.test", 80, "::ffff:0:a9fe:a9fe", "a link-local address"},
		{"NET-55 carried own", NetworkRules{}, "a.test", 80, "2002:c0a8:702::9", "one of this host's addresses"},
		{"NET-55 carried listed", NetworkRules{DeniedResolvedAddresses: []string{"10.0.0.0/8"}}, "a.test", 80, "64:ff9b::a01:101", "a listed address"},
		{"NET-55 carried deny-listed", NetworkRules{DeniedDomains: []string{"10.1.1.1"}}, "a.test", 80, "64:ff9b::a01:101", "a deny-listed address"},
		{"NET-55 carried form is never an exemption", NetworkRules{AllowedDomains: []string{"127.0.0.1"}}, "a.test", 80, "64:ff9b::7f00:1", "a loopback address"},
		{"NET-55 the address itself is", NetworkRules{AllowedDomains: []string{"[64:ff9b::7f00:1]"}}, "a.test", 80, "64:ff9b::7f00:1", ""},
		{"NET-55 but not from a carried deny", NetworkRules{AllowedDomains: []string{"[64:ff9b::a01:101]"}, DeniedDomains: []string{"10.1.1.1"}}, "a.test", 80, "64:ff9b::a01:101", "a deny-listed address"},
		{"NET-56 mapped range", NetworkRules{DeniedResolvedAddresses: []string{"::ffff:10.0.0.0/104"}}, "a.test", 80, "10.9.9.9", "a listed address"},
		{"NET-56 everything", NetworkRules{DeniedResolvedAddresses: []string{"0.0.0.0/0"}}, "a.test", 80, "8.8.8.8", "a listed address"},
		{"NET-57 localhost to loopback", NetworkRules{}, "localhost", 80, "127.0.0.1", ""},
		{"NET-57 localhost to ::1", NetworkRules{}, "LOCALHOST.", 80, "::1", ""},
		{"NET-57 deep name to loopback", NetworkRules{}, "a.b.localhost", 80, "127.9.9.9", ""},
		{"NET-57 listed does not override", NetworkRules{DeniedResolvedAddresses: []string{"127.0.0.0/8", "::/0"}}, "localhost", 80, "127.0.0.1", ""},
		{"NET-57 a deny entry does", NetworkRules{DeniedDomains: []string{"127.0.0.1:80"}}, "localhost", 80, "127.0.0.1", "a deny-listed address"},
		{"NET-57 a deny entry on its port only", NetworkRules{DeniedDomains: []string{"127.0.0.1:80"}}, "localhost", 81, "127.0.0.1", ""},
		{"NET-57 allow-listed literal", NetworkRules{AllowedDomains: []string{"10.1.1.1"}}, "localhost", 80, "10.1.1.1", ""},
		{"NET-57 all classes are named", NetworkRules{DeniedResolvedAddresses: []string{"192.168.0.0/16"}}, "localhost", 80, "192.168.7.2", "a listed address / one of this host's addresses / a non-loopback address"},
		{"NET-57 carried loopback is none", NetworkRules{}, "localhost", 80, "64:ff9b::7f00:1", "a non-loopback address"},
		{"NET-57 a name that only ends alike", NetworkRules{}, "notlocalhost", 80, "127.0.0.1", "a loopback address"},
		{"NET-57 localhost in front", NetworkRules{}, "localhost.a.test", 80, "127.0.0.1", "a loopback address"},
		{"every class of one address", NetworkRules{DeniedDomains: []string{"169.254.1.1"}, DeniedResolvedAddresses: []string{"169.254.0.0/16"}}, "a.test", 80, "169.254.1.1", "a deny-listed address / a link-local address / a listed address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := judge(t, test.rules, test.host, test.port, test.addr, own); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNET52Case18EitherOrder(t *testing.T) {
	n := mustNetwork(t, NetworkRules{DeniedDomains: []string{"10.9.8.7"}})
	h := config.Host{Name: "a.test"}
	one := n.JudgeAddress(h, 80, netip.MustParseAddr("127.0.0.2"), notOwn)
	two := n.JudgeAddress(h, 80, netip.MustParseAddr("10.9.8.7"), notOwn)
	for _, classes := range [][]Class{slices.Concat(one, two), slices.Concat(two, one), slices.Concat(one, two, one)} {
		if got, want := ClassText(classes...), "a deny-listed address / a loopback address"; got != want {
			t.Errorf("ClassText(%v) = %q, want %q", classes, got, want)
		}
	}
}

func TestOwnAddressesUnknownFailClosed(t *testing.T) {
	n := mustNetwork(t, NetworkRules{})
	h := config.Host{Name: "a.test"}
	if got := n.JudgeAddress(h, 80, netip.MustParseAddr("203.0.113.5"), nil); !slices.Equal(got, []Class{ClassOwn}) {
		t.Errorf("nil isOwn: %v", got)
	}
	asked := func(a netip.Addr) bool {
		if a.Zone() != "" || a.Is4In6() || a.IsLoopback() {
			t.Errorf("isOwn was asked about %v", a)
		}
		return true
	}
	if got := ClassText(n.JudgeAddress(h, 80, netip.MustParseAddr("127.0.0.1"), asked)...); got != "a loopback address" {
		t.Errorf("loopback is named twice: %q", got)
	}
	n.JudgeAddress(h, 80, netip.MustParseAddr("fe80::1%eth0"), asked)
	n.JudgeAddress(h, 80, netip.MustParseAddr("::ffff:10.0.0.1"), asked)
}

func TestClassText(t *testing.T) {
	if got := ClassText(); got != "" {
		t.Errorf("no class: %q", got)
	}
	if got, want := ClassText(0, 200, ClassUnparsable), "an unparsable address"; got != want {
		t.Errorf("values that are no class: %q, want %q", got, want)
	}
	var all []Class
	for c := ClassUnparsable; c >= ClassDenyListed; c-- {
		all = append(all, c)
	}
	const want = "a deny-listed address / a loopback address / an unspecified address / a link-local address / " +
		"a multicast address / the broadcast address / a cloud metadata address / a listed address / " +
		"one of this host's addresses / a non-loopback address / an unparsable address"
	if got := ClassText(all...); got != want {
		t.Errorf("VIO-12: got %q", got)
	}
}

// FuzzJudgeAddress: what one spelling of an address is refused for, an IPv6 form that carries it is refused for as well,
// and an address in a listed range never passes without an exemption.
func FuzzJudgeAddress(f *testing.F) {
	for _, seed := range []string{"\x7f\x00\x00\x01", "\xa9\xfe\xa9\xfe", "\x00\x00\x00\x01", "\x0a\x01\x01\x01", "\xff\xff\xff\xff", "\xe0\x00\x00\x01"} {
		f.Add([]byte(seed), uint16(80))
	}
	f.Fuzz(func(t *testing.T, b []byte, port uint16) {
		if len(b) < 4 {
			return
		}
		four := [4]byte(b[:4])
		h := config.Host{Name: "a.test"}
		n := mustNetwork(t, NetworkRules{DeniedDomains: []string{"10.1.1.1:80"}, DeniedResolvedAddresses: []string{"192.168.0.0/16"}})
		plain := n.JudgeAddress(h, port, netip.AddrFrom4(four), notOwn)
		for _, form := range [][16]byte{
			{10: 0xff, 11: 0xff, 12: four[0], 13: four[1], 14: four[2], 15: four[3]},
			{12: four[0], 13: four[1], 14: four[2], 15: four[3]},
			{8: 0xff, 9: 0xff, 12: four[0], 13: four[1], 14: four[2], 15: four[3]},
			{1: 0x64, 2: 0xff, 3: 0x9b, 12: four[0], 13: four[1], 14: four[2], 15: four[3]},
			{0: 0x20, 1: 0x02, 2: four[0], 3: four[1], 4: four[2], 5: four[3], 15: 9},
		} {
			got := n.JudgeAddress(h, port, netip.AddrFrom16(form), notOwn)
			if len(plain) > 0 && len(got) == 0 {
				t.Errorf("%v is refused for %v, %v passes", netip.AddrFrom4(four), plain, netip.AddrFrom16(form))
			}
		}
		everything := mustNetwork(t, NetworkRules{DeniedResolvedAddresses: []string{"0.0.0.0/0", "::/0"}})
		if got := everything.JudgeAddress(h, port, netip.AddrFrom4(four), notOwn); !slices.Contains(got, ClassListed) || !slices.IsSorted(got) {
			t.Errorf("%v: %v", netip.AddrFrom4(four), got)
		}
	})
}
