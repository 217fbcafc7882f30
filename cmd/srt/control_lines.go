package main

import "bytes"

// maxControlLine is the longest line that is a configuration, in bytes without its line end (CLI-23).
const maxControlLine = 16 << 20

// controlLine is one line of the control channel, without its line end.
type controlLine struct {
	text []byte // valid until the next call of the splitter
	// damaged says why the text is not what was sent, or not all of it; empty for a whole line.
	damaged string
}

// blank tells whether the line is to be passed over in silence (CLI-23).
func (l controlLine) blank() bool { return l.damaged == "" && len(bytes.TrimSpace(l.text)) == 0 }

// lineSplitter cuts the bytes of the control channel into lines. LF or CRLF ends a line, nothing else does: not a lone CR, nor
// U+2028, which may stand in a JSON string (CLI-23). It holds one line at most, and of one that is too long no more than
// a configuration may have. The zero value is ready for use; it is for one goroutine.
type lineSplitter struct {
	line    []byte
	damaged string
}

// write hands over what was read; emit is called for every line that it completes, in order.
func (s *lineSplitter) write(data []byte, emit func(controlLine)) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			s.hold(data)
			return
		}
		s.hold(data[:end])
		s.finish(emit)
		data = data[end+1:]
	}
}

// end is the end of input: what has no line end counts as a line (CLI-23).
func (s *lineSplitter) end(emit func(controlLine)) {
	if len(s.line) > 0 || s.damaged != "" {
		s.finish(emit)
	}
}

// lose notes that bytes of the present line have been lost: it cannot be a configuration any more, whatever follows.
func (s *lineSplitter) lose(why string) {
	if s.damaged == "" {
		s.damaged = why
	}
}

// hold adds to the present line, unless it is past being one. There is room for the CR of a line end.
func (s *lineSplitter) hold(part []byte) {
	if s.damaged == "" && len(s.line)+len(part) > maxControlLine+1 {
		s.lose(tooLong)
		part = part[:min(len(part), shownOfLine)] // enough to tell which line it was
	} else if s.damaged != "" {
		return
	}
	s.line = append(s.line, part...)
}

const tooLong = "it is longer than 16 MiB"

func (s *lineSplitter) finish(emit func(controlLine)) {
	text := bytes.TrimSuffix(s.line, []byte("\r"))
	if s.damaged == "" && len(text) > maxControlLine {
		s.damaged = tooLong
	}
	emit(controlLine{text, s.damaged})
	s.line, s.damaged = s.line[:0], ""
	if cap(s.line) > keptForLines {
		s.line = nil
	}
}

// keptForLines is how much memory is kept from one line to the next; a long line is rare.
const keptForLines = 1 << 20
