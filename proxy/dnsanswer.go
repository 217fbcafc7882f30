package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/srt-sandbox/srt/runtime/config"
)

const (
	// maxDNSQuery is the longest query that is read, over UDP and TCP, and what an OPT record of an answer advertises
	// (RFC 6891 6.2.3). A name, an OPT record with a cookie and padding do not come near it.
	maxDNSQuery = 1232

	// maxDNSAnswer is what every client takes (RFC 1035 2.3.4). The longest answer, a PTR record, has fewer than 400
	// bytes, so no answer is ever cut and the size that a client advertises need not be looked at.
	maxDNSAnswer = 512

	dnsHeaderBytes   = 12
	dnsQuestionBytes = 4 // type and class, after the name
)

// Bits of the second 16 of a header (RFC 1035 4.1.1, RFC 4035 3.2).
const (
	dnsQR     = 1 << 15
	dnsOpcode = 0xf << 11
	dnsRD     = 1 << 8
	dnsRA     = 1 << 7
	dnsCD     = 1 << 4
)

// Bits of the TTL of an OPT record (RFC 6891 6.1.3).
const (
	optVersion = 0xff << 16
	optDO      = 1 << 15
)

// rcodeBadVersion is an EDNS version that is not known (RFC 6891 9); its upper bits go into the OPT record.
const rcodeBadVersion dnsmessage.RCode = 16

// dnsQuery is what a query says, as far as it was understood.
type dnsQuery struct {
	id    uint16
	flags uint16 // those that an answer repeats

	question []byte          // as it came, in the caller's buffer; nil unless there is exactly one
	name     dnsmessage.Name // of the question, in lower case
	kind     dnsmessage.Type

	edns   bool
	wantDO bool // DNSSEC OK is repeated (RFC 3225 3)
}

// dnsReply is the outcome of a query: with data one record of the type asked for.
type dnsReply struct {
	rcode dnsmessage.RCode
	data  [256]byte
	size  int
}

// answer appends the answer to a query to out and returns it; out as it was if the packet deserves none: something too
// short to have an id, or a response, which nobody must answer (two servers would never stop). It never panics, never
// makes out longer than maxDNSAnswer, and allocates only for a name that is asked for the first time.
func (d *DNS) answer(out, msg []byte) []byte {
	if len(msg) < dnsHeaderBytes || binary.BigEndian.Uint16(msg[2:])&dnsQR != 0 {
		return out
	}
	var q dnsQuery
	var r dnsReply
	if r.rcode = q.parse(msg); r.rcode == dnsmessage.RCodeSuccess {
		d.resolve(&q, &r)
	}
	return q.appendReply(out, &r)
}

// parse reads a query strictly: one question of class IN, no records but additional ones, at most one OPT of version 0. The
// result is the code that a query which is not so is answered with. Bytes after the last record are not looked at.
func (q *dnsQuery) parse(msg []byte) dnsmessage.RCode {
	flags := binary.BigEndian.Uint16(msg[2:])
	q.id = binary.BigEndian.Uint16(msg)
	q.flags = flags & (dnsOpcode | dnsRD | dnsCD)
	if flags&dnsOpcode != 0 {
		return dnsmessage.RCodeNotImplemented // RFC 1035 4.1.1, RFC 3425 for IQUERY
	}
	questions, records := binary.BigEndian.Uint16(msg[4:]), binary.BigEndian.Uint32(msg[6:])
	var p dnsmessage.Parser
	if _, err := p.Start(msg); err != nil || questions != 1 || records != 0 || len(msg) > maxDNSQuery {
		return dnsmessage.RCodeFormatError // RFC 9619 4 for the number of questions
	}
	question, err := p.Question()
	if err != nil {
		return dnsmessage.RCodeFormatError
	}
	end := plainName(msg, dnsHeaderBytes)
	if end < 0 {
		return dnsmessage.RCodeFormatError
	}
	q.question, q.name, q.kind = msg[dnsHeaderBytes:end+dnsQuestionBytes], question.Name, question.Type
	lower(q.name.Data[:q.name.Length])
	if rcode := q.parseAdditional(&p); rcode != dnsmessage.RCodeSuccess {
		return rcode
	}
	if question.Class != dnsmessage.ClassINET {
		return dnsmessage.RCodeRefused // CHAOS asks who the server is
	}
	return dnsmessage.RCodeSuccess
}

