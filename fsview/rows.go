package fsview

import "strings"

// LaterRule is a rule of a plan about what does not exist when a command starts, for listings. No mount stands for it: a
// Guard judges it.
type LaterRule struct {
	Kind string // what is refused
	Path string // a location, or a pattern
	Why  string // as in Step
}

// LaterRules lists the rules about absent names in path order, then the patterns in the order of the lists.
func (pl *Plan) LaterRules() []LaterRule {
	list := make([]LaterRule, 0, len(pl.Absent)+len(pl.Patterns))
	for _, a := range pl.Absent {
		list = append(list, LaterRule{laterKind("", a.Write, a.Read, a.Hard, a.Fold), a.Path, a.Why})
	}
	for _, p := range pl.Patterns {
		list = append(list, LaterRule{laterKind("pattern: ", p.Write, p.Read, p.Hard, false), p.Text, p.Why})
	}
	return list
}

// laterKind says what a rule refuses.
func laterKind(what string, create, open, hard, fold bool) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{create, "not to be created"}, {open, "not to be opened"}, {hard, "whatever is allowed"}, {fold, "in any letter case"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return what + strings.Join(words, ", ")
}
