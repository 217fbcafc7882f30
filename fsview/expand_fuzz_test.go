package fsview

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// plainExpansion says what a pattern matches on a fakeTree by looking at every name that leads somewhere. Of the planner
// it shares the matcher alone.
type plainExpansion struct {
	tree   *fakeTree
	text   *glob.Pattern
	start  string
	list   list
	names  []string // what matches
	visits int
}

// tooManyVisits is more than a scene may take.
const tooManyVisits = 20000

func (e *plainExpansion) visit(name, at string, depth int) {
	if depth == 0 || e.visits > tooManyVisits {
		return
	}
	for p, o := range e.tree.objects {
		if p == "/" || path.Dir(p) != at {
			continue
		}
		e.visits++
		child, target, ok := join(name, path.Base(p)), p, true
		if o.kind == 'l' {
			if e.list == listAllowWrite {
				continue
			}
			target, _, ok = e.tree.real(p)
		}
		if e.text.Match(child) && (ok || !e.list.deny()) {
			e.names = append(e.names, child)
		}
		isLink := o.kind == 'l'
		if !ok || e.tree.objects[target].kind != 'd' || isLink && (!e.list.deny() || policy.Covers(target, at) || policy.Covers(target, e.start)) {
			continue
		}
		if !e.text.Below(child).Empty() {
			e.visit(child, target, depth-1)
		}
	}
}

// spelledOut gives the entries that a pattern stands for.
func spelledOut(tree *fakeTree, r policy.PathRule, l list) (out []policy.PathRule, ok bool) {
	p := glob.Compile(r.Path)
	e := &plainExpansion{tree: tree, text: p, list: l}
	start, _, there := tree.real(p.Literal())
	if there && tree.objects[start].kind == 'd' && (l != listAllowWrite || start == p.Literal()) {
		e.start = start
		e.visit(p.Literal(), start, 10)
	}
	if e.visits > tooManyVisits {
		return nil, false
	}
	for i, name := range e.names {
		if loc, links, _ := tree.real(name); loc == "/" && l == listDenyWrite {
			name = path.Dir(links[len(links)-1]) // FS-18
		}
		out = append(out, policy.PathRule{Entry: name, Key: fmt.Sprint(r.Key, ".", i), Path: name})
	}
	return out, true
}

var fuzzPatterns = strings.Fields("* ** **/* **/a **/.* a* */* */a ? [a-c] **/[ab]/* **/c **/b/* .*/* **x *a*/** **/.git/*")

// FuzzExpand compares plans of scenes with patterns and of the same scenes with the names that these match (FS-17).
func FuzzExpand(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { checkExpansion(t, data) })
}

// TestExpandScenes is FuzzExpand over a fixed series of scenes.
func TestExpandScenes(t *testing.T) {
	series := rand.NewChaCha8([32]byte{'g', 'l', 'o', 'b'})
	data := make([]byte, 220)
	compared, steps := 0, 0
	for range 3000 {
		series.Read(data)
		n, ok := checkExpansion(t, data)
		if ok {
			compared++
			steps += n
		}
	}
	if compared < 1500 || steps < 2*compared {
		t.Errorf("%d scenes compared with %d steps: the generator makes too little", compared, steps)
	}
}

func checkExpansion(t *testing.T, data []byte) (steps int, compared bool) {
	t.Helper()
	tree, in := scene(t, data)
	c := &choices{data[len(data)/2:]}
	plain := in
	lists := func(in *Input) []*[]policy.PathRule {
		r := &in.Rules
		return []*[]policy.PathRule{&r.CredentialDeny, &r.DenyRead, &r.DenyWrite, &r.AllowRead, &r.AllowWrite}
	}
	for _, l := range lists(&in) {
		*l = slices.Clip(*l)
	}
	paths := tree.paths()
	var written []string
	for i := range 1 + c.next(4) {
		l := list(c.next(5))
		text := join(paths[c.next(len(paths))], fuzzPatterns[c.next(len(fuzzPatterns))])
		if !l.read() || !l.deny() {
			text = strings.TrimSuffix(text, "/**")
		}
		if strings.HasSuffix(text, "/**") || !glob.IsPattern(text) {
			continue // FS-20 is no list of names; see TestPatterns
		}
		r := policy.PathRule{Entry: text, Key: fmt.Sprint("pattern.", i), Path: text, Pattern: true}
		names, ok := spelledOut(tree, r, l)
		if !ok {
			return 0, false
		}
		*lists(&in)[l] = append(*lists(&in)[l], r)
		*lists(&plain)[l] = append(slices.Clip(*lists(&plain)[l]), names...)
		written = append(written, fmt.Sprint(l, " ", text))
	}
	want, err1 := Build(tree, plain)
	got, err2 := Build(tree, in)
	if err1 != nil || err2 != nil {
		if (err1 == nil) != (err2 == nil) {
			t.Fatalf("with patterns: %v; with names: %v\n%s\n%q", err2, err1, describe(tree, plain), written)
		}
		return 0, false
	}
	if a, b := mounted(got), mounted(want); a != b {
		t.Fatalf("with patterns:\n%s\nwith names:\n%s\n%s\n%q", a, b, describe(tree, plain), written)
	}
	return len(got.Steps), true
}

// mounted lists the steps that change what is seen, without the reasons. Links that lead to a match which is found by its
// own path too are held only when it is written by name.
func mounted(plan *Plan) string {
	var b strings.Builder
	for _, s := range plan.Steps {
		if s.Kind != Pin {
			fmt.Fprintln(&b, s.Kind, s.Path, s.Source, s.Make)
		}
	}
	return b.String()
}
