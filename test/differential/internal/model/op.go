package model

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Op is one operation of a command. Paths are absolute in the world.
type Op struct {
	Do   string // a key of judges
	A    string // the path, or the first of two
	B    string `json:",omitempty"` // the second path, or a link's target
	Text string `json:",omitempty"` // what is written
	Mode uint32 `json:",omitempty"`
	At   bool   `json:",omitempty"` // the paths are given as a directory descriptor and a name
}

// Want is what may come of an operation.
type Want struct {
	OK    bool     // it may succeed
	Errs  []string // errors that may refuse it
	Value string   // what it gives, if it succeeds
	Open  bool     // the chapter does not say; the operation is left out
}

// Allows reports whether an outcome, "ok" or the name of an errno, is one of those wanted.
func (w Want) Allows(outcome string) bool {
	if outcome == "ok" {
		return w.OK
	}
	return slices.Contains(w.Errs, outcome)
}

// verdict collects what speaks for and against an operation.
type verdict struct {
	errs  map[string]bool
	soft  map[string]bool // errors that are acceptable, but so is success
	open  bool            // left open unless something refuses it
	skip  bool            // left open in any case
	value string
}

// refused are the errors that are all acceptable for a refused write (FS-31).
const refused = "EROFS EACCES EPERM"

func (v *verdict) no(errs string) {
	for _, e := range strings.Fields(errs) {
		v.errs[e] = true
	}
}

func (v *verdict) maybe(errs string) {
	for _, e := range strings.Fields(errs) {
		v.soft[e] = true
	}
}

func (v *verdict) want() Want {
	all := maps.Clone(v.errs)
	maps.Copy(all, v.soft)
	return Want{OK: len(v.errs) == 0, Errs: slices.Sorted(maps.Keys(all)), Value: v.value, Open: v.skip || v.open && len(v.errs) == 0}
}

// judge decides an operation and, with act, does it in the model.
type judge func(w *World, op Op, v *verdict, act bool)

var judges = map[string]judge{
	"read": judgeRead, "list": judgeList, "stat": judgeStat, "lstat": judgeLstat, "readlink": judgeReadlink,
	"write": judgeWrite, "append": judgeWrite, "truncate": judgeWrite,
	"create": judgeCreate, "creat": judgeOpenCreate,
	"mkdir": judgeMake, "mkfifo": judgeMake, "mknod": judgeMake, "symlink": judgeMake, "tmpfile": judgeMake,
	"link": judgeLink, "rename": judgeRename, "noreplace": judgeRename, "exchange": judgeRename,
	"unlink": judgeUnlink, "rmdir": judgeRmdir, "chmod": judgeChmod, "utime": judgeChmod,
}

// Kinds are the names of all operations.
func Kinds() []string { return slices.Sorted(maps.Keys(judges)) }

// Judge says what may come of an operation now.
func (w *World) Judge(op Op) (want Want) {
	defer func() {
		if recover() != nil {
			want = Want{Open: true} // a path that leads out of the world
		}
	}()
	v := &verdict{errs: map[string]bool{}, soft: map[string]bool{}}
	judges[op.Do](w, op, v, false)
	if op.At {
		w.through(op, v)
	}
	return v.want()
}

// through leaves open whether a directory that must not be listed may be opened as a place to start from.
func (w *World) through(op Op, v *verdict) {
	for _, p := range []string{op.A, op.B} {
		if p == "" || op.Do == "symlink" && p == op.B {
			continue
		}
		aside := &verdict{errs: map[string]bool{}, soft: map[string]bool{}}
		if dir := w.find(path.Dir(p), true, aside); dir.exists && w.hiddenNow(dir) {
			v.maybe("EACCES")
		}
	}
}

// Done tells the model that an operation has succeeded.
func (w *World) Done(op Op) {
	v := &verdict{errs: map[string]bool{}, soft: map[string]bool{}}
	judges[op.Do](w, op, v, true)
}

// spot is where a path leads in the view.
type spot struct {
	place
	dir    *Object // the directory that holds it; nil when the way ends earlier
	in     *part   // the part of that directory
	on     *part   // the part of the object
	exists bool
}

func (s spot) isDir() bool { return s.exists && s.obj.Kind == Dir }

// find walks a path and adds the errors of the way. Those are exact: what is missing or hidden is ENOENT, what is no
// directory ENOTDIR.
func (w *World) find(p string, last bool, v *verdict) spot {
	at := follow(w.parts["/"].root, p, last, w.look)
	s := spot{place: at, exists: at.obj != nil}
	switch {
	case at.loop:
		v.no("ELOOP")
		return s
	case at.file != "":
		v.no("ENOTDIR")
		return s
	}
	dir := parent(at.loc)
	if s.dir = locate(w.parts["/"].root, dir, w.look); s.dir == nil {
		v.no("ENOENT")
		return s
	}
	if s.dir.Kind != Dir {
		v.no("ENOTDIR")
		s.dir = nil
		return s
	}
	s.in, s.on = w.partAt(dir), w.partAt(at.loc)
	return s
}

// get is find for something that has to exist.
func (w *World) get(p string, last bool, v *verdict) spot {
	s := w.find(p, last, v)
	if !s.exists && len(v.errs) == 0 {
		v.no("ENOENT")
	}
	return s
}

func parent(loc string) string {
	list := upwards(loc)
	return list[min(1, len(list)-1)]
}

// name is the last component of the spot's location.
func (s spot) name() string {
	names := split(s.loc)
	return names[len(names)-1]
}
