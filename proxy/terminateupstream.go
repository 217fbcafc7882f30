package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/srt-sandbox/srt/proxy/internal/records"
	"github.com/srt-sandbox/srt/proxy/internal/relay"
	"github.com/srt-sandbox/srt/runtime/config"
)

// securedConn is a TLS connection to a target. The connection beneath it is tracked until this one is closed.
type securedConn struct {
	*records.Conn
	server  *Server
	beneath net.Conn
}

// Close closes both.
func (c *securedConn) Close() error {
	err := c.Conn.Close()
	c.server.forget(c.beneath)
	return err
}

// dialTarget makes the upstream leg of a tunnel: a connection by the usual way, and verified TLS to the target inside it
// (TLS-36, TLS-40). Both together have the time of a dial (TLS-39).
func (t *tunnel) dialTarget(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.limits.Dial)
	defer cancel()
	beneath, err := t.reach(ctx)
	if err != nil {
		return nil, err
	}
	socket := records.Beneath(beneath)
	secured := tls.Client(socket, t.clientConfig())
	if err := secured.HandshakeContext(ctx); err != nil {
		t.forget(beneath)
		t.checked = netip.Addr{}
		return nil, &upstreamTLSError{t.host, err}
	}
	return &securedConn{records.Over(secured, socket), t.Server, beneath}, nil
}

// reach makes a tracked connection to the target: the one that is open already, one to the address that was checked
// before, or one by the usual way.
func (t *tunnel) reach(ctx context.Context) (net.Conn, error) {
	if conn := t.ready; conn != nil {
		t.ready = nil
		if relay.Quiet(conn) {
			return conn, nil
		}
		t.forget(conn)
	}
	rules := t.policy()
	if t.route(rules, t.host, false) != nil {
		conn, leftover, err := t.dialTunnel(ctx, rules, t.host, t.port)
		if err == nil && len(leftover) > 0 { // a TLS server does not speak first
			t.forget(conn)
			return nil, errParentRefused
		}
		return conn, err
	}
	to := t.host
	if t.local.IsValid() {
		to = config.Host{Name: t.local.String(), Addr: t.local}
	}
	if conn := t.dialAtOnce(rules, to, t.port); conn != nil {
		return conn, nil
	}
	if t.checked.IsValid() && t.checkedBy == rules {
		conn, err := t.dialAddrs(ctx, []netip.Addr{t.checked}, t.port)
		if err != nil {
			t.checked = netip.Addr{}
		}
		return conn, err
	}
	conn, err := t.dialDirect(ctx, rules, to, t.port)
	if err == nil {
		t.remember(conn, rules)
	}
	return conn, err
}

// remember keeps the address of a connection, which passed the check of rules.
func (t *tunnel) remember(conn net.Conn, rules *Rules) {
	if addr, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		t.checked, t.checkedBy = addr.AddrPort().Addr().Unmap(), rules
	}
}

// clientConfig is the configuration of the upstream leg. For a literal package tls sends no server name and checks the
// certificate's addresses.
func (t *tunnel) clientConfig() *tls.Config {
	if t.client == nil {
		t.client = &tls.Config{
			ServerName: t.host.Name, RootCAs: t.verifying(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
			DynamicRecordSizingDisabled: true, // which is for networks that are slow to bring the first bytes
			ClientSessionCache:          t.scope.sessions.of(t.keyOf(t.asking) + "\x00" + hostPort(t.host, t.port)),
		}
	}
	return t.client
}

// maxSessions is how many TLS sessions with upstream servers are kept for one command. Each takes a few KiB.
const maxSessions = 32

// tlsSessions are the TLS sessions with upstream servers that the connections of one view can resume: a new tunnel to a
// host then costs neither side a certificate. They go with the view, so that no session passes from one command to
// another. The zero value has none.
type tlsSessions struct {
	once  sync.Once
	cache tls.ClientSessionCache
}

// of returns the cache for one command and target.
func (s *tlsSessions) of(key string) tls.ClientSessionCache {
	s.once.Do(func() { s.cache = tls.NewLRUClientSessionCache(maxSessions) })
	return sessionsOf{s.cache, key}
}

// sessionsOf is the sessions for one key, whatever package tls calls the server.
type sessionsOf struct {
	cache tls.ClientSessionCache
	key   string
}

// Get implements [tls.ClientSessionCache].
func (s sessionsOf) Get(string) (*tls.ClientSessionState, bool) { return s.cache.Get(s.key) }

// Put implements [tls.ClientSessionCache].
func (s sessionsOf) Put(_ string, session *tls.ClientSessionState) { s.cache.Put(s.key, session) }

// upstreamTLSError is a target that was reached and with which no verified TLS connection came about.
type upstreamTLSError struct {
	host config.Host
	err  error
}

func (e *upstreamTLSError) Error() string { return "TLS with " + e.host.Name + ": " + e.err.Error() }
func (e *upstreamTLSError) Unwrap() error { return e.err }

// cause is one line for the client. It says nothing that the server has chosen, which a certificate is full of.
func (e *upstreamTLSError) cause() string {
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var alert *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.As(e.err, &name):
		return "the server's certificate is not valid for " + e.host.Name
	case errors.As(e.err, &authority):
		return "the server's certificate is signed by an authority that srt does not know " +
			"(network.tlsTerminate.extraCaCertPaths adds one)"
	case errors.As(e.err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not yet valid"
	case errors.As(e.err, new(*tls.CertificateVerificationError)):
		return "the server's certificate cannot be verified"
	case errors.As(e.err, &alert) && alert.Op == "remote error": // so package tls tells of an alert, in words of its own
		return "the server refused the TLS handshake (" + strings.TrimPrefix(alert.Err.Error(), "tls: ") + ")"
	case errors.As(e.err, &record):
		return "the server does not speak TLS"
	case isTimeout(e.err), errors.Is(e.err, context.DeadlineExceeded):
		return "the server did not complete the TLS handshake in time"
	case errors.Is(e.err, io.EOF), errors.Is(e.err, io.ErrUnexpectedEOF):
		return "the server closed the connection during the TLS handshake"
	}
	return "the TLS handshake with the server failed"
}
