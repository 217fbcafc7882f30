package fsview

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
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

// gitDir judges the content of a .git directory. In that of a start every name counts (FS-37); a nested one counts only if
// it has a HEAD (FS-39).
func (s *search) gitDir(dir string, level int, every bool) error {
	entries, err := again(dir, s.b.res.tree.ReadDir)
	if err != nil {
		return s.unlisted(dir, err)
	}
	var f found
	for i := range entries {
		f.note(&entries[i])
	}
	if !every && !f.head {
		return nil
	}
	return s.repository(dir, &f, level, every)
}

// repository denies what a command could use to make a host's git run something: hooks, configuration, and the file
// that moves both elsewhere; for submodules too. What is not there must not come to be.
func (s *search) repository(dir string, f *found, level int, every bool) error {
	s.denyAbsentGit(dir, f.named, every)
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
		return s.repository(dir, &f, level, false)
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

// gitFileLimit is how much of a file that names a git directory is read. Paths are no longer than this (PATH_MAX).
const gitFileLimit = 4096

// gitFile protects the repository that a .git file leads to (gitrepository-layout(5)): the working tree's own git
// directory, and the common one that commondir in it names. Both may lie anywhere. What is written in such a file is not
// trusted: it can only add denies, of names that count in what looks like a git directory.
func (s *search) gitFile(full string) error {
	line, err := s.pathIn(full, path.Dir(full), "gitdir:")
	if line == "" || err != nil {
		return err
	}
	dir := s.gitDirectory(line)
	if dir == "" {
		return nil
	}
	if line, err = s.pathIn(join(dir, "commondir"), dir, ""); line == "" || err != nil {
		return err
	}
	s.gitDirectory(line)
	return nil
}

// pathIn reads the one path that a file holds after a prefix, and makes it absolute. It is empty when there is none.
func (s *search) pathIn(file, from, prefix string) (string, error) {
	read := func(p string) ([]byte, error) { return s.b.res.tree.ReadFile(p, gitFileLimit) }
	text, err := again(file, read)
	switch {
	case absent(err), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EINVAL):
		return "", nil // git of the same user cannot read it either
	case err != nil:
		return "", &SearchError{Path: file, Err: err}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line, found := strings.CutPrefix(line, prefix)
	line = strings.TrimSpace(line)
	if !found || line == "" || strings.IndexByte(line, 0) >= 0 {
		return "", nil
	}
	if !path.IsAbs(line) {
		line = from + "/" + line
	}
	return line, nil
}

// gitDirectory protects the names that count in a git directory, if p is one, and gives its location. Where no write
// root covers it, that changes nothing.
func (s *search) gitDirectory(p string) string {
	loc := s.b.res.walk("/", strings.Split(p, "/"), true) // as the kernel takes "..", links first
	if !loc.exists || !loc.info.IsDir() || loc.path == "/" {
		return ""
	}
	if _, err := s.b.res.lstat(join(loc.path, "HEAD")); err != nil {
		return ""
	}
	for _, name := range s.b.repositoryNames() {
		s.protect(join(loc.path, name), ".git/"+name)
	}
	return loc.path
}

// looksLikeGit reports whether a directory holds what git wants of a git directory (is_git_directory of git's setup.c): a
// HEAD, and objects and refs or the commondir that stands for them.
func (b *builder) looksLikeGit(dir string) bool {
	there := func(name string) bool {
		_, err := b.res.lstat(join(dir, name))
		return err == nil
	}
	return there("HEAD") && (there("commondir") || there("objects") && there("refs"))
}
