package model

import (
	"path"
	"strings"
)

// The surroundings that every case has.
const (
	Home = "/home"
	Cwd  = "/home/p"
)

// Entry is one entry of a path list. A text that starts with "/" is absolute in the world.
type Entry struct {
	Text   string
	Marked bool `json:",omitempty"` // {"path": Text, "literal": true}
}

// Policy is a settings file as far as the model knows it.
type Policy struct {
	DenyRead, AllowRead, AllowWrite, DenyWrite []Entry
	Credential                                 []Entry // credentials.files with mode "deny"
	AllowGitConfig                             bool
	SearchDepth                                int // mandatoryDenySearchDepth; 0 leaves the key out
}

// text is FS-5, FS-6 and FS-12: the absolute text of an entry, and whether it is a pattern.
func (e Entry) text(readList bool) (text string, pattern bool) {
	text = e.Text
	if !e.Marked {
		if cut, ok := strings.CutSuffix(text, "/**"); ok && !(readList && isPattern(cut)) {
			if text = cut; text == "" {
				text = "/"
			}
		}
		pattern = isPattern(text)
	}
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = Home + "/" + text[1:]
	case !path.IsAbs(text):
		text = Cwd + "/" + text
	}
	return path.Clean(text), pattern
}

// reading is one way to take a pattern (FS-16): a literal directory and what has to match beneath it. With no rest the
// text is a name.
type reading struct {
	dir  string // a text, links not followed
	rest string
}

// readings are all ways to take a text: as a pattern, and as the names it spells. deny says for which kind of list.
func readings(root *Object, text string, deny bool) []reading {
	names := split(text)
	up := func(n int) string { return "/" + strings.Join(names[:n], "/") }
	glob := func(from int) int { // the next component with such characters
		for from < len(names) && !isPattern(names[from]) {
			from++
		}
		return from
	}
	start := glob(0)
	list := []reading{{up(start), strings.Join(names[start:], "/")}}
	for i := start; i < len(names); {
		if !spelled(root, up(i+1), up(start), deny) {
			return list
		}
		next := glob(i + 1)
		if !deny && !noLinks(root, up(start), up(next)) {
			return list
		}
		list = append(list, reading{up(next), strings.Join(names[next:], "/")})
		i = next
	}
	return list
}

// spelled reports whether a name with such characters exists.
func spelled(root *Object, name, from string, deny bool) bool {
	at := follow(root, name, false, plain)
	if at.obj == nil {
		return false
	}
	return deny || noLinks(root, from, name)
}

// noLinks reports whether no component after from up to name is a link.
func noLinks(root *Object, from, name string) bool {
	for _, p := range upwards(name) {
		if p == from {
			break
		}
		if at := follow(root, p, false, plain); at.obj != nil && at.obj.Kind == Link {
			return false
		}
	}
	return true
}

// found is one match of a pattern.
type found struct {
	at    place    // links followed
	name  string   // the location of the name itself
	links []string // links on the way, the last component included
}

// expand walks a deny pattern (FS-18). It gives up, and says so, where the links are such that no end is in sight.
func expand(root *Object, r reading, readList bool) (list []found, ok bool) {
	start := follow(root, r.dir, true, plain)
	if start.obj == nil || start.obj.Kind != Dir {
		return nil, true
	}
	if cut, ok := strings.CutSuffix("/"+r.rest, "/**"); ok && (cut == "" || strings.HasSuffix(cut, "/**")) {
		return nil, false // whether the directory that such a pattern starts from is among those it hides is not said (FS-20)
	}
	w := walker{root: root, start: start.loc, rest: r.rest, read: readList, ok: true}
	w.dir(start, "", start.links)
	return w.list, w.ok
}

type walker struct {
	root  *Object
	start string
	rest  string
	read  bool // of a read list
	list  []found
	ok    bool
}

const deepest = 12

func (w *walker) dir(dir place, above string, links []string) {
	if strings.Count(above, "/") > deepest {
		w.ok = false
		return
	}
	for _, name := range dir.obj.names() {
		rel := name
		if above != "" {
			rel = above + "/" + name
		}
		own := join(dir.loc, name)
		at := follow(w.root, own, true, plain)
		if at.obj == nil {
			continue // a dangling link
		}
		held := append(append([]string{}, links...), at.links...)
		back := len(at.links) > 0 && (covers(at.loc, dir.loc) || covers(at.loc, w.start))
		switch {
		case matches(w.rest, rel):
			w.list = append(w.list, found{at, own, held})
		case w.holdsAny(rel, at.obj):
			w.list = append(w.list, found{at, own, held})
			w.ok = w.ok && !back // whether a link back counts as such a directory is not said
		}
		if at.obj.Kind == Dir && !back {
			w.dir(at, rel, held)
		}
	}
}

// holdsAny is FS-20: a pattern that ends in `/**` also hides the matched directory when it holds an entry.
func (w *walker) holdsAny(rel string, o *Object) bool {
	cut, ok := strings.CutSuffix(w.rest, "/**")
	return ok && w.read && o.Kind == Dir && len(o.Kids) > 0 && matches(cut, rel)
}

// expandAllow walks an allow pattern, which follows no link (FS-17).
func expandAllow(root *Object, r reading) []found {
	start := follow(root, r.dir, true, plain)
	if start.obj == nil || start.obj.Kind != Dir {
		return nil
	}
	var list []found
	start.obj.each(start.loc, func(loc string, o *Object) {
		rel := strings.TrimPrefix(strings.TrimPrefix(loc, start.loc), "/")
		if matches(r.rest, rel) {
			list = append(list, found{at: place{loc: loc, obj: o}, name: loc})
		}
	})
	return list
}
