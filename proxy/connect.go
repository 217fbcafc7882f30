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
	rules := c.policy()
	v := rules.Decide(target.host, target.port)
	if !v.Allowed {
		c.reportVerdict(v, target.host, target.port, key)
		c.answerLast(tunnelRefused(v), false)
		return
	}
	if c.refuseOpaque {
		c.report(violation.HTTPRequest, violation.Tunnel(target.host, target.port), "", reasonOpaque, key)
		c.answerLast(tunnelOpaque, false)
		return
	}
	upstream, toClient, toUpstream, err := c.openTunnel(rules, v, target)
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

// openTunnel dials while it watches the client: if that leaves, the dial ends (NET-25). The caller owns the connection.
func (c *client) openTunnel(rules *policy.Network, v policy.Verdict, target authority) (up net.Conn, toClient, toUpstream []byte, err error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	sent := c.collectEarly()
	if up = c.dialAtOnce(v.Host, target.port); up == nil {
		sent.start(cancel)
		up, toClient, err = c.dialTunnel(ctx, rules, v.Host, target.port)
	}
	toUpstream, gone := sent.stop()
	if gone != nil {
		if err == nil {
			c.forget(up)
		}
		// A refusal is still recorded (LIB-29).
		c.reportResolved(err, target, c.key)
		return nil, nil, nil, errClientGone
	}
	if err != nil {
		c.reportResolved(err, target, c.key)
		c.log.Debug("proxy: dial failed", "host", v.Host.Name, "port", target.port, "error", err)
	}
	return up, toClient, toUpstream, err
}

// reportResolved records an error if it is a refusal of resolved addresses.
func (s *Server) reportResolved(err error, target authority, key string) {
	var resolved *ResolvedError
	if errors.As(err, &resolved) {
		s.report(violation.NetworkOutbound, violation.HostPort(target.host, target.port), "", resolved.Reason(), key)
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
