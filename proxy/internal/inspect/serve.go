package inspect

import (
	"bufio"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// bufferSize is the size in bytes of the buffers that hold heads. A head may be longer than one buffer.
const bufferSize = 4 << 10

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}
	heads   = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize); return &b }}
)

// aLongTimeAgo as a deadline ends a read at once.
var aLongTimeAgo = time.Unix(1, 0)

// client is one connection of a client. One goroutine serves it; watch and an upload read from it in between.
type client struct {
	conn net.Conn
	br   *bufio.Reader
	h    Handler
	l    Limits
	ctx  context.Context

	gate  gate
	watch watch
	stall stall

	mu  sync.Mutex // guards the following, which sever and leave use from anywhere
	up  *upstream
	cut bool // sever was called
	// cancel ends the context of the request that is under way; nil: none is.
	cancel context.CancelCauseFunc

	gone atomic.Bool // the client has left

	headMu  sync.Mutex // held while an interim response is written
	started bool       // the head of the final response has begun

	take func(net.Conn, *bufio.Reader) // of the request that hands the connection over
}

// Serve reads requests from a client's connection, one at a time, and forwards what its handler lets through. It returns
// when the connection is to be closed, after whatever lingering TLS-46 wants, or once it has been taken over, which it
// reports; otherwise the caller closes conn. The upstream connection is closed by then, unless the connection was taken
// over in which case there is none.
//
// conn can be of any kind. If it has a NetConn method, as a *tls.Conn has, that is the socket whose queue and end are looked
// at. Its deadlines are this function's until it returns. br reads from conn and may hold input already; nil makes one.
// When ctx ends, both connections are cut.
//
// A connection that waits for a request, with its upstream one, costs 4 to 7 KiB, 4 of them br (BenchmarkIdle), and no
// goroutine but the caller's. One that carries bodies borrows three buffers of 4 KiB and one of 64 KiB for each direction
// that moves, and a second goroutine while an upload is under way or something takes longer than 10 ms. What one side does
// not take is not read from the other (TLS-45).
func Serve(ctx context.Context, conn net.Conn, br *bufio.Reader, h Handler, l Limits) (taken bool) {
	if br == nil {
		br = readers.Get().(*bufio.Reader)
		br.Reset(conn)
	}
	c := &client{conn: conn, br: br, h: h, l: l.withDefaults(), ctx: ctx}
	c.gate.conn = conn
	c.watch.init(c)
	c.stall.start(c)
	if !c.serveAll() {
		return false
	}
	_ = conn.SetDeadline(time.Time{})
	c.take(conn, c.br)
	return true
}

// serveAll serves requests until the connection has ended, or is to be handed over, which it reports. Nothing of c is
// running any more when it returns.
func (c *client) serveAll() (handed bool) {
	defer c.stall.stop()
	defer c.dropUp()
	defer context.AfterFunc(c.ctx, c.sever)()
	if c.l.Drain != nil {
		defer context.AfterFunc(c.l.Drain, c.gate.drain)()
	}
	limit := c.l.FirstHead
	for {
		req, ok := c.next(limit)
		if !ok {
			return false
		}
		if end := c.serve(req); end != carryOn {
			return end == handedOver
		}
		limit = c.l.Idle
	}
}

// outcome is what becomes of a connection after a request.
type outcome uint8

const (
	closeNow   outcome = iota // the caller closes it
	carryOn                   // it may carry another request
	handedOver                // it belongs to somebody else
)

// next reads one request, which has to be complete within limit. false: the connection has been ended.
func (c *client) next(limit time.Duration) (*httphead.Request, bool) {
	c.gate.await(limit)
	head, buf, err := c.readHead()
	defer func() { *buf = head[:0]; heads.Put(buf) }()
	c.gate.came()
	var req *httphead.Request
	if err == nil {
		req, err = httphead.ParseRequest(head)
	}
	switch {
	case err == nil:
		return req, true
	case errors.Is(err, httphead.ErrMalformed), errors.Is(err, httphead.ErrTooLarge):
		c.refuse(c.h.Malformed(diagnose(string(head), err)))
	case isTimeout(err) && c.gate.isDraining():
		c.linger(c.l.Linger)
	case isTimeout(err):
		if c.l.Cap > 0 {
			limit = c.l.Cap
		}
		c.linger(limit)
	}
	return nil, false
}

// readHead reads one head into a pooled buffer. One empty line before it is skipped (RFC 9112 section 2.2).
func (c *client) readHead() (head []byte, buf *[]byte, err error) {
	buf = heads.Get().(*[]byte)
	head, err = httphead.ReadHeadUpTo(c.br, (*buf)[:0], c.l.Head)
	if err == nil && len(head) == 2 {
		head, err = httphead.ReadHeadUpTo(c.br, head[:0], c.l.Head)
	}
	return head, buf, err
}

// refuse sends an answer, if there is one, and ends the connection (REQ-3, TLS-46). Nothing else uses it any more.
func (c *client) refuse(a Answer) outcome {
	if len(a) > 0 && !c.gone.Load() {
		if _, err := (stallWriter{c, c.conn}).Write(a); err == nil {
			c.linger(c.l.RefusalLinger)
		}
	}
	return closeNow
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
