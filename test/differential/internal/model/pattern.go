package model

import (
	"strings"
	"unicode/utf8"
)

// isPattern is FS-12.
func isPattern(text string) bool { return strings.ContainsAny(text, "*?[]") }

// matches reports whether a name matches a pattern as a whole (FS-13, FS-14). It tries every way.
func matches(pattern, name string) bool { return match(pattern, name, true) }

// match goes on in the middle; first says that the pattern's next character starts a component.
func match(p, name string, first bool) bool {
	if p == "" {
		return name == ""
	}
	stars := len(p) - len(strings.TrimLeft(p, "*"))
	switch {
	case stars >= 2 && strings.HasPrefix(p[stars:], "/") && (first || stars > 2):
		return matchDeepSlash(p, name, stars)
	case stars >= 2:
		return anyRun(p[stars:], name, true)
	case stars == 1:
		return anyRun(p[1:], name, false)
	case p[0] == '?':
		n := width(name)
		return n > 0 && name[0] != '/' && match(p[1:], name[n:], false)
	case p[0] == '[':
		if set, rest, ok := brackets(p); ok {
			n := width(name)
			return n > 0 && set(name[:n]) && match(rest, name[n:], false)
		}
	}
	return name != "" && p[0] == name[0] && match(p[1:], name[1:], p[0] == '/')
}

// matchDeepSlash is `**/`, with what stands before it in a longer run.
func matchDeepSlash(p, name string, stars int) bool {
	rest := p[stars+1:]
	switch stars {
	case 2:
	case 3:
		return anyRun("**/"+rest, name, false)
	default:
		return anyRun("**/"+rest, name, true)
	}
	if match(rest, name, true) {
		return true
	}
	for i := range len(name) {
		if name[i] == '/' && i > 0 && match(rest, name[i+1:], true) {
			return true
		}
	}
	return false
}

// anyRun lets a run of any length go before the rest of the pattern.
func anyRun(rest, name string, slashes bool) bool {
	for i := 0; ; i++ {
		if match(rest, name[i:], false) {
			return true
		}
		if i == len(name) || (name[i] == '/' && !slashes) {
			return false
		}
	}
}

// width is the length of the first character: a code point, or a byte that belongs to none.
func width(name string) int {
	_, n := utf8.DecodeRuneInString(name)
	return n
}

// brackets reads a set. It is none, but text, when empty, unclosed or with a range that goes backwards.
func brackets(p string) (set func(string) bool, rest string, ok bool) {
	end := strings.IndexByte(p, ']')
	if end < 2 {
		return nil, "", false
	}
	var members []string
	for s := p[1:end]; s != ""; {
		n := width(s)
		members = append(members, s[:n])
		s = s[n:]
	}
	type span struct{ from, to rune }
	var spans []span
	for i := 0; i < len(members); i++ {
		if i+2 < len(members) && members[i+1] == "-" {
			from, _ := utf8.DecodeRuneInString(members[i])
			to, _ := utf8.DecodeRuneInString(members[i+2])
			if from > to {
				return nil, "", false
			}
			spans = append(spans, span{from, to})
			i += 2
			continue
		}
		r, _ := utf8.DecodeRuneInString(members[i])
		spans = append(spans, span{r, r})
	}
	return func(c string) bool {
		r, n := utf8.DecodeRuneInString(c)
		for _, s := range spans {
			if s.from <= r && r <= s.to && (r != utf8.RuneError || n > 1) {
				return true
			}
		}
		return false
	}, p[end+1:], true
}
