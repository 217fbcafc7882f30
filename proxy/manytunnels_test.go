//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// memory is what the process holds: heap and stacks, in bytes, after a collection.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestFiveThousandIdleTunnels: what an idle tunnel holds on the host side, and that nothing of it stays. The two ends are
// in another process, which has its own descriptors.
func TestFiveThousandIdleTunnels(t *testing.T) {
	tunnels := 5000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if most := int(min(limit.Cur, 1<<20))/2 - 100; most < tunnels {
		t.Logf("%d descriptors suffice for %d tunnels, not for %d", limit.Cur, most, tunnels)
		tunnels = most
	}
	const bound = 16 << 10
	h := start(t, baseRules, func(o *Options) { o.Limits.Connections = tunnels })
	before, goroutines := memory(), runtime.NumGoroutine()
	out, stop := startHelper(t, "idle-ends "+h.addr+" "+strconv.Itoa(tunnels))
	if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	if !settles(func() bool { return runtime.NumGoroutine()-goroutines <= 2*tunnels }) {
		t.Errorf("%d goroutines for %d tunnels", runtime.NumGoroutine()-goroutines, tunnels)
	}
	each := int(memory()-before) / tunnels
	t.Logf("%d tunnels: %d bytes each", tunnels, each)
	if each > bound {
		t.Errorf("%d bytes for an idle tunnel", each)
	}
	// The limit of clients is reached, and the next one waits its turn; it is served when tunnels end.
	waiting := h.dial()
	waiting.send("CONNECT 127.0.0.1:22 HTTP/1.1\r\n%s\r\n", auth)
	stop()
	if got := waiting.rest(); got != refused403("host is on the deny list") {
		t.Errorf("%q", got)
	}
	if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.conns) == 0 }) {
		t.Errorf("%d connections are left", len(h.server.conns))
	}
}

// TestSlowPeersHoldBoundedMemory: however much the fast end of a transfer has to send, a slow other end makes the proxy
// hold its buffers and no more. Each way of moving bytes has clients that stop reading, or servers that do.
func TestSlowPeersHoldBoundedMemory(t *testing.T) {
	const clients, bound = 64, 128 << 10 // buffers of 32 KiB and 4 KiB, stacks, and what the pools keep
	chunk := make([]byte, 64<<10)        // shared, so that it does not count
	flood := serveEach(t, func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 512))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for {
			if _, err := io.WriteString(c, "10000\r\n"); err != nil {
				return
			}
			if _, err := c.Write(chunk); err != nil {
				return
			}
			if _, err := io.WriteString(c, "\r\n"); err != nil {
				return
			}
		}
	}).Port
	silent := serveEach(t, func(c *net.TCPConn) { // reads one segment and then nothing
		_, _ = c.Read(make([]byte, 1))
		<-t.Context().Done()
	}).Port
	whole := slices.Concat([]byte("10000\r\n"), chunk, []byte("\r\n"))
	addr := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	for name, open := range map[string]func(*peer){
		"response to a client that reads nothing": func(p *peer) {
			p.send("GET http://%s/ HTTP/1.1\r\nHost: a\r\n%s\r\n", addr(flood), auth)
		},
		"tunnel to a client that reads nothing": func(p *peer) {
			p.send("CONNECT %s HTTP/1.1\r\n%s\r\nGET / HTTP/1.1\r\n\r\n", addr(flood), auth)
		},
		"upload to a server that reads nothing": func(p *peer) {
			p.send("POST http://%s/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n%s\r\n", addr(silent), auth)
			go func() {
				for {
					if _, err := p.Write(whole); err != nil {
						return
					}
				}
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, baseRules)
			before := memory()
			for range clients {
				open(h.dial())
			}
			if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.conns) == 2*clients }) {
				t.Fatal("not every transfer has begun")
			}
			for range 5 { // while it goes on
				each := (int(memory()) - int(before)) / clients
				if t.Logf("%d bytes each", each); each > bound {
					t.Errorf("%d bytes for a stalled transfer", each)
				}
			}
		})
	}
}

// startHelper runs a program of this file until stop is called, which waits for it.
func startHelper(t *testing.T, args string) (out io.Reader, stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestHelper$")
	cmd.Env = append(os.Environ(), helperVariable+"="+args)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	return out, stop
}
