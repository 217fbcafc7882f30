package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

func TestCaptureRelays(t *testing.T) {
	_, port := echo(t)
	c := capture(t, policy.NetworkRules{AllowedDomains: []string{"127.0.0.1", "name.test"}}, func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	for _, dst := range append(c.addresses("name.test", port), netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port))) {
		p := c.open(dst)
		p.send("%s", strings.Repeat("x", 1<<18))
		p.CloseWrite() // NET-25: what comes back still arrives
		if got := p.rest(); len(got) != 1<<18 {
			t.Errorf("%v: %d bytes", dst, len(got))
		}
		c.settled()
	}
	c.wantAll()
}

func TestNET25_case36_CapturedProgramLeavesWhileTheCallbackWaits(t *testing.T) {
	port, touched := touchedServer(t)
	waiting := make(chan struct{})
	a := &asked{answer: func(ctx context.Context) (Answer, error) {
		close(waiting)
		<-ctx.Done()
		return Answer{Allow: true}, nil
	}}
	c := capture(t, nowhere, asks(a))
	w, err := c.Judge(testPID, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := w.Dial(ctx)
		failed <- err
	}()
	<-waiting
	cancel()
	if err := <-failed; err == nil {
		t.Error("dialled")
	}
	c.settled()
	c.wantAll()
	if touched.Load() != 0 {
		t.Error("connected")
	}
}

func TestCapturedConnectionsCountAsConnections(t *testing.T) {
	_, port := echo(t)
	c := capture(t, baseRules, func(o *Options) { o.Limits.Connections = 2 })
	dst := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port))
	first := c.open(dst)
	c.tunnel(dst.String())
	w, err := c.Judge(testPID, dst)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Dial(ctx); err == nil {
		t.Error("a third connection")
	}
	opened := make(chan error, 1)
	go func() {
		u, err := w.Dial(t.Context())
		if err == nil {
			err = u.Close()
		}
		opened <- err
	}()
	first.Close()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestCaptureNoSlotInTime(t *testing.T) {
	_, port := echo(t)
	c := capture(t, baseRules, func(o *Options) { o.Limits.Connections, o.Limits.Dial = 1, 1 })
	c.srv().slots <- struct{}{}
	defer func() { <-c.srv().slots }()
	w, err := c.Judge(testPID, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dial(t.Context()); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("%v", err)
	}
}

func TestCapturedNameIsHeld(t *testing.T) {
	_, port := echo(t)
	c := capture(t, resolvedRules(fmt.Sprintf("127.0.0.1:%d", port)), func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	dst := c.addresses("name.test", port)[0]
	holds := func() int32 {
		c.names.mu.Lock()
		defer c.names.mu.Unlock()
		return c.names.find(dst.Addr()).holds
	}
	p := c.open(dst)
	if n := holds(); n != 1 {
		t.Errorf("%d holds", n)
	}
	p.Close()
	c.settled()
	if n := holds(); n != 0 {
		t.Errorf("%d holds after the tunnel", n)
	}
	w, err := c.Judge(testPID, dst)
	if err != nil {
		t.Fatal(err)
	}
	u, err := w.Dial(t.Context())
	if err != nil || holds() != 1 {
		t.Fatalf("%v, %d holds", err, holds())
	}
	_ = u.Close()
	if n := holds(); n != 0 {
		t.Errorf("%d holds after Close", n)
	}
	c.settled()
}

// The destination speaks first through a parent, in the same segment as its answer.
func TestNET61_CapturedThroughParent(t *testing.T) {
	port, got := fakeParent(t, "HTTP/1.1 200 OK\r\n\r\nbanner ")
	c := capture(t, parentRules, func(o *Options) {
		o.Parent, o.Resolver = mustParent(t, "", fmt.Sprintf("127.0.0.1:%d", port), ""), &fakeResolver{}
	})
	p := c.open(c.addresses("far.test", 22)[1])
	p.send("hello")
	p.want("banner hello")
	if r := <-got; !strings.HasPrefix(r, "CONNECT far.test:22 HTTP/1.1\r\n") {
		t.Errorf("%q", r)
	}
}

func TestCaptureRelayCallsDoneOnce(t *testing.T) {
	_, port := echo(t)
	c := capture(t, baseRules)
	dial := func() *CapturedUpstream {
		w, err := c.Judge(testPID, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)))
		if err != nil {
			t.Fatal(err)
		}
		u, err := w.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var calls atomic.Int32
	ended := make(chan struct{})
	p, conn := tcpPair(t)
	dial().Relay(conn, func() { calls.Add(1); close(ended) })
	p.Close()
	<-ended
	u := dial()
	p, conn = tcpPair(t)
	_ = c.srv().Close()
	u.Relay(conn, func() { calls.Add(1) })
	if n := calls.Load(); n != 2 {
		t.Errorf("done was called %d times for two tunnels", n)
	}
	if got, err := io.ReadAll(p.br); len(got) > 0 {
		t.Errorf("after Close: %q, %v", got, err)
	}
	w, err := c.Judge(testPID, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dial(t.Context()); err == nil {
		t.Error("a closed server dials")
	}
	c.settled()
}

// A server that is closed cuts a captured tunnel.
func TestCloseCutsCapturedTunnels(t *testing.T) {
	_, port := echo(t)
	c := capture(t, baseRules)
	p := c.open(netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port)))
	p.send("x")
	p.want("x")
	_ = c.srv().Close()
	if _, err := bufio.NewReader(p).ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
	c.settled()
}

// A dial to port 0 fails as it would on the host.
func TestCapturePort0(t *testing.T) {
	c := capture(t, baseRules)
	w, err := c.Judge(testPID, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dial(t.Context()); Errno(err) != syscall.ECONNREFUSED {
		t.Errorf("%v", err)
	}
	c.settled()
}

// Close may come at any moment of a captured connection's life, and leaves nothing.
func TestCloseAmidCapturedConnections(t *testing.T) {
	_, port := echo(t)
	for range 20 {
		c := capture(t, baseRules)
		dst := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", port))
		var begun, ended atomic.Int32
		var wg sync.WaitGroup
		started := make(chan struct{}, 8)
		for range 8 {
			program, conn := tcpPair(t)
			wg.Go(func() {
				defer program.Close()
				w, err := c.Judge(testPID, dst)
				if err != nil {
					t.Error(err)
					return
				}
				started <- struct{}{}
				u, err := w.Dial(t.Context())
				if err != nil {
					conn.Close()
					return
				}
				begun.Add(1)
				u.Relay(conn, func() { ended.Add(1) })
			})
		}
		<-started
		if err := c.srv().Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if !settles(func() bool { return begun.Load() == ended.Load() }) {
			t.Errorf("%d tunnels, %d ended", begun.Load(), ended.Load())
		}
		c.settled()
	}
}
