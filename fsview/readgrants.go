package fsview

import (
	"path"
	"slices"
)

// readGrant is one name that allowRead allows, or one match of a pattern there.
type readGrant struct {
	rule   *rule
	loc    location  // a link at the name itself is not followed (FS-9); held is the whole way, that of a pattern's start included
	target *location // for a link: what it leads to
	match  bool      // a match of a pattern, which exists
	none   bool      // it allows nothing
}

// way are the links on the way to what a grant shows.
func (g *readGrant) way() []string {
	if g.target != nil {
		return g.target.held
	}
	return g.loc.held
}

// allowReading notes a name that an entry allows, to which text leads, and re-allows what exists there.
func (b *builder) allowReading(text string, loc location, why *rule, match bool) {
	g := readGrant{rule: why, loc: loc, match: match}
	if loc.exists && loc.info.IsLink() {
		target := b.res.resolve(text, true)
		target.held = slices.Concat(loc.held, target.held)
		g.target = &target
	}
	b.reads = append(b.reads, g)
	b.placeRead(&g)
}

// placeRead re-allows what exists at the location of a grant.
func (b *builder) placeRead(g *readGrant) {
	if !g.loc.exists {
		return
	}
	n := b.node(g.loc.path, g.loc.info)
	switch {
	case g.target == nil:
		first(&n.allow, g.rule)
	case n.source == nil && n.allow == nil:
		n.allow, n.source = g.rule, g.target
		b.links = append(b.links, n)
	}
}

// settleReads takes back what allowRead allows by a link that commands of an earlier launch can have made: whoever makes the
// link would choose what is allowed. Such an entry allows nothing that is denied without all of its kind. It keeps its effect where
// nothing is denied anyway, as with the links of node_modules/.bin. This is stricter than FS-9.
//
// Which links are open is asked with all grants in force, since one can show a directory of a write root again.
func (b *builder) settleReads() {
	open := make([]string, len(b.reads))
	some := false
	for i := range b.reads {
		open[i] = b.openLink(b.reads[i].way())
		some = some || open[i] != ""
	}
	if some {
		b.withoutOpen(open)
	}
	for i := range b.reads {
		if g := &b.reads[i]; g.match && !g.none {
			b.plan.AllowRead = append(b.plan.AllowRead, g.loc.path)
		}
	}
}

// withoutOpen places the grants anew: first those that no open link is on the way to, then those of the others that add nothing
// to them.
func (b *builder) withoutOpen(open []string) {
	for i := range b.reads {
		if n := b.root.find(b.reads[i].loc.path); n != nil {
			n.allow, n.source = nil, nil
		}
	}
	b.links = nil
	for i := range b.reads {
		if open[i] == "" {
			b.placeRead(&b.reads[i])
		}
	}
	for i := range b.reads {
		g := &b.reads[i]
		if open[i] == "" {
			continue
		}
		shown := g.loc
		if g.target != nil {
			shown = *g.target
		}
		switch hidden := b.root.stateAt(shown.path).hidden; {
		case hidden && (g.target == nil || g.target.exists && b.root.stateAt(path.Dir(g.loc.path)).hidden):
			b.refuse(g, open[i], shown.path)
		case !g.loc.exists:
			g.rule.refused = true // FS-10; nor does it re-open what comes to be there
		default:
			b.placeRead(g)
		}
	}
}

// refuse makes a grant none, and says so once for each entry.
func (b *builder) refuse(g *readGrant, link, target string) {
	if !g.rule.refused {
		b.warn("%s leads to %q through the link %q, which a command can have made, so it allows nothing that is denied there; "+
			"name the target itself to allow it", g.rule.label(), target, link)
	}
	g.rule.refused, g.none = true, true
}

// openLink is the first of the links on a way that lies in a directory where commands can write, or "". Such a link may be a
// command's own, made in an earlier launch: it chooses neither what allowRead shows nor what a mask takes for a credential (CRED-9). held
// are locations, as a location has them.
func (b *builder) openLink(held []string) string {
	for _, p := range held {
		if info, err := b.res.lstat(p); err == nil && info.IsLink() && b.makeable(p) {
			return p
		}
	}
	return ""
}

// makeable reports whether a command can make what is at a location, by that name or another one that mounts give it.
func (b *builder) makeable(location string) bool {
	if b.root.stateAt(path.Dir(location)).writable() {
		return true
	}
	return b.mounts != nil && slices.ContainsFunc(b.mounts.wholes(location), func(p string) bool {
		return b.root.stateAt(path.Dir(p)).writable()
	})
}
