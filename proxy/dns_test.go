package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// testDNS is a stub with few names. Nothing serves it.
func testDNS() *DNS {
	n := smallNames(100, 200)
	return NewDNS(n, nil)
}

func TestNET3_DNSAnswers(t *testing.T) {
	d := testDNS()
	wantAddresses(t, d.names, "bound.test") // 198.18.0.1
	long := strings.Repeat("a", 63)
	longest := strings.Join([]string{long, long, long, long[:61]}, ".") // 255 bytes in all
	for _, tc := range []struct {
		what string
		name string
		kind dnsmessage.Type
		want string
	}{
		{"A", "bound.test", dnsmessage.TypeA, "Success RD RA bound.test. 5 198.18.0.1"},
		{"AAAA", "bound.test", dnsmessage.TypeAAAA, "Success RD RA bound.test. 5 fd01:203:405:607::1"},
		{"0x20 case is kept", "BoUnD.TeSt", dnsmessage.TypeA, "Success RD RA BoUnD.TeSt. 5 198.18.0.1"},
		{"a new name", "new.test", dnsmessage.TypeA, "Success RD RA new.test. 5 198.18.0.2"},
		{"a single label", "db", dnsmessage.TypeAAAA, "Success RD RA db. 5 fd01:203:405:607::3"},
		{"underscore", "_x._y.test", dnsmessage.TypeA, "Success RD RA _x._y.test. 5 198.18.0.4"},
		{"the longest name", longest, dnsmessage.TypeA, "Success RD RA " + longest + ". 5 198.18.0.5"},
		{"HTTPS", "bound.test", dnsmessage.TypeHTTPS, "Success RD RA"},
		{"SVCB", "_dns.bound.test", dnsmessage.TypeSVCB, "Success RD RA"},

		{"RFC 6761 localhost", "localhost", dnsmessage.TypeA, "Success RD RA localhost. 5 127.0.0.1"},
		{"RFC 6761 localhost", "LocalHost", dnsmessage.TypeAAAA, "Success RD RA LocalHost. 5 ::1"},
		{"RFC 6761 below it", "a.b.localhost", dnsmessage.TypeA, "Success RD RA a.b.localhost. 5 127.0.0.1"},
		{"RFC 6761 HTTPS", "localhost", dnsmessage.TypeHTTPS, "Success RD RA"},
		{"NET-9 below localhost", "a b.localhost", dnsmessage.TypeA, "NameError RD RA"},
		{"not below it", "notlocalhost", dnsmessage.TypeA, "Success RD RA notlocalhost. 5 198.18.0.7"},

		{"PTR", "1.0.18.198.in-addr.arpa", dnsmessage.TypePTR, "Success RD RA 1.0.18.198.in-addr.arpa. 5 bound.test."},
		{"PTR of the longest", "5.0.18.198.IN-ADDR.ARPA", dnsmessage.TypePTR,
			"Success RD RA 5.0.18.198.IN-ADDR.ARPA. 5 " + longest + "."},
		{"PTR IPv6", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.7.0.6.0.5.0.4.0.3.0.2.0.1.0.d.F.ip6.arpa", dnsmessage.TypePTR,
			"Success RD RA 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.7.0.6.0.5.0.4.0.3.0.2.0.1.0.d.F.ip6.arpa. 5 bound.test."},
		{"PTR loopback", "1.0.0.127.in-addr.arpa", dnsmessage.TypePTR,
			"Success RD RA 1.0.0.127.in-addr.arpa. 5 localhost."},
		{"PTR 127/8", "9.8.7.127.in-addr.arpa", dnsmessage.TypePTR,
			"Success RD RA 9.8.7.127.in-addr.arpa. 5 localhost."},
		{"PTR ::1", "1" + strings.Repeat(".0", 31) + ".ip6.arpa", dnsmessage.TypePTR,
			"Success RD RA 1" + strings.Repeat(".0", 31) + ".ip6.arpa. 5 localhost."},
		{"PTR not bound", "99.0.18.198.in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR elsewhere", "8.8.8.8.in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR three numbers", "0.18.198.in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR five numbers", "1.1.0.18.198.in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR leading zero", "01.0.18.198.in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR 256", "256.0.18.198.in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR short IPv6", "1.0.0.ip6.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR no digit", "g" + strings.Repeat(".0", 31) + ".ip6.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR of a name", "bound.test", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR of the tree", "in-addr.arpa", dnsmessage.TypePTR, "NameError RD RA"},
		{"PTR of the root", "", dnsmessage.TypePTR, "NameError RD RA"},

		{"NET-9 the root", "", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-9 space", "a b.test", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-9 NUL", "evil.test\x00.good.test", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-9 CR LF", "a\r\nb.test", dnsmessage.TypeAAAA, "NameError RD RA"},
		{"NET-9 percent", "a%b.test", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-9 star", "*.test", dnsmessage.TypeHTTPS, "NameError RD RA"},
		{"NET-9 UTF-8", "\xc3\xa9.test", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-9 numeric top", "a.123", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-8 a literal", "1.2.3.4", dnsmessage.TypeA, "NameError RD RA"},
		{"NET-8 inet_aton", "0x7f.1", dnsmessage.TypeA, "NameError RD RA"},

		{"TXT", "bound.test", dnsmessage.TypeTXT, "Refused RD RA"},
		{"ANY", "bound.test", typeANY, "Refused RD RA"},
		{"MX", "bound.test", dnsmessage.TypeMX, "Refused RD RA"},
		{"SRV", "_x._tcp.bound.test", dnsmessage.TypeSRV, "Refused RD RA"},
		{"NS", "", dnsmessage.TypeNS, "Refused RD RA"},
		{"CNAME", "bound.test", dnsmessage.TypeCNAME, "Refused RD RA"},
		{"NULL", "bound.test", typeNULL, "Refused RD RA"},
		{"NAPTR", "bound.test", typeNAPT, "Refused RD RA"},
		{"CAA", "bound.test", typeCAA, "Refused RD RA"},
		{"AXFR", "bound.test", dnsmessage.TypeAXFR, "Refused RD RA"},
		{"OPT as a question", "", dnsmessage.TypeOPT, "Refused RD RA"},
		{"type 0", "bound.test", 0, "Refused RD RA"},
	} {
		p := queryFor(tc.name, tc.kind)
		m := exchangeDNS(t, d, p)
		if got := dnsOutcome(m); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.what, got, tc.want)
		}
		raw := d.answer(nil, p.bytes())
		if q := p.bytes()[dnsHeaderBytes:]; !bytes.HasPrefix(raw[dnsHeaderBytes:], q) {
			t.Errorf("%s: the question was not repeated as spelled", tc.what)
		}
	}
}

func TestDNSStrictness(t *testing.T) {
	d := testDNS()
	good := queryFor("a.test", dnsmessage.TypeA)
	root := []byte{0}
	for _, tc := range []struct {
		what      string
		p         dnsPacket
		want      string
		questions int
	}{
		{"plain", good, "Success RD RA a.test. 5 198.18.0.1", 1},
		{"no recursion desired", good.with(func(p *dnsPacket) { p.flags = 0 }), "Success a.test. 5 198.18.0.1", 1},
		{"RFC 4035 CD is repeated, AD is not", good.with(func(p *dnsPacket) { p.flags |= dnsCD | 1<<5 }),
			"Success RD RA CD a.test. 5 198.18.0.1", 1},
		{"other flags are not repeated", good.with(func(p *dnsPacket) { p.flags |= 1<<10 | 1<<9 | 1<<7 | 1<<6 }),
			"Success RD RA a.test. 5 198.18.0.1", 1},
		{"a code in a query is nothing", good.with(func(p *dnsPacket) { p.flags |= 5 }), "Success RD RA a.test. 5 198.18.0.1", 1},
		{"bytes after the message", good.with(func(p *dnsPacket) { p.additional = []byte("tail") }),
			"Success RD RA a.test. 5 198.18.0.1", 1},

		{"RFC 1035 opcode IQUERY", good.with(func(p *dnsPacket) { p.flags |= 1 << 11 }), "NotImplemented RD RA", 0},
		{"opcode STATUS", good.with(func(p *dnsPacket) { p.flags |= 2 << 11 }), "NotImplemented RD RA", 0},
		{"opcode NOTIFY", good.with(func(p *dnsPacket) { p.flags |= 4 << 11 }), "NotImplemented RD RA", 0},
		{"opcode UPDATE", good.with(func(p *dnsPacket) { p.flags |= 5 << 11 }), "NotImplemented RD RA", 0},
		{"opcode 15", good.with(func(p *dnsPacket) { p.flags |= 15 << 11 }), "NotImplemented RD RA", 0},

		{"RFC 9619 no question", good.with(func(p *dnsPacket) { p.counts[0] = 0 }), "FormatError RD RA", 0},
		{"RFC 9619 two questions", good.with(func(p *dnsPacket) {
			p.counts[0], p.additional = 2, append(splitName("b.test"), 0, 1, 0, 1)
		}), "FormatError RD RA", 0},
		{"65,535 questions", good.with(func(p *dnsPacket) { p.counts[0] = 65535 }), "FormatError RD RA", 0},
		{"an answer in a query", good.with(func(p *dnsPacket) { p.counts[1] = 1 }), "FormatError RD RA", 0},
		{"an authority in a query", good.with(func(p *dnsPacket) { p.counts[2] = 1 }), "FormatError RD RA", 0},
		{"an additional record that is not there", good.with(func(p *dnsPacket) { p.counts[3] = 1 }), "FormatError RD RA", 1},
		{"a name that does not end", good.with(func(p *dnsPacket) { p.name = []byte{63} }), "FormatError RD RA", 0},
		{"a pointer to itself", good.with(func(p *dnsPacket) { p.name = []byte{0xc0, 12} }), "FormatError RD RA", 0},
		{"a pointer onwards", good.with(func(p *dnsPacket) {
			p.name, p.additional = []byte{0xc0, 18}, splitName("a.test")
		}), "FormatError RD RA", 0},
		{"a pointer after a label", good.with(func(p *dnsPacket) {
			p.name, p.additional = []byte{1, 'x', 0xc0, 20}, splitName("a.test")
		}), "FormatError RD RA", 0},
		{"a reserved label type", good.with(func(p *dnsPacket) { p.name = []byte{0x41, 0} }), "FormatError RD RA", 0},
		{"a dot within a label", good.with(func(p *dnsPacket) { p.name = wireName("a.test") }), "FormatError RD RA", 0},
		{"a name of 256 bytes", good.with(func(p *dnsPacket) {
			l := strings.Repeat("a", 63)
			p.name = wireName(l, l, l, l[:62])
		}), "FormatError RD RA", 0},
		{"a query of more than 1232 bytes", good.with(func(p *dnsPacket) { p.additional = make([]byte, 1232) }),
			"FormatError RD RA", 0},

		{"class CHAOS", good.with(func(p *dnsPacket) { p.class = dnsmessage.ClassCHAOS }), "Refused RD RA", 1},
		{"class ANY", good.with(func(p *dnsPacket) { p.class = dnsmessage.ClassANY }), "Refused RD RA", 1},
		{"class 0", good.with(func(p *dnsPacket) { p.class = 0 }), "Refused RD RA", 1},

		{"RFC 6891 two OPT records", good.opt(root, 1232, 0, "").opt(root, 1232, 0, ""), "FormatError RD RA", 1},
		{"RFC 6891 an OPT record with an owner", good.opt(splitName("x"), 1232, 0, ""), "FormatError RD RA", 1},
		{"an OPT record that is cut", good.opt(root, 1232, 0, "abcd").with(func(p *dnsPacket) {
			p.additional = p.additional[:len(p.additional)-1]
		}), "FormatError RD RA", 1},
	} {
		m := exchangeDNS(t, d, tc.p)
		if got := dnsOutcome(m); got != tc.want || len(m.Questions) != tc.questions {
			t.Errorf("%s:\n got %s, %d questions\nwant %s, %d", tc.what, got, len(m.Questions), tc.want, tc.questions)
		}
	}
}

func TestDNSEDNS(t *testing.T) {
	d := testDNS()
	root := []byte{0}
	cookie := "\x00\x0a\x00\x0812345678"
	for _, tc := range []struct {
		what string
		p    dnsPacket
		want dnsmessage.RCode // extended
		do   bool
		data bool
	}{
		{"RFC 6891", queryFor("a.test", dnsmessage.TypeA).opt(root, 1232, 0, ""), 0, false, true},
		{"a size below 512 counts as 512", queryFor("a.test", dnsmessage.TypeA).opt(root, 0, 0, ""), 0, false, true},
		{"RFC 3225 DO", queryFor("a.test", dnsmessage.TypeA).opt(root, 65535, optDO, ""), 0, true, true},
		{"RFC 7873 a cookie is ignored", queryFor("a.test", dnsmessage.TypeA).opt(root, 512, 0, cookie), 0, false, true},
		{"RFC 6891 version 1", queryFor("a.test", dnsmessage.TypeA).opt(root, 512, 1<<16|optDO, ""), 16, true, false},
		{"version 255", queryFor("a.test", dnsmessage.TypeTXT).opt(root, 512, 255<<16, ""), 16, false, false},
		{"refused", queryFor("a.test", dnsmessage.TypeTXT).opt(root, 512, 0, ""), dnsmessage.RCodeRefused, false, false},
		{"no such name", queryFor("a b", dnsmessage.TypeA).opt(root, 512, 0, ""), dnsmessage.RCodeNameError, false, false},
	} {
		m := exchangeDNS(t, d, tc.p)
		if len(m.Additionals) != 1 {
			t.Errorf("%s: %d additional records", tc.what, len(m.Additionals))
			continue
		}
		h := m.Additionals[0].Header
		if h.Type != dnsmessage.TypeOPT || h.Class != maxDNSQuery || h.Name.String() != "." ||
			h.ExtendedRCode(m.RCode) != tc.want || h.DNSSECAllowed() != tc.do || len(m.Answers) == 1 != tc.data {
			t.Errorf("%s: %s, OPT %+v", tc.what, dnsOutcome(m), h)
		}
	}
	if m := exchangeDNS(t, d, queryFor("a.test", dnsmessage.TypeA)); len(m.Additionals) != 0 {
		t.Error("an OPT record for a client that sent none")
	}
}

func TestDNSIgnoresWhatIsNoQuery(t *testing.T) {
	d := testDNS()
	query := queryFor("a.test", dnsmessage.TypeA).bytes()
	for n := range dnsHeaderBytes {
		if got := d.answer(nil, query[:n]); len(got) != 0 {
			t.Errorf("%d bytes were answered with %x", n, got)
		}
	}
	if got := d.answer(nil, queryFor("a.test", dnsmessage.TypeA).with(func(p *dnsPacket) { p.flags |= dnsQR }).bytes()); len(got) != 0 {
		t.Errorf("a response was answered with %x", got)
	}
	for n := dnsHeaderBytes; n < len(query); n++ {
		m := exchangeDNS(t, d, dnsPacket{id: 0xabcd, name: query[dnsHeaderBytes:n]}.with(func(p *dnsPacket) { p.flags = dnsRD }))
		if m.RCode != dnsmessage.RCodeFormatError {
			t.Errorf("a query cut after %d bytes: %v", n, m.RCode)
		}
	}
}

func TestNET57_DNSLocalHook(t *testing.T) {
	d := testDNS()
	var asked []string
	d.Local = func(name string) bool {
		asked = append(asked, name)
		return name != "allowed.localhost"
	}
	for name, want := range map[string]string{
		"allowed.localhost": "198.18.0.1", "Allowed.LocalHost": "198.18.0.1", "other.localhost": "127.0.0.1",
		"x.allowed.localhost": "127.0.0.1", "localhost": "127.0.0.1",
	} {
		if got := dnsOutcome(exchangeDNS(t, d, queryFor(name, dnsmessage.TypeA))); got != "Success RD RA "+name+". 5 "+want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if len(asked) != 4 {
		t.Errorf("Local was asked for %q", asked)
	}
	// A change of the policy counts at once, bound or not.
	d.Local = func(string) bool { return true }
	if got := dnsOutcome(exchangeDNS(t, d, queryFor("allowed.localhost", dnsmessage.TypeA))); !strings.HasSuffix(got, "127.0.0.1") {
		t.Errorf("after a change: %s", got)
	}
}

func TestDNSFullTable(t *testing.T) {
	n := smallNames(1, 1)
	var log bytes.Buffer
	d := NewDNS(n, testLogger(&log))
	a, _ := wantAddresses(t, n, "a.test")
	defer n.Hold(a)()
	for _, tc := range []struct{ name, want string }{
		{"a.test", "Success RD RA a.test. 5 198.18.0.1"},
		{"b.test", "ServerFailure RD RA"},
		{"c.test", "ServerFailure RD RA"},
		{"a.test", "Success RD RA a.test. 5 198.18.0.1"},
		{"localhost", "Success RD RA localhost. 5 127.0.0.1"},
	} {
		if got := dnsOutcome(exchangeDNS(t, d, queryFor(tc.name, dnsmessage.TypeA))); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
	if strings.Count(log.String(), "hold more names than are kept") != 1 {
		t.Errorf("log: %s", log.String())
	}
}

func TestDNSPointerToWhatDNSCannotCarry(t *testing.T) {
	d := testDNS()
	for i, name := range []string{strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 127) + "b"} {
		wantAddresses(t, d.names, name)
		m := exchangeDNS(t, d, queryFor(fmt.Sprintf("%d.0.18.198.in-addr.arpa", i+1), dnsmessage.TypePTR))
		if m.RCode != dnsmessage.RCodeNameError || len(m.Answers) != 0 {
			t.Errorf("%q: %s", name, dnsOutcome(m))
		}
	}
}

func TestDNSAnswerDoesNotAllocate(t *testing.T) {
	d := testDNS()
	out := make([]byte, 0, maxDNSAnswer)
	for name, p := range map[string]dnsPacket{
		"A":         queryFor("Bound.test", dnsmessage.TypeA).opt([]byte{0}, 1232, 0, ""),
		"AAAA":      queryFor("bound.test", dnsmessage.TypeAAAA),
		"HTTPS":     queryFor("bound.test", dnsmessage.TypeHTTPS),
		"refused":   queryFor("x.test", dnsmessage.TypeTXT),
		"localhost": queryFor("localhost", dnsmessage.TypeA),
		"malformed": {counts: [4]uint16{2}},
	} {
		query := p.bytes()
		d.answer(out, query)
		if got := testing.AllocsPerRun(100, func() { d.answer(out, query) }); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
