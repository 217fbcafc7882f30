package fsview

import (
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// absentDeny is a deny of something that does not exist, which may already be enforced by other rules or by the disk.
type absentDeny struct {
	rule *rule
	loc  location
	read bool // of reading it once it is there (FS-10), else of creating it (FS-30)
	hard bool // with read: no list lifts it (FS-57)
	fold bool // the first missing name counts in any letter case (FS-38)
}

// place is the deepest directory that exists on the way to the denied location, and the first name that is missing in it
// or is in the way there. ok is false when there is no such name.
func (d *absentDeny) place() (dir, name string, ok bool) {
	if d.loc.file != "" {
		return path.Dir(d.loc.file), path.Base(d.loc.file), true
	}
	if dir = d.loc.parent; dir == "" || !policy.Covers(dir, d.loc.path) {
		return "", "", false
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(tail(dir, d.loc.path), "/"), "/")
	return dir, name, name != ""
}

// denyCreation denies the making of an absent location; a file in the way is denied itself (FS-30).
func (b *builder) denyCreation(loc location, why *rule, fold bool) {
	switch {
	case loc.special, loc.loop: // replaced (FS-47); nothing can be made through links that lead in a circle
	case loc.file != "":
		b.denyWriteAt(loc.file, Info{}, why)
	default:
		b.pending = append(b.pending, absentDeny{rule: why, loc: loc, fold: fold})
	}
}

// settleAbsent turns the denies of what does not exist into rules of the plan, where neither the disk nor another rule
// enforces them already (FS-10, FS-30).
func (b *builder) settleAbsent() error {
	seen := make(map[absentKey]int, len(b.pending))
	for i := range b.pending {
		d := &b.pending[i]
		s := b.root.stateAt(d.loc.path)
		switch {
		case s.hidden, d.loc.impossible:
			continue
		case d.read && d.loc.file != "" && d.loc.path == d.loc.file:
			continue // its way goes up again from a file (x/../y), so it leads nowhere; the file itself is not denied
		case d.read:
		case !s.writable(), d.loc.loop:
			continue
		case d.loc.blocked != nil:
			return uninspectedError(d.rule, d.loc)
		case !b.canCreate(d.loc.parent):
			b.holdParent(d.loc.parent, d.rule)
			continue
		}
		if err := b.addAbsent(d, seen); err != nil {
			return err
		}
	}
	sort.SliceStable(b.plan.Absent, func(i, j int) bool { return b.plan.Absent[i].Path < b.plan.Absent[j].Path })
	return nil
}

// absentKey tells rules of a plan apart. One that counts in any letter case is never merged with one that does not.
type absentKey struct {
	path string
	fold bool
}

// directoryNames are those of FS-35 that are directories.
var directoryNames = [...]string{".vscode", ".idea", "commands", "agents", "hooks"}

// addAbsent writes one rule, and keeps the directory that it is about in place: who judges it goes by that directory
// (FS-41).
func (b *builder) addAbsent(d *absentDeny, seen map[absentKey]int) error {
	dir, name, ok := d.place()
	if !ok {
		return nil
	}
	info, err := b.res.lstat(dir)
	if err != nil {
		return &SearchError{Path: dir, Err: err}
	}
	first(&b.node(dir, info).held, d.rule)
	key := absentKey{d.loc.path, d.fold}
	i, have := seen[key]
	if !have {
		i = len(b.plan.Absent)
		seen[key] = i
		b.plan.Absent = append(b.plan.Absent, Absent{Path: d.loc.path, Dir: dir, ID: info.ID, Name: name, Fold: d.fold,
			Mandatory: d.rule.mandatory, Directory: d.rule.mandatory && isFold(path.Base(d.loc.path), directoryNames[:]...), Why: d.rule.why()})
	}
	a := &b.plan.Absent[i]
	a.Write = a.Write || !d.read
	a.Read = a.Read || d.read
	a.Hard = a.Hard || d.hard
	return nil
}

// listAllowed tells the guard what re-opens a part of what a read rule denies (FS-22): the names of allowRead, and
// what can be written.
func (b *builder) listAllowed() error {
	for _, g := range b.grants {
		if !g.write && !g.rule.refused {
			b.plan.AllowRead = append(b.plan.AllowRead, g.path)
		}
	}
	b.plan.AllowRead = slices.DeleteFunc(b.plan.AllowRead, b.unshown)
	for _, n := range b.roots {
		switch {
		case !n.reopens():
		case n.info.IsDir():
			b.plan.AllowRead = append(b.plan.AllowRead, n.path)
		default:
			b.plan.AllowFiles = append(b.plan.AllowFiles, n.path)
		}
	}
	for _, p := range b.in.Keep {
		if loc := b.res.resolve(p, true); loc.exists && !loc.info.IsDir() {
			b.plan.Keep = append(b.plan.Keep, loc.path)
		}
	}
	for _, list := range []*[]string{&b.plan.AllowRead, &b.plan.AllowFiles, &b.plan.Keep} {
		b.addOtherPaths(list)
		sort.Strings(*list)
	}
	return nil
}

// addOtherPaths adds the paths at which mounts show the same: patterns are judged there too (judgeLater).
func (b *builder) addOtherPaths(list *[]string) {
	if b.mounts == nil {
		return
	}
	for _, p := range *list {
		*list = append(*list, b.mounts.wholes(p)...)
	}
}

// unshown reports whether a location is that of a re-allowed link which shows nothing.
func (b *builder) unshown(location string) bool {
	n := b.root.find(location)
	return n != nil && n.unshown
}
