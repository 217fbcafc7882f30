package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// mayBecome reports whether a 101 is what the client asked for.
func (e *exchange) mayBecome(resp *httphead.Response) bool {
	protocol, count := resp.Header.Get("Upgrade")
	return e.out.Upgrade != "" && count == 1 && httphead.EqualFold(protocol, e.out.Upgrade) &&
		resp.Header.HasToken("Connection", "upgrade")
}

// switchProtocols passes on a 101 and then bytes, both ways, until both sides have ended.
func (e *exchange) switchProtocols(bw *bufio.Writer, br *bufio.Reader, resp *httphead.Response) error {
	e.finish()
	e.watch.stop()
	if !e.uploaded {
		return fmt.Errorf("%w: it switches protocols in the middle of the request", ErrBadResponse)
	}
	fields, err := e.responseFields(resp)
	if err != nil {
		return err
	}
	e.begin()
	e.switched = true
	buf := appendStatus(bw.AvailableBuffer(), resp)
	buf = appendResponseFields(buf, fields, resp.Status, httphead.NoBody, 0)
	buf = append(buf, "Connection: Upgrade\r\n"...)
	buf = httphead.AppendField(buf, "Upgrade", e.out.Upgrade)
	_, _ = bw.Write(append(buf, "\r\n"...))
	if bw.Flush() != nil {
		e.leave()
		return ErrClientGone
	}
	e.join(br)
	return nil
}

// join relays bytes between the two connections until both directions have ended.
func (e *exchange) join(br *bufio.Reader) {
	var ended atomic.Bool // one direction has
	other := make(chan struct{})
	go func() {
		defer close(other)
		e.pump(e.up.conn, e.conn, e.br, &ended)
	}()
	e.pump(e.conn, e.up.conn, br, &ended)
	<-other
	_ = e.conn.SetReadDeadline(time.Time{})
}

// pump is one direction. While it waits it holds no buffer but its reader's. The end of one side's sending is passed on to
// the other one, which must not be silent for longer than Limits.Stall from then on.
func (e *exchange) pump(dst, src net.Conn, br *bufio.Reader, ended *atomic.Bool) {
	to := stallWriter{e.client, dst}
	for {
		if ended.Load() {
			_ = src.SetReadDeadline(time.Now().Add(e.l.Stall))
		}
		_, err := br.Peek(1)
		if err == nil {
			err = copyWaiting(to, br)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && closeWrite(dst):
			ended.Store(true)
			_ = dst.SetReadDeadline(time.Now().Add(e.l.Stall))
		default:
			e.sever() // a failure, too long a silence, or nothing that passes an end on
		}
		return
	}
}

// copyWaiting copies what a reader holds, and goes on for as long as there is much to read.
func copyWaiting(to io.Writer, br *bufio.Reader) error {
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	for {
		n, err := br.Read(b.data())
		if n > 0 {
			if _, err := to.Write(b.data()[:n]); err != nil {
				return err
			}
		}
		if err != nil || n < bufferSize {
			return err
		}
	}
}
