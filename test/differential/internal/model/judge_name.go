package model

// stays adds what keeps the object at a spot in its place: it is protected, leads to something that is, or shows as a
// part of its own (FS-31, FS-41, FS-42).
func (w *World) stays(s spot, v *verdict) {
	if !s.exists || s.dir == nil {
		return
	}
	r := w.rules
	switch {
	case w.parts[s.loc] != nil:
		v.no("EBUSY")
		return
	case s.in.zone == memory:
		if w.leads(s.loc) {
			v.open = true // a directory that leads to something re-allowed
		}
		return
	case w.pins[s.loc]:
		v.no("EBUSY")
	}
	within := coversAny(r.denyWrite, s.loc) || coversAny(r.denyRead, s.loc) || coversAny(r.cred, s.loc)
	if w.loose[s.loc] || (within && s.in.zone != writable) { // within something read-only, either way
		v.maybe("EBUSY")
	}
}

// leads reports whether a part lies beneath a location.
func (w *World) leads(loc string) bool {
	for at := range w.parts {
		if at != loc && covers(loc, at) {
			return true
		}
	}
	return false
}

func judgeUnlink(w *World, op Op, v *verdict, act bool) {
	s := w.get(op.A, false, v)
	if s.isDir() {
		v.no("EISDIR")
	}
	w.changes(s, v)
	w.stays(s, v)
	if act {
		delete(s.dir.Kids, s.name())
	}
}

func judgeRmdir(w *World, op Op, v *verdict, act bool) {
	s := w.get(op.A, false, v)
	switch {
	case s.exists && !s.isDir():
		v.no("ENOTDIR")
	case s.exists && len(s.obj.Kids) > 0:
		v.no("ENOTEMPTY")
	}
	w.changes(s, v)
	w.stays(s, v)
	if act {
		delete(s.dir.Kids, s.name())
	}
}

func judgeChmod(w *World, op Op, v *verdict, act bool) {
	s := w.get(op.A, true, v)
	if !s.exists {
		return
	}
	if s.on.zone == readOnly || s.on.zone == sealed {
		v.no(refused)
	}
	if act && op.Do == "chmod" {
		s.obj.Mode = op.Mode
	}
}

// apart adds EXDEV where an object would pass from one part of the view into another.
func (w *World) apart(from, to *part, v *verdict) {
	switch {
	case from == nil || to == nil || from == to:
	case from.zone == writable && to.zone == writable:
		v.maybe("EXDEV") // write roots that lie apart
	default:
		v.no("EXDEV")
	}
}

// leaves adds what speaks against an object leaving a location where a later rule keeps it from being read.
func (w *World) leaves(from, to spot, v *verdict) {
	if !from.exists || from.on == nil || to.dir == nil || from.on.zone == memory {
		return
	}
	found, still := false, true
	check := func(loc string, o *Object) {
		if w.rules.hiddenLate(loc, o.Kind == Dir) {
			found = true
			still = still && w.rules.hiddenLate(to.loc+loc[len(from.loc):], o.Kind == Dir)
		}
	}
	check(from.loc, from.obj)
	for _, l := range w.rules.late {
		if from.isDir() && covers(from.loc, l.dir) {
			v.maybe(refused) // it leads to where something may not be read
		}
	}
	if found && !still {
		v.no(refused + " EXDEV EBUSY")
		return
	}
	from.obj.each(from.loc, check)
	if found {
		v.maybe(refused + " EXDEV EBUSY")
	}
}

// moves adds what speaks against a tree coming to a place where a pattern would deny what lies in it (FS-55).
func (w *World) moves(from, to spot, v *verdict) {
	if !from.isDir() || to.in == nil {
		return
	}
	if len(w.rules.writePatterns)+len(w.rules.late) > 0 {
		v.maybe("EXDEV")
	}
	from.obj.each(to.loc, func(loc string, _ *Object) {
		if to.in.zone != writable {
			return
		}
		must, maybe := w.rules.cannotAppear(loc)
		if must {
			v.no(refused + " EXDEV")
		}
		if maybe {
			v.maybe(refused + " EXDEV")
		}
	})
}

