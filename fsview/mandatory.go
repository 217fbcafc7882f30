package fsview

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// role says how the names in a directory are judged by the mandatory search.
type role uint8

const (
	plain  role = iota
	claude      // a .claude directory
)

// search looks for mandatory names (FS-35) in directories that can be written.
type search struct {
	b     *builder
	depth int
	seen  map[string]int // directories already listed, and how many levels from there; nil with a single start
}

// searchMandatory denies every mandatory name in the write roots, the working directory, the home and the enclosing
// repository, and those that exist beneath them, to the depth of FS-38.
func (b *builder) searchMandatory() error {
	s := search{b: b, depth: b.in.MandatoryDepth}
	for _, n := range b.roots {
		if name := b.protectedOnWay(n.path); name != "" {
			first(&n.deny, mandatoryRule(name))
		}
		if n.info.ID.Type.IsRegular() && isFold(n.name, ".git") {
			if err := s.gitFile(n.path); err != nil {
				return err
			}
		}
	}
	starts := b.searchStarts()
	if len(starts) > 1 {
		s.seen = make(map[string]int)
	}
	for _, dir := range starts {
		if err := s.start(dir, path.Base(dir)); err != nil {
			return err
		}
	}
	if len(b.roots) == 0 {
		return nil
	}
	if err := s.searchNamed(); err != nil {
		return err
	}
	return s.searchUnwritable(starts)
}

// start searches from dir, which may itself be a directory whose names count, under this name.
func (s *search) start(dir, name string) error {
	as := plain
	switch {
	case strings.Contains(strings.ToLower(dir)+"/", "/.git/modules/"):
		if err := s.modules(dir, 1); err != nil {
			return err
		}
	case isFold(name, ".claude"):
		as = claude
	case isFold(name, ".git"):
		if err := s.gitDir(dir, 0, true); err != nil {
			return err
		}
	}
	return s.list(dir, 0, as, nil)
}

// searchStarts are the directories where every name counts, deduplicated. They are writable by the lists, so that a
// command without write roots searches nothing (FS-36). In the default write paths, where programs keep logs and temporary
// files, only names that exist count (scratch).
func (b *builder) searchStarts() []string {
	var starts []string
	b.scratch = make(map[string]bool)
	have := make(map[string]bool)
	add := func(dir string) {
		delete(b.scratch, dir)
		if !have[dir] && b.root.stateAt(dir).writable() {
			have[dir] = true
			starts = append(starts, dir)
		}
	}
	for _, n := range b.roots {
		if n.outermost() && n.info.IsDir() {
			add(n.path)
			if n.root.quiet {
				b.scratch[n.path] = true
			}
		}
	}
	for _, dir := range []string{b.in.Cwd, b.in.Home} {
		if dir == "" {
			continue
		}
		loc := b.res.resolve(dir, true)
		if !loc.exists || !loc.info.IsDir() {
			continue
		}
		for _, at := range b.namesOf(loc.path) {
			add(at)
			if dir == b.in.Cwd {
				if repo := b.enclosingRepository(at); repo != "" {
					add(repo)
				}
			}
		}
	}
	return starts
}

// namesOf gives a directory and all directories at which mounts show it, or a part of it, again.
func (b *builder) namesOf(dir string) []string {
	list := []string{dir}
	if b.mounts == nil {
		return list
	}
	wholes, parts := b.mounts.others(dir)
	for _, p := range append(wholes, parts...) {
		if info, err := b.res.lstat(p); err == nil && info.IsDir() {
			list = append(list, p)
		}
	}
	return list
}

// outermost reports whether no other write root shows n as writable: there is none above, or a hidden directory lies
// between.
func (n *node) outermost() bool {
	between := false
	for p := n.parent; p != nil; p = p.parent {
		if p.root != nil && !between {
			return false
		}
		between = between || p.hide != nil || p.hard != nil
	}
	return true
}

// enclosingRepository is the nearest writable directory above dir that holds a .git, or "".
func (b *builder) enclosingRepository(dir string) string {
	for dir != "/" {
		dir = path.Dir(dir)
		if !b.root.stateAt(dir).writable() {
			return ""
		}
		if _, err := b.res.lstat(join(dir, ".git")); err == nil {
			return dir
		}
	}
	return ""
}

// found is what one listing showed beyond single names.
type found struct {
	head, objects, refs bool
	named               []string // names that count only in a repository
}

// list judges every name in dir, level directories beneath a start, and descends, also where a list forbids writing: a
// link there may lead to where it does not. have is what was read of dir already, or nil.
func (s *search) list(dir string, level int, as role, have *dirListing) error {
	left, every := s.depth-level, s.everyName(level, as)
	if level == 0 && s.b.scratch[dir] {
		every = nil
	}
	if s.seen != nil {
		if as == plain && level > 0 && s.seen[dir] >= left {
			return nil
		}
		s.seen[dir] = left
	}
	if have == nil {
		have = s.read(dir)
	}
	if have.err != nil {
		s.denyAbsentNames(dir, every, 0) // there or not
		return s.unlisted(dir, have.err)
	}
	entries := have.entries
	ahead := s.readAhead(dir, level, have)
	defer ahead.wait()
	var bare found
	dirsCount := level == 0 || level <= s.depth-2 // a listed directory may lie here
	var there present
	for i := range entries {
		e := &entries[i]
		there.mark(every, e.Name)
		if dir == "/" && (e.Name == "proc" || e.Name == "dev" || e.Name == "sys") {
			continue
		}
		if e.Name[0] == '.' && level < s.depth {
			if done, err := s.dotted(dir, e, level, dirsCount); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		} else if as == claude && isFold(e.Name, "commands", "agents") {
			s.protect(join(dir, e.Name), ".claude/"+strings.ToLower(e.Name))
			continue
		} else if dirsCount {
			bare.note(e)
		}
		if !s.descends(e, level) {
			continue
		}
		if err := s.list(join(dir, e.Name), level+1, plain, ahead.take(i)); err != nil {
			return err
		}
	}
	s.denyAbsentNames(dir, every, there)
	if bare.head && bare.objects && bare.refs {
		return s.repository(dir, &bare, level, false)
	}
	return nil
}

