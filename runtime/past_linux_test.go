package runtime

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/bpf"
)

// logOf is a list of changes.
type logOf []bpf.Change

func (l logOf) At(place uint64) bpf.Change {
	if place >= uint64(len(l)) {
		return bpf.Change{}
	}
	return l[place]
}

func (l logOf) concerns(names []string, k uint64) bool {
	c := &l[k]
	return c.Kind == bpf.ChangeUnknown || slices.Contains(names, c.Old.LastName()) || slices.Contains(names, c.New.LastName())
}

func (l logOf) Next(names []string, from uint64) (uint64, bpf.Change) {
	for ; from < uint64(len(l)) && !l.concerns(names, from); from++ {
	}
	return from, l.At(from)
}

func (l logOf) Last(names []string, before uint64) (uint64, bool) {
	for ; before > 0; before-- {
		if l.concerns(names, before-1) {
			return before - 1, true
		}
	}
	return 0, false
}

// modelNode is a directory, a symbolic link or a file of a file system that a test makes up.
type modelNode struct {
	entries map[string]*modelNode // of a directory
	target  string                // of a link
}

func (n *modelNode) isDir() bool { return n != nil && n.entries != nil }

// model is such a file system, with the log of what a sandbox changes in it.
type model struct {
	root *modelNode
	log  logOf
}

// at is what has a location that leads through directories alone, and the directory that it is in.
func (m *model) at(location string) (dir, node *modelNode, name string) {
	node = m.root
	for part := range strings.SplitSeq(strings.Trim(location, "/"), "/") {
		if part == "" {
			continue
		}
		if !node.isDir() {
			return nil, nil, ""
		}
		dir, name, node = node, part, node.entries[part]
	}
	return dir, node, name
}

// kind is what there is, as past tells it.
func (m *model) kind(location string) (string, seen) {
	switch _, node, _ := m.at(location); {
	case node == nil:
		return "", seenNothing
	case node.target != "":
		return node.target, seenLink
	}
	return "", seenOther
}

func traced(location string) bpf.TracedPath {
	dir, name := path.Split(location)
	return bpf.TracedPath{Dir: path.Clean(dir), Text: name}
}

// step does something at random, as a process of the sandbox might, and logs what the tracer would.
func (m *model) step(r *rand.Rand, names []string) {
	pick := func() string {
		p := ""
		for range 1 + r.IntN(3) {
			p += "/" + names[r.IntN(len(names))]
		}
		return p
	}
	one, two := pick(), pick()
	dir, node, name := m.at(one)
	toDir, toNode, toName := m.at(two)
	below := two == one || strings.HasPrefix(two, one+"/") || strings.HasPrefix(one, two+"/")
	add := func(c bpf.Change) { m.log = append(m.log, c) }
	switch r.IntN(8) {
	case 0:
		if dir.isDir() && node == nil {
			dir.entries[name] = &modelNode{target: pick()}
			add(bpf.Change{Kind: bpf.ChangeLink, New: traced(one), Target: dir.entries[name].target})
		}
	case 1:
		if dir.isDir() && node == nil { // no call that is logged
			dir.entries[name] = &modelNode{entries: map[string]*modelNode{}}
		}
	case 2:
		if dir.isDir() && node == nil {
			dir.entries[name] = &modelNode{}
		}
	case 3:
		if node != nil && dir != nil && len(node.entries) == 0 {
			delete(dir.entries, name)
			add(bpf.Change{Kind: bpf.ChangeGone, Old: traced(one), Directory: node.isDir()})
		}
	case 4, 5:
		if node != nil && dir != nil && toDir.isDir() && !below && (toNode == nil || node.isDir() == toNode.isDir() && len(toNode.entries) == 0) {
			delete(dir.entries, name)
			toDir.entries[toName] = node
			add(bpf.Change{Kind: bpf.ChangeMove, Old: traced(one), New: traced(two)})
		}
	case 6:
		if node != nil && toNode != nil && dir != nil && toDir != nil && !below {
			dir.entries[name], toDir.entries[toName] = toNode, node
			add(bpf.Change{Kind: bpf.ChangeSwap, Old: traced(one), New: traced(two)})
		}
	case 7:
		if node != nil && !node.isDir() && toDir.isDir() && toNode == nil {
			toDir.entries[toName] = node
			add(bpf.Change{Kind: bpf.ChangeName, Old: traced(one), New: traced(two)})
		}
	}
}

