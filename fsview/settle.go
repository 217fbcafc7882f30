package fsview

import (
	"errors"
	"path"
	"syscall"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// spreadRoot replaces a read deny of `/` by one of everything in it but /proc, /dev and /sys, since the root itself
// stays where it is. Links there stay too: what they lead to is hidden (FS-22).
func (b *builder) spreadRoot() error {
	root := b.root
	if root.hard == nil && root.hide != nil && (root.allow != nil || root.reopens()) {
		root.hide = nil
	}
	if root.hide == nil && root.hard == nil {
		return nil
	}
	if b.rootDeny = root.hide; root.hard != nil {
		b.rootDeny = root.hard
	}
	entries, err := again("/", b.res.tree.ReadDir)
	if err != nil {
		return &SearchError{Path: "/", Err: err}
	}
	for _, e := range entries {
		info, err := b.res.lstat("/" + e.Name)
		switch {
		case absent(err):
			continue
		case err != nil:
			return &SearchError{Path: "/" + e.Name, Err: err}
		case info.IsLink():
			continue
		}
		n := root.at("/" + e.Name)
		if n.kernelTree() {
			continue
		}
		n.info, n.known = info, true
		if root.hard != nil {
			first(&n.hard, root.hard)
		} else if n.hide == nil {
			n.hide, n.spread = root.hide, true
		}
	}
	root.hide, root.hard = nil, nil
	return nil
}

// settleLinks decides which re-allowed links are shown: those in a hidden directory whose target lies in the same one
// and has no read deny of its own at, in or around it (FS-22).
func (b *builder) settleLinks() error {
	for _, n := range b.links {
		around := b.root.stateAt(n.parent.path)
		if !around.hidden {
			continue
		}
		if t := n.source; !around.hard && t.exists && !t.special && sameDeny(b.root.nearestDeny(t.path), around.by) {
			if at := b.root.find(t.path); (at == nil || !at.readDenied()) && !b.readDeniedLater(t.path) {
				continue
			}
		}
		b.warn("%s is a link to %q, which is not in the same hidden directory or is denied itself; the name stays "+
			"hidden (FS-22)", n.allow.label(), n.source.path)
		n.allow, n.source, n.unshown = nil, nil, true
	}
	return nil
}

// readDeniedLater reports whether something that must not be read may come to be at a location or beneath it. Under a link's
// name nobody would know it.
func (b *builder) readDeniedLater(location string) bool {
	for i := range b.pending {
		if d := &b.pending[i]; d.read && policy.Covers(location, d.loc.path) {
			return true
		}
	}
	for _, p := range b.unreadable {
		if p.Match(location) || !p.Below(location).Empty() {
			return true
		}
	}
	return false
}

// nearestDeny is where the deepest read deny that covers a location stands, lifted or not; nil without one.
func (n *node) nearestDeny(location string) (found *node) {
	n.descend(location, func(c *node) {
		if c.hide != nil || c.empty != nil || c.hard != nil {
			found = c
		}
	})
	return found
}

// sameDeny reports whether two denied directories are one. One entry can stand at many, as a pattern does at each of its
// matches; only the deny of `/`, which is spread over what lies in it, is one (FS-22).
func sameDeny(a, b *node) bool { return a == b || a != nil && b != nil && a.spread && b.spread }

// find is the node of a location, or nil when no rule stands at or beneath it.
func (n *node) find(location string) *node {
	var found *node
	n.descend(location, func(c *node) { found = c })
	if found.path != location {
		return nil
	}
	return found
}

// canCreate reports whether the caller could create a name in dir, whatever modes it changes first (FS-30).
func (b *builder) canCreate(dir string) bool {
	if can, ok := b.creatable[dir]; ok {
		return can
	}
	can := true
	switch err := b.res.tree.CanCreate(dir); {
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EPERM): // read-only or immutable
		can = false
	case errors.Is(err, syscall.EACCES):
		info, statErr := b.res.lstat(dir)
		can = statErr != nil || b.in.UID == 0 || info.UID == b.in.UID
	}
	if b.creatable == nil {
		b.creatable = make(map[string]bool)
	}
	b.creatable[dir] = can
	return can
}

// holdParent keeps a directory, in which the caller cannot create names, from being moved away and replaced by one in
// which it can.
func (b *builder) holdParent(dir string, why *rule) {
	for dir != "/" && b.root.stateAt(path.Dir(dir)).writable() {
		if b.canCreate(path.Dir(dir)) {
			first(&b.root.at(dir).held, why)
			return // the directories above a held one are pinned with it
		}
		dir = path.Dir(dir)
	}
}

// tell warns of entries that grant nothing, and notes those that another rule overrides.
func (b *builder) tell() error {
	for _, g := range b.grants {
		s := b.root.stateAt(g.path)
		switch {
		case !g.write && (g.rule.refused || b.unshown(g.path)):
		case s.hidden && g.gone:
			b.warn("%s does not exist, so nothing is re-allowed in what %s hides", g.rule.label(), s.owner.label())
		case s.hidden:
			b.warn("%s has no effect: %s hides it", g.rule.label(), s.owner.label())
		case g.write && b.supplied(g.path):
			b.warn("%s grants nothing: the command sees a file of the sandbox's own there, which is never writable", g.rule.label())
		case g.write && s.deny != nil && s.deny.mandatory:
			b.warn("%s grants nothing: %s is never writable (FS-35)", g.rule.label(), s.deny.key)
		case g.write && s.deny != nil:
			b.note("%s is read-only: %s covers it (FS-26)", g.rule.label(), s.deny.label())
		}
	}
	return nil
}
