package config

import (
	"slices"
	"strings"
)

// UnknownKey is a key that [Decode] ignored because the schema has none of that name at that place (CFG-14).
type UnknownKey struct {
	Path  string // dotted, such as "network.requestRule"
	Meant string // the key of that place that it is most like, if it may be a mistyped one; else empty
}

// Grave reports whether the key should be named to whoever wrote it, unasked: it looks mistyped, or lies in an entry of
// credentials, where a key that does not count can let a real value go to more hosts than was meant.
func (k UnknownKey) Grave() bool {
	return k.Meant != "" || strings.HasPrefix(k.Path, "credentials.")
}

// String is a sentence for a person.
func (k UnknownKey) String() string {
	if k.Meant == "" {
		return "settings key " + k.Path + " is unknown and has no effect"
	}
	return "settings key " + k.Path + " is unknown and has no effect; is " + k.Meant + " meant?"
}

// UnknownKeys returns the keys that [Decode] ignored, sorted by path (CFG-14). A mistyped key drops a rule, so srt warns of
// those that are grave, and names the others under debug.
func (c *Config) UnknownKeys() []UnknownKey { return slices.Clone(c.unknown) }

// maxMistyped bounds the keys that are compared, in bytes: the schema's are shorter, and a file may hold anything.
const maxMistyped = 64

// meant is the known key that another may be a mistyped form of: the same but for case and what parts words, or at most two
// letters away. Empty if there is none.
func meant(key string, known []string) string {
	if len(key) > maxMistyped {
		return ""
	}
	best, distance := "", 3
	for _, k := range known {
		a, b := bare(key), bare(k)
		if d := letters(a, b); d < distance && 4*d <= len(b) { // short names are all alike
			best, distance = k, d
		}
	}
	return best
}

// bare is a key without case and without what parts words in other files' styles.
func bare(key string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
}

// letters is how many bytes must be put in, taken out or replaced, or pairs of neighbours swapped, to make one text the other
// (the restricted Damerau-Levenshtein distance).
func letters(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+same)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
