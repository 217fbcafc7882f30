package decider

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/proxy/internal/inspect"
	"github.com/srt-sandbox/srt/proxy/mitm"
)

// maxHead is the longest request head in bytes (PRX-20). Heads arrive as slowly as clients like, so that only so many
// connections at once may send such long ones (PRX-69); on the others a head may have shortHead bytes, which is more than all
// headers and the path of a request that the decider can be asked about, and only a long query is refused.
const (
	maxHead   = 2 << 20
	shortHead = 80 << 10
)

// handler serves one connection of a client: in cleartext, and again inside a tunnel.
type handler struct {
	*proxyRun
	tunnel *tunnel // nil: cleartext
	opened *opened // a CONNECT was accepted
	// It holds one of proxyRun.tunnels, of proxyRun.long.
	holdsTunnel, holdsLong bool
}

// tunnel is what is fixed for all requests inside one.
type tunnel struct {
	destination
	hello mitm.Hello
}

// opened is a CONNECT that was accepted and is to become a tunnel.
type opened struct {
	destination
	at   time.Time
	conn net.Conn
	br   *bufio.Reader
}

// takeLong reports whether the next connection may send long heads.
func (p *proxyRun) takeLong() bool {
	select {
	case p.long <- struct{}{}:
		return true
	default:
		return false
	}
}

// serve serves one connection and closes it.
func (p *proxyRun) serve(conn net.Conn, long bool) {
	defer func() { _ = conn.Close() }()
	h := &handler{proxyRun: p, holdsLong: long}
	defer h.release()
	inspect.Serve(p.ctx, conn, nil, h, h.inspectLimits(p.limits.plainHead))
	if h.opened != nil && h.opened.conn != nil {
		h.openTunnel()
	}
}

// release gives back what the connection holds.
func (h *handler) release() {
	if h.holdsTunnel {
		<-h.tunnels
	}
	if h.holdsLong {
		<-h.long
	}
}

func (h *handler) inspectLimits(firstHead time.Duration) inspect.Limits {
	if firstHead <= 0 {
		firstHead = -1
	}
	head := shortHead
	if h.holdsLong {
		head = maxHead
	}
	return inspect.Limits{FirstHead: firstHead, Idle: h.limits.idle, Stall: h.limits.stall, Head: head, Drain: h.drain}
}

// connect judges a CONNECT (PRX-11, PRX-20 to PRX-22). The decider is asked about the requests inside.
func (h *handler) connect(target string) (*inspect.Outgoing, inspect.Answer) {
	d, ok := parseConnect(target)
	switch {
	case !ok:
		return nil, refuse(markBadRequest, "", "CONNECT")
	case h.ca == nil:
		return nil, refuse(markOpaque, "", "CONNECT")
	case !h.link.hosts.allows(d.host, d.port):
		return nil, refuse(markHost, "", "CONNECT")
	}
	select {
	case h.tunnels <- struct{}{}:
		h.holdsTunnel = true
	default:
		return nil, refuse(markTunnels, "", "CONNECT")
	}
	h.opened = &opened{destination: d, at: time.Now()}
	return &inspect.Outgoing{Take: func(conn net.Conn, br *bufio.Reader) { h.opened.conn, h.opened.br = conn, br }}, nil
}

