package inspect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// pair is two connected TCP sockets.
func pair(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

// passing is a handler that lets everything through to "up.test". Its functions may be replaced.
type passing struct {
	dial   func(ctx context.Context) (net.Conn, error)
	judge  func(ctx context.Context, r *Request, out *Outgoing) (*Outgoing, Answer)
	failed func(r *Request, err error) Answer

	mu        sync.Mutex
	judged    []string // method and target
	malformed []Malformed
	failures  []error
}

func (p *passing) Judge(ctx context.Context, r *Request) (*Outgoing, Answer) {
	p.mu.Lock()
	p.judged = append(p.judged, r.Method+" "+r.Target)
	p.mu.Unlock()
	out := forwarded(r)
	out.Dial = p.dial
	if p.judge != nil {
		return p.judge(ctx, r, out)
	}
	return out, nil
}

// forwarded is a request as it came, to another Host.
func forwarded(r *Request) *Outgoing {
	out := &Outgoing{Header: httphead.Header{{Name: "Host", Value: "up.test"}}, Length: -1}
	for _, f := range r.Header {
		if !f.Is("Host") {
			out.Header = append(out.Header, f)
		}
	}
	if r.Body != nil {
		out.Body = r.Body.Stream()
		if r.Framing == httphead.ByLength {
			out.Length = r.Length
		}
	}
	return out
}

func (p *passing) Malformed(m Malformed) Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.malformed = append(p.malformed, m)
	return Answer("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

func (p *passing) Failed(r *Request, err error) Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, err)
	if p.failed != nil {
		return p.failed(r, err)
	}
	return Answer("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

// origin is a server that records what it gets and answers each request by its script.
type origin struct {
	t      testing.TB
	answer func(r *http.Request) string // raw; "" closes without an answer

	mu    sync.Mutex
	raw   bytes.Buffer
	dials int
	bad   []error
	conns sync.WaitGroup
}

func (o *origin) dial(context.Context) (net.Conn, error) {
	near, far := pair(o.t)
	o.mu.Lock()
	o.dials++
	o.mu.Unlock()
	o.conns.Add(1)
	go func() {
		defer o.conns.Done()
		defer far.Close()
		o.serve(far)
	}()
	return near, nil
}

func (o *origin) serve(c net.Conn) {
	br := bufio.NewReader(io.TeeReader(c, o))
	for {
		r, err := http.ReadRequest(br)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
		}
		if err != nil {
			o.mu.Lock()
			o.bad = append(o.bad, err)
			o.mu.Unlock()
			return
		}
		answer := o.answer(r)
		if answer == "" {
			return
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

func (o *origin) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.raw.Write(p)
}

func (o *origin) got() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.raw.String()
}

func always(answer string) func(*http.Request) string {
	return func(*http.Request) string { return answer }
}

const ok200 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// quick are limits for tests that do not wait for any.
var quick = Limits{Linger: 50 * time.Millisecond, RefusalLinger: 50 * time.Millisecond, Cap: 50 * time.Millisecond}

// served is a connection that Serve serves, seen from the client.
type served struct {
	*net.TCPConn
	t    testing.TB
	done chan struct{}
}

func serve(ctx context.Context, t testing.TB, h Handler, l Limits) *served {
	t.Helper()
	client, server := pair(t)
	s := &served{TCPConn: client, t: t, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		if !Serve(ctx, server, nil, h, l) {
			server.Close()
		}
	}()
	return s
}

func (s *served) send(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s, text); err != nil {
		s.t.Fatal(err)
	}
}

// rest is all that comes until the connection ends.
func (s *served) rest() string {
	s.t.Helper()
	got, err := io.ReadAll(s)
	if err != nil {
		s.t.Errorf("the connection ended by %v after %q", err, got)
	}
	s.Close()
	<-s.done
	return string(got)
}

// expect reads exactly a text.
func (s *served) expect(text string) {
	s.t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(s, got); err != nil || string(got) != text {
		s.t.Fatalf("got %q, %v; want %q", got[:n], err, text)
	}
}

// exchanged sends raw bytes over a new connection, and returns what went upstream and what came back.
func exchanged(t *testing.T, h *passing, o *origin, in string) (upstream, back string) {
	t.Helper()
	o.t = t
	if h.dial == nil {
		h.dial = o.dial
	}
	s := serve(t.Context(), t, h, quick)
	s.send(in)
	back = s.rest()
	o.conns.Wait()
	return o.got(), back
}

func is(err error, targets ...error) bool {
	for _, target := range targets {
		if !errors.Is(err, target) {
			return false
		}
	}
	return true
}

type ctx = context.Context

// scripted dials a server that reads one head, writes a text and closes, by a reset if told so.
func scripted(t testing.TB, text string, rst bool) func(ctx) (net.Conn, error) {
	return func(ctx) (net.Conn, error) {
		near, far := pair(t)
		go func() {
			defer far.Close()
			if _, err := httphead.ReadHead(bufio.NewReader(far), nil); err != nil {
				return
			}
			io.WriteString(far, text)
			if rst {
				far.SetLinger(0)
			}
		}()
		return near, nil
	}
}

func readAll(s *served) (string, error) {
	got, err := io.ReadAll(s)
	s.Close()
	<-s.done
	return string(got), err
}

// broken is a body that fails, idle one that gives nothing.
type (
	broken struct{}
	idle   struct{}
)

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
func (idle) Read([]byte) (int, error)   { return 0, nil }

type netConn = net.Conn

func itoa(n int) string { return strconv.Itoa(n) }

// chunks is a text in chunks of a size, without the last one.
func chunks(text string, size int) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		b.WriteString(strconv.FormatInt(int64(n), 16) + "\r\n" + text[:n] + "\r\n")
		text = text[n:]
	}
	return b.String()
}

// bodyOf is the body of the one request in raw bytes.
func bodyOf(t testing.TB, raw string) string {
	br := bufio.NewReader(strings.NewReader(raw))
	r, err := http.ReadRequest(br)
	if err != nil {
		t.Error(err)
		return ""
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || br.Buffered() > 0 {
		t.Errorf("%v, %d bytes more", err, br.Buffered())
	}
	return string(body)
}
