package glob

import "strings"

// characters make a text a pattern (FS-12).
const characters = "*?[]"

// IsPattern reports whether a text holds a character that can make it a pattern (FS-12).
func IsPattern(text string) bool { return strings.ContainsAny(text, characters) }

// Quote gives a pattern that matches this text and nothing else. Only the patterns that come from a name on the disk need
// it; entries of the settings cannot escape anything.
func Quote(text string) string {
	if !strings.ContainsAny(text, "*?[") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*', '?', '[':
			b.WriteString("[" + string(c) + "]")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Pattern is a compiled pattern.
type Pattern struct {
	text   string
	prefix string // literal directories with a slash at the end, or empty; what follows them is prog
	rest   string // the part of text that prog stands for
	prog   []inst
	last   []uint64 // the states that a last component can start in
	opened []uint64 // when the states fit in one word: for each, what open adds; else nil
}

// Compile compiles a text, absolute or relative. Every text compiles (FS-13).
func Compile(text string) *Pattern {
	p := &Pattern{text: text, prog: parse(text)}
	p.splitPrefix()
	p.last = make([]uint64, p.words())
	if len(p.last) == 1 {
		p.opened = make([]uint64, len(p.prog)+1)
		for i := range p.opened {
			p.open(p.opened[i:i+1], i)
		}
	}
	p.open(p.last, 0)
	for i := range p.prog {
		if p.prog[i].accepts('/') {
			p.advance(p.last, i, '/')
		}
	}
	return p
}

// splitPrefix takes the literal directories off the front: most of a pattern is the path of a working directory, which is
// compared as text.
func (p *Pattern) splitPrefix() {
	slash := -1
	for i := range p.prog {
		if p.prog[i].kind != literal {
			break
		}
		if p.prog[i].char == '/' {
			slash = i
		}
	}
	var b strings.Builder
	for _, in := range p.prog[:slash+1] {
		encode(&b, in.char)
	}
	p.prefix, p.prog = b.String(), p.prog[slash+1:]
	p.rest = p.text
	for n := strings.Count(p.prefix, "/"); n > 0; n-- {
		_, p.rest, _ = strings.Cut(p.rest, "/")
	}
	if strings.HasPrefix(p.rest, "]") && slash >= 0 && strings.HasSuffix(p.text[:len(p.text)-len(p.rest)], "[/") {
		p.rest = p.rest[1:] // the slash was written as a set
	}
}

// String is the text of the pattern.
func (p *Pattern) String() string { return p.text }

// Literal is the longest leading directory that the pattern spells, without a slash at the end; "" for a relative pattern
// whose first component is none.
func (p *Pattern) Literal() string {
	if p.prefix == "/" {
		return "/"
	}
	return strings.TrimSuffix(p.prefix, "/")
}

// Rest is what the text of the pattern says after Literal and its slash.
func (p *Pattern) Rest() string { return p.rest }

// Match reports whether the pattern matches the whole of name. It takes at most time in proportion to the length of name
// times that of the pattern.
func (p *Pattern) Match(name string) bool {
	name, ok := strings.CutPrefix(name, p.prefix)
	if !ok {
		return false
	}
	var small, other [1]uint64
	cur, next := p.buffers(&small, &other)
	p.open(cur, 0)
	return p.accepting(p.consume(cur, next, name))
}

// MatchLast reports whether some path whose last component is name may match. It says yes too often, never no wrongly.
func (p *Pattern) MatchLast(name string) bool {
	var small, other [1]uint64
	cur, next := p.buffers(&small, &other)
	copy(cur, p.last)
	return p.accepting(p.consume(cur, next, name))
}

// words is how many words hold one bit for every state.
func (p *Pattern) words() int { return len(p.prog)/64 + 1 }

// buffers gives two empty sets of states, in the arrays when they suffice.
func (p *Pattern) buffers(small, other *[1]uint64) (cur, next []uint64) {
	if n := p.words(); n > 1 {
		return make([]uint64, n), make([]uint64, n)
	}
	return small[:], other[:]
}
