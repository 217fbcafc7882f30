package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		rule, pattern string
		yes, no       []string // separated names
	}{
		{"FS-13 star", "*.pem", []string{".pem", "a.pem", "\xff.pem", "..pem"}, []string{"a/b.pem", "a.pemx", "pem", "A.PEM"}},
		{"FS-13 question mark", "a?c", []string{"abc", "aéc", "a😀c", "a\xffc", "a.c"}, []string{"ac", "a/c", "abbc", "a\xff\xffc"}},
		{"FS-13 question mark is no half of a character", "??", []string{"é\xff", "ab", "😀😀"}, []string{"é", "😀", "a"}},
		{"FS-13 directories", "**/x", []string{"x", "a/x", "a/b/x", ".a/x"}, []string{"ax", "a/bx", "x/y"}},
		{"FS-13 directories within", "/a/**/x", []string{"/a/x", "/a/b/x", "/a/b/c/x"}, []string{"/ax", "/a/bx", "/b/x"}},
		{"FS-13 two stars elsewhere", "**.pem", []string{".pem", "a/b.pem", "a.pem"}, []string{"a.pem/x"}},
		{"FS-13 two stars after a letter", "a**/x", []string{"ax", "a/x", "ab/x", "ab/c/x"}, []string{"b/x", "abx"}},
		{"FS-13 two stars at the end", "a/**", []string{"a/", "a/b", "a/b/c"}, []string{"a", "b/a/c"}},
		{"FS-13 three stars and a slash", "***/x", []string{"x", "ax", "a/x", "a/b/x"}, []string{"a/xx", "y"}},
		{"FS-13 four stars and a slash", "****/x", []string{"x", "ax", "a/bx", "a/b/x"}, []string{"y"}},
		{"FS-13 three stars", "a***", []string{"a", "ab", "a/b"}, []string{"b"}},
		{"FS-13 any path", "**/*", []string{"a", "a/b", ".a"}, nil},
		{"FS-13 one level of two", "*/*", []string{"a/b"}, []string{"a", "a/b/c"}},
		{"FS-13 a star for a directory", "**/*/x", []string{"a/x", "a/b/x"}, []string{"x", "a/y"}},
		{"FS-13 no escape", `\*`, []string{`\`, `\a`}, []string{"*", "a"}},
		{"FS-13 case", "*.Pem", []string{"a.Pem"}, []string{"a.pem"}},
		{"FS-13 line feed", "a*b?c", []string{"a\nb\nc"}, nil},
		{"FS-13 braces and dots are text", "{a,b}.(c)+$^|", []string{"{a,b}.(c)+$^|"}, []string{"a.c", "b"}},
		{"FS-14 members", "[abc]", []string{"a", "b", "c"}, []string{"d", "", "ab", "[abc]"}},
		{"FS-14 range", "x[a-c0-1]", []string{"xa", "xc", "x0"}, []string{"xd", "x2", "x-"}},
		{"FS-14 range of code points", "[α-γ]", []string{"α", "β", "γ"}, []string{"δ", "\xce"}},
		{"FS-14 no negation", "[^a]", []string{"^", "a"}, []string{"b"}},
		{"FS-14 no negation by mark", "[!a]", []string{"!", "a"}, []string{"b"}},
		{"FS-14 wildcards are members", "[*?[]", []string{"*", "?", "["}, []string{"a", ""}},
		{"FS-14 first minus", "[-a]", []string{"-", "a"}, []string{"b"}},
		{"FS-14 last minus", "[a-]", []string{"-", "a"}, []string{"b"}},
		{"FS-14 minus after a range", "[a-c-e]", []string{"a", "c", "-", "e"}, []string{"d"}},
		{"FS-14 minus alone", "[-]", []string{"-"}, []string{"[-]"}},
		{"FS-14 slash", "a[/x]b", []string{"a/b", "axb"}, []string{"a[/x]b", "ab"}},
		{"FS-14 slash in a range", "a[.-0]b", []string{"a/b", "a.b", "a0b"}, []string{"a1b"}},
		{"FS-14 empty brackets", "a[]*", []string{"a[]", "a[]b"}, []string{"a", "ab"}},
		{"FS-14 empty brackets before another", "[]x]", []string{"[]x]"}, []string{"x", "]"}},
		{"FS-14 backward range", "t[user-id]", []string{"t[user-id]"}, []string{"tu", "ti", "t-"}},
		{"FS-14 wildcards in a backward range are text", "[z-a*]", []string{"[z-a*]"}, []string{"[z-a]", "[z-axx]", "z"}},
		{"FS-14 unclosed", "a[*", []string{"a[", "a[b"}, []string{"a", "ab"}},
		{"FS-14 unclosed at the end", "a[", []string{"a["}, []string{"a"}},
		{"FS-14 lone closing bracket", "a]b*", []string{"a]b", "a]bc"}, []string{"ab"}},
		{"FS-14 bytes are members", "[\xff]", []string{"\xff"}, []string{"\xfe", "[\xff]", "ÿ"}},
		{"FS-14 a byte is not half of a character", "\xc3[\xa9]", nil, []string{"é", "\xc3"}},
		{"FS-12 a name without wildcards", "/a/b", []string{"/a/b"}, []string{"/a/b/", "/a", "/a/bc", "a/b"}},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			p := Compile(tt.pattern)
			for _, name := range tt.yes {
				if !p.Match(name) || !slow(tt.pattern, name) {
					t.Errorf("%q does not match %q (reference: %v)", tt.pattern, name, slow(tt.pattern, name))
				}
			}
			for _, name := range tt.no {
				if p.Match(name) || slow(tt.pattern, name) {
					t.Errorf("%q matches %q (reference: %v)", tt.pattern, name, slow(tt.pattern, name))
				}
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for _, name := range []string{"", "/a/b", "[WIP] p", "a*b?c", "x]", "[[*]]", "t[user-id]", "\xff[", "]["} {
		p := Compile(Quote(name) + "/*")
		if want := name; p.Literal() != want && !(want == "" && p.Literal() == "/") {
			t.Errorf("Literal of the quoted %q is %q", name, p.Literal())
		}
		if !p.Match(name + "/x") {
			t.Errorf("the quoted %q does not match itself", name)
		}
	}
	if Compile(Quote("[ab]")).Match("a") {
		t.Error("a quoted set is a set")
	}
}

func TestLiteralAndRest_FS18(t *testing.T) {
	for _, tt := range []struct{ text, literal, rest string }{
		{"/h/p/*.pem", "/h/p", "*.pem"}, {"/*", "/", "*"}, {"/h/p*/x", "/h", "p*/x"}, {"*", "", "*"}, {"a/*", "a", "*"},
		{"/h/[ab]/x", "/h", "[ab]/x"}, {"/h/[user-id]/x*", "/h/[user-id]", "x*"}, {"/h/[[]x/*", "/h/[x", "*"}, {"/a/b", "/a", "b"},
		{"/a[/]b*", "/a", "b*"}, {"/", "/", ""}, {"", "", ""}, {"/**", "/", "**"}, {"/h/a[/c*", "/h/a[", "c*"},
	} {
		if p := Compile(tt.text); p.Literal() != tt.literal || p.Rest() != tt.rest || p.String() != tt.text {
			t.Errorf("%q: literal %q rest %q, want %q %q", tt.text, p.Literal(), p.Rest(), tt.literal, tt.rest)
		}
	}
}

func TestStates(t *testing.T) {
	tests := []struct {
		rule, pattern, dir string
		empty, matches     bool
	}{
		{"FS-18 above the literal directory", "/h/p/*.x", "/h", false, false},
		{"FS-18 the root", "/h/p/*.x", "/", false, false},
		{"FS-18 at the literal directory", "/h/p/*.x", "/h/p", false, false},
		{"FS-18 beneath one level", "/h/p/*.x", "/h/p/a", true, false},
		{"FS-18 elsewhere", "/h/p/*.x", "/h/q", true, false},
		{"FS-18 a name that only begins so", "/h/p/*.x", "/h/p/../p", true, false},
		{"FS-18 beneath a wildcard directory", "/h/*/x", "/h/p", false, false},
		{"FS-18 beneath what it matches", "/h/*/x", "/h/p/x", true, false},
		{"FS-18 any depth", "/h/**/x", "/h/p/q", false, false},
		{"FS-20 within the directory", "/h/**/b/**", "/h/p/b", false, true},
		{"FS-20 deep within the directory", "/h/b/**", "/h/b/c/d", false, true},
		{"FS-20 above the directory", "/h/**/b/**", "/h/p", false, false},
		{"FS-14 a set with a slash", "/h/a[/x]b", "/h/a", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.rule, func(t *testing.T) {
			s := Compile(tt.pattern).Below(tt.dir)
			if s.Empty() != tt.empty || s.Matches() != tt.matches {
				t.Errorf("%q beneath %q: empty %v matches %v", tt.pattern, tt.dir, s.Empty(), s.Matches())
			}
		})
	}
}

func TestSubsetOf_FS41(t *testing.T) {
	tests := []struct {
		pattern, a, b string
		want          bool
	}{
		{"/h/**/*.pem", "/h/a", "/h/b", true},
		{"/h/**/*.pem", "/h", "/h/a/b", true},
		{"/h/**/*.pem", "/g", "/h", true},
		{"/h/**/*.pem", "/h", "/g", false},
		{"/h/*/x", "/h/a", "/h/b", true},
		{"/h/*/x", "/h/a", "/h", false},
		{"/h/a/*", "/h", "/h/a", false},
		{"/h/k/x*", "/h/k", "/h/l", false},
	}
	for _, tt := range tests {
		p := Compile(tt.pattern)
		if got := p.Below(tt.a).SubsetOf(p.Below(tt.b)); got != tt.want {
			t.Errorf("%q: beneath %q a subset of beneath %q: %v", tt.pattern, tt.a, tt.b, got)
		}
	}
	if Compile("/h/*").Below("/h").SubsetOf(Compile("/h/*").Below("/h")) {
		t.Error("states of two patterns are compared")
	}
}

func TestMatchLast(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"/h/p/*.pem", "a.pem", true}, {"/h/p/*.pem", "a.key", false}, {"/h/**/.env", ".env", true}, {"/h/**/.env", "env", false},
		{"/h/conf/x*", "conf", false}, {"/h/a/**", "anything", true}, {"/h/a[/x]b", "b", true}, {"/h/a[/x]b", "axb", true},
		{"/h/a[/x]b", "a", false}, {"**.pem", "a.pem", true}, {"*", "a", true}, {"/h/*/key", "key", true}, {"/h/*/key", "h", false},
	} {
		if got := Compile(tt.pattern).MatchLast(tt.name); got != tt.want {
			t.Errorf("%q, %q: %v", tt.pattern, tt.name, got)
		}
	}
}

// TestHostile_FS13: no pattern and no name costs more than one times the other. The test would not end otherwise.
func TestHostile_FS13(t *testing.T) {
	name := strings.Repeat("a", 4096)
	for _, tt := range []struct {
		pattern string
		want    bool
	}{
		{strings.Repeat("*", 10000), true},
		{strings.Repeat("*", 10000) + "b", false},
		{strings.Repeat("*a", 1000) + "b", false},
		{strings.Repeat("**/", 5000) + "*", true},
		{strings.Repeat("***/", 2000) + "b", false},
		{strings.Repeat("*?", 2000), true},
		{strings.Repeat("[", 10000), false},
		{strings.Repeat("[a-z]", 4096), true},
		{strings.Repeat("a*", 4096), true},
		{strings.Repeat("a*", 4097), false},
		{strings.Repeat("*/", 5000), false},
	} {
		p := Compile(tt.pattern)
		if got := p.Match(name); got != tt.want {
			t.Errorf("%.20q...: %v", tt.pattern, got)
		}
		p.MatchLast(name)
		if s := p.Below("a/a"); !s.Empty() {
			s.Step(name)
			s.Texts()
		}
	}
}

func BenchmarkStep(b *testing.B) {
	s := Compile("/h/p/**/*.pem").Below("/h/p")
	b.ReportAllocs()
	for b.Loop() {
		s.Step("some-source-file.go")
	}
}