// parseAdditional looks for the OPT record (RFC 6891 6.1.1) and passes over others, such as a signature that no key here
// could check.
func (q *dnsQuery) parseAdditional(p *dnsmessage.Parser) dnsmessage.RCode {
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return dnsmessage.RCodeFormatError
	}
	rcode := dnsmessage.RCodeSuccess
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return rcode
		}
		if err != nil || p.SkipAdditional() != nil {
			return dnsmessage.RCodeFormatError
		}
		if h.Type != dnsmessage.TypeOPT {
			continue
		}
		if q.edns || h.Name.Length != 1 {
			return dnsmessage.RCodeFormatError // a second one, or one that is not the root's
		}
		q.edns, q.wantDO = true, h.TTL&optDO != 0
		if h.TTL&optVersion != 0 {
			rcode = rcodeBadVersion
		}
	}
}

// plainName returns the offset after the name at an offset of a message that was parsed, -1 if the name is compressed: in
// the question of a query there is nothing that a pointer could point back to (RFC 1035 4.1.4).
func plainName(msg []byte, off int) int {
	for msg[off] != 0 {
		if msg[off] > 63 {
			return -1
		}
		off += 1 + int(msg[off])
	}
	return off + 1
}

// lower makes ASCII letters small: names are compared without case (RFC 4343).
func lower(name []byte) {
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		}
	}
}

// appendReply packs an answer. The question is repeated byte for byte: its case may be the client's proof that the answer
// is one (0x20 encoding), and RFC 1035 4.1.2 has it so. The owner of the record is a pointer to it.
func (q *dnsQuery) appendReply(out []byte, r *dnsReply) []byte {
	flags := q.flags | dnsQR | uint16(r.rcode)&0xf // #nosec G115 -- a code has 12 bits
	if flags&dnsRD != 0 {
		flags |= dnsRA // without it some stubs take an empty answer for a lame server's
	}
	out = binary.BigEndian.AppendUint16(out, q.id)
	out = binary.BigEndian.AppendUint16(out, flags)
	for _, present := range [4]bool{q.question != nil, r.size > 0, false, q.edns} {
		count := byte(0)
		if present {
			count = 1
		}
		out = append(out, 0, count)
	}
	out = append(out, q.question...)
	if r.size > 0 {
		out = append(out, 0xc0, dnsHeaderBytes)
		out = binary.BigEndian.AppendUint16(out, uint16(q.kind))
		out = binary.BigEndian.AppendUint16(out, uint16(dnsmessage.ClassINET))
		out = binary.BigEndian.AppendUint32(out, uint32(nameTTL.Seconds()))
		out = binary.BigEndian.AppendUint16(out, uint16(r.size)) // #nosec G115 -- at most len(r.data)
		out = append(out, r.data[:r.size]...)
	}
	if q.edns {
		ttl := uint32(r.rcode) >> 4 << 24
		if q.wantDO {
			ttl |= optDO
		}
		out = append(out, 0)
		out = binary.BigEndian.AppendUint16(out, uint16(dnsmessage.TypeOPT))
		out = binary.BigEndian.AppendUint16(out, maxDNSQuery)
		out = binary.BigEndian.AppendUint32(out, ttl)
		out = append(out, 0, 0)
	}
	return out
}

// resolve decides what a question is answered with. Nothing but the table of names is asked: no query leaves srt.
//
// A refused type is what musl waits five seconds for, which takes REFUSED for no answer; but it asks for none of these to
// resolve a name. What it does ask for is never refused: a name that is none does not exist (NXDOMAIN), which glibc, musl,
// c-ares and Go all believe at once, while REFUSED and SERVFAIL make each of them ask again.
func (d *DNS) resolve(q *dnsQuery, r *dnsReply) {
	switch q.kind {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeHTTPS, dnsmessage.TypeSVCB:
		d.resolveHost(q, r)
	case dnsmessage.TypePTR:
		d.resolvePointer(q, r)
	default:
		r.rcode = dnsmessage.RCodeRefused
	}
}

