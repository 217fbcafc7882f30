package fsview

import (
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// foldName gives the same text for every spelling of a name that some file system takes for one: letter case
// (utf8_strncasecmp of the kernel, which ignores invisible characters too), composed letters, and the dots and spaces that
// FAT drops at the end. It may give the same for more, never for less: who makes a name that nobody can tell from a denied
// one by sight is refused. git guards .git in the same way.
func foldName(name string) string {
	plain := true
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] < 0x80
	}
	if plain {
		name = strings.ToLower(name)
	} else {
		name = foldRunes(name)
	}
	if short := strings.TrimRight(name, ". "); short != "" {
		return short
	}
	return name
}

// foldPath is foldName for each component.
func foldPath(p string) string {
	names := strings.Split(p, "/")
	for i, n := range names {
		names[i] = foldName(n)
	}
	return strings.Join(names, "/")
}

// foldRunes is for names that are not ASCII alone.
func foldRunes(name string) string {
	var b strings.Builder
	for _, c := range norm.NFKD.String(name) { // ligatures become the letters that full case folding makes of them
		switch {
		case invisible(c), c == '\u0307': // of the dotted I
		case c == '\u0131': // the dotless one
			b.WriteByte('i')
		case c == '\u00df', c == '\u1e9e': // sharp s
			b.WriteString("ss")
		default:
			least := c
			for next := unicode.SimpleFold(c); next != c; next = unicode.SimpleFold(next) {
				least = min(least, next)
			}
			b.WriteRune(unicode.ToLower(least))
		}
	}
	return b.String()
}

// invisible reports whether file systems may ignore a character (Default_Ignorable_Code_Point of Unicode).
func invisible(c rune) bool {
	return unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// settleFold finds the rules about directories that ignore letter case, where a denied name is reached by others.
func (b *builder) settleFold() error {
	answers := map[string]bool{}
	for i := range b.plan.Absent {
		a := &b.plan.Absent[i]
		if a.Fold {
			continue
		}
		ignores, asked := answers[a.Dir]
		if !asked {
			ignores = b.res.tree.IgnoresCase(a.Dir)
			answers[a.Dir] = ignores
		}
		a.Fold = ignores
	}
	return nil
}

// leads reports whether a location lies on the way from the first missing name of a to what it denies.
func (a *Absent) leads(location string) bool {
	return location != a.Path && policy.Covers(location, a.Path) && policy.Covers(path.Join(a.Dir, a.Name), location)
}
