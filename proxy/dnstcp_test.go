package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestRFC7766_DNSOverTCP(t *testing.T) {
	addr := serveDNS(t, testDNS())
	c := dialDNS(t, "tcp", addr)
	const want = "Success RD RA a.test. 5 198.18.0.1"
	wantTCP(t, c, queryFor("a.test", dnsmessage.TypeA), want)
	wantTCP(t, c, queryFor("a.test", dnsmessage.TypeTXT), "Refused RD RA")

	// Byte by byte, and many at once, which are answered in order.
	for _, b := range framed(queryFor("a.test", dnsmessage.TypeA).bytes()) {
		mustWrite(t, c, []byte{b})
	}
	if m, err := readFramed(c); err != nil || dnsOutcome(m) != want {
		t.Fatalf("byte by byte: %s, %v", dnsOutcome(m), err)
	}
	const pipelined = 3000
	var all []byte
	for i := range pipelined {
		all = append(all, framed(queryFor(fmt.Sprintf("n%d.test", i%50), dnsmessage.TypeA).with(func(p *dnsPacket) {
			p.id = uint16(i)
		}).bytes())...)
	}
	go func() { _, _ = c.Write(all) }()
	for i := range pipelined {
		m, err := readFramed(c)
		if err != nil || m.ID != uint16(i) || len(m.Answers) != 1 ||
			m.Answers[0].Header.Name.String() != fmt.Sprintf("n%d.test.", i%50) {
			t.Fatalf("pipelined %d: id %d, %s, %v", i, m.ID, dnsOutcome(m), err)
		}
	}

	// Half-close: the answer still arrives.
	mustWrite(t, c, framed(queryFor("a.test", dnsmessage.TypeA).bytes()))
	_ = c.(*net.TCPConn).CloseWrite()
	if m, err := readFramed(c); err != nil || dnsOutcome(m) != want {
		t.Fatalf("half-closed: %s, %v", dnsOutcome(m), err)
	}
	wantEnd(t, c, "after the client's end")
}

func TestDNSOverTCPEndsWhatIsNoDNS(t *testing.T) {
	addr := serveDNS(t, testDNS())
	for what, data := range map[string][]byte{
		"length 0":         {0, 0},
		"length 11":        append([]byte{0, 11}, make([]byte, 11)...),
		"length 1233":      append([]byte{1233 >> 8, 1233 & 0xff}, make([]byte, 1233)...),
		"length 65535":     {0xff, 0xff},
		"HTTP":             []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"a response":       framed(queryFor("a.test", 1).with(func(p *dnsPacket) { p.flags |= dnsQR }).bytes()),
		"TLS client hello": []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
	} {
		c := dialDNS(t, "tcp", addr)
		mustWrite(t, c, data)
		wantEnd(t, c, what)
	}
	wantTCP(t, dialDNS(t, "tcp", addr), queryFor("a.test", dnsmessage.TypeA), "Success RD RA a.test. 5 198.18.0.1")
}

func TestDNSOverTCPBoundsSlowClients(t *testing.T) {
	d := testDNS()
	d.idle = 50 * time.Millisecond
	addr := serveDNS(t, d)

	// A client that says nothing, one that sends a byte now and then, one that never reads.
	silent := dialDNS(t, "tcp", addr)
	wantEnd(t, silent, "silent")
	slow := dialDNS(t, "tcp", addr)
	ended := false
	for _, b := range framed(make([]byte, maxDNSQuery)) {
		if _, err := slow.Write([]byte{b}); err != nil {
			ended = true
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !ended {
		t.Error("a query may take for ever")
	}
	deaf := dialDNS(t, "tcp", addr)
	queries := bytes.Repeat(framed(queryFor("a.test", dnsmessage.TypeA).bytes()), 1000)
	for {
		if _, err := deaf.Write(queries); err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Errorf("a client that never reads: %v", err)
			}
			break
		}
	}
}

func TestDNSOverTCPLetsTheSilentGoFirst(t *testing.T) {
	d := testDNS()
	addr := serveDNS(t, d)
	const want = "Success RD RA a.test. 5 198.18.0.1"
	p := queryFor("a.test", dnsmessage.TypeA)
	conns := make([]net.Conn, maxDNSConns)
	for i := range conns {
		conns[i] = dialDNS(t, "tcp", addr)
		wantTCP(t, conns[i], p, want)
	}
	wantTCP(t, conns[0], p, want) // conns[1] is now silent longest
	extra := dialDNS(t, "tcp", addr)
	wantTCP(t, extra, p, want)
	wantEnd(t, conns[1], "the one that was silent longest")
	for i, c := range conns {
		if i != 1 {
			wantTCP(t, c, p, want)
		}
	}
	wantTCP(t, extra, p, want)

	// However many come, no more are kept.
	for range 3 * maxDNSConns {
		wantTCP(t, dialDNS(t, "tcp", addr), p, want)
	}
	if !settles(func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.open) <= maxDNSConns+2
	}) {
		t.Error("more connections are open than are kept")
	}
}