// resolveHost answers with the address of a name, bound to it on the first question. HTTPS and SVCB have no record, which
// lets clients go on with A and AAAA at once (RFC 9460 3).
func (d *DNS) resolveHost(q *dnsQuery, r *dnsReply) {
	host := q.name.Data[:q.name.Length-1] // without the final dot; the root is empty
	v4, v6, rcode := d.addresses(host)
	r.rcode = rcode
	if rcode != dnsmessage.RCodeSuccess {
		return
	}
	switch q.kind {
	case dnsmessage.TypeA:
		a := v4.As4()
		r.size = copy(r.data[:], a[:])
	case dnsmessage.TypeAAAA:
		a := v6.As16()
		r.size = copy(r.data[:], a[:])
	}
}

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// addresses returns what a name in lower case stands for: localhost and names below it the sandbox's own loopback
// (RFC 6761 6.3) unless Local knows better, every other name its synthetic addresses. Whether the policy allows it is
// decided when a program connects, and only then.
func (d *DNS) addresses(host []byte) (v4, v6 netip.Addr, rcode dnsmessage.RCode) {
	if string(host) == "localhost" {
		return loopback4, loopback6, dnsmessage.RCodeSuccess
	}
	below := bytes.HasSuffix(host, []byte(".localhost"))
	if !below {
		if v4, v6, ok := d.names.known(host); ok {
			return v4, v6, dnsmessage.RCodeSuccess
		}
	}
	name := string(host)
	if below && (d.Local == nil || d.Local(name)) {
		if _, err := config.CanonicalHost(name); err != nil {
			return netip.Addr{}, netip.Addr{}, dnsmessage.RCodeNameError
		}
		return loopback4, loopback6, dnsmessage.RCodeSuccess
	}
	if d.LookedUp != nil {
		d.LookedUp(name)
	}
	v4, v6, err := d.names.Addresses(name)
	switch {
	case err == nil:
		return v4, v6, dnsmessage.RCodeSuccess
	case errors.Is(err, config.ErrMalformedHost), errors.Is(err, ErrNotName):
		return netip.Addr{}, netip.Addr{}, dnsmessage.RCodeNameError // NET-9
	}
	d.warnFull(err)
	return netip.Addr{}, netip.Addr{}, dnsmessage.RCodeServerFailure
}

// resolvePointer answers with the name of an address.
func (d *DNS) resolvePointer(q *dnsQuery, r *dnsReply) {
	r.rcode = dnsmessage.RCodeNameError
	addr, ok := reverseAddr(string(q.name.Data[:q.name.Length-1]))
	if !ok {
		return
	}
	name, ok := "localhost", addr.IsLoopback()
	if !ok {
		name, ok = d.names.Name(addr)
	}
	if ok {
		r.putName(name)
	}
}

// putName makes a name the data of the answer. A name that DNS cannot carry was bound by somebody else than a question.
func (r *dnsReply) putName(name string) {
	if len(name)+2 > len(r.data)-1 { // a length before each label and the root's after them: 255 bytes at most
		return
	}
	n := 0
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > 63 {
			return
		}
		r.data[n] = byte(len(label))
		n += 1 + copy(r.data[n+1:], label)
	}
	r.data[n] = 0
	r.rcode, r.size = dnsmessage.RCodeSuccess, n+1
}

// reverseAddr parses the name of an address in the reverse tree (RFC 1035 3.5, RFC 3596 2.5), in lower case without final
// dot. Only whole addresses count, each number in its one spelling.
func reverseAddr(name string) (netip.Addr, bool) {
	if v4, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		return reverse4(v4)
	}
	if v6, ok := strings.CutSuffix(name, ".ip6.arpa"); ok {
		return reverse6(v6)
	}
	return netip.Addr{}, false
}

func reverse4(name string) (netip.Addr, bool) {
	var b [4]byte
	i := len(b)
	for label := range strings.SplitSeq(name, ".") {
		n, err := strconv.ParseUint(label, 10, 8)
		if i--; i < 0 || err != nil || len(label) > 1 && label[0] == '0' {
			return netip.Addr{}, false
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom4(b), i == 0
}

func reverse6(name string) (netip.Addr, bool) {
	var b [16]byte
	if len(name) != 4*len(b)-1 { // 32 digits with dots between them
		return netip.Addr{}, false
	}
	for i := range 2 * len(b) {
		digit := strings.IndexByte("0123456789abcdef", name[2*i])
		if digit < 0 || i > 0 && name[2*i-1] != '.' {
			return netip.Addr{}, false
		}
		at := len(b) - 1 - i/2
		b[at] |= byte(digit << (4 * (i % 2))) // #nosec G115 -- a digit in one of the two halves
	}
	return netip.AddrFrom16(b), true
}
