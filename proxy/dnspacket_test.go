package proxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// wireName encodes a name label by label, so that a label may hold any byte.
func wireName(labels ...string) []byte {
	var b []byte
	for _, l := range labels {
		b = append(append(b, byte(len(l))), l...)
	}
	return append(b, 0)
}

// splitName is wireName of a name with dots between the labels.
func splitName(name string) []byte {
	if name == "" {
		return wireName()
	}
	return wireName(strings.Split(name, ".")...)
}

// dnsPacket is a query in its raw parts.
type dnsPacket struct {
	id, flags  uint16
	counts     [4]uint16
	name       []byte
	kind       dnsmessage.Type
	class      dnsmessage.Class
	additional []byte
}

// queryFor is an ordinary query: one question, recursion desired.
func queryFor(name string, kind dnsmessage.Type) dnsPacket {
	return dnsPacket{
		id: 0xabcd, flags: dnsRD, counts: [4]uint16{1},
		name: splitName(name), kind: kind, class: dnsmessage.ClassINET,
	}
}

// with returns a changed copy.
func (p dnsPacket) with(change func(*dnsPacket)) dnsPacket {
	change(&p)
	return p
}

// opt adds an OPT record.
func (p dnsPacket) opt(owner []byte, size uint16, ttl uint32, data string) dnsPacket {
	p.counts[3]++
	b := append(bytes.Clone(p.additional), owner...)
	b = binary.BigEndian.AppendUint16(b, uint16(dnsmessage.TypeOPT))
	b = binary.BigEndian.AppendUint16(b, size)
	b = binary.BigEndian.AppendUint32(b, ttl)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	p.additional = append(b, data...)
	return p
}

func (p dnsPacket) bytes() []byte {
	b := binary.BigEndian.AppendUint16(nil, p.id)
	b = binary.BigEndian.AppendUint16(b, p.flags)
	for _, n := range p.counts {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	b = append(b, p.name...)
	b = binary.BigEndian.AppendUint16(b, uint16(p.kind))
	b = binary.BigEndian.AppendUint16(b, uint16(p.class))
	return append(b, p.additional...)
}

// exchangeDNS answers a packet and parses the answer, which must be one.
func exchangeDNS(t testing.TB, d *DNS, p dnsPacket) dnsmessage.Message {
	t.Helper()
	raw := d.answer(nil, p.bytes())
	var m dnsmessage.Message
	if err := m.Unpack(raw); err != nil {
		t.Fatalf("the answer %x does not parse: %v", raw, err)
	}
	if m.ID != p.id || !m.Response || len(raw) > maxDNSAnswer {
		t.Fatalf("answer %x: id %x, response %v", raw, m.ID, m.Response)
	}
	return m
}

// dnsOutcome is an answer in one line: code, flags that are set, records.
func dnsOutcome(m dnsmessage.Message) string {
	s := fmt.Sprint(strings.TrimPrefix(m.RCode.String(), "RCode"))
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"AA", m.Authoritative}, {"TC", m.Truncated}, {"RD", m.RecursionDesired}, {"RA", m.RecursionAvailable},
		{"AD", m.AuthenticData}, {"CD", m.CheckingDisabled},
	} {
		if f.set {
			s += " " + f.name
		}
	}
	for _, r := range m.Answers {
		s += fmt.Sprintf(" %s %d ", r.Header.Name, r.Header.TTL)
		switch body := r.Body.(type) {
		case *dnsmessage.AResource:
			s += netip.AddrFrom4(body.A).String()
		case *dnsmessage.AAAAResource:
			s += netip.AddrFrom16(body.AAAA).String()
		case *dnsmessage.PTRResource:
			s += body.PTR.String()
		default:
			s += fmt.Sprintf("%T", body)
		}
	}
	return s
}

const (
	typeANY  = dnsmessage.TypeALL
	typeNAPT = dnsmessage.Type(35)
	typeNULL = dnsmessage.Type(10)
	typeCAA  = dnsmessage.Type(257)
)
