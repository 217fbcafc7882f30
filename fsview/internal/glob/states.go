package glob

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// States is what is left to match of a pattern beneath a directory. The zero value is nothing: no match can lie beneath.
// Two of the same pattern are equal (==) when the same is left.
type States struct {
	of     *Pattern
	prefix int    // how much of the literal prefix is consumed; the rest is empty unless that is all of it
	first  uint64 // the states, one bit each
	more   string // those from 64 on, as little-endian words
}

// open adds state i to a set, with those that are reached from it without a character.
func (p *Pattern) open(set []uint64, i int) {
	for ; ; i++ {
		set[i/64] |= 1 << (i % 64)
		if i == len(p.prog) || !p.prog[i].skips() {
			return
		}
	}
}

// advance adds the states that follow state i, which accepts the character, when it is consumed.
func (p *Pattern) advance(set []uint64, i int, c rune) {
	switch p.prog[i].kind {
	case run, anyRun:
		p.open(set, i)
	case folders: // what follows it starts after a slash
		set[i/64] |= 1 << (i % 64)
		if c == '/' {
			p.open(set, i+1)
		}
	default:
		p.open(set, i+1)
	}
}

// consume gives the states after text. Both sets are overwritten, and the answer is one of them.
func (p *Pattern) consume(cur, next []uint64, text string) []uint64 {
	if p.opened != nil {
		cur[0] = p.consumeWord(cur[0], text)
		return cur
	}
	for text != "" {
		c, size := decode(text)
		text = text[size:]
		clear(next)
		some := false
		for w, word := range cur {
			for ; word != 0; word &= word - 1 {
				i := w*64 + bits.TrailingZeros64(word)
				if i < len(p.prog) && p.prog[i].accepts(c) {
					p.advance(next, i, c)
					some = true
				}
			}
		}
		if cur, next = next, cur; !some {
			break
		}
	}
	return cur
}

// consumeWord is consume for the usual pattern, whose states fit in one word.
func (p *Pattern) consumeWord(cur uint64, text string) uint64 {
	for text != "" && cur != 0 {
		c, size := rune(text[0]), 1
		if c >= utf8.RuneSelf {
			c, size = decode(text)
		}
		text = text[size:]
		next := uint64(0)
		for cur &^= 1 << len(p.prog); cur != 0; cur &= cur - 1 {
			i := bits.TrailingZeros64(cur)
			switch in := &p.prog[i]; in.kind {
			case literal:
				if c == in.char {
					next |= p.opened[i+1]
				}
			case anyRun:
				next |= p.opened[i]
			case run:
				if c != '/' {
					next |= p.opened[i]
				}
			case folders:
				next |= 1 << i
				if c == '/' {
					next |= p.opened[i+1]
				}
			default:
				if in.accepts(c) {
					next |= p.opened[i+1]
				}
			}
		}
		cur = next
	}
	return cur
}

func (p *Pattern) accepting(set []uint64) bool {
	return set[len(p.prog)/64]&(1<<(len(p.prog)%64)) != 0
}

// Below gives what is left to match beneath the directory dir, as it is written: dir and a slash are consumed. A
// relative pattern is left whole beneath "".
func (p *Pattern) Below(dir string) States {
	if dir != "" && dir != "/" {
		dir += "/"
	}
	if len(dir) < len(p.prefix) {
		if !strings.HasPrefix(p.prefix, dir) {
			return States{}
		}
		return States{of: p, prefix: len(dir)}
	}
	tail, ok := strings.CutPrefix(dir, p.prefix)
	if !ok {
		return States{}
	}
	var small, other [1]uint64
	cur, next := p.buffers(&small, &other)
	p.open(cur, 0)
	return p.states(p.consume(cur, next, tail))
}

// start is what is left once the literal directories are consumed: all the rest.
func (p *Pattern) start() States {
	var small, other [1]uint64
	set, _ := p.buffers(&small, &other)
	p.open(set, 0)
	return p.states(set)
}

