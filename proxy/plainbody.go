package proxy

import (
	"bytes"
	"errors"
	"io"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// bodyKept is how many bytes of a body may be read before it goes out (REQ-14), as in package inspect.
const bodyKept = 64 << 20

// plainBody is the body of a plain request that is read before the request goes out. What is read is kept, to be forwarded
// first. It is used by one goroutine.
type plainBody struct {
	*client
	*exchange
	rest *body
	kept []byte
	err  error // that ended the reading of rest
	// unwatched runs a read while nobody else uses the client's input, and gone says that the client has left; both are set
	// while a step is watched.
	unwatched func(read func())
	gone      func()
}

// Read reads what is still on the connection, and asks for it first where the client waits for that (NET-32).
func (b *plainBody) Read(p []byte) (n int, err error) {
	switch room := bodyKept - len(b.kept); {
	case len(p) == 0:
		return 0, nil
	case b.err != nil:
		return 0, b.err
	case b.rest.complete():
		b.err = io.EOF
		return 0, b.err
	case room == 0:
		return 0, ErrBodyLimit
	case len(p) > room:
		p = p[:room]
	}
	n, err = b.fetch(p)
	b.kept = append(b.kept, p[:n]...)
	return n, err
}

// fetch reads what is still on the connection. While a step is watched it is that which waits for the client; afterwards,
// that is up to whoever sends the body.
func (b *plainBody) fetch(p []byte) (n int, err error) {
	if b.unwatched == nil {
		n, b.err = b.rest.Read(p)
		return n, b.err
	}
	b.unwatched(func() {
		if err = b.sendContinue(b.conn); err != nil {
			return
		}
		_ = b.conn.SetReadDeadline(time.Now().Add(b.limits.Stall))
		n, err = b.rest.Read(p)
		_ = b.conn.SetReadDeadline(time.Time{})
	})
	b.err = err
	if err != nil && !errors.Is(err, io.EOF) && !b.malformed() {
		b.gone()
	}
	return n, err
}

// malformed reports whether what was read is no body.
func (b *plainBody) malformed() bool {
	return errors.Is(b.err, httphead.ErrMalformed) || errors.Is(b.err, httphead.ErrTooLarge)
}

// stream returns the whole body: what was kept, then the rest as it comes.
func (b *plainBody) stream() io.Reader {
	return io.MultiReader(bytes.NewReader(b.kept), readerFunc(b.fetch))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
