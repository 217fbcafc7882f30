package violation

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// PhraseLimit is the longest status phrase and the longest reason of a callback, in UTF-16 code units (NET-75).
const PhraseLimit = 500

// unsafeRanges are the code points that never leave in a line: C0, DEL and C1, what is invisible, what reorders text, and
// the tag characters (NET-75, VIO-20). Ordered, so that a lookup can stop early.
var unsafeRanges = [...]struct{ lo, hi rune }{
	{0x0000, 0x001f},
	{0x007f, 0x009f},
	{0x00ad, 0x00ad},
	{0x061c, 0x061c},
	{0x200b, 0x200f},
	{0x2028, 0x202e},
	{0x2060, 0x2064},
	{0x2066, 0x2069},
	{0xfeff, 0xfeff},
	{0xe0000, 0xe007f},
}

func isUnsafe(r rune) bool {
	for _, span := range unsafeRanges {
		if r <= span.hi {
			return r >= span.lo
		}
	}
	return false
}

// Clean makes text from inside a sandbox, or from a settings file, fit for a terminal, a log and the tags of an
// annotation: each run of control, invisible and reordering code points becomes one space, '<' and '>' are removed, the
// ends are trimmed (NET-75, VIO-20). Bytes that are no UTF-8 become U+FFFD. The result is stable: cleaning it again
// changes nothing.
func Clean(s string) string { return clean(s, false) }

// CleanLine is Clean for text that a person reads on a terminal or in a log: '<' and '>' stay, which only markup gives a
// meaning, and without which "cc >out" would read as another command. It is not for annotations.
func CleanLine(s string) string { return clean(s, true) }

func clean(s string, angles bool) string {
	var b strings.Builder
	b.Grow(len(s))
	inRun := false
	for _, r := range s {
		if isUnsafe(r) {
			if !inRun {
				b.WriteByte(' ')
			}
			inRun = true
			continue
		}
		// Removal follows the replacement of runs, so a '<' between two control characters leaves two spaces.
		inRun = false
		if angles || r != '<' && r != '>' {
			b.WriteRune(r)
		}
	}
	return strings.TrimFunc(b.String(), unicode.IsSpace)
}

// CutUTF16 returns the longest prefix of s that takes at most n UTF-16 code units. A code point that takes two stays
// whole or goes whole. Bytes that are no UTF-8 count as one unit each and are kept as they are. n below 1 gives "".
func CutUTF16(s string, n int) string {
	units := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		units++
		if r > 0xffff {
			units++
		}
		if units > n {
			return s[:i]
		}
		i += size
	}
	return s
}

// StatusPhrase makes a reason fit for an HTTP status line: cleaned, cut to PhraseLimit UTF-16 units, ends trimmed again,
// and every code point outside printable ASCII written as '?' (NET-39). It cannot hold a line break.
func StatusPhrase(reason string) string {
	cut := CallbackReason(reason)
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, cut)
}

// CallbackReason makes the reason that a callback gave fit for a line: cleaned, cut to PhraseLimit UTF-16 units, end
// trimmed (NET-13, VIO-21). It may be empty: the caller then says "user denied".
func CallbackReason(reason string) string {
	return strings.TrimRightFunc(CutUTF16(Clean(reason), PhraseLimit), unicode.IsSpace)
}

// RedactURL cuts a URL or request target after its first '?' or '#' and marks the cut with an ellipsis, so that no query
// string enters a line (NET-71, VIO-14). Without either the text is returned unchanged.
func RedactURL(url string) string {
	i := strings.IndexAny(url, "?#")
	if i < 0 {
		return url
	}
	return url[:i+1] + "…"
}
