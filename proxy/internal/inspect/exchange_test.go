package inspect

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

const (
	get      = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	kept     = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\nok"
	closed   = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
	toServer = "GET / HTTP/1.1\r\nHost: up.test\r\n\r\n"
)

// TestTLS38_OneUpstream: requests of equal key share the one connection, if nothing speaks against it.
func TestTLS38_OneUpstream(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer string
		keys   [2]any
		dials  int
	}{
		{"kept", ok200, [2]any{"a", "a"}, 1},
		{"no key", ok200, [2]any{nil, nil}, 1},
		{"another key", ok200, [2]any{"a", "b"}, 2},
		{"the server closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", [2]any{}, 2},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", [2]any{}, 2},
		{"stray bytes", ok200 + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", [2]any{}, 2},
		{"one stray byte", ok200 + "x", [2]any{}, 2},
	} {
		t.Run("TLS-38 "+tc.name, func(t *testing.T) {
			n := 0
			h := &passing{judge: func(_ ctx, _ *Request, out *Outgoing) (*Outgoing, Answer) {
				out.Key = tc.keys[n]
				n++
				return out, nil
			}}
			o := &origin{t: t, answer: always(tc.answer)}
			h.dial = o.dial
			s := serve(t.Context(), t, h, quick)
			for range 2 {
				s.send(get)
				r, err := http.ReadResponse(bufio.NewReader(s), nil)
				if err != nil || r.Header.Get("Keep-Alive") != "timeout=5" {
					t.Fatal(r, err)
				}
				if body, err := io.ReadAll(r.Body); string(body) != "ok" || err != nil {
					t.Fatalf("%q, %v", body, err)
				}
			}
			s.CloseWrite()
			if rest := s.rest(); rest != "" || o.dials != tc.dials {
				t.Errorf("%d dials, then %q", o.dials, rest)
			}
		})
	}
}

// TestTLS38_Stale: a connection that was used before and breaks ends the client's without an answer; nothing is replayed.
func TestTLS38_Stale(t *testing.T) {
	n := 0
	h, o := &passing{}, &origin{t: t}
	o.answer = func(*http.Request) string {
		if n++; n == 1 {
			return ok200
		}
		return ""
	}
	h.dial = o.dial
	s := serve(t.Context(), t, h, quick)
	s.send(get)
	s.expect(kept)
	s.send(get)
	if rest := s.rest(); rest != "" {
		t.Errorf("back %q", rest)
	}
	if o.got() != toServer+toServer || o.dials != 1 || len(h.failures) > 0 {
		t.Errorf("%q, %d dials, %v", o.got(), o.dials, h.failures)
	}
}

