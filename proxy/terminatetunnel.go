package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/proxy/internal/inspect"
	"github.com/srt-sandbox/srt/proxy/internal/records"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// tunnel is one tunnel whose TLS ends here. It judges the requests inside, one at a time, and makes the upstream leg for
// those that go out. It is used by one goroutine at a time.
type tunnel struct {
	*Server
	asking // the target as spelled, and who asked
	host   config.Host
	hello  helloSeen
	client *tls.Config // of the upstream leg; nil: not made yet

	// What was looked up and passed the check, to be dialled again without another lookup (TLS-37), and the rules that it
	// was judged by. Invalid: nothing.
	checked   netip.Addr
	checkedBy *Rules
	// local is the address of the host's loopback that is meant by host; invalid: none in particular.
	local netip.Addr
	// body is that of the request under way.
	body outBody
	// ready is a way to the target that is open already, for the first request; nil: there is none.
	ready net.Conn
}

// helloSeen is what the ClientHello said about the server (TLS-25).
type helloSeen struct {
	name       string // lower case, empty if there was none
	unreadable bool
}

func newTunnel(s *Server, a asking, h config.Host) *tunnel {
	return &tunnel{Server: s, asking: a, host: h}
}

// firstHead is how long a client may take from its ClientHello to its first request (TLS-43).
const firstHead = 10 * time.Second

