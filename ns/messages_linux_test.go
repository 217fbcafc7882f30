package ns

import (
	"bytes"
	"testing"
)

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add(message{msgFailed, 1, 2, 3}.encode())
	f.Add(bytes.Repeat([]byte{0xff}, 15))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := decodeMessage(b)
		if ok != (len(b) == msgSize) {
			t.Fatalf("%d bytes: %v", len(b), ok)
		}
		if ok && !bytes.Equal(m.encode(), b) {
			t.Fatalf("%x is not %v", b, m)
		}
	})
}

// FuzzFailure gives a report of a hostile or broken child to the host side: it must turn into an error, never a panic.
func FuzzFailure(f *testing.F) {
	f.Add(uint32(programSetup), uint32(0), uint32(2))
	f.Add(uint32(programFixed), uint32(fixedLimit), uint32(1))
	f.Add(uint32(99), uint32(1<<31), uint32(1<<31))
	f.Fuzz(func(t *testing.T, program, step, errno uint32) {
		p := &Process{program: &Program{}, name: "x"}
		if err := p.failure(message{msgFailed, program, step, errno}); err == nil || err.Error() == "" {
			t.Fatalf("no error for %d %d %d", program, step, errno)
		}
	})
}
