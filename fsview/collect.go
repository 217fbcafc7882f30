package fsview

import (
	"fmt"
	"path"

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

// collect turns every list into rules at locations.
func (b *builder) collect() error {
	rules := &b.in.Rules
	for _, r := range rules.CredentialDeny {
		if err := b.collectDenyRead(r, &rule{key: r.Key, entry: r.Entry, number: "FS-57"}, true); err != nil {
			return err
		}
	}
	for _, r := range rules.DenyRead {
		if err := b.collectDenyRead(r, &rule{key: r.Key, entry: r.Entry, number: "FS-22"}, false); err != nil {
			return err
		}
	}
	for _, r := range rules.DenyWrite {
		if err := b.collectDenyWrite(r, &rule{key: r.Key, entry: r.Entry, number: "FS-26"}); err != nil {
			return err
		}
	}
	for _, r := range rules.AllowRead {
		b.collectAllowRead(r)
	}
	for _, r := range rules.AllowWrite {
		b.collectAllowWrite(r, &rule{key: r.Key, entry: r.Entry, number: "FS-26"})
	}
	return b.collectOwn()
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
		own := &rule{key: "srt's own file", number: "FS-51", quiet: true}
		loc := b.res.resolve(p, true)
		b.hold(loc, own)
		switch {
		case loc.exists:
			b.denyWriteAt(loc.path, loc.info, own)
		case loc.blocked != nil && loc.ancestor != "/":
			b.denyWriteAt(loc.ancestor, Info{}, own)
		}
	}
	for _, p := range b.in.Keep {
		if loc := b.res.resolve(p, true); loc.exists && !loc.info.IsDir() {
			n := b.node(loc.path, loc.info)
			first(&n.keep, &rule{key: "srt's own file", number: "FS-23", quiet: true})
		}
	}
	if b.in.HideSSHConfigDir {
		if loc := b.res.resolve("/etc/ssh/ssh_config.d", true); loc.exists && loc.info.IsDir() && loc.path != "/" {
			n := b.node(loc.path, loc.info)
			first(&n.empty, &rule{key: "/etc/ssh/ssh_config.d", number: "FS-24", quiet: true})
		}
	}
	return b.collectKernelMounts()
}

func (b *builder) collectKernelMounts() error {
	for _, p := range b.in.KernelMounts {
		loc := b.res.resolve(p, true)
		why := &rule{key: "kernel mount", number: "FS-47", quiet: true, here: true}
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

// collectDenyRead places one read deny. hard means that no list lifts it.
func (b *builder) collectDenyRead(r policy.PathRule, why *rule, hard bool) error {
	if r.Pattern {
		return patternError(r, why)
	}
	loc := b.res.resolve(r.Path, true)
	b.hold(loc, why)
	at, info := loc.path, loc.info
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
	case !loc.exists:
		b.pending = append(b.pending, absentDeny{rule: why, loc: loc, read: true, hard: hard})
		return nil
	case at == "/" && r.Path != "/":
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

// collectDenyWrite places one write deny.
func (b *builder) collectDenyWrite(r policy.PathRule, why *rule) error {
	if r.Pattern {
		return patternError(r, why)
	}
	loc := b.res.resolve(r.Path, true)
	b.hold(loc, why)
	switch {
	case loc.special:
		b.note("%s: %q is never writable on the host (FS-47)", why.label(), loc.path)
	case loc.blocked != nil && loc.ancestor != "/":
		b.denyWriteAt(loc.ancestor, Info{}, why) // its mode included (FS-11)
	case loc.exists:
		b.denyWriteAt(loc.path, loc.info, why)
	case loc.file != "":
		b.denyWriteAt(loc.file, Info{}, why) // a file in the way is denied itself (FS-30)
	default:
		b.pending = append(b.pending, absentDeny{rule: why, loc: loc})
	}
	return nil
}

// collectAllowRead places one allowRead: the name it spells, not what a link there leads to (FS-9).
func (b *builder) collectAllowRead(r policy.PathRule) {
	why := &rule{key: r.Key, entry: r.Entry, number: "FS-22"}
	if r.Pattern {
		b.warnUseless(why, "is a pattern, which allowRead does not support; it allows nothing, list the paths")
		return
	}
	loc := b.res.resolve(r.Path, false)
	g := grant{rule: why, path: loc.path, gone: !loc.exists}
	switch {
	case loc.special:
		b.note("%s: entries beneath /proc and /dev have no effect (FS-47)", why.label())
		return
	case loc.blocked != nil:
		b.warnUseless(why, fmt.Sprintf("cannot be inspected (%v) and allows nothing", loc.blocked))
		return
	case !loc.exists:
	case loc.info.IsLink():
		n := b.node(loc.path, loc.info)
		target := b.res.resolve(r.Path, true)
		if n.source == nil && n.allow == nil {
			n.allow, n.source = why, &target
			b.links = append(b.links, n)
		}
	default:
		first(&b.node(loc.path, loc.info).allow, why)
	}
	b.grants = append(b.grants, g)
}

// collectAllowWrite grants one write root, if it is there and is its own spelling (FS-8, FS-10).
func (b *builder) collectAllowWrite(r policy.PathRule, why *rule) {
	if r.Pattern {
		b.warnUseless(why, "is a pattern, which allowWrite does not support; it grants nothing, list the paths")
		return
	}
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
	n := b.node(loc.path, loc.info)
	if n.root == nil {
		b.roots = append(b.roots, n)
	}
	first(&n.root, why)
	if !why.quiet {
		b.grants = append(b.grants, grant{rule: why, path: loc.path, write: true})
	}
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

func patternError(r policy.PathRule, why *rule) error {
	return &EntryError{Entry: why.label(), Path: r.Path, Reason: ErrPattern,
		Advice: `list the paths one by one, or mark a name with such characters as {"path": ..., "literal": true}`}
}

func uninspectedError(why *rule, loc location) error {
	return &EntryError{Entry: why.label(), Path: loc.path, Reason: ErrUninspected, Err: loc.blocked,
		Advice: "make it readable, or take the entry out"}
}
