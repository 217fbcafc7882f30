package config

import (
	"errors"
	"strings"
	"testing"
)

// TestExtractMeaning compares the engine with what ECMAScript (without flags) does: group 1, or no match.
func TestExtractMeaning(t *testing.T) {
	const none = "\x00none"
	for _, tc := range []struct{ rule, pattern, text, group string }{
		{"CFG-37 plain", `token:\s*(\S+)`, "x token: abc y", "abc"},
		{"CFG-37 named", `(?<n>a)`, "ba", "a"},
		{"named before unnamed", `(?<a>x)(y)`, "xy", "x"},
		{"names in any order", `(?<b>x)(?<a>y)`, "xy", "x"},
		{"named reference", `(?<q>["'])(?<v>.)\k<q>`, `'a"b"'`, `"`},
		{"named reference before a digit", `(?<a>x)\k<a>1`, "xx1", "x"},
		{"numbered reference", `(.)\1`, "abcc", "c"},
		{"numbered reference to a named group", `(?<a>.)(x)\1`, "axbbxb", "b"},
		{"reference to a later group", `\1(a)`, "a", "a"},
		{"repeated reference", `(a)\1{2}b`, "aaab", "a"},
		{"tenth group", `(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10`, "abcdefghijj", "a"},
		{"dot, CR", `^(.)$`, "\r", none},
		{"dot, U+2028", `^(.)$`, "\u2028", none},
		{"dot, U+2029", `^(.)$`, "\u2029", none},
		{"dot, NEL", `^(.)$`, "\u0085", "\u0085"},
		{"dollar before a final newline", `(a)$`, "a\n", none},
		{"white space, NBSP", `^(\s)$`, "\u00a0", "\u00a0"},
		{"white space, U+FEFF", `^(\s)$`, "\ufeff", "\ufeff"},
		{"white space, VT", `^(\s)$`, "\v", "\v"},
		{"white space, U+180E", `^(\s)$`, "\u180e", none},
		{"white space in a class", `^([^\S])$`, "\u3000", "\u3000"},
		{"word, beyond ASCII", `(\w)`, "é", none},
		{"word, U+0130", `(\w)`, "İ", none},
		{"digit, beyond ASCII", `(\d)`, "٣", none},
		{"boundary, beyond ASCII", `\b(é)`, "é", none},
		{"boundary after a letter beyond ASCII", `é\b(a)`, "éa", "a"},
		{"boundary at the ends", `^\b(a)\b$`, "a", "a"},
		{"no boundary beside a letter beyond ASCII", `é\B(a)`, "éa", none},
		{"no boundary", `a\B(b)`, "ab", "b"},
		{"backspace in a class", `([\b])`, "\b", "\b"},
		{"empty class", `([])`, "a", none},
		{"empty class before text", `([]a])`, "a]", none},
		{"full class", `([^]+)`, "a\nb", "a\nb"},
		{"full class before text", `([^]a])`, "xa]", "xa]"},
		{"no subtraction", `([a-z-[aeiou]+\])`, "e[-]", "e[-]"},
		{"no POSIX class", `^([[:alpha:]+\])$`, "[ph:]", "[ph:]"},
		{"class with a hyphen", `([\w-]+)`, "a-b c", "a-b"},
		{"escapes in a class", `([\]\\\-\^]+)`, `a]\-^b`, `]\-^`},
		{"group-like text in a class", `[(?](a)`, "(a", "a"},
		{"escaped bracket", `\((a)\)`, "(a)", "a"},
		{"hexadecimal", `(\x41\u0042)`, "AB", "AB"},
		{"control letter", `(\cA\cz)`, "\x01\x1a", "\x01\x1a"},
		{"control letter in a class", `([\cA])`, "\x01", "\x01"},
		{"white space escapes", `(\t\n\v\f\r)`, "\t\n\v\f\r", "\t\n\v\f\r"},
		{"NUL", `(\0)`, "\x00", "\x00"},
		{"identity escapes", `(\/\_\-\"\<\'\é)`, `/_-"<'é`, `/_-"<'é`},
		{"lookahead", `(?=ab)(a)`, "ab", "a"},
		{"negative lookahead", `(?!ab)(a)`, "abac", "a"},
		{"lookbehind", `(?<=key=)(\w+)`, "key=v", "v"},
		{"negative lookbehind", `(?<!x)(a)`, "xa", none},
		{"lookbehind runs backwards", `(?<=(\d+)(\d+))x`, "1053x", "1"},
		{"brace that is no quantifier", `(a{,3})`, "a{,3}", "a{,3}"},
		{"large repeat", `(a{1001})`, strings.Repeat("a", 1001), strings.Repeat("a", 1001)},
		{"CRED-15 a skipped round clears a group", `(?:(a)|b)+`, "ab", ""},
		{"CRED-15 a cleared group matches the empty text", `^(?:(a)|b\1)+$`, "ab", ""},
		{"hash and space are text", `(a #b)`, "a #b", "a #b"},
	} {
		re, err := CompileExtract(tc.pattern)
		if err != nil {
			t.Errorf("%s: %s: %v", tc.rule, tc.pattern, err)
			continue
		}
		m, err := re.FindStringMatch(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.rule, err)
			continue
		}
		got := none
		if m != nil {
			got = m.GroupByNumber(1).String()
		}
		if got != tc.group {
			t.Errorf("%s: %s on %q: group 1 is %q, ECMAScript says %q", tc.rule, tc.pattern, tc.text, got, tc.group)
		}
	}
}

