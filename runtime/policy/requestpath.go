package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A path is judged as a row of symbols: a byte, or a byte that was percent-encoded and must stay so to mean itself, such as
// %2F. So "*" stops at a "/" and not at a %2F, and the case of hexadecimal digits does not matter.
const encoded = 0x100

// reading is one way in which a server may read the path of a request.
type reading struct {
	symbols []uint16
	decoded bool // every byte is taken out of its encoding, so patterns are too
}

// readPath returns the ways in which servers are known to read a target that goes out, the one of REQ-6 first. known is false
// if there are ways beyond them: a target that REQ-7 calls ambiguous, a "%" that no two digits follow, control characters, and
// bytes that are not UTF-8, which some decoders make a "/" of.
//
// The others are those of servers that take the path out of its encoding, once or twice, before they find out what it names;
// that take "\" for "/", several slashes for one, or what follows a ";" for no part of the name; in any combination.
func readPath(target string) (readings []reading, known bool) {
	normalized, ambiguous := NormalizeTarget(target)
	if ambiguous || strings.Contains(target, "#") {
		return nil, false
	}
	spelled, _, _ := strings.Cut(target, "?")
	path, _, _ := strings.Cut(normalized, "?")
	once, whole := percentDecode(spelled)
	twice, _ := percentDecode(once)
	if !whole || !plainText(once) || !plainText(twice) {
		return nil, false
	}
	readings = []reading{{symbols: symbolsOf(path)}}
	if !strings.ContainsAny(spelled, `%;\`) && !strings.Contains(spelled, "//") {
		return readings, true
	}
	for _, level := range []struct {
		text    string
		decoded bool
	}{{path, false}, {once, true}, {twice, true}} {
		for _, v := range variants(level.text, level.decoded) {
			r := reading{symbols: symbolsOf(v)}
			if level.decoded {
				r = reading{symbols: bytesOf(v), decoded: true}
			}
			if !slices.ContainsFunc(readings, r.equal) {
				readings = append(readings, r)
			}
		}
	}
	return readings, true
}

func (r reading) equal(other reading) bool {
	return r.decoded == other.decoded && slices.Equal(r.symbols, other.symbols)
}

// variants are the readings of a path at one level of decoding.
func variants(path string, decoded bool) []string {
	if !strings.HasPrefix(path, "/") { // "*"
		return []string{path}
	}
	var all []string
	for _, params := range []bool{false, true} {
		for _, slashes := range []bool{false, true} {
			v := path
			if params {
				v = withoutParams(v)
			}
			if slashes {
				v = oneSlash(v)
			}
			all = append(all, normalizePath(v))
			if decoded { // servers that look the decoded path up as it is
				all = append(all, v)
			}
		}
	}
	return all
}

// withoutParams drops what follows a ";" in each segment.
func withoutParams(path string) string {
	if !strings.Contains(path, ";") {
		return path
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// oneSlash makes one slash of several, and of backslashes.
func oneSlash(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// percentDecode takes every byte out of its encoding. whole is false if a "%" is followed by other than two hexadecimal
// digits; it then stays.
func percentDecode(s string) (decoded string, whole bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	whole = true
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c, ok := escapeAt(s, i)
		switch {
		case ok:
			b = append(b, c)
			i += 2
		default:
			whole = whole && s[i] != '%'
			b = append(b, s[i])
		}
	}
	return string(b), whole
}

// escapeAt returns the byte that a percent-encoding at i stands for.
func escapeAt(s string, i int) (byte, bool) {
	if s[i] != '%' || i+2 >= len(s) {
		return 0, false
	}
	high, ok1 := hexDigit(s[i+1])
	low, ok2 := hexDigit(s[i+2])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// plainText reports whether a decoded path has nothing in it that decoders disagree about.
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// symbolsOf are the symbols of a path in its encoding. Unreserved characters are the same encoded and not (RFC 3986 section
// 2.3), and so are those that NormalizeTarget encodes.
func symbolsOf(path string) []uint16 {
	symbols := make([]uint16, 0, len(path))
	for i := 0; i < len(path); i++ {
		c, escaped := escapeAt(path, i)
		if escaped {
			i += 2
		} else {
			c = path[i]
		}
		switch {
		case escaped && !unreserved(c), !escaped && alwaysEncoded(c):
			symbols = append(symbols, encoded|uint16(c))
		default:
			symbols = append(symbols, uint16(c))
		}
	}
	return symbols
}

func bytesOf(path string) []uint16 {
	symbols := make([]uint16, len(path))
	for i := range len(path) {
		symbols[i] = uint16(path[i])
	}
	return symbols
}

func unreserved(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-._~", c) >= 0
}

// alwaysEncoded reports bytes that no normalized path has as they are.
func alwaysEncoded(c byte) bool {
	return c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>`{}", c) >= 0
}

// The parts of a pattern that are no literal symbols.
const (
	anyOne     = 0x200 + iota // "?": a symbol but "/"
	anySegment                // "*": any symbols but "/"
	anyText                   // "**": any symbols
)

// pathPattern is a compiled pattern: literal symbols and the parts above, once for paths in their encoding and once for
// decoded ones.
type pathPattern struct{ inEncoding, decoded []uint16 }

func compilePath(pattern string) pathPattern {
	var p pathPattern
	for pattern != "" {
		end := strings.IndexAny(pattern, "*?")
		if end < 0 {
			end = len(pattern)
		}
		for _, s := range symbolsOf(pattern[:end]) {
			p.inEncoding = append(p.inEncoding, s)
			p.decoded = append(p.decoded, s&^encoded)
		}
		if pattern = pattern[end:]; pattern == "" {
			break
		}
		part, size := uint16(anyOne), 1
		switch {
		case strings.HasPrefix(pattern, "**"):
			part, size = anyText, 2
		case pattern[0] == '*':
			part = anySegment
		}
		p.inEncoding = append(p.inEncoding, part)
		p.decoded = append(p.decoded, part)
		pattern = pattern[size:]
	}
	return p
}

// matches walks all ways through a pattern at once, so that no path makes it go back: the work is at most the length of the
// path times that of the pattern, and mostly its length alone.
func (p pathPattern) matches(path reading) bool {
	pattern := p.inEncoding
	if path.decoded {
		pattern = p.decoded
	}
	at, next := placesIn(pattern), placesIn(pattern)
	at.add(0)
	for _, s := range path.symbols {
		next.empty()
		for _, i := range at.list {
			if i == len(pattern) {
				continue
			}
			switch part := pattern[i]; {
			case part == anyText, part == anySegment && s != '/':
				next.add(i)
			case part == s, part == anyOne && s != '/':
				next.add(i + 1)
			}
		}
		if len(next.list) == 0 {
			return false
		}
		at, next = next, at
	}
	return at.has[len(pattern)]
}

// places are the places of a pattern that what was read so far can lead to.
type places struct {
	pattern []uint16
	list    []int
	has     []bool
}

func placesIn(pattern []uint16) *places {
	return &places{pattern: pattern, has: make([]bool, len(pattern)+1)}
}

// add adds a place, and those behind it that are reached because a star may stand for nothing.
func (p *places) add(i int) {
	for ; !p.has[i]; i++ {
		p.has[i] = true
		p.list = append(p.list, i)
		if i == len(p.pattern) || p.pattern[i] != anySegment && p.pattern[i] != anyText {
			return
		}
	}
}

func (p *places) empty() {
	for _, i := range p.list {
		p.has[i] = false
	}
	p.list = p.list[:0]
}
