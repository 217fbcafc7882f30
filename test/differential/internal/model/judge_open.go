package model

import (
	"fmt"
	"strings"
)

// hiddenNow reports whether what is at a spot in the host's tree must not be opened because a rule covers what has come
// to be there (FS-10, FS-55). In memory nothing is hidden (FS-32).
func (w *World) hiddenNow(s spot) bool {
	return s.exists && (s.on.zone == readOnly || s.on.zone == writable) && w.rules.hiddenLate(s.loc, s.isDir())
}

// behindLink leaves open what a pattern matches only by a name that leads through a link: FS-18 speaks of the start.
func (w *World) behindLink(s spot, v *verdict) {
	if s.exists && s.on.zone != memory && w.rules.readThroughLink(s.loc) {
		v.maybe("EACCES")
	}
}

func judgeRead(w *World, op Op, v *verdict, _ bool) {
	s := w.get(op.A, true, v)
	switch {
	case !s.exists:
	case s.obj.Kind == Fifo:
		v.open = true
	case w.hiddenNow(s), s.on.zone == sealed && !w.Root:
		v.no("EACCES")
	case s.on.zone == sealed: // root may be shown an empty file
		v.maybe("EACCES")
	case s.isDir():
		v.no("EISDIR")
	default:
		v.value = s.obj.Text
	}
	w.behindLink(s, v)
}

func judgeList(w *World, op Op, v *verdict, _ bool) {
	s := w.get(op.A, true, v)
	switch {
	case !s.exists:
	case !s.isDir():
		v.no("ENOTDIR")
		if w.hiddenNow(s) || s.on.zone == sealed {
			v.no("EACCES")
		}
	case w.hiddenNow(s):
		v.no("EACCES")
	default:
		v.value = strings.Join(s.obj.names(), "\n")
	}
	w.behindLink(s, v)
}

func judgeStat(w *World, op Op, v *verdict, _ bool) {
	if s := w.get(op.A, true, v); s.exists {
		v.value = describe(s.obj)
	}
}

func judgeLstat(w *World, op Op, v *verdict, _ bool) {
	if s := w.get(op.A, false, v); s.exists {
		v.value = describe(s.obj)
	}
}

// describe is what stat shows: the type, and the mode and size where they are stated.
func describe(o *Object) string {
	switch o.Kind {
	case File:
		return fmt.Sprintf("f %04o %d", o.Mode, len(o.Text))
	case Dir, Fifo:
		return fmt.Sprintf("%c %04o", o.Kind, o.Mode)
	}
	return string(o.Kind)
}

func judgeReadlink(w *World, op Op, v *verdict, _ bool) {
	s := w.get(op.A, false, v)
	switch {
	case !s.exists:
	case s.obj.Kind != Link:
		v.no("EINVAL")
	default:
		v.value = s.obj.Target
	}
}

// judgeWrite opens an existing object for writing, or truncates it.
func judgeWrite(w *World, op Op, v *verdict, act bool) {
	s := w.get(op.A, true, v)
	w.writeTo(s, op, v, act)
}

func (w *World) writeTo(s spot, op Op, v *verdict, act bool) {
	if !s.exists {
		return
	}
	if s.isDir() {
		v.no("EISDIR")
	}
	switch {
	case s.obj.Kind == Fifo:
		v.open = true
	case s.on.zone == readOnly, s.on.zone == sealed:
		v.no(refused)
	case w.hiddenNow(s) && op.Do == "truncate":
		v.maybe(refused) // it opens nothing: who may write there and truncates by name learns nothing (FS-10)
	case w.hiddenNow(s):
		v.no("EACCES") // as a read-denied file (FS-31)
	case s.on.zone == writable && w.rules.readThroughLink(s.loc):
		v.maybe(refused)
	}
	switch {
	case !act:
	case op.Do == "append":
		s.obj.Text += op.Text
	default:
		s.obj.Text = op.Text
	}
}

// judgeCreate is an open with O_CREAT and O_EXCL.
func judgeCreate(w *World, op Op, v *verdict, act bool) {
	s := w.find(op.A, false, v)
	w.makeAt(s, &Object{Kind: File, Mode: 0o644, Text: op.Text}, v, act)
	w.opensNew(s, v)
}

// opensNew leaves open whether a name that must not be read may be opened by its maker.
func (w *World) opensNew(s spot, v *verdict) {
	if s.dir != nil && !s.exists && s.in.zone == writable && (w.rules.hiddenLate(s.loc, false) || w.rules.readThroughLink(s.loc)) {
		v.maybe(refused)
	}
}

// judgeOpenCreate is an open with O_CREAT: it is judged where it lands (FS-29).
func judgeOpenCreate(w *World, op Op, v *verdict, act bool) {
	s := w.find(op.A, true, v)
	if s.exists {
		w.writeTo(s, op, v, act)
		return
	}
	w.makeAt(s, &Object{Kind: File, Mode: 0o644, Text: op.Text}, v, act)
	w.opensNew(s, v)
}

// makeAt puts a new object at a spot (FS-26, FS-30).
func (w *World) makeAt(s spot, o *Object, v *verdict, act bool) {
	if s.exists {
		v.no("EEXIST")
	}
	if s.dir == nil {
		return
	}
	w.changes(s, v)
	if !s.exists {
		w.appears(s, o, v)
	}
	if act {
		s.dir.Kids[s.name()] = o
	}
}

// changes adds what speaks against a change of the directory of a spot.
func (w *World) changes(s spot, v *verdict) {
	if s.dir != nil && s.in.zone == readOnly {
		v.no(refused)
	}
}

// appears adds what speaks against an object coming to be at a spot. That a name which must not be read cannot be read once
// it is there, is said (FS-10, FS-55); whether it can be made is not. Nor is it whether a link can, whose name leads on to
// what is denied: a path through it ends at another location.
func (w *World) appears(s spot, o *Object, v *verdict) {
	if s.in.zone != writable {
		return
	}
	if w.rules.hiddenLate(s.loc, o != nil && o.Kind == Dir) || w.rules.readThroughLink(s.loc) ||
		o != nil && o.Kind == Link && w.rules.leadsOn(s.loc) {
		v.maybe(refused)
	}
	must, maybe := w.rules.cannotAppear(s.loc)
	if must {
		v.no(refused)
	}
	if maybe {
		v.maybe(refused)
	}
}

func judgeMake(w *World, op Op, v *verdict, act bool) {
	s := w.find(op.A, false, v)
	var o *Object
	switch op.Do {
	case "mkdir":
		o = newDir()
	case "symlink":
		o = &Object{Kind: Link, Target: op.B}
	case "mkfifo":
		o = &Object{Kind: Fifo, Mode: 0o644}
	case "mknod":
		o = &Object{Kind: File, Mode: 0o644}
	case "tmpfile": // made without a name, which it gets last
		o = &Object{Kind: File, Mode: 0o644, Text: op.Text}
	}
	w.makeAt(s, o, v, act)
	if op.Do == "tmpfile" {
		w.opensNew(s, v)
	}
}
