package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience ends a test that hangs. Nothing is asserted about it.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && !settles(func() bool { return !running() }) {
		fmt.Fprintln(os.Stderr, "goroutines of tunnels are left behind")
		code = 1
	}
	os.Exit(code)
}

func running() bool {
	buf := make([]byte, 4<<20)
	return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "relay.(*Running)")
}

func settles(holds func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}

// connPair returns the two ends of a connection, "tcp" or "unix".
func connPair(t testing.TB, network string) (a, b net.Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		_ = c.SetDeadline(time.Now().Add(patience))
		t.Cleanup(func() { c.Close() })
	}
	return a, b
}

// joined starts a tunnel between two connections and returns their far ends.
func joined(t testing.TB, first, second string, tunnel Tunnel) (client, server net.Conn, done chan struct{}) {
	client, server, done, _ = joinedRunning(t, first, second, tunnel)
	return client, server, done
}

func joinedRunning(t testing.TB, first, second string, tunnel Tunnel) (client, server net.Conn, done chan struct{}, r *Running) {
	t.Helper()
	client, tunnel.A = connPair(t, first)
	server, tunnel.B = connPair(t, second)
	for _, c := range []net.Conn{tunnel.A, tunnel.B} {
		_ = c.SetDeadline(time.Time{})
	}
	done = make(chan struct{})
	tunnel.Done = func() { close(done) }
	return client, server, done, tunnel.Start()
}

var kinds = []string{"tcp", "unix"}

func eachKind(t *testing.T, f func(t *testing.T, first, second string)) {
	for _, first := range kinds {
		for _, second := range kinds {
			t.Run(first+"-"+second, func(t *testing.T) { f(t, first, second) })
		}
	}
}

func TestNET25_HalfCloseInBothOrders(t *testing.T) {
	eachKind(t, func(t *testing.T, first, second string) {
		client, server, done := joined(t, first, second, Tunnel{ToA: []byte("to client "), ToB: []byte("to server ")})
		for i, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			from, to := ends[0], ends[1]
			payload := bytes.Repeat([]byte{byte('a' + i)}, 3<<20+5)
			go func() {
				_, _ = from.Write(payload)
				_ = CloseWrite(from)
			}()
			got, err := io.ReadAll(to)
			prefix := []string{"to server ", "to client "}[i]
			if err != nil || string(got) != prefix+string(payload) {
				t.Fatalf("direction %d: %d bytes, %v", i, len(got), err)
			}
		}
		<-done
	})
}

func TestDeadEndsCloseTheTunnel(t *testing.T) {
	reset := func(c net.Conn) {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
	eachKind(t, func(t *testing.T, first, second string) {
		for name, kill := range map[string]func(dead, other net.Conn){
			"reset":                  func(dead, _ net.Conn) { reset(dead) },
			"half-closed, then dead": func(dead, other net.Conn) { _ = CloseWrite(dead); readEOF(t, other); reset(dead) },
			"while the other sends": func(dead, other net.Conn) {
				go func() {
					for {
						if _, err := other.Write(make([]byte, 1<<16)); err != nil {
							return
						}
					}
				}()
				_, _ = io.ReadFull(dead, make([]byte, 1<<20))
				reset(dead)
			},
		} {
			for _, which := range []int{0, 1} {
				client, server, done := joined(t, first, second, Tunnel{})
				ends := []net.Conn{client, server}
				kill(ends[which], ends[1-which])
				// The other end closes nothing: finding the dead one must be enough. A Unix socket that was only half-closed
				// and a TCP socket that was closed in order look alike until something is sent to them, so those are reset.
				select {
				case <-done:
				case <-time.After(patience):
					t.Fatalf("%s, side %d: the tunnel lives on", name, which)
				}
			}
		}
	})
}

func readEOF(t *testing.T, c net.Conn) {
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read: %v", err)
	}
}

func TestClosedInOrder(t *testing.T) {
	client, server, done := joined(t, "tcp", "tcp", Tunnel{})
	client.Close()
	readEOF(t, server)
	server.Close()
	<-done
}

// TestBufferedEnds covers ends that are no plain sockets, such as TLS connections.
func TestBufferedEnds(t *testing.T) {
	client, a := connPair(t, "tcp")
	server, b := connPair(t, "tcp")
	_ = b.SetDeadline(time.Time{})
	done := make(chan struct{})
	Tunnel{A: a, B: wrapped{b.(*net.TCPConn)}, Done: func() { close(done) }}.Start()
	for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
		_, _ = ends[0].Write([]byte("hello"))
		_ = CloseWrite(ends[0])
		if got, err := io.ReadAll(ends[1]); err != nil || string(got) != "hello" {
			t.Errorf("%q, %v", got, err)
		}
	}
	<-done
}

// wrapped hides everything of a socket but what tls.Conn has as well.
type wrapped struct{ c *net.TCPConn }

func (w wrapped) Read(p []byte) (int, error)         { return w.c.Read(p) }
func (w wrapped) Write(p []byte) (int, error)        { return w.c.Write(p) }
func (w wrapped) Close() error                       { return w.c.Close() }
func (w wrapped) CloseWrite() error                  { return w.c.CloseWrite() }
func (w wrapped) LocalAddr() net.Addr                { return w.c.LocalAddr() }
func (w wrapped) RemoteAddr() net.Addr               { return w.c.RemoteAddr() }
func (w wrapped) SetDeadline(d time.Time) error      { return w.c.SetDeadline(d) }
func (w wrapped) SetReadDeadline(d time.Time) error  { return w.c.SetReadDeadline(d) }
func (w wrapped) SetWriteDeadline(d time.Time) error { return w.c.SetWriteDeadline(d) }
