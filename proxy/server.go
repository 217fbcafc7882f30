package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/local"
	"github.com/srt-sandbox/srt/proxy/internal/relay"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// ErrServerClosed is returned for listeners that are handed to a server after [Server.Close].
var ErrServerClosed = errors.New("the proxy server is closed")

// Server is the host side of a sandbox's network: an HTTP and SOCKS5 proxy that lets through what the policy allows.
// Make one with [New]. All methods may be called from any goroutine.
//
// A Server is what the clients of one listener see. The one that New returns has no identity; [Server.ServeFor] and
// [Server.NewCapture] make others, which share all but that.
type Server struct {
	*shared
	// identity is the attribution key of every client, whatever its user name says; empty: the user name tells (NET-21).
	identity    string
	names       *Names // that synthetic addresses stand for; nil: none
	onViolation func(violation.Event)
}

// shared is what all views of a server have in common.
type shared struct {
	policy           func() *policy.Network
	commands         *policy.CommandLists
	askUser          func(context.Context, Question) (Answer, error)
	token            string
	open             bool
	resolver         Resolver
	connectTCP       func(context.Context, *net.Dialer, netip.AddrPort) (net.Conn, error) // connectTCP, but for tests
	parent           router
	requireHostMatch bool
	refuseOpaque     bool
	strip            []string // folded names, see foldName
	filtering        Filtering
	log              *slog.Logger
	limits           Limits
	roots            *x509.CertPool // that TLS servers are verified against; nil: the system's

	slots chan struct{} // one for each client
	idle  idlePool

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	conns     map[net.Conn]struct{} // of clients and upstream servers, to be closed by Close
	wg        sync.WaitGroup        // every goroutine
}

// Serve accepts clients of l, HTTP or SOCKS5 by their first byte (NET-22), until Close is called (nil) or l fails. It
// takes ownership of l. Several listeners may be served at once. A listener of TCP connections is relayed without
// copying; Unix stream sockets work as well.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, s.handleClient) }

// ServeFor is Serve for a listener that only the processes of one command can reach. key is its attribution key (its
// commandId, else its text): every client of l is attributed to it and judged by the list that is registered under it,
// whatever user name the client presents, as a user name is a label that anyone may write (NET-21). An empty key is Serve.
//
// The token is still asked for, but of a CONNECT to port 873 without any Proxy-Authorization: rsync cannot present
// credentials to its RSYNC_PROXY.
//
// n, unless it is nil, holds the names that the command's resolver has given addresses to: a client that looks a name up by itself,
// and asks for the address, asks for the name.
func (s *Server) ServeFor(l net.Listener, key string, n *Names) error {
	view := s.as(key).knowing(n)
	return view.serve(l, view.handleClient)
}

// knowing returns the server as those see it who were told addresses that stand for names.
func (s *Server) knowing(n *Names) *Server {
	if n == nil {
		return s
	}
	return &Server{shared: s.shared, identity: s.identity, names: n, onViolation: s.onViolation}
}

// as returns the server as the clients of one command see it.
func (s *Server) as(key string) *Server {
	if key == "" {
		return s
	}
	view := &Server{shared: s.shared, identity: key}
	if onViolation := s.onViolation; onViolation != nil {
		view.onViolation = func(e violation.Event) {
			e.CommandID = key
			onViolation(e)
		}
	}
	return view
}

// Forward relays every client of l to the proxy that listens on a port of the host's loopback, unfiltered: no policy, no
// token, no violations (NET-64, for httpProxyPort and socksProxyPort). It takes ownership of l and returns like Serve.
func (s *Server) Forward(l net.Listener, hostPort int) error {
	return s.serve(l, func(c net.Conn) { s.forward(c, hostPort) })
}

// serve accepts connections and runs handle for each in a goroutine of its own. handle owns the connection.
func (s *Server) serve(l net.Listener, handle func(net.Conn)) error {
	if !s.addListener(l) {
		_ = l.Close()
		return ErrServerClosed
	}
	defer s.dropListener(l)
	local.Listener(l)
	for delay := time.Duration(0); ; {
		c, err := l.Accept()
		if err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			if !temporary(err) {
				return err
			}
			// Out of descriptors, or a client that left before it was accepted: the listener itself is sound.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.log.Debug("proxy: accept failed, trying again", "error", err, "delay", delay)
			select {
			case <-time.After(delay):
			case <-s.ctx.Done():
			}
			continue
		}
		delay = 0
		select {
		case s.slots <- struct{}{}:
		case <-s.ctx.Done():
			_ = c.Close()
			return nil
		}
		if !s.track(c) {
			return nil
		}
		go func() {
			defer s.wg.Done()
			handle(c)
		}()
	}
}

// temporary reports whether accepting may work again later.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// Close closes the listeners and every connection and waits until the server's goroutines have ended. It returns nil;
// further calls wait as well.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.cancel()
	for l := range s.listeners {
		_ = l.Close()
	}
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.idle.close()
	s.wg.Wait()
	return nil
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.listeners[l] = struct{}{}
	s.wg.Add(1)
	return true
}

func (s *Server) dropListener(l net.Listener) {
	_ = l.Close()
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	s.wg.Done()
}

// track registers a connection for Close and counts a goroutine of the server, which the caller starts or already is. If
// the server is closed it closes the connection instead and returns false.
func (s *Server) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return false
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	return true
}

// watch registers a connection for Close that has no goroutine of its own.
func (s *Server) watch(c net.Conn) bool {
	if !s.track(c) {
		return false
	}
	s.wg.Done()
	return true
}

// forget closes a tracked connection and releases it.
func (s *Server) forget(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// release forgets a client and lets the next one in.
func (s *Server) release(c net.Conn) {
	s.forget(c)
	<-s.slots
}

// join relays between a client and an upstream connection, both tracked, and returns at once: the goroutine that read the
// client's request ends and its buffers and stack go back, so that an idle tunnel costs little. It takes ownership.
func (s *Server) join(client, upstream net.Conn, toClient, toUpstream []byte) {
	s.joinThen(client, upstream, toClient, toUpstream, nil)
}

// joinThen is join with a function to be called, unless it is nil, when the tunnel has ended.
func (s *Server) joinThen(client, upstream net.Conn, toClient, toUpstream []byte, done func()) {
	s.wg.Add(1)
	relay.Tunnel{
		A: client, B: upstream, ToA: toClient, ToB: toUpstream,
		Done: func() {
			s.forget(upstream)
			s.release(client)
			if done != nil {
				done()
			}
			s.wg.Done()
		},
	}.Start()
}
