package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// split gives the lines of input, handed over in pieces of a size, as "text" or "!reason".
func split(t testing.TB, input []byte, size int) (lines []string) {
	t.Helper()
	var s lineSplitter
	emit := func(l controlLine) {
		text := string(l.text)
		if l.damaged != "" {
			text = "!" + l.damaged
		}
		lines = append(lines, text)
	}
	for len(input) > 0 {
		n := min(size, len(input))
		s.write(input[:n], emit)
		input = input[n:]
	}
	s.end(emit)
	return lines
}

func TestLines_CLI23(t *testing.T) {
	long := strings.Repeat("x", maxControlLine)
	tests := []struct {
		name, input string
		want        []string
	}{
		{"nothing", "", nil},
		{"LF and CRLF", "a\nb\r\n", []string{"a", "b"}},
		{"the last line needs no end", "a\nb", []string{"a", "b"}},
		{"the last line may end in CR", "a\r", []string{"a"}},
		{"blank lines", "\n\r\n \n", []string{"", "", " "}},
		{"a lone CR ends no line", "a\rb\n", []string{"a\rb"}},
		{"only one CR belongs to the end", "a\r\r\n", []string{"a\r"}},
		{"line separators of Unicode end no line", "a\u2028b\u2029c\u0085d\n", []string{"a\u2028b\u2029c\u0085d"}},
		{"NUL is an ordinary byte", "a\x00b\n", []string{"a\x00b"}},
		{"16 MiB", long + "\n", []string{long}},
		{"16 MiB with CRLF", long + "\r\nb", []string{long, "b"}},
		{"16 MiB without an end", long, []string{long}},
		{"a byte more", long + "x\nb\n", []string{"!" + tooLong, "b"}},
		{"a byte more, CRLF", long + "x\r\nb\n", []string{"!" + tooLong, "b"}},
		{"much more", long + long + "\nb\n", []string{"!" + tooLong, "b"}},
		{"much more, to the end of input", "a\n" + long + long, []string{"a", "!" + tooLong}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sizes := []int{controlPiece, len(tt.input) + 1}
			if len(tt.input) < 100 {
				sizes = append(sizes, 1, 2, 3)
			}
			for _, size := range sizes {
				if got := split(t, []byte(tt.input), size); !cmp.Equal(tt.want, got) {
					t.Errorf("in pieces of %d: %s", size, firstDifference(tt.want, got))
				}
			}
		})
	}
}

// controlPiece is what the reader of a channel usually hands over at once.
const controlPiece = 64 << 10

// firstDifference describes lists of lines that may be very long.
func firstDifference(want, got []string) string {
	cut := func(list []string) (short []string) {
		for _, l := range list {
			short = append(short, l[:min(len(l), 40)])
		}
		return short
	}
	return cmp.Diff(cut(want), cut(got)) + " (lines are cut to 40 bytes)"
}

func TestLinesThatWereDamaged_CLI25(t *testing.T) {
	var s lineSplitter
	var got []controlLine
	emit := func(l controlLine) { got = append(got, controlLine{bytes.Clone(l.text), l.damaged}) }
	s.write([]byte("whole\npart"), emit)
	s.lose("gone")
	s.lose("gone again")
	s.write([]byte("more\nnext\n"), emit)
	s.lose("gone at the end")
	s.end(emit)
	want := []controlLine{{[]byte("whole"), ""}, {[]byte("part"), "gone"}, {[]byte("next"), ""}, {[]byte{}, "gone at the end"}}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !bytes.Equal(got[i].text, want[i].text) || got[i].damaged != want[i].damaged {
			t.Errorf("line %d: %q, want %q", i, got[i], want[i])
		}
	}
	if got[3].blank() || !(controlLine{text: []byte(" \t\r")}).blank() {
		t.Error("CLI-23: a line of blanks is blank, one whose bytes are lost is not")
	}
}

// A line that never ends takes no more memory than the longest configuration.
func TestLinesAreBounded_CLI23(t *testing.T) {
	var s lineSplitter
	piece := bytes.Repeat([]byte("x"), controlPiece)
	for range 4 * maxControlLine / controlPiece {
		s.write(piece, func(controlLine) { t.Error("a line") })
		if len(s.line) > maxControlLine+1+shownOfLine || cap(s.line) > 3*maxControlLine {
			t.Fatalf("%d bytes are held, in room for %d", len(s.line), cap(s.line))
		}
	}
	s.write([]byte("\n"), func(controlLine) {})
	if cap(s.line) > keptForLines {
		t.Errorf("room for %d bytes is kept", cap(s.line))
	}
}

// FuzzLines_CLI23 holds that lines do not depend on how they were cut into reads, and that they are those of the input.
func FuzzLines_CLI23(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "a\r\nb\r\n", "\r\r\n\n\r", "{\"a\":\"\u2028\"}\n{}", strings.Repeat("long ", 50) + "\nx"} {
		f.Add([]byte(seed), uint16(1))
		f.Add([]byte(seed), uint16(7))
	}
	f.Fuzz(func(t *testing.T, input []byte, size uint16) {
		got := split(t, input, int(size)+1)
		var want []string
		rest := string(input)
		for rest != "" {
			line, after, found := strings.Cut(rest, "\n")
			want = append(want, strings.TrimSuffix(line, "\r"))
			rest = after
			if !found {
				break
			}
		}
		if !cmp.Equal(want, got) {
			t.Errorf("%q in pieces of %d: %s", input, int(size)+1, cmp.Diff(want, got))
		}
	})
}
