package runtime

import (
	"bytes"
	"fmt"
	"testing"
)

// excerptOf is what an excerpt of a text has to be.
func excerptOf(text []byte) []byte {
	if len(text) <= 2*excerptHalf {
		return text
	}
	out := append([]byte(nil), text[:excerptHalf]...)
	out = fmt.Appendf(out, "\n... %d bytes are left out here ...\n", len(text)-2*excerptHalf)
	return append(out, text[len(text)-excerptHalf:]...)
}

// FuzzExcerpt_LIB50: whatever the pieces in which a text is written, its beginning and its end are kept.
func FuzzExcerpt_LIB50(f *testing.F) {
	f.Add(uint32(0), uint32(1))
	f.Add(uint32(10), uint32(3))
	f.Add(uint32(excerptHalf), uint32(excerptHalf))
	f.Add(uint32(2*excerptHalf), uint32(777))
	f.Add(uint32(2*excerptHalf+1), uint32(excerptHalf+1))
	f.Add(uint32(5*excerptHalf), uint32(4*excerptHalf))
	f.Add(uint32(7*excerptHalf+13), uint32(1000))
	f.Fuzz(func(t *testing.T, size, piece uint32) {
		size, piece = size%(16*excerptHalf), max(1, piece%(8*excerptHalf))
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(i * 31 >> 3)
		}
		var e excerpt
		for rest := text; len(rest) > 0; {
			n := min(int(piece), len(rest))
			if wrote, err := e.Write(rest[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		if got, want := e.bytes(), excerptOf(text); !bytes.Equal(got, want) {
			t.Errorf("%d bytes in pieces of %d: %d bytes, want %d", size, piece, len(got), len(want))
		}
	})
}
