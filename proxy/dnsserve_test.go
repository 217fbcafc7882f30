package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// testLogger writes everything to w.
func testLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// serveDNS serves a stub on one port of loopback, UDP and TCP, and ends it with the test.
func serveDNS(t testing.TB, d *DNS) (addr string) {
	t.Helper()
	udp, tcp := dnsSockets(t)
	served := make(chan error, 1)
	go func() { served <- d.Serve(udp, tcp) }()
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return tcp.Addr().String()
}

// dnsSockets opens both sockets on one port, as resolvers expect it.
func dnsSockets(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		tcp := listen(t)
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err == nil {
			t.Cleanup(func() { udp.Close() })
			return udp, tcp
		}
		tcp.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

// dialDNS connects to a stub.
func dialDNS(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testPatience))
	return c
}

// framed puts a length in front of a message (RFC 1035 4.2.2).
func framed(msg []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
}

// readFramed reads one message from a connection.
func readFramed(c io.Reader) (dnsmessage.Message, error) {
	var size [2]byte
	var m dnsmessage.Message
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return m, err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return m, err
	}
	return m, m.Unpack(b)
}

func mustWrite(t testing.TB, c io.Writer, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// wantTCP sends a query on a connection and compares the answer.
func wantTCP(t testing.TB, c net.Conn, p dnsPacket, want string) {
	t.Helper()
	mustWrite(t, c, framed(p.bytes()))
	m, err := readFramed(c)
	if err != nil || m.ID != p.id || dnsOutcome(m) != want {
		t.Fatalf("answer %s, %v; want %s", dnsOutcome(m), err, want)
	}
}

// wantEnd checks that the other side closes, whether or not it had read all.
func wantEnd(t testing.TB, c net.Conn, what string) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("%s: read %d bytes, %v; want the end", what, n, err)
	}
}

func TestDNSOverUDP(t *testing.T) {
	addr := serveDNS(t, testDNS())
	c := dialDNS(t, "udp", addr)
	buf := make([]byte, 4096)
	for i, junk := range [][]byte{{}, {1}, make([]byte, 11), make([]byte, 9000), []byte(strings.Repeat("\xff", 600))} {
		// What deserves no answer gets none and harms nothing that follows.
		mustWrite(t, c, junk)
		p := queryFor("a.test", dnsmessage.TypeA).with(func(p *dnsPacket) { p.id = uint16(i + 1) })
		mustWrite(t, c, p.bytes())
		for {
			n, err := c.Read(buf)
			var m dnsmessage.Message
			if err == nil {
				err = m.Unpack(buf[:n])
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.ID == 0 && m.RCode == dnsmessage.RCodeFormatError {
				continue // the answer to the 9,000 zeros
			}
			if m.ID != p.id || dnsOutcome(m) != "Success RD RA a.test. 5 198.18.0.1" {
				t.Fatalf("answer %x %s", m.ID, dnsOutcome(m))
			}
			break
		}
	}
}

// genericPackets hides that a socket is one of the net package's own.
type genericPackets struct{ net.PacketConn }

// flakyPackets fails some reads the way a socket reports the trouble of one packet.
type flakyPackets struct {
	net.PacketConn
	failures int
}

func (f *flakyPackets) ReadFrom(b []byte) (int, net.Addr, error) {
	if f.failures > 0 {
		f.failures--
		return 0, nil, errors.New("one packet's trouble")
	}
	return f.PacketConn.ReadFrom(b)
}

func TestDNSOverOtherSockets(t *testing.T) {
	for name, wrap := range map[string]func(net.PacketConn) net.PacketConn{
		"generic": func(c net.PacketConn) net.PacketConn { return genericPackets{c} },
		"flaky":   func(c net.PacketConn) net.PacketConn { return &flakyPackets{c, 3} },
	} {
		t.Run(name, func(t *testing.T) {
			udp, tcp := dnsSockets(t)
			d := testDNS()
			served := make(chan error, 1)
			go func() { served <- d.Serve(wrap(udp), tcp) }()
			c := dialDNS(t, "udp", tcp.Addr().String())
			mustWrite(t, c, queryFor("a.test", dnsmessage.TypeA).bytes())
			if n, err := c.Read(make([]byte, 512)); err != nil || n == 0 {
				t.Errorf("%d bytes, %v", n, err)
			}
			d.Close()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDNSClose(t *testing.T) {
	d := testDNS()
	udp, tcp := dnsSockets(t)
	served := make(chan error, 1)
	go func() { served <- d.Serve(udp, tcp) }()
	c := dialDNS(t, "tcp", tcp.Addr().String())
	wantTCP(t, c, queryFor("a.test", dnsmessage.TypeA), "Success RD RA a.test. 5 198.18.0.1")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _ = d.Close() })
	}
	wg.Wait()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	wantEnd(t, c, "Close")
	udp, tcp = dnsSockets(t)
	if err := d.Serve(udp, tcp); !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve after Close: %v", err)
	}
	if err := udp.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a UDP socket that was not served is still open: %v", err)
	}
	if err := tcp.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that was not served is still open: %v", err)
	}
}

