package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// never is a server that takes connections, and neither sends anything nor ends one.
func never(t *testing.T) int {
	return serveEach(t, func(*net.TCPConn) { <-t.Context().Done() }).Port
}

// allowPort are rules that allow a port of loopback.
func allowPort(port int) policy.NetworkRules {
	return policy.NetworkRules{AllowedDomains: []string{fmt.Sprintf("127.0.0.1:%d", port)}}
}

// TestCaptureCloseEndsItsTunnels: when a command has ended, what it had is released, whatever the server of a tunnel does,
// and what others have goes on.
func TestCaptureCloseEndsItsTunnels(t *testing.T) {
	port := never(t)
	c := capture(t, allowPort(port))
	dst := addrPortOf(port)
	other := c.harness.server.NewCapture(c.names, "another key")
	survivor := (&capturing{c.harness, other, c.names}).open(dst)
	open, half, closed := c.open(dst), c.open(dst), c.open(dst)
	_ = half.CloseWrite()
	closed.Close()
	if !settles(func() bool { return c.held() == 8 }) {
		t.Fatalf("%d connections", c.held())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if !settles(func() bool { return c.held() == 2 && len(c.srv().slots) == 1 }) {
		t.Errorf("%d connections and %d slots are held", c.held(), len(c.srv().slots))
	}
	for name, p := range map[string]*peer{"open": open, "half-closed": half} {
		if n, err := p.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
	w, err := c.Judge(testPID, dst)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := w.Dial(t.Context()); err == nil {
		t.Error("a dial after the end")
		_ = u.Close()
	}
	_ = c.Close() // does nothing
	_ = survivor.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := survivor.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("the tunnel of another command: %v", err)
	}
	survivor.Close()
	_ = other.Close()
	c.settled()
}

// TestSentBeforeTheEndIsDelivered: a program may send, close and end, as it may without a proxy. It has written all when it
// ends, while the server stands still.
func TestSentBeforeTheEndIsDelivered(t *testing.T) {
	const size = 8 << 20 // more than the buffers of a connection hold
	for name, end := range map[string]func(*capturing){
		"command": func(c *capturing) { _ = c.Close() },
		"session": func(c *capturing) { _ = c.Close(); _ = c.srv().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c, p, got, begin := stalled(t)
			sent := fill(p, size)
			p.Close()
			time.AfterFunc(5*time.Millisecond, begin)
			end(c)
			if n := <-got; n != int64(sent) {
				t.Errorf("%d bytes of %d arrived", n, sent)
			}
			if !settles(func() bool { return c.held() == 0 }) {
				t.Errorf("%d connections are held", c.held())
			}
		})
	}
}

// TestCloseCutsAtOnce_LIB35: the tunnels of commands that still run are cut when the session ends, with all that is on its way.
func TestCloseCutsAtOnce_LIB35(t *testing.T) {
	c, p, got, begin := stalled(t)
	sent := fill(p, 64<<20)
	if err := c.srv().Close(); err != nil {
		t.Error(err)
	}
	begin()
	if n := <-got; n >= int64(sent) {
		t.Errorf("all %d bytes arrived", n)
	}
	if n, err := p.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after the end", n)
	}
	if n := c.held(); n != 0 {
		t.Errorf("%d connections are held", n)
	}
}

// stalled is a program with a tunnel to a server that takes nothing until it begins, and what it has taken in the end.
func stalled(t *testing.T) (c *capturing, program *peer, got <-chan int64, begin func()) {
	t.Helper()
	taken, begun := make(chan int64, 1), make(chan struct{})
	port := serveEach(t, func(conn *net.TCPConn) {
		<-begun
		n, _ := io.Copy(io.Discard, conn)
		taken <- n
	}).Port
	c = capture(t, allowPort(port))
	return c, c.open(addrPortOf(port)), taken, func() { close(begun) }
}

// fill writes until the far side stands still, and says how much.
func fill(p *peer, size int) (sent int) {
	for chunk := make([]byte, 64<<10); sent < size; {
		_ = p.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := p.Write(chunk)
		if sent += n; err != nil {
			break
		}
	}
	return sent
}

