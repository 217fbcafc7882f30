package fsview

import (
	"strings"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// Guard judges what no mount can: names that do not exist when a command starts (FS-10, FS-30, FS-55). What existed then is
// as the mounts show it, and what lies in a directory that is hidden in memory is the command's own (FS-32). A Guard is pure
// and immutable, and safe for concurrent use. Whoever asks it performs the call itself, on the very directory that was
// judged.
type Guard struct {
	exact, folded           map[nameIn]string // why, of names that must not be created
	exactNames, foldedNames map[string]struct{}
	patterns                []guardPattern
	absent                  map[string]denial   // names that must not be opened, by location
	absentFolded            []foldedAbsent      // those of them that stand for themselves in any letter case
	leading                 []Absent            // those in directories that are yet to be made
	unreadable              map[string]struct{} // last names of absent and absentFolded, the latter folded
	allow                   []string            // what re-allows reading, locations
	allowFiles              []string            // files that allowWrite re-opens
	keep                    map[string]struct{}
	zones                   zones
	writes, reads, moves    bool
	processes               bool // processes that are not of the sandbox must not be looked into (Process)
}

// nameIn is a name in a directory.
type nameIn struct {
	dev, ino uint64
	name     string
}

type guardPattern struct {
	Pattern
	glob *glob.Pattern
	// left is the pattern that opening is judged by, beneath `/`. One that ends in `/**` is judged without that, and deep
	// says so: what lies in a directory is denied by the directory (FS-20). all says that nothing but that is left: the
	// directory is `/`.
	left      glob.States
	deep, all bool
}

func newGuardPattern(rule Pattern) guardPattern {
	p := guardPattern{Pattern: rule, glob: glob.Compile(rule.Text)}
	text := rule.Text
	for cut, ok := strings.CutSuffix(text, "/**"); ok; cut, ok = strings.CutSuffix(text, "/**") {
		text, p.deep = cut, true
	}
	if p.all = text == ""; !p.all {
		p.left = glob.Compile(text).Below("/")
	}
	return p
}

// denial is a reason not to open something.
type denial struct {
	why  string
	hard bool
}

// foldedAbsent is a location that must not be opened in any letter case: rest, beneath dir.
type foldedAbsent struct {
	denial
	dir, rest string
	at        int // length of the location as the rule has it
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
		g.patterns = append(g.patterns, newGuardPattern(rule))
		g.writes, g.reads, g.moves = g.writes || rule.Write, g.reads || rule.Read, true
	}
	g.processes = p.ForeignProcesses
	if !g.writes && !g.reads && !g.processes {
		return nil
	}
	if g.reads {
		g.allow, g.allowFiles = p.AllowRead, p.AllowFiles
		g.keep = make(map[string]struct{}, len(p.Keep))
		for _, k := range p.Keep {
			g.keep[k] = struct{}{}
		}
	}
	if g.reads || g.moves {
		g.zones = zonesOf(p)
	}
	return g
}

func (g *Guard) addAbsent(a Absent) {
	if a.Read {
		g.addUnreadable(a)
	}
	if !a.Write {
		return
	}
	g.writes = true
	key := nameIn{a.ID.Dev, a.ID.Ino, a.Name}
	names, set := g.exactNames, g.exact
	if a.Fold {
		names, set = g.foldedNames, g.folded
		key.name = foldName(a.Name)
	}
	names[key.name] = struct{}{}
	if _, there := set[key]; !there {
		set[key] = a.Why
	}
}

func (g *Guard) addUnreadable(a Absent) {
	g.reads = true
	if g.unreadable == nil {
		g.unreadable = map[string]struct{}{}
	}
	g.unreadable[foldName(a.Path[strings.LastIndexByte(a.Path, '/')+1:])] = struct{}{}
	if a.Path != join(a.Dir, a.Name) {
		g.leading, g.moves = append(g.leading, a), true
	}
	if a.Fold {
		g.absentFolded = append(g.absentFolded, foldedAbsent{denial{a.Why, a.Hard}, a.Dir, foldPath(tail(a.Dir, a.Path)), len(a.Path)})
		return
	}
	if g.absent == nil {
		g.absent = map[string]denial{}
	}
	if have, there := g.absent[a.Path]; !there || a.Hard && !have.hard {
		g.absent[a.Path] = denial{a.Why, a.Hard}
	}
}

// Names reports whether calls that create names have to be judged.
func (g *Guard) Names() bool { return g != nil && (g.writes || g.reads || g.processes) }

// Reads reports whether every opening has to be judged.
func (g *Guard) Reads() bool { return g != nil && (g.reads || g.processes) }

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
		if _, there := g.foldedNames[foldName(name)]; there {
			return true
		}
	}
	for i := range g.patterns {
		if p := &g.patterns[i]; p.Write && p.glob.MatchLast(name) {
			return true
		}
	}
	return g.mayBeUnreadable(name)
}

// mayBeUnreadable reports whether something of this name must not be opened in some directory.
func (g *Guard) mayBeUnreadable(name string) bool {
	if !g.reads {
		return false
	}
	if _, there := g.unreadable[foldName(name)]; there {
		return true
	}
	for i := range g.patterns {
		if p := &g.patterns[i]; p.Read && p.glob.MatchLast(name) {
			return true
		}
	}
	return false
}