// TestTLS29_KeepAlive: what a client says about its connection.
func TestTLS29_KeepAlive(t *testing.T) {
	for _, tc := range []struct {
		in   string
		keep bool
	}{
		{get, true},
		{"GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n", false},
		{"GET / HTTP/1.0\r\n\r\n", false},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
		{"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
	} {
		h := &passing{}
		_, back := exchanged(t, h, &origin{answer: always(ok200)}, tc.in+"GET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		want := closed
		if tc.keep {
			want = kept + closed
		}
		if back != want || len(h.judged) != strings.Count(want, "HTTP/1.1") {
			t.Errorf("%q: %q, %q", tc.in, back, h.judged)
		}
	}
}

// TestREQ3_Refusal: a refusal is sent as it is and nothing more is read.
func TestREQ3_Refusal(t *testing.T) {
	h := &passing{judge: func(ctx, *Request, *Outgoing) (*Outgoing, Answer) { return nil, Answer("no") }}
	o := &origin{answer: always(ok200)}
	if _, back := exchanged(t, h, o, get+get); back != "no" || len(h.judged) != 1 || o.dials > 0 {
		t.Errorf("%q, %q", back, h.judged)
	}
	// Bytes of a body that is still coming do not destroy the answer (TLS-46), and no "100 Continue" invites them (TLS-34).
	s := serve(t.Context(), t, h, Limits{RefusalLinger: time.Minute})
	s.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3000000\r\n\r\n")
	s.expect("no")
	s.send(strings.Repeat("a", 1<<20))
	s.Close()
	<-s.done
	// Neither an answer nor a request: just close.
	h.judge = func(ctx, *Request, *Outgoing) (*Outgoing, Answer) { return nil, nil }
	if _, back := exchanged(t, h, o, get+get); back != "" {
		t.Errorf("back %q", back)
	}
	// Both: the refusal counts.
	h.judge = func(_ ctx, _ *Request, out *Outgoing) (*Outgoing, Answer) { return out, Answer("no") }
	if _, back := exchanged(t, h, o, get+get); back != "no" || o.dials > 0 {
		t.Errorf("back %q", back)
	}
}

// TestTLS34_Expect: "100 Continue" comes once the body is wanted, once, and not after a final response.
func TestTLS34_Expect(t *testing.T) {
	const post = "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
	for name, judge := range map[string]func(ctx, *Request, *Outgoing) (*Outgoing, Answer){
		"wanted by the server": nil,
		"wanted by the handler": func(_ ctx, r *Request, out *Outgoing) (*Outgoing, Answer) {
			if b, err := io.ReadAll(r.Body); string(b) != "abc" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			return out, nil
		},
	} {
		o := &origin{t: t, answer: always(ok200)}
		h := &passing{judge: judge, dial: o.dial}
		s := serve(t.Context(), t, h, quick)
		s.send(post)
		s.expect("HTTP/1.1 100 Continue\r\n\r\n")
		s.send("abc")
		if back := s.rest(); back != closed {
			t.Errorf("%s: %q", name, back)
		}
	}
	for value, answer := range map[string]string{"a": answer417, "100-continue, 100-continue": answer417} {
		if _, back := exchanged(t, &passing{}, &origin{answer: always(ok200)}, "GET / HTTP/1.1\r\nHost: x\r\nExpect: "+value+"\r\n\r\n"); back != answer {
			t.Errorf("%q: %q", value, back)
		}
	}
	if _, back := exchanged(t, &passing{}, &origin{answer: always(ok200)}, "GET / HTTP/1.0\r\nExpect: what\r\n\r\n"); back != closed {
		t.Errorf("HTTP/1.0: %q", back)
	}
}

// TestTLS34_EarlyResponse: a response before the end of the request is relayed, and the connection ends.
func TestTLS34_EarlyResponse(t *testing.T) {
	for _, in := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		h := &passing{dial: scripted(t, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", false)}
		s := serve(t.Context(), t, h, quick)
		s.send(in)
		if back := s.rest(); back != "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno" || len(h.failures) > 0 {
			t.Errorf("%q, %v", back, h.failures)
		}
	}
}

// TestTLS34_ClientCutsShort: a body that the client cuts short never looks complete at the server.
func TestTLS34_ClientCutsShort(t *testing.T) {
	for _, in := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
	} {
		o := &origin{t: t, answer: func(*http.Request) string { t.Errorf("%q: complete", in); return ok200 }}
		h := &passing{dial: o.dial}
		s := serve(t.Context(), t, h, quick)
		s.send(in)
		s.CloseWrite()
		if back := s.rest(); back != "" || len(h.failures)+len(h.malformed) > 0 {
			t.Errorf("back %q, %v, %v", back, h.failures, h.malformed)
		}
		o.conns.Wait()
		if got := o.got(); strings.HasSuffix(got, "0\r\n\r\n") || len(o.bad) != 1 {
			t.Errorf("%q, %v", got, o.bad)
		}
	}
}

// TestTLS39_WaitsForResponse, and a client that leaves meanwhile ends the request.
func TestTLS39_ClientLeavesWhileWaiting(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan error, 1)
	h := &passing{dial: func(ctx) (net.Conn, error) {
		near, far := pair(t)
		go func() {
			br := bufio.NewReader(far)
			httphead.ReadHead(br, nil)
			close(arrived)
			_, err := br.ReadByte()
			gone <- err
		}()
		return near, nil
	}}
	s := serve(t.Context(), t, h, Limits{})
	s.send(get)
	<-arrived
	s.Close()
	if err := <-gone; err == nil {
		t.Error("the server was sent more")
	}
	<-s.done
	if len(h.failures) > 0 {
		t.Error(h.failures)
	}
}

// TestREQ12_ClientLeaves: the context of a decision, and of a dial, ends when the client leaves.
func TestREQ12_ClientLeaves(t *testing.T) {
	for _, in := range []string{get, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"} {
		for _, dialling := range []bool{false, true} {
			judging := make(chan struct{})
			wait := func(ctx ctx) {
				close(judging)
				<-ctx.Done()
				if !is(context.Cause(ctx), ErrClientGone) {
					t.Errorf("cause: %v", context.Cause(ctx))
				}
			}
			h := &passing{}
			h.dial = func(ctx context.Context) (net.Conn, error) { wait(ctx); return nil, ctx.Err() }
			h.judge = func(ctx context.Context, _ *Request, out *Outgoing) (*Outgoing, Answer) {
				if !dialling {
					wait(ctx)
					out.Dial = func(context.Context) (net.Conn, error) { t.Error("dialled"); return nil, io.EOF }
				}
				return out, nil
			}
			s := serve(t.Context(), t, h, Limits{})
			s.send(in)
			<-judging
			s.Close()
			<-s.done
			if len(h.failures) > 0 {
				t.Error(h.failures)
			}
		}
	}
}

// TestServe_ContextEnds: both connections are cut with the context of the server, whatever is on its way.
func TestServe_ContextEnds(t *testing.T) {
	for _, in := range []string{"", "GET", get, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"} {
		all, stop := context.WithCancel(t.Context())
		h := &passing{dial: func(ctx) (net.Conn, error) {
			near, far := pair(t)
			go func() { io.Copy(io.Discard, far) }()
			stop()
			return near, nil
		}}
		s := serve(all, t, h, Limits{})
		s.send(in)
		if len(in) < 4 {
			stop()
		}
		if _, err := readAll(s); err == nil && len(in) > 4 {
			t.Errorf("%q: an orderly end", in)
		}
	}
}

// TestDrain: once told so, an idle connection ends at once, and another one after its response.
func TestPRX6_Drain(t *testing.T) {
	drain, begin := context.WithCancel(t.Context())
	o := &origin{t: t}
	h := &passing{dial: o.dial}
	o.answer = func(*http.Request) string { begin(); return ok200 }
	l := quick
	l.Drain, l.FirstHead = drain, time.Hour
	idle := serve(t.Context(), t, h, l)
	busy := serve(t.Context(), t, h, l)
	busy.send(get)
	if back := busy.rest(); back != closed && back != kept {
		t.Errorf("back %q", back)
	}
	if back := idle.rest(); back != "" {
		t.Errorf("idle: %q", back)
	}
}

// TestTake: a connection is handed over with what has been read of it, and without deadlines.
func TestTake(t *testing.T) {
	var got string
	var left error
	h := &passing{judge: func(_ ctx, r *Request, _ *Outgoing) (*Outgoing, Answer) {
		return &Outgoing{Take: func(conn net.Conn, br *bufio.Reader) {
			defer conn.Close()
			io.WriteString(conn, "200")
			b, err := io.ReadAll(br)
			got, left = string(b), err
		}}, nil
	}}
	for range 2 {
		client, server := pair(t)
		done := make(chan bool)
		go func() { done <- Serve(t.Context(), server, nil, h, quick) }()
		io.WriteString(client, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nearly")
		if _, err := io.ReadFull(client, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(client, " late")
		client.CloseWrite()
		if taken := <-done; !taken || got != "early late" || left != nil {
			t.Errorf("%t, %q, %v", taken, got, left)
		}
	}
	// A CONNECT that is forwarded like a request would open a tunnel that nobody looks into.
	if _, back := exchanged(t, &passing{}, &origin{answer: always(ok200)}, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"); !strings.HasPrefix(back, "HTTP/1.1 502") {
		t.Errorf("back %q", back)
	}
}

// TestTLS38_Failed: what failed is told to the handler, and nothing at all is sent if that says nothing.
func TestTLS38_Failed(t *testing.T) {
	refused := errors.New("refused")
	h := &passing{dial: func(ctx) (net.Conn, error) { return nil, refused }}
	if _, back := exchanged(t, h, &origin{}, get); !strings.HasPrefix(back, "HTTP/1.1 502") || !is(h.failures[0], refused) {
		t.Errorf("%q, %v", back, h.failures)
	}
	h.failed = func(*Request, error) Answer { return nil }
	if _, back := exchanged(t, h, &origin{}, get); back != "" {
		t.Errorf("back %q", back)
	}
	h = &passing{dial: scripted(t, "", true)}
	if _, back := exchanged(t, h, &origin{}, get); !strings.HasPrefix(back, "HTTP/1.1 502") || !is(h.failures[0], ErrNoResponse) {
		t.Errorf("%q, %v", back, h.failures)
	}
	h = &passing{dial: scripted(t, "HTTP/1.1 2", false)}
	if _, back := exchanged(t, h, &origin{}, get); !strings.HasPrefix(back, "HTTP/1.1 502") || !is(h.failures[0], ErrBadResponse) {
		t.Errorf("%q, %v", back, h.failures)
	}
}

// TestTLS29_KeptAfterUpload: a server that answers at the last byte of a long body does not cost the client its connection,
// although the goroutine that sent the byte has not ended yet.
func TestTLS29_KeptAfterUpload(t *testing.T) {
	o := &origin{t: t, answer: always(ok200)}
	h := &passing{dial: o.dial}
	s := serve(t.Context(), t, h, quick)
	body := strings.Repeat("x", 40<<10)
	for range 100 {
		s.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 40960\r\n\r\n" + body)
		s.expect(kept)
		s.send(chunkedPost(chunks(body, 9999) + "0\r\n\r\n"))
		s.expect(kept)
	}
	s.Close()
	<-s.done
	if o.dials != 1 {
		t.Errorf("%d dials", o.dials)
	}
}
