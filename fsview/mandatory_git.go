package fsview

import (
	"io/fs"
)

// note records a name that only counts in a repository.
func (f *found) note(e *DirEntry) {
	switch len(e.Name) {
	case 4: // HEAD, refs
		f.head = f.head || isFold(e.Name, "head")
		f.refs = f.refs || isFold(e.Name, "refs")
	case 7: // objects, modules
		f.objects = f.objects || isFold(e.Name, "objects")
		if isFold(e.Name, "modules") && e.Type == fs.ModeDir {
			f.named = append(f.named, e.Name)
		}
	case 5, 6, 9, 15: // hooks, config, commondir, config.worktree
		if isFold(e.Name, "hooks", "config", "commondir", "config.worktree") {
			f.named = append(f.named, e.Name)
		}
	}
}

// gitDir judges the content of a .git directory. A nested one counts only if it has a HEAD (FS-39).
func (s *search) gitDir(dir string, level int, needHead bool) error {
	entries, err := again(dir, s.b.res.tree.ReadDir)
	if err != nil {
		return s.unlisted(dir, err)
	}
	var f found
	for i := range entries {
		f.note(&entries[i])
	}
	if needHead && !f.head {
		return nil
	}
	return s.repository(dir, &f, level)
}

// repository denies what a command could use to make a host's git run something: hooks, configuration, and the file
// that moves both elsewhere; for submodules too.
func (s *search) repository(dir string, f *found, level int) error {
	for _, name := range f.named {
		full := join(dir, name)
		switch {
		case isFold(name, "hooks"):
			s.protect(full, ".git/hooks")
		case isFold(name, "commondir"):
			s.protect(full, ".git/commondir")
		case isFold(name, "modules"):
			if err := s.modules(full, level+1); err != nil {
				return err
			}
		case !s.b.in.AllowGitConfig:
			s.protect(full, ".git/config")
		}
	}
	return nil
}

// modules looks for the repositories of submodules. A submodule's name may hold slashes.
func (s *search) modules(dir string, level int) error {
	if level > s.depth {
		return nil
	}
	entries, err := again(dir, s.b.res.tree.ReadDir)
	if err != nil {
		return s.unlisted(dir, err)
	}
	var f found
	for i := range entries {
		f.note(&entries[i])
	}
	if f.head {
		return s.repository(dir, &f, level)
	}
	for i := range entries {
		if entries[i].Type == fs.ModeDir {
			if err := s.modules(join(dir, entries[i].Name), level+1); err != nil {
				return err
			}
		}
	}
	return nil
}
