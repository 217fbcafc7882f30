package fsview

import (
	"fmt"
	"path"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// A mount of the host can show a protected object a second time at another path (CVE-2026-25724). FS-7 denies every name
// that leads to a location, so each rule that protects is repeated at those paths. What lists allow is not: at another
// path, nothing re-opens what is denied.

// readMounts prepares the look-up of other paths.
func (b *builder) readMounts() error {
	var err error
	if b.mounts, err = newMountTable(b.in.Mounts); err != nil {
		return &SearchError{Path: "/", Err: err}
	}
	return nil
}

// repeatRules repeats every protecting rule where a mount shows its object, or something in it, again.
func (b *builder) repeatRules() error {
	if b.mounts == nil {
		return nil
	}
	var list []repetition
	if b.rootDeny != nil {
		// Not where parts of it show: with everything denied, what is allowed is allowed by its name.
		list = append(list, repetition{"/", b.rootDeny, (*node).denyRead, false})
	}
	b.root.each(func(n *node) {
		for _, r := range []repetition{{n.path, n.readRule(b.rootDeny), (*node).denyRead, true}, {n.path, n.deny, (*node).denyWrite, true},
			{n.path, n.fake, (*node).setFake, true}, {n.path, n.held, (*node).holdName, false}} {
			if r.rule != nil {
				list = append(list, r)
			}
		}
	})
	for _, r := range list {
		if err := b.repeat(r); err != nil {
			return err
		}
	}
	return b.repeatAbsent()
}

// readRule is the read deny at n that is in force and is not spread, the deny of `/`; or nil.
func (n *node) readRule(spread *rule) *rule {
	switch {
	case n.hard != nil && n.hard != spread && !n.hard.here:
		return n.hard
	case n.hide != nil && !n.spread && !n.lifted():
		return n.hide
	}
	return nil
}

func (n *node) denyRead(r *rule)  { first(&n.hard, r) }
func (n *node) denyWrite(r *rule) { first(&n.deny, r) }
func (n *node) holdName(r *rule)  { first(&n.held, r) }

// repetition is a rule at a location, and how it is placed elsewhere.
type repetition struct {
	at    string
	rule  *rule
	place func(*node, *rule)
	parts bool // also where a part of the object shows
}

// repeat places a rule for the object at a location at its other paths.
func (b *builder) repeat(r repetition) error {
	paths, parts := b.mounts.others(r.at)
	if r.parts {
		paths = append(paths, parts...)
	}
	if len(paths) == 0 {
		return nil
	}
	again := *r.rule
	again.number = fmt.Sprintf("FS-7, as at %q", r.at)
	for _, p := range paths {
		loc := b.res.resolve(p, false)
		switch {
		case loc.special, !loc.exists && loc.blocked == nil:
			continue // replaced by the sandbox's own (FS-47), or gone since the mounts were read
		case loc.blocked != nil && loc.ancestor == "/":
			return uninspectedError(r.rule, loc)
		case loc.blocked != nil:
			b.note("%s: %q cannot be inspected (%v), %q stands for it (FS-11)", r.rule.label(), p, loc.blocked, loc.ancestor)
			r.place(b.node(loc.ancestor, Info{}), &again)
		default:
			r.place(b.node(loc.path, loc.info), &again)
		}
	}
	return nil
}

// repeatAbsent repeats a deny of what does not exist at every path at which it could be created.
func (b *builder) repeatAbsent() error {
	for _, d := range b.pending {
		dir := d.loc.parent
		if d.loc.file != "" {
			dir = path.Dir(d.loc.file)
		}
		if dir == "" || !policy.Covers(dir, d.loc.path) {
			continue
		}
		for _, p := range b.mounts.wholes(dir) {
			if err := b.repeatAbsentAt(d, dir, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeatAbsentAt repeats a deny of what does not exist in dir at another path of that directory.
func (b *builder) repeatAbsentAt(d absentDeny, dir, p string) error {
	switch loc := b.res.resolve(p, false); {
	case loc.blocked != nil && loc.ancestor == "/":
		return uninspectedError(d.rule, loc)
	case loc.blocked != nil && d.read:
		b.node(loc.ancestor, Info{}).denyRead(d.rule) // stands for it (FS-11)
		return nil
	case loc.blocked != nil:
		b.denyWriteAt(loc.ancestor, Info{}, d.rule)
		return nil
	case !loc.exists || !loc.info.IsDir():
		return nil // gone since the mounts were read
	}
	d.loc.path, d.loc.held = beneath(p, tail(dir, d.loc.path)), nil
	if d.loc.file != "" {
		d.loc.file = join(p, path.Base(d.loc.file))
	} else {
		d.loc.parent = p
	}
	b.pending = append(b.pending, d)
	return nil
}

// searchNamed protects what shows inside a write root under an innocent name, and under a protected one elsewhere, where
// no list lets the command write.
func (s *search) searchNamed() error {
	b := s.b
	if b.mounts == nil {
		return nil
	}
	for _, shared := range b.mounts.shared {
		for _, m := range shared {
			if !b.root.stateAt(m.Point).writable() {
				continue
			}
			for _, p := range b.mounts.wholes(m.Point) {
				if on, inner := b.mounts.locate(p); b.mounts.showsSurroundings(p, on, inner) {
					continue // not a name for this, but for all around it
				}
				if name := b.protectedOnWay(p); name != "" {
					b.denyWriteAt(m.Point, Info{}, mandatoryRule(name))
				}
				info, err := b.res.lstat(m.Point)
				if name := path.Base(p); err == nil && info.IsDir() && isFold(name, ".git", ".claude") {
					if err := s.start(m.Point, name); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// each calls visit for n and every node beneath it, in path order.
func (n *node) each(visit func(*node)) {
	visit(n)
	for _, c := range n.sorted() {
		c.each(visit)
	}
}
