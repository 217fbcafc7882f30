package proxy

import (
	"bufio"
	"errors"
	"io"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// copySize is the size of the buffers for bodies; from spliceFrom bytes on, a body of known length goes by splice(2).
const (
	copySize   = 32 << 10
	spliceFrom = 64 << 10
)

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// sendBody sends the body of a request as it comes. It returns an error if that is the client's fault, or if the server
// has stopped reading; x.sent tells whether all of it was sent. What ends it is lack of progress, never its duration.
func (x *transfer) sendBody() error {
	buf := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(buf)
	body := x.requestBody()
	x.up.bw.Reset(progressWriter{x})
	defer func() { x.up.bw.Reset(x.up.conn) }() // all is flushed by then, or the connection is not used again
	for {
		if x.br.Buffered() == 0 {
			if err := x.up.bw.Flush(); err != nil {
				return x.writeFailed(err)
			}
		}
		x.setDeadline(time.Now().Add(x.limits.Stall))
		n, err := body.Read(buf[:])
		if err := x.writeBody(buf[:n]); err != nil {
			return x.writeFailed(err)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if x.framing == httphead.Chunked {
				_ = httphead.WriteLastChunk(x.up.bw, forwardTrailer(body.trailer(), keepAll))
			}
			if err := x.up.bw.Flush(); err != nil {
				return x.writeFailed(err)
			}
			x.sent = true
			return nil
		case errors.Is(err, httphead.ErrMalformed), errors.Is(err, httphead.ErrTooLarge):
			return errBadBody
		case isTimeout(err) && x.isStopping():
			return nil
		default:
			return errClientGone
		}
	}
}

// requestBody is the body that goes out.
func (x *transfer) requestBody() *body {
	if x.body == nil {
		return newBody(x.br, x.framing, x.length)
	}
	from := x.substituted
	if from == nil {
		from = x.body.stream()
	}
	if x.framing == httphead.ByLength { // never more or less than was announced
		return &body{Reader: io.LimitReader(from, x.length), known: true, left: x.length}
	}
	return &body{Reader: from, chunked: x.body.rest.chunked}
}

// writeFailed is the result of sendBody after a failed write. A server that has closed may have answered before, and if
// not, the missing response tells; one that merely reads no more would be waited for.
func (x *transfer) writeFailed(err error) error {
	if isTimeout(err) && !x.isStopping() {
		return errStalled
	}
	return nil
}

// progressWriter writes to the upstream connection and gives up when it has taken no byte for Limits.Stall.
type progressWriter struct{ x *transfer }

func (w progressWriter) Write(p []byte) (n int, err error) {
	for {
		w.x.setDeadline(time.Now().Add(w.x.limits.Stall))
		m, err := w.x.up.conn.Write(p[n:])
		if n += m; m == 0 || !isTimeout(err) {
			return n, err
		}
	}
}

func (x *transfer) writeBody(p []byte) error {
	if x.framing == httphead.Chunked {
		return httphead.WriteChunk(x.up.bw, p)
	}
	_, err := x.up.bw.Write(p)
	return err
}

func (x *transfer) isStopping() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stopping
}

// body reads the body of a message, whatever its framing. Read returns io.EOF only at its proper end.
type body struct {
	io.Reader
	chunked *httphead.ChunkedReader
	known   bool  // the length is known
	left    int64 // bytes missing, if it is
}

