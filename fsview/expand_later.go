package fsview

import (
	"errors"
	"strings"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// errUnknownType is why an entry of unknown type counts as a directory that cannot be listed (FS-19).
var errUnknownType = errors.New("its type cannot be found out")

// follow judges a symbolic link that a walk found: its target is denied if the link matches, and it gives the walk that
// goes on in it (FS-18).
func (x *expansion) follow(w *walk, l *linkFound) ([]walkDir, error) {
	b := x.b
	at := join(l.dir, l.name)
	loc := b.res.walk(l.dir, []string{l.name}, true)
	if loc.special {
		b.note("the link %q leads to %q, which is the sandbox's own: patterns are not applied there (FS-47)", at, loc.path)
		return nil, nil
	}
	for _, q := range l.matches {
		if !loc.exists && loc.blocked == nil {
			continue // dangling
		}
		b.hold(loc, q.rule)
		l.via.hold(b, q.rule)
		if err := b.denyAt(at, loc, q.rule, q.list, true); err != nil {
			return nil, err
		}
	}
	if !loc.exists || !loc.info.IsDir() || policy.Covers(loc.path, l.dir) || policy.Covers("/sys", loc.path) {
		return nil, nil
	}
	var left []active
	for _, a := range l.left {
		if policy.Covers(loc.path, a.query.start) || a.left.SubsetOf(a.query.glob.Below(loc.path)) {
			continue // above the start; or visited by its own path
		}
		left = append(left, a)
		x.laterBeneath(a.query, loc.path, a.left)
	}
	if len(left) == 0 {
		return nil, nil
	}
	return []walkDir{{path: loc.path, left: left, via: &passage{held: loc.held, outer: l.via}}}, nil
}

// judgeLater puts a query among what is judged while the command runs, at each path at which mounts show its area.
func (x *expansion) judgeLater(q *query) {
	x.later = append(x.later, later{q.glob.String(), q})
	mounts := x.b.mounts
	if mounts == nil {
		return
	}
	wholes, parts := mounts.others(q.start)
	for _, p := range wholes {
		x.laterBeneath(q, p, q.glob.Below(q.start))
	}
	_, inner := mounts.locate(q.start)
	for _, p := range parts {
		_, part := mounts.locate(p)
		x.laterBeneath(q, p, q.glob.Below(beneath(q.start, tail(inner, part))))
	}
}

// laterBeneath does so for what is left of a query beneath a directory that its text does not name.
func (x *expansion) laterBeneath(q *query, dir string, left glob.States) {
	for _, text := range left.Texts() {
		x.later = append(x.later, later{beneath(glob.Quote(dir), "/"+text), q})
	}
}

// settle puts into the plan the patterns that may match something later, and warns of those that allow nothing.
func (x *expansion) settle() {
	b := x.b
	have := make(map[later]bool, len(x.later))
	for _, l := range x.later {
		p := Pattern{Text: l.text, Why: l.query.rule.why()}
		compiled := glob.Compile(l.text)
		if l.query.list.read() {
			b.unreadable = append(b.unreadable, compiled)
			p.Read, p.Hard = !b.hiddenWhole(compiled.Literal()), l.query.list == listCredential
		} else {
			p.Write = b.rootMeets(compiled)
		}
		if (p.Read || p.Write) && !have[l] {
			have[l] = true
			b.plan.Patterns = append(b.plan.Patterns, p)
		}
	}
	for _, a := range x.allows {
		b.tellPattern(a)
	}
}

// rootMeets reports whether a pattern may match something that can be created: whether a write root lies in its area or
// around it.
func (b *builder) rootMeets(p *glob.Pattern) bool {
	for _, n := range b.roots {
		if policy.Covers(n.path, p.Literal()) || !p.Below(n.path).Empty() {
			return true
		}
	}
	return false
}

// hiddenWhole reports whether a directory is hidden with all beneath it.
func (b *builder) hiddenWhole(dir string) bool {
	s := b.root.stateAt(dir)
	if !s.hidden || s.hard {
		return s.hidden
	}
	n := b.root.find(dir)
	return n == nil || !n.reopened()
}

// reopened reports whether an allow stands beneath n.
func (n *node) reopened() bool {
	for _, c := range n.children {
		if c.allow != nil || c.root != nil || c.keep != nil || c.reopened() {
			return true
		}
	}
	return false
}

// allowPattern is an entry of an allow list that is a pattern, with the locations that it allows.
type allowPattern struct {
	list    list
	rule    *rule
	matched *[]string
}

// tellPattern warns of an allow pattern that has no effect.
func (b *builder) tellPattern(a allowPattern) {
	if a.rule.refused {
		return // said already (settleReads)
	}
	if len(*a.matched) == 0 {
		what := "grants nothing; it counts for what exists at the start, and not through links (FS-55)"
		if a.list == listAllowRead {
			what = "allows nothing; it counts for what exists at the start, and not through links (FS-17)"
		}
		b.warnUseless(a.rule, "matches nothing that exists and "+what)
		return
	}
	for _, p := range *a.matched {
		if s := b.root.stateAt(p); !s.hidden && (a.list == listAllowRead || s.deny == nil) {
			return
		}
	}
	b.warnUseless(a.rule, "has no effect: everything that it matches is denied")
}

// DefaultWritePaths is policy.DefaultWritePaths with patterns taken for what they match: a deny pattern leaves out a
// directory of the home if it matches that or one above (FS-28). home is absolute, or empty when there is none.
func DefaultWritePaths(home string, rules policy.PathRules) []string {
	if home != "" {
		rules.DenyRead, rules.CredentialDeny = covering(home, rules.DenyRead), covering(home, rules.CredentialDeny)
	}
	return policy.DefaultWritePaths(home, rules)
}

// covering replaces each pattern by the names of what it matches on the way to the default write paths of a home.
func covering(home string, list []policy.PathRule) []policy.PathRule {
	var out []policy.PathRule
	for _, r := range list {
		if !r.Pattern {
			out = append(out, r)
			continue
		}
		at := strings.TrimSuffix(r.Anchor, "/")
		p := glob.Compile(glob.Quote(at) + r.Path[len(at):])
		for _, name := range policy.DefaultWritePaths(home, policy.PathRules{}) {
			if !policy.Covers(home, name) {
				continue
			}
			if top := shallowest(p, name); top != "" {
				out = append(out, policy.PathRule{Entry: r.Entry, Key: r.Key, Path: top})
			}
		}
	}
	return out
}

// shallowest is the first directory on the way to name, or name itself, that the pattern matches; else "".
func shallowest(p *glob.Pattern, name string) string {
	s := p.Below("/")
	for end := 1; end <= len(name); end++ {
		next := strings.IndexByte(name[end:]+"/", '/')
		var matches bool
		if s, matches = s.Step(name[end : end+next]); matches {
			return name[:end+next]
		}
		end += next
	}
	return ""
}
