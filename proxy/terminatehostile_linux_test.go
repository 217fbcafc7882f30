package proxy

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestTLS41_300TunnelsAtTheCap(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	const tunnels = 300
	opened := make(chan *secured, tunnels)
	refused := make(chan string, tunnels)
	var wg sync.WaitGroup
	for range tunnels {
		wg.Go(func() {
			p := h.connectTo(h.target)
			if head := p.take(12); head != established[:12] {
				refused <- head
				return
			}
			p.want(established[12:])
			opened <- shakeOn(p, "name.test")
		})
	}
	wg.Wait()
	close(opened)
	close(refused)
	if len(opened) != defaultTunnels || len(refused) != tunnels-defaultTunnels {
		t.Errorf("%d opened, %d refused", len(opened), len(refused))
	}
	for head := range refused {
		if head != "HTTP/1.1 503" {
			t.Errorf("%q", head)
		}
	}
	if lines := h.lines(); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
	for c := range opened {
		h.clients = append(h.clients, c)
		wg.Go(func() {
			if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
				t.Error(status)
			}
		})
	}
	wg.Wait()
	h.free()
	if c := h.shake("name.test"); c != nil {
		if status, _, _ := c.ask("%s", h.get("/")); status != 200 {
			t.Error(status)
		}
	}
}

func TestTLS44_TLS45_ClientsThatDoNotRead(t *testing.T) {
	const size = 64 << 20
	sent := make(chan int, 1)
	h := terminating(t, nil)
	h.server.inspection.Stall = time.Second
	h.target = fmt.Sprintf("name.test:%d", bulkOrigin(t, size, sent))
	c := h.shake("name.test")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.send("%s", h.get("/"))
	got := <-sent // the server has found its connection cut
	runtime.ReadMemStats(&after)
	if got >= size {
		t.Error("all of it was taken")
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d KiB for one response", grown>>10)
	}
	c.Close()
	h.free()
}

// TestTLS44_SlowReadersLoseNothing: a client that takes longer than any stall may last, and goes on reading, has all of it.
func TestTLS44_SlowReadersLoseNothing(t *testing.T) {
	const size, step = 24 << 20, 2 << 20
	sent := make(chan int, 1)
	h := terminating(t, nil)
	h.server.inspection.Stall = 400 * time.Millisecond
	h.target = fmt.Sprintf("name.test:%d", bulkOrigin(t, size, sent))
	c := h.shake("name.test")
	c.send("%s", h.get("/"))
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for err == nil {
		<-time.After(100 * time.Millisecond)
		var m int64
		m, err = io.CopyN(io.Discard, resp.Body, step)
		n += m
	}
	if n != size || !errors.Is(err, io.EOF) || <-sent != size {
		t.Errorf("%d of %d bytes, %v", n, size, err)
	}
	c.tls.Close()
	h.free()
}

// bulkOrigin answers each request with size bytes and tells how many could be sent.
func bulkOrigin(t testing.TB, size int, sent chan<- int) (port int) {
	t.Helper()
	return serveTLS(t, func(c net.Conn) {
		if _, err := c.Read(make([]byte, 4096)); err != nil {
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		block, n := make([]byte, 64<<10), 0
		for n < size {
			w, err := c.Write(block)
			if n += w; err != nil {
				break
			}
		}
		sent <- n
	})
}

func TestTLS43_ClientsThatNeverFinishTheirHead(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	h.server.inspection.FirstHead = 200 * time.Millisecond
	c := h.shake("name.test")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // a byte now and then does not help
		for _, b := range []byte("GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 1000)) {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := c.tls.Write([]byte{b}); err != nil {
				return
			}
		}
	})
	if rest := c.rest(); rest != "" {
		t.Errorf("%q", rest)
	}
	close(stop)
	wg.Wait()
	o.untouched()
	h.free()
}

func TestTLS34_UploadsThatAreCutShort(t *testing.T) {
	for _, framing := range []string{"Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"} {
		complete := make(chan bool, 1)
		port := serveTLS(t, func(c net.Conn) {
			b, _ := io.ReadAll(c)
			complete <- strings.HasSuffix(string(b), "0\r\n\r\n") || strings.HasSuffix(string(b), "abcdefghij")
		})
		h := terminating(t, nil)
		h.target = fmt.Sprintf("name.test:%d", port)
		c := h.shake("name.test")
		c.send("POST / HTTP/1.1\r\nHost: x\r\n%s", framing)
		if !settles(func() bool { return h.held() == 2 }) { // the upstream leg stands
			t.Fatal("not dialled")
		}
		c.Close()
		if <-complete {
			t.Errorf("%q looks complete", framing)
		}
		h.free()
	}
}

