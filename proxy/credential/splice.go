package credential

import (
	"hash/maphash"
	"time"
)

// findings are the values to mask in a text and where they are.
type findings struct {
	spans  []span   // sorted, disjoint
	of     []int    // which value is at the i-th span
	values [][]byte // distinct, views into the text, in its order
}

// collect gathers what is at the spans of a text; equal values are one (CRED-12).
func collect(text []byte, spans []span) *findings {
	f := &findings{spans: spans, of: make([]int, len(spans))}
	seed := maphash.MakeSeed()
	index := make(map[uint64][]int, len(spans))
	for i, s := range spans {
		f.of[i] = f.number(index, maphash.Bytes(seed, text[s.from:s.to]), text[s.from:s.to])
	}
	return f
}

// number returns the number of a value, a new one if it was not there yet.
func (f *findings) number(index map[uint64][]int, hash uint64, value []byte) int {
	for _, n := range index[hash] {
		if string(f.values[n]) == string(value) { // compared in place, not converted
			return n
		}
	}
	n := len(f.values)
	f.values = append(f.values, value)
	index[hash] = append(index[hash], n)
	return n
}

// keep drops the values for which wanted is false, and their spans.
func (f *findings) keep(wanted []bool) {
	renumbered := make([]int, len(f.values))
	values := f.values[:0]
	for n, v := range f.values {
		if wanted[n] {
			renumbered[n] = len(values)
			values = append(values, v)
		}
	}
	f.values = values
	spans, of := f.spans[:0], f.of[:0]
	for i, s := range f.spans {
		if wanted[f.of[i]] {
			spans, of = append(spans, s), append(of, renumbered[f.of[i]])
		}
	}
	f.spans, f.of = spans, of
}

// addDuplicates adds the other verbatim occurrences of the values (CRED-13).
func (f *findings) addDuplicates(text []byte, deadline time.Time) (err error) {
	f.spans, f.of, err = duplicates(text, f.spans, f.of, f.values, deadline)
	return err
}

// splice returns text with a sentinel in the place of every value; every other byte stays.
func (f *findings) splice(text []byte, secrets []*secret) []byte {
	size := len(text)
	for i, s := range f.spans {
		size += len(secrets[f.of[i]].sentinel) - (s.to - s.from)
	}
	out := make([]byte, 0, size)
	at := 0
	for i, s := range f.spans {
		out = append(out, text[at:s.from]...)
		out = append(out, secrets[f.of[i]].sentinel...)
		at = s.to
	}
	return append(out, text[at:]...)
}