// openTunnel answers an accepted CONNECT and serves what is inside (PRX-12, PRX-13).
func (h *handler) openTunnel() {
	o := h.opened
	ctx, cancel := context.WithDeadline(h.ctx, o.at.Add(h.limits.handshake))
	defer cancel()
	_ = o.conn.SetDeadline(o.at.Add(h.limits.handshake))
	stop := context.AfterFunc(ctx, func() { _ = o.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(o.conn, "HTTP/1.1 200 Connection Established\r\n\r\n"); err != nil {
		return
	}
	if first, err := o.br.Peek(3); err != nil || first[0] != 0x16 || first[1] != 3 || first[2] > 3 {
		h.log.Debug("decider: a tunnel is closed: its first bytes are not TLS", "host", o.host.Name, "port", o.port)
		return
	}
	helloAt := time.Now()
	conn, hello, err := h.ca.Handshake(ctx, &begun{o.conn, o.br}, o.host.Name, true)
	if err != nil {
		h.log.Debug("decider: the TLS handshake with a client failed", "host", o.host.Name, "port", o.port, "error", err)
		return
	}
	if !stop() {
		return
	}
	_ = o.conn.SetDeadline(time.Time{})
	inside := &handler{proxyRun: h.proxyRun, tunnel: &tunnel{o.destination, hello}}
	inspect.Serve(h.ctx, conn, nil, inside, h.inspectLimits(h.limits.head-time.Since(helloAt)))
}

// begun is a connection of which a reader has read something already.
type begun struct {
	net.Conn
	br *bufio.Reader
}

// Read reads what was read ahead first.
func (b *begun) Read(p []byte) (int, error) {
	if b.br.Buffered() > 0 {
		return b.br.Read(p)
	}
	return b.Conn.Read(p)
}

// NetConn returns the socket.
func (b *begun) NetConn() net.Conn { return b.Conn }

// Judge puts one request to the checks of PRX-20 to PRX-26 and then to the decider.
func (h *handler) Judge(ctx context.Context, r *inspect.Request) (*inspect.Outgoing, inspect.Answer) {
	if h.tunnel == nil && r.Method == "CONNECT" {
		return h.connect(r.Target)
	}
	if h.tunnel != nil && r.Header.HasToken("Connection", "upgrade") {
		if _, upgrades := r.Header.Get("Upgrade"); upgrades > 0 {
			return nil, nil // PRX-14
		}
	}
	d, q, refusal := h.check(r)
	if refusal != nil {
		return nil, refuse(refusal.mark, refusal.text, r.Method)
	}
	v, err := h.decide(ctx, q, r)
	var no *refused
	switch {
	case errors.As(err, &no):
		h.log.Debug("decider: refused", "method", r.Method, "host", d.host.Name, "port", d.port, "why", no.text)
		return nil, refuse(no.mark, no.text, r.Method)
	case err != nil:
		h.log.Debug("decider: the client has left", "method", r.Method, "host", d.host.Name, "port", d.port)
		return nil, nil
	case v.action != actionAllow:
		h.log.Debug("decider: denied", "method", r.Method, "host", d.host.Name, "port", d.port, "status", v.status)
		return nil, deny(v, r.Method)
	case ctx.Err() != nil:
		return nil, nil // PRX-58
	case h.tunnel == nil && !h.plaintext && v.sends():
		return nil, refuse(markPlaintext, "", r.Method)
	}
	header, ok := edit(r.Header, d.hostField(), v, h.placements, d.host.Name)
	if !ok {
		return nil, refuse(markDenied, "", r.Method)
	}
	h.log.Debug("decider: allowed", "method", r.Method, "host", d.host.Name, "port", d.port)
	return h.outgoing(d, r, header), nil
}

// deny is the answer to a denial (PRX-41).
func deny(v *verdict, method string) inspect.Answer {
	text := v.reason
	if text == "" {
		text = defaultDenial
	}
	return answer(v.status, markDecider, text, method)
}

// decide asks the decider.
func (h *handler) decide(ctx context.Context, q *question, r *inspect.Request) (*verdict, error) {
	if r.Body == nil {
		return h.ask(ctx, q, r.Method, nil, 0)
	}
	length := int64(-1)
	if r.Framing == httphead.ByLength {
		length = r.Length
	}
	return h.ask(ctx, q, r.Method, r.Body, length)
}

// check does the checks before the decider is asked, in their order (PRX-20 to PRX-26). What is no request, HTTP/1.1 without
// Host included, has been answered by Malformed.
func (h *handler) check(r *inspect.Request) (destination, *question, *refused) {
	d, ok := parseAbsolute(r.Target)
	s := subject{method: r.Method, header: r.Header}
	if h.tunnel != nil {
		d, ok = h.tunnel.destination, true
		d.target = r.Target
		s.sni = h.tunnel.hello.ServerName
	}
	fields := 0
	s.hostHeader, fields = r.Header.Get("Host")
	misdirected := fields > 1 || fields == 1 && !d.namedBy(s.hostHeader) || h.tunnel != nil && !h.tunnel.sameName()
	switch {
	case !ok:
		return d, nil, &refused{markBadRequest, ""}
	case !h.link.hosts.allows(d.host, d.port):
		return d, nil, &refused{markHost, ""}
	case !validTarget(d.target):
		return d, nil, &refused{markBadRequest, malformedTarget}
	case misdirected:
		return d, nil, &refused{markMisdirected, ""}
	case httphead.EqualFold(r.Method, "TRACE"), httphead.EqualFold(r.Method, "TRACK"):
		return d, nil, &refused{markMethod, ""}
	}
	s.host, s.port, s.target = d.host.Name, d.port, d.target
	q, why := newQuestion(s)
	if why != "" {
		return d, nil, &refused{markBadRequest, string(why)}
	}
	return d, q, nil
}

const malformedTarget = "malformed request-target"

// sameName reports whether the server name of the handshake is the target's, or missing (PRX-24).
func (t *tunnel) sameName() bool {
	return !t.hello.Unreadable && (t.hello.ServerName == "" || t.hasName(t.hello.ServerName))
}

// upstreamKey says which requests of a client can share a connection.
type upstreamKey struct {
	host string
	port uint16
	tls  bool
}

func (h *handler) outgoing(d destination, r *inspect.Request, header httphead.Header) *inspect.Outgoing {
	out := &inspect.Outgoing{
		Target: d.target, Header: header, Response: h.stripped.strip,
		Key:  upstreamKey{d.host.Name, d.port, d.tls},
		Dial: func(ctx context.Context) (net.Conn, error) { return h.dial(ctx, d) },
	}
	if r.Body != nil {
		out.Body, out.Length = r.Body.Stream(), -1
		if r.Framing == httphead.ByLength {
			out.Length = r.Length
		}
	}
	return out
}

// dial connects to a destination, over verified TLS if it is https (PRX-14, PRX-67).
func (p *proxyRun) dial(ctx context.Context, d destination) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limits.dial)
	defer cancel()
	conn, err := p.dialer.Dial(ctx, d.host, d.port)
	if err != nil || !d.tls {
		return conn, err
	}
	secure := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: d.host.Name, RootCAs: p.roots, NextProtos: []string{"http/1.1"},
	})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the TLS handshake with the server failed: %w", err)
	}
	return secure, nil
}

// Malformed answers what is no request (PRX-20).
func (h *handler) Malformed(m inspect.Malformed) inspect.Answer {
	if m.Target {
		return refuse(markBadRequest, malformedTarget, m.Method)
	}
	return refuse(markBadRequest, "", m.Method)
}

// Failed answers a request that was allowed and that no server answered (PRX-66, PRX-67).
func (h *handler) Failed(r *inspect.Request, err error) inspect.Answer {
	h.log.Debug("decider: no response", "method", r.Method, "error", err)
	var resolved *proxy.ResolvedError
	if errors.As(err, &resolved) {
		return refuse(markAddress, "Connection to "+resolved.Host+" blocked: "+resolved.Reason(), r.Method)
	}
	return answer(502, "", "", r.Method)
}
