package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/proxy/internal/inspect"
	"github.com/srt-sandbox/srt/proxy/internal/local"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// ErrServerClosed is returned for listeners that are handed to a server after [Server.Close].
var ErrServerClosed = errors.New("the proxy server is closed")

// Server is the host side of a sandbox's network: an HTTP and SOCKS5 proxy that lets through what the policy allows.
// Make one with [New]. All methods may be called from any goroutine.
//
// A Server is what the clients of one listener see. The one that New returns has no identity; [Server.ServeFor] and
// [Server.NewCapture] make others, which share all but that, and whose connections end with them.
type Server struct {
	*shared
	ctx   context.Context // ends with the view, and with Close
	scope *scope          // of its connections
	// identity is the attribution key of every client, whatever its user name says; empty: the user name tells (NET-21).
	identity    string
	names       *Names // that synthetic addresses stand for; nil: none
	onViolation func(violation.Event)
}

// shared is what all views of a server have in common.
type shared struct {
	policy           func() *Rules
	commands         *policy.CommandLists
	askUser          func(context.Context, Question) (Answer, error)
	token            string
	open             bool
	resolver         Resolver
	connectTCP       func(context.Context, *net.Dialer, netip.AddrPort) (net.Conn, error) // connectTCP, but for tests
	parent           *Parent
	requireHostMatch bool
	refuseOpaque     bool
	strip            []string // folded names, see httphead.Fold
	filtering        Filtering
	injectable       func(config.Host) bool // whether a masked credential may go there (CRED-21); nil: none
	terminate        *Termination           // nil: every tunnel is opaque
	tunnels          tunnelSlots
	credentials      *credential.Store   // nil: none
	plaintextInject  bool                // they may also be put into plain requests
	collected        *semaphore.Weighted // bytes of bodies held to be signed, or to be sent with another length
	inspection       inspect.Limits      // but for tests the zero value
	log              *slog.Logger
	limits           Limits
	sweepEvery       time.Duration  // sweepEvery, but for tests
	roots            *x509.CertPool // that TLS servers are verified against; nil: the system's

	slots chan struct{} // one for each client
	idle  idlePool

	cancel    context.CancelFunc // ends the context of every view
	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]struct{}
	views     map[*Server]struct{} // that have not ended
	conns     map[net.Conn]tracked // of clients and upstream servers, to be closed by Close
	sweeper   *time.Timer          // nil: there are no tunnels, or the sweep is on
	wg        sync.WaitGroup       // every goroutine
	leaving   sync.WaitGroup       // those that see tunnels out
}

// Serve accepts clients of l, HTTP or SOCKS5 by their first byte (NET-22), until Close is called (nil) or l fails. It
// takes ownership of l. Several listeners may be served at once. A listener of TCP connections is relayed without
// copying; Unix stream sockets work as well.
func (s *Server) Serve(l net.Listener) error { return s.serve(l, s.handleClient) }

// ServeFor is Serve for a listener that only the processes of one command can reach. key is its attribution key (its
// commandId, else its text): every client of l is attributed to it and judged by the list that is registered under it,
// whatever user name the client presents, as a user name is a label that anyone may write (NET-21). An empty key only does
// not do that. When l is closed or fails the command has ended: so do the connections of its clients, as with
// [Capture.Close].
//
// The token is still asked for, but of a CONNECT to port 873 without any Proxy-Authorization: rsync cannot present
// credentials to its RSYNC_PROXY.
//
// n, unless it is nil, holds the names that the command's resolver has given addresses to: a client that looks a name up by itself,
// and asks for the address, asks for the name.
func (s *Server) ServeFor(l net.Listener, key string, n *Names) error {
	view := s.view(key, n)
	defer view.leave()
	return view.serve(l, view.handleClient)
}

// Forward relays every client of l to the proxy that listens on a port of the host's loopback, unfiltered: no policy, no
// token, no violations (NET-64, for httpProxyPort and socksProxyPort). It takes ownership of l and returns like ServeFor.
func (s *Server) Forward(l net.Listener, hostPort int) error {
	view := s.view(s.identity, nil)
	defer view.leave()
	return view.serve(l, func(c net.Conn) { view.forward(c, hostPort) })
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
			if s.isClosed() {
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
		if err := s.admit(l); err != nil {
			_ = c.Close()
			if s.isClosed() {
				return nil
			}
			return err
		}
		if !s.track(c) {
			<-s.slots
			return nil
		}
		go func() {
			defer s.wg.Done()
			handle(c)
		}()
	}
}

// admit takes a slot for a client of l, and waits for one as long as l is open: when it is closed because its command has
// ended, the slots may be those of the command.
func (s *Server) admit(l net.Listener) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	ticker := time.NewTicker(admitTick)
	defer ticker.Stop()
	for {
		select {
		case s.slots <- struct{}{}:
			return nil
		case <-s.ctx.Done():
			return ErrServerClosed
		case <-ticker.C:
			if timed, ok := l.(interface{ SetDeadline(time.Time) error }); ok {
				if err := timed.SetDeadline(time.Time{}); err != nil {
					return err
				}
			}
		}
	}
}

// admitTick is how often a server without a slot looks whether the listener is open.
const admitTick = 100 * time.Millisecond

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// temporary reports whether accepting may work again later.
func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// Close closes the listeners and every connection at once and waits until the server's goroutines have ended. Only what the
// programs of commands sent that have ended before is delivered first, as [Capture.Close] says: the command of a view has
// ended when its ServeFor has returned and its Capture is closed. It returns nil; further calls wait as well.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for l := range s.listeners {
		_ = l.Close()
	}
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	views := append(slices.Collect(maps.Keys(s.views)), s)
	s.mu.Unlock()
	for _, v := range views {
		v.cut()
	}
	s.leaving.Wait()
	s.cancel()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.idle.close(nil)
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
