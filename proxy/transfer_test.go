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
	"github.com/srt-sandbox/srt/runtime/policy"
)

func TestUpstreamConnectionsAreUsedAgain(t *testing.T) {
	opened := make(chan struct{}, 64)
	port := serveEach(t, func(c *net.TCPConn) {
		opened <- struct{}{}
		br := bufio.NewReader(c)
		for {
			if _, err := rawRequest(br); err != nil {
				return
			}
			if _, err := io.WriteString(c, ok200); err != nil {
				return
			}
		}
	}).Port
	network, _ := policy.NewNetwork(baseRules)
	rules := &Rules{Network: network}
	h := start(t, baseRules, func(o *Options) { o.Policy = func() *Rules { return rules } })
	get := fmt.Sprintf("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", port, auth)
	p := h.dial()
	for range 3 {
		p.send("%s", get)
		p.want(ok200)
	}
	if len(opened) != 1 {
		t.Errorf("one client: %d connections", len(opened))
	}
	p.Close()
	parked := func() bool { h.server.idle.mu.Lock(); defer h.server.idle.mu.Unlock(); return h.server.idle.count == 1 }
	if !settles(parked) {
		t.Fatal("the connection was not kept")
	}
	p = h.dial()
	p.send("%s", get)
	p.want(ok200)
	if len(opened) != 1 {
		t.Errorf("next client: %d connections", len(opened))
	}
	// Another command, and changed rules, get connections of their own.
	q := h.dial()
	q.send("%s", strings.Replace(get, auth, credentials("srt.QQ==", testToken), 1))
	q.want(ok200)
	if len(opened) != 2 {
		t.Errorf("other command: %d connections", len(opened))
	}
}

func TestNET16_RulesOfAnIdleConnection(t *testing.T) {
	network, _ := policy.NewNetwork(baseRules)
	a, b := &Rules{Network: network}, &Rules{Network: network}
	u := &upstream{rules: a}
	if u.fit(upstreamKey{}, b) {
		t.Error("a connection is used under other rules than it was dialled under")
	}
}

func TestStaleConnectionIsReplaced(t *testing.T) {
	// Each connection answers one request and closes without saying so.
	s := script(t, ok200)
	h := start(t, baseRules)
	p := h.dial()
	for range 20 {
		p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", s.port, auth)
		p.want(ok200)
	}
}

func TestNET33_ClientThatLeavesEndsTheRequest(t *testing.T) {
	for _, body := range []string{"", "Content-Length: 100\r\n"} {
		ended := make(chan struct{})
		started := make(chan struct{})
		port := serveEach(t, func(c *net.TCPConn) {
			close(started)
			_, _ = io.Copy(io.Discard, c)
			close(ended)
		}).Port
		h := start(t, baseRules)
		p := h.dial()
		p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s%s\r\n", port, body, auth)
		<-started
		p.Close()
		<-ended
	}
}

func TestNET33_BrokenBodyEndsTheConnection(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!\r\n0\r\n\r\n",
	} {
		_, got := exchangeWith(t, script(t, answer), "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: a\r\n"+auth+"\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || strings.HasSuffix(got, "0\r\n\r\n") {
			t.Errorf("%q", got)
		}
	}
}

func TestLargeBodies(t *testing.T) {
	const size = 5<<20 + 7
	port := serveEach(t, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		for {
			head, err := httphead.ReadHead(br, nil)
			if err != nil {
				return
			}
			req, err := httphead.ParseRequest(head)
			if err != nil {
				return
			}
			f, n, _ := req.Framing()
			body := io.LimitReader(br, n)
			if f == httphead.Chunked {
				body = httphead.NewChunkedReader(br)
			}
			if got, err := io.Copy(io.Discard, body); err != nil || got != size {
				fmt.Fprintf(c, "HTTP/1.1 400 got %d\r\nContent-Length: 0\r\n\r\n", got)
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
			_, _ = c.Write(make([]byte, size))
		}
	}).Port
	h := start(t, baseRules)
	p := h.dial()
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
	for range 2 {
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n", port, size, auth)
		_, _ = p.Write(make([]byte, size))
		p.want(answer)
		p.take(size)
		p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%s\r\n%x\r\n", port, auth, size)
		_, _ = p.Write(make([]byte, size))
		p.send("\r\n0\r\n\r\n")
		p.want(answer)
		p.take(size)
	}
}

func TestEarlyResponse(t *testing.T) {
	port := serveEach(t, func(c *net.TCPConn) {
		br := bufio.NewReader(c)
		_, _ = httphead.ReadHead(br, nil)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, br)
	}).Port
	h := start(t, baseRules)
	p := h.dial()
	p.send("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n%s\r\nbegin", port, auth)
	p.want("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
	p.send("more")
	p.CloseWrite()
	if got := p.rest(); got != "" {
		t.Errorf("%q", got)
	}
}

// TestNET23_StalledUpload: a body is given up for lack of progress, not for its duration.
func TestNET23_StalledUpload(t *testing.T) {
	const stall = 600 * time.Millisecond
	s := script(t, ok200)
	h := start(t, baseRules, func(o *Options) { o.Limits.Stall = stall })
	head := fmt.Sprintf("POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n%s\r\n", s.port, auth)
	p := h.dial()
	p.send("%s", head)
	for range 6 { // longer than the limit in all
		time.Sleep(stall / 5)
		p.send("x")
	}
	p.want(ok200)
	p = h.dial()
	p.send("%sx", head)
	if got := p.rest(); got != "" {
		t.Errorf("a stalled upload gets %q", got)
	}
}
