package fsview

import (
	"path"
	"slices"
)

// startNames are the names that must not come to exist in a directory where the mandatory search starts (FS-35, FS-37).
// Without a .claude, it is the missing parent of its commands and agents (FS-30). A .git is not among them: where there
// is none, nothing under it is denied.
var startNames = [...]string{
	".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc", ".mcp.json",
	".vscode", ".idea", claudeName,
}

const claudeName = ".claude"

// claudeNames are those that count in a .claude.
var claudeNames = [...]string{"commands", "agents"}

// present are the names of startNames or claudeNames that a listing showed in exactly this spelling. A name in other
// letters says nothing of the one that programs read.
type present uint32

// mark notes an entry of a listing.
func (p *present) mark(names []string, entry string) {
	if i := slices.Index(names, entry); i >= 0 {
		*p |= 1 << i
	}
}

// denyAbsentNames denies the making of the names that are not there.
func (s *search) denyAbsentNames(dir string, names []string, there present) {
	for i, name := range names {
		if there&(1<<i) != 0 {
			continue
		}
		below, label := "", name
		switch {
		case name == claudeName:
			below = "/" + claudeNames[0]
			label = claudeName + below
		case len(names) == len(claudeNames):
			label = claudeName + "/" + name
		}
		s.b.denyCreation(location{path: join(dir, name) + below, parent: dir}, mandatoryRule(label), true)
	}
}

// repositoryNames are those that count in a git directory. A command that makes one of them decides what the host's git
// runs: hooks are programs, the configuration names programs (core.fsmonitor, core.hooksPath), and commondir moves both
// elsewhere.
func (b *builder) repositoryNames() []string {
	if b.in.AllowGitConfig {
		return gitNames[:2]
	}
	return gitNames[:]
}

var gitNames = [...]string{"hooks", "commondir", "config.worktree", "config"}

// denyAbsentGit denies the making of what a git directory lacks, given the names that count in it and are there. A missing
// config counts only with every: a repository beneath a start is protected as far as it exists (FS-39), and only a broken
// one has none.
func (s *search) denyAbsentGit(dir string, there []string, every bool) {
	for _, name := range s.b.repositoryNames() {
		if slices.Contains(there, name) || (name == "config" && !every) {
			continue
		}
		s.b.denyCreation(location{path: join(dir, name), parent: dir}, mandatoryRule(".git/"+name), true)
	}
}

// protect denies writing to a name, at its location, and holds a link there. What does not exist there must not come to
// exist.
func (s *search) protect(full, name string) {
	why := mandatoryRule(name)
	loc := s.b.res.resolve(full, true)
	s.b.hold(loc, why)
	switch {
	case loc.exists:
		s.b.denyWriteAt(loc.path, loc.info, why)
	case loc.blocked != nil:
		s.b.denyWriteAt(loc.ancestor, Info{}, why) // FS-11
	default:
		d := absentDeny{loc: loc}
		_, missing, _ := d.place()
		s.b.denyCreation(loc, why, isFold(missing, path.Base(name)))
	}
}

// protectLinked holds the link at full, and denies those of the names that exist behind it; with every, also the making of
// the others. Each name is written as in FS-35, with the link's own name first.
func (s *search) protectLinked(full string, every bool, names ...string) {
	s.b.hold(location{held: []string{full}}, mandatoryRule(names[0]))
	for _, name := range names {
		p := join(full, path.Base(name))
		if loc := s.b.res.resolve(p, true); every || loc.exists || loc.blocked != nil {
			s.protect(p, name)
		}
	}
}
