package inspect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestREQ14_Body: what a handler reads is forwarded first and exactly once, however much of it that is.
func TestREQ14_Body(t *testing.T) {
	body := strings.Repeat("0123456789", 10000)
	for _, chunked := range []bool{false, true} {
		for _, read := range []int{0, 1, 4096, 50000, len(body) - 1, len(body), len(body) + 1} {
			for _, stream := range []int{0, 1, 70000} {
				h := &passing{judge: func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
					got, err := io.ReadAll(io.LimitReader(r.Body, int64(read)))
					if string(got) != body[:min(read, len(body))] || err != nil {
						t.Errorf("read %d: %d bytes, %v", read, len(got), err)
					}
					// A signer, say, reads the stream itself and sends something else in its place.
					first, err := io.ReadAll(io.LimitReader(r.Body.Stream(), int64(stream)))
					if err != nil {
						t.Error(err)
					}
					if stream > 0 {
						if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, ErrBodyClosed) {
							t.Errorf("Read after Stream: %v", err)
						}
					}
					out.Body = io.MultiReader(bytes.NewReader(first), r.Body.Stream())
					return out, nil
				}}
				in := "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n" + body
				if chunked {
					in = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(body, 7777) + "0\r\n\r\n"
				}
				up, back := exchanged(t, h, &origin{answer: always(ok200)}, in)
				if got := bodyOf(t, up); got != body || back != closed {
					t.Fatalf("chunked %t, read %d, stream %d: %d bytes; %q", chunked, read, stream, len(got), back)
				}
			}
		}
	}
}

// TestREQ14_BodyKept: beyond the limit reads fail, and the rest is forwarded all the same.
func TestREQ14_BodyKept(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		for _, tc := range []struct {
			length int
			err    error
		}{{999, nil}, {1000, nil}, {1001, ErrBodyLimit}, {90000, ErrBodyLimit}} {
			body := strings.Repeat("x", tc.length)
			h := &passing{judge: func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
				for range 2 {
					got, err := io.ReadAll(r.Body)
					if !errors.Is(err, tc.err) || len(got) > 1000 {
						t.Errorf("%d: %d bytes, %v", tc.length, len(got), err)
					}
				}
				out.Length = -1
				return out, nil
			}}
			o := &origin{t: t, answer: always(ok200)}
			h.dial = o.dial
			l := quick
			l.BodyKept = 1000
			s := serve(t.Context(), t, h, l)
			in := "PUT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(body, 100) + "0\r\n\r\n"
			if !chunked {
				in = "PUT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + itoa(tc.length) + "\r\n\r\n" + body
			}
			s.send(in)
			if back := s.rest(); back != closed {
				t.Errorf("%d: %q", tc.length, back)
			}
			if got := bodyOf(t, o.got()); got != body {
				t.Errorf("%d: %d bytes upstream", tc.length, len(got))
			}
		}
	}
}

// TestREQ12_BodyOfClientGone: a handler that reads is told that the client left.
func TestREQ12_BodyOfClientGone(t *testing.T) {
	for _, how := range []string{"read", "stream"} {
		h := &passing{judge: func(ctx context.Context, r *Request, out *Outgoing) (*Outgoing, Answer) {
			src := io.Reader(r.Body)
			if how == "stream" {
				src = r.Body.Stream()
			}
			if got, err := io.ReadAll(src); string(got) != "abc" || !is(err, ErrClientGone) {
				t.Errorf("%q, %v", got, err)
			}
			<-ctx.Done()
			return out, Answer("too late")
		}}
		s := serve(t.Context(), t, h, quick)
		s.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
		s.CloseWrite()
		if back := s.rest(); back != "" {
			t.Errorf("back %q", back)
		}
	}
}

// TestTLS30_BodyMalformed: a handler that reads is told, and the answer is that to a malformed request, whatever it says.
func TestTLS30_BodyMalformed(t *testing.T) {
	for _, answer := range []Answer{nil, Answer("no")} {
		h := &passing{judge: func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
			if got, err := io.ReadAll(r.Body); string(got) != "a" || !errors.Is(err, ErrBodyMalformed) {
				t.Errorf("%q, %v", got, err)
			}
			if answer != nil {
				return nil, answer
			}
			return out, nil
		}}
		o := &origin{answer: always(ok200)}
		if _, back := exchanged(t, h, o, chunkedPost("1\r\na\r\n?\r\n")); !strings.HasPrefix(back, "HTTP/1.1 400 ") || o.dials > 0 {
			t.Errorf("back %q", back)
		}
	}
}

// TestPRX53_JudgedWhileRead: a verdict need not wait for a body that is being read. A refusal is sent; what was let through
// cannot be forwarded, as nobody knows how far the reader has come.
func TestPRX53_JudgedWhileRead(t *testing.T) {
	for _, refuse := range []bool{true, false} {
		ended := make(chan error, 1)
		h := &passing{judge: func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
			first, err := r.Body.Read(make([]byte, 9))
			if first != 3 || err != nil {
				t.Error(first, err)
			}
			reading := make(chan struct{})
			go func() {
				close(reading)
				_, err := io.ReadAll(r.Body)
				ended <- err
			}()
			<-reading
			if refuse {
				return nil, Answer("HTTP/1.1 403 No\r\n\r\n")
			}
			for r.Body.mu.TryLock() { // until the other goroutine reads
				r.Body.mu.Unlock()
			}
			return out, nil
		}}
		h.dial = func(ctx) (c netConn, err error) { t.Error("dialled"); return nil, io.EOF }
		s := serve(t.Context(), t, h, quick)
		s.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
		want := "HTTP/1.1 502 "
		if refuse {
			want = "HTTP/1.1 403 "
		}
		if back := s.rest(); !strings.HasPrefix(back, want) {
			t.Errorf("back %q", back)
		}
		if err := <-ended; !errors.Is(err, ErrBodyClosed) {
			t.Error(err)
		}
	}
}

// TestBodyAfterJudge: a body that outlives its request gives nothing.
func TestBodyAfterJudge(t *testing.T) {
	var body *Body
	h := &passing{judge: func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
		body = r.Body
		return out, nil
	}}
	exchanged(t, h, &origin{answer: always(ok200)}, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc")
	if n, err := body.Read(make([]byte, 1)); n != 0 || !errors.Is(err, ErrBodyClosed) {
		t.Error(n, err)
	}
}

// TestTLS44_StalledJudge: a client that stalls while a handler reads its body is gone.
func TestTLS44_StalledJudge(t *testing.T) {
	h := &passing{judge: func(ctx context.Context, r *Request, out *Outgoing) (*Outgoing, Answer) {
		if got, err := io.ReadAll(r.Body); string(got) != "abc" || !is(err, ErrClientGone) {
			t.Errorf("%q, %v", got, err)
		}
		return out, nil
	}}
	s := serve(t.Context(), t, h, Limits{Stall: 50 * time.Millisecond})
	s.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
	if back, err := readAll(s); back != "" || err == nil {
		t.Errorf("%q, %v", back, err)
	}
}
