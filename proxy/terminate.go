package proxy

import (
	"context"
	"crypto/x509"
	"net"
	"strconv"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/relay"
	"github.com/srt-sandbox/srt/proxy/mitm"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// Termination is the part of [Options] that makes srt end the TLS of tunnels itself, so that it sees the requests inside
// (TLS-*). It is fixed for the life of a server; what an update may change is in [TerminationRules].
type Termination struct {
	// CA issues the certificates that clients see. It must not be nil.
	CA *mitm.CA
	// Roots are what upstream servers are verified against, those of https:// requests of the plain path and of parent
	// proxies included (TLS-36). It is asked when there is something to verify, from many goroutines. Nil: the system's.
	Roots func() *x509.CertPool
}

// verifying are what upstream servers are verified against; nil for the system's.
func (s *Server) verifying() *x509.CertPool {
	if s.roots == nil && s.terminate != nil && s.terminate.Roots != nil {
		return s.terminate.Roots()
	}
	return s.roots
}

// TerminationRules are what applies to a terminated tunnel from its CONNECT on (TLS-2). The zero value excludes nothing.
type TerminationRules struct {
	// Exclude are the hosts whose tunnels stay opaque, on any port (TLS-17).
	Exclude []config.Domain
	// MaxTunnels is how many terminated tunnels there are at once in a session (TLS-41). Zero stands for 256.
	MaxTunnels int
	// HandshakeTimeout is how long a client may take from its CONNECT to the end of its TLS handshake (TLS-42). Zero
	// stands for 10 s.
	HandshakeTimeout time.Duration
}

// The defaults of TerminationRules (TLS-1).
const (
	defaultTunnels   = 256
	defaultHandshake = 10 * time.Second
)

// excludes reports whether tunnels to a canonical host stay opaque.
func (r *TerminationRules) excludes(h config.Host) bool {
	for _, d := range r.Exclude {
		if d.Matches(h, 0) {
			return true
		}
	}
	return false
}

func (r *TerminationRules) limit() int {
	if r.MaxTunnels > 0 {
		return r.MaxTunnels
	}
	return defaultTunnels
}

func (r *TerminationRules) timeout() time.Duration {
	if r.HandshakeTimeout > 0 {
		return r.HandshakeTimeout
	}
	return defaultHandshake
}

// terminates reports whether tunnels to an allowed host are ended here (TLS-17).
func (s *Server) terminates(rules *Rules, h config.Host) bool {
	return s.terminate != nil && !rules.Termination.excludes(h)
}

// The texts of TLS-41, REQ-4 and VIO-15, and of request rules that cannot be applied.
const (
	reasonNoTLS      = "tunnel carries no TLS and cannot be inspected"
	reasonUnreadable = "network.requestRules names this host, and this tunnel cannot be read"

	ruleRequests   = policy.RuleRequests
	ruleMaxTunnels = "network.tlsTerminate.maxTunnels"
)

// reasonTunnels is the reason of the violation of TLS-41 (VIO-15).
func reasonTunnels(limit int) string {
	return "the sandbox's limit of " + strconv.Itoa(limit) + " TLS-terminated tunnels at once is reached; " +
		"the limit is network.tlsTerminate.maxTunnels in the sandbox's configuration"
}

// tunnelsTaken is the answer of TLS-41.
var tunnelsTaken = answer{
	status: "503 Service Unavailable", mark: "too-many-tunnels", body: "too many TLS-terminated tunnels at once",
}

// opaqueRefusal tells whether a tunnel that cannot be read is refused, and why: by refuseOpaqueTunnels, whose reason is
// given, or because requests to its host are to be judged one by one.
func (s *Server) opaqueRefusal(rules *Rules, h config.Host, port uint16, reason string) (policy.Verdict, bool) {
	switch {
	case s.refuseOpaque:
		return opaqueVerdict(reason), true
	case rules.Requests.Names(h, port):
		return policy.Verdict{Rule: ruleRequests, Reason: reasonUnreadable}, true
	}
	return policy.Verdict{}, false
}

// noteExcluded says in the log which masked credentials an excluded host does not get (TLS-17).
func (s *Server) noteExcluded(h config.Host, port uint16) {
	if s.terminate == nil {
		return
	}
	if i := s.injection(h); i != nil {
		s.log.Debug("proxy: the tunnel is not terminated, so that masked credentials are not put in",
			"host", h.Name, "port", port, "credentials", i.Names())
	}
}

// tunnelSlot is a slot of a terminated tunnel (TLS-41).
type tunnelSlot struct {
	s    *Server
	held bool
}

// takeSlot takes a slot for a command. If there is none the refusal is reported, once (VIO-15).
func (s *Server) takeSlot(rules *Rules, a asking) (*tunnelSlot, bool) {
	limit := rules.Termination.limit()
	ok, first := s.tunnels.take(limit, s.keyOf(a))
	if !ok {
		if first {
			s.reportTunnel(a, policy.Verdict{Rule: ruleMaxTunnels, Reason: reasonTunnels(limit)})
		}
		return nil, false
	}
	return &tunnelSlot{s, true}, true
}

// give gives the slot back, once.
func (t *tunnelSlot) give() {
	if t.held {
		t.held = false
		t.s.tunnels.give(t.s.policy().Termination.limit())
	}
}

// reportTunnel records the refusal of a tunnel to an allowed host.
func (s *Server) reportTunnel(a asking, v policy.Verdict) {
	s.reportEvent(violation.Event{
		PID: a.pid, Operation: violation.HTTPRequest, Target: violation.Tunnel(a.host, a.port), Rule: v.Rule, Reason: v.Reason,
		CommandID: s.keyOf(a),
	})
}

// serveTerminated serves a CONNECT to an allowed host that is not excluded, from the slot on (TLS-16).
func (c *client) serveTerminated(t *opening) {
	a := asking{key: c.key, host: t.target.host, port: t.target.port}
	held, ok := c.takeSlot(t.rules, a)
	if !ok {
		if t.cancel() == nil {
			c.answerLast(tunnelsTaken, false)
		}
		return
	}
	defer held.give()
	deadline := time.Now().Add(t.rules.Termination.timeout())
	sent, gone := t.stop()
	if gone != nil { // TLS-21
		return
	}
	_ = c.conn.SetDeadline(deadline)
	if _, err := c.conn.Write([]byte(established)); err != nil {
		return
	}
	sent, err := firstBytes(c.conn, sent)
	switch {
	case err != nil: // silent, or gone
	case !isTLS(sent):
		_ = c.conn.SetDeadline(time.Time{})
		held.give()
		c.serveUnreadable(t, a, sent)
	default:
		newTunnel(c.Server, a, t.verdict.Host).serve(c.conn, c.br, sent, deadline)
	}
}

// serveUnreadable goes on with a CONNECT that was granted and whose bytes are not TLS (TLS-20): opaque, if that may be
// (REQ-4). Whatever fails from here on can only close it.
func (c *client) serveUnreadable(t *opening, a asking, sent []byte) {
	if v, refused := c.opaqueRefusal(t.rules, t.verdict.Host, t.target.port, reasonNoTLS); refused {
		c.reportTunnel(a, v)
		lingerClose(c.conn)
		return
	}
	t.resume(sent)
	upstream, toClient, toUpstream, err := t.open()
	if err != nil {
		return
	}
	c.handed = true
	c.join(c.conn, upstream, toClient, toUpstream)
}

// stop ends the watching, if it has begun, and returns what the client has sent. An error means that it has left.
func (t *opening) stop() ([]byte, error) {
	if t.sent == nil {
		return t.collectEarly().stop()
	}
	defer t.end()
	return t.sent.stop()
}

// resume begins to watch anew, when sent has been taken from the client.
func (t *opening) resume(sent []byte) {
	t.ctx, t.end = context.WithCancel(t.client.ctx)
	t.sent = &early{conn: t.conn, buf: sent, done: make(chan struct{})}
}

// helloSize is the room for the first bytes of a client: a ClientHello with a post-quantum key share has about 1,700.
const helloSize = 2 << 10

// decisive is how many bytes tell TLS from everything else (TLS-19).
const decisive = 3

// firstBytes reads until there are as many bytes as decide, sent being the first of them. An error is the end of the input
// or the deadline of conn.
func firstBytes(conn net.Conn, sent []byte) ([]byte, error) {
	for len(sent) < decisive {
		if cap(sent)-len(sent) < decisive {
			sent = append(make([]byte, 0, helloSize), sent...)
		}
		n, err := conn.Read(sent[len(sent):cap(sent)])
		sent = sent[:len(sent)+n]
		if err != nil && len(sent) < decisive {
			return sent, err
		}
	}
	return sent, nil
}

// isTLS tells a TLS record with a handshake message from everything else (TLS-19).
func isTLS(b []byte) bool { return len(b) >= decisive && b[0] == 0x16 && b[1] == 0x03 && b[2] <= 0x03 }

// sniffed is a connection some of whose bytes have been read already.
type sniffed struct {
	net.Conn
	first []byte // not nil: read before anything else
}

// Read returns the first bytes, then those of the connection.
func (c *sniffed) Read(p []byte) (int, error) {
	if c.first == nil {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	if c.first = c.first[n:]; len(c.first) == 0 {
		c.first = nil
	}
	return n, nil
}

// CloseWrite ends the sending side.
func (c *sniffed) CloseWrite() error { return relay.CloseWrite(c.Conn) }

// NetConn returns the connection itself.
func (c *sniffed) NetConn() net.Conn { return c.Conn }
