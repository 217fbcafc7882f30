package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// reading is a filter that reads up to n bytes of the body, all of it if n is negative, and allows.
func reading(n int64, got *string) RequestFilter {
	return func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		d := FilterDecision{Action: FilterAllow}
		if r.Body == nil {
			*got = "none"
			return d, nil
		}
		from := r.Body
		if n >= 0 {
			from = io.LimitReader(from, n)
		}
		b, err := io.ReadAll(from)
		*got = string(b)
		return d, err
	}
}

// TestCase18_REQ14_Bodies: a body that a filter has read, all of it, some of it or nothing, goes out as it came.
func TestCase18_REQ14_Bodies(t *testing.T) {
	for _, tc := range []struct {
		name, version, method, fields, body string
		all                                 string // what the filter reads at most
	}{
		{"case 18", "1.1", "GET", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", "abc"},
		{"trailer", "1.1", "PUT", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n2\r\nbc\r\n0\r\nTail: x\r\n\r\n", "abc"},
		{"length", "1.1", "POST", "Content-Length: 5\r\n", "hello", "hello"},
		{"HTTP/1.0", "1.0", "DELETE", "Content-Length: 5\r\n", "hello", "hello"},
		{"no body", "1.1", "POST", "", "", "none"},
		{"empty, by length", "1.1", "POST", "Content-Length: 0\r\n", "", ""},
		{"empty chunked", "1.1", "POST", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", ""},
		{"HEAD", "1.1", "HEAD", "Content-Length: 2\r\n", "hi", "hi"},
	} {
		for _, n := range []int64{-1, 0, 1, 3} {
			t.Run(fmt.Sprintf("%s, %d bytes", tc.name, n), func(t *testing.T) {
				s := script(t, strings.TrimSuffix(ok200, "hi"))
				var got string
				upstream, client := exchangeWith(t, s, fmt.Sprintf("%s http://127.0.0.1:PORT/ HTTP/%s\r\nHost: a\r\n%sConnection: close\r\n%s\r\n%s",
					tc.method, tc.version, tc.fields, auth, tc.body), filtered(Filtering{Filter: reading(n, &got)}))
				want := tc.all
				if n >= 0 && want != "none" {
					want = want[:min(int(n), len(want))]
				}
				if got != want {
					t.Errorf("the filter read %q of %q, client %q", got, want, client)
				}
				head := fmt.Sprintf("%s / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n", tc.method, s.port, tc.fields)
				body, ok := strings.CutPrefix(upstream, head)
				if decoded, trailer := unchunked(t, tc.fields, body); !ok || tc.all != "none" && decoded != tc.all || trailer != strings.Contains(tc.body, "Tail: x") {
					t.Errorf("upstream got %q", upstream)
				}
			})
		}
	}
}

// unchunked decodes a body that may be chunked, and tells whether it has a trailer section.
func unchunked(t *testing.T, fields, body string) (decoded string, trailer bool) {
	if !strings.Contains(fields, "chunked") {
		return body, false
	}
	r := httphead.NewChunkedReader(newReader(body))
	b, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("%q: %v", body, err)
	}
	return string(b), len(r.Trailer()) > 0
}

// TestREQ14_Limit: 64 MiB can be read, and all of a longer body goes out.
func TestREQ14_Limit(t *testing.T) {
	for _, extra := range []int{0, 1, 100_000} {
		size := bodyKept + extra
		sum := make(chan int64, 1)
		port := serveEach(t, func(c *net.TCPConn) {
			br := newReader("")
			br.Reset(c)
			if _, err := httphead.ReadHead(br, nil); err != nil {
				return
			}
			n, last := int64(0), byte(0)
			buf := make([]byte, 256<<10)
			for n < int64(size) {
				m, err := br.Read(buf)
				for _, b := range buf[:m] {
					if b != last {
						t.Errorf("byte %d is %d", n, b)
						return
					}
					last = (last + 1) % 251
					n++
				}
				if err != nil {
					break
				}
			}
			sum <- n
			_, _ = io.WriteString(c, ok200)
		}).Port
		var read int64
		var failed error
		h := start(t, baseRules, filtered(Filtering{Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			read, failed = io.Copy(io.Discard, r.Body)
			return FilterDecision{Action: FilterAllow}, nil
		}}))
		p := h.dial()
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n", port, size, auth)
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i % 251)
		}
		if _, err := p.Write(body); err != nil {
			t.Fatal(err)
		}
		if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%q", got)
		}
		if n := <-sum; n != int64(size) || read != int64(min(size, bodyKept)) || errors.Is(failed, ErrBodyLimit) != (extra > 0) {
			t.Errorf("%d of %d arrived, the filter read %d, %v", n, size, read, failed)
		}
	}
}

