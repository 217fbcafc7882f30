package proxy

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// exchange is one plain request that is allowed, and what is known about it.
type exchange struct {
	req     *httphead.Request
	target  requestTarget
	host    config.Host
	rules   *Rules
	parent  *parentEndpoint // that gets the request in absolute form; nil for the target itself
	framing httphead.Framing
	length  int64
	request request // what is judged; unset until the destination is allowed
	// body is the body for those who read it before it goes out; nil: nobody does.
	body *plainBody
	// substituted is the body with the real values of masked credentials; nil: it goes out as it came.
	substituted io.Reader
	// done gives back what is held for substituted, once the request has ended; nil: nothing is.
	done func()
	// continued: srt sends "100 Continue" itself (NET-32), and has.
	continued, sentContinue bool
	// keep: the connection may carry another request afterwards.
	keep bool
	// gone: the client left while it was decided about, and there is nobody to answer.
	gone bool
}

// reusable reports whether the request may go out on a connection that was used before: only if it could be repeated
// should the server have closed that connection in the meantime.
func (e *exchange) reusable() bool {
	switch e.req.Method {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return !e.hasBody() && !e.target.tls
	}
	return false
}

func (e *exchange) hasBody() bool { return e.framing == httphead.Chunked || e.length > 0 }

// servePlain serves one request that is not CONNECT and reports whether the connection may carry another one.
func (c *client) servePlain(req *httphead.Request) bool {
	e := &exchange{req: req}
	refusal, refused := c.judge(e)
	if e.done != nil {
		defer e.done()
	}
	if e.gone {
		return false
	}
	if refused {
		// A body that follows a refusal is not read, so that only a request without one leaves the connection usable.
		if !e.keep || e.hasBody() {
			c.answerLast(refusal, req.Method == "HEAD")
			return false
		}
		return c.send(refusal, req.Method == "HEAD", false) == nil
	}
	if e.sendContinue(c.conn) != nil {
		return false
	}
	return c.forwardPlain(e)
}

// sendContinue asks the client for the body, once, if it waits to be asked.
func (e *exchange) sendContinue(to io.Writer) error {
	if !e.continued || e.sentContinue {
		return nil
	}
	e.sentContinue = true
	_, err := io.WriteString(to, "HTTP/1.1 100 Continue\r\n\r\n")
	return err
}

// judge fills in e and returns the answer to a request that is refused. The order is that of NET-24: what cannot be read
// for certain, credentials, target syntax, the decision, and then what concerns the request alone (REQ-2).
func (c *client) judge(e *exchange) (answer, bool) {
	req := e.req
	var err error
	e.framing, e.length, err = req.Framing()
	_, hosts := req.Header.Get("Host")
	if err != nil || req.Minor == 1 && hosts == 0 {
		return answer400, true
	}
	e.keep = req.Minor == 1 && !req.Header.HasToken("Connection", "close")
	key, ok := c.authenticate(req.Header)
	if !ok {
		return answer407, true
	}
	c.key = key
	if e.target, ok = parseTarget(req.Method, req.Target); !ok {
		return c.refuseTarget(e, reasonMalformedTarget), true
	}
	v := c.decidePlain(e)
	e.host = v.Host
	switch {
	case e.gone:
		return answer{}, true
	case v.Malformed:
		return c.refuseTarget(e, reasonMalformedTarget), true
	case !v.Allowed:
		c.reportVerdict(v, e.target.host, e.target.port, key)
		return plainRefused(v), true
	}
	if !e.target.tls {
		e.parent = c.route(e.rules, v.Host, true)
	}
	if a, refused := c.expectation(e); refused {
		return a, true
	}
	return c.judgeAlone(e)
}

// judgeAlone judges what concerns the request alone (REQ-2). Only a filter takes long enough to watch the client meanwhile.
func (c *client) judgeAlone(e *exchange) (a answer, refused bool) {
	r := &e.request
	*r = request{
		method: e.req.Method, target: e.req.Target, minor: e.req.Minor, header: e.req.Header, host: e.host, port: e.target.port,
		scheme: "http", absolute: e.target, key: c.key, rules: e.rules,
	}
	if c.filtering.Filter == nil {
		a, refused = c.judgeRequest(c.ctx, r)
	} else {
		a, refused = c.judgeWatched(e)
	}
	e.gone = e.gone || refused && a.status == ""
	if refused {
		e.keep = false // REQ-3
		return a, true
	}
	e.target.path, e.req.Header = r.path, r.header
	if e.gone {
		return answer{}, true
	}
	return c.injectPlain(e)
}

