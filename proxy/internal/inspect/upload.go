package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// sendNow is the longest body in bytes that is sent without a goroutine of its own, if it is there already: any socket
// takes as much at once.
const sendNow = 16 << 10

// appendHead appends the head as it goes upstream. What the handler has made is looked at once more: a name or a value that
// ends its line would be another field, or another request.
func (e *exchange) appendHead(buf []byte) ([]byte, error) {
	target := e.out.Target
	if target == "" {
		target = e.r.Target
	}
	if !validTarget(target) {
		return buf, fmt.Errorf("%w: its target holds a space, a control character or a byte outside ASCII", ErrOutgoing)
	}
	if e.method == "CONNECT" {
		return buf, fmt.Errorf("%w: a CONNECT opens a tunnel and is no request to a server", ErrOutgoing)
	}
	buf = append(buf, e.method...)
	buf = append(buf, ' ')
	buf = append(buf, target...)
	buf = append(buf, " HTTP/1.1\r\n"...)
	hosts := 0
	for _, f := range e.out.Header {
		switch {
		case !isValid(f):
			return buf, fmt.Errorf("%w: a header field holds a character that none may hold", ErrOutgoing)
		case f.Is("Host"):
			hosts++
		case isConnectionField(f.Name), f.Is("Content-Length"), f.Is("Expect"):
			continue
		}
		buf = httphead.AppendField(buf, f.Name, f.Value)
	}
	if hosts != 1 {
		return buf, fmt.Errorf("%w: it has %d Host fields", ErrOutgoing, hosts)
	}
	return e.appendFraming(buf)
}

// appendFraming appends the fields that are the engine's, and the empty line.
func (e *exchange) appendFraming(buf []byte) ([]byte, error) {
	switch {
	case e.out.Body == nil && e.body != nil:
		return buf, fmt.Errorf("%w: the body that the client declared is missing", ErrOutgoing)
	case e.out.Body == nil:
	case e.out.Length < 0:
		buf = append(buf, "Transfer-Encoding: chunked\r\n"...)
	default:
		buf = append(buf, "Content-Length: "...)
		buf = strconv.AppendInt(buf, e.out.Length, 10)
		buf = append(buf, "\r\n"...)
	}
	if protocol := e.out.Upgrade; protocol != "" {
		if !httphead.ValidValue(protocol) {
			return buf, fmt.Errorf("%w: the protocol to upgrade to holds a character that none may hold", ErrOutgoing)
		}
		buf = append(buf, "Connection: Upgrade\r\n"...)
		buf = httphead.AppendField(buf, "Upgrade", protocol)
	}
	return append(buf, "\r\n"...), nil
}

// send sends the head and starts the body. A failed write is not reported: the server may have answered before it closed,
// and if not, the missing response tells.
func (e *exchange) send(head []byte) {
	bw := e.getWriter(e.up.conn)
	_, _ = bw.Write(head)
	if e.out.Body == nil {
		e.uploaded = bw.Flush() == nil
		putWriter(bw)
		return
	}
	e.watch.stop() // the body is read from the same connection
	if ready, all := e.body.waiting(); all && ready <= sendNow && e.out.Length <= sendNow {
		e.upload(bw)
		e.watch.start()
		return
	}
	e.side = make(chan struct{})
	go func() {
		defer close(e.side)
		e.upload(bw)
		if e.uploaded {
			e.watch.start()
		}
	}()
}

// upload sends the body as it comes and gives the writer back. A body that fails on this side ends the upstream request at
// once, so that it cannot look complete (TLS-34).
func (e *exchange) upload(bw *bufio.Writer) {
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	defer putWriter(bw)
	sent := int64(0)
	for empty := 0; empty < maxEmptyReads; {
		// What waits in the client's reader joins what is to be sent; before waiting for more, it goes out.
		if !e.body.ready() && bw.Flush() != nil {
			return
		}
		n, err := e.out.Body.Read(b.data())
		if sent += int64(n); e.out.Length >= 0 && sent > e.out.Length {
			e.uploadFailed(fmt.Errorf("%w: its body is longer than announced", ErrOutgoing))
			return
		}
		if sendBlock(bw, b, n, e.out.Length < 0) != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			e.endUpload(bw, sent)
			return
		}
		if err != nil {
			e.uploadFailed(err)
			return
		}
		if empty++; n > 0 {
			empty = 0
		}
	}
	e.uploadFailed(fmt.Errorf("%w: %w", ErrOutgoing, io.ErrNoProgress))
}

// maxEmptyReads is how often a body may give nothing in a row.
const maxEmptyReads = 100

// endUpload ends a body that was read to its end.
func (e *exchange) endUpload(bw *bufio.Writer, sent int64) {
	switch {
	case e.out.Length >= 0 && sent != e.out.Length:
		e.uploadFailed(fmt.Errorf("%w: its body is shorter than announced", ErrOutgoing))
		return
	case !e.body.complete():
		e.uploadFailed(fmt.Errorf("%w: its body leaves out some of what the client sent", ErrOutgoing))
		return
	}
	if e.out.Length < 0 {
		_, _ = bw.WriteString("0\r\n\r\n") // trailers end here (TLS-32)
	}
	e.uploaded = bw.Flush() == nil
}

// uploadFailed notes why a body cannot be sent to its end.
func (e *exchange) uploadFailed(err error) {
	switch {
	case e.stopping.Load():
		return
	case errors.Is(err, ErrClientGone):
	case errors.Is(err, ErrBodyMalformed), errors.Is(err, ErrOutgoing):
		e.failure = err
	default:
		e.failure = fmt.Errorf("%w: its body cannot be read: %w", ErrOutgoing, err)
	}
	e.severUp()
}

// finish ends an upload that is still under way and waits for it.
func (e *exchange) finish() {
	if e.side == nil {
		return
	}
	select {
	case <-e.side:
		return
	default:
	}
	e.stopping.Store(true)
	e.gate.interrupt()
	_ = e.up.conn.SetWriteDeadline(aLongTimeAgo)
	<-e.side
	e.gate.resume()
	_ = e.up.conn.SetWriteDeadline(time.Time{})
}

// goOn answers "Expect: 100-continue" once the body is wanted (TLS-34): not after a final response, nor if the client has
// not waited.
func (c *client) goOn() {
	c.headMu.Lock()
	defer c.headMu.Unlock()
	if !c.started && c.br.Buffered() == 0 {
		_, _ = stallWriter{c, c.conn}.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}
