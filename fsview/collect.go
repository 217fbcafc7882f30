package fsview

import (
	"fmt"
	"path"
	"slices"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// grant is an allow entry whose effect is checked when all rules are known.
type grant struct {
	rule  *rule
	path  string // location
	write bool
	gone  bool // an allowRead of something that does not exist
}

// label names an entry for the person, with control characters quoted.
func (r *rule) label() string {
	if r.entry == "" {
		return r.key
	}
	return fmt.Sprintf("%s (%q)", r.key, r.entry)
}

// collect turns every list into rules at locations. The deny lists come first: whether an allow adds anything is asked of
// what they have made.
func (b *builder) collect() error {
	rules, x := &b.in.Rules, &expansion{b: b}
	for l, entries := range [...][]policy.PathRule{listCredential: rules.CredentialDeny, listDenyRead: rules.DenyRead,
		listDenyWrite: rules.DenyWrite} {
		for _, r := range entries {
			why := &rule{key: r.Key, entry: r.Entry, number: listNumbers[l]}
			place := b.collectDeny
			if r.Pattern {
				place = x.add
			}
			if err := place(r, why, list(l)); err != nil {
				return err
			}
		}
	}
	if err := x.run(true); err != nil {
		return err
	}
	if err := b.collectAllows(x); err != nil {
		return err
	}
	if err := b.collectOwn(); err != nil {
		return err
	}
	b.settleReads()
	x.settle()
	return nil
}

// collectAllows places the allow lists. Where no list denies reading, a pattern that allows it is not even looked for.
func (b *builder) collectAllows(x *expansion) error {
	rules := &b.in.Rules
	for _, r := range rules.AllowRead {
		why := &rule{key: r.Key, entry: r.Entry, number: listNumbers[listAllowRead]}
		switch {
		case !r.Pattern:
			b.collectAllowRead(r, why)
		case len(rules.DenyRead) > 0:
			if err := x.add(r, why, listAllowRead); err != nil {
				return err
			}
		}
	}
	for _, r := range rules.AllowWrite {
		why := &rule{key: r.Key, entry: r.Entry, number: listNumbers[listAllowWrite]}
		if !r.Pattern {
			b.collectAllowWrite(r, why)
		} else if err := x.add(r, why, listAllowWrite); err != nil {
			return err
		}
	}
	return x.run(false)
}

// collectOwn adds what srt itself asks for.
func (b *builder) collectOwn() error {
	home := b.in.Home
	if home != "" {
		home = b.res.resolve(home, true).path
	}
	for _, p := range b.in.ExtraWrite {
		inHome := home != "" && policy.Covers(home, b.res.resolve(p, true).path)
		b.collectAllowWrite(policy.PathRule{Path: p},
			&rule{key: "default write path " + p, number: "FS-28", quiet: true, keepHide: inHome})
	}
	for _, p := range b.in.OwnFiles {
		if err := b.collectOwnFile(p); err != nil {
			return err
		}
	}
	for _, p := range b.in.Keep {
		if loc := b.res.resolve(p, true); loc.exists && !loc.info.IsDir() {
			n := b.node(loc.path, loc.info)
			first(&n.keep, &rule{key: "srt's own file", number: "FS-23", quiet: true})
		}
	}
	if b.in.HideSSHConfigDir {
		if loc := b.res.resolve(RuleSSHConfigDir, true); loc.exists && loc.info.IsDir() && loc.path != "/" {
			n := b.node(loc.path, loc.info)
			first(&n.empty, &rule{key: RuleSSHConfigDir, number: "FS-24", quiet: true})
		}
	}
	return b.collectKernelMounts()
}

func (b *builder) collectKernelMounts() error {
	for _, p := range b.in.KernelMounts {
		loc := b.res.resolve(p, true)
		why := &rule{key: keyKernelMount, number: "FS-47", quiet: true, here: true}
		switch {
		case loc.exists && loc.path != "/":
			first(&b.node(loc.path, loc.info).hard, why)
		case loc.blocked != nil && loc.ancestor != "/":
			first(&b.node(loc.ancestor, Info{}).hard, why)
		case loc.blocked != nil:
			return &SearchError{Path: loc.path, Err: loc.blocked}
		}
	}
	return nil
}

// collectDeny places one entry of a deny list that is a name.
func (b *builder) collectDeny(r policy.PathRule, why *rule, l list) error {
	return b.denyAt(r.Path, b.res.resolve(r.Path, true), why, l, false)
}

// denyAt denies what lies at a location, to which text leads. found says that a walk has come upon text, so that it is
// gone, or a dangling link, if there is nothing (FS-18).
func (b *builder) denyAt(text string, loc location, why *rule, l list, found bool) error {
	if !found || loc.exists || loc.blocked != nil {
		b.hold(loc, why)
	}
	if found && loc.path == "/" && text != "/" {
		loc.path, loc.info = path.Dir(b.lastLink(loc)), Info{} // FS-18
	}
	if l == listDenyWrite {
		return b.denyWriting(loc, why, found)
	}
	at, info, hard := loc.path, loc.info, l == listCredential
	switch {
	case loc.special:
		return b.hideReplaced(at, why, hard)
	case loc.blocked != nil:
		if loc.ancestor == "/" {
			return uninspectedError(why, loc)
		}
		// Nothing re-opens the stand-in: what is beneath cannot be told apart (FS-11).
		b.note("%s: %q cannot be inspected (%v), %q is hidden in its place (FS-11)", why.label(), at, loc.blocked,
			loc.ancestor)
		at, info, hard = loc.ancestor, Info{}, true
	case !loc.exists && found:
		return nil
	case !loc.exists:
		b.pending = append(b.pending, absentDeny{rule: why, loc: loc, read: true, hard: hard})
		return nil
	case at == "/" && text != "/":
		at, info = path.Dir(b.lastLink(loc)), Info{} // FS-7
	}
	n := b.node(at, info)
	if hard {
		first(&n.hard, why)
	} else {
		first(&n.hide, why)
	}
	return nil
}

// lastLink is the last symbolic link on the way to a location.
func (b *builder) lastLink(loc location) string {
	for i := len(loc.held) - 1; i >= 0; i-- {
		if info, err := b.res.lstat(loc.held[i]); err == nil && info.IsLink() {
			return loc.held[i]
		}
	}
	return "/"
}

// denyWriting denies writing at a location (FS-26).
func (b *builder) denyWriting(loc location, why *rule, found bool) error {
	switch {
	case loc.special:
		b.note("%s: %q is never writable on the host (FS-47)", why.label(), loc.path)
	case loc.blocked != nil && loc.ancestor != "/":
		b.denyWriteAt(loc.ancestor, Info{}, why) // its mode included (FS-11)
	case loc.exists:
		b.denyWriteAt(loc.path, loc.info, why)
	case found && loc.blocked == nil:
	case loc.file != "":
		b.denyWriteAt(loc.file, Info{}, why) // a file in the way is denied itself (FS-30)
	default:
		b.pending = append(b.pending, absentDeny{rule: why, loc: loc})
	}
	return nil
}

// collectAllowRead places one allowRead: the name it spells, not what a link there leads to (FS-9).
func (b *builder) collectAllowRead(r policy.PathRule, why *rule) {
	loc := b.res.resolve(r.Path, false)
	switch {
	case loc.special:
		b.note("%s: entries beneath /proc and /dev have no effect (FS-47)", why.label())
		return
	case loc.blocked != nil:
		b.warnUseless(why, fmt.Sprintf("cannot be inspected (%v) and allows nothing", loc.blocked))
		return
	}
	b.allowReading(r.Path, loc, why, false)
	b.grants = append(b.grants, grant{rule: why, path: loc.path, gone: !loc.exists})
}

// collectAllowWrite grants one write root, if it is there and is its own spelling (FS-8, FS-10).
func (b *builder) collectAllowWrite(r policy.PathRule, why *rule) {
	loc := b.res.resolve(r.Path, true)
	switch {
	case loc.special || policy.Covers("/sys", loc.path):
		if !why.quiet {
			b.note("%s: write grants beneath /proc, /dev and /sys have no effect (FS-47)", why.label())
		}
		return
	case loc.blocked != nil:
		b.warnUseless(why, fmt.Sprintf("cannot be inspected (%v) and grants nothing", loc.blocked))
		return
	case !policy.Covers(r.Path, loc.path):
		b.warnUseless(why, fmt.Sprintf("leads through a link to %q and grants nothing; name the target itself",
			loc.path))
		return
	case !loc.exists:
		b.warnUseless(why, "does not exist and grants nothing; create it before the start")
		return
	}
	b.grantWriteAt(loc, why)
	if !why.quiet {
		b.grants = append(b.grants, grant{rule: why, path: loc.path, write: true})
	}
}

// grantWriteAt makes what exists at a location a write root.
func (b *builder) grantWriteAt(loc location, why *rule) {
	n := b.node(loc.path, loc.info)
	if n.root == nil {
		b.roots = append(b.roots, n)
	}
	first(&n.root, why)
}

// allowFound allows one match of a pattern, or the name that it also is, if that is there (FS-15, FS-16).
func (b *builder) allowFound(text string, loc location, q *query) {
	switch {
	case loc.special, loc.blocked != nil, !loc.exists:
		return
	case q.list == listAllowRead:
		loc.held = slices.Concat(q.held, loc.held)
		b.allowReading(text, loc, q.rule, true)
	case text != loc.path, policy.Covers("/sys", loc.path):
		return // through a link, or without effect (FS-8, FS-47)
	default:
		// One within another root adds nothing but where it is hidden, or a protected name (FS-26).
		if s := b.root.stateAt(loc.path); s.root == nil || s.hidden || b.protectedOnWay(loc.path) != "" {
			b.grantWriteAt(loc, q.rule)
		}
	}
	*q.matched = append(*q.matched, loc.path)
}

func (b *builder) warnUseless(why *rule, text string) {
	if !why.quiet {
		b.warn("%s %s", why.label(), text)
	}
}

// node is the node of a location. info is the object there, zero when it has yet to be asked for.
func (b *builder) node(at string, info Info) *node {
	n := b.root.at(at)
	if n.known {
		return n
	}
	if info == (Info{}) {
		var err error
		if info, err = b.res.lstat(at); err != nil {
			return n // emit asks again and fails
		}
	}
	n.info, n.known = info, true
	return n
}

func (b *builder) denyWriteAt(at string, info Info, why *rule) {
	first(&b.node(at, info).deny, why)
}

// hold keeps the links on the way to a protected location where they are (FS-42).
func (b *builder) hold(loc location, why *rule) {
	for _, p := range loc.held {
		first(&b.root.at(p).held, why)
	}
}

// first sets *slot unless a rule is there already.
func first(slot **rule, r *rule) {
	if *slot == nil {
		*slot = r
	}
}

func uninspectedError(why *rule, loc location) error {
	return &EntryError{Entry: why.label(), Path: loc.path, Reason: ErrUninspected, Err: loc.blocked,
		Advice: "make it readable, or take the entry out"}
}