func TestSmugglingThroughATunnel(t *testing.T) {
	o := serveOrigin(t, "name.test", nil)
	h := terminating(t, o)
	for _, tc := range []struct{ name, request string }{
		{"TE.CL", "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2e\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n0\r\n\r\n"},
		{"obfuscated TE", "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"TE twice", "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"signed length", "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"length list", "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"CR alone", "GET /1 HTTP/1.1\r\nHost: x\rGET /smuggled HTTP/1.1\r\n\r\n"},
		{"NUL", "GET /1 HTTP/1.1\r\nHost: x\r\nA: b\x00\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"huge chunk", "POST /1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := h.shake("name.test")
			if status, _, _ := c.ask("%s", tc.request); status != 400 {
				t.Error(status)
			}
			c.ended()
		})
	}
	for _, raw := range o.got() {
		if strings.Contains(raw, "smuggled") {
			t.Errorf("%q", raw)
		}
	}
	// Two requests in a row are two, each judged by itself.
	c := h.shake("name.test")
	c.send("POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab%s", h.get("/2"))
	for range 2 {
		if status, _, _ := c.response("GET"); status != 200 {
			t.Error(status)
		}
	}
	h.free()
}

func TestTunnelsEndWithTheirCommand(t *testing.T) {
	answering := make(chan struct{})
	hold := make(chan struct{})
	o := serveOrigin(t, "name.test", func(*http.Request, string) string { close(answering); <-hold; return plainOK })
	defer close(hold)
	h := terminating(t, o)
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- h.server.ServeFor(l, "the key", nil) }()
	p := connect(t, l.Addr().String())
	p.send("CONNECT %s HTTP/1.1\r\n%s\r\n", h.target, auth)
	p.want(established)
	c := shakeOn(p, "name.test")
	c.send("%s", h.get("/"))
	<-answering
	other := h.shake("name.test") // of another command
	l.Close()
	<-served
	if _, err := io.ReadAll(c.br); isTimeout(err) {
		t.Error(err)
	}
	other.send("x") // still open
	settles(func() bool { return h.held() == 1 })
	if n := h.held(); n != 1 {
		t.Errorf("%d connections are held", n)
	}
	h.free()
}

func TestCloseCutsTunnelsInEveryState(t *testing.T) {
	hold := make(chan struct{})
	o := serveOrigin(t, "name.test", func(*http.Request, string) string { <-hold; return plainOK })
	defer close(hold)
	h := terminating(t, o)
	silent := h.tunnel(h.target)
	begun := h.tunnel(h.target)
	begun.send("\x16\x03\x01\x02\x00")
	idle := h.shake("name.test")
	busy := h.shake("name.test")
	busy.send("%s", h.get("/"))
	settles(func() bool { return len(o.got()) == 1 })
	if err := h.server.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range []*peer{silent, begun, idle.peer, busy.peer} {
		if _, err := io.ReadAll(p.br); isTimeout(err) {
			t.Error(err)
		}
	}
	if n := h.held(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
}

// TestIdleTerminatedTunnelsAreSmall bounds what srt holds for a tunnel with an idle upstream leg, beyond what the two ends in this very
// process hold for a connection without it.
func TestIdleTerminatedTunnelsAreSmall(t *testing.T) {
	const tunnels = 100
	cost := func(open func() *tls.Conn) int64 {
		used := func() int64 {
			runtime.GC()
			runtime.GC() // what pools hold goes with the second
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc + m.StackInuse)
		}
		before := used()
		conns := make([]*tls.Conn, tunnels)
		for i := range conns {
			conns[i] = open()
			fetch(t, conns[i], bufio.NewReader(conns[i]), 100)
		}
		after := used()
		for _, c := range conns {
			c.Close()
		}
		return (after - before) / tunnels
	}
	ways := benchWays(t)
	direct, through := cost(ways["direct"]), cost(ways["terminated"])
	t.Logf("%d bytes for both ends of a connection, %d with a tunnel between them", direct, through)
	if own := through - direct; own > 128<<10 {
		t.Errorf("an idle tunnel holds %d KiB", own>>10)
	}
}