func newBody(br *bufio.Reader, f httphead.Framing, length int64) *body {
	switch f {
	case httphead.Chunked:
		c := httphead.NewChunkedReader(br)
		return &body{Reader: c, chunked: c}
	case httphead.UntilClose:
		return &body{Reader: br}
	}
	return &body{Reader: io.LimitReader(br, length), known: true, left: length}
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.known {
		b.left -= int64(n)
	}
	if errors.Is(err, io.EOF) && b.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// complete reports whether a body of known length has been read.
func (b *body) complete() bool { return b.known && b.left == 0 }

func (b *body) trailer() httphead.Header {
	if b.chunked == nil {
		return nil
	}
	return b.chunked.Trailer()
}

// relayResponse relays interim responses, the final one and its body, and reports whether the upstream connection can
// carry another request.
func (x *transfer) relayResponse() (keepUp bool, err error) {
	if err := x.awaitResponse(); err != nil {
		return false, err
	}
	resp, err := x.finalHead()
	if err != nil {
		return false, err
	}
	framing, length, err := resp.Framing(x.req.Method)
	if err != nil {
		return false, errBadResponse
	}
	x.started = true
	x.observed(&x.request, resp.Status, resp.Header)
	recode := (framing == httphead.Chunked || framing == httphead.UntilClose) && x.req.Minor == 1
	x.writeHead(resp, recode)
	if framing != httphead.NoBody {
		if err := x.relayBody(newBody(x.up.br, framing, length), recode); err != nil {
			_ = x.bw.Flush() // what has come is the client's, although the rest will not follow
			if framing != httphead.ByLength && !recode {
				x.abort()
			}
			return false, err
		}
	}
	if err := x.bw.Flush(); err != nil {
		return false, err
	}
	return framing != httphead.UntilClose && resp.Minor == 1 && !resp.Header.HasToken("Connection", "close") &&
		x.up.br.Buffered() == 0 && !x.target.tls, nil
}

// awaitResponse waits for the first byte of the response.
func (x *transfer) awaitResponse() error {
	runtime.Gosched() // another goroutine may be about to bring the response: looking too early costs a system call
	if x.side == nil && !x.target.tls {
		_ = x.up.conn.SetReadDeadline(time.Now().Add(watchAfter))
		_, err := x.up.br.Peek(1)
		_ = x.up.conn.SetReadDeadline(time.Time{})
		if err == nil {
			return nil
		}
		if !isTimeout(err) {
			return errStale
		}
	}
	x.watch()
	if _, err := x.up.br.Peek(1); err != nil {
		return errStale
	}
	return nil
}

// watch starts watching the client if nothing does yet.
func (x *transfer) watch() {
	if x.side == nil {
		x.startSide(nil)
	}
}

// maxForwarded is how many interim responses a server may send before its final one.
const maxForwarded = 100

// finalHead reads up to the final response and passes on the interim ones, which HTTP/1.0 does not know. 101 cannot
// come, as no Upgrade was sent.
func (x *transfer) finalHead() (*httphead.Response, error) {
	for range maxForwarded {
		resp, err := readResponseHead(x.up.br)
		if err != nil {
			return nil, errors.Join(errBadResponse, err)
		}
		switch {
		case resp.Status >= 200:
			return resp, nil
		case resp.Status == 101:
			return nil, errBadResponse
		case x.req.Minor == 0, resp.Status == 100 && x.continued:
			continue
		}
		x.appendHead(resp, "")
		if err := x.bw.Flush(); err != nil {
			return nil, err
		}
		x.watch()
	}
	return nil, errBadResponse
}

// writeHead writes the head of the final response, without flushing it.
func (x *transfer) writeHead(resp *httphead.Response, chunked bool) {
	own := ""
	if chunked {
		own = "Transfer-Encoding: chunked\r\n"
	}
	if !x.keep {
		own += "Connection: close\r\n"
	}
	x.appendHead(resp, own)
}

func (x *transfer) appendHead(resp *httphead.Response, own string) {
	buf := x.bw.AvailableBuffer()
	buf = append(buf, "HTTP/1.1 "...)
	buf = strconv.AppendInt(buf, int64(resp.Status), 10)
	buf = append(buf, ' ')
	buf = append(buf, resp.Reason...)
	buf = append(buf, "\r\n"...)
	// A length where there is never a body (RFC 9110 section 8.6) would make some clients wait for one.
	lengthless := resp.Status < 200 || resp.Status == 204
	endToEnd(resp.Header, func(f httphead.Field) {
		if !x.stripped(f.Name) && !(lengthless && f.Is("Content-Length")) {
			buf = httphead.AppendField(buf, f.Name, f.Value)
		}
	})
	buf = append(buf, own...)
	_, _ = x.bw.Write(append(buf, "\r\n"...))
}

// relayBody relays the body of the response as it comes, in chunks if recode is set.
func (x *transfer) relayBody(b *body, recode bool) error {
	buf := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(buf)
	for !b.complete() {
		if x.up.br.Buffered() == 0 {
			if err := x.bw.Flush(); err != nil {
				return err
			}
			x.watch()
			if b.left >= spliceFrom {
				return x.spliceBody(b.left)
			}
		}
		n, err := b.Read(buf[:])
		if werr := x.writeResponse(buf[:n], recode); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			if recode {
				return httphead.WriteLastChunk(x.bw, forwardTrailer(b.trailer(), x.stripped))
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *transfer) writeResponse(p []byte, recode bool) error {
	if recode {
		return httphead.WriteChunk(x.bw, p)
	}
	_, err := x.bw.Write(p)
	return err
}

// spliceBody moves the rest of a body of known length; between two TCP sockets the bytes do not leave the kernel.
func (x *transfer) spliceBody(left int64) error {
	n, err := io.Copy(x.conn, &io.LimitedReader{R: x.up.conn, N: left})
	if err == nil && n < left {
		err = io.ErrUnexpectedEOF
	}
	return err
}
