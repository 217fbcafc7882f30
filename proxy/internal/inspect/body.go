package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// Body is the body of a request. While [Handler.Judge] runs it may read it, with Read or by Stream, from one goroutine at a
// time; a read that is still under way when Judge returns is ended, and such a request can no longer be forwarded.
type Body struct {
	c      *client
	expect bool // the client waits for "100 Continue"

	sealed atomic.Bool // Judge has returned

	mu        sync.Mutex // held while it is read
	chunked   *httphead.ChunkedReader
	left      int64 // bytes missing, if it is not chunked
	kept      []byte
	given     int         // bytes of kept that Stream has given
	streaming bool        // Stream has given something
	done      bool        // all of it has been read
	arrived   atomic.Bool // the same, for who does not hold mu
	err       error
}

func newBody(c *client, r *httphead.Request, f httphead.Framing, length int64) *Body {
	b := &Body{c: c, left: length}
	if f == httphead.Chunked {
		b.chunked = httphead.NewChunkedReader(c.br)
	}
	if b.chunked == nil && length == 0 {
		b.end()
	}
	_, expects := r.Header.Get("Expect")
	b.expect = expects > 0 && r.Minor == 1
	return b
}

// Read is for the handler before the request goes out: what is read is kept and forwarded first. io.EOF is the proper end.
// Other errors match [ErrClientGone], [ErrBodyLimit], [ErrBodyMalformed] or [ErrBodyClosed], the last one also after
// something was read by way of Stream.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sealed.Load() || b.streaming {
		return 0, ErrBodyClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	room := b.c.l.BodyKept - int64(len(b.kept))
	if room <= 0 {
		return 0, b.atLimit()
	}
	n, err := b.fetch(p[:min(int64(len(p)), room)])
	b.kept = append(b.kept, p[:n]...)
	return n, err
}

// atLimit tells the end of a body from the limit, which may coincide: one byte more is kept, and nobody is shown it.
func (b *Body) atLimit() error {
	if int64(len(b.kept)) == b.c.l.BodyKept {
		if b.done {
			return io.EOF
		}
		var next [1]byte
		n, err := b.fetch(next[:])
		if b.kept = append(b.kept, next[:n]...); err != nil {
			return err
		}
	}
	return ErrBodyLimit
}

// Stream returns all of the body, once: what was kept, then the rest as it comes, which is not kept. Its Read returns io.EOF
// only at the proper end; its errors are those of Read, but for [ErrBodyLimit]. Every call returns the same stream.
func (b *Body) Stream() io.Reader { return stream{b} }

type stream struct{ *Body }

func (s stream) Read(p []byte) (int, error) {
	b := s.Body
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	b.streaming = true
	if b.given < len(b.kept) {
		n := copy(p, b.kept[b.given:])
		if b.given += n; b.given == len(b.kept) {
			b.kept, b.given = nil, 0
		}
		return n, nil
	}
	return b.fetch(p)
}

// fetch reads from the client. While the request is judged it takes the place of the watch for its leaving.
func (b *Body) fetch(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.done:
		return 0, io.EOF
	}
	judging := !b.sealed.Load()
	if judging {
		b.c.watch.stop()
	}
	if b.expect {
		b.expect = false
		b.c.goOn()
	}
	b.c.stall.begin()
	n, err := b.read(p)
	b.c.stall.end()
	if b.err = b.explain(err); b.err == nil && judging {
		b.c.watch.start()
	}
	if b.err == nil && b.done && n == 0 {
		return 0, io.EOF
	}
	return n, b.err
}

// read reads once, and sets done at the proper end.
func (b *Body) read(p []byte) (n int, err error) {
	if b.chunked != nil {
		n, err = b.chunked.Read(p)
		if errors.Is(err, io.EOF) {
			b.end()
			err = nil
		}
		return n, err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err = b.c.br.Read(p)
	b.left -= int64(n)
	if b.left == 0 {
		b.end()
		err = nil
	}
	return n, err
}

// end notes that all has been read.
func (b *Body) end() {
	b.done = true
	b.arrived.Store(true)
}

// explain turns an error of a read into one that a handler can be told.
func (b *Body) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, httphead.ErrMalformed), errors.Is(err, httphead.ErrTooLarge):
		return ErrBodyMalformed
	case isTimeout(err):
		return ErrBodyClosed // interrupted: nothing else sets a deadline meanwhile
	}
	b.c.leave()
	return fmt.Errorf("%w before the end of the request body: %w", ErrClientGone, err)
}

// seal ends the reading by the handler and returns what went wrong with it. Afterwards the body is the engine's.
func (b *Body) seal() error {
	if b == nil {
		return nil
	}
	b.sealed.Store(true)
	if !b.mu.TryLock() {
		b.c.gate.interrupt()
		b.mu.Lock() // waits for the reader
		b.c.gate.resume()
	}
	defer b.mu.Unlock()
	return b.err
}

// waiting returns how much of the body can be read without waiting for the client, and whether that is all of it.
func (b *Body) waiting() (n int64, all bool) {
	if b == nil {
		return 0, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n = int64(len(b.kept) - b.given)
	if b.done {
		return n, true
	}
	return n + b.left, b.chunked == nil && b.left <= int64(b.c.br.Buffered())
}

// ready reports whether something of the rest, or its end, can be read without waiting for the client.
func (b *Body) ready() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.given < len(b.kept), b.done, b.err != nil:
		return true
	case b.chunked != nil:
		return b.chunked.Ready()
	}
	return b.c.br.Buffered() > 0
}

// complete reports whether all of the body was read from the client, so that the next request follows.
func (b *Body) complete() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done && b.err == nil
}

// blockSize is how many bytes of a body are moved at once, four records of TLS: beyond it, calls to the kernel are no longer
// what counts.
const blockSize = 64 << 10

// block is a buffer for body bytes, with room around them for what makes them a chunk: three writes for each chunk would be
// three records of TLS.
type block struct {
	bytes [chunkHead + blockSize + 2]byte
}

const chunkHead = len("10000\r\n")

var blocks = sync.Pool{New: func() any { return new(block) }}

// data is where bytes are read to.
func (b *block) data() []byte { return b.bytes[chunkHead : chunkHead+blockSize] }

// chunk returns the first n bytes, at least one, of data as a chunk.
func (b *block) chunk(n int) []byte {
	b.bytes[chunkHead+n], b.bytes[chunkHead+n+1] = '\r', '\n'
	start := chunkHead - 2
	b.bytes[start], b.bytes[start+1] = '\r', '\n'
	for size := n; size > 0; size >>= 4 {
		start--
		b.bytes[start] = "0123456789abcdef"[size&0xf]
	}
	return b.bytes[start : chunkHead+n+2]
}

// sendBlock writes the first n bytes of a block, as a chunk or as they are.
func sendBlock(w *bufio.Writer, b *block, n int, chunked bool) error {
	if n == 0 {
		return nil // an empty chunk would end the body
	}
	if chunked {
		_, err := w.Write(b.chunk(n))
		return err
	}
	_, err := w.Write(b.data()[:n])
	return err
}
