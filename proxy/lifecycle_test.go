package proxy

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func (h *harness) held() int {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	return len(h.server.conns)
}

// TestKilledClientsLeaveNothing: whatever a client was doing when it went away, its connections are released.
func TestKilledClientsLeaveNothing(t *testing.T) {
	_, port := echo(t)
	silent := serveEach(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }).Port
	h := start(t, baseRules)
	for name, begin := range map[string]func() *peer{
		"nothing sent":      func() *peer { return h.dial() },
		"in a head":         func() *peer { p := h.dial(); p.send("GET http://"); return p },
		"open tunnel":       func() *peer { return h.tunnel(fmt.Sprintf("127.0.0.1:%d", port)) },
		"tunnel to silence": func() *peer { return h.tunnel(fmt.Sprintf("127.0.0.1:%d", silent)) },
		"bytes in flight": func() *peer {
			p := h.tunnel(fmt.Sprintf("127.0.0.1:%d", port))
			p.send("%s", strings.Repeat("x", 1<<18))
			return p
		},
		"request": func() *peer {
			p := h.dial()
			p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n%s\r\n", silent, auth)
			return p
		},
		"request body": func() *peer {
			p := h.dial()
			p.send("PUT http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n%s\r\nx", silent, auth)
			return p
		},
		"SOCKS greeting": func() *peer { p := h.dial(); p.send("\x05\x01\x02"); return p },
	} {
		for _, kill := range []bool{false, true} {
			p := begin()
			if kill { // the kernel resets the connections of a process that dies with unread input
				_ = p.SetLinger(0)
			}
			p.Close()
			if !settles(func() bool { return h.held() == 0 }) {
				t.Errorf("%s, reset %v: %d connections are held", name, kill, h.held())
			}
		}
	}
	if n := len(h.server.slots); n != 0 {
		t.Errorf("%d slots are taken", n)
	}
}

// TestUpstreamThatDiesEndsTheTunnel is the other side of it.
func TestUpstreamThatDiesEndsTheTunnel(t *testing.T) {
	port := serveEach(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		_ = c.SetLinger(0)
	}).Port
	h := start(t, baseRules)
	p := h.tunnel(fmt.Sprintf("127.0.0.1:%d", port))
	p.send("x")
	if _, err := p.Read(make([]byte, 1)); err == nil {
		t.Error("data from nowhere")
	}
	if !settles(func() bool { return h.held() == 0 }) {
		t.Error("connections are held")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	_, port := echo(t)
	silent := serveEach(t, func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }).Port
	h := start(t, baseRules)
	extra := listen(t)
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(extra) }()
	peers := []*peer{h.dial(), h.tunnel(fmt.Sprintf("127.0.0.1:%d", port)), connect(t, extra.Addr().String())}
	waiting := h.dial()
	waiting.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n%s\r\n", silent, auth)
	peers = append(peers, waiting)
	if !settles(func() bool { return h.held() >= 6 }) {
		t.Errorf("%d connections", h.held())
	}
	if err := h.server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	for i, p := range peers {
		if _, err := p.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d is open", i)
		}
	}
	if n := h.held(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
	// A goroutine is counted out in its last statement, and may still be on its way from there.
	if !settles(func() bool { return goroutines() == 0 }) {
		t.Errorf("%d goroutines after Close", goroutines())
	}
}

// TestIdleTunnelsAreSmall is the target of 16 KiB for an idle tunnel: heap and stacks of both goroutines together.
func TestIdleTunnelsAreSmall(t *testing.T) {
	const tunnels, limit = 500, 16 << 10
	port := serveEach(t, func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1)) }).Port
	h := start(t, baseRules)
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	open := make([]net.Conn, 0, tunnels)
	before := used()
	goroutinesBefore := runtime.NumGoroutine()
	for range tunnels {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", port, auth)
		if _, err := io.ReadFull(c, make([]byte, len(established))); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	// Each tunnel may keep two goroutines; the third is the test's own server.
	if !settles(func() bool { return runtime.NumGoroutine()-goroutinesBefore <= 3*tunnels }) {
		t.Errorf("%d goroutines for %d tunnels", runtime.NumGoroutine()-goroutinesBefore, tunnels)
	}
	// What is counted includes the test's two ends, so the real figure is lower.
	if each := (used() - before) / tunnels; each > limit {
		t.Errorf("%d bytes for an idle tunnel", each)
	} else {
		t.Logf("%d bytes for an idle tunnel and its two ends", each)
	}
	runtime.KeepAlive(open)
}

func TestUnixListener(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules)
	path := filepath.Join(t.TempDir(), "proxy")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(l) }()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testPatience))
	fmt.Fprintf(c, "CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\nhello", port, auth)
	_ = c.(*net.UnixConn).CloseWrite()
	_, _ = io.ReadAll(c)
	h.server.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestConnectionLimit(t *testing.T) {
	_, port := echo(t)
	h := start(t, baseRules, func(o *Options) { o.Limits.Connections = 2 })
	first := h.tunnel(fmt.Sprintf("127.0.0.1:%d", port))
	h.tunnel(fmt.Sprintf("127.0.0.1:%d", port))
	third := h.connectTo(fmt.Sprintf("127.0.0.1:%d", port)) // waits in the backlog
	first.Close()
	third.want(established)
}
