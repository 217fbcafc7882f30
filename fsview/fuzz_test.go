package fsview

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// choices reads decisions from fuzzed bytes; past their end every answer is 0.
type choices struct{ data []byte }

func (c *choices) next(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0]) % n
	c.data = c.data[1:]
	return v
}

// sceneCount is how many scenes TestBuildScenes goes through.
var sceneCount = 6000

var fuzzNames = strings.Fields("a b c x .git HEAD hooks config .bashrc .vscode .claude agents node_modules .GIT")

// scene makes a small tree and an input from fuzzed bytes.
func scene(t testing.TB, data []byte) (*fakeTree, Input) {
	c := &choices{data}
	tree := newFakeTree(t, "d /h;d /w")
	dirs, all := []string{"/", "/h", "/w"}, []string{"/", "/h", "/w"}
	for range 3 + c.next(14) {
		p := join(dirs[c.next(len(dirs))], fuzzNames[c.next(len(fuzzNames))])
		if tree.objects[p] != nil {
			continue
		}
		o := tree.add(p, "ddfl"[c.next(4)])
		if o.kind == 'l' {
			o.target = all[c.next(len(all))]
			switch c.next(3) {
			case 1:
				o.target = "../" + fuzzNames[c.next(len(fuzzNames))]
			case 2:
				o.target = fuzzNames[c.next(len(fuzzNames))] + "/../" + fuzzNames[c.next(4)]
			}
		}
		if o.kind == 'd' {
			dirs = append(dirs, p)
		}
		all = append(all, p)
	}
	in := Input{Cwd: dirs[c.next(len(dirs))], Home: dirs[c.next(len(dirs))], UID: 1000 * c.next(2), MandatoryDepth: 1 + c.next(4),
		AllowGitConfig: c.next(4) == 3}
	tree.uid = in.UID
	lists := []*[]policy.PathRule{&in.Rules.DenyRead, &in.Rules.AllowRead, &in.Rules.AllowWrite, &in.Rules.DenyWrite,
		&in.Rules.AllowWrite, &in.Rules.DenyRead, &in.Rules.AllowRead, &in.Rules.CredentialDeny}
	for i := range 1 + c.next(9) {
		p := all[c.next(len(all))]
		if c.next(4) == 3 {
			p = join(p, fuzzNames[c.next(len(fuzzNames))])
		}
		switch list := c.next(len(lists) + 2); list {
		case len(lists):
			in.OwnFiles = append(in.OwnFiles, p)
		case len(lists) + 1:
			in.Keep = append(in.Keep, p)
		default:
			*lists[list] = append(*lists[list], policy.PathRule{Entry: p, Key: fmt.Sprint("list.", list, ".", i), Path: p})
		}
	}
	mountSome(c, tree, &in)
	for { // nobody starts in what is not there (chdir(2)), and mounts may have covered what was
		loc := newResolver(tree, 0).resolve(in.Cwd, true)
		if loc.exists && loc.info.IsDir() {
			return tree, in
		}
		in.Cwd = path.Dir(in.Cwd)
	}
}

// mountSome shows parts of the tree, or of a second file system, at further places, and adds rules there.
func mountSome(c *choices, tree *fakeTree, in *Input) {
	for range c.next(5) {
		paths := tree.paths()
		from, to := paths[c.next(len(paths))], paths[c.next(len(paths))]
		if source, place := tree.objects[from].kind, tree.objects[to].kind; to == "/" || source != place || source == 'l' {
			continue
		}
		if c.next(5) == 4 && tree.objects[to].kind == 'd' {
			tree.attach(2, []string{"/", "/a", "/.git"}[c.next(3)], to)
		} else {
			tree.bind(from, to)
		}
	}
	if in.Mounts = slices.Clone(tree.mounts); c.next(2) == 1 {
		slices.Reverse(in.Mounts)
	}
	paths := tree.paths()
	for i := range c.next(5) {
		p := paths[c.next(len(paths))]
		list := []*[]policy.PathRule{&in.Rules.DenyRead, &in.Rules.DenyWrite, &in.Rules.AllowWrite, &in.Rules.AllowRead}[c.next(4)]
		*list = append(*list, policy.PathRule{Entry: p, Key: fmt.Sprint("mounted.", i), Path: p})
	}
	if c.next(3) == 1 {
		in.Cwd = paths[c.next(len(paths))]
	}
	in.FakeContent = func(_ int, p string) ([]byte, error) { return []byte("fake of " + p), nil }
	for i := range c.next(4) {
		p := paths[c.next(len(paths))]
		in.Masks = append(in.Masks, policy.PathRule{Entry: p, Key: fmt.Sprint("mask.", i), Path: p})
	}
}

