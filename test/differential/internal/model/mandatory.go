package model

import (
	"path"
	"slices"
	"strings"
)

// The names of FS-35.
var (
	mandatoryFiles = strings.Fields(".gitconfig .gitmodules .bashrc .bash_profile .zshrc .zprofile .profile .ripgreprc .mcp.json")
	mandatoryDirs  = []string{".vscode", ".idea"}
)

// gitNames are the names in a repository that count, those of git's other doors included.
func (r *rules) gitNames() []string {
	names := []string{"hooks", "commondir"}
	if !r.pol.AllowGitConfig {
		names = append(names, "config", "config.worktree")
	}
	return names
}

func (r *rules) searchDepth() int {
	if r.pol.SearchDepth == 0 {
		return 3
	}
	return r.pol.SearchDepth
}

// mandatory adds the denies of FS-35 to FS-39.
func (r *rules) mandatory() {
	for _, w := range r.roots {
		if r.insideMandatory(w) {
			r.denyWrite = append(r.denyWrite, w)
		}
	}
	listed := slices.Clone(r.denyWrite) // protected names do not keep others from being searched for
	searched := func(s string) bool {
		o := r.root.at(s)
		return o != nil && o.Kind == Dir && coversAny(r.roots, s) && !coversAny(listed, s) && !r.hidden(s, true)
	}
	r.noGit = r.root.at(Cwd+"/.git") == nil
	r.every(Cwd)
	r.through(searched)
	starts := append([]string{Cwd, Home}, r.roots...)
	for _, dir := range upwards(Cwd)[1:] {
		if !searched(dir) {
			break
		}
		if r.root.at(dir).Kids[".git"] != nil {
			starts = append(starts, dir)
			break
		}
	}
	var nested []string
	for _, s := range starts {
		switch {
		case !searched(s):
		case r.insideAnother(s):
			nested = append(nested, s)
		default:
			r.search(s, r.root.at(s))
		}
	}
	r.searchNested(nested)
}

// insideAnother reports whether s is a write root within another one, and nothing else that the search starts from.
func (r *rules) insideAnother(s string) bool {
	if s == Cwd || s == Home || !slices.Contains(r.roots, s) {
		return false
	}
	for _, w := range r.roots {
		if w == s || !covers(w, s) {
			continue
		}
		shown := true
		for _, p := range upwards(s)[1:] {
			shown = shown && (!covers(w, p) || !r.hidden(p, true))
		}
		if shown {
			return true
		}
	}
	return false
}

// searchNested looks whether it matters that each write root is searched to its own depth, also one within another. The
// chapter can be read both ways.
func (r *rules) searchNested(starts []string) {
	before, held := len(r.denyWrite), len(r.held)
	for _, s := range starts {
		r.search(s, r.root.at(s))
	}
	if len(r.held) > held {
		r.err = ErrUnstated
	}
	for _, loc := range r.denyWrite[before:] {
		if !slices.Contains(r.denyWrite[:before], loc) {
			r.err = ErrUnstated
		}
	}
}

// insideMandatory reports whether a write root is a mandatory name or lies in one.
func (r *rules) insideMandatory(loc string) bool {
	before := ""
	for _, name := range split(strings.ToLower(loc)) {
		if slices.Contains(mandatoryFiles, name) || slices.Contains(mandatoryDirs, name) ||
			(before == ".claude" && (name == "commands" || name == "agents")) ||
			(before == ".git" && slices.Contains(r.gitNames(), name)) {
			return true
		}
		before = name
	}
	return before == ".git" && r.root.at(loc).Kind == File
}

// through is FS-35 for the home and the repository around the working directory where nothing is searched for: a name there
// counts wherever it leads. Where no write root covers that, a deny changes nothing.
func (r *rules) through(searched func(dir string) bool) {
	dirs := []string{Home}
	for _, dir := range upwards(Cwd) {
		if r.root.at(dir).Kids[".git"] != nil {
			dirs = append(dirs, dir)
			break
		}
	}
	for _, dir := range dirs {
		if !searched(dir) && dir != Cwd {
			r.every(dir)
		}
	}
}

