package fsview

import (
	"errors"
	"path"
	"slices"
	"syscall"
)

// searchUnwritable protects what the names of the working directory, the home and the enclosing repository lead to from
// those that cannot be written themselves: a link there may lead into a write root, and so may a mount and the file .git of
// a worktree or submodule (FS-35, FS-37). Each name is looked up rather than the directory listed, which may be a large home.
func (s *search) searchUnwritable(starts []string) error {
	dirs := make([]string, 0, 3)
	for _, dir := range []string{s.b.in.Cwd, s.b.in.Home} {
		if dir == "" {
			continue
		}
		if loc := s.b.res.resolve(dir, true); loc.exists && loc.info.IsDir() {
			dirs = append(dirs, loc.path)
			if dir == s.b.in.Cwd {
				dirs = append(dirs, s.b.repositoryAbove(loc.path)...)
			}
		}
	}
	for i, dir := range dirs {
		if slices.Contains(starts, dir) || slices.Contains(dirs[:i], dir) {
			continue
		}
		if err := s.unwritable(dir); err != nil {
			return err
		}
	}
	return nil
}

// repositoryAbove is the nearest directory above dir that holds a .git, unless dir itself does.
func (b *builder) repositoryAbove(dir string) []string {
	for {
		if _, err := b.res.lstat(join(dir, ".git")); err == nil {
			return []string{dir}
		}
		if dir == "/" {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// unwritable judges the names that count in a directory that cannot be written.
func (s *search) unwritable(dir string) error {
	for _, name := range startNames {
		full := join(dir, name)
		info, err := s.b.res.lstat(full)
		switch {
		case absent(err), errors.Is(err, syscall.EACCES): // programs of the same user do not find it either
		case err != nil:
			return &SearchError{Path: full, Err: err}
		case name == claudeName && info.IsDir():
			for _, name := range claudeNames {
				s.protect(join(full, name), claudeName+"/"+name)
			}
		case name == claudeName && info.IsLink():
			s.protectLinked(full, true, claudeName+"/"+claudeNames[0], claudeName+"/"+claudeNames[1])
		default:
			s.protect(full, name)
		}
	}
	full := join(dir, ".git")
	info, err := s.b.res.lstat(full)
	switch {
	case absent(err), errors.Is(err, syscall.EACCES):
		return nil
	case err != nil:
		return &SearchError{Path: full, Err: err}
	}
	return s.dotGit(full, &DirEntry{Name: ".git", Type: info.ID.Type}, 0, true)
}
