package fsview

import (
	"path"
	"strings"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// A pattern is expanded when a plan is made: every match becomes a rule at its location, as if it stood in the list by
// name (FS-17). Deny patterns also go into the plan as they are, for the names that come to exist later (FS-55).

// list is one of the path lists.
type list uint8

const (
	listCredential list = iota // credential files with mode "deny"
	listDenyRead
	listDenyWrite
	listAllowRead
	listAllowWrite
)

// listNumbers are the rules that an entry of each list is enforced by.
var listNumbers = [...]string{"FS-57", "FS-22", "FS-26", "FS-22", "FS-26"}

func (l list) deny() bool { return l <= listDenyWrite }
func (l list) read() bool { return l != listDenyWrite && l != listAllowWrite }

// query is one reading of a pattern entry (FS-16).
type query struct {
	list  list
	rule  *rule
	glob  *glob.Pattern // its literal directory is a location
	start string        // that location
	held  []string      // for allowRead: the links on the way there
	// deep says that the text ends in `/**`: a directory in which everything matches is a match when it holds an entry
	// (FS-20).
	deep bool
	// matched are the locations of an allow pattern's matches; shared by the readings of an entry.
	matched *[]string
}

// later is a text that may match what comes to exist.
type later struct {
	text  string
	query *query
}

// expansion expands patterns together, so that no directory is listed once for each.
type expansion struct {
	b      *builder
	starts []walkDir
	begun  map[string]int // index in starts, by path
	later  []later
	allows []allowPattern
}

// add takes an entry that is a pattern, in all its readings (FS-16).
func (x *expansion) add(r policy.PathRule, why *rule, l list) error {
	texts, isName := x.b.readings(r, l.deny())
	matched := new([]string)
	for _, text := range texts {
		q := &query{list: l, rule: why, glob: glob.Compile(text), matched: matched,
			deep: l.read() && strings.HasSuffix(text, "/**")}
		if err := x.begin(q); err != nil {
			return err
		}
	}
	if !l.deny() {
		if isName {
			x.b.allowFound(r.Path, x.b.res.resolve(r.Path, l == listAllowWrite), &query{list: l, rule: why, matched: matched})
		}
		x.allows = append(x.allows, allowPattern{l, why, matched})
		return nil
	}
	if isName {
		return x.b.collectDeny(policy.PathRule{Path: r.Path}, why, l)
	}
	return nil
}

// readings gives the texts that an entry is as a pattern, and whether it is a name besides: if every component with glob
// characters exists by that name (FS-16).
func (b *builder) readings(r policy.PathRule, deny bool) (patterns []string, isName bool) {
	at := strings.TrimSuffix(r.Anchor, "/")
	rest := r.Path[len(at)+1:]
	patterns = append(patterns, glob.Quote(at)+"/"+rest)
	begun := false
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		at += "/" + name
		wild := glob.IsPattern(name)
		begun = begun || wild
		if !begun || deny && !wild {
			continue
		}
		loc := b.res.resolve(at, false)
		switch {
		case deny && !loc.exists && loc.blocked == nil && !loc.special:
			return patterns, false
		case !deny && (loc.info.IsLink() || wild && !loc.exists):
			return patterns, false
		}
		if wild && glob.IsPattern(rest) {
			patterns = append(patterns, glob.Quote(at)+"/"+rest)
		}
	}
	return patterns, true
}

// begin prepares the walk of one reading from its literal directory (FS-18).
func (x *expansion) begin(q *query) error {
	b, dir := x.b, q.glob.Literal()
	loc := b.res.resolve(dir, true)
	if q.list.deny() {
		b.hold(loc, q.rule)
	}
	q.start = loc.path
	if q.list == listAllowRead {
		q.held = loc.held
	}
	if loc.path != dir {
		q.glob = glob.Compile(beneath(glob.Quote(strings.TrimSuffix(loc.path, "/")), "/"+q.glob.Rest()))
	}
	switch {
	case loc.special:
		if done, err := b.replacedPattern(q); done || err != nil {
			return err
		}
	case loc.blocked != nil && q.list.deny():
		if err := b.denyAt(dir, loc, q.rule, q.list, true); err != nil {
			return err
		}
	}
	if q.list.deny() && !loc.special {
		x.judgeLater(q)
	}
	if !loc.special && (!loc.exists || !loc.info.IsDir()) || q.list == listAllowWrite && loc.path != dir {
		return nil
	}
	x.enqueue(q.start, active{q, q.glob.Below(q.start)})
	return nil
}

