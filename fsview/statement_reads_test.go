package fsview

import (
	"path"
	"slices"
)

// The statement of FS-9, and of what is stricter than FS-9: a name of allowRead that is reached through a link which lies in
// a directory where commands can write allows nothing that is denied without all such names.

// placeReads places allowRead. The lists of denies and of writing are there already, the protected names are not.
func (s *statement) placeReads(in Input) {
	type name struct {
		loc, shown string
		links      []string
	}
	var names []name
	for _, r := range in.Rules.AllowRead {
		parent, links, ok := s.tree.real(path.Dir(r.Path))
		n := name{loc: path.Join(parent, path.Base(r.Path)), links: links}
		o := s.tree.objects[n.loc]
		if !ok || o == nil {
			continue
		}
		if n.shown = n.loc; o.kind == 'l' {
			if n.shown, n.links, ok = s.tree.real(r.Path); !ok {
				n.shown = ""
			}
		} else {
			s.allowRead = append(s.allowRead, n.loc)
		}
		names = append(names, n)
	}
	names, open := nil, names
	for _, n := range open {
		if !slices.ContainsFunc(n.links, s.makeable) {
			names = append(names, n)
		}
	}
	open = slices.DeleteFunc(open, func(n name) bool { return !slices.ContainsFunc(n.links, s.makeable) })
	place := func(list []name) {
		for _, n := range list {
			if s.tree.objects[n.loc].kind == 'l' {
				s.linkAllow = append(s.linkAllow, n.loc)
			} else {
				s.allowRead = append(s.allowRead, n.loc)
			}
		}
	}
	s.allowRead = nil
	place(names)
	place(slices.DeleteFunc(open, func(n name) bool { return n.shown != "" && s.hidden(n.shown) }))
}

// makeable reports whether a command can have made a link, by any of its names.
func (s *statement) makeable(link string) bool {
	return slices.ContainsFunc(s.paths(link), func(p string) bool { return s.writable(path.Dir(p)) })
}