// Whatever happens to names: what the journal and the present say of a link in the past is what was, or that it is unknown. What was no link is never
// taken for one, and what was one is never taken for nothing.
func TestPast_TellsWhatWas(t *testing.T) {
	names := []string{"a", "b", "c"}
	known, links := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := &model{root: &modelNode{entries: map[string]*modelNode{}}}
		for range 20 { // before the log begins
			m.step(r, names)
		}
		m.log = nil
		type moment struct {
			location string
			since    uint64
			target   string
			found    seen
		}
		var moments []moment
		for range 60 {
			m.step(r, names)
			for _, location := range []string{"/a", "/b", "/a/b", "/b/a", "/a/b/c"} {
				if dir, _, _ := m.at(location); !dir.isDir() {
					continue // a location leads through directories
				}
				target, found := m.kind(location)
				moments = append(moments, moment{location, uint64(len(m.log)), target, found})
			}
		}
		for _, w := range moments {
			res := resolution{left: 1 << 20, steps: 1 << 20}
			res.past = &past{log: m.log, end: uint64(len(m.log)), now: m.kind, names: &changedNames{}}
			target, found := res.at(w.location, w.since)
			switch {
			case found == seenUnknown:
				continue
			case (found == seenLink) != (w.found == seenLink), found == seenLink && target != w.target:
				t.Fatalf("seed %d: %s before %d was %d %q, told %d %q\n%s", seed, w.location, w.since, w.found, w.target, found, target, m.log)
			}
			if known++; found == seenLink {
				links++
			}
		}
	}
	if known < 10000 || links < 500 {
		t.Errorf("%d of the past known, %d links", known, links)
	}
}

func (l logOf) String() string {
	var b strings.Builder
	for i, c := range l {
		fmt.Fprintf(&b, "%d: %d %s %s %s\n", i, c.Kind, c.Old.Path(), c.New.Path(), c.Target)
	}
	return b.String()
}

// Where a path led, with the log of what has changed since.
func TestPast_Walk(t *testing.T) {
	present := &model{root: &modelNode{entries: map[string]*modelNode{"w": {entries: map[string]*modelNode{
		"stays": {target: "/etc"}, "moved": {target: "/hidden"}}}}}}
	link := func(location, target string) bpf.Change {
		return bpf.Change{Kind: bpf.ChangeLink, New: traced(location), Target: target}
	}
	gone := func(location string) bpf.Change { return bpf.Change{Kind: bpf.ChangeGone, Old: traced(location)} }
	move := func(from, to string) bpf.Change {
		return bpf.Change{Kind: bpf.ChangeMove, Old: traced(from), New: traced(to)}
	}
	for _, c := range []struct {
		name, text string
		since      int
		log        logOf
		want       string
		unknown    bool
	}{
		{"a link that is there", "stays/x", 0, nil, "/etc/x", false},
		{"a link that has gone", "l/x", 1, logOf{link("/w/l", "/etc"), gone("/w/l")}, "/etc/x", false},
		{"a link to a link that have both gone", "l/x", 2, logOf{link("/w/k", "/etc"), link("/w/l", "k"), gone("/w/k"), gone("/w/l")}, "/etc/x", false},
		{"a link that has moved", "l/x", 0, logOf{move("/w/l", "/w/moved")}, "/hidden/x", false},
		{"a link under an earlier name that has gone", "l/x", 2, logOf{link("/w/k", "/etc"), move("/w/k", "/w/l"), gone("/w/l")}, "/etc/x", false},
		{"a link in a directory that has moved and gone", "d/l/x", 2, logOf{link("/w/e/l", "/etc"), move("/w/e", "/w/d"), gone("/w/d/l"),
			{Kind: bpf.ChangeGone, Old: traced("/w/d"), Directory: true}}, "/etc/x", false},
		{"beneath nothing", "none/../stays/l/x", 1, logOf{link("/w/none/l", "/etc")}, "/w/stays/l/x", false},
		{"a link that came later", "stays/x", 0, logOf{link("/w/stays", "/etc")}, "/w/stays/x", false},
		{"a link from before the log", "l/x", 0, logOf{gone("/w/l")}, "/w/l/x", true},
		{"a gap", "stays/x", 0, logOf{{}}, "/w/stays/x", true},
		{"what is made after a name was free is no link", "l/x", 1, logOf{gone("/w/l"), gone("/w/l")}, "/w/l/x", false},
		{"a loop", "l/x", 1, logOf{link("/w/l", "l"), gone("/w/l")}, "/w/l/x", false},
		{"a link of /proc", "/proc/self/root/x", 0, nil, "/proc/self/root/x", false},
	} {
		res := resolution{left: maxResolvedPast, steps: maxStepsPast}
		res.past = &past{log: c.log, end: uint64(len(c.log)), now: present.kind, names: &changedNames{}}
		p := bpf.TracedPath{Dir: "/w", Text: c.text, Follow: true}
		if strings.HasPrefix(c.text, "/") {
			p.Dir = "/"
		}
		if got, unknown := res.walk(p, uint64(c.since)); got != c.want || unknown != c.unknown {
			t.Errorf("%s: %s, unknown %v; want %s, %v", c.name, got, unknown, c.want, c.unknown)
		}
	}
}
