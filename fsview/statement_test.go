package fsview

import (
	"path"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// statement says FS-22, FS-26 and FS-35 for single locations, by going through every rule every time. It shares no code
// with the planner but policy.Covers. Trees that it judges hold no object that cannot be inspected, and neither /proc,
// /dev nor /sys.
type statement struct {
	tree       *fakeTree
	credential []string // locations
	denyRead   []string
	allowRead  []string // locations that are not links
	linkAllow  []string // locations of re-allowed links
	roots      []string
	denyWrite  []string
	keep       []string
	held       []string  // links on the way to a deny
	masks      []string  // locations of files that show something else
	create     []missing // names that must not be made
	open       []missing // names that must not be opened once they are there
	mounted    bool      // what mounts show again counts
}

// follow resolves names from dir. When the way ends before the last name, ok is false and the location is that of the
// file in the way, if there is one. links collects the links met.
func (f *fakeTree) follow(dir string, names []string, links *[]string) (loc string, ok bool) {
	if len(*links) > maxLinks {
		return "", false
	}
	for i, name := range names {
		switch name {
		case "", ".":
			continue
		case "..":
			dir = path.Dir(dir)
			continue
		}
		next := join(dir, name)
		o := f.objects[next]
		if o == nil {
			f.missing = next
			return "", false
		}
		if o.kind == 'l' {
			*links = append(*links, next)
			from := dir
			if strings.HasPrefix(o.target, "/") {
				from = "/"
			}
			if next, ok = f.follow(from, strings.Split(o.target, "/"), links); !ok {
				f.up = f.up || slices.Contains(names[i+1:], "..")
				return next, false
			}
		}
		dir = next
		f.up = f.objects[dir].kind != 'd' && slices.Contains(names[i+1:], "..")
		if f.objects[dir].kind != 'd' && strings.Trim(strings.Join(names[i+1:], ""), ".") != "" {
			return dir, false
		}
		if f.objects[dir].kind != 'd' && slices.Contains(names[i+1:], "..") {
			return dir, false
		}
	}
	return dir, true
}

func (f *fakeTree) real(p string) (loc string, links []string, ok bool) {
	f.missing, f.up = "", false
	loc, ok = f.follow("/", strings.Split(p, "/"), &links)
	return loc, links, ok
}

// stateOf makes the statement of an input.
func stateOf(tree *fakeTree, in Input) *statement {
	s := &statement{tree: tree}
	place := func(list *[]string, rules []policy.PathRule) {
		for _, r := range rules {
			loc, links, ok := tree.real(r.Path)
			s.held = append(s.held, links...)
			switch {
			case ok && loc == "/" && r.Path != "/" && list != &s.denyWrite:
				*list = append(*list, path.Dir(links[len(links)-1]))
			case ok:
				*list = append(*list, loc)
			case loc != "" && list == &s.denyWrite:
				*list = append(*list, loc)
			case list == &s.denyWrite:
				s.absent(&s.create, tree.missing, "")
			case loc != "" && tree.up:
			case loc != "":
				s.absent(&s.open, loc, "")
			default:
				s.absent(&s.open, tree.missing, "")
			}
		}
	}
	place(&s.credential, in.Rules.CredentialDeny)
	place(&s.denyRead, in.Rules.DenyRead)
	place(&s.denyWrite, in.Rules.DenyWrite)
	for _, p := range in.OwnFiles {
		place(&s.denyWrite, []policy.PathRule{{Path: p}})
	}
	for _, r := range in.Rules.AllowWrite {
		if loc, _, ok := tree.real(r.Path); ok && policy.Covers(r.Path, loc) {
			s.roots = append(s.roots, loc)
		}
	}
	for _, p := range in.Keep {
		if loc, _, ok := tree.real(p); ok && tree.objects[loc].kind != 'd' {
			s.keep = append(s.keep, loc)
		}
	}
	s.placeReads(in)
	s.placeMasks(in) // what cannot be masked is hidden whatever a grant says
	s.mandatory(in)
	s.mounted = true
	return s
}

func depthOf(p string) int { return len(strings.FieldsFunc(p, func(r rune) bool { return r == '/' })) }

// deepest is the depth of the deepest of list that covers p, or -1.
func deepest(list []string, p string) int {
	best := -1
	for _, l := range list {
		if policy.Covers(l, p) {
			best = max(best, depthOf(l))
		}
	}
	return best
}

// coveredBy is deepest, where `/` leaves itself and the links in it alone.
func (s *statement) coveredBy(list []string, p string) int {
	best := deepest(list, p)
	if best == 0 && (p == "/" || s.tree.objects["/"+strings.Split(p, "/")[1]].kind == 'l') {
		return -1
	}
	return best
}

func (s *statement) hiddenButForKeep(p string) bool {
	if s.hiddenAgain(p) || s.coveredBy(s.credential, p) >= 0 {
		return true
	}
	deny := s.coveredBy(s.denyRead, p)
	if deny < 0 {
		return false
	}
	allow := deepest(s.allowRead, p)
	if deny == depthOf(p) && s.tree.objects[p].kind != 'd' {
		return allow < deny // the denied file itself: only its own allowRead counts
	}
	return max(allow, deepest(s.roots, p)) < deny
}

func (s *statement) hidden(p string) bool {
	return s.hiddenButForKeep(p) && !slices.Contains(s.keep, p)
}

func (s *statement) writable(p string) bool {
	return !s.hiddenButForKeep(p) && deepest(s.roots, p) >= 0 && deepest(s.denyWrite, p) < 0 && !s.covered(p, s.denyWrite)
}

// linkTarget is what a re-allowed link shows at its own name, or "" when the name stays hidden (FS-22).
func (s *statement) linkTarget(link string) string {
	all := append(append([]string{}, s.denyRead...), s.credential...)
	target, _, ok := s.tree.real(link)
	parent := path.Dir(link)
	if !ok || s.coveredBy(s.credential, parent) >= 0 || deepest(all, target) != deepest(all, parent) ||
		deepest(s.credential, target) >= 0 || target == "/" || s.hiddenAgain(parent) {
		return ""
	}
	for p := range s.tree.objects {
		if policy.Covers(target, p) && s.hiddenAgain(p) {
			return ""
		}
	}
	if d := deepest(all, parent); d == 0 { // `/` denied: the target must not be outside what that hides
		if s.tree.objects["/"+strings.Split(target, "/")[1]].kind == 'l' {
			return ""
		}
	} else if ancestor(parent, d) != ancestor(target, d) {
		return ""
	}
	for _, m := range s.masks {
		for p := range s.tree.objects {
			if policy.Covers(target, p) && (p == m || s.shownAgain(p, []string{m})) {
				return ""
			}
		}
	}
	for _, deny := range all {
		if policy.Covers(target, deny) || (deny == "/" && depthOf(target) == 1) {
			return ""
		}
	}
	return target
}

// ancestor is the location of depth d that covers p.
func ancestor(p string, d int) string {
	for depthOf(p) > d {
		p = path.Dir(p)
	}
	return p
}

var statedFiles = strings.Fields(".gitconfig .gitmodules .bashrc .bash_profile .zshrc .zprofile .profile .ripgreprc .mcp.json")

// named reports whether a path is or lies beneath a protected name (FS-35).
func named(p string, in Input) bool {
	words := strings.Split(strings.ToLower(p), "/")
	for i, w := range words {
		pair := words[max(i-1, 0)] + "/" + w
		if slices.Contains(statedFiles, w) || w == ".vscode" || w == ".idea" || pair == ".claude/commands" ||
			pair == ".claude/agents" || pairs(pair, statedGit(in)) {
			return true
		}
	}
	return false
}

// mandatory adds the locations of FS-35 to FS-39 to the write denies.
func (s *statement) mandatory(in Input) {
	for _, r := range s.roots {
		if named(r, in) || strings.EqualFold(path.Base(r), ".git") && s.tree.objects[r].kind != 'd' {
			s.denyWrite = append(s.denyWrite, r)
		}
	}
	var found []string
	starts := s.renamed(in, &found)
	for _, start := range s.starts(in) {
		starts = append(starts, [2]string{start, path.Base(start)})
	}
	s.namesThrough(in, starts, &found)
	for _, start := range starts {
		for p := range s.tree.objects {
			if p != start[0] && policy.Covers(start[0], p) {
				found = append(found, s.judge(start[0], start[1], p, in)...)
			}
		}
	}
	for _, start := range starts {
		s.absentIn(start[0], start[1], in)
	}
	for _, p := range found {
		loc, links, ok := s.tree.real(p)
		s.held = append(s.held, links...)
		switch {
		case ok, loc != "":
			s.denyWrite = append(s.denyWrite, loc)
		default:
			s.absent(&s.create, s.tree.missing, path.Base(p))
		}
	}
}

func (s *statement) starts(in Input) []string {
	var starts []string
	isDir := func(p string) bool { return s.tree.objects[p].kind == 'd' && s.writable(p) }
	for _, r := range s.roots {
		outer := true
		for _, above := range s.roots {
			if above == r || !policy.Covers(above, r) {
				continue
			}
			between := false
			for _, d := range append(append([]string{}, s.denyRead...), s.credential...) {
				if d == "/" && !slices.Contains(s.allowRead, "/") && !slices.Contains(s.roots, "/") || d == "/" && slices.Contains(s.credential, "/") {
					d = ancestor(r, 1)
				}
				between = between || (d != above && d != r && policy.Covers(above, d) && policy.Covers(d, r))
			}
			outer = outer && between
		}
		if outer && isDir(r) {
			starts = append(starts, r)
		}
	}
	for _, p := range []string{in.Cwd, in.Home} {
		loc, _, ok := s.tree.real(p)
		if !ok || p == "" || s.tree.objects[loc].kind != 'd' {
			continue
		}
		for _, at := range s.tree.paths() {
			isPlace := at == loc || (s.tree.disks != nil && at != "/" && s.tree.on[at] != s.tree.on[path.Dir(at)]) || s.tree.objects[at] == s.tree.objects[loc]
			if (at != loc && !s.shownAgain(at, []string{loc})) || !isPlace {
				continue
			}
			if isDir(at) {
				starts = append(starts, at)
			}
			for p == in.Cwd && at != "/" && s.tree.objects[at].kind == 'd' {
				if at = path.Dir(at); !s.writable(at) {
					break
				}
				if s.tree.objects[join(at, ".git")] != nil {
					starts = append(starts, at)
					break
				}
			}
		}
	}
	return starts
}

// judge gives the mandatory names at p, which lies beneath start, a directory that is called as.
func (s *statement) judge(start, as, p string, in Input) []string {
	words := strings.Split(strings.TrimPrefix(strings.TrimPrefix(p, start), "/"), "/")
	for i, w := range words[:len(words)-1] {
		w = strings.ToLower(w)
		before := strings.ToLower(as)
		if i > 0 {
			before = strings.ToLower(words[i-1])
		}
		// Not searched, or protected with all beneath already.
		if words[i] == "node_modules" || (w == ".git" && i < len(words)-2) || slices.Contains(statedFiles, w) ||
			w == ".vscode" || w == ".idea" || (before == ".claude" && (w == "commands" || w == "agents")) {
			return nil
		}
	}
	name := strings.ToLower(words[len(words)-1])
	above, depth := len(words)-1, in.MandatoryDepth
	in2 := strings.ToLower(path.Base(path.Dir(p))) // the directory p lies in, which may be the start itself
	if path.Dir(p) == start {
		in2 = strings.ToLower(as)
	}
	aboveDir := max(above-1, 0)
	reached := func(n int) bool { return n == 0 || n <= depth-2 }
	o := s.tree.objects[p]
	switch {
	case name == ".git" && o.kind == 'd' && (in2 != ".git" || path.Dir(p) == start):
		_, head := s.tree.objects[p+"/HEAD"]
		if reached(above) && (above == 0 || head) {
			s.absentGit(p, above == 0, in)
		}
	case name == ".claude" && o.kind == 'd' && above == 0:
		s.absentNames(p, statedClaude)
	case name == ".claude" && o.kind == 'f' && above == 0:
		return []string{p}
	case in2 == ".git" && above > 0:
		_, head := s.tree.objects[path.Dir(p)+"/HEAD"]
		if (name == "hooks" || (name == "config" && !in.AllowGitConfig)) && reached(aboveDir) && (aboveDir == 0 || head) {
			return []string{p}
		}
	case in2 == ".git" && (name == "hooks" || (name == "config" && !in.AllowGitConfig)):
		return []string{p}
	case in2 == ".claude" && (name == "commands" || name == "agents"):
		if reached(aboveDir) {
			return []string{p}
		}
	case slices.Contains(statedFiles, name), name == ".git" && o.kind != 'd' && o.kind != 'l':
		if above <= depth-1 {
			return []string{p}
		}
	case name == ".vscode" || name == ".idea":
		if reached(above) {
			return []string{p}
		}
	case o.kind == 'l' && (name == ".git" || name == ".claude") && reached(above):
		s.held = append(s.held, p)
		var list []string
		for _, child := range map[string][]string{".git": statedGit(in), ".claude": {"commands", "agents"}}[name] {
			if _, _, ok := s.tree.real(p + "/" + child); ok || above == 0 {
				list = append(list, p+"/"+child)
			}
		}
		return list
	}
	return nil
}