// states packs a set. To have matched everything, with nothing left to consume, leaves nothing.
func (p *Pattern) states(set []uint64) States {
	some := uint64(0)
	for i, w := range set {
		if i == len(p.prog)/64 {
			w &^= 1 << (len(p.prog) % 64)
		}
		some |= w
	}
	if some == 0 {
		return States{}
	}
	s := States{of: p, prefix: len(p.prefix), first: set[0]}
	if len(set) > 1 {
		words := make([]byte, 0, 8*len(set))
		for _, w := range set[1:] {
			words = binary.LittleEndian.AppendUint64(words, w)
		}
		s.more = string(words)
	}
	return s
}

// unpack writes the states to a set.
func (s States) unpack(set []uint64) {
	set[0] = s.first
	for i := 1; i < len(set); i++ {
		set[i] = s.word(i)
	}
}

// word is word i, which is not the first, of the states.
func (s States) word(i int) uint64 {
	var w uint64
	for j := 8 * i; j > 8*(i-1); j-- {
		w = w<<8 | uint64(s.more[j-1])
	}
	return w
}

// Empty reports whether no match can lie beneath.
func (s States) Empty() bool { return s.of == nil }

// Matches reports whether the path consumed so far, with the slash at its end, matches. That is so within a pattern that
// ends in `/**`, once its directory is reached (FS-20).
func (s States) Matches() bool {
	if s.of == nil || s.prefix < len(s.of.prefix) {
		return false
	}
	n := len(s.of.prog)
	w := s.first
	if n >= 64 {
		w = s.word(n / 64)
	}
	return w&(1<<(n%64)) != 0
}

// SubsetOf reports whether everything that s can still match, t can match too, both of the same pattern. It may say no
// wrongly, never yes.
func (s States) SubsetOf(t States) bool {
	if s.Empty() || s == t {
		return true
	}
	if s.of != t.of || s.prefix != t.prefix || s.first&^t.first != 0 {
		return false
	}
	for i := range len(s.more) {
		if s.more[i]&^t.more[i] != 0 {
			return false
		}
	}
	return true
}

// Step consumes one component. match reports whether the path that ends in it matches, and next is what is left beneath
// it.
func (s States) Step(component string) (next States, match bool) {
	p := s.of
	if p == nil {
		return States{}, false
	}
	if s.prefix < len(p.prefix) {
		tail, ok := strings.CutPrefix(p.prefix[s.prefix:], component)
		if !ok || tail == "" || tail[0] != '/' {
			return States{}, false
		}
		if len(tail) > 1 {
			return States{of: p, prefix: len(p.prefix) - len(tail) + 1}, false
		}
		return p.start(), false
	}
	var small, other [1]uint64
	cur, spare := p.buffers(&small, &other)
	s.unpack(cur)
	got := p.consume(cur, spare, component)
	match = p.accepting(got)
	if &got[0] == &spare[0] {
		spare = cur
	}
	return p.states(p.consume(got, spare, "/")), match
}

// Texts gives patterns that match, relative to the directory, exactly what is left to match beneath it.
func (s States) Texts() []string {
	p := s.of
	if s.Empty() {
		return nil
	}
	if s.prefix < len(p.prefix) {
		return []string{Quote(p.prefix[s.prefix:]) + render(p.prog)}
	}
	var list []string
	set, reached := make([]uint64, p.words()), make([]uint64, p.words())
	s.unpack(set)
	for i := range p.prog {
		if bit := uint64(1) << (i % 64); set[i/64]&bit != 0 && reached[i/64]&bit == 0 {
			p.open(reached, i) // what these match is a part of what i matches
			list = append(list, render(p.prog[i:]))
		}
	}
	return list
}

// render writes instructions as a text that compiles to them.
func render(prog []inst) string {
	var b strings.Builder
	for i, in := range prog {
		switch in.kind {
		case single:
			b.WriteByte('?')
		case run:
			b.WriteByte('*')
		case anyRun:
			b.WriteString("**")
		case folders:
			b.WriteString("**/")
		case oneOf:
			b.WriteString(in.text)
		default:
			writeLiteral(&b, in.char, i > 0 && prog[i-1].kind == anyRun)
		}
	}
	return b.String()
}

// writeLiteral writes a character so that it stands for itself, also right after a `**`.
func writeLiteral(b *strings.Builder, c rune, afterAnyRun bool) {
	switch {
	case c == '*', c == '?', c == '[', c == '/' && afterAnyRun:
		b.WriteString("[" + string(c) + "]")
	default:
		encode(b, c)
	}
}
