package httphead

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httputil"
	"testing"
)

// FuzzChunked: a body that this package accepts is, byte for byte, the one that another decoder finds if it accepts it too; what follows it
// stays in the reader; and written again it reads the same.
func FuzzChunked(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		src := bytes.NewReader(data)
		br := bufio.NewReader(src)
		c := NewChunkedReader(br)
		body, err := io.ReadAll(c)
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(br)
		if !bytes.HasSuffix(data, rest) || len(body)+len(rest)+len("0\r\n\r\n") > len(data) {
			t.Errorf("%q: body %q, rest %q", data, body, rest)
		}
		other, err := io.ReadAll(httputil.NewChunkedReader(bufio.NewReader(bytes.NewReader(data))))
		// The other one refuses a blank before an extension, which RFC 9112 section 7.1.1 allows, and many small chunks.
		if err == nil && !bytes.Equal(other, body) {
			t.Errorf("%q: %q here, %q there", data, body, other)
		}
		checkHeader(t, c.Trailer())
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		for _, part := range [][]byte{body[:len(body)/2], body[len(body)/2:]} {
			_ = WriteChunk(w, part)
		}
		_ = WriteLastChunk(w, c.Trailer())
		_ = w.Flush()
		again := NewChunkedReader(bufio.NewReader(&out))
		if twice, err := io.ReadAll(again); err != nil || !bytes.Equal(twice, body) || len(again.Trailer()) != len(c.Trailer()) {
			t.Errorf("%q written again reads as %q, %v", body, twice, err)
		}
	})
}
