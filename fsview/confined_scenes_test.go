package fsview

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// TestConfinedScenes: in random scenes a plan without mounts lets a command change and read what it may with mounts, and answers
// with the same errors; or it is refused, exactly where a mount would show something else in a place that can be written to.
func TestConfinedScenes(t *testing.T) {
	series, data := rand.NewChaCha8([32]byte{'c', 'o', 'n', 'f'}), make([]byte, 200)
	held, refused := 0, 0
	for range sceneCount / 2 {
		series.Read(data)
		tree, in := scene(t, data)
		nameSettings(&in)
		plan, err := Build(tree, in)
		if err != nil {
			t.Fatalf("%v\n%s", err, describe(tree, in))
		}
		v, err := apply(tree, plan)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Confine(plan, ConfineInput{Tree: tree, UID: in.UID})
		if fault := v.refusalFault(plan, err); fault != "" {
			t.Fatalf("%s\n%s\nplan:\n%s", fault, describe(tree, in), listing(plan))
		}
		if err != nil {
			refused++
			continue
		}
		held++
		if err := v.heldAlike(plan, c); err != nil {
			t.Fatalf("%v\n%s\nplan:\n%s\nreading: %v", err, describe(tree, in), listing(plan), c.ReadRules())
		}
	}
	if held < 500 || refused < 500 {
		t.Errorf("%d scenes held and %d refused: they say little", held, refused)
	}
}

// nameSettings has every rule of a scene be an entry of the settings.
func nameSettings(in *Input) {
	r := &in.Rules
	for _, list := range [...][]policy.PathRule{r.DenyRead, r.AllowRead, r.AllowWrite, r.DenyWrite, r.CredentialDeny, in.Masks} {
		for i := range list {
			list[i].Key = "filesystem." + list[i].Key
		}
	}
}

// refusalFault says where a refusal is not what the executed plan shows.
func (v *view) refusalFault(plan *Plan, err error) string {
	want := map[string]bool{}
	for _, s := range plan.Steps {
		inWritable := slices.ContainsFunc(v.tree.paths(), func(p string) bool { // somewhere on the way
			around := v.at(p)
			return p != s.Path && policy.Covers(p, s.Path) && around.kind == onHost && around.writable
		})
		if s.Kind == Mask || inWritable && (s.Kind == HideDir || s.Kind == HideFile && s.Unwritable == "") {
			want[s.Path] = true
		}
	}
	var ce *ConfineError
	switch {
	case err == nil && len(want) == 0:
		return ""
	case err == nil:
		return fmt.Sprintf("held, although %v would have to show something else", want)
	case !errors.As(err, &ce):
		return fmt.Sprintf("%T", err)
	case len(want) == 0 && strings.Contains(ce.Refusals[0].Why, "the very directory"):
		return v.sameFault(ce.Refusals[0])
	case len(ce.Refusals) != len(want):
		return fmt.Sprintf("%v, want %v", err, want)
	}
	for _, r := range ce.Refusals {
		if !want[r.Path] || r.Setting == "" || r.Why == "" {
			return fmt.Sprintf("refused %+v, want %v", r, want)
		}
	}
	return ""
}

// sameFault says that a refused directory shows nowhere else, if so: then it could be hidden.
func (v *view) sameFault(r Refusal) string {
	if !v.showsElsewhere(v.tree.objects[r.Path]) {
		return fmt.Sprintf("refused %+v", r)
	}
	return ""
}

