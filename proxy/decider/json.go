package decider

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is the type of a JSON value.
type kind uint8

const (
	kindObject kind = iota + 1
	kindArray
	kindString
	kindNumber
	kindBool
	kindNull
)

// value is one JSON value. text is the decoded string, or the number as spelled; items and keys are those of an array or an
// object, in their order.
type value struct {
	kind  kind
	yes   bool
	text  string
	items []value
	keys  []string
}

// member returns the value of a key, compared exactly; nil: there is none.
func (v *value) member(key string) *value {
	for i, k := range v.keys {
		if k == key {
			return &v.items[i]
		}
	}
	return nil
}

// maxInteger is the largest integer of the protocol, 2^53-1 (PRX-35).
const maxInteger = 1<<53 - 1

// integer returns a number that is a whole one from 0 to maxInteger, whatever its spelling: numbers count by value (PRX-31).
func (v *value) integer() (uint64, bool) {
	if v.kind != kindNumber {
		return 0, false
	}
	if isZero(v.text) || v.text[0] == '-' {
		return 0, isZero(v.text)
	}
	mantissa, exponent := v.text, 0
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		n, err := strconv.ParseInt(mantissa[i+1:], 10, 32)
		if err != nil {
			return 0, false // too large, or a fraction: a frame has no room for the digits to make up for it
		}
		mantissa, exponent = mantissa[:i], int(n)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if exponent < 0 || len(short)+exponent > len("9007199254740991") {
		return 0, false
	}
	n, err := strconv.ParseUint(short+strings.Repeat("0", exponent), 10, 64)
	return n, err == nil && n <= maxInteger
}

// isZero reports whether a spelled number is zero.
func isZero(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.Trim(mantissa, "-0.") == ""
}

// maxDepth is how deeply values may nest. Messages of the protocol have three levels.
const maxDepth = 64

// scanner reads one JSON text (RFC 8259) that is known to be UTF-8. It goes on after what the protocol refuses although it
// is JSON (flaw), so that text that is no JSON at all is always called that.
type scanner struct {
	text  []byte
	at    int
	flaw  Reason
	depth int
}

// parseObject parses a frame: exactly one object, in which nothing is null, no key stands twice at any depth, and every
// string is Unicode text (PRX-31). The Reason is empty, or why the link dies.
func parseObject(frame []byte) (*value, Reason) {
	if !utf8.Valid(frame) {
		return nil, reasonNotUTF8
	}
	s := &scanner{text: frame}
	s.blank()
	v, ok := s.value()
	s.blank()
	switch {
	case !ok || s.at != len(s.text):
		return nil, reasonNotJSON
	case v.kind != kindObject:
		return nil, reasonNotObject
	case s.flaw != "":
		return nil, s.flaw
	}
	return &v, ""
}

// note keeps the first flaw.
func (s *scanner) note(r Reason) {
	if s.flaw == "" {
		s.flaw = r
	}
}

func (s *scanner) blank() {
	for s.at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[s.at]) >= 0 {
		s.at++
	}
}

// take consumes a byte if it comes next.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if bytes.HasPrefix(s.text[s.at:], []byte(w)) {
		s.at += len(w)
		return true
	}
	return false
}

func (s *scanner) value() (v value, ok bool) {
	if s.at >= len(s.text) {
		return v, false
	}
	switch c := s.text[s.at]; {
	case c == '{' || c == '[':
		if s.depth++; s.depth > maxDepth {
			return v, false
		}
		defer func() { s.depth-- }()
		s.at++
		if c == '{' {
			return s.object()
		}
		return s.array()
	case c == '"':
		text, ok := s.str()
		return value{kind: kindString, text: text}, ok
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return value{kind: kindBool, yes: true}, s.word("true")
	case c == 'f':
		return value{kind: kindBool}, s.word("false")
	case c == 'n':
		s.note(reasonNull)
		return value{kind: kindNull}, s.word("null")
	}
	return v, false
}

func (s *scanner) object() (v value, ok bool) {
	v.kind = kindObject
	seen := map[string]struct{}{}
	s.blank()
	if s.take('}') {
		return v, true
	}
	for {
		s.blank()
		key, ok := s.str()
		if !ok {
			return v, false
		}
		if _, twice := seen[key]; twice {
			s.note(reasonDuplicate)
		}
		seen[key] = struct{}{}
		s.blank()
		if !s.take(':') {
			return v, false
		}
		s.blank()
		item, ok := s.value()
		if !ok {
			return v, false
		}
		v.keys, v.items = append(v.keys, key), append(v.items, item)
		s.blank()
		if s.take('}') {
			return v, true
		}
		if !s.take(',') {
			return v, false
		}
	}
}

func (s *scanner) array() (v value, ok bool) {
	v.kind = kindArray
	s.blank()
	if s.take(']') {
		return v, true
	}
	for {
		s.blank()
		item, ok := s.value()
		if !ok {
			return v, false
		}
		v.items = append(v.items, item)
		s.blank()
		if s.take(']') {
			return v, true
		}
		if !s.take(',') {
			return v, false
		}
	}
}

// number parses the grammar of RFC 8259 section 6: no leading zero, no bare point.
func (s *scanner) number() (v value, ok bool) {
	start := s.at
	s.take('-')
	if !s.take('0') && !s.digits() {
		return v, false
	}
	if s.take('.') && !s.digits() {
		return v, false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return v, false
		}
	}
	return value{kind: kindNumber, text: string(s.text[start:s.at])}, true
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && isDigit(s.text[s.at]) {
		s.at++
	}
	return s.at > start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// str parses a string, from its opening quote on.
func (s *scanner) str() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	start := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return string(s.text[start : s.at-1]), true
		case c == '\\':
			return s.escaped(append([]byte(nil), s.text[start:s.at]...))
		case c < ' ':
			return "", false
		}
		s.at++
	}
	return "", false
}

// The two-character escapes, and at the same places what they stand for.
const (
	escapes   = `"\/bfnrt`
	escapeFor = "\"\\/\b\f\n\r\t"
)

// escaped parses the rest of a string that has an escape at the scanner's place.
func (s *scanner) escaped(out []byte) (string, bool) {
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return string(out), true
		case c < ' ':
			return "", false
		case c != '\\':
			out = append(out, c)
			continue
		}
		if s.take('u') {
			r, ok := s.unicode()
			if !ok {
				return "", false
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		if s.at >= len(s.text) {
			return "", false
		}
		i := strings.IndexByte(escapes, s.text[s.at])
		if i < 0 {
			return "", false
		}
		out = append(out, escapeFor[i])
		s.at++
	}
	return "", false
}

// unicode parses what follows "\u", the second half of a surrogate pair included.
func (s *scanner) unicode() (rune, bool) {
	r, ok := s.hex4()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if r < 0xDC00 && s.word(`\u`) {
		second, ok := s.hex4()
		if !ok {
			return 0, false
		}
		if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
			return pair, true
		}
	}
	s.note(reasonSurrogate)
	return utf8.RuneError, true
}

func (s *scanner) hex4() (rune, bool) {
	if len(s.text)-s.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.text[s.at:s.at+4]), 16, 32)
	if err != nil || strings.ContainsAny(string(s.text[s.at:s.at+4]), "+-_") {
		return 0, false
	}
	s.at += 4
	return rune(n), true
}
