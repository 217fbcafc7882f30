package fsview

import (
	"path"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// The statement of FS-7 for mounts that show an object at several paths. It knows of each object in which file system and
// at which path there it lies, and nothing of how the planner looks mounts up.

// paths are all paths at which the object at p shows.
func (s *statement) paths(p string) (list []string) {
	for q, o := range s.tree.objects {
		if o == s.tree.objects[p] {
			list = append(list, q)
		}
	}
	return list
}

// shownAgain reports whether q shows the object at one of these locations, or something in it, and not where that is
// anyway. A location that shows what it lies in does not count.
func (s *statement) shownAgain(q string, locations []string) bool {
	x := s.tree.objects[q]
	for _, l := range locations {
		o := s.tree.objects[l]
		if s.tree.disks == nil || x.dev != o.dev || !policy.Covers(o.inner, x.inner) ||
			q == path.Join(l, strings.TrimPrefix(x.inner, o.inner)) {
			continue
		}
		if !s.surrounds(l) {
			return true
		}
	}
	return false
}

// surrounds reports whether a location shows what it lies in.
func (s *statement) surrounds(l string) bool {
	o := s.tree.objects[l]
	for dir := l; dir != "/"; {
		dir = path.Dir(dir)
		if a := s.tree.objects[dir]; a.dev == o.dev && policy.Covers(o.inner, a.inner) {
			return true
		}
	}
	return false
}

// covered reports whether a path covers p that shows one of the locations again.
func (s *statement) covered(p string, locations []string) bool {
	if !s.mounted {
		return false
	}
	for ; ; p = path.Dir(p) {
		if s.shownAgain(p, locations) {
			return true
		}
		if p == "/" {
			return false
		}
	}
}

// hiddenAgain reports whether p is hidden because it shows what is denied elsewhere. No list re-opens that.
func (s *statement) hiddenAgain(p string) bool {
	var denied []string
	for _, l := range append(append([]string{}, s.credential...), s.denyRead...) {
		lifted := !slices.Contains(s.credential, l) && (slices.Contains(s.allowRead, l) ||
			(slices.Contains(s.roots, l) && s.tree.objects[l].kind == 'd'))
		switch {
		case lifted:
		case l != "/":
			denied = append(denied, l)
		case s.mounted: // a deny of everything holds where everything shows again
			for q := p; q != "/"; q = path.Dir(q) {
				if s.tree.objects[q] == s.tree.objects["/"] {
					return true
				}
			}
		}
	}
	return s.covered(p, denied)
}

// renamed gives mounts that show a .git or .claude under another name, with that name, and adds those of protected names
// to found.
func (s *statement) renamed(in Input, found *[]string) (starts [][2]string) {
	for p := range s.tree.objects {
		if s.tree.disks == nil || (p != "/" && s.tree.on[p] == s.tree.on[path.Dir(p)]) || !s.writable(p) {
			continue
		}
		for _, q := range s.paths(p) {
			if q == p || !s.shownAgain(q, []string{p}) || s.surrounds(q) {
				continue
			}
			if named(q, in) {
				*found = append(*found, p)
			}
			if name := strings.ToLower(path.Base(q)); s.tree.objects[p].kind == 'd' && (name == ".git" || name == ".claude") {
				starts = append(starts, [2]string{p, name})
			}
		}
	}
	return starts
}