// judgeWatched judges while the client is watched, with its body at hand.
func (c *client) judgeWatched(e *exchange) (a answer, refused bool) {
	if c.readBody(e) {
		e.request.body = e.body
	}
	c.watched(e, func(ctx context.Context) error {
		a, refused = c.judgeRequest(ctx, &e.request)
		return nil
	})
	return a, refused
}

// decidePlain decides about the destination of a request (NET-7). A client that leaves while the callback is asked sets
// e.gone.
func (c *client) decidePlain(e *exchange) policy.Verdict {
	a := asking{key: c.key, host: e.target.host, port: e.target.port}
	rules, v, undecided := c.decideNow(a)
	if undecided {
		c.watched(e, func(ctx context.Context) (err error) {
			rules, v, err = c.decideByAsking(ctx, a, v)
			return err
		})
	}
	e.rules = rules
	return v
}

// watched runs a step with a context that ends when the client leaves, which sets e.gone. The step reads nothing from the
// client but by e.body.
func (c *client) watched(e *exchange, step func(context.Context) error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	gone := func() { cancel(errClientGone) }
	stop := c.watchClient(gone)
	if e.body != nil {
		e.body.gone = gone
		e.body.unwatched = func(read func()) {
			stop()
			read()
			stop = c.watchClient(gone)
		}
	}
	err := step(ctx)
	stop()
	if e.body != nil {
		e.body.unwatched, e.body.gone = nil, nil
	}
	e.gone = errors.Is(err, errClientGone) || errors.Is(context.Cause(ctx), errClientGone)
}

// expectation looks at Expect (NET-32), which HTTP/1.0 does not know (RFC 9110 section 10.1.1).
func (c *client) expectation(e *exchange) (answer, bool) {
	value, count := e.req.Header.Get("Expect")
	switch {
	case count == 0 || e.req.Minor == 0:
		return answer{}, false
	case count > 1 || !httphead.EqualFold(value, "100-continue"):
		return answer417, true
	}
	e.continued = true
	return answer{}, false
}

// forwardPlain sends the request on and relays the response. A connection that turns out to be stale is replaced once.
func (c *client) forwardPlain(e *exchange) bool {
	u := c.reuse(e)
	for {
		if u == nil {
			var err error
			if u, err = c.dialWatched(e); err != nil {
				return c.refusePlain(e, err)
			}
		}
		x := &transfer{client: c, exchange: e, up: u}
		keep, err := x.run()
		if errors.Is(err, errStale) && u.reused && e.reusable() {
			u = nil
			continue
		}
		if err != nil {
			return c.refusePlain(e, err)
		}
		return keep
	}
}

// dialWatched makes a new connection; a client that leaves meanwhile ends the dial (NET-33).
func (c *client) dialWatched(e *exchange) (*upstream, error) {
	var conn net.Conn
	var err error
	c.watched(e, func(ctx context.Context) error {
		conn, err = c.dialPlain(ctx, e)
		return nil
	})
	if e.gone {
		if err == nil {
			c.forget(conn)
		}
		c.reportResolved(err, e.target.authority, c.key)
		return nil, errClientGone
	}
	if err != nil {
		return nil, err
	}
	return newUpstream(c.upstreamKey(e), e.rules, conn), nil
}

// refusePlain answers a request that was allowed and failed before there was a response.
func (c *client) refusePlain(e *exchange, err error) bool {
	a := plainFailed
	var resolved *ResolvedError
	switch {
	case errors.Is(err, errClientGone):
		return false
	case errors.Is(err, errBadBody):
		a, e.keep = answer400, false
	case errors.As(err, &resolved):
		c.reportResolved(err, e.target.authority, c.key)
		a = plainResolved(resolved)
	case errors.Is(err, errInternal):
		a = plainInternal
	}
	c.log.Debug("proxy: request failed", "host", e.host.Name, "port", e.target.port, "error", err)
	if !e.keep || e.hasBody() {
		c.answerLast(a, e.req.Method == "HEAD")
		return false
	}
	return c.send(a, e.req.Method == "HEAD", false) == nil
}
