package credential

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/srt-sandbox/srt/runtime/config"
)

// searchTime is how long the search of one entry may take in all (CRED-17).
const searchTime = 2 * time.Second

// span is a range of bytes of a text.
type span struct{ from, to int }

// program is a compiled extract pattern. Its lock is held while it searches: the time limit is a field of the engine's
// program.
type program struct {
	mu sync.Mutex
	re *regexp2.Regexp
}

// programs keeps compiled patterns: a session starts many commands with the same settings. It may be used by any number
// of goroutines.
type programs struct {
	mu   sync.Mutex
	byIt map[string]*program
}

// maxPrograms bounds how many patterns are kept; a session's settings may change any number of times.
const maxPrograms = 256

// compile compiles a pattern, or returns what it became the last time.
func (p *programs) compile(pattern string) (*program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byIt[pattern]; known != nil {
		return known, nil
	}
	re, err := config.CompileExtract(pattern)
	if err != nil {
		return nil, err
	}
	if p.byIt == nil || len(p.byIt) >= maxPrograms {
		p.byIt = make(map[string]*program)
	}
	known := &program{re: re}
	p.byIt[pattern] = known
	return known, nil
}

// captures returns where group 1 captures something in text, which must be UTF-8, in the order of the text (CRED-12).
// Empty captures are left out. It stops at the deadline, which it moves by the time for which other launches had the program:
// the bound is on an entry's own search (CRED-17). Errors are ErrGroup, ErrOverlap and ErrBound.
func (p *program) captures(text []byte, deadline *time.Time) ([]span, error) {
	// The engine reads runes. This is the one copy of a text outside protected memory, and never grows into another.
	runes := make([]rune, 0, countRunes(text))
	defer func() { wipeRunes(runes[:cap(runes)]) }()
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		runes = append(runes, r)
		rest = rest[size:]
	}
	asked := time.Now()
	p.mu.Lock()
	*deadline = deadline.Add(time.Since(asked))
	spans, err := p.search(runes, *deadline)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, a.to-b.to) }) // a lookbehind may run backwards
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return nil, ErrOverlap
		}
	}
	if len(runes) != len(text) {
		toBytes(spans, runes)
	}
	return spans, nil
}

// countRunes counts the characters of valid UTF-8. utf8.RuneCount may make a string of the text, which stays on the heap.
func countRunes(text []byte) int {
	n := 0
	for _, b := range text {
		if utf8.RuneStart(b) {
			n++
		}
	}
	return n
}

// search returns the captures of group 1 as ranges of runes, in the order in which they are found. p.mu is held.
func (p *program) search(runes []rune, deadline time.Time) (spans []span, err error) {
	defer func() {
		if recover() != nil {
			spans, err = nil, ErrBound // its text may quote what it was searching
		}
	}()
	left := func() bool {
		p.re.MatchTimeout = time.Until(deadline) // of the search for the next match
		return p.re.MatchTimeout > 0
	}
	if !left() {
		return nil, ErrBound
	}
	var failed error
	err = p.re.FindRunesMatches(runes, 0, func(v regexp2.MatchView) bool {
		from, length, ok := v.GroupRange(1)
		switch {
		case !ok:
			failed = ErrGroup
		case length > 0:
			spans = append(spans, span{from, from + length})
		}
		if !left() {
			failed = cmp.Or(failed, ErrBound)
		}
		return failed == nil
	})
	if err != nil {
		return nil, ErrBound // the engine's message quotes the text
	}
	return spans, failed
}

// toBytes turns sorted, disjoint ranges of runes into ranges of the bytes that they were decoded from.
func toBytes(spans []span, runes []rune) {
	at, bytesBefore := 0, 0
	offset := func(to int) int {
		for ; at < to; at++ {
			bytesBefore += utf8.RuneLen(runes[at])
		}
		return bytesBefore
	}
	for i, s := range spans {
		from := offset(s.from)
		spans[i] = span{from, offset(s.to)}
	}
}

// duplicates returns where else in text the values occur, longest value first, never touching a span or one another
// (CRED-13). spans are sorted and disjoint, and so is the result together with them; of[i] says which value is at the
// i-th one.
func duplicates(text []byte, spans []span, of []int, values [][]byte, deadline time.Time) ([]span, []int, error) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(values[b]) - len(values[a]) })
	for _, v := range order {
		var more []span
		gap := 0
		for i := 0; i <= len(spans); i++ {
			end := len(text)
			if i < len(spans) {
				end = spans[i].from
			}
			for gap < end {
				at := bytes.Index(text[gap:end], values[v])
				if at < 0 {
					break
				}
				more = append(more, span{gap + at, gap + at + len(values[v])})
				gap += at + len(values[v])
			}
			if i < len(spans) {
				gap = spans[i].to
			}
		}
		if len(more) > 0 {
			spans, of = merge(spans, of, more, v)
		}
		if time.Now().After(deadline) {
			return nil, nil, ErrBound
		}
	}
	return spans, of, nil
}

// merge adds ranges that all hold one value to sorted ones.
func merge(spans []span, of []int, more []span, value int) ([]span, []int) {
	outSpans := make([]span, 0, len(spans)+len(more))
	outOf := make([]int, 0, len(spans)+len(more))
	for len(spans)+len(more) > 0 {
		if len(more) == 0 || len(spans) > 0 && spans[0].from < more[0].from {
			outSpans, outOf = append(outSpans, spans[0]), append(outOf, of[0])
			spans, of = spans[1:], of[1:]
		} else {
			outSpans, outOf = append(outSpans, more[0]), append(outOf, value)
			more = more[1:]
		}
	}
	return outSpans, outOf
}
