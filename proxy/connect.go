package proxy

import (
	"context"
	"errors"
	"net"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

const established = "HTTP/1.1 200 Connection Established\r\n\r\n"

// serveConnect serves CONNECT (NET-24 to NET-27): credentials, target syntax, decision, dial, answer, relay. Host and
// Content-Length are not looked at: what follows the head is tunnel data.
func (c *client) serveConnect(req *httphead.Request) {
	key, ok := c.authenticate(req.Header)
	if !ok && c.admitsRsync(req) {
		key, ok = c.identity, true
	}
	if !ok {
		c.answerLast(answer407, false)
		return
	}
	c.key = key
	target, ok := parseAuthority(req.Target)
	if !ok {
		c.answerLast(answer400, false)
		return
	}
	t, err := c.decideTunnel(target)
	switch {
	case err != nil:
		return
	case !t.verdict.Allowed:
		c.reportVerdict(t.verdict, target.host, target.port, key)
		c.answerLast(tunnelRefused(t.verdict), false)
		return
	case c.terminates(t.rules, t.verdict.Host):
		c.serveTerminated(t)
		return
	}
	if v, refused := c.opaqueRefusal(t.rules, t.verdict.Host, target.port, reasonOpaque); refused {
		_ = t.cancel()
		c.reportTunnel(asking{key: key, host: target.host, port: target.port}, v)
		c.answerLast(tunnelOpaque(v.Reason), false)
		return
	}
	c.noteExcluded(t.verdict.Host, target.port)
	upstream, toClient, toUpstream, err := t.open()
	if err != nil {
		c.refuseTunnel(err)
		return
	}
	if _, err := c.conn.Write([]byte(established)); err != nil {
		c.forget(upstream)
		return
	}
	c.handed = true
	c.join(c.conn, upstream, toClient, toUpstream)
}

// errClientGone is a client that left, or sent too much, before its tunnel was up.
var errClientGone = errors.New("the client left before the tunnel was up")

// opening is a tunnel that is not up yet. The client is watched from the moment that something takes time, the callback
// or the dial: if it leaves, that ends (NET-25).
type opening struct {
	*client
	target  authority
	rules   *Rules
	verdict policy.Verdict
	sent    *early          // nil: not watched yet
	ctx     context.Context // ends when the client has left
	end     context.CancelFunc
}

// decideTunnel decides about a target. It fails only with errClientGone. If the verdict refuses, the client is no longer
// watched and can be answered; else the caller goes on with open or cancel.
func (c *client) decideTunnel(target authority) (*opening, error) {
	t := &opening{client: c, target: target}
	a := asking{key: c.key, host: target.host, port: target.port}
	var undecided bool
	t.rules, t.verdict, undecided = c.decideNow(a)
	if !undecided {
		return t, nil
	}
	t.watch()
	t.sent.start(t.end)
	rules, v, err := c.decideByAsking(t.ctx, a, t.verdict)
	if err != nil {
		_ = t.cancel()
		return nil, err
	}
	t.rules, t.verdict = rules, v
	if !v.Allowed {
		if gone := t.cancel(); gone != nil {
			c.reportVerdict(v, target.host, target.port, c.key) // recorded all the same (LIB-29)
			return nil, errClientGone
		}
	}
	return t, nil
}

// watch begins to take what the client sends. The client's reader must not be used any more.
func (t *opening) watch() {
	t.ctx, t.end = context.WithCancel(t.client.ctx)
	t.sent = t.collectEarly()
}

// cancel ends the watching, so that the client can be answered. An error means that it has left.
func (t *opening) cancel() error {
	if t.sent == nil {
		return nil
	}
	_, gone := t.sent.stop()
	t.end()
	return gone
}

// open dials an allowed target. The caller owns the connection.
func (t *opening) open() (up net.Conn, toClient, toUpstream []byte, err error) {
	h, port := t.verdict.Host, t.target.port
	if t.sent == nil {
		t.watch()
	}
	defer t.end()
	if up = t.dialAtOnce(t.rules, h, port); up == nil {
		if t.sent.timer == nil {
			t.sent.start(t.end)
		}
		up, toClient, err = t.dialTunnel(t.ctx, t.rules, h, port)
	}
	toUpstream, gone := t.sent.stop()
	if gone != nil {
		if err == nil {
			t.forget(up)
		}
		// A refusal is still recorded (LIB-29).
		t.reportResolved(err, t.target, t.key)
		return nil, nil, nil, errClientGone
	}
	if err != nil {
		t.reportResolved(err, t.target, t.key)
		t.log.Debug("proxy: dial failed", "host", h.Name, "port", port, "error", err)
	}
	return up, toClient, toUpstream, err
}

// reportResolved records an error if it is a refusal of resolved addresses.
func (s *Server) reportResolved(err error, target authority, key string) {
	var resolved *ResolvedError
	if errors.As(err, &resolved) {
		s.report(violation.NetworkOutbound, violation.HostPort(target.host, target.port), policy.Verdict{Reason: resolved.Reason()}, key)
	}
}

// refuseTunnel answers a CONNECT that was allowed and could not be opened.
func (c *client) refuseTunnel(err error) {
	var resolved *ResolvedError
	switch {
	case errors.Is(err, errClientGone):
	case errors.As(err, &resolved):
		c.answerLast(tunnelResolved(resolved), false)
	case errors.Is(err, errInternal):
		c.answerLast(tunnelInternal, false)
	default:
		c.answerLast(tunnelFailed, false)
	}
}
