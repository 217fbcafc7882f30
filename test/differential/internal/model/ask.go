package model

import (
	"path"
	"slices"
	"strings"
)

// Look says whether an entry of a list is a pattern, and whether what it names exists at the start.
func Look(items []Item, e Entry, readList bool) (pattern, exists bool) {
	text, pattern := e.text(readList)
	if pattern {
		return true, false
	}
	at := follow(Plant(items), text, true, plain)
	return false, at.obj != nil || (at.file != "" && !readList)
}

// Targets are the locations that the rules of a world are about, existing or not, and one name for each pattern.
func (w *World) Targets() []string {
	r := w.rules
	list := slices.Concat(r.cred, r.denyRead, r.denyWrite, r.named, r.allowRead, r.linkAllow, r.roots)
	for _, l := range slices.Concat(r.late, r.writePatterns) {
		if l.rest == "" {
			list = append(list, l.dir)
			continue
		}
		for _, deep := range []string{"", "a/"} {
			name := strings.NewReplacer("**/", deep, "**", "z", "*", "y", "?", "w", "[", "", "-z]", "", "]", "").Replace(l.rest)
			list = append(list, path.Join(l.dir, name))
		}
	}
	for l := range r.held {
		list = append(list, l)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
