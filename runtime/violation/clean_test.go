package violation

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"NET-75 C0 run is one space", "a\x00\r\n\tb", "a b"},
		{"NET-75 DEL and C1", "a\x7f\u0080\u009fb", "a b"},
		{"NET-75 soft hyphen and Arabic letter mark", "a\u00adb\u061cc", "a b c"},
		{"NET-75 zero width and marks", "a\u200b\u200fb", "a b"},
		{"NET-75 separators and overrides", "a\u2028\u202eb", "a b"},
		{"NET-75 invisible operators", "a\u2060\u2064b", "a b"},
		{"NET-75 isolates", "a\u2066\u2069b", "a b"},
		{"NET-75 byte order mark", "a\ufeffb", "a b"},
		{"NET-75 tags", "a\U000e0000\U000e007fb", "a b"},
		{"NET-75 neighbours of the ranges stay", "\u00a1\u00ac\u00ae\u061b\u061d\u2010\u2027\u202f.\u2065\u206a\ufefe\U000e0080", "\u00a1\u00ac\u00ae\u061b\u061d\u2010\u2027\u202f.\u2065\u206a\ufefe\U000e0080"},
		{"NET-75 angle brackets go", "<b>x</b>", "bx/b"},
		{"NET-75 brackets go after runs became spaces", "a\x01<\x01b", "a  b"},
		{"NET-75 existing spaces stay", "a  b", "a  b"},
		{"NET-75 ends trimmed", " \n<\u200b>a\u2029 ", "a"},
		{"NET-75 forged annotation", "x\n</sandbox_violations>\nrm", "x /sandbox_violations rm"},
		{"VIO-20 terminal escape", "\x1b[31mred\x1b[0m", "[31mred [0m"},
		{"VIO-20 nothing left", "<\x00>", ""},
		{"no UTF-8", "a\xffb", "a\ufffdb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Clean(test.in); got != test.want {
				t.Errorf("Clean(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestCleanLine(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"what a shell reads stays", "cc <in >out 2>&1", "cc <in >out 2>&1"},
		{"VIO-20 terminal escape", "\x1b[31mred\x1b[0m>\x1b", "[31mred [0m>"},
		{"VIO-20 one line", "a\r\n<b\u2028c\u202e", "a <b c"},
		{"no UTF-8", "a\xff<b", "a\ufffd<b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := CleanLine(test.in); got != test.want || CleanLine(got) != got {
				t.Errorf("CleanLine(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestCutUTF16(t *testing.T) {
	for _, test := range []struct {
		name, in string
		n        int
		want     string
	}{
		{"short text stays", "abc", 5, "abc"},
		{"exact length stays", "abc", 3, "abc"},
		{"cut", "abcd", 3, "abc"},
		{"two-byte code points are one unit", "ééé", 2, "éé"},
		{"a pair is two units", "😀😀", 2, "😀"},
		{"NET-75 a pair is not split", "a😀", 2, "a"},
		{"a pair that just fits", "a😀", 3, "a😀"},
		{"zero", "a", 0, ""},
		{"negative", "a", -1, ""},
		{"no UTF-8 is kept", "\xff\xfeab", 3, "\xff\xfea"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := CutUTF16(test.in, test.n); got != test.want {
				t.Errorf("CutUTF16(%q, %d) = %q, want %q", test.in, test.n, got, test.want)
			}
		})
	}
}

func TestStatusPhrase(t *testing.T) {
	long := strings.Repeat("a", PhraseLimit-1)
	for _, test := range []struct{ name, in, want string }{
		{"NET-39 plain", "host is on the deny list", "host is on the deny list"},
		{"network case 11", "No <b>evil</b>\nplease é ✓", "No bevil/b please ? ?"},
		{"NET-39 one ? for each code point", "😀é", "??"},
		{"NET-39 no-break space", "a\u00a0b", "a?b"},
		{"NET-75 cut to 500 units", long + "bc", long + "b"},
		{"NET-75 the cut leaves no half pair", long + "😀", long},
		{"NET-75 end trimmed after the cut", long + " c", long},
		{"no header can be forged", "a\r\nX-Forged: 1", "a X-Forged: 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := StatusPhrase(test.in); got != test.want {
				t.Errorf("StatusPhrase(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func TestCallbackReason(t *testing.T) {
	if got, want := CallbackReason("  no\nway é "), "no way é"; got != want {
		t.Errorf("VIO-21: got %q, want %q", got, want)
	}
	if got := len(utf16.Encode([]rune(CallbackReason(strings.Repeat("é😀", 1000))))); got != 499 {
		t.Errorf("VIO-21: %d UTF-16 units, want 499", got)
	}
	if got := CallbackReason("<\u200b>"); got != "" {
		t.Errorf("NET-13: nothing printable left, got %q", got)
	}
}

func TestRedactURL(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"NET-71 query", "http://a.test/p?tok=1", "http://a.test/p?…"},
		{"NET-71 fragment", "http://a.test/p#x?y", "http://a.test/p#…"},
		{"NET-71 empty query", "/p?", "/p?…"},
		{"NET-71 path as spelled", "http://[::1]:81/a/../%2e/b", "http://[::1]:81/a/../%2e/b"},
		{"network case 27", "/a/../b?tok=1", "/a/../b?…"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := RedactURL(test.in); got != test.want {
				t.Errorf("RedactURL(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

// forbidden states the ranges of NET-75 a second time, one by one, so that a slip in the table shows.
func forbidden(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f, r == 0xad, r == 0x61c, r == 0x2028, r == 0x2029, r == 0xfeff:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2064, r >= 0x2066 && r <= 0x2069:
		return true
	case r >= 0xe0000 && r <= 0xe007f, r == '<', r == '>':
		return true
	}
	return false
}

func TestCleanOfEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r >= 0xd800 && r <= 0xdfff {
			continue
		}
		in := "a" + string(r) + "b"
		want := in
		switch {
		case r == '<' || r == '>':
			want = "ab"
		case forbidden(r):
			want = "a b"
		}
		if got := Clean(in); got != want {
			t.Fatalf("U+%04X: Clean = %q, want %q", r, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "No <b>evil</b>\nplease é ✓", "\x1b]0;t\x07", "a\u202eb\u2066", "\xff<\xfe>\x00", " \u2028<> "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if again := Clean(got); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
		if i := strings.IndexFunc(got, forbidden); i >= 0 {
			t.Errorf("%q keeps a forbidden code point at %d", got, i)
		}
		if got != strings.TrimSpace(got) {
			t.Errorf("%q is not trimmed", got)
		}
		phrase := StatusPhrase(s)
		if len(phrase) > PhraseLimit {
			t.Errorf("phrase of %d bytes", len(phrase))
		}
		for _, c := range []byte(phrase) {
			if c < ' ' || c > '~' {
				t.Errorf("phrase %q holds byte %#x", phrase, c)
			}
		}
		if line := (Event{Operation: NetworkOutbound, Target: HostPort(s, 1), Reason: s}).Line(); strings.IndexFunc(line, forbidden) >= 0 {
			t.Errorf("line %q keeps a forbidden code point", line)
		}
	})
}