// heldAlike compares a plan without mounts with what an executor of it shows.
func (v *view) heldAlike(plan *Plan, c *Confined) error {
	j, full := c.Judge(), NewJudge(plan)
	for _, p := range v.tree.paths() {
		if v.tree.objects[p].kind == 'l' {
			if err := v.changesAlike(full, j, p, AccessRemove); err != nil {
				return err
			}
			continue
		}
		for a := AccessWrite; a <= AccessRemove; a++ {
			if err := v.changesAlike(full, j, p, a); err != nil {
				return err
			}
		}
		if j.linked(p) == nil {
			if err := v.readsAlike(c, j, p); err != nil {
				return err
			}
		}
		// A name that is still to be made, in what is there.
		if v.tree.objects[p].kind == 'd' && v.tree.objects[join(p, "new")] == nil {
			for _, name := range []string{"new", ".vscode", "HEAD"} {
				if v.tree.objects[join(p, name)] == nil {
					if err := v.changesAlike(full, j, join(p, name), AccessCreate); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// changesAlike compares the answer to one change.
func (v *view) changesAlike(full *Judge, j *ConfinedJudge, p string, a Access) error {
	why, errno := j.Change(p, a)
	want := full.Judge(p, a)
	switch {
	case want.Denied != (errno != 0):
		return fmt.Errorf("%s %s: %w, and %+v with mounts", a, p, errno, want)
	case errno == 0:
		return nil
	case why != want.Rule && j.linked(p) == nil:
		return fmt.Errorf("%s %s: refused by %q, and by %q with mounts", a, p, why, want.Rule)
	}
	if allowed := v.errnos(j, p, a); !allowed[errno] {
		return fmt.Errorf("%s %s: %w, want one of %v", a, p, errno, allowed)
	}
	return nil
}

// errnos are the errors with which the mounts of an executed plan would refuse a change (mount(2), rename(2), unlink(2)).
func (v *view) errnos(j *ConfinedJudge, p string, a Access) map[syscall.Errno]bool {
	s, around := v.at(p), v.at(path.Dir(p))
	_, mounted := v.mounts[p]
	where := s
	if a == AccessRemove || a == AccessCreate && !mounted {
		where = around
	}
	step := j.judge.covering(where.mount)
	switch {
	case j.linked(p) != nil:
		return map[syscall.Errno]bool{syscall.EROFS: true} // what a link shows is read-only, by whichever name
	case p == "/":
		return map[syscall.Errno]bool{syscall.EBUSY: a == AccessRemove, syscall.EROFS: a != AccessRemove}
	case where.kind == onHost && !where.writable:
		return map[syscall.Errno]bool{syscall.EROFS: true}
	case where.kind == onHost && a == AccessRemove && (mounted || v.pinned[p]):
		return map[syscall.Errno]bool{syscall.EBUSY: true}
	case where.kind == onHost && a == AccessCreate:
		return map[syscall.Errno]bool{syscall.EROFS: true} // by the broker, in every mode
	case where.kind == onHost:
		return map[syscall.Errno]bool{syscall.EACCES: true} // opening is denied
	}
	hides := step != nil && step.conceals()
	return map[syscall.Errno]bool{syscall.EACCES: hides, syscall.EROFS: !hides}
}

// readsAlike compares what Landlock grants with what the mounts show.
func (v *view) readsAlike(c *Confined, j *ConfinedJudge, p string) error {
	s := v.at(p)
	o := v.tree.objects[p]
	hides := j.conceals(p)
	rights := v.granted(c.ReadRules(), p)
	if o.kind != 'd' {
		rights &^= ReadList // means nothing there
	}
	_, denied := j.Open(p)
	_, guarded := j.Guard.Open(p)
	switch {
	case denied != (hides || guarded):
		return fmt.Errorf("open %s: denied %v", p, denied)
	case hides && s.kind == onHost:
		return fmt.Errorf("%s shows with mounts", p)
	case hides && rights != 0 && v.showsElsewhere(o):
		return nil // rules are of objects: what shows by one path can be read by the others as well, and is no secret
	case hides && rights != 0:
		return fmt.Errorf("%s: %s is granted, and nothing shows with mounts", p, rights)
	case hides:
		return nil
	case o.kind == 'f' && c.isMark(v.tree, o) && !slices.Contains(c.plan.Keep, p):
		return nil // by another name it is hidden, and by each name it is the same to Landlock (FS-45)
	case o.kind == 'f' && rights&(ReadFile|ReadExecute) != ReadFile|ReadExecute:
		return fmt.Errorf("%s: %s is granted, and it shows with mounts", p, rights)
	}
	if o.kind != 'd' || rights&ReadList != 0 {
		return nil
	}
	for _, m := range c.marks {
		if m.dir && v.leadsTo(p, m.path) {
			return nil // no right to list that would not hold for a hidden directory as well
		}
	}
	return fmt.Errorf("%s cannot be listed", p)
}

// showsElsewhere tells whether an object shows at some path.
func (v *view) showsElsewhere(o *fakeObject) bool {
	for _, p := range v.tree.paths() {
		if s := v.at(p); s.kind == onHost && v.tree.objects[s.source] == o {
			return true
		}
	}
	return false
}

// isMark tells whether an object is one that must not be read, by whatever path.
func (c *Confined) isMark(tree *fakeTree, o *fakeObject) bool {
	return slices.ContainsFunc(c.marks, func(m mark) bool { return tree.objects[m.path] == o })
}

// leadsTo tells whether a directory, by one of its paths, is above a location.
func (v *view) leadsTo(dir, location string) bool {
	for at := location; ; at = path.Dir(at) {
		if v.tree.objects[at] == v.tree.objects[dir] {
			return true
		}
		if at == "/" {
			return false
		}
	}
}

// granted are the rights of rules at a path, as the kernel finds them: a rule is of an object, whatever its path, and holds for
// what is reached through it (landlock(7)).
func (v *view) granted(rules []ReadRule, p string) (rights ReadRight) {
	for at := p; ; at = path.Dir(at) {
		for _, r := range rules {
			if o := v.tree.objects[r.Path]; o != nil && o == v.tree.objects[at] {
				rights |= r.Right
			}
		}
		if at == "/" {
			return rights
		}
	}
}