// everyName are the names that count in a directory whether they exist or not.
func (s *search) everyName(level int, as role) []string {
	switch {
	case as == claude && level <= 1: // of a start, or one itself
		return claudeNames[:]
	case as == plain && level == 0:
		return startNames[:]
	}
	return nil
}

// dotted judges a name that starts with a dot. done means that the name needs nothing more, not even a descent.
func (s *search) dotted(dir string, e *DirEntry, level int, dirsCount bool) (done bool, err error) {
	name := strings.ToLower(e.Name)
	full := join(dir, e.Name)
	switch name {
	case ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
		".mcp.json":
		s.protect(full, name)
		return true, nil
	case ".vscode", ".idea":
		if dirsCount {
			s.protect(full, name)
		}
		return true, nil
	case ".claude":
		switch {
		case e.Type == fs.ModeSymlink && dirsCount:
			s.protectLinked(full, level == 0, ".claude/commands", ".claude/agents")
		case e.Type == fs.ModeDir && dirsCount:
			return true, s.list(full, level+1, claude, nil)
		case level == 0:
			s.protect(full, ".claude/commands") // a file in the way (FS-30)
		}
		return true, nil
	case ".git":
		return true, s.dotGit(full, e, level, dirsCount)
	}
	return false, nil
}

// dotGit judges a .git: the file of a worktree or submodule, a repository, or a link to one (FS-37, FS-39).
func (s *search) dotGit(full string, e *DirEntry, level int, dirsCount bool) error {
	switch {
	case e.Type == fs.ModeSymlink:
		if dirsCount {
			var names []string
			for _, name := range s.b.repositoryNames() {
				names = append(names, ".git/"+name)
			}
			s.protectLinked(full, level == 0, names...)
			if loc := s.b.res.resolve(full, true); loc.exists && loc.info.ID.Type.IsRegular() {
				return s.gitFile(loc.path)
			}
		}
	case e.Type.IsRegular():
		s.protect(full, ".git")
		return s.gitFile(full)
	case e.Type != fs.ModeDir:
		s.protect(full, ".git")
	case dirsCount:
		return s.gitDir(full, level, level == 0)
	}
	return nil
}

// unlisted decides what a directory that cannot be listed means (FS-39, FS-40).
func (s *search) unlisted(dir string, err error) error {
	if absent(err) {
		return nil // removed since its parent was listed
	}
	if !errors.Is(err, syscall.EACCES) {
		return &SearchError{Path: dir, Err: err}
	}
	info, statErr := s.b.res.lstat(dir)
	if statErr != nil {
		// The directory above does not let the caller look: the same question there.
		dir = path.Dir(dir)
		if s.b.res.tree.CanSearch(dir) == nil {
			return nil // a file system that refuses the caller whatever modes are set
		}
		if info, statErr = s.b.res.lstat(dir); statErr != nil {
			return &SearchError{Path: dir, Err: statErr}
		}
	}
	if info.UID == s.b.in.UID {
		s.b.denyWriteAt(dir, info, &rule{key: "directory that cannot be searched", number: "FS-39", mandatory: true})
	}
	return nil
}

func mandatoryRule(name string) *rule {
	return &rule{key: "protected name " + name, number: "FS-35", mandatory: true, quiet: true}
}

// isFold reports whether name is one of the lower-case words, whatever its case.
func isFold(name string, words ...string) bool {
	for _, w := range words {
		if len(name) == len(w) && strings.EqualFold(name, w) {
			return true
		}
	}
	return false
}

// protectedOnWay is the mandatory name that the location p is or lies beneath, or "": the names of a repository in a .git
// and in whatever else looks like a git directory, as a bare repository and that of a submodule do; the file .git of a
// worktree or submodule (FS-37).
func (b *builder) protectedOnWay(p string) string {
	before := ""
	for end, rest := 0, p[1:]; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		dir := p[:end]
		end += 1 + len(name)
		switch name = strings.ToLower(name); name {
		case ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
			".mcp.json", ".vscode", ".idea":
			return name
		case "commands", "agents":
			if before == claudeName {
				return claudeName + "/" + name
			}
		case "hooks", "commondir", "config.worktree", "config":
			if slices.Contains(b.repositoryNames(), name) && (before == ".git" || b.looksLikeGit(dir)) {
				return ".git/" + name
			}
		case ".git":
			if info, err := b.res.lstat(p[:end]); err == nil && !info.IsDir() && !info.IsLink() {
				return name
			}
		}
		before = name
	}
	return ""
}
