package model

import (
	"path"
	"slices"
	"strings"
)

// zone says what can be done with the objects of a part of the view.
type zone byte

const (
	readOnly zone = iota
	writable      // as on the host
	memory        // a hidden directory: in memory, gone at the end (FS-32)
	sealed        // a hidden file
)

// part is a part of the view that stands at one location as a whole: it cannot be moved or removed, and nothing is
// renamed or linked from it into another part.
type part struct {
	at   string
	root *Object
	zone zone
}

// World is what a command sees, and the host behind it. It is made at a start and changes with every operation.
type World struct {
	Root  bool // the caller is root, whom a mode of 0000 does not stop
	rules *rules
	host  *Object
	parts map[string]*part
	pins  map[string]bool // directories and links that stay (FS-41, FS-42)
	loose map[string]bool // those that may stay
}

// Start makes the world of a command. ErrUnstated is returned for a policy about which the chapter says too little.
func Start(items []Item, pol Policy, root bool) (w *World, err error) {
	defer func() {
		if r := recover(); r != nil {
			w, err = nil, ErrUnstated
		}
	}()
	host := Plant(items)
	r, err := newRules(Plant(items), pol) // a tree of its own, which stays as it is at the start
	if err != nil {
		return nil, err
	}
	if r.hidden("/", true) {
		return nil, ErrUnstated
	}
	w = &World{Root: root, rules: r, host: host, parts: map[string]*part{}, pins: map[string]bool{}, loose: map[string]bool{}}
	top := &part{at: "/", root: host, zone: w.zoneOf("/", true)}
	w.parts["/"] = top
	w.lay("/", host, top)
	w.showLinks()
	w.pinAll()
	return w, nil
}

func (w *World) zoneOf(loc string, isDir bool) zone {
	switch {
	case w.rules.hidden(loc, isDir) && isDir:
		return memory
	case w.rules.hidden(loc, isDir):
		return sealed
	case w.rules.writable(loc):
		return writable
	}
	return readOnly
}

// lay makes a part wherever the zone changes (FS-22, FS-25, FS-26).
func (w *World) lay(loc string, o *Object, around *part) {
	for _, name := range o.names() {
		child, at := o.Kids[name], join(loc, name)
		z, p := w.zoneOf(at, child.Kind == Dir), around
		switch {
		case around.zone == memory && (z == sealed || z == memory):
		case z == around.zone:
		case child.Kind == Link && z == sealed: // only beneath a hidden directory, and shown as what it is nowhere else
			p = around
		default:
			p = w.put(at, child, z, around)
		}
		w.lay(at, child, p)
	}
}

func (w *World) put(at string, o *Object, z zone, around *part) *part {
	p := &part{at: at, root: o, zone: z}
	switch z {
	case memory:
		p.root = newDir()
	case sealed:
		p.root = &Object{Kind: File}
	}
	if around.zone == memory {
		w.lead(around, at, p.root.Kind)
	}
	w.parts[at] = p
	return p
}

// lead makes the directories to a re-allowed path inside a hidden one, and the name itself (FS-25).
func (w *World) lead(around *part, at string, kind Kind) {
	dir := around.root
	names := split(trim(around.at, at))
	for i, name := range names {
		if dir.Kids[name] == nil {
			o := newDir()
			if i == len(names)-1 && kind != Dir {
				o = &Object{Kind: File}
			}
			dir.Kids[name] = o
		}
		dir = dir.Kids[name]
	}
}

// showLinks places re-allowed links in hidden directories (FS-22).
func (w *World) showLinks() {
	r := w.rules
	all := append(append([]string{}, r.cred...), r.denyRead...)
	for _, l := range r.linkAllow {
		around := w.partAt(path.Dir(l))
		if around.zone != memory || w.parts[l] != nil {
			continue
		}
		to := follow(w.host, l, true, plain)
		if to.obj == nil || coversAny(r.cred, l) || nearest(all, to.loc) != nearest(all, l) {
			continue
		}
		bare := true
		for _, d := range all {
			bare = bare && !covers(to.loc, d)
		}
		for _, late := range r.late {
			if bare && late.rest != "" && (covers(late.dir, to.loc) || covers(to.loc, late.dir)) {
				panic("model: whether a pattern that may match later denies something in the target is not said (FS-22)")
			}
		}
		if bare {
			w.put(l, to.obj, readOnly, around)
		}
	}
}

// pinAll finds what must not be moved (FS-41, FS-42).
func (w *World) pinAll() {
	r := w.rules
	protect := func(list []string, pins map[string]bool) {
		for _, loc := range list {
			for _, p := range upwards(loc)[1:] {
				pins[p] = true
			}
		}
	}
	protect(r.denyWrite, w.pins)
	for _, list := range [][]string{r.denyRead, r.cred} {
		for _, loc := range list {
			if o := r.root.at(loc); o != nil && r.hidden(loc, o.Kind == Dir) {
				protect([]string{loc}, w.pins)
			} else {
				protect([]string{loc}, w.loose)
			}
		}
	}
	for _, dir := range append([]string{Home}, r.roots...) { // names that are protected there may count before they exist
		protect([]string{join(dir, "x")}, w.loose)
	}
	w.host.each("/", func(loc string, _ *Object) { // so may what is not there in these
		if name := strings.ToLower(path.Base(loc)); name == ".claude" || name == ".git" {
			protect([]string{join(loc, "x")}, w.loose)
		}
	})
	for _, l := range r.writePatterns {
		protect([]string{join(l.dir, "x")}, w.loose)
	}
	for _, l := range r.late {
		protect([]string{join(l.dir, "x")}, w.loose)
	}
	for l := range r.held {
		w.pins[l] = true
		protect([]string{l}, w.pins)
	}
	for l := range r.maybeHeld {
		w.loose[l] = true
		protect([]string{l}, w.loose)
	}
}

// partAt is the part that a location belongs to.
func (w *World) partAt(loc string) *part {
	for _, p := range upwards(loc) {
		if w.parts[p] != nil {
			return w.parts[p]
		}
	}
	return nil
}

// look finds an object in the view.
func (w *World) look(dir *Object, loc string) *Object {
	if p := w.parts[loc]; p != nil {
		return p.root
	}
	return dir.Kids[path.Base(loc)]
}

// Host is the tree of the host as it must be now.
func (w *World) Host() []Item { return w.host.List() }

// View gives the location of everything that a command can see, parents first.
func (w *World) View() []string {
	var list []string
	var visit func(dir *Object, at string)
	visit = func(dir *Object, at string) {
		for _, name := range dir.names() {
			loc := join(at, name)
			list = append(list, loc)
			if o := w.look(dir, loc); o.Kind == Dir {
				visit(o, loc)
			}
		}
	}
	visit(w.parts["/"].root, "/")
	return list
}

// At is the object that a command sees at a location, or nil.
func (w *World) At(loc string) *Object { return locate(w.parts["/"].root, loc, w.look) }

// Names gives every location in the view and on the host, for drawing operations.
func (w *World) Names() []string {
	seen := map[string]bool{}
	var list []string
	add := func(loc string, _ *Object) {
		if !seen[loc] {
			seen[loc] = true
			list = append(list, loc)
		}
	}
	w.host.each("/", add)
	for _, p := range w.parts {
		if p.zone == memory {
			p.root.each(p.at, add)
		}
	}
	slices.Sort(list)
	return list
}
