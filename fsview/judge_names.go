package fsview

import (
	"path"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// forbiddenNames are the names of a plan that must not be made, by path. A Guard finds them by the directory's identity, for
// which it has to be there.
type forbiddenNames struct {
	exact  map[string]*Absent
	folded map[string]*Absent // those that count in any letter case: the directory as it is, the name folded
	dirs   map[string]struct{}
}

func forbiddenNamesOf(list []Absent) forbiddenNames {
	n := forbiddenNames{exact: map[string]*Absent{}, folded: map[string]*Absent{}, dirs: map[string]struct{}{}}
	for i := range list {
		a := &list[i]
		if !a.Write {
			continue
		}
		set, key := n.exact, join(a.Dir, a.Name)
		if a.Fold {
			set, key = n.folded, join(a.Dir, foldName(a.Name))
			n.dirs[a.Dir] = struct{}{}
		}
		if set[key] == nil {
			set[key] = a
		}
	}
	return n
}

// find is the rule that forbids a name on the way to a path, or nil: who may not make a directory makes nothing in it.
func (n *forbiddenNames) find(location string) *Absent {
	for p := location; p != ""; p = above(p) {
		if a := n.exact[p]; a != nil {
			return a
		}
		dir := path.Dir(p)
		if _, folds := n.dirs[dir]; folds {
			if a := n.folded[join(dir, foldName(path.Base(p)))]; a != nil {
				return a
			}
		}
	}
	return nil
}

// judgeCreate judges the making of a name where no step stands: by the directory around it, and where that can be written
// by the rules about what does not exist (FS-10, FS-30, FS-55).
func (j *Judge) judgeCreate(location string) Judgement {
	dir := above(location)
	if dir == "" {
		dir = "/"
	}
	if v := j.judgeZone(j.covering(dir), location, AccessCreate); v.Denied {
		return v
	}
	if a := j.absent.find(location); a != nil {
		v := j.denied(a.Why, a.Path)
		v.Reason = "nothing of that name must come to exist there"
		if !policy.Covers(a.Path, location) {
			v.Reason = "with it " + v.Reason
		}
		return v
	}
	if j.guard == nil {
		return Judgement{}
	}
	for i := range j.guard.patterns {
		p := &j.guard.patterns[i]
		for at := location; p.Write && at != ""; at = above(at) {
			if p.glob.Match(at) && j.around(at) == zoneWritable {
				v := j.denied(p.Why, at)
				v.Reason = "nothing of a name that the pattern matches must come to exist there"
				return v
			}
		}
	}
	return j.judgeOpen(location)
}

// around is the zone of the directory that holds what lies at a path.
func (j *Judge) around(location string) zone {
	dir := above(location)
	if dir == "" {
		dir = "/"
	}
	return j.zone(j.covering(dir))
}
