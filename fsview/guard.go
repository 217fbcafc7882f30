package fsview

import (
	"strings"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// Guard judges what no mount can: names that do not exist when a command starts (FS-10, FS-30, FS-55). It is pure and
// immutable, and safe for concurrent use. Whoever asks it performs the call itself, on the very directory that was
// judged.
type Guard struct {
	exact, folded           map[nameIn]string // why, of names that must not be created
	exactNames, foldedNames map[string]struct{}
	patterns                []guardPattern
	absent                  []Absent // those that must not be opened
	allow                   []string // what re-allows reading, locations
	writes, reads, moves    bool
}

// nameIn is a name in a directory.
type nameIn struct {
	dev, ino uint64
	name     string
}

type guardPattern struct {
	Pattern
	glob *glob.Pattern
	// read is the pattern that opening is judged by, from `/` on. One that ends in `/**` is judged without that, and
	// below says so: what lies in a directory is denied by the directory (FS-20).
	read  glob.States
	below bool
}

// NewGuard makes the guard of a plan. It is nil when mounts enforce the plan alone; a nil *Guard needs nothing and
// refuses nothing.
func NewGuard(p *Plan) *Guard {
	g := &Guard{exact: map[nameIn]string{}, folded: map[nameIn]string{}, exactNames: map[string]struct{}{},
		foldedNames: map[string]struct{}{}}
	for _, a := range p.Absent {
		g.addAbsent(a)
	}
	for _, rule := range p.Patterns {
		if !rule.Write && !rule.Read {
			continue
		}
		compiled := glob.Compile(rule.Text)
		text, below := strings.CutSuffix(rule.Text, "/**")
		g.patterns = append(g.patterns, guardPattern{Pattern: rule, glob: compiled, read: glob.Compile(text).Below("/"), below: below})
		g.writes, g.reads, g.moves = g.writes || rule.Write, g.reads || rule.Read, true
	}
	if !g.writes && !g.reads {
		return nil
	}
	if g.reads {
		g.allow = p.AllowRead
	}
	return g
}

func (g *Guard) addAbsent(a Absent) {
	if a.Read {
		g.absent = append(g.absent, a)
		g.reads = true
	}
	if !a.Write {
		return
	}
	g.writes = true
	key := nameIn{a.ID.Dev, a.ID.Ino, a.Name}
	names, set := g.exactNames, g.exact
	if a.Fold {
		names, set = g.foldedNames, g.folded
		key.name = strings.ToLower(a.Name)
	}
	names[key.name] = struct{}{}
	if _, there := set[key]; !there {
		set[key] = a.Why
	}
}

// Names reports whether calls that create names have to be judged.
func (g *Guard) Names() bool { return g != nil && (g.writes || g.reads) }

// Reads reports whether every opening has to be judged.
func (g *Guard) Reads() bool { return g != nil && g.reads }

// Moves reports whether the renaming of a directory has to be judged (Move).
func (g *Guard) Moves() bool { return g != nil && g.moves }

// Suspect reports whether creating name, a single component, may be refused in some directory. What is not suspect needs
// no directory to be found out.
func (g *Guard) Suspect(name string) bool {
	if g == nil {
		return false
	}
	if _, there := g.exactNames[name]; there {
		return true
	}
	if len(g.foldedNames) > 0 {
		if _, there := g.foldedNames[strings.ToLower(name)]; there {
			return true
		}
	}
	for i := range g.patterns {
		if p := &g.patterns[i]; p.Write && p.glob.MatchLast(name) {
			return true
		}
	}
	return false
}

// Mandatory reports whether name is one that must not be made in some directory because programs act upon it by themselves
// (FS-35), and one that says so wherever it is: .vscode, not hooks.
func (g *Guard) Mandatory(name string) bool {
	if g == nil || name == "" || name[0] != '.' {
		return false
	}
	_, there := g.foldedNames[strings.ToLower(name)]
	return there
}

// Create judges the creation of name in the directory dir: by open, mkdir, rename or any other call. at gives the
// location of that directory; it is asked only when a pattern has to know, and its error is handed on. why says which
// rule refuses it.
func (g *Guard) Create(dir Identity, at func() (string, error), name string) (why string, denied bool, err error) {
	if g == nil {
		return "", false, nil
	}
	key := nameIn{dir.Dev, dir.Ino, name}
	if why, denied = g.exact[key]; denied {
		return why, true, nil
	}
	if len(g.folded) > 0 {
		key.name = strings.ToLower(name)
		if why, denied = g.folded[key]; denied {
			return why, true, nil
		}
	}
	location := ""
	for i := range g.patterns {
		p := &g.patterns[i]
		if !p.Write || !p.glob.MatchLast(name) {
			continue
		}
		if location == "" {
			if location, err = at(); err != nil {
				return "", false, err
			}
		}
		if p.glob.Match(join(location, name)) {
			return p.Why, true, nil
		}
	}
	return "", false, nil
}

// Open judges the opening, for reading or writing, of what lies at a location: the deepest rule decides, and an allow
// wins at equal depth, but never over a hard deny (FS-22, FS-57).
func (g *Guard) Open(location string) (why string, denied bool) {
	if !g.Reads() || inKernelTree(location) {
		return "", false // replaced (FS-47): what is denied there is hidden for good
	}
	deepest := 0
	hard := ""
	deny := func(at string, isHard bool, reason string) {
		if len(at) > deepest {
			deepest, why = len(at), reason
		}
		if isHard && hard == "" {
			hard = reason
		}
	}
	for i := range g.absent {
		if a := &g.absent[i]; policy.Covers(a.Path, location) {
			deny(a.Path, a.Hard, a.Why)
		}
	}
	for i := range g.patterns {
		if p := &g.patterns[i]; p.Read {
			p.matches(location, func(at string) { deny(at, p.Hard, p.Why) })
		}
	}
	switch {
	case hard != "":
		return hard, true
	case deepest == 0:
		return "", false
	}
	for _, a := range g.allow {
		if len(a) >= deepest && policy.Covers(a, location) {
			return "", false
		}
	}
	return why, true
}

// matches calls found for the location and each directory above it that the pattern matches.
func (p *guardPattern) matches(location string, found func(at string)) {
	states := p.read
	for end := 1; end <= len(location) && !states.Empty(); {
		next := strings.IndexByte(location[end:], '/')
		if next < 0 {
			next = len(location) - end
		}
		name := location[end : end+next]
		end += next
		var match bool
		if states, match = states.Step(name); match && !(p.below && end == len(location)) {
			found(location[:end])
		}
		end++
	}
}

// Move judges the renaming of a directory from one location to another. It is refused when a pattern could match beneath
// the new name what it does not beneath the old one, or the other way round for reading: nobody could tell what the
// directory holds by the time it has moved. The caller answers with EXDEV, so that programs copy instead, name by name.
func (g *Guard) Move(from, to string) (why string, denied bool) {
	if g == nil {
		return "", false
	}
	for i := range g.patterns {
		p := &g.patterns[i]
		before, after := p.glob.Below(from), p.glob.Below(to)
		if !after.SubsetOf(before) || p.Read && !before.SubsetOf(after) {
			return p.Why, true
		}
	}
	return "", false
}

// Leave judges what takes an object away from a location: a rename, or a hard link to it. What must not be opened there
// must not be taken elsewhere to be opened, nor a directory on the way to it.
func (g *Guard) Leave(location string) (why string, denied bool) {
	if !g.Reads() {
		return "", false
	}
	for i := range g.absent {
		if a := &g.absent[i]; policy.Covers(location, a.Path) {
			return a.Why, true
		}
	}
	return g.Open(location)
}
