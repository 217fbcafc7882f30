package httphead

import (
	"bufio"
	"errors"
	"io"
	"testing"
)

// TestChunkedReader_Ready: a forwarder that sends what it has before it waits must not be held up by a part of a chunk line.
func TestChunkedReader_Ready(t *testing.T) {
	for _, tc := range []struct {
		in    string // what has arrived
		reads int    // how often it can be read before waiting
	}{
		{"", 0},
		{"3", 0},
		{"3\r\n", 0},
		{"3\r\na", 1},
		{"3\r\nabc", 1},
		{"3\r\nabc\r", 1},
		{"3\r\nabc\r\n", 1},
		{"3\r\nabc\r\n2", 1},
		{"3\r\nabc\r\n2\r\n", 1},
		{"3\r\nabc\r\n2\r\nd", 2},
		{"3\r\nabc\r\n0\r\n", 1},
		{"3\r\nabc\r\n0\r\nA: b\r\n", 1},
		{"3\r\nabc\r\n0\r\n\r\n", 2},
		{"3\r\nabc\r\n0\r\nA: b\r\n\r\n", 2},
		{"3\r\nabcXY", 2}, // the second is an error
	} {
		source, sink := io.Pipe()
		br := bufio.NewReader(source)
		go io.WriteString(sink, tc.in)
		if tc.in != "" {
			for br.Buffered() < len(tc.in) {
				if _, err := br.Peek(br.Buffered() + 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		c, reads := NewChunkedReader(br), 0
		for ; reads < 5 && c.Ready(); reads++ {
			if _, err := c.Read(make([]byte, 9)); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, ErrMalformed) {
					t.Errorf("%q: %v", tc.in, err)
				}
				reads++
				break
			}
		}
		if reads != tc.reads {
			t.Errorf("%q: %d reads, want %d", tc.in, reads, tc.reads)
		}
	}
}