// Mandatory reports whether name, in any letter case, is one that programs act upon by themselves wherever it is (FS-35):
// .vscode, not hooks. It does not depend on where it exists already.
func (g *Guard) Mandatory(name string) bool {
	return g.Names() && name != "" && name[0] == '.' && isFold(name, startNames[:]...)
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
		key.name = foldName(name)
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
			if g.zones.at(location) == zoneMemory {
				return "", false, nil
			}
		}
		if p.glob.Match(join(location, name)) {
			return p.Why, true, nil
		}
	}
	if !g.mayBeUnreadable(name) {
		return "", false, nil
	}
	if location == "" {
		if location, err = at(); err != nil {
			return "", false, err
		}
	}
	// What is made where nothing may be opened would be there when a program of the host writes to it: a link to another
	// name, or an object that is open already.
	why, denied = g.Open(join(location, name))
	return why, denied, nil
}

// Redirect judges the making of a symbolic link at a location: what a path through it leads to is denied under the path's
// own name, which no other question sees. It is refused where the link's very name leads on to what is denied.
func (g *Guard) Redirect(location string) (why string, denied bool) {
	if g == nil || !g.reads && !g.moves || g.zones.around(location) != zoneWritable {
		return "", false
	}
	for i := range g.leading {
		if a := &g.leading[i]; a.leads(location) {
			return a.Why, true
		}
	}
	elsewhere := join(above(location), noName)
	for i := range g.patterns {
		p := &g.patterns[i]
		if !p.glob.Below(location).SubsetOf(p.glob.Below(elsewhere)) {
			return p.Why, true
		}
	}
	return "", false
}

// noName is matched by wildcards alone: no object has such a name.
const noName = "\x00"

// Open judges the opening, for reading or writing, of what lies at a location: the deepest rule decides, and an allow
// wins at equal depth, but never over a hard deny (FS-22, FS-57).
func (g *Guard) Open(location string) (why string, denied bool) {
	if g == nil || !g.reads || inKernelTree(location) {
		return "", false // replaced (FS-47): what is denied there is hidden for good
	}
	if _, kept := g.keep[location]; kept {
		return "", false
	}
	switch g.zones.at(location) {
	case zoneMemory, zoneReplaced:
		return "", false
	}
	found := g.denials(location)
	switch {
	case found.hard != "":
		return found.hard, true
	case found.deepest == 0:
		return "", false
	}
	for _, a := range g.allow {
		if len(a) >= found.deepest && policy.Covers(a, location) {
			return "", false
		}
	}
	for _, a := range g.allowFiles {
		if len(a) > found.deepest && policy.Covers(a, location) {
			return "", false
		}
	}
	return found.why, true
}

// denials are the read rules that cover a location.
type denials struct {
	deepest int    // length of the longest location that one stands at, 0 when there is none
	why     string // of that one
	hard    string // why of one that no list lifts
}

func (d *denials) add(at int, hard bool, why string) {
	if at > d.deepest {
		d.deepest, d.why = at, why
	}
	if hard && d.hard == "" {
		d.hard = why
	}
}

func (g *Guard) denials(location string) (found denials) {
	for p := location; len(g.absent) > 0 && p != ""; p = above(p) {
		if d, there := g.absent[p]; there {
			found.add(len(p), d.hard, d.why)
		}
	}
	for i := range g.absentFolded {
		a := &g.absentFolded[i]
		if policy.Covers(a.dir, location) && policy.Covers(a.rest, foldPath(tail(a.dir, location))) {
			found.add(a.at, a.hard, a.why)
		}
	}
	for i := range g.patterns {
		if p := &g.patterns[i]; p.Read {
			p.matches(location, func(at int) { found.add(at, p.Hard, p.Why) })
		}
	}
	return found
}

// matches calls found for the location and each directory above it that the pattern denies, with the length of its path.
func (p *guardPattern) matches(location string, found func(at int)) {
	if p.all && location != "/" {
		found(1)
	}
	left := p.left
	for end := 1; end < len(location) && !left.Empty(); {
		next := strings.IndexByte(location[end:], '/')
		if next < 0 {
			next = len(location) - end
		}
		name := location[end : end+next]
		end += next
		var match bool
		if left, match = left.Step(name); match && !(p.deep && end == len(location)) {
			found(end)
		}
		end++
	}
}

// Move judges the renaming of a directory from one location to another. It is refused when a pattern could match beneath
// the new name what it does not beneath the old one, or the other way round for reading: nobody could tell what the
// directory holds by the time it has moved. Nor may one leave in which something may come to be that must not be opened.
// The caller answers with EXDEV, so that programs copy instead, name by name. Where a directory cannot be renamed anyway,
// the kernel says so.
func (g *Guard) Move(from, to string) (why string, denied bool) {
	if g == nil || g.zones.around(from) != zoneWritable || g.zones.around(to) != zoneWritable {
		return "", false
	}
	for i := range g.leading {
		if a := &g.leading[i]; a.leads(from) || a.leads(to) {
			return a.Why, true
		}
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
// must not be taken elsewhere to be opened. Directories are judged by Move besides.
func (g *Guard) Leave(location string) (why string, denied bool) { return g.Open(location) }