func judgeLink(w *World, op Op, v *verdict, act bool) {
	from := w.get(op.A, false, v)
	to := w.find(op.B, false, v)
	if from.isDir() {
		v.no("EPERM")
	}
	if to.exists {
		v.no("EEXIST")
	}
	w.changes(to, v)
	w.apart(from.on, to.in, v)
	if !to.exists && to.dir != nil {
		w.appears(to, from.obj, v)
	}
	w.leaves(from, to, v)
	if act {
		to.dir.Kids[to.name()] = from.obj
	}
}

func judgeRename(w *World, op Op, v *verdict, act bool) {
	from := w.get(op.A, false, v)
	to := w.find(op.B, false, v)
	w.changes(from, v)
	w.changes(to, v)
	w.stays(from, v)
	w.stays(to, v)
	w.apart(from.in, to.in, v)
	if from.exists && to.exists && (from.obj == to.obj || w.sameOnHost(from, to)) {
		v.skip = true // nothing is done, whatever the rules say
	}
	if to.exists && to.in != nil && to.in.zone == writable && w.parts[to.loc] == nil {
		if must, _ := w.rules.cannotAppear(to.loc); must && w.pins[to.loc] {
			v.no(refused) // a link that is held, at a name that must not be made: FS-42 says only that it stays
		}
		if w.rules.hiddenLate(to.loc, from.isDir()) {
			v.maybe(refused) // what takes the place of a dangling link cannot be read (FS-10, FS-55)
		}
	}
	if from.exists && covers(from.loc, to.loc) && from.loc != to.loc {
		v.no("EINVAL")
	}
	if to.exists && covers(to.loc, from.loc) && from.loc != to.loc {
		v.no("ENOTEMPTY EINVAL")
	}
	if from.exists && from.dir != nil && w.leads(from.loc) {
		v.open = true
	}
	if !to.exists && to.dir != nil {
		w.appears(to, from.obj, v)
	}
	w.leaves(from, to, v)
	w.moves(from, to, v)
	if op.Do == "exchange" {
		w.exchange(from, to, v, act)
		return
	}
	onto(op, from, to, v)
	if act {
		delete(from.dir.Kids, from.name())
		to.dir.Kids[to.name()] = from.obj
	}
}

// sameOnHost reports whether two names are hard links of one file, which a rename finds beneath what is mounted there.
func (w *World) sameOnHost(a, b spot) bool {
	o := w.host.at(a.loc)
	return o != nil && o == w.host.at(b.loc)
}

// onto adds the errors that a rename has from what stands at its end.
func onto(op Op, from, to spot, v *verdict) {
	if !to.exists || !from.exists {
		return
	}
	switch {
	case op.Do == "noreplace":
		v.no("EEXIST")
	case from.isDir() && !to.isDir():
		v.no("ENOTDIR")
	case !from.isDir() && to.isDir():
		v.no("EISDIR")
	case to.isDir() && len(to.obj.Kids) > 0:
		v.no("ENOTEMPTY EEXIST")
	}
}

func (w *World) exchange(from, to spot, v *verdict, act bool) {
	if from.exists && !to.exists && to.dir != nil {
		v.no("ENOENT")
	}
	w.leaves(to, from, v)
	w.moves(to, from, v)
	if to.exists && w.leads(to.loc) {
		v.open = true
	}
	// A name that a pattern denies may be taken by another object only if that is no new name there.
	for _, s := range []spot{from, to} {
		if s.exists && s.in != nil && s.in.zone == writable {
			if must, maybe := w.rules.cannotAppear(s.loc); must || maybe || w.rules.hiddenLate(s.loc, s.isDir()) || w.rules.leadsOn(s.loc) {
				v.maybe(refused)
			}
		}
	}
	if act {
		from.dir.Kids[from.name()], to.dir.Kids[to.name()] = to.obj, from.obj
	}
}
