package model

import (
	"path"
	"slices"
)

// read is one name that allowRead allows.
type read struct {
	at    place
	shown place    // at, or what the link there leads to
	links []string // on the way to what is shown
	named bool     // the entry is a name
}

func (r *rules) newRead(at place, via []string, named bool) read {
	g := read{at: at, shown: at, links: via, named: named}
	if at.obj != nil && at.obj.Kind == Link {
		g.shown = follow(r.root, at.loc, true, plain)
		g.links = slices.Concat(via, g.shown.links)
	}
	return g
}

// settleReads places what allowRead allows. A name that is reached through a link which lies in a directory where commands can
// write allows nothing that is denied without all such names: a command of an earlier launch can have made the link. This is
// stricter than FS-9.
func (r *rules) settleReads() {
	all := r.reads
	r.place(all)
	var open, rest []read
	for _, g := range all {
		if slices.ContainsFunc(g.links, r.makeable) {
			open = append(open, g)
		} else {
			rest = append(rest, g)
		}
	}
	r.allowRead, r.linkAllow, r.named = nil, nil, nil
	r.place(rest)
	r.place(slices.DeleteFunc(open, func(g read) bool {
		switch {
		case g.at.obj == nil:
			return true
		case g.shown.obj == nil: // a dangling link
			return false
		}
		in := g.at.obj.Kind != Link || r.hidden(path.Dir(g.at.loc), true)
		return in && r.hidden(g.shown.loc, g.shown.obj.Kind == Dir)
	}))
}

func (r *rules) place(list []read) {
	for _, g := range list {
		if g.named {
			r.named = append(r.named, g.at.loc)
		}
		switch {
		case g.at.obj == nil:
		case g.at.obj.Kind == Link:
			r.linkAllow = append(r.linkAllow, g.at.loc)
		default:
			r.allowRead = append(r.allowRead, g.at.loc)
		}
	}
}

// makeable reports whether a command can have made what is at a location.
func (r *rules) makeable(loc string) bool {
	dir := path.Dir(loc)
	return r.writable(dir) && !r.hidden(dir, true)
}
