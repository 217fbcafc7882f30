package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

const testToken = "0123456789abcdef0123456789abcdef"

// testPatience ends a test that hangs. Nothing is asserted about it.
const testPatience = 20 * time.Second

// TestMain fails if goroutines of the package are left after all tests, each of which closes what it opened.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && !settles(func() bool { return goroutines() == 0 }) {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", buf[:runtime.Stack(buf, true)])
		code = 1
	}
	os.Exit(code)
}

// goroutines counts those that run code of this package other than the test's own main goroutine.
func goroutines() int {
	buf := make([]byte, 8<<20)
	n := 0
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "srt/proxy.(*Server)") || strings.Contains(g, "srt/proxy.(*client)") ||
			strings.Contains(g, "srt/proxy.(*transfer)") || strings.Contains(g, "srt/proxy.(*tunnel)") ||
			strings.Contains(g, "srt/proxy.(*CapturedUpstream)") || strings.Contains(g, "internal/relay") ||
			strings.Contains(g, "internal/inspect") {
			n++
		}
	}
	return n
}

// settles waits until a condition holds, and reports false if it does not in the end.
func settles(holds func() bool) bool {
	for end := time.Now().Add(testPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}

// fakeResolver answers from a table; each value lists the answers of successive lookups, the last one repeated.
type fakeResolver struct {
	mu      sync.Mutex
	answers map[string][][]string
	lookups map[string]int
}

func resolves(name string, addrs ...string) *fakeResolver {
	return &fakeResolver{answers: map[string][][]string{name: {addrs}}}
}

func (r *fakeResolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lookups == nil {
		r.lookups = map[string]int{}
	}
	rounds := r.answers[host]
	if len(rounds) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	texts := rounds[min(r.lookups[host], len(rounds)-1)]
	r.lookups[host]++
	var addrs []netip.Addr
	for _, s := range texts {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

func (r *fakeResolver) count(host string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lookups[host]
}

// harness is a server on loopback and the violations that it reported.
type harness struct {
	t      testing.TB
	server *Server
	addr   string

	mu     sync.Mutex
	events []violation.Event
}

// start runs a server with a token; change may alter its options.
func start(t testing.TB, say policy.NetworkRules, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{t: t}
	network, err := policy.NewNetwork(say)
	if err != nil {
		t.Fatal(err)
	}
	rules := &Rules{Network: network}
	o := Options{
		Policy: func() *Rules { return rules }, Token: testToken,
		OnViolation: func(e violation.Event) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, e)
		},
	}
	for _, f := range change {
		f(&o)
	}
	if h.server, err = New(o); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	h.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(l) }()
	t.Cleanup(func() {
		if err := h.server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil && !errors.Is(err, ErrServerClosed) { // which comes if a test ended before Serve began
			t.Errorf("Serve: %v", err)
		}
	})
	return h
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// lines returns the violation lines so far.
func (h *harness) lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, e := range h.events {
		out = append(out, e.Line())
	}
	return out
}

func (h *harness) wantLines(want ...string) {
	h.t.Helper()
	if got := h.lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		h.t.Errorf("violations:\n got %q\nwant %q", got, want)
	}
}

// peer is one connection of a client.
type peer struct {
	*net.TCPConn
	t  testing.TB
	br *bufio.Reader
}

func connect(t testing.TB, addr string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(testPatience))
	return &peer{c.(*net.TCPConn), t, bufio.NewReader(c)}
}

func (h *harness) dial() *peer {
	h.t.Helper()
	return connect(h.t, h.addr)
}

func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p, format, args...); err != nil {
		p.t.Fatal(err)
	}
}

// rest reads until the other side closes.
func (p *peer) rest() string {
	p.t.Helper()
	b, err := io.ReadAll(p.br)
	if err != nil {
		p.t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

// take reads n bytes.
func (p *peer) take(n int) string {
	p.t.Helper()
	b := make([]byte, n)
	if got, err := io.ReadFull(p.br, b); err != nil {
		p.t.Fatalf("after %q: %v", b[:got], err)
	}
	return string(b)
}

// want reads and compares exactly as many bytes as are expected.
func (p *peer) want(s string) {
	p.t.Helper()
	if got := p.take(len(s)); got != s {
		p.t.Errorf("\n got %q\nwant %q", got, s)
	}
}

func credentials(user, password string) string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
}

var auth = credentials("srt", testToken)

// connectTo sends a CONNECT with credentials and the rest of the head.
func (h *harness) connectTo(target string) *peer {
	h.t.Helper()
	p := h.dial()
	p.send("CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n", target, auth)
	return p
}

// tunnel opens a tunnel that must be granted.
func (h *harness) tunnel(target string) *peer {
	h.t.Helper()
	p := h.connectTo(target)
	p.want(established)
	return p
}

// echo is a server that sends back what it gets, until the end of input. It returns its address and port.
func echo(t testing.TB) (addr string, port int) {
	t.Helper()
	l := serveEach(t, func(c *net.TCPConn) {
		_, _ = io.Copy(c, c)
		_ = c.CloseWrite()
	})
	return l.String(), l.Port
}

// serveEach runs a server that hands each connection to a function and closes it afterwards.
func serveEach(t testing.TB, handle func(*net.TCPConn)) *net.TCPAddr {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", handle)
}

func serveOn(t testing.TB, addr string, handle func(*net.TCPConn)) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			wg.Go(func() {
				handle(c.(*net.TCPConn))
				c.Close()
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().(*net.TCPAddr)
}

// closedPort is a port of 127.0.0.1 on which nothing listens.
func closedPort(t testing.TB) int {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
