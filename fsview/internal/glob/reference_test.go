package glob

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// slow is a second matcher, written from FS-13 and FS-14 alone: it walks the text of the pattern itself, by recursion, and
// remembers what it has found out.
func slow(pattern, name string) bool {
	m := slowMatcher{pattern: chars(pattern), name: chars(name), seen: map[[2]int]bool{}}
	return m.match(0, 0)
}

type slowMatcher struct {
	pattern, name []string
	seen          map[[2]int]bool // answers so far
}

// chars splits a text into code points and single bytes.
func chars(s string) (list []string) {
	for s != "" {
		_, n := utf8.DecodeRuneInString(s)
		list, s = append(list, s[:n]), s[n:]
	}
	return list
}

func (m *slowMatcher) match(i, j int) bool {
	key := [2]int{i, j}
	if known, ok := m.seen[key]; ok {
		return known
	}
	m.seen[key] = false
	m.seen[key] = m.decide(i, j)
	return m.seen[key]
}

func (m *slowMatcher) decide(i, j int) bool {
	if i == len(m.pattern) {
		return j == len(m.name)
	}
	switch c := m.pattern[i]; c {
	case "*":
		return m.stars(i, j)
	case "?":
		return j < len(m.name) && m.name[j] != "/" && m.match(i+1, j+1)
	case "[":
		end := slices.Index(m.pattern[i:], "]")
		if end < 0 {
			break
		}
		members, isSet := slowSet(m.pattern[i+1 : i+end])
		if isSet {
			return j < len(m.name) && members(m.name[j]) && m.match(i+end+1, j+1)
		}
		text := m.pattern[i : i+end+1]
		return len(m.name)-j >= len(text) && slices.Equal(text, m.name[j:j+len(text)]) && m.match(i+end+1, j+len(text))
	}
	return j < len(m.name) && m.name[j] == m.pattern[i] && m.match(i+1, j+1)
}

// stars judges a whole run of stars from its beginning.
func (m *slowMatcher) stars(i, j int) bool {
	n := 0
	for i+n < len(m.pattern) && m.pattern[i+n] == "*" {
		n++
	}
	after := i + n
	dirs := n >= 2 && after < len(m.pattern) && m.pattern[after] == "/"
	if dirs {
		n -= 2
	}
	for k := j; ; k++ { // the rest of the run takes name[j:k]
		if dirs {
			if m.folders(after+1, k) {
				return true
			}
		} else if m.match(after, k) {
			return true
		}
		if n == 0 || k == len(m.name) || (n == 1 && m.name[k] == "/") {
			return false
		}
	}
}

// folders judges what follows `**/`.
func (m *slowMatcher) folders(i, j int) bool {
	if m.match(i, j) {
		return true
	}
	for k := j; k < len(m.name); k++ {
		if m.name[k] == "/" && m.match(i, k+1) {
			return true
		}
	}
	return false
}

// slowSet reads the members of a set.
func slowSet(text []string) (func(string) bool, bool) {
	if len(text) == 0 {
		return nil, false
	}
	value := func(c string) int {
		if r, n := utf8.DecodeRuneInString(c); r != utf8.RuneError || n > 1 {
			return int(r)
		}
		return 0x200000 + int(c[0])
	}
	var ranges [][2]int
	for i := 0; i < len(text); i++ {
		if i+2 < len(text) && text[i+1] == "-" {
			if value(text[i]) > value(text[i+2]) {
				return nil, false
			}
			ranges = append(ranges, [2]int{value(text[i]), value(text[i+2])})
			i += 2
			continue
		}
		ranges = append(ranges, [2]int{value(text[i]), value(text[i])})
	}
	return func(c string) bool {
		return slices.ContainsFunc(ranges, func(r [2]int) bool { return r[0] <= value(c) && value(c) <= r[1] })
	}, true
}

