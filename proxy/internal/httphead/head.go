package httphead

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// Limit is the longest head in bytes, its final empty line included (NET-23). Trailer sections have the same limit.
const Limit = 16 << 10

// The ways in which a message can be unusable. Test with errors.Is.
var (
	// ErrMalformed is text that is no HTTP/1.x message, or one that two parsers could frame differently.
	ErrMalformed = errors.New("malformed HTTP message")
	// ErrTooLarge is a head or a trailer section over [Limit], or over the limit given for it.
	ErrTooLarge = errors.New("HTTP head too large")
)

// ReadHead reads from br up to and including the first empty line, appends what it read to buf and returns that. The
// lines are only parted, not parsed. Errors: io.EOF if the input ended before the first byte, io.ErrUnexpectedEOF if it
// ended later, [ErrTooLarge], [ErrMalformed] for a line that ends in LF without CR, and those of br.
func ReadHead(br *bufio.Reader, buf []byte) ([]byte, error) { return ReadHeadUpTo(br, buf, Limit) }

// ReadHeadUpTo is [ReadHead] with another limit than [Limit], in bytes.
func ReadHeadUpTo(br *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	lineStart, read := len(buf), 0
	for {
		part, err := br.ReadSlice('\n')
		read += len(part)
		if read > limit {
			return buf, ErrTooLarge
		}
		buf = append(buf, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && read > 0:
			return buf, io.ErrUnexpectedEOF
		case err != nil:
			return buf, err
		}
		line := buf[lineStart:]
		if len(line) < 2 || line[len(line)-2] != '\r' {
			return buf, ErrMalformed
		}
		if len(line) == 2 {
			return buf, nil
		}
		lineStart = len(buf)
	}
}

// Field is one field line.
type Field struct {
	Name  string // as spelled
	Value string // as spelled, blanks at the ends removed
}

// Is reports whether the field has a name, case ignored.
func (f Field) Is(name string) bool { return EqualFold(f.Name, name) }

// EqualFold reports whether s and an ASCII text are equal, the case of ASCII letters ignored. Unlike strings.EqualFold it
// takes no other letter for one of them (the Kelvin sign folds to k, the long s to s): such a letter takes more bytes.
func EqualFold(s, ascii string) bool { return len(s) == len(ascii) && strings.EqualFold(s, ascii) }

// Fold makes names of fields comparable for those that take '-', '_' and '.' for one: lower case, all three as '-'. Servers that
// hand fields to programs as variables cannot tell them apart (RFC 3875 section 4.1.18).
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '.':
			return '-'
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// Header is the field lines of a message in their order, repeats kept.
type Header []Field

// Get returns the value of the first field with a name and how many fields have it.
func (h Header) Get(name string) (value string, count int) {
	for _, f := range h {
		if f.Is(name) {
			if count == 0 {
				value = f.Value
			}
			count++
		}
	}
	return value, count
}

// HasToken reports whether any field with a name lists a token, case ignored, as Connection does.
func (h Header) HasToken(name, token string) bool {
	for _, f := range h {
		if !f.Is(name) {
			continue
		}
		for item := range strings.SplitSeq(f.Value, ",") {
			if EqualFold(trimBlank(item), token) {
				return true
			}
		}
	}
	return false
}

// parseFields parses field lines up to and including the empty line that ends them and nothing after it.
func parseFields(s string) (Header, error) {
	h := make(Header, 0, strings.Count(s, "\n"))
	for {
		line, rest, ok := cutLine(s)
		if !ok {
			return nil, ErrMalformed
		}
		if line == "" {
			if rest != "" {
				return nil, ErrMalformed
			}
			return h, nil
		}
		name, value, ok := strings.Cut(line, ":")
		// A folded line starts with a blank, and a blank before the colon belongs to no token: both fail here.
		if !ok || !isToken(name) || !isFieldText(value) {
			return nil, ErrMalformed
		}
		h = append(h, Field{Name: name, Value: trimBlank(value)})
		s = rest
	}
}

// cutLine parts s after its first CRLF.
func cutLine(s string) (line, rest string, ok bool) {
	i := strings.IndexByte(s, '\n')
	if i < 1 || s[i-1] != '\r' {
		return "", "", false
	}
	return s[:i-1], s[i+1:], true
}

func trimBlank(s string) string { return strings.Trim(s, " \t") }

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// isFieldText reports whether s is free of control characters other than HTAB (RFC 9110 section 5.5; bytes beyond ASCII
// are obs-text and pass).
func isFieldText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// ValidName reports whether s can be the name of a field.
func ValidName(s string) bool { return isToken(s) }

// ValidValue reports whether s can be the value of a field. Blanks at its ends are not part of a value and should be cut.
func ValidValue(s string) bool { return isFieldText(s) }

// Append appends the field lines of h to buf.
func (h Header) Append(buf []byte) []byte {
	for _, f := range h {
		buf = AppendField(buf, f.Name, f.Value)
	}
	return buf
}

// AppendField appends one field line to buf. They must have been parsed by this package, be
// valid ([ValidName], [ValidValue]), or be constants.
func AppendField(buf []byte, name, value string) []byte {
	buf = append(buf, name...)
	buf = append(buf, ": "...)
	buf = append(buf, value...)
	return append(buf, "\r\n"...)
}