// replacedPattern decides about a pattern beneath /proc or /dev (FS-47). done means that there is nothing to walk.
func (b *builder) replacedPattern(q *query) (done bool, err error) {
	switch {
	case !q.list.deny(), q.list == listDenyWrite:
		b.note("%s: entries beneath /proc and /dev have no effect (FS-47)", q.rule.label())
		return true, nil
	case policy.Covers("/proc", q.start):
		return true, &EntryError{Entry: q.rule.label(), Path: q.glob.String(), Reason: ErrPerProcess,
			Advice: "take the entry out; a command sees the processes of its own sandbox alone"}
	}
	return false, nil
}

// enqueue starts a walk, together with what starts at the same place.
func (x *expansion) enqueue(dir string, a active) {
	if i, ok := x.begun[dir]; ok {
		x.starts[i].left = append(x.starts[i].left, a)
		return
	}
	if x.begun == nil {
		x.begun = make(map[string]int)
	}
	x.begun[dir] = len(x.starts)
	x.starts = append(x.starts, walkDir{path: dir, left: []active{a}})
}

// run walks, and makes a rule of every match.
func (x *expansion) run(follow bool) error {
	if len(x.starts) == 0 {
		return nil
	}
	w := newWalk(x.b.res.tree, follow)
	queue := x.starts
	for x.starts, x.begun = nil, nil; len(queue) > 0; {
		h := w.drain(queue)
		if err := x.harvest(h); err != nil {
			return err
		}
		queue = nil
		for i := range h.links {
			more, err := x.follow(w, &h.links[i])
			if err != nil {
				return err
			}
			queue = append(queue, more...)
		}
	}
	return nil
}

// harvest makes rules of what a walk found, links aside.
func (x *expansion) harvest(h *harvest) error {
	b := x.b
	for i := range h.matches {
		m := &h.matches[i]
		dir, name := path.Split(m.path)
		if !m.query.list.deny() {
			b.allowFound(m.path, b.res.walk(path.Clean(dir), []string{name}, m.query.list == listAllowWrite), m.query)
			continue
		}
		m.via.hold(b, m.query.rule)
		if policy.Covers("/dev", m.path) {
			if err := b.hideReplaced(m.path, m.query.rule, m.query.list == listCredential); err != nil {
				return err
			}
			continue
		}
		if err := b.denyAt(m.path, b.res.walk(path.Clean(dir), []string{name}, true), m.query.rule, m.query.list, true); err != nil {
			return err
		}
	}
	for i := range h.unlisted {
		u := &h.unlisted[i]
		for _, a := range u.left {
			if err := b.unlistedAt(u, a.query); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlistedAt denies a directory that a walk could not list, in whole, since it may hold matches (FS-19, FS-55).
func (b *builder) unlistedAt(u *unlisted, q *query) error {
	if !q.list.deny() {
		b.note("%s: %q cannot be listed (%v): what matches in it is not allowed", q.rule.label(), u.path, u.err)
		return nil
	}
	loc := b.res.resolve(u.path, true)
	u.via.hold(b, q.rule)
	switch {
	case loc.blocked == nil && !loc.exists:
		return nil // removed since its parent was listed
	case loc.path == "/" || loc.blocked != nil && loc.ancestor == "/":
		loc.blocked = u.err
		return uninspectedError(q.rule, loc)
	}
	b.note("%s: %q cannot be listed (%v), and is denied whole (FS-19)", q.rule.label(), u.path, u.err)
	l := q.list
	if l == listDenyRead {
		l = listCredential // nothing beneath is re-allowed
	}
	return b.denyAt(u.path, loc, q.rule, l, true)
}
