package policy

import (
	"strings"
	"unicode/utf8"
)

// NormalizeTarget returns the normalized form of path and query, and whether it names another path than the spelled one
// (NET-35, REQ-6, REQ-7). "*" is its own normalized form.
func NormalizeTarget(spelled string) (normalized string, ambiguous bool) {
	if !strings.HasPrefix(spelled, "/") {
		return spelled, false
	}
	path, query, _ := strings.Cut(spelled, "?")
	normalized = escape(normalizePath(path), "\"<>`{}")
	compared := path
	if query != "" {
		normalized += "?" + escape(query, "\"<>'")
		compared += "?" + query
	}
	const escaped = "\"'<>^`{}"
	return normalized, escape(compared, escaped) != escape(normalized, escaped)
}

// normalizePath removes dot segments as the URL Standard does (section 4.4, path state), takes '\' for '/', and makes one
// of several leading slashes.
func normalizePath(path string) string {
	var kept []string
	segments := strings.Split(strings.ReplaceAll(path[1:], `\`, "/"), "/")
	for i, s := range segments {
		dots := dotSegment(s)
		switch {
		case dots == 0:
			kept = append(kept, s)
			continue
		case dots == 2 && len(kept) > 0:
			kept = kept[:len(kept)-1]
		}
		if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.TrimLeft(strings.Join(kept, "/"), "/")
}

// dotSegment is 1 for "." and 2 for "..", each dot possibly percent-encoded, and 0 for every other segment.
func dotSegment(s string) int {
	dots := 0
	for s != "" {
		switch {
		case s[0] == '.':
			s = s[1:]
		case len(s) >= 3 && strings.EqualFold(s[:3], "%2e"):
			s = s[3:]
		default:
			return 0
		}
		if dots++; dots > 2 {
			return 0
		}
	}
	return dots
}

// escape percent-encodes the bytes of a set and everything outside ASCII.
func escape(s, set string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune(set, r) }) < 0 {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || strings.IndexByte(set, c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
