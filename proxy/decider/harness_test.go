package decider

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds what must happen in a test.
const patience = 20 * time.Second

// fake is the decider's end of a link, played by a test.
type fake struct {
	t    *testing.T
	conn net.Conn
}

// next reads one frame of the proxy.
func (d *fake) next() map[string]any {
	d.t.Helper()
	m, err := d.read()
	if err != nil {
		d.t.Fatalf("the proxy sends no frame: %v", err)
	}
	return m
}

func (d *fake) read() (map[string]any, error) {
	_ = d.conn.SetReadDeadline(time.Now().Add(patience))
	var head [4]byte
	if _, err := io.ReadFull(d.conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(d.conn, body); err != nil {
		return nil, err
	}
	m := map[string]any{}
	return m, json.Unmarshal(body, &m)
}

// want reads a frame of a type and an id.
func (d *fake) want(kind string, id int) map[string]any {
	d.t.Helper()
	m := d.next()
	if m["t"] != kind || m["id"] != float64(id) {
		d.t.Fatalf("got %v, want %s %d", m, kind, id)
	}
	return m
}

// send writes one frame.
func (d *fake) send(format string, args ...any) {
	d.t.Helper()
	_ = d.conn.SetWriteDeadline(time.Now().Add(patience))
	text := fmt.Sprintf(format, args...)
	if _, err := d.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
		d.t.Fatalf("the proxy reads no frame: %v", err)
	}
}

// allow answers a request of an id.
func (d *fake) allow(id int) { d.send(`{"t":"verdict","id":%d,"action":"allow"}`, id) }

// always answers every request with the same fields of a verdict until the link ends.
func (d *fake) always(fields string) {
	go func() {
		for {
			m, err := d.read()
			if err != nil {
				return
			}
			if m["t"] == "req" {
				text := fmt.Sprintf(`{"t":"verdict","id":%.0f,%s}`, m["id"], fields)
				_, _ = d.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
			}
		}
	}()
}

// running is a Serve under test.
type running struct {
	*fake
	addr   string
	cancel context.CancelCauseFunc
	result chan error
	up     *upstream
}

const allowAll = `{"t":"hello","proto":1,"allowedDomains":["u.test","*.u.test","127.0.0.1","u","github.com","private.test"],"deniedDomains":["no.u.test"]}`

// names is a resolver for the tests.
type names struct{}

func (names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch host {
	case "private.test":
		return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
	case "gone.u.test":
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// start serves with a hello.
func start(t *testing.T, hello string, opts ...Option) *running {
	t.Helper()
	r := begin(t, opts...)
	if got := r.next(); got["t"] != "hello" || got["proto"] != 1.0 || len(got) != 2 {
		t.Fatalf("PRX-32: the proxy's hello is %v", got)
	}
	r.send("%s", hello)
	return r
}

// begin starts Serve, without a hello.
func begin(t *testing.T, opts ...Option) *running {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := net.Pipe()
	r := &running{fake: &fake{t, mine}, addr: ln.Addr().String(), result: make(chan error, 1), up: newUpstream(t)}
	var ctx context.Context
	ctx, r.cancel = context.WithCancelCause(context.Background())
	opts = append([]Option{WithResolver(names{})}, opts...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.result <- Serve(ctx, ln, theirs, opts...)
	}()
	t.Cleanup(func() {
		r.cancel(nil)
		_ = mine.Close()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("Serve does not return")
		}
	})
	return r
}

// ended returns why Serve returned.
func (r *running) ended() string {
	r.t.Helper()
	select {
	case err := <-r.result:
		return err.Error()
	case <-time.After(patience):
		r.t.Fatal("Serve does not return")
		return ""
	}
}

// client is one connection to the proxy.
type client struct {
	net.Conn
	t  *testing.T
	br *bufio.Reader
}

func (r *running) dial() *client {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &client{conn, r.t, bufio.NewReader(conn)}
}

// say sends text in which U stands for the upstream's host and port.
func (r *running) say(text string) *client {
	r.t.Helper()
	c := r.dial()
	c.say(strings.ReplaceAll(text, "U", r.up.host))
	return c
}

func (c *client) say(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

// reply is a response.
type reply struct {
	status int
	header http.Header
	body   string
}

// hears reads a response to a method.
func (c *client) hears(method string) reply {
	c.t.Helper()
	got, err := c.try(method)
	if err != nil {
		c.t.Fatalf("no response: %v", err)
	}
	return got
}

func (c *client) try(method string) (reply, error) {
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

// refused checks a refusal.
func (c *client) refused(name string, status int, m mark, text string) {
	c.t.Helper()
	got := c.hears("GET")
	if text != "" {
		text += "\n"
	}
	if got.status != status || got.header.Get("X-Deny-Reason") != string(m) || got.body != text {
		c.t.Errorf("%s: %d %q %q, want %d %q %q", name, got.status, got.header.Get("X-Deny-Reason"), got.body, status, m, text)
	}
}

// closed checks that the connection ends without a byte.
func (c *client) closed(name string) {
	c.t.Helper()
	if rest, err := io.ReadAll(c.br); len(rest) > 0 || err != nil && isTimeout(err) {
		c.t.Errorf("%s: %q, %v", name, rest, err)
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// upstream is a server that records requests as they arrive.
type upstream struct {
	ln   net.Listener
	host string // u.test:port
	mu   sync.Mutex
	seen []received
	// response is what it answers; empty: 200 without a body.
	response string
	conns    int
	begun    chan struct{} // one for each head
	got      chan struct{} // one for each request
}

type received struct {
	head string // to the empty line, as it came
	body string // decoded
	err  error  // of the body
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := serveUpstream(ln)
	t.Cleanup(func() { _ = ln.Close() })
	return u
}

func serveUpstream(ln net.Listener) *upstream {
	u := &upstream{ln: ln, begun: make(chan struct{}, 1000), got: make(chan struct{}, 1000)}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	u.host = "u.test:" + port
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.conns++
			u.mu.Unlock()
			go u.serve(conn)
		}
	}()
	return u
}

func (u *upstream) serve(conn net.Conn) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	for {
		var head strings.Builder
		for !strings.HasSuffix(head.String(), "\r\n\r\n") {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
		}
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head.String())))
		if err != nil {
			return
		}
		u.begun <- struct{}{}
		var body []byte
		switch {
		case len(req.TransferEncoding) > 0:
			body, err = io.ReadAll(httputil.NewChunkedReader(br))
			if err == nil {
				_, err = br.ReadString('\n')
			}
		case req.ContentLength > 0:
			body = make([]byte, req.ContentLength)
			_, err = io.ReadFull(br, body)
		}
		u.mu.Lock()
		u.seen = append(u.seen, received{head.String(), string(body), err})
		response := u.response
		u.mu.Unlock()
		u.got <- struct{}{}
		if err != nil {
			return
		}
		if response == "" {
			response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		}
		if _, err := io.WriteString(conn, response); err != nil {
			return
		}
	}
}

// last is the request that came last.
func (u *upstream) last() received {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) == 0 {
		return received{}
	}
	return u.seen[len(u.seen)-1]
}

// dialled counts connections.
func (u *upstream) dialled() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conns
}

func (u *upstream) answers(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.response = text
}

// await waits for a signal of an upstream.
func await(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatal("nothing arrives")
	}
}
