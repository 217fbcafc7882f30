package proxy

import (
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// Why an exchange failed.
var (
	// errStale is a connection that ended before the first byte of a response.
	errStale = errors.New("the upstream connection ended before a response")
	// errBadBody is a request body that is no valid chunked coding.
	errBadBody = errors.New("the request body is malformed")
	// errStalled is a server that takes no more of a request body.
	errStalled = errors.New("the upstream server stopped reading the request")
	// errBadResponse is a response that cannot be relayed (NET-33).
	errBadResponse = errors.New("the upstream response cannot be relayed")
)

// transfer is one exchange on one upstream connection.
//
// The main goroutine sends the head and relays the response. A side goroutine sends a body that is not there yet, as a
// response may begin before the body ends, and watches the client for leaving. It owns client.br and up.bw while it runs.
type transfer struct {
	*client
	*exchange
	up *upstream

	started bool          // a final response head has gone to the client
	side    chan struct{} // closed when the side goroutine has ended; nil: there was none

	// Written before side is closed, or by the main goroutine if there is no side goroutine.
	sent    bool  // the whole request has been sent
	failure error // of the request: the client left (errClientGone), errBadBody or errStalled

	mu       sync.Mutex
	stopping bool
}

// run performs the exchange and reports whether the client's connection may carry another request. An error means that
// no final response has reached the client. run keeps or drops the upstream connection.
func (x *transfer) run() (keep bool, err error) {
	x.sendHead()
	keepUp, err := x.relayResponse()
	x.finish()
	if keepUp && err == nil && x.sent {
		x.keepUpstream(x.up)
	} else {
		x.drop(x.up)
	}
	switch {
	case err == nil && x.failure == nil && !x.sent:
		lingerClose(x.conn) // the response came before the end of the request, the rest of which is of no use
		return false, nil
	case err == nil:
		return x.keep && x.failure == nil, nil
	case x.started:
		return false, nil
	case x.failure != nil:
		return false, x.failure
	}
	return false, err
}

// sendHead sends the head and as much of the body as needs no waiting. A failed write is not reported: the server may
// have answered before it closed, and if not, the missing response tells.
func (x *transfer) sendHead() {
	target := x.target.path
	if x.parent != nil {
		target = x.target.url(x.host)
	}
	buf := x.up.bw.AvailableBuffer()
	buf = append(buf, x.req.Method...)
	buf = append(buf, ' ')
	buf = append(buf, target...)
	buf = append(buf, " HTTP/1.1\r\n"...)
	buf = x.appendFields(buf)
	_, _ = x.up.bw.Write(buf)
	if x.framing == httphead.Chunked || x.length > int64(x.br.Buffered()) || x.body != nil && x.hasBody() {
		_ = x.up.bw.Flush()
		x.startSide(x.sendBody)
		return
	}
	if x.length > 0 {
		body, _ := x.br.Peek(int(x.length))
		_, _ = x.up.bw.Write(body)
		_, _ = x.br.Discard(int(x.length))
	}
	x.sent = x.up.bw.Flush() == nil
}

// appendFields appends the fields of the request and the empty line: Host in the place of the client's first one, the
// end-to-end fields as spelled, and those of this connection.
func (x *transfer) appendFields(buf []byte) []byte {
	host := x.target.hostField(x.host)
	named := false
	if _, hosts := x.req.Header.Get("Host"); hosts == 0 {
		named = true
		buf = httphead.AppendField(buf, "Host", host)
	}
	endToEnd(x.req.Header, func(f httphead.Field) {
		if f.Is("Host") {
			if !named {
				named = true
				buf = httphead.AppendField(buf, f.Name, host)
			}
			return
		}
		if f.Is("Authorization") && bindsConnection(f.Value) {
			x.up.bound = true
		}
		buf = httphead.AppendField(buf, f.Name, f.Value)
	})
	if x.framing == httphead.Chunked {
		buf = append(buf, "Transfer-Encoding: chunked\r\n"...)
	}
	if x.parent != nil && x.parent.auth != "" {
		buf = httphead.AppendField(buf, "Proxy-Authorization", x.parent.auth)
	}
	return append(buf, "\r\n"...)
}

// bindsConnection reports whether credentials authenticate the connection rather than the request (RFC 4559 section 6).
func bindsConnection(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "NTLM") || strings.EqualFold(scheme, "Negotiate")
}

// startSide runs send, which may be nil, and then watches the client.
func (x *transfer) startSide(send func() error) {
	x.side = make(chan struct{})
	go func() {
		defer close(x.side)
		if send != nil {
			if err := send(); err != nil {
				x.fail(err)
				return
			}
			if !x.sent {
				return
			}
			x.setDeadline(time.Time{})
		}
		if x.watchInput() != nil {
			x.fail(errClientGone)
		}
	}()
}

// fail notes a failure on the client's side and ends the upstream request (NET-33).
func (x *transfer) fail(err error) {
	x.failure = err
	_ = x.up.conn.Close()
}

// abort makes the close of the client's connection a reset: where a close is the end of the body, as with HTTP/1.0, one
// that was cut short must not look complete.
func (x *transfer) abort() {
	if tcp, ok := x.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// setDeadline bounds what the side goroutine waits for, unless it is being stopped.
func (x *transfer) setDeadline(t time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.stopping {
		_ = x.conn.SetReadDeadline(t)
		_ = x.up.conn.SetWriteDeadline(t)
	}
}

// finish stops the side goroutine, if there is one, and waits for it.
func (x *transfer) finish() {
	if x.side == nil {
		return
	}
	x.mu.Lock()
	x.stopping = true
	_ = x.conn.SetReadDeadline(aLongTimeAgo)
	_ = x.up.conn.SetWriteDeadline(aLongTimeAgo)
	x.mu.Unlock()
	<-x.side
	_ = x.conn.SetReadDeadline(time.Time{})
	_ = x.up.conn.SetWriteDeadline(time.Time{})
}