// TestServerThatTakesNothingEndsAtTheEnd: what a server does not take is given up.
func TestServerThatTakesNothingEndsAtTheEnd(t *testing.T) {
	port := never(t)
	c := capture(t, allowPort(port))
	p := c.open(addrPortOf(port))
	_ = p.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = io.CopyN(p, strings.NewReader(strings.Repeat("x", 64<<20)), 64<<20)
	p.Close()
	_ = c.Close()
	c.settled()
}

// TestServeForEndsWithItsListener: the clients of the listener of a command are those of its processes.
func TestServeForEndsWithItsListener(t *testing.T) {
	port := never(t)
	h := serving(start(t, allowPort(port)))
	for name, serve := range map[string]func(net.Listener) error{
		"ServeFor": func(l net.Listener) error { return h.server.ServeFor(l, "the key", nil) },
		"no key":   func(l net.Listener) error { return h.server.ServeFor(l, "", nil) },
		"Forward":  func(l net.Listener) error { return h.server.Forward(l, port) },
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			served := make(chan error, 1)
			go func() { served <- serve(l) }()
			p := connect(t, l.Addr().String())
			if name != "Forward" {
				p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", port, auth)
				p.want(established)
				plain := connect(t, l.Addr().String())
				plain.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n%s\r\n", port, auth)
				if !settles(func() bool { return h.held() == 4 }) {
					t.Fatalf("%d connections", h.held())
				}
			} else if !settles(func() bool { return h.held() == 2 }) {
				t.Fatalf("%d connections", h.held())
			}
			l.Close()
			<-served
			if _, err := p.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("the tunnel: %v", err)
			}
			if !settles(func() bool { return h.held() == 0 && len(h.server.slots) == 0 }) {
				t.Errorf("%d connections and %d slots are held", h.held(), len(h.server.slots))
			}
		})
	}
}

// TestServeForEndsThoughItIsFull: the command that has all the connections there are ends as well.
func TestServeForEndsThoughItIsFull(t *testing.T) {
	port := never(t)
	h := serving(start(t, allowPort(port), func(o *Options) { o.Limits.Connections = 1 }))
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- h.server.ServeFor(l, "the key", nil) }()
	p := connect(t, l.Addr().String())
	p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", port, auth)
	p.want(established)
	waiting := connect(t, l.Addr().String())
	waiting.send("C")
	if !settles(func() bool { return strings.Contains(stacks(), "(*Server).admit") }) {
		t.Fatal("the second client is not waiting")
	}
	l.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if !settles(func() bool { return h.held() == 0 && len(h.server.slots) == 0 }) {
		t.Errorf("%d connections and %d slots are held", h.held(), len(h.server.slots))
	}
}

// TestClientThatClosedBehindItsBytesIsFound: a server that takes nothing cannot keep a tunnel alive that nobody has.
func TestClientThatClosedBehindItsBytesIsFound(t *testing.T) {
	port := never(t)
	c := capture(t, allowPort(port))
	c.srv().sweepEvery = 20 * time.Millisecond
	alive := c.open(addrPortOf(port))
	for _, p := range []*peer{alive, c.open(addrPortOf(port))} {
		_ = p.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		for _, err := p.Write(make([]byte, 1<<20)); err == nil; {
			_, err = p.Write(make([]byte, 1<<20))
		}
		if p != alive { // a reset, as for a program that has not read all. Behind a mere end the probes bring it.
			_ = p.SetLinger(0)
			p.Close()
		}
	}
	if !settles(func() bool { return c.held() == 2 }) {
		t.Fatalf("%d connections are held", c.held())
	}
	_ = alive.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := alive.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("the tunnel of a program that waits: %v", err)
	}
	alive.Close()
	_ = c.Close()
	c.settled()
}

// addrPortOf is a port of loopback as a program connects to it.
func addrPortOf(port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
}

// stacks are those of all goroutines.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
