package model

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// ErrUnstated is a case about which the chapter says too little, or which the model does not know.
var ErrUnstated = errors.New("the model has no statement about this case")

// rules are the lists at their locations, as they are at the start.
type rules struct {
	root *Object
	pol  Policy

	cred, denyRead, denyWrite []string
	allowRead, linkAllow      []string
	reads                     []read
	named                     []string // what allowRead names, existing or not
	roots                     []string
	held                      map[string]bool // links that stay (FS-42)
	maybeHeld                 map[string]bool // links that may stay
	late                      []live          // read denies of what appears later (FS-10, FS-55)
	writePatterns             []live
	noGit                     bool // the working directory holds no .git at the start
	err                       error
}

// live is a pattern or an absent name that is judged when something comes to be there.
type live struct {
	dir, rest string // dir is a location; with no rest it is the name itself
	hard      bool
}

// text reports whether the location of something is what l says.
func (l live) text(loc string) bool {
	if l.rest == "" {
		return l.dir == loc
	}
	return loc != l.dir && covers(l.dir, loc) && matches(l.rest, trim(l.dir, loc))
}

// over reports whether l denies p, which is loc or lies above it. A pattern that ends in `/**` does so by the directory it
// matches, so that an allowRead beneath re-opens new names (FS-20).
func (l live) over(p, loc string) bool {
	if cut, ok := strings.CutSuffix(l.rest, "/**"); ok {
		return p != loc && live{dir: l.dir, rest: cut}.text(p)
	}
	return l.text(p)
}

func trim(dir, loc string) string {
	if dir == "/" {
		return loc[1:]
	}
	return loc[len(dir)+1:]
}

func newRules(root *Object, pol Policy) (*rules, error) {
	r := &rules{root: root, pol: pol, held: map[string]bool{}, maybeHeld: map[string]bool{}}
	for _, e := range pol.Credential {
		r.deny(e, true, func(loc string, exists bool) { r.readDeny(loc, true) })
	}
	for _, e := range pol.DenyRead {
		r.deny(e, true, func(loc string, exists bool) { r.readDeny(loc, false) })
	}
	for _, e := range pol.DenyWrite {
		r.deny(e, false, func(loc string, exists bool) { r.denyWrite = append(r.denyWrite, loc) })
	}
	for _, e := range pol.AllowRead {
		r.readAllow(e)
	}
	for _, e := range pol.AllowWrite {
		r.writeAllow(e)
	}
	r.settleReads()
	r.mandatory()
	return r, r.err
}

func (r *rules) readDeny(loc string, hard bool) {
	if hard {
		r.cred = append(r.cred, loc)
	} else {
		r.denyRead = append(r.denyRead, loc)
	}
	r.late = append(r.late, live{dir: loc, hard: hard})
}

// deny places a deny entry of a list at every location it stands for (FS-7, FS-15, FS-16, FS-18).
func (r *rules) deny(e Entry, readList bool, add func(loc string, exists bool)) {
	hard := slices.Contains(r.pol.Credential, e) && readList
	text, pattern := e.text(readList)
	list := []reading{{dir: text}}
	if pattern {
		list = readings(r.root, text, true)
	}
	for _, rd := range list {
		if rd.rest == "" {
			r.denyName(rd.dir, readList, add)
			continue
		}
		start := follow(r.root, rd.dir, true, plain)
		matches, ok := expand(r.root, rd, readList)
		if !ok {
			r.err = ErrUnstated
		}
		for _, m := range matches {
			r.holdMatch(m, matches)
			add(m.at.loc, true)
		}
		for _, l := range start.links {
			r.maybeHeld[l] = true
		}
		l := live{dir: start.loc, rest: rd.rest, hard: hard}
		if readList {
			r.late = append(r.late, l)
		} else {
			r.writePatterns = append(r.writePatterns, l)
		}
	}
}

// holdMatch holds the links that lead to a match (FS-42). Where the same is matched by several names, a link that not all of
// them lead through decides nothing: without it the match is found all the same. Such links may stay free.
func (r *rules) holdMatch(m found, all []found) {
	for _, l := range m.links {
		needed := true
		for _, other := range all {
			needed = needed && (other.at.loc != m.at.loc || slices.Contains(other.links, l))
		}
		if needed {
			r.hold([]string{l})
		} else {
			r.maybeHeld[l] = true
		}
	}
}

// denyName is a deny of one name. For a write deny, a file in the way is denied itself (FS-30).
func (r *rules) denyName(text string, readList bool, add func(loc string, exists bool)) {
	at := follow(r.root, text, true, plain)
	r.hold(at.links)
	switch {
	case at.loop:
	case at.file != "" && !readList:
		add(at.file, true)
	default:
		add(at.loc, at.obj != nil)
	}
}

func (r *rules) hold(links []string) {
	for _, l := range links {
		r.held[l] = true
	}
}

// readAllow notes what an allowRead entry allows: the name it spells (FS-9).
func (r *rules) readAllow(e Entry) {
	text, pattern := e.text(true)
	list := []reading{{dir: text}}
	if pattern {
		list = readings(r.root, text, false)
	}
	for _, rd := range list {
		var all []found
		var via []string
		if rd.rest == "" {
			all = []found{{at: follow(r.root, rd.dir, false, plain)}}
			via = all[0].at.links
		} else {
			via = follow(r.root, rd.dir, true, plain).links
			all = expandAllow(r.root, rd)
			if strings.HasSuffix("/"+rd.rest, "/**") {
				r.err = ErrUnstated // whether the directory is allowed with what it holds is not said (FS-20)
			}
		}
		for _, m := range all {
			r.reads = append(r.reads, r.newRead(m.at, via, rd.rest == ""))
		}
	}
}

