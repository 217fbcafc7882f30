package fsview

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The statement of FS-30, FS-37 and FS-39 for names that do not exist.

// missing is a name that must not come to exist in a directory, in any letter case with fold.
type missing struct {
	dir, name string
	fold      bool
}

func (m missing) is(name string) bool {
	return m.name == name || m.fold && strings.EqualFold(m.name, name)
}

// absent notes a name that is not there. It counts in any letter case when it is the protected name itself.
func (s *statement) absent(list *[]missing, at, protected string) {
	if at != "" {
		*list = append(*list, missing{path.Dir(at), path.Base(at), protected != "" && strings.EqualFold(protected, path.Base(at))})
	}
}

var statedClaude = []string{"commands", "agents"}

func statedGit(in Input) []string {
	if in.AllowGitConfig {
		return []string{"hooks", "commondir"}
	}
	return []string{"hooks", "commondir", "config", "config.worktree"}
}

// absentNames notes those of the names that a directory does not hold.
func (s *statement) absentNames(dir string, names []string) {
	for _, name := range names {
		if s.tree.objects[join(dir, name)] == nil {
			s.absent(&s.create, join(dir, name), name)
		}
	}
}

// absentGit notes what a git directory lacks; a missing config counts in that of a start alone.
func (s *statement) absentGit(dir string, start bool, in Input) {
	names := statedGit(in)
	if !start {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "config" })
	}
	s.absentNames(dir, names)
}

// absentIn notes what a directory in which the search starts lacks.
func (s *statement) absentIn(start, as string, in Input) {
	if strings.EqualFold(as, ".claude") {
		s.absentNames(start, statedClaude)
		return
	}
	s.absentNames(start, append([]string{".vscode", ".idea", ".claude"}, statedFiles...))
	if strings.EqualFold(as, ".git") {
		s.absentGit(start, true, in)
	}
}

// mayCreate reports whether the caller could make names in a directory, whatever modes it changes.
func (s *statement) mayCreate(dir string) bool {
	return s.tree.uid == 0 || s.tree.objects[dir].uid == s.tree.uid
}

// compareAbsent asks both sides about names that are not there. Who judges knows a directory by what it is, so that a rule
// also holds at its other paths; beyond that no rule may be there that nobody asked for.
func compareAbsent(v *view, plan *Plan, s *statement) error {
	names := append(append(append([]string{}, fuzzNames...), ".CLAUDE", "Config", "commondir", ".idea", "agents"), statedFiles...)
	for _, dir := range v.tree.paths() {
		o := v.tree.objects[dir]
		if o.kind != 'd' || s.hidden(dir) || !s.writable(dir) {
			continue
		}
		for _, name := range names {
			if v.tree.objects[join(dir, name)] != nil {
				continue
			}
			here, object := false, false
			for _, a := range plan.Absent {
				if a.Write && (missing{"", a.Name, a.Fold}).is(name) {
					object = object || a.ID.Ino == o.ino
					here = here || a.Dir == dir
				}
			}
			exact, shown := false, false
			for _, m := range s.create {
				if m.is(name) && s.mayCreate(dir) {
					exact = exact || m.dir == dir
					shown = shown || v.tree.objects[m.dir] == o
				}
			}
			switch {
			case exact && !object:
				return fmt.Errorf("%s can be made in %s", name, dir)
			case here && !shown:
				return fmt.Errorf("%s cannot be made in %s", name, dir)
			}
		}
	}
	for _, m := range s.open {
		found := slices.ContainsFunc(plan.Absent, func(a Absent) bool { return a.Read && a.Dir == m.dir && a.Name == m.name })
		inTheWay := join(m.dir, m.name)
		if !found && !s.hidden(m.dir) && (v.tree.objects[inTheWay] == nil || !s.hidden(inTheWay)) {
			return fmt.Errorf("%s in %s could be read", m.name, m.dir)
		}
	}
	return keptInPlace(v, plan)
}

// keptInPlace finds rules about a directory that a command could put another one in place of.
func keptInPlace(v *view, plan *Plan) error {
	for _, a := range plan.Absent {
		switch o := v.tree.objects[a.Dir]; {
		case o == nil || o.kind != 'd' || a.ID.Ino != o.ino:
			return fmt.Errorf("%s: %q is not that directory", a.Path, a.Dir)
		case v.tree.objects[join(a.Dir, a.Name)] != nil && a.Write:
			return fmt.Errorf("%s: %q is there", a.Path, a.Name)
		case a.Why == "" || !a.Write && !a.Read:
			return fmt.Errorf("%s: a rule without effect or reason", a.Path)
		}
		for dir := a.Dir; dir != "/"; dir = path.Dir(dir) {
			if v.movable(dir) {
				return fmt.Errorf("%s: %s can be renamed", a.Path, dir)
			}
		}
	}
	return nil
}
