package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

func newReader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }

// observing is a filter that allows with an OnResponse.
func observing(on func(int, []HeaderField)) RequestFilter {
	return allowing(FilterDecision{OnResponse: on})
}

// TestCase20_REQ20_OnResponse: once for each final response, with what is stripped and without what is hop-by-hop.
func TestCase20_REQ20_OnResponse(t *testing.T) {
	type seen struct {
		status int
		header []HeaderField
	}
	var got []seen
	filter := observing(func(status int, header []HeaderField) {
		got = append(got, seen{status, slices.Clone(header)})
		for i := range header {
			header[i] = HeaderField{"Changed", "by the filter"}
		}
	})
	s := script(t, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nSet-Cookie: a\r\nConnection: X-Hop\r\nX-Hop: 1\r\nset.cookie: b\r\nContent-Length: 0\r\n\r\n")
	h := start(t, baseRules, filtered(Filtering{Filter: filter}), func(o *Options) { o.StripResponseHeaders = []string{"set_cookie"} })
	p := h.dial()
	p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", s.port, auth)
	want := "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	if client := p.rest(); client != want {
		t.Errorf("client %q", client)
	}
	header := []HeaderField{{"Set-Cookie", "a"}, {"set.cookie", "b"}, {"Content-Length", "0"}}
	if len(got) != 1 || got[0].status != 404 || !slices.Equal(got[0].header, header) {
		t.Errorf("%+v", got)
	}
}

// TestREQ20_NotForAnswersOfSrt: a request that gets no response shows none.
func TestREQ20_NotForAnswersOfSrt(t *testing.T) {
	filter := observing(func(status int, _ []HeaderField) { t.Errorf("shown %d", status) })
	bad := script(t, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")
	for _, port := range []int{closedPort(t), bad.port} {
		h := start(t, baseRules, filtered(Filtering{Filter: filter}))
		p := h.dial()
		p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", port, auth)
		if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
			t.Errorf("%q", got)
		}
	}
}

// TestREQ20_HostileOnResponse: what it does, the client has its response.
func TestREQ20_HostileOnResponse(t *testing.T) {
	for name, on := range map[string]func(int, []HeaderField){
		"panics":             func(int, []HeaderField) { panic("at the response") },
		"ends its goroutine": func(int, []HeaderField) { runtime.Goexit() },
	} {
		var log bytes.Buffer
		s := script(t, ok200, ok200)
		h := start(t, baseRules, filtered(Filtering{Filter: observing(on)}), func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		p := h.dial()
		for range 2 {
			p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", s.port, auth)
			p.want(ok200)
		}
		p.Close()
		_ = h.server.Close() // whose goroutines write no log any more
		if logged := strings.Contains(log.String(), "at the response"); logged != (name == "panics") {
			t.Errorf("%s: %q", name, log.String())
		}
	}
}

// TestREQ12_ServerThatCloses: a filter and an OnResponse may close the server, or wait for ever, and Close returns.
func TestREQ12_ServerThatCloses(t *testing.T) {
	var h *harness
	forever := make(chan struct{})
	defer close(forever)
	for name, filter := range map[string]RequestFilter{
		"a filter closes": func(context.Context, *FilterRequest) (FilterDecision, error) {
			return FilterDecision{Action: FilterAllow}, h.server.Close()
		},
		"a filter waits": func(context.Context, *FilterRequest) (FilterDecision, error) {
			go func() { _ = h.server.Close() }()
			<-forever
			return FilterDecision{}, nil
		},
		"a filter reads": func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			go func() { _ = h.server.Close() }()
			_, err := io.ReadAll(r.Body)
			if err == nil {
				t.Error("the body has an end")
			}
			return FilterDecision{Action: FilterAllow}, err
		},
		"OnResponse closes": observing(func(int, []HeaderField) { _ = h.server.Close() }),
		"OnResponse waits": observing(func(int, []HeaderField) {
			go func() { _ = h.server.Close() }()
			<-forever
		}),
	} {
		t.Run(name, func(t *testing.T) {
			body := "2\r\n"
			if strings.HasPrefix(name, "OnResponse") {
				body = "0\r\n\r\n"
			}
			s := script(t, ok200)
			h = start(t, baseRules, filtered(Filtering{Filter: filter}))
			p := h.dial()
			p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%s\r\n%s", s.port, auth, body)
			_, _ = io.ReadAll(p.br) // until the server has closed
			if err := h.server.Close(); err != nil {
				t.Error(err)
			}
			if forwarded := len(s.got) > 0; forwarded != strings.HasPrefix(name, "OnResponse") {
				t.Errorf("forwarded %v", forwarded)
			}
		})
	}
}

