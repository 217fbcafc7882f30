package fsview

import (
	"path"
	"slices"
)

// The statement of FS-35 and FS-37 for names in directories that cannot be written: they count wherever they lead.

func pairs(pair string, gitNames []string) bool {
	return path.Dir(pair) == ".git" && slices.Contains(gitNames, path.Base(pair))
}

// namesThrough adds the names in the working directory, the home and the nearest repository above, where those are no starts.
func (s *statement) namesThrough(in Input, starts [][2]string, found *[]string) {
	var dirs []string
	if loc, _, ok := s.tree.real(in.Cwd); ok && s.tree.objects[loc].kind == 'd' {
		dirs = append(dirs, loc)
		for at := loc; ; at = path.Dir(at) {
			if s.tree.objects[join(at, ".git")] != nil {
				dirs = append(dirs, at)
				break
			}
			if at == "/" {
				break
			}
		}
	}
	if loc, _, ok := s.tree.real(in.Home); ok && in.Home != "" && s.tree.objects[loc].kind == 'd' {
		dirs = append(dirs, loc)
	}
	for _, dir := range dirs {
		if slices.ContainsFunc(starts, func(start [2]string) bool { return start[0] == dir }) {
			continue
		}
		for _, name := range append([]string{".vscode", ".idea"}, statedFiles...) {
			if s.tree.objects[join(dir, name)] != nil {
				*found = append(*found, join(dir, name))
			}
		}
		if o := s.tree.objects[join(dir, ".claude")]; o != nil {
			*found = append(*found, join(dir, ".claude/commands"), join(dir, ".claude/agents"))
		}
		switch o := s.tree.objects[join(dir, ".git")]; {
		case o == nil:
		case o.kind == 'f':
			*found = append(*found, join(dir, ".git"))
		case o.kind == 'd':
			s.absentGit(join(dir, ".git"), true, in)
			fallthrough
		default:
			for _, name := range statedGit(in) {
				if p := join(dir, ".git/"+name); o.kind == 'l' || s.tree.objects[p] != nil {
					*found = append(*found, p)
				}
			}
		}
	}
}
