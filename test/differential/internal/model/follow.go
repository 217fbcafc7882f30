package model

import "path"

// maxLinks is how many links the kernel follows in one path (path_resolution(7), FS-7).
const maxLinks = 40

// place is where a text leads.
type place struct {
	loc   string   // every link followed; a missing tail is appended (FS-7)
	obj   *Object  // nil when nothing is there
	links []string // locations of the links met
	file  string   // the file in the way, when that is why nothing is there (FS-30)
	loop  bool
}

// lookup gives the object at a location; dir is the one at the directory above.
type lookup func(dir *Object, loc string) *Object

func plain(dir *Object, loc string) *Object { return dir.Kids[path.Base(loc)] }

// follow resolves an absolute path. A link as the last component is followed only with last.
func follow(root *Object, p string, last bool, look lookup) place {
	var at place
	cur, obj := "/", root
	rest := split(p)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "." {
			continue
		}
		if name == ".." {
			if cur == "/" {
				panic("model: a path leads out of the world: " + p)
			}
			cur = path.Dir(cur)
			obj = locate(root, cur, look)
			continue
		}
		if obj.Kind != Dir {
			at.loc, at.file = beneath(cur, append([]string{name}, rest...)), cur
			return at
		}
		next := join(cur, name)
		o := look(obj, next)
		switch {
		case o == nil:
			at.loc = beneath(next, rest)
			return at
		case o.Kind == Link && (len(rest) > 0 || last):
			at.links = append(at.links, next)
			if len(at.links) > maxLinks {
				at.loc, at.loop = next, true
				return at
			}
			if path.IsAbs(o.Target) {
				cur, obj = "/", root
			}
			rest = append(split(o.Target), rest...)
		default:
			cur, obj = next, o
		}
	}
	at.loc, at.obj = cur, obj
	return at
}

// locate finds the object at a location, which holds no link.
func locate(root *Object, loc string, look lookup) *Object {
	cur, obj := "/", root
	for _, name := range split(loc) {
		if obj == nil || obj.Kind != Dir {
			return nil
		}
		cur = join(cur, name)
		obj = look(obj, cur)
	}
	return obj
}

func beneath(at string, rest []string) string {
	for _, name := range rest {
		if name == ".." {
			return at
		}
	}
	return path.Join(append([]string{at}, rest...)...)
}
