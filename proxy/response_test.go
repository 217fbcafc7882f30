package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// TestNET33_ResponseSmuggling: what a client could read as another response, or as two, becomes 502 or one clear response.
func TestNET33_ResponseSmuggling(t *testing.T) {
	const refused = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 11\r\n\r\nBad Gateway"
	other := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	interim := "HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\n"
	for _, tc := range []struct{ name, method, answer, client string }{
		{"CL list", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nhi", refused},
		{"CL sign", "GET", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi", refused},
		{"CL in a 204, contradictory", "GET", "HTTP/1.1 204 No\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", refused},
		{"TE and CL", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", refused},
		{"TE and CL to HEAD", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", strings.TrimSuffix(refused, "Bad Gateway")},
		{"TE gzip", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", refused},
		{"TE on HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", refused},
		{"blank before the colon", "GET", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi", refused},
		{"folded", "GET", "HTTP/1.1 200 OK\r\nX: a\r\n Content-Length: 2\r\n\r\nhi", refused},
		{"bare CR", "GET", "HTTP/1.1 200 OK\r\nX: a\rContent-Length: 2\r\n\r\nhi", refused},
		{"bare LF", "GET", "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 2\r\n\r\nhi", refused},
		{"CR in the phrase", "GET", "HTTP/1.1 200 O\rK\r\n\r\n", refused},
		{"HTTP/0.9", "GET", "hi\r\n\r\n", refused},
		{"HTTP/2", "GET", "HTTP/2 200 OK\r\n\r\n", refused},
		{"header bomb", "GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", refused},
		{"4,000 headers", "GET", "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:b\r\n", 4000) + "\r\n", refused},
		{"101", "GET", interim + "HTTP/1.1 101 Go\r\n\r\n" + other, interim + refused},
		{"flood of interim responses", "GET", strings.Repeat(interim, 1000), strings.Repeat(interim, maxForwarded) + refused},
		{"flood of 100", "GET", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000), strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", maxForwarded) + refused},
		{"bad head after an interim one", "GET", interim + "HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", interim + refused},
		{"length in an interim response", "GET", "HTTP/1.1 103 E\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + ok200, "HTTP/1.1 103 E\r\n\r\n" + ok200},
		{"length in a 204", "GET", "HTTP/1.1 204 No\r\nContent-Length: 4\r\n\r\nevil", "HTTP/1.1 204 No\r\n\r\n"},
		{"length in a 304", "GET", "HTTP/1.1 304 Same\r\nContent-Length: 4\r\n\r\nevil", "HTTP/1.1 304 Same\r\nContent-Length: 4\r\n\r\n"},
		{"body for HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"},
		{"more than the length", "GET", ok200 + other, ok200},
		{"more than the chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nhi\r\n0\r\nContent-Length: 4\r\n\r\n" + other,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
		{"lookalikes", "GET", "HTTP/1.1 200 OK\r\nContent_Length: 4\r\nTransfer.Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi", ok200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := script(t, tc.answer)
			h := start(t, baseRules)
			p := h.dial()
			p.send("%s http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", tc.method, s.port, auth)
			p.want(tc.client)
			// The next response on this connection is that to the next request, and nothing of the one before.
			p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", script(t, ok200).port, auth)
			p.want(ok200)
		})
	}
}

// TestNET33_CutResponses: a body that was cut short never looks complete, however the client finds its end.
func TestNET33_CutResponses(t *testing.T) {
	for _, tc := range []struct{ name, version, answer string }{
		{"chunked, HTTP/1.1", "1.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"},
		{"chunked, HTTP/1.0", "1.0", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"},
		{"length, HTTP/1.1", "1.1", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"},
		{"length, HTTP/1.0", "1.0", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := script(t, tc.answer)
			h := start(t, baseRules)
			p := h.dial()
			p.send("GET http://127.0.0.1:%d/ HTTP/%s\r\nHost: a\r\n%s\r\n", s.port, tc.version, auth)
			got, err := io.ReadAll(p.br)
			delimited := strings.Contains(string(got), "Content-Length: 9") || strings.Contains(string(got), "chunked")
			if err == nil && !delimited || strings.HasSuffix(string(got), "0\r\n\r\n") {
				t.Errorf("looks complete: %q, %v", got, err)
			}
		})
	}
}

// TestNET23_SlowUploads: an upload ends for lack of progress, on either side, and never for taking long.
func TestNET23_SlowUploads(t *testing.T) {
	const stall = time.Second
	reader := func(pause func()) int {
		return serveEach(t, func(c *net.TCPConn) {
			br := bufio.NewReader(c)
			head, err := httphead.ReadHead(br, nil)
			if err != nil {
				return
			}
			req, _ := httphead.ParseRequest(head)
			_, left, _ := req.Framing()
			for buf := make([]byte, 512<<10); left > 0; {
				pause()
				n, err := br.Read(buf)
				if err != nil {
					return
				}
				left -= int64(n)
			}
			if _, err := io.WriteString(c, ok200); err == nil {
				_, _ = io.Copy(io.Discard, br)
			}
		}).Port
	}
	h := start(t, baseRules, func(o *Options) { o.Limits.Stall = stall })
	upload := func(port, size int) string {
		p := h.dial()
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n", port, size, auth)
		go func() { _, _ = p.Write(make([]byte, size)) }()
		got, _ := io.ReadAll(p.br)
		return string(got)
	}
	// Longer than the limit in all, but never without progress for that long.
	if got := upload(reader(func() { time.Sleep(stall / 20) }), 16<<20); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("a server that goes on reading: %q", got)
	}
	ended := make(chan struct{})
	port := reader(func() { <-ended })
	got := upload(port, 32<<20) // more than the buffers of both sockets hold
	close(ended)
	if !strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n") {
		t.Errorf("a server that reads nothing: %q", got)
	}
}

// dribble is a connection that takes a byte for each write, and none after some.
type dribble struct {
	net.Conn
	left int
}

func (d *dribble) SetReadDeadline(time.Time) error  { return nil }
func (d *dribble) SetWriteDeadline(time.Time) error { return nil }
func (d *dribble) Write(p []byte) (int, error) {
	if d.left == 0 {
		return 0, timeoutError{}
	}
	d.left--
	if len(p) == 1 {
		return 1, nil
	}
	return 1, timeoutError{}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// TestNET23_ProgressIsByByte: each byte that a server takes is progress; only a whole period without one ends an upload.
func TestNET23_ProgressIsByByte(t *testing.T) {
	for _, tc := range []struct {
		takes, want int
		ok          bool
	}{{10, 10, true}, {100, 10, true}, {9, 9, false}, {0, 0, false}} {
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := &dribble{left: tc.takes}
		x := &transfer{client: &client{Server: s, conn: d}, up: &upstream{conn: d}}
		n, err := progressWriter{x}.Write([]byte("0123456789"))
		if n != tc.want || (err == nil) != tc.ok {
			t.Errorf("takes %d: %d, %v", tc.takes, n, err)
		}
	}
}

// TestNET32_InterimAndExpect: the 100 of srt is the only one that a client which asked for it gets.
func TestNET32_InterimAndExpect(t *testing.T) {
	s := script(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"+ok200)
	h := start(t, baseRules)
	p := h.dial()
	p.send("PUT http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n%s\r\n", s.port, auth)
	p.want("HTTP/1.1 100 Continue\r\n\r\n") // before the body
	p.send("hi")
	p.want("HTTP/1.1 102 Processing\r\n\r\n" + ok200)
	if got, want := <-s.got, fmt.Sprintf("PUT / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nhi", s.port); got != want {
		t.Errorf("%q", got)
	}
}