// serve shakes hands with a client whose first bytes are sent, and serves its requests until one side has enough. The
// caller closes conn. br is a buffer to be used. The client may take until the deadline for the handshake (TLS-42).
func (t *tunnel) serve(conn net.Conn, br *bufio.Reader, sent []byte, deadline time.Time) {
	defer t.drop()
	began := time.Now()
	ctx, cancel := context.WithDeadline(t.ctx, deadline)
	socket := records.Beneath(&sniffed{conn, sent})
	secured, hello, err := t.terminate.CA.Handshake(ctx, socket, t.host.Name, t.requireHostMatch)
	late := ctx.Err() != nil
	cancel()
	if err != nil {
		if !late {
			lingerClose(conn) // an alert is on its way
		}
		t.log.Debug("proxy: a client did not complete its TLS handshake, as one does that does not trust srt's certificates: "+
			"it has to read the file that SSL_CERT_FILE names, or its host belongs into network.tlsTerminate.excludeDomains",
			"host", t.host.Name, "port", t.port, "error", err)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	t.hello = helloSeen{hello.ServerName, hello.Unreadable}
	limits := t.inspection
	if limits.FirstHead == 0 {
		limits.FirstHead = firstHead
	}
	if limits.FirstHead -= time.Since(began); limits.FirstHead <= 0 {
		limits.FirstHead = -1
	}
	inside := records.Over(secured, socket)
	br.Reset(inside)
	inspect.Serve(t.ctx, inside, br, t, limits)
}

// drop gives back what is left: a way to the target that nobody used, and room for a body.
func (t *tunnel) drop() {
	t.body.release()
	if t.ready != nil {
		t.forget(t.ready)
		t.ready = nil
	}
}

// tunnelKey is the key of every request of a tunnel: all go to one target.
type tunnelKey struct{}

// Judge decides about one request (REQ-2) and says how it goes out.
func (t *tunnel) Judge(ctx context.Context, r *inspect.Request) (*inspect.Outgoing, inspect.Answer) {
	t.body.release()
	rules := t.policy()
	upgrade, a, refused := upgradeOf(r)
	if refused {
		return nil, t.last(r, a)
	}
	q := &request{
		method: r.Method, target: r.Target, minor: r.Minor, header: r.Header, host: t.host, port: t.port, scheme: "https",
		tunnel: true, sni: t.hello.name, sniUnreadable: t.hello.unreadable, key: t.keyOf(t.asking), pid: t.pid, rules: rules,
	}
	if r.Body != nil {
		q.body = r.Body
	}
	if a, refused = t.judgeRequest(ctx, q); refused {
		return nil, t.last(r, a)
	}
	if upgrade != "" { // it passes the filter like any request, and then nothing can be read any more
		if v, refused := t.opaqueRefusal(rules, t.host, t.port, reasonWebSocket); refused {
			f := refusal{status: 403, rule: v.Rule, reason: v.Reason}
			t.reportRequest(q, f)
			return nil, t.last(r, f.answer())
		}
	}
	var body outBody
	if r.Body != nil {
		body = outBody{r: r.Body.Stream(), length: r.Length}
		if r.Framing == httphead.Chunked {
			body.length = -1
		}
	}
	header, body, a, refused := t.inject(ctx, q, body.r, body.length)
	if refused {
		return nil, t.last(r, a)
	}
	t.body = body
	return &inspect.Outgoing{
		Target: q.path, Header: header, Body: body.r, Length: body.length, Key: tunnelKey{}, Dial: t.dialTarget,
		Response: t.observer(q), Upgrade: upgrade,
	}, nil
}

// last renders an answer. The zero answer is none: there is nobody to tell.
func (t *tunnel) last(r *inspect.Request, a answer) inspect.Answer {
	if a == (answer{}) {
		return nil
	}
	return a.append(nil, r.Method == "HEAD", true)
}

// observer shows the final response to whom the filter named, and strips it (REQ-20); nil: there is nothing to do.
func (t *tunnel) observer(q *request) func(int, httphead.Header) httphead.Header {
	if q.observe == nil && len(t.strip) == 0 && t.body.done == nil {
		return nil
	}
	return func(status int, h httphead.Header) httphead.Header {
		t.body.release() // it has been sent, or nobody wants the rest
		t.observed(q, status, h)
		return t.stripResponse(h)
	}
}

// The answers to what cannot be done inside a tunnel (TLS-35).
var (
	nestedConnect = answer{
		status: "501 Not Implemented", mark: markRuntime, body: "CONNECT inside a TLS-terminated tunnel is not supported\n",
	}
	otherUpgrade = answer{
		status: "501 Not Implemented", mark: markRuntime,
		body: "protocol upgrades other than to websocket are not supported in a TLS-terminated tunnel\n",
	}
)

// upgradeOf returns the protocol that a request would switch to, which can only be WebSocket, or "" (TLS-35).
func upgradeOf(r *inspect.Request) (protocol string, a answer, refused bool) {
	if r.Method == "CONNECT" {
		return "", nestedConnect, true
	}
	protocol, count := r.Header.Get("Upgrade")
	switch {
	case count == 0 || r.Minor == 0: // HTTP/1.0 has no upgrades (RFC 9110 section 7.8)
		return "", answer{}, false
	case count == 1 && r.Method == "GET" && httphead.EqualFold(protocol, webSocket) && r.Header.HasToken("Connection", "upgrade"):
		return webSocket, answer{}, false
	}
	return "", otherUpgrade, true
}

const (
	webSocket       = "websocket"
	reasonWebSocket = "a WebSocket carries what cannot be inspected"
)

// Malformed answers and records what is no request (TLS-31, VIO-13).
func (t *tunnel) Malformed(m inspect.Malformed) inspect.Answer {
	f := refusal{status: 400, reason: "malformed request (" + m.What + ")"}
	if m.Target {
		f.reason = reasonEncodeTarget
	}
	q := &request{method: "-", key: t.keyOf(t.asking), pid: t.pid}
	if m.Method != "" && m.Spelled != "" {
		q.method, q.target = m.Method, m.Spelled
	}
	t.reportRequest(q, f)
	return f.answer().append(nil, m.Method == "HEAD", true)
}

// Failed answers a request that was let through and got no response (TLS-37, TLS-38).
func (t *tunnel) Failed(r *inspect.Request, err error) inspect.Answer {
	t.log.Debug("proxy: request in a tunnel failed", "host", t.host.Name, "port", t.port, "error", err)
	a := plainFailed
	var resolved *ResolvedError
	var secure *upstreamTLSError
	switch {
	case errors.As(err, &resolved):
		t.reportAs(t.asking, policy.Verdict{Reason: resolved.Reason()})
		a = plainResolved(resolved)
	case errors.As(err, &secure):
		a = answer{status: plainFailed.status, mark: markUpstreamTLS, body: secure.cause() + "\n"}
	case errors.Is(err, errInternal), errors.Is(err, inspect.ErrOutgoing):
		a = plainInternal
	}
	return t.last(r, a)
}

// markUpstreamTLS marks the answer where the target could not be verified.
const markUpstreamTLS = "upstream-tls"
