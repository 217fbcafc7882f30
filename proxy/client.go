package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/proxy/internal/relay"
)

// The size of the buffers of one HTTP connection. A head may be longer than one buffer.
const bufferSize = 4 << 10

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bufferSize) }}
	heads   = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize); return &b }}
)

// client is one connection of a client. It is used by one goroutine, but for the watcher of watchClient.
type client struct {
	*Server
	conn     net.Conn
	br       *bufio.Reader
	bw       *bufio.Writer
	key      string // attribution of the current request
	upstream *upstream
	handed   bool // conn belongs to a tunnel
}

// handleClient serves one connection, HTTP or SOCKS, and owns it.
func (s *Server) handleClient(conn net.Conn) {
	c := &client{Server: s, conn: conn}
	c.br = readers.Get().(*bufio.Reader)
	c.br.Reset(conn)
	c.bw = writers.Get().(*bufio.Writer)
	c.bw.Reset(conn)
	defer c.end()
	_ = conn.SetReadDeadline(time.Now().Add(s.limits.FirstByte))
	first, err := c.br.Peek(1)
	switch {
	case err != nil:
	case first[0] == 0x05:
		c.serveSOCKS()
	case first[0] == 0x04: // SOCKS4 can neither authenticate nor be answered in a way that its clients report (NET-22)
	default:
		c.serveHTTP()
	}
}

// end gives back what the connection holds.
func (c *client) end() {
	if c.upstream != nil {
		c.park(c.upstream)
	}
	if !c.handed {
		c.release(c.conn)
	}
	c.br.Reset(nil)
	readers.Put(c.br)
	c.bw.Reset(nil)
	writers.Put(c.bw)
}

// serveHTTP reads requests until the connection ends or becomes a tunnel.
func (c *client) serveHTTP() {
	for {
		_ = c.conn.SetReadDeadline(time.Now().Add(c.limits.Head))
		req, err := c.readRequest()
		if err != nil {
			c.refuseHead(err)
			return
		}
		_ = c.conn.SetReadDeadline(time.Time{})
		if req.Method == "CONNECT" {
			c.serveConnect(req)
			return
		}
		if !c.servePlain(req) {
			return
		}
		if c.br.Buffered() == 0 {
			runtime.Gosched() // as in awaitResponse
			_ = c.conn.SetReadDeadline(time.Now().Add(c.limits.Idle))
			if _, err := c.br.Peek(1); err != nil {
				return
			}
		}
	}
}

// readRequest reads one head. One empty line before it is skipped (RFC 9112 section 2.2).
func (c *client) readRequest() (*httphead.Request, error) {
	buf := heads.Get().(*[]byte)
	defer heads.Put(buf)
	head, err := httphead.ReadHead(c.br, (*buf)[:0])
	if err == nil && len(head) == 2 {
		head, err = httphead.ReadHead(c.br, head[:0])
	}
	*buf = head[:0]
	if err != nil {
		return nil, err
	}
	return httphead.ParseRequest(head)
}

// refuseHead answers a head that is no request; one that never became complete gets no answer.
func (c *client) refuseHead(err error) {
	switch {
	case errors.Is(err, httphead.ErrTooLarge):
		c.answerLast(answer431, false)
	case errors.Is(err, httphead.ErrMalformed):
		c.answerLast(answer400, false)
	}
}

// answerLast sends an answer after which the connection is closed.
func (c *client) answerLast(a answer, bodyless bool) {
	if c.send(a, bodyless, true) == nil {
		lingerClose(c.conn)
	}
}

func (c *client) send(a answer, bodyless, last bool) error {
	_, err := c.bw.Write(a.append(c.bw.AvailableBuffer(), bodyless, last))
	return errors.Join(err, c.bw.Flush())
}

// watchAfter is how long something may take before the client is watched for leaving meanwhile: most dials and responses
// are done sooner, and watching costs a goroutine and two changes of thread.
const watchAfter = 10 * time.Millisecond

// watchClient watches for the end of the client's input while a request is served elsewhere, and calls gone if it comes.
// What the client sends in the meantime stays in c.br. Until stop has returned, nothing else may use c.br.
func (c *client) watchClient(gone func()) (stop func()) {
	done := make(chan struct{})
	timer := time.AfterFunc(watchAfter, func() {
		defer close(done)
		if c.watchInput() != nil {
			gone()
		}
	})
	return func() {
		if timer.Stop() {
			return
		}
		_ = c.conn.SetReadDeadline(aLongTimeAgo)
		<-done
		_ = c.conn.SetReadDeadline(time.Time{})
	}
}

// watchInput waits for the end of the client's input, which it returns as an error; nil: the read deadline has passed, or
// the client has sent so much ahead that its end cannot be seen.
func (c *client) watchInput() error {
	for {
		_, err := c.br.Peek(c.br.Buffered() + 1)
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull), isTimeout(err):
			return nil
		default:
			return err
		}
	}
}

// aLongTimeAgo as a deadline ends a read at once.
var aLongTimeAgo = time.Unix(1, 0)

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

func closeWrite(c net.Conn) error { return relay.CloseWrite(c) }

// earlyLimit is how many bytes a client may send before its tunnel is up (NET-25).
const earlyLimit = 64 << 10

// early collects what a client sends before its tunnel is up.
type early struct {
	conn  net.Conn
	timer *time.Timer // starts read; nil: nothing has taken long
	buf   []byte
	err   error
	done  chan struct{}
}

// errTooEarly is more than earlyLimit bytes before the tunnel is up.
var errTooEarly = errors.New("client sent too much before the tunnel was up")

// collectEarly takes what the client has sent already. The client's reader must not be used any more.
func (c *client) collectEarly() *early {
	e := &early{conn: c.conn, done: make(chan struct{})}
	if n := c.br.Buffered(); n > 0 {
		waiting, _ := c.br.Peek(n)
		e.buf = append(e.buf, waiting...)
	}
	return e
}

// start reads from watchAfter on and calls failed if the client's input ends or exceeds the limit.
func (e *early) start(failed func()) {
	e.timer = time.AfterFunc(watchAfter, func() { e.read(failed) })
}

func (e *early) read(failed func()) {
	defer close(e.done)
	for {
		if cap(e.buf)-len(e.buf) < 512 {
			grown := make([]byte, len(e.buf), min(2*cap(e.buf)+512, earlyLimit+1024))
			copy(grown, e.buf)
			e.buf = grown
		}
		n, err := e.conn.Read(e.buf[len(e.buf):cap(e.buf)])
		e.buf = e.buf[:len(e.buf)+n]
		if err == nil && len(e.buf) > earlyLimit {
			err = errTooEarly
		}
		if err != nil {
			e.err = err
			if !isTimeout(err) {
				failed()
			}
			return
		}
	}
}

// stop ends the reading and returns what came. An error means that the tunnel must not be opened.
func (e *early) stop() ([]byte, error) {
	if e.timer == nil || e.timer.Stop() {
		if relay.Ended(e.conn) {
			return nil, io.ErrUnexpectedEOF
		}
		return e.buf, nil // what is still in the socket follows by the tunnel
	}
	_ = e.conn.SetReadDeadline(aLongTimeAgo)
	<-e.done
	_ = e.conn.SetReadDeadline(time.Time{})
	if isTimeout(e.err) {
		return e.buf, nil
	}
	if errors.Is(e.err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	return nil, e.err
}