// every denies each name in a directory, existing or not; in the working directory that is FS-37.
func (r *rules) every(dir string) {
	add := func(names ...string) {
		for _, n := range names {
			r.protect(join(dir, n))
		}
	}
	add(mandatoryFiles...)
	add(mandatoryDirs...)
	add(".claude/commands", ".claude/agents")
	git := follow(r.root, join(dir, ".git"), true, plain)
	switch {
	case git.obj == nil: // so that git init works
	case git.obj.Kind == Dir:
		for _, name := range r.gitNames() {
			add(".git/" + name)
		}
	default:
		add(".git")
	}
}

// protect is a write deny of a mandatory name, existing or not.
func (r *rules) protect(text string) {
	r.denyName(text, false, func(loc string, exists bool) {
		r.denyWrite = append(r.denyWrite, loc)
	})
}

// search adds the names that exist beneath a start (FS-38).
func (r *rules) search(start string, o *Object) {
	n := r.searchDepth()
	o.each(start, func(loc string, o *Object) {
		names := split(trim(start, loc))
		for _, above := range names[:len(names)-1] {
			// What is protected needs no search, and a repository's inner tree is none of these places.
			if fold := strings.ToLower(above); above == "node_modules" || slices.Contains(mandatoryFiles, fold) || slices.Contains(mandatoryDirs, fold) {
				return
			}
		}
		name, above := strings.ToLower(names[len(names)-1]), len(names)-1
		in := strings.ToLower(path.Base(path.Dir(loc)))
		dirs := above // directories above a listed directory or a repository
		if in == ".claude" && !slices.Contains(mandatoryDirs, name) {
			dirs = max(above-1, 0)
		}
		deep := dirs > 0 && dirs > n-2
		switch {
		case slices.Contains(mandatoryFiles, name):
			if above == 0 || above <= n-1 {
				r.protect(loc)
			}
		case slices.Contains(mandatoryDirs, name) && !deep, in == ".claude" && (name == "commands" || name == "agents") && !deep:
			r.protect(loc)
		case in == ".git" && above == 0 && slices.Contains(r.gitNames(), name):
			r.protect(loc)
		case name == ".claude" && o.Kind == Link && !deep:
			r.hold([]string{loc})
			r.protectBehind(loc, "commands", "agents")
		case name == ".git":
			r.repository(loc, o, above)
		}
	})
}

// repository is FS-39, and FS-37 for a file: one such beneath the working directory is among git's other doors.
func (r *rules) repository(loc string, o *Object, above int) {
	n := r.searchDepth()
	switch {
	case o.Kind == Dir && (above == 0 || above <= n-2):
		if o.Kids["HEAD"] == nil {
			if above > 0 {
				return
			}
		} else {
			r.protect(loc + "/hooks")
		}
		for _, name := range r.gitNames() {
			if o.Kids[name] != nil {
				r.protect(loc + "/" + name)
			}
		}
	case o.Kind == Link && (above == 0 || above <= n-2):
		r.hold([]string{loc})
		r.protectBehind(loc, r.gitNames()...)
	case o.Kind == File && above <= n-1:
		r.protect(loc)
	}
}

// protectBehind denies the names that exist behind a link.
func (r *rules) protectBehind(link string, names ...string) {
	for _, name := range names {
		if at := follow(r.root, link+"/"+name, true, plain); at.obj != nil {
			r.protect(link + "/" + name)
		}
	}
}

// mandatoryLater says that a name which comes to be during the run is one that a supervisor may refuse, although FS-38
// speaks only of what exists at the start ("Limits": names judged at access time where supervised).
func (r *rules) mandatoryLater(loc string) bool {
	if r.noGit && covers(Cwd+"/.git", loc) {
		return false // git init works (FS-37)
	}
	before := ""
	for _, name := range split(strings.ToLower(loc)) {
		switch {
		case slices.Contains(mandatoryFiles, name), slices.Contains(mandatoryDirs, name), name == ".claude",
			before == ".claude" && (name == "commands" || name == "agents"),
			before == ".git" && slices.Contains([]string{"hooks", "commondir", "config", "config.worktree", "modules"}, name):
			return true
		}
		before = name
	}
	return false
}
