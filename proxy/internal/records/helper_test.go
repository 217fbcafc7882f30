package records

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/proxy/mitm"
)

// authority issues the certificates of all tests here.
var authority = sync.OnceValue(func() *mitm.CA {
	ca, err := mitm.Generate(mitm.GenerateOptions{})
	if err != nil {
		panic(err)
	}
	return ca
})

// counted counts the calls that reach a connection, and fails writes from one of them on.
type counted struct {
	net.Conn
	mu            sync.Mutex
	reads, writes int
	failFrom      int // the number of the write that fails, from 1 on; 0: none
	slices        []byte
}

var errNoMore = errors.New("no more")

func (c *counted) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reads++
	if len(c.slices) > 0 {
		size := 1 + int(c.slices[0])*int(c.slices[0]) // up to 64 KiB
		c.slices = c.slices[1:]
		p = p[:min(len(p), size)]
	}
	c.mu.Unlock()
	return c.Conn.Read(p)
}

func (c *counted) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writes++
	fails := c.failFrom > 0 && c.writes >= c.failFrom
	c.mu.Unlock()
	if fails {
		return 0, errNoMore
	}
	return c.Conn.Write(p)
}

func (c *counted) counts() (reads, writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads, c.writes
}

// pair is a client and a server over TLS that have shaken hands; the client is the one with the layers, over counted.
func pair(t testing.TB, version uint16, connect func(testing.TB) (net.Conn, net.Conn)) (*Conn, *counted, *tls.Conn) {
	t.Helper()
	near, far := connect(t)
	server := tls.Server(far, &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority().Leaf("name.test") },
	})
	shaken := make(chan error, 1)
	go func() { shaken <- server.Handshake() }()
	beneath := &counted{Conn: near}
	socket := Beneath(beneath)
	client := tls.Client(socket, &tls.Config{
		InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, DynamicRecordSizingDisabled: true,
	})
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return Over(client, socket), beneath, server
}

func overTCP(t testing.TB) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

// pattern is bytes of which no two stretches of a record are alike.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

var versions = map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13}

// gated keeps what is written, and lets as much pass as a test says.
type gated struct {
	net.Conn
	keeps bool
	kept  []byte
	past  []byte
}

func (g *gated) keepAll() { g.keeps = true }

func (g *gated) Write(p []byte) (int, error) {
	if !g.keeps {
		return g.Conn.Write(p)
	}
	g.kept = append(g.kept, p...)
	return len(p), nil
}

// release lets n bytes pass. false: nothing was left.
func (g *gated) release(n int) bool {
	n = min(n, len(g.kept))
	if n == 0 {
		return false
	}
	g.past = append(g.past, g.kept[:n]...)
	_, err := g.Conn.Write(g.kept[:n])
	g.kept = g.kept[n:]
	return err == nil
}

// wholeRecords is at least how many bytes of plaintext are in the records that have passed whole.
func (g *gated) wholeRecords() int {
	const header, overhead = 5, 24 // the most that either version adds
	sum := 0
	for rest := g.past; len(rest) >= header; {
		size := int(rest[3])<<8 | int(rest[4])
		if len(rest) < header+size {
			break
		}
		sum += max(0, size-overhead)
		rest = rest[header+size:]
	}
	if len(g.kept) == 0 {
		return 1 << 30
	}
	return sum
}