// failingListener is a listener that fails for good.
type failingListener struct{ net.Listener }

var errListener = errors.New("broken listener")

func (failingListener) Accept() (net.Conn, error) { return nil, errListener }

func TestDNSServeFails(t *testing.T) {
	d := testDNS()
	defer d.Close()
	udp, tcp := dnsSockets(t)
	if err := d.Serve(udp, failingListener{tcp}); !errors.Is(err, errListener) {
		t.Errorf("a broken listener: %v", err)
	}
	udp, tcp = dnsSockets(t)
	udp.Close()
	if err := d.Serve(udp, tcp); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed socket: %v", err)
	}
	if err := d.Serve(nil, tcp); !errors.Is(err, errDNSSockets) {
		t.Errorf("no UDP socket: %v", err)
	}
	if err := d.Serve(udp, nil); !errors.Is(err, errDNSSockets) {
		t.Errorf("no listener: %v", err)
	}
}

// A stub that forwards nothing is no tunnel: whatever is asked, the only sockets are the two that it was given, the answer
// says nothing but addresses, and the table stays within its bounds.
func TestDNSIsNoTunnel(t *testing.T) {
	n := smallNames(500, 1000)
	d := NewDNS(n, nil)
	addr := serveDNS(t, d)
	c := dialDNS(t, "tcp", addr)
	mustWrite(t, c, framed(queryFor("warm.test", dnsmessage.TypeA).bytes()))
	if _, err := readFramed(c); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	payload := strings.Repeat("x", 50)
	kinds := []dnsmessage.Type{
		dnsmessage.TypeA, dnsmessage.TypeAAAA, dnsmessage.TypeTXT, typeNULL, dnsmessage.TypeMX, dnsmessage.TypeCNAME,
		dnsmessage.TypeSRV, dnsmessage.TypeHTTPS, dnsmessage.TypePTR, typeANY, 65280, 16384,
	}
	counts := map[string]int{}
	for i := range 12000 {
		name := fmt.Sprintf("%s.%s.%d.tunnel.example", payload, payload, i)
		m := exchangeDNS(t, d, queryFor(name, kinds[i%len(kinds)]))
		if len(m.Answers) > 0 {
			checkRecord(t, d, m.Questions[0], m.Answers[0])
		}
		counts[m.RCode.String()]++
	}
	if len(n.byName) > 500 || len(n.main.slots) > 1000 {
		t.Errorf("%d names, %d slots", len(n.byName), len(n.main.slots))
	}
	if counts["RCodeServerFailure"] != 0 || counts["RCodeRefused"] != 8000 || counts["RCodeNameError"] != 1000 {
		t.Errorf("answers: %v", counts)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines more", after-before)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) != 3 {
		t.Errorf("%d sockets are open, want the two served and one client's", len(d.open))
	}
}

func TestDNSWithGoResolver(t *testing.T) {
	n, err := NewNames()
	if err != nil {
		t.Fatal(err)
	}
	addr := serveDNS(t, NewDNS(n, nil))
	for _, network := range []string{"udp", "tcp"} {
		r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}
		ctx := t.Context()
		addrs, err := r.LookupNetIP(ctx, "ip", "Www.Example.com.")
		if err != nil || len(addrs) != 2 {
			t.Fatalf("%s: %v, %v", network, addrs, err)
		}
		for _, a := range addrs {
			if name, _ := n.Name(a); name != "www.example.com" {
				t.Errorf("%s: %v stands for %q", network, a, name)
			}
			names, err := r.LookupAddr(ctx, a.Unmap().String())
			if err != nil || len(names) != 1 || names[0] != "www.example.com." {
				t.Errorf("%s: names of %v: %q, %v", network, a, names, err)
			}
		}
		var dnsErr *net.DNSError
		if _, err := r.LookupNetIP(ctx, "ip", "a$b.test."); !errors.As(err, &dnsErr) || !dnsErr.IsNotFound {
			t.Errorf("%s: NET-9: %v", network, err)
		}
		if _, err := r.LookupTXT(ctx, "example.com."); !errors.As(err, &dnsErr) || dnsErr.IsNotFound {
			t.Errorf("%s: TXT: %v", network, err)
		}
	}
}

func BenchmarkDNSRoundTrip(b *testing.B) {
	for _, network := range []string{"udp", "tcp"} {
		b.Run(network, func(b *testing.B) {
			c := dialDNS(b, network, serveDNS(b, testDNS()))
			query := queryFor("www.bound.test", dnsmessage.TypeA).bytes()
			if network == "tcp" {
				query = framed(query)
			}
			buf := make([]byte, 512)
			b.ReportAllocs()
			for b.Loop() {
				mustWrite(b, c, query)
				if _, err := c.Read(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
