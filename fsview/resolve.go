package fsview

import (
	"path"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// maxLinks is how many symbolic links one path may lead through, as in the kernel (path_resolution(7), FS-7).
const maxLinks = 40

// maxName is the longest name a directory can hold (NAME_MAX).
const maxName = 255

// location is where a text leads on the disk (FS-7).
type location struct {
	path   string   // every link resolved; a missing tail is appended to its deepest existing ancestor
	info   Info     // of the object at path, when exists
	held   []string // locations of the links met, and of the directories left again through ".." in a link
	exists bool

	parent     string // when absent: the deepest existing directory
	file       string // when absent because a name on the way is not a directory: that name's location
	loop       bool   // absent because of too many links
	impossible bool   // absent, and no directory can ever hold such a name

	special  bool   // in /proc or /dev, which are replaced: path is the text, links not followed (FS-47)
	blocked  error  // there, but not inspectable (FS-11)
	ancestor string // when blocked: the nearest location that can be inspected
}

type lstatAnswer struct {
	info Info
	err  error
}

// resolver follows texts to locations and remembers what it has asked.
type resolver struct {
	tree  Tree
	stats map[string]lstatAnswer
	dirs  map[string]location // texts of parent directories that exist
}

func newResolver(t Tree, hint int) *resolver {
	return &resolver{tree: t, stats: make(map[string]lstatAnswer, 2*hint+16), dirs: make(map[string]location, 16)}
}

func (r *resolver) lstat(p string) (Info, error) {
	if a, ok := r.stats[p]; ok {
		return a.info, a.err
	}
	info, err := again(p, r.tree.Lstat)
	r.stats[p] = lstatAnswer{info, err}
	return info, err
}

// resolve follows text, an absolute clean path. A link as the last component is followed only with followLast. Entries
// tend to share their directory, so that is followed once.
func (r *resolver) resolve(text string, followLast bool) location {
	if text == "/" {
		return r.walk("/", nil, followLast)
	}
	dir, name := path.Split(text)
	dir = strings.TrimSuffix(dir, "/")
	if dir == "" {
		return r.walk("/", []string{name}, followLast)
	}
	at, ok := r.dirs[dir]
	if !ok {
		at = r.walk("/", strings.Split(dir[1:], "/"), true)
		if !at.exists || !at.info.IsDir() {
			return r.walk("/", strings.Split(text[1:], "/"), followLast)
		}
		r.dirs[dir] = at
	}
	loc := r.walk(at.path, []string{name}, followLast)
	if len(at.held) > 0 {
		loc.held = append(append([]string(nil), at.held...), loc.held...)
		if len(loc.held) > maxLinks { // rare enough to be counted exactly
			return r.walk("/", strings.Split(text[1:], "/"), followLast)
		}
	}
	return loc
}

// walk follows the components in rest from the directory cur, a location.
func (r *resolver) walk(cur string, rest []string, followLast bool) location {
	var loc location
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			loc.held = append(loc.held, cur)
			cur = path.Dir(cur)
			continue
		}
		next := join(cur, name)
		if next == "/proc" || next == "/dev" {
			full := path.Join(append([]string{next}, rest...)...)
			if policy.Covers(next, full) {
				loc.path, loc.special = full, true
				return loc
			}
			// A link target such as /proc/../etc leaves again.
			links++
			cur, rest = "/", strings.Split(full[1:], "/")
			if links > maxLinks {
				return r.looped(loc, full, cur)
			}
			continue
		}
		info, err := r.lstat(next)
		switch {
		case err != nil:
			return r.stop(loc, cur, name, rest, err)
		case info.IsLink() && (len(rest) > 0 || followLast):
			loc.held = append(loc.held, next)
			if links++; links > maxLinks {
				return r.looped(loc, next, cur)
			}
			target, err := again(next, r.tree.Readlink)
			if err != nil {
				return r.stop(loc, cur, name, rest, err)
			}
			if strings.HasPrefix(target, "/") {
				cur = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		case len(rest) > 0 && !info.IsDir() && !onlyDots(rest):
			loc.path, loc.file = withTail(next, rest), next
			return loc
		default:
			cur = next
		}
	}
	loc.path = cur
	info, err := r.lstat(cur)
	if err != nil {
		return r.stop(loc, path.Dir(cur), path.Base(cur), nil, err)
	}
	loc.info, loc.exists = info, true
	return loc
}

// stop ends a walk at name in cur, where the tree answered err.
func (r *resolver) stop(loc location, cur, name string, rest []string, err error) location {
	loc.path = withTail(join(cur, name), rest)
	if absent(err) {
		loc.parent, loc.impossible = cur, len(name) > maxName
		return loc
	}
	loc.blocked, loc.ancestor = err, cur
	return loc
}

func (r *resolver) looped(loc location, at, cur string) location {
	loc.path, loc.parent, loc.loop, loc.blocked = at, cur, true, nil
	return loc
}

// withTail appends the names that were not reached. A tail that goes up again, which only a link target can have, is
// left out: without the missing name it leads nowhere.
func withTail(at string, rest []string) string {
	for _, name := range rest {
		if name == ".." {
			return at
		}
	}
	return path.Join(append([]string{at}, rest...)...)
}

// onlyDots reports whether rest names nothing further, as the tail of a link target with a trailing slash does.
func onlyDots(rest []string) bool {
	for _, name := range rest {
		if name != "" && name != "." {
			return false
		}
	}
	return true
}

func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}
