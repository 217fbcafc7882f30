package inspect

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestTLS43_TLS44_TLS46_REQ14_Defaults: the times and sizes that other tests shorten.
func TestTLS43_TLS44_TLS46_REQ14_Defaults(t *testing.T) {
	want := Limits{FirstHead: 10 * time.Second, Idle: 6 * time.Second, Stall: 300 * time.Second, Linger: 5 * time.Second, RefusalLinger: time.Second,
		Head: 16 << 10, BodyKept: 64 << 20}
	if got := (Limits{}).withDefaults(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	own := Limits{FirstHead: 1, Idle: 2, Cap: 3, Stall: 4, Linger: 5, RefusalLinger: 6, Head: 7, BodyKept: 8}
	if got := own.withDefaults(); got != own {
		t.Errorf("%+v, want %+v", got, own)
	}
}

// TestTLS46_LingerEnds: after an answer input is read and dropped, for its time and no longer, however much comes; and what the client
// had still to read is there.
func TestTLS46_LingerEnds(t *testing.T) {
	for name, judge := range map[string]func(ctx, *Request, *Outgoing) (*Outgoing, Answer){
		"a refusal":  func(ctx, *Request, *Outgoing) (*Outgoing, Answer) { return nil, Answer("no") },
		"a response": nil,
	} {
		o := &origin{t: t, answer: always(ok200)}
		h := &passing{judge: judge, dial: o.dial}
		l := Limits{Linger: 200 * time.Millisecond, RefusalLinger: 200 * time.Millisecond}
		s := serve(t.Context(), t, h, l)
		s.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		flood := make(chan struct{})
		go func() {
			defer close(flood)
			for block := make([]byte, 4096); ; { // until the connection is no more
				if _, err := s.Write(block); err != nil {
					return
				}
			}
		}()
		want := "no"
		if judge == nil {
			want = closed
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(s, got); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		<-s.done
		_ = s.Close()
		<-flood
	}
	near, far := net.Pipe() // a client that says nothing more and does not leave
	done := make(chan struct{})
	go func() {
		defer close(done)
		Serve(t.Context(), far, nil, &passing{judge: func(ctx, *Request, *Outgoing) (*Outgoing, Answer) { return nil, Answer("no") }},
			Limits{RefusalLinger: 50 * time.Millisecond})
		_ = far.Close()
	}()
	_, _ = io.WriteString(near, get)
	if got, _ := io.ReadAll(near); string(got) != "no" {
		t.Errorf("%q", got)
	}
	<-done
}