// writeAllow places an allowWrite entry: what exists there, when the text is its own spelling (FS-8, FS-10, FS-55).
func (r *rules) writeAllow(e Entry) {
	text, pattern := e.text(false)
	list := []reading{{dir: text}}
	if pattern {
		list = readings(r.root, text, false)
	}
	for _, rd := range list {
		at := follow(r.root, rd.dir, true, plain)
		if at.obj == nil || !covers(rd.dir, at.loc) {
			continue
		}
		if rd.rest == "" {
			r.roots = append(r.roots, at.loc)
			continue
		}
		for _, m := range expandAllow(r.root, rd) {
			if m.at.obj.Kind != Link {
				r.roots = append(r.roots, m.at.loc)
			}
		}
	}
}

// deepestOf is the depth of the deepest location in list that covers p, or -1.
func deepestOf(list []string, p string) int {
	best := -1
	for _, l := range list {
		if covers(l, p) {
			best = max(best, depth(l))
		}
	}
	return best
}

// nearest is the deepest location in list that covers p, or "".
func nearest(list []string, p string) string {
	for _, at := range upwards(p) {
		if slices.Contains(list, at) {
			return at
		}
	}
	return ""
}

func coversAny(list []string, p string) bool { return deepestOf(list, p) >= 0 }

// hidden is FS-22 for a location that existed at the start.
func (r *rules) hidden(loc string, isDir bool) bool {
	return coversAny(r.cred, loc) || r.outweighed(loc, isDir, deepestOf(r.denyRead, loc), r.allowRead)
}

// outweighed reports whether a deny of this depth holds against the allows: the deepest decides, at equal depth the allow,
// but for a file denied itself allowWrite does not count.
func (r *rules) outweighed(loc string, isDir bool, deny int, allows []string) bool {
	if deny < 0 {
		return false
	}
	allow := deepestOf(allows, loc)
	for _, w := range r.roots {
		if covers(w, loc) && (w != loc || isDir || deny < depth(loc)) {
			allow = max(allow, depth(w))
		}
	}
	return allow < deny
}

// hiddenLate is the same for what came to be at a location during the run (FS-10, FS-55).
func (r *rules) hiddenLate(loc string, isDir bool) bool {
	deny := -1
	for _, p := range upwards(loc) {
		for _, l := range r.late {
			if l.over(p, loc) {
				if l.hard {
					return true
				}
				deny = max(deny, depth(p))
			}
		}
	}
	return r.outweighed(loc, isDir, deny, slices.Concat(r.allowRead, r.named, r.linkAllow))
}

// writable is FS-26 for a location that is not hidden.
func (r *rules) writable(loc string) bool {
	return coversAny(r.roots, loc) && !coversAny(r.denyWrite, loc)
}

// cannotAppear is FS-30 and FS-55: whether a name must not come to be at loc. maybe says that it may be refused.
func (r *rules) cannotAppear(loc string) (must, maybe bool) {
	for _, d := range r.denyWrite {
		must = must || covers(loc, d) || covers(d, loc)
	}
	for _, l := range r.writePatterns {
		must = must || l.text(loc)
	}
	return must, r.mandatoryLater(loc) || r.throughLink(loc)
}

// leadsOn reports whether what a pattern or absent name denies can lie beneath a name that is loc.
func (r *rules) leadsOn(loc string) bool {
	for _, l := range slices.Concat(r.late, r.writePatterns) {
		if covers(loc, l.dir) {
			return true
		}
		names := strings.Split(l.rest, "/")
		for i := 1; i < len(names) && covers(l.dir, loc); i++ {
			if (live{dir: l.dir, rest: strings.Join(names[:i], "/")}).text(loc) {
				return true
			}
		}
	}
	return false
}

// throughLink says that a name through a link could match a write pattern, while the location does not.
func (r *rules) throughLink(loc string) bool { return r.byName(loc, r.writePatterns) }

// readThroughLink is the same for reading what is at loc or lies beneath it.
func (r *rules) readThroughLink(loc string) bool {
	for _, p := range upwards(loc) {
		if r.byName(p, r.late) {
			return true
		}
	}
	return false
}

// byName reports whether one of the patterns matches a name of loc that leads through links.
func (r *rules) byName(loc string, patterns []live) bool {
	if !slices.ContainsFunc(patterns, func(l live) bool { return l.rest != "" }) {
		return false
	}
	for _, name := range r.namesThrough(loc, chained) {
		if slices.ContainsFunc(patterns, func(l live) bool { return l.rest != "" && l.text(name) }) {
			return true
		}
	}
	return false
}

// chained is through how many links in a row a name may lead.
const chained = 4

// namesThrough gives the names of a location that lead through links, up to so many.
func (r *rules) namesThrough(loc string, most int) (names []string) {
	if most == 0 {
		return nil
	}
	r.root.each("/", func(at string, o *Object) {
		if o.Kind != Link {
			return
		}
		to := follow(r.root, at, true, plain)
		if to.loc == "" || to.loc == "/" || !covers(to.loc, loc) {
			return
		}
		if name := path.Join(at, "./"+loc[len(to.loc):]); name != loc {
			names = append(append(names, name), r.namesThrough(name, most-1)...)
		}
	})
	return names
}
