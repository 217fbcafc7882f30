package model

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatches(t *testing.T) {
	tests := []struct {
		rule, pattern, yes, no string // names with spaces between
	}{
		{"FS-12 anchored", "*.pem", "a.pem .pem", "b/a.pem a.pemx"},
		{"FS-12 any depth", "**/*.pem", "a.pem b/a.pem b/c/.pem", "a.pe"},
		{"FS-13 question mark", "a?", "ab aé a\xff", "a a/ abc"},
		{"FS-13 deep run", "**.pem", "a.pem b/a.pem", "a.pe"},
		{"FS-13 deep run in a component", "a**/x", "a/x ab/c/x", "ax b/x"},
		{"FS-13 zero directories", "a/**/x", "a/x a/b/x a/b/c/x", "ax a/b/y"},
		{"FS-13 a longer run", "a***/x", "a/x ab/x ab/c/x", "ax"},
		{"FS-13 four", "a****/x", "a/x ab/x ab/b/c/x", "ax b"},
		{"FS-14 set", "[abc]", "a b c", "d ab"},
		{"FS-14 range", "x[a-cz-]", "xa xb xz x-", "xd x"},
		{"FS-14 no negation", "[!a]", "! a", "b"},
		{"FS-14 backward range", "t[user-id]", "t[user-id]", "tu t-"},
		{"FS-14 empty", "[]a", "[]a", "a"},
		{"FS-14 unclosed", "[a", "[a", "a"},
		{"FS-14 lone bracket", "a]", "a]", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			for _, name := range strings.Fields(tt.yes) {
				if !matches(tt.pattern, name) {
					t.Errorf("%q does not match %q", tt.pattern, name)
				}
			}
			for _, name := range strings.Fields(tt.no) {
				if matches(tt.pattern, name) {
					t.Errorf("%q matches %q", tt.pattern, name)
				}
			}
		})
	}
}

// FuzzMatches compares with regular expressions, for patterns without sets and without runs of stars longer than two.
func FuzzMatches(f *testing.F) {
	for _, s := range [][2]string{{"**/*.pem", "a/b.pem"}, {"a?c*", "abcd"}, {"a**/x", "ab/c/x"}, {"x/**", "x/y/z"}, {"**/**", "a"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 16 || len(name) > 16 || strings.ContainsAny(pattern, "[]") || strings.Contains(pattern, "***") ||
			!utf8.ValidString(pattern) || !utf8.ValidString(name) || slices.Contains(strings.Split(name, "/"), "") {
			t.Skip("not a case that a regular expression states")
		}
		if want := regexp.MustCompile(`(?s)^` + expression(pattern) + `$`).MatchString(name); matches(pattern, name) != want {
			t.Errorf("%q and %q: %v, want %v", pattern, name, !want, want)
		}
	})
}

// expression says a pattern, without sets and longer runs of stars, as a regular expression.
func expression(pattern string) string {
	var b strings.Builder
	for at := "/"; pattern != ""; {
		n := 1
		switch {
		case strings.HasPrefix(pattern, "**/") && at == "/":
			n = 3
			b.WriteString(`(?:.+/)?`)
		case strings.HasPrefix(pattern, "**"):
			n = 2
			b.WriteString(`.*`)
		case pattern[0] == '*':
			b.WriteString(`[^/]*`)
		case pattern[0] == '?':
			b.WriteString(`[^/]`)
		default:
			_, n = utf8.DecodeRuneInString(pattern)
			b.WriteString(regexp.QuoteMeta(pattern[:n]))
		}
		at = pattern[n-1 : n]
		pattern = pattern[n:]
	}
	return b.String()
}
