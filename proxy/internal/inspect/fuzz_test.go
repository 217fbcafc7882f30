package inspect

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// memory is a connection whose input is given and whose output is kept. Nothing on it ever waits.
type memory struct {
	in     io.Reader
	mu     sync.Mutex
	out    bytes.Buffer
	closed bool
}

func (m *memory) Read(p []byte) (int, error) { return m.in.Read(p) }
func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, net.ErrClosed
	}
	return m.out.Write(p)
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
func (m *memory) LocalAddr() net.Addr              { return nil }
func (m *memory) RemoteAddr() net.Addr             { return nil }
func (m *memory) SetDeadline(time.Time) error      { return nil }
func (m *memory) SetReadDeadline(time.Time) error  { return nil }
func (m *memory) SetWriteDeadline(time.Time) error { return nil }

// answering is a server that answers each of its connection's requests once it is complete, as another parser sees it.
type answering struct {
	memory
	requests []string
	answers  bytes.Buffer
}

func (a *answering) Read(p []byte) (int, error) {
	for a.answers.Len() == 0 {
		a.mu.Lock()
		raw := bytes.Clone(a.out.Bytes())
		a.mu.Unlock()
		source := bytes.NewReader(raw)
		br := bufio.NewReader(source)
		r, err := http.ReadRequest(br)
		if err != nil {
			return 0, io.EOF
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return 0, io.EOF
		}
		a.mu.Lock()
		a.out.Next(len(raw) - source.Len() - br.Buffered())
		a.mu.Unlock()
		a.requests = append(a.requests, r.Method+" "+r.RequestURI+" "+r.Host+" "+string(body))
		a.answers.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	return a.answers.Read(p)
}

// FuzzServe: whatever a client sends, what another parser (net/http) finds upstream is exactly what the handler let
// through: no request more, none with another target or host, no body longer or shorter.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		get + get,
		"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get,
		chunkedPost("3\r\nabc\r\n0\r\nT: u\r\n\r\n") + get,
		chunkedPost("3;x=\"y\"\r\nabc\r\n00\r\n\r\n") + get,
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get,
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + get,
		"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 60\r\n\r\n" + get,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: Host, Content-Length\r\nContent-Length: 1\r\n\r\na",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nPUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"GET /\x85 HTTP/1.1\r\nHost: x\r\nA:\x0bb\r\n c\r\n\r\n",
		"HEAD * HTTP/1.1\r\nhOST: x\r\nUpgrade: h2c\r\nTE: trailers\r\n\r\n\r\n" + get,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var servers []*answering
		var let []string
		h := &passing{}
		h.dial = func(ctx) (net.Conn, error) {
			servers = append(servers, &answering{})
			return servers[len(servers)-1], nil
		}
		h.judge = func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
			request := r.Method + " " + r.Target + " up.test "
			if r.Body != nil {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					if !errors.Is(err, ErrClientGone) && !errors.Is(err, ErrBodyMalformed) {
						t.Errorf("a body ends by %v", err)
					}
					return out, nil // and must not arrive
				}
				request += string(body)
			}
			if _, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(alone(r)))); err != nil {
				return nil, nil // of the form srt forwards, but not one the other parser takes
			}
			let = append(let, request)
			return out, nil
		}
		client := &memory{in: bytes.NewReader(in)}
		Serve(t.Context(), client, nil, h, Limits{BodyKept: 1 << 30})
		var arrived []string
		for _, s := range servers {
			arrived = append(arrived, s.requests...)
			if s.out.Len() > 0 {
				t.Errorf("the server is left with %q", s.out.Bytes())
			}
		}
		// The last one may not have been answered: a client that has left ends what is under way.
		if len(arrived) > len(let) || len(let) > len(arrived)+1 {
			t.Fatalf("let through %q, arrived %q", let, arrived)
		}
		for i := range arrived {
			if arrived[i] != let[i] {
				t.Errorf("let through %q, arrived %q", let[i], arrived[i])
			}
		}
	})
}

// alone is the head of a request with no fields of the client's.
func alone(r *Request) []byte {
	head := append([]byte(nil), r.Method+" "+r.Target+" HTTP/1.1\r\n"...)
	return append(httphead.AppendField(head, "Host", "up.test"), "\r\n"...)
}
