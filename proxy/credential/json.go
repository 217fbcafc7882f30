package credential

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// members calls f with the members of a JSON object in order: the name unescaped, the value as it is written, and where
// that is. It stops when f returns true, and reports whether it did. text must be valid JSON; what is no object has no
// members. The name is valid during the call alone.
func (t *tokens) members(text []byte, f func(key, value []byte, at span) bool) bool {
	at := skipSpace(text, 0)
	if text[at] != '{' {
		return false
	}
	at = skipSpace(text, at+1)
	for text[at] == '"' {
		end := skipString(text, at)
		key := appendUnquoted(t.rest[:0], text[at:end])
		from := skipSpace(text, skipSpace(text, end)+1) // behind the colon
		to := skipValue(text, from)
		if f(key, text[from:to], span{from, to}) {
			return true
		}
		at = skipSpace(text, to)
		if text[at] != ',' {
			return false
		}
		at = skipSpace(text, at+1)
	}
	return false
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at
}

// skipString returns the end of the string that begins at.
func skipString(text []byte, at int) int {
	for at++; text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// skipValue returns the end of the value that begins at.
func skipValue(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at = skipString(text, at) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return at
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return at + 1
		}
	}
	return at
}

// appendUnquoted appends the text of a valid JSON string, given with its quotes. The result is never longer than it.
func appendUnquoted(out, raw []byte) []byte {
	for at := 1; at < len(raw)-1; at++ {
		c := raw[at]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		at++
		switch raw[at] {
		case 'u':
			r := hexUnit(raw[at+1:])
			at += 4
			// Half a pair alone becomes U+FFFD, in three bytes of six.
			if utf16.IsSurrogate(r) {
				second := rune(0)
				if at+6 < len(raw) && raw[at+1] == '\\' && raw[at+2] == 'u' {
					second = hexUnit(raw[at+3:])
				}
				if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
					at += 6
				}
			}
			out = utf8.AppendRune(out, r)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		default:
			out = append(out, raw[at])
		}
	}
	return out
}

// hexUnit reads four hexadecimal digits.
func hexUnit(raw []byte) rune {
	unit, err := strconv.ParseUint(string(raw[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(unit)
}