func TestExtractRefused(t *testing.T) {
	for rule, patterns := range map[string][]string{
		"CRED-16 not a pattern": {`(`, `(a`, `a)(b)`, `*(a)`, `(a**)`, `(a)\`, `([z-a])`, `(a{3,1})`, `(a{99999999999})`, `([a`, `([^`,
			`[`, `(a)[\`},
		"CRED-16 (?": {`(?i)(a)`, `(?i:a)(b)`, `(?>a)(b)`, `(a)(?#c)`, `(?'n'a)`, `(?P<n>a)`, `(?(1)a|b)(c)`, `(?<n-m>a)`, `(?<1>a)`,
			`(?<>a)`, `(?<a`, `(?`, `(?-i)(a)`, `(?<n m>a)`},
		"CFG-37 two groups of a name":  {`(?<a>x)|(?<a>y)`},
		"CFG-37 escapes of the engine": {`(\A)`, `(\z)`, `(\Z)`, `(\G)`, `(\a)`, `(\e)`, `(\Q)`, `(\E)`, `(\p{L})`, `(\PL)`, `(\K)`, `([\B])`, `([\A])`},
		"CFG-37 cut escapes":           {`(\x4)`, `(\u004g)`, `(\u{41})`, `(\c)`, `(\c1)`, `([\c])`},
		"CFG-37 half a pair":           {`(\ud83d\ude00)`, `(\uDFFF)`, `([\uD800-\uDBFF])`},
		"CFG-37 legacy numbers":        {`(a)\2`, `(a)\8`, `(a)\01`, `(a)\00`, `([\1])`, `(a)\99999999999999999999`},
		"CFG-37 named references":      {`(a)\k`, `(a)\k<a>`, `(?<a>x)\k<b>`, `(?<a>x)\k'a'`, `(?<a>x)\k<a`, `(?<a>x)[\k<a>]`},
		"CFG-37 not UTF-8":             {"(\xff)"},
	} {
		for _, pattern := range patterns {
			if _, err := CompileExtract(pattern); !errors.Is(err, ErrExtractSyntax) {
				t.Errorf("%s: %s: %v; want ErrExtractSyntax", rule, pattern, err)
			}
		}
	}
	for _, pattern := range []string{``, `abc`, `(?:a)`, `(?=a)`, `\(a\)`, `[(]`, `[(a)]`, `(?<!a)b`} {
		if _, err := CompileExtract(pattern); !errors.Is(err, ErrExtractGroup) {
			t.Errorf("CFG-37, case 21: %s: %v; want ErrExtractGroup", pattern, err)
		}
	}
}
