package httphead

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// maxChunkLine is the longest chunk size line in bytes, extensions included.
const maxChunkLine = 1 << 10

// ChunkedReader decodes a chunked body. Chunk extensions are checked and dropped. It reads nothing beyond the end of the
// body. Use it from one goroutine.
type ChunkedReader struct {
	br      *bufio.Reader
	left    uint64 // bytes left in the current chunk
	started bool   // a chunk was begun whose CRLF is due before the next size line
	trailer Header
	err     error
}

// NewChunkedReader returns a reader of the body that comes next in br.
func NewChunkedReader(br *bufio.Reader) *ChunkedReader { return &ChunkedReader{br: br} }

// Read returns decoded bytes, io.EOF after the last chunk and the trailer section. Other errors: [ErrMalformed],
// [ErrTooLarge] for the trailer section, io.ErrUnexpectedEOF, and those of the source. It never waits for bytes beyond
// those of the current chunk once it has some.
func (c *ChunkedReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if c.left == 0 {
		if c.err = c.next(); c.err != nil {
			return 0, c.err
		}
	}
	if uint64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.br.Read(p)
	c.left -= uint64(n)
	if err != nil {
		c.err = noEOF(err)
		if n > 0 {
			return n, nil
		}
		return n, c.err
	}
	if c.left == 0 && c.br.Buffered() >= 2 {
		// What is left of a chunk that came as a whole must not look like the beginning of the next one: who forwards what
		// it has once nothing is buffered would hold it back.
		c.err = c.endChunk()
	}
	return n, nil
}

// Ready reports whether the next Read returns without waiting for the source. It may report false where it does.
func (c *ChunkedReader) Ready() bool {
	waiting, _ := c.br.Peek(c.br.Buffered())
	switch {
	case c.err != nil:
		return true
	case c.left > 0:
		return len(waiting) > 0
	case c.started:
		if len(waiting) < 2 {
			return false
		}
		waiting = waiting[2:] // whether it is CRLF is for Read to find out
	}
	line := bytes.IndexByte(waiting, '\n')
	if line < 0 {
		return false
	}
	if waiting[0] == '0' { // the last chunk, or one in strange spelling
		return bytes.Contains(waiting, []byte("\n\r\n"))
	}
	return len(waiting) > line+1
}

// endChunk reads the CRLF after the data of a chunk.
func (c *ChunkedReader) endChunk() error {
	end, err := c.br.Peek(2)
	switch {
	case len(end) > 0 && end[0] != '\r', len(end) > 1 && end[1] != '\n':
		return ErrMalformed
	case err != nil:
		return noEOF(err)
	}
	c.started = false
	_, _ = c.br.Discard(2) // it is buffered
	return nil
}

// Trailer returns the trailer section, once Read has returned io.EOF.
func (c *ChunkedReader) Trailer() Header { return c.trailer }

// next reads up to the data of the next chunk. io.EOF: there is none, and the trailer section has been read.
func (c *ChunkedReader) next() error {
	if c.started {
		if err := c.endChunk(); err != nil {
			return err
		}
	}
	c.started = true
	line, err := c.line()
	if err != nil {
		return err
	}
	if c.left, err = parseChunkSize(line); err != nil {
		return err
	}
	if c.left > 0 {
		return nil
	}
	section, err := ReadHead(c.br, nil)
	if err != nil {
		return noEOF(err)
	}
	if c.trailer, err = parseFields(string(section)); err != nil {
		return err
	}
	return io.EOF
}

// line reads one line without its CRLF. The result is valid until the next read.
func (c *ChunkedReader) line() ([]byte, error) {
	line, err := c.br.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, ErrMalformed
	case err != nil:
		return nil, noEOF(err)
	case len(line) < 2 || line[len(line)-2] != '\r' || len(line) > maxChunkLine:
		return nil, ErrMalformed
	}
	return line[:len(line)-2], nil
}

// parseChunkSize parses a chunk size line: 1 to 15 hex digits, then at most an extension. Fifteen digits cannot
// overflow, and no chunk is that long.
func parseChunkSize(line []byte) (uint64, error) {
	digits := 0
	for digits < len(line) && isHex(line[digits]) {
		digits++
	}
	rest := string(line[digits:])
	if digits == 0 || digits > 15 || !isFieldText(rest) {
		return 0, ErrMalformed
	}
	if ext := trimBlank(rest); rest != "" && (ext == "" || ext[0] != ';') {
		return 0, ErrMalformed
	}
	return strconv.ParseUint(string(line[:digits]), 16, 64)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// noEOF turns the end of input in the middle of a message into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// WriteChunk writes p as one chunk. An empty p writes nothing, as an empty chunk would end the body.
func WriteChunk(w *bufio.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	var line [18]byte
	size := append(strconv.AppendUint(line[:0], uint64(len(p)), 16), "\r\n"...)
	// A bufio.Writer keeps its first error, so that the last call reports any.
	_, _ = w.Write(size)
	_, _ = w.Write(p)
	_, err := w.WriteString("\r\n")
	return err
}

// WriteLastChunk writes the end of a chunked body and its trailer section.
func WriteLastChunk(w *bufio.Writer, trailer Header) error {
	_, _ = w.WriteString("0\r\n")
	for _, f := range trailer {
		_, _ = w.Write(AppendField(nil, f.Name, f.Value))
	}
	_, err := w.WriteString("\r\n")
	return err
}
