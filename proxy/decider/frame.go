package decider

import (
	"encoding/binary"
	"errors"
	"io"
	"syscall"
	"unicode/utf8"
)

const (
	// maxFrame is the longest frame that is read, and the longest req that is sent, without its length bytes (PRX-30).
	maxFrame = 1 << 20
	// lengthBytes is what precedes the JSON of a frame.
	lengthBytes = 4
)

// readFrame reads one frame into buf, which it grows, and returns its JSON. The Reason is empty, or why the link dies. A
// length that is too large is refused before anything is read or allocated for it (PRX-30).
func readFrame(r io.Reader, buf []byte) ([]byte, *LinkError) {
	var head [lengthBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, readError(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, &LinkError{Reason: reasonOversized}
	}
	if uint32(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, readError(err)
	}
	return buf, nil
}

func readError(err error) *LinkError {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &LinkError{Reason: reasonClosedIn}
	}
	return &LinkError{Reason: Reason("read error: " + systemText(err)), Err: err}
}

func writeError(err error) *LinkError {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return &LinkError{Reason: reasonClosedOut}
	}
	return &LinkError{Reason: Reason("write error: " + systemText(err)), Err: err}
}

// systemText is what the operating system calls an error, without the names of descriptors before it.
func systemText(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// beginFrame appends room for the length of a frame to buf; finishFrame fills it in. A frame begins at offset 0.
func beginFrame(buf []byte) []byte { return append(buf, 0, 0, 0, 0) }

func finishFrame(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-lengthBytes))
	return frame
}

// appendString appends a JSON string.
func appendString(buf []byte, s string) []byte {
	const hex = "0123456789abcdef"
	buf = append(buf, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			buf = append(buf, '\\', c)
		case c < ' ':
			buf = append(buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			buf = append(buf, c)
		}
	}
	return append(buf, '"')
}

// latin1 reads bytes as Latin-1 and returns UTF-8 (PRX-36).
func latin1(s string) string {
	if ascii(s) {
		return s
	}
	out := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		out = utf8.AppendRune(out, rune(s[i]))
	}
	return string(out)
}

// toLatin1 is the way back. false: a character is above U+00FF (PRX-49).
func toLatin1(s string) (string, bool) {
	if ascii(s) {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xFF {
			return "", false
		}
		out = append(out, byte(r))
	}
	return string(out), true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