// TestREQ14_NET32_TheBodyIsAskedForWhenItIsWanted: by a filter that reads, else once the request is allowed.
func TestREQ14_NET32_TheBodyIsAskedForWhenItIsWanted(t *testing.T) {
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	for _, reads := range []bool{true, false} {
		asked, decide := make(chan struct{}), make(chan struct{})
		filter := func(_ context.Context, r *FilterRequest) (d FilterDecision, err error) {
			if reads {
				_, err = io.ReadAll(r.Body)
			}
			close(asked)
			<-decide
			return FilterDecision{Action: FilterAllow}, err
		}
		s := script(t, ok200)
		h := start(t, baseRules, filtered(Filtering{Filter: filter}))
		p := h.dial()
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n%s\r\n", s.port, auth)
		if reads {
			p.want(goOn)
			p.send("hi")
			<-asked
			close(decide)
			p.want(ok200[:len("HTTP/1.1 200 OK\r\n")])
		} else {
			<-asked
			close(decide)
			p.want(goOn)
			p.send("hi")
		}
		if got := p.rest(); strings.Contains(got, "100") || !strings.HasSuffix(got, "hi") {
			t.Errorf("reads %v: %q", reads, got)
		}
		if got := <-s.got; !strings.HasSuffix(got, "\r\n\r\nhi") || !strings.Contains(got, "Expect: 100-continue\r\n") {
			t.Errorf("reads %v: upstream %q", reads, got)
		}
	}
	// Who is refused is not asked for the body.
	h := start(t, baseRules, filtered(Filtering{Filter: denying("no", 0)}))
	p := h.dial()
	p.send("POST http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n%s\r\n", auth)
	if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("%q", got)
	}
}

// TestREQ14_BodiesThatAreNone: what a filter cannot read to its end is not forwarded, whatever it decides.
func TestREQ14_BodiesThatAreNone(t *testing.T) {
	for name, body := range map[string]string{
		"bad chunk": "3\r\nabcX\r\n", "bad size": "z\r\n", "bare LF": "1\na\r\n", "endless trailer": "0\r\nA: " + strings.Repeat("x", 32<<10),
	} {
		s := script(t, ok200)
		var failed error
		h := start(t, baseRules, filtered(Filtering{Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			_, failed = io.ReadAll(r.Body)
			return FilterDecision{Action: FilterAllow}, nil
		}}))
		p := h.dial()
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%s\r\n%s", s.port, auth, body)
		if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 400 Bad Request\r\n") || failed == nil || len(s.got) != 0 {
			t.Errorf("%s: %q, the filter got %v", name, got, failed)
		}
	}
}

// TestREQ12_REQ14_ClientThatLeavesItsBody: the filter's read fails and its context ends; nothing is dialled.
func TestREQ12_REQ14_ClientThatLeavesItsBody(t *testing.T) {
	for _, framing := range []string{"Content-Length: 9", "Transfer-Encoding: chunked"} {
		ended := make(chan error, 1)
		s := script(t, ok200)
		asked := make(chan struct{})
		h := start(t, baseRules, filtered(Filtering{Filter: func(ctx context.Context, r *FilterRequest) (FilterDecision, error) {
			close(asked)
			_, err := io.ReadAll(r.Body)
			<-ctx.Done()
			ended <- err
			return FilterDecision{Action: FilterAllow}, nil
		}}))
		p := h.dial()
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n%s\r\n2\r\n", s.port, framing, auth)
		<-asked
		p.Close()
		if err := <-ended; err == nil {
			t.Error("half a body looked complete")
		}
		if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.conns) == 0 }) {
			t.Error("the client was not released")
		}
		h.wantLines()
		if len(s.got) != 0 {
			t.Error("the request was forwarded")
		}
	}
}

// TestREQ14_NobodyReadsAfterTheDecision: a reader that the filter leaves behind gets nothing more, and disturbs nothing.
func TestREQ14_NobodyReadsAfterTheDecision(t *testing.T) {
	const requests = 20
	answers := make([]string, requests)
	for i := range answers {
		answers[i] = ok200
	}
	s := script(t, answers...)
	left := make(chan error, requests)
	h := start(t, baseRules, filtered(Filtering{Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		go func() {
			var err error
			for buf := make([]byte, 1); err == nil; {
				_, err = r.Body.Read(buf)
			}
			left <- err
		}()
		return FilterDecision{Action: FilterAllow}, nil
	}}))
	p := h.dial()
	body := strings.Repeat("0123456789", 1000)
	for range requests {
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n%s", s.port, len(body), auth, body)
		p.want(ok200)
		if got := <-s.got; !strings.HasSuffix(got, "\r\n\r\n"+body) {
			t.Fatalf("upstream got %d bytes", len(got))
		}
		if err := <-left; !errors.Is(err, ErrBodyClosed) && !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
	}
}
