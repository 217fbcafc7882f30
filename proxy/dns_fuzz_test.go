package proxy

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// FuzzDNSAnswer holds what must be true of every packet: no panic; no answer or one that repeats the id, is a response,
// parses, holds no question or the one of the query as spelled, and fits the smallest client.
func FuzzDNSAnswer(f *testing.F) {
	d := testDNS()
	wantAddresses(f, d.names, "bound.test")
	f.Fuzz(func(t *testing.T, msg []byte) {
		before := bytes.Clone(msg)
		out := d.answer([]byte("ab"), msg)
		if !bytes.Equal(before, msg) || !bytes.HasPrefix(out, []byte("ab")) {
			t.Fatal("the query or what was in front of the answer changed")
		}
		raw := out[2:]
		query := len(msg) >= dnsHeaderBytes && msg[2]&0x80 == 0
		if query != (len(raw) > 0) {
			t.Fatalf("%x: answer %x", msg, raw)
		}
		if !query {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(raw); err != nil {
			t.Fatalf("answer %x: %v", raw, err)
		}
		if !bytes.Equal(raw[:2], msg[:2]) || !m.Response || m.Truncated || len(raw) > maxDNSAnswer || len(m.Authorities) != 0 {
			t.Fatalf("answer %x to %x", raw, msg)
		}
		if len(m.Questions) > 1 || len(m.Answers) > len(m.Questions) || len(m.Additionals) > 1 ||
			m.RCode != dnsmessage.RCodeSuccess && len(m.Answers) != 0 {
			t.Fatalf("answer %+v", m)
		}
		end := dnsHeaderBytes
		if len(m.Questions) == 1 {
			end = plainName(raw, dnsHeaderBytes) + dnsQuestionBytes
		}
		if !bytes.HasPrefix(msg[dnsHeaderBytes:], raw[dnsHeaderBytes:end]) {
			t.Fatalf("%x repeats another question than %x", raw, msg)
		}
		for _, r := range m.Answers {
			checkRecord(t, d, m.Questions[0], r)
		}
	})
}

// checkRecord holds that a record answers its question from the table or with loopback.
func checkRecord(t *testing.T, d *DNS, q dnsmessage.Question, r dnsmessage.Resource) {
	t.Helper()
	if r.Header.Name != q.Name || r.Header.Type != q.Type || q.Class != dnsmessage.ClassINET || r.Header.TTL != 5 {
		t.Fatalf("record %+v for question %+v", r, q)
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	var addr netip.Addr
	switch body := r.Body.(type) {
	case *dnsmessage.AResource:
		addr = netip.AddrFrom4(body.A)
	case *dnsmessage.AAAAResource:
		addr = netip.AddrFrom16(body.AAAA)
	case *dnsmessage.PTRResource:
		return
	default:
		t.Fatalf("a record of type %v", r.Header.Type)
	}
	got, ok := d.names.Name(addr)
	if local != addr.IsLoopback() || !local && (!ok || got != name) {
		t.Fatalf("%q has %v, which stands for %q", name, addr, got)
	}
}

func BenchmarkDNSAnswer(b *testing.B) {
	for name, p := range map[string]dnsPacket{
		"A":       queryFor("www.bound.test", dnsmessage.TypeA),
		"AAAA":    queryFor("www.bound.test", dnsmessage.TypeAAAA).opt([]byte{0}, 1232, 0, ""),
		"PTR":     queryFor("1.0.18.198.in-addr.arpa", dnsmessage.TypePTR),
		"refused": queryFor("www.bound.test", dnsmessage.TypeTXT),
	} {
		b.Run(name, func(b *testing.B) {
			d := testDNS()
			wantAddresses(b, d.names, "www.bound.test")
			out, query := make([]byte, 0, maxDNSAnswer), p.bytes()
			b.ReportAllocs()
			for b.Loop() {
				if len(d.answer(out, query)) == 0 {
					b.Fatal("no answer")
				}
			}
		})
	}
}