// describe writes a scene for the person who has to find the fault.
func describe(tree *fakeTree, in Input) string {
	var b strings.Builder
	for _, p := range tree.paths() {
		fmt.Fprintf(&b, "%c %s %s\n", tree.objects[p].kind, p, tree.objects[p].target)
	}
	for _, m := range in.Mounts {
		fmt.Fprintf(&b, "mount %d in %d: %d:%s on %s\n", m.ID, m.Parent, m.Dev, m.Root, m.Point)
	}
	for name, list := range map[string][]policy.PathRule{"dR": in.Rules.DenyRead, "aR": in.Rules.AllowRead,
		"aW": in.Rules.AllowWrite, "dW": in.Rules.DenyWrite, "cred": in.Rules.CredentialDeny, "mask": in.Masks} {
		for _, r := range list {
			fmt.Fprintf(&b, "%s=%s ", name, r.Path)
		}
	}
	fmt.Fprintf(&b, "own %q keep %q cwd=%s home=%s depth=%d uid=%d", in.OwnFiles, in.Keep, in.Cwd, in.Home, in.MandatoryDepth, in.UID)
	return b.String()
}

// FuzzBuild executes random plans and compares what every path shows with the plain statement of FS-22 and FS-26.
func FuzzBuild(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) { checkScene(t, data) })
}

// TestBuildScenes is FuzzBuild over a fixed series of scenes, all of full length, which fuzzing is slow to reach.
func TestBuildScenes(t *testing.T) {
	series := rand.NewChaCha8([32]byte{'f', 's', 2})
	data := make([]byte, 200)
	steps, absent := 0, 0
	for range sceneCount {
		series.Read(data)
		plan := checkScene(t, data)
		steps += len(plan.Steps)
		absent += len(plan.Absent)
	}
	if steps < sceneCount || absent < sceneCount {
		t.Errorf("%d scenes gave %d steps and %d rules for absent names: the generator makes too little", sceneCount, steps, absent)
	}
}

// checkScene makes one scene and its plan, and fails t unless they agree with the statement.
func checkScene(t *testing.T, data []byte) *Plan {
	t.Helper()
	tree, in := scene(t, data)
	plan, err := Build(tree, in)
	if err != nil {
		t.Fatalf("%v\n%s", err, describe(tree, in))
	}
	v, err := apply(tree, plan)
	if err == nil {
		err = v.checkPinned()
	}
	if err == nil {
		s := stateOf(tree, in)
		if err = compare(v, s); err == nil {
			err = compareAbsent(v, plan, s)
		}
	}
	if err == nil && plan.Dir != "/" && v.at(plan.Dir).kind != onHost {
		err = fmt.Errorf("the command starts in %s, which is hidden", plan.Dir)
	}
	if err != nil {
		t.Fatalf("%v\n%s\nplan:\n%s", err, describe(tree, in), listing(plan))
	}
	return plan
}

// compare asks both sides about every path.
func compare(v *view, s *statement) error {
	for _, p := range v.tree.paths() {
		got, want := v.at(p), p
		if fakes := s.fakesAt(p); len(fakes) > 0 {
			if got.kind != masked || !slices.Contains(fakes, got.fake) {
				return fmt.Errorf("%s shows %q (kind %d), want one of %q", p, got.fake, got.kind, fakes)
			}
			continue
		} else if got.fake != "" {
			return fmt.Errorf("%s shows %q, which nobody asked for", p, got.fake)
		}
		switch {
		case s.hidden(p) && slices.Contains(s.linkAllow, p):
			want = s.linkTarget(p)
		case s.hidden(p):
			want = ""
		}
		switch {
		case want == "" && got.kind == onHost:
			return fmt.Errorf("%s shows %s, must be hidden", p, got.source)
		case want != "" && (got.kind != onHost || got.source != want):
			return fmt.Errorf("%s shows %q (kind %d), want %s", p, got.source, got.kind, want)
		case want == p && got.writable != s.writable(p):
			return fmt.Errorf("%s is writable: %v, want %v", p, got.writable, s.writable(p))
		case want != "" && want != p && got.writable:
			return fmt.Errorf("%s is writable through a re-allowed link", p)
		}
	}
	for _, held := range s.held {
		for _, link := range s.paths(held) {
			if v.tree.objects[link].kind == 'l' && v.movable(link) {
				return fmt.Errorf("the link %s leads to a protected path and can be replaced", link)
			}
		}
	}
	return nil
}