// FuzzMatch compares the matcher with the slow one, and what is said of directories with what matches beneath them.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"**/*.pem", "a/b.pem"}, {"***/x", "a/x"}, {"a**/**b", "a/c/b"}, {"[a-c/]*", "/b"}, {"t[user-id]", "tu"},
		{"\xc3[\xa9]", "\xc3\xa9"}, {"[[]x]?", "[x]é"}, {"/h/[]/**", "/h/[]/a/b"}, {"*?*/**", "é/\xff/a"}, {"**/*/x", "a/x"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 200 || len(name) > 200 {
			return
		}
		want := slow(pattern, name)
		p := Compile(pattern)
		if got := p.Match(name); got != want {
			t.Fatalf("Match(%q, %q) = %v", pattern, name, got)
		}
		if i := strings.LastIndexByte(name, '/'); want && !p.MatchLast(name[i+1:]) {
			t.Errorf("MatchLast(%q, %q) is no", pattern, name[i+1:])
		}
		if !Compile(Quote(name)).Match(name) || Compile(Quote(pattern)).Match(name) != (pattern == name) {
			t.Errorf("Quote: %q, %q", pattern, name)
		}
		checkBelow(t, p, name, want)
	})
}

// checkBelow walks down the components of a name.
func checkBelow(t *testing.T, p *Pattern, name string, want bool) {
	parts := strings.Split(name, "/")
	from := 0
	s := p.Below("")
	if parts[0] == "" && len(parts) > 1 {
		s, from = p.Below("/"), 1
	}
	for i := from; i < len(parts); i++ {
		dir, rest := strings.Join(parts[:i], "/"), strings.Join(parts[i:], "/")
		if below := p.Below(dir); dir != "" && !strings.HasSuffix(dir, "/") && below != s {
			t.Fatalf("%q beneath %q: Below and Step disagree", p, dir)
		}
		if s.Empty() && want && rest != "" {
			t.Fatalf("%q: nothing left beneath %q, but it matches %q", p, dir, name)
		}
		matched := false
		for _, text := range s.Texts() {
			again := Compile(text)
			matched = matched || again.Match(rest)
			if slow(text, rest) != again.Match(rest) {
				t.Fatalf("%q of %q and %q", text, p, rest)
			}
		}
		if matched != want && rest != "" {
			t.Fatalf("%q beneath %q: what is left (%q) matches %q: %v", p, dir, s.Texts(), rest, matched)
		}
		next, match := s.Step(parts[i])
		if match != p.Match(strings.Join(parts[:i+1], "/")) && parts[i] != "" {
			t.Fatalf("%q: Step to %q says %v", p, strings.Join(parts[:i+1], "/"), match)
		}
		if s.SubsetOf(next) && next.SubsetOf(s) && s != next {
			t.Fatalf("%q beneath %q: two states hold the same and are not equal", p, dir)
		}
		s = next
	}
}

// TestAgainstRegexp_FS13 compares with the regular expressions that the rules are the words for.
func TestAgainstRegexp_FS13(t *testing.T) {
	for pattern, expression := range map[string]string{
		"/p/src/**/*.ts": `^/p/src/(.*/)?[^/]*\.ts$`, "/**/*.key": `^/(.*/)?[^/]*\.key$`, "/p/**.pem": `^/p/.*\.pem$`,
		"/p/***/x": `^/p/[^/]*(.*/)?x$`, "/p/[user-id]/*": `^/p/\[user-id\]/[^/]*$`, "/p/f?[0-9].x": `^/p/f[^/][0-9]\.x$`,
		"/p/****a/**/?": `^/p/.*a/(.*/)?[^/]$`,
	} {
		p, re := Compile(pattern), regexp.MustCompile("(?s)"+expression)
		matched := 0
		var each func(name string, depth int)
		each = func(name string, depth int) {
			if p.Match(name) != re.MatchString(name) {
				t.Errorf("%q and %q", pattern, name)
			}
			if p.Match(name) {
				matched++
			}
			if depth == 0 {
				return
			}
			for _, part := range []string{"/p", "/src", "/x", "/a.ts", "a", "/k.key", "/[user-id]", ".pem", "/fa0.x", "/"} {
				each(name+part, depth-1)
			}
		}
		each("", 4)
		if matched == 0 {
			t.Errorf("%q matched nothing", pattern)
		}
	}
}
