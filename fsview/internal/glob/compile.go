package glob

import (
	"strings"
	"unicode/utf8"
)

// kind is what one instruction of a compiled pattern consumes.
type kind uint8

const (
	literal kind = iota // this very character
	single              // one character but a slash
	oneOf               // one character of a set
	run                 // any run without a slash, also none
	anyRun              // any run, also none
	folders             // any run that ends in a slash, or none: zero or more directories
)

// inst is one instruction. The instructions of a pattern are its states: to be at i is to have matched what stands
// before i.
type inst struct {
	kind kind
	char rune   // of a literal
	set  []span // of a oneOf
	text string // of a oneOf: the set as written, with its brackets
}

// span is a range of characters, both ends included.
type span struct{ low, high rune }

// skips reports whether the instruction also matches nothing.
func (i *inst) skips() bool { return i.kind >= run }

// accepts reports whether one character can be consumed. For the runs that means: and the instruction goes on.
func (i *inst) accepts(c rune) bool {
	switch i.kind {
	case literal:
		return c == i.char
	case single, run:
		return c != '/'
	case oneOf:
		for _, s := range i.set {
			if s.low <= c && c <= s.high {
				return true
			}
		}
		return false
	default:
		return true
	}
}

// rawByte is added to a byte that is no part of valid UTF-8, so that it is no code point.
const rawByte = utf8.MaxRune + 1

// decode gives the first character of s, which is not empty, and how many bytes it takes.
func decode(s string) (rune, int) {
	if c := s[0]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	c, size := utf8.DecodeRuneInString(s)
	if c == utf8.RuneError && size <= 1 {
		return rawByte + rune(s[0]), 1
	}
	return c, size
}

// encode is the reverse of decode.
func encode(b *strings.Builder, c rune) {
	if c >= rawByte {
		b.WriteByte(byte(c - rawByte))
		return
	}
	b.WriteRune(c)
}

// parse turns a text into instructions (FS-13, FS-14). Wildcards that follow one another become one with the same
// meaning, so that no more than two in a row can match nothing.
func parse(text string) []inst {
	prog := make([]inst, 0, len(text))
	for text != "" {
		switch text[0] {
		case '*':
			stars := len(text) - len(strings.TrimLeft(text, "*"))
			text = text[stars:]
			dirs := stars >= 2 && text != "" && text[0] == '/'
			if dirs {
				stars -= 2
				text = text[1:]
			}
			switch {
			case stars == 1:
				prog = push(prog, run)
			case stars > 1:
				prog = push(prog, anyRun)
			}
			if dirs {
				prog = push(prog, folders)
			}
		case '?':
			prog = append(prog, inst{kind: single})
			text = text[1:]
		case '[':
			set, size := parseSet(text)
			if set == nil {
				prog = appendLiterals(prog, text[:size])
			} else {
				prog = append(prog, newSet(set, text[:size]))
			}
			text = text[size:]
		default:
			c, size := decode(text)
			prog = append(prog, inst{kind: literal, char: c})
			text = text[size:]
		}
	}
	return prog
}

// push appends a wildcard, or merges it with the one before it.
func push(prog []inst, k kind) []inst {
	for len(prog) > 0 {
		last := prog[len(prog)-1].kind
		switch {
		case last == anyRun, last == k && k >= run:
			return prog // it matches what both match
		case last == folders && k == run:
			k = anyRun // `**/*` is any path: its directories, and its last name
		case last >= run && k == anyRun:
		default:
			return append(prog, inst{kind: k})
		}
		prog = prog[:len(prog)-1]
	}
	return append(prog, inst{kind: k})
}

func appendLiterals(prog []inst, text string) []inst {
	for text != "" {
		c, size := decode(text)
		prog = append(prog, inst{kind: literal, char: c})
		text = text[size:]
	}
	return prog
}

// newSet makes the instruction of a set. A set of one character is that character, but not one of a byte that is not
// valid UTF-8: beside others it would read as another character.
func newSet(set []span, text string) inst {
	if len(set) == 1 && set[0].low == set[0].high && set[0].low < rawByte {
		return inst{kind: literal, char: set[0].low}
	}
	return inst{kind: oneOf, set: set, text: text}
}

// parseSet reads the set that text starts with. size is how long it is with its brackets. set is nil when those bytes
// are text: empty brackets, a backward range, and a bracket that is never closed, which is text alone.
func parseSet(text string) (set []span, size int) {
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return nil, 1
	}
	size = end + 1
	for members := text[1:end]; members != ""; {
		low, n := decode(members)
		members = members[n:]
		high := low
		if len(members) > 1 && members[0] == '-' {
			high, n = decode(members[1:])
			members = members[1+n:]
			if high < low {
				return nil, size
			}
		}
		set = append(set, span{low, high})
	}
	return set, size
}
