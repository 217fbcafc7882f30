package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// exchange is one request and its response.
type exchange struct {
	*client
	r      *Request
	body   *Body  // nil: none is declared
	method string // as sent: a handler can change what it was given
	minor  int
	keep   bool // the client's connection may carry another request afterwards
	out    *Outgoing
	up     *upstream

	side     chan struct{} // closed when the goroutine of the upload has ended; nil: there was none
	stopping atomic.Bool   // the upload is no longer wanted

	// Written before side is closed, or by the main goroutine if there is no side.
	uploaded bool  // the whole request has been sent
	failure  error // of the request, other than a client that has left

	keepUp   bool // the upstream connection may carry another request
	switched bool // the server has switched protocols, and both connections are used up
	cutShort bool // what the client got has no end but that of the connection
}

// answer417 is the answer to an expectation that nobody knows (RFC 9110 section 10.1.1).
const answer417 = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// serve serves one request.
func (c *client) serve(req *httphead.Request) outcome {
	framing, length, err := req.Framing()
	_, hosts := req.Header.Get("Host")
	switch {
	case err != nil:
		return c.refuse(c.h.Malformed(malformedRequest(req, diagnoseFraming(req))))
	case req.Minor == 1 && hosts == 0:
		return c.refuse(c.h.Malformed(malformedRequest(req, "no Host header")))
	case !validTarget(req.Target):
		m := malformedRequest(req, "the request target")
		m.Target = true
		return c.refuse(c.h.Malformed(m))
	case !knownExpectation(req):
		return c.refuse(Answer(answer417))
	}
	e := &exchange{client: c, method: req.Method, minor: req.Minor}
	e.r = &Request{Request: req, Framing: framing, Length: length}
	if framing != httphead.NoBody {
		e.body = newBody(c, req, framing, length)
		e.r.Body = e.body
	}
	e.keep = !req.Header.HasToken("Connection", "close") &&
		(req.Minor == 1 || req.Header.HasToken("Connection", "keep-alive"))
	c.started = false
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.setCancel(cancel)
	defer func() {
		c.watch.stop()
		c.setCancel(nil)
		cancel(nil)
	}()
	return e.judge(ctx)
}

func (c *client) setCancel(cancel context.CancelCauseFunc) {
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
}

// knownExpectation looks at Expect, which HTTP/1.0 does not know.
func knownExpectation(req *httphead.Request) bool {
	value, count := req.Header.Get("Expect")
	return count == 0 || req.Minor == 0 || count == 1 && httphead.EqualFold(value, "100-continue")
}

// judge asks the handler about the request and does what it says.
func (e *exchange) judge(ctx context.Context) outcome {
	e.watch.start()
	out, answer := e.h.Judge(ctx, e.r)
	bodyErr := e.body.seal()
	switch {
	case e.gone.Load():
		return closeNow
	case errors.Is(bodyErr, ErrBodyMalformed):
		return e.refuseBody()
	case answer != nil:
		e.watch.stop()
		return e.refuse(answer)
	case out == nil:
		return closeNow
	case out.Take != nil:
		e.take = out.Take
		return handedOver
	case bodyErr != nil:
		return e.fail(fmt.Errorf("%w: its body was still being read when it was let through", ErrOutgoing))
	}
	e.out = out
	return e.forward(ctx)
}

// refuseBody answers a request whose body is malformed.
func (e *exchange) refuseBody() outcome {
	e.watch.stop()
	m := malformedRequest(e.r.Request, "an invalid chunk in the body")
	m.Method = e.method
	return e.refuse(e.h.Malformed(m))
}

// fail answers a request that was let through, and for which there is no response.
func (e *exchange) fail(err error) outcome {
	e.watch.stop()
	if e.gone.Load() {
		return closeNow
	}
	return e.refuse(e.h.Failed(e.r, err))
}

// forward sends the request on and relays the response.
func (e *exchange) forward(ctx context.Context) outcome {
	buf := heads.Get().(*[]byte)
	head, err := e.appendHead((*buf)[:0])
	defer func() { *buf = head[:0]; heads.Put(buf) }()
	if err != nil {
		return e.fail(err)
	}
	if e.up, err = e.connect(ctx, e.out); err != nil {
		return e.fail(err)
	}
	e.send(head)
	err = e.respond()
	e.finish()
	e.watch.stop()
	if err != nil || !e.uploaded {
		e.severUp()
	}
	if err != nil || !e.uploaded || !e.keepUp {
		e.dropUp()
	}
	return e.conclude(err)
}

// conclude says how the exchange ends for the client. An error is why there is no complete response.
func (e *exchange) conclude(err error) outcome {
	switch {
	case e.gone.Load(), e.switched:
		return closeNow
	case err == nil && e.uploaded && e.keep && e.body.complete():
		return carryOn
	case err == nil:
		// Also a response that came before the end of the request, the rest of which is of no use (TLS-34).
		e.linger(e.l.Linger)
		return closeNow
	case e.cutShort:
		abort(e.conn)
		return closeNow
	case e.started:
		e.linger(e.l.RefusalLinger)
		return closeNow
	case errors.Is(e.failure, ErrBodyMalformed):
		return e.refuseBody()
	case e.failure != nil:
		return e.fail(e.failure)
	case errors.Is(err, errSilent) && e.up.reused:
		return closeNow // TLS-38: the server may have acted upon it, and the client can tell that from nothing
	}
	return e.fail(err)
}