// TestREQ12_OneCallForEachRequestConcurrently: no filter waits for another connection's.
func TestREQ12_OneCallForEachRequestConcurrently(t *testing.T) {
	const clients = 32
	var together sync.WaitGroup
	together.Add(clients)
	var mu sync.Mutex
	calls := map[string]int{}
	filter := func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		mu.Lock()
		calls[r.RequestTarget]++
		mu.Unlock()
		together.Done()
		together.Wait()
		return FilterDecision{Action: FilterAllow, SetHeaders: []HeaderField{{"X-Target", r.RequestTarget}}}, nil
	}
	port := serveEach(t, func(c *net.TCPConn) {
		got, err := rawRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		target := strings.Fields(got)[1]
		if !strings.Contains(got, "X-Target: "+target+"\r\n") {
			t.Errorf("%q", got)
		}
		_, _ = io.WriteString(c, ok200)
	}).Port
	h := start(t, baseRules, filtered(Filtering{Filter: filter, AllowPlaintextHeaderSet: true}))
	var done sync.WaitGroup
	for i := range clients {
		p := h.dial()
		done.Go(func() {
			fmt.Fprintf(p, "GET http://127.0.0.1:%d/%d HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", port, i, auth)
			if b, err := io.ReadAll(p.br); err != nil || !strings.HasSuffix(string(b), "hi") {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	done.Wait()
	if len(calls) != clients {
		t.Errorf("%v", calls)
	}
}

// cruelError is an error whose text cannot be had.
type cruelError struct{}

func (*cruelError) Error() string { panic("no text") }

// TestREQ16_ErrorsWithoutAText: an error denies, even one that panics when it is printed.
func TestREQ16_ErrorsWithoutAText(t *testing.T) {
	for name, filter := range map[string]RequestFilter{
		"panicking": func(context.Context, *FilterRequest) (FilterDecision, error) {
			return FilterDecision{Action: FilterAllow}, &cruelError{}
		},
		"nil pointer": func(context.Context, *FilterRequest) (FilterDecision, error) {
			return FilterDecision{Action: FilterAllow}, (*cruelError)(nil)
		},
		"panic with it": func(context.Context, *FilterRequest) (FilterDecision, error) { panic(&cruelError{}) },
		"panic(\"\")":   func(context.Context, *FilterRequest) (FilterDecision, error) { panic("") },
		"Goexit": func(context.Context, *FilterRequest) (FilterDecision, error) {
			runtime.Goexit()
			return FilterDecision{Action: FilterAllow}, nil
		},
	} {
		j := judging(t, Options{Filtering: Filtering{Filter: filter}})
		a, refused := j.judgeRequest(t.Context(), inTunnel(t, "GET", "/", "Host: x"))
		if !refused || a.status != "403 Forbidden" || !strings.HasPrefix(a.body, "sandbox policy check failed: ") {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestREQ17_DecisionsAreCopied: a filter that goes on using what it returned changes nothing that was checked.
func TestREQ17_DecisionsAreCopied(t *testing.T) {
	set := []HeaderField{{"A", "good"}}
	remove := []string{"B"}
	j := judging(t, Options{Filtering: Filtering{Filter: func(context.Context, *FilterRequest) (FilterDecision, error) {
		return FilterDecision{Action: FilterAllow, SetHeaders: set, RemoveHeaders: remove}, nil
	}}})
	r := inTunnel(t, "GET", "/", "Host: x", "B: 1")
	d, failed, err := callFilter(t.Context(), j.filtering.Filter, r, j.filterRequest(r))
	set[0], remove[0] = HeaderField{"A", "bad\r\nX: y"}, "C"
	if err != nil || failed != "" || d.SetHeaders[0].Value != "good" || d.RemoveHeaders[0] != "B" {
		t.Errorf("%+v, %q, %v", d, failed, err)
	}
}
