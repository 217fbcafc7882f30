package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// errSilent is a connection that ended before the first byte of a response. It is an ErrNoResponse, and not made by package fmt,
// whose first use costs every start of srt more than all else that this package prepares.
var errSilent error = silentError{}

type silentError struct{}

// Error returns what ErrNoResponse says.
func (silentError) Error() string { return ErrNoResponse.Error() }

// Unwrap returns [ErrNoResponse].
func (silentError) Unwrap() error { return ErrNoResponse }

// maxInterim is how many interim responses a server may send before its final one.
const maxInterim = 100

// respond relays the response. An error says why the client has none, or not all of it.
func (e *exchange) respond() error {
	br := getReader(e.up.conn)
	defer putReader(br)
	if _, err := br.Peek(1); err != nil {
		return errSilent
	}
	resp, err := e.finalHead(br)
	if err != nil {
		return err
	}
	framing, length, err := resp.Framing(e.method)
	if err != nil {
		return fmt.Errorf("%w: its framing is contradictory", ErrBadResponse)
	}
	bw := e.getWriter(e.conn)
	defer putWriter(bw)
	if resp.Status == 101 {
		return e.switchProtocols(bw, br, resp)
	}
	byClose := e.minor == 0 && (framing == httphead.Chunked || framing == httphead.UntilClose)
	e.keep = e.keep && !byClose
	if err := e.writeHead(bw, resp, framing, length); err != nil {
		return err
	}
	e.cutShort = byClose
	if err := e.relayBody(bw, br, framing, length); err != nil {
		_ = bw.Flush() // what has come is the client's, although the rest will not follow
		return err
	}
	e.cutShort = false
	if err := bw.Flush(); err != nil {
		e.leave()
		return err
	}
	e.keepUp = framing != httphead.UntilClose && resp.Minor == 1 &&
		!resp.Header.HasToken("Connection", "close") && br.Buffered() == 0
	return nil
}

// finalHead reads up to the final response. Interim ones are not passed on (TLS-35).
func (e *exchange) finalHead(br *bufio.Reader) (*httphead.Response, error) {
	buf := heads.Get().(*[]byte)
	head := (*buf)[:0]
	defer func() { *buf = head[:0]; heads.Put(buf) }()
	for range maxInterim {
		var err error
		if head, err = httphead.ReadHeadUpTo(br, head[:0], max(responseHead, e.l.Head)); err != nil {
			return nil, fmt.Errorf("%w: its head: %w", ErrBadResponse, err)
		}
		resp, err := httphead.ParseResponse(head)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: its head: %w", ErrBadResponse, err)
		case resp.Status >= 200:
			return resp, nil
		case resp.Status != 101:
			continue
		case !e.mayBecome(resp):
			return nil, fmt.Errorf("%w: it switches to a protocol that nobody asked for", ErrBadResponse)
		}
		return resp, nil
	}
	return nil, fmt.Errorf("%w: too many interim responses", ErrBadResponse)
}

// writeHead writes the head of the final response, without flushing it.
func (e *exchange) writeHead(bw *bufio.Writer, resp *httphead.Response, framing httphead.Framing, length int64) error {
	fields, err := e.responseFields(resp)
	if err != nil {
		return err
	}
	// A body that has arrived is about to be sent to its end, if it is not by now. One that has not may never be.
	if e.body != nil && !e.body.arrived.Load() || e.side == nil && !e.uploaded || e.gate.isDraining() {
		e.keep = false
	}
	e.begin()
	buf := appendStatus(bw.AvailableBuffer(), resp)
	buf = appendResponseFields(buf, fields, resp.Status, framing, length)
	if e.minor == 1 && (framing == httphead.Chunked || framing == httphead.UntilClose) {
		buf = append(buf, "Transfer-Encoding: chunked\r\n"...)
	}
	if e.keep {
		buf = append(buf, "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"...) // TLS-43
	} else {
		buf = append(buf, "Connection: close\r\n"...)
	}
	_, _ = bw.Write(append(buf, "\r\n"...)) // the writer keeps its error for the flush
	return nil
}

// responseFields returns the fields that the client gets, but for those of the engine. What the handler has made of them is
// looked at: a value that ends its line would be another field, or another response.
func (e *exchange) responseFields(resp *httphead.Response) (httphead.Header, error) {
	fields := endToEnd(resp.Header)
	if e.out.Response == nil {
		return fields, nil
	}
	fields = e.out.Response(resp.Status, fields)
	for _, f := range fields {
		if !isValid(f) {
			return nil, fmt.Errorf("%w: a field of its response holds a character that none may hold", ErrOutgoing)
		}
	}
	return fields, nil
}

// begin notes that the client gets a final response, before which "100 Continue" may have gone and after which it may not.
func (e *exchange) begin() {
	e.headMu.Lock()
	e.started = true
	e.headMu.Unlock()
}

func appendStatus(buf []byte, resp *httphead.Response) []byte {
	buf = append(buf, "HTTP/1.1 "...)
	buf = strconv.AppendInt(buf, int64(resp.Status), 10)
	buf = append(buf, ' ')
	buf = append(buf, resp.Reason...)
	return append(buf, "\r\n"...)
}

// appendResponseFields appends end-to-end fields, and the length as this package knows it: what says where a message ends
// is not for a handler to change.
func appendResponseFields(
	buf []byte, fields httphead.Header, status int, framing httphead.Framing, length int64,
) []byte {
	due := framing == httphead.ByLength
	for _, f := range fields {
		switch {
		case isConnectionField(f.Name):
			continue
		case !f.Is("Content-Length"):
		case due:
			due = false
			f.Value = strconv.FormatInt(length, 10)
		case framing != httphead.NoBody || status < 200 || status == 204:
			continue // a length where there is never a body (RFC 9110 section 8.6) would make some clients wait for one
		}
		buf = httphead.AppendField(buf, f.Name, f.Value)
	}
	if due {
		buf = append(buf, "Content-Length: "...)
		buf = strconv.AppendInt(buf, length, 10)
		buf = append(buf, "\r\n"...)
	}
	return buf
}

// relayBody relays the body of the response as it comes.
func (e *exchange) relayBody(bw *bufio.Writer, br *bufio.Reader, framing httphead.Framing, length int64) error {
	if framing == httphead.NoBody || framing == httphead.ByLength && length == 0 {
		return nil
	}
	src, ready := io.Reader(br), func() bool { return br.Buffered() > 0 }
	if framing == httphead.Chunked {
		chunked := httphead.NewChunkedReader(br)
		src, ready = chunked, chunked.Ready
	}
	recode := framing != httphead.ByLength && e.minor == 1
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	for {
		if !ready() && bw.Flush() != nil {
			e.leave()
			return ErrClientGone
		}
		into := b.data()
		if framing == httphead.ByLength && int64(len(into)) > length {
			into = into[:length]
		}
		n, err := src.Read(into)
		length -= int64(n)
		if sendBlock(bw, b, n, recode) != nil {
			e.leave()
			return ErrClientGone
		}
		switch {
		case framing == httphead.ByLength && length == 0:
			return nil
		case errors.Is(err, io.EOF) && framing != httphead.ByLength:
			if recode {
				_, _ = bw.WriteString("0\r\n\r\n") // trailers end here (TLS-32)
			}
			return nil
		case err != nil:
			return fmt.Errorf("%w: it was cut short: %w", ErrBadResponse, err)
		}
	}
}
