package fsview

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview/internal/glob"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// guarded builds a plan from words and gives its guard.
func guarded(t *testing.T, tree, rules string) *Guard {
	t.Helper()
	plan, _ := built(t, newFakeTree(t, "d /h/p;"+tree), rules)
	g := NewGuard(plan)
	if g == nil {
		t.Fatalf("no guard for %q", rules)
	}
	return g
}

// TestGuardAndMounts: what existed at the start is as the mounts show it, and memory is the command's own.
func TestGuardAndMounts(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		open              map[string]bool // is it refused
	}{
		{"FS-32 case 7 a hidden directory", "f /h/p/sec/k", "dR=s*",
			map[string]bool{"@/sec": false, "@/sec/n": false, "@/sec/s/n": false, "@/s": true, "@/s/x": true}},
		{"FS-32 a credential", "d /h/p/sec", "cred=s*", map[string]bool{"@/sec/n": false, "@/s": true}},
		{"FS-22 re-allowed to read", "d /h/p/sec/pub/s", "dR=s* dR=sec/pub/s* aR=sec/pub",
			map[string]bool{"@/sec/x": false, "@/sec/pub": false, "@/sec/pub/x": false, "@/sec/pub/s": false, "@/sec/pub/s/x": false, "@/sec/pub/s2": true}},
		{"FS-22 a file re-allowed to write", "f /h/p/sec/k", "dR=s* aW=sec/k", map[string]bool{"@/sec/k": false, "@/sec": false, "@/s": true}},
		{"FS-22 a directory re-allowed to write", "d /h/p/sec/k", "dR=s* aW=sec/k", map[string]bool{"@/sec/k": false, "@/sec/k/n": false}},
		{"FS-22 a file denied itself and written", "f /h/p/k", "dR=k* aW=k", map[string]bool{"@/k": false, "@/k2": true}},
		{"FS-22 a directory denied itself and written", "d /h/p/k", "dR=k* aW=k", map[string]bool{"@/k": false, "@/k/n": false, "@/k2": true}},
		{"FS-58 a mask beats a deny", "f /h/p/tok", "dR=t* mask=tok", map[string]bool{"@/tok": false, "@/t": true}},
		{"FS-23 srt's own file", "f /h/p/ca.pem", "dR=*.pem keep=/h/p/ca.pem", map[string]bool{"@/ca.pem": false, "@/b.pem": true}},
		{"FS-23 srt's own file under a credential", "f /h/p/ca.pem", "cred=*.pem keep=/h/p/ca.pem", map[string]bool{"@/ca.pem": false, "@/b.pem": true}},
		{"FS-22 a re-allowed link that shows nothing allows nothing", "d /h/p/s;l /h/p/s/l /h/o;f /h/o", "dR=s dR=s/l/* aR=s/l", map[string]bool{"@/s/l/x": false}},
		{"FS-20 everything beneath", "f /h/p/build/o;d /h/p/x/build", "dR=**/build/**",
			map[string]bool{"@/build/o": false, "@/build/n": false, "@/x/build": false, "@/x/build/n": true, "@/build2/n": false}},
		{"FS-20 a directory that comes later", "", "dR=**/build/**", map[string]bool{"@/build": false, "@/build/n": true, "@/build/d/n": true}},
		{"FS-20 all of the working directory", "f /h/p/a", "dR=** aR=.", map[string]bool{"@": false, "@/a": false, "@/new": false}},
		{"FS-20 all of the working directory, nothing re-allowed", "", "dR=**", map[string]bool{"@": false, "@/new": true, "/h/x": false}},
		{"FS-20 twice", "d /h/p/x", "dR=x/**/**", map[string]bool{"@/x": false, "@/x/n": true, "@/x/d/n": true, "@/y": false}},
		{"FS-20 twice, re-allowed", "f /h/p/x/o", "dR=x/**/** aR=x", map[string]bool{"@/x": false, "@/x/n": false, "@/x/o": false}},
		{"FS-20 all of the file system", "d /h/p/x", "cwd=/ home=/h dR=** aR=/h", map[string]bool{"/": false, "/h/n": false, "/n": true, "/n/d": true}},
		{"FS-10 a name that is missing", "", "dR=nd/x aR=nd/x/y", map[string]bool{"@/nd": false, "@/nd/x": true, "@/nd/x/y": false, "@/nd/x/z": true}},
		{"FS-7 at another path", "f /h/q/k;d /h/p/a;m /h/p/a /h/q", "dR=/h/q/? aR=/h/q/k", map[string]bool{"@/a/k": false, "@/a/n": true, "/h/q/k": false}},
		{"FS-10 beneath a file, up again", "f /h/p/x;l /h/p/a x/../b", "dR=a/k dR=n", map[string]bool{"@/x": false, "@/b/k": false}},
		{"FS-10 in a directory that ignores case", "d /h/p/c nocase", "dR=c/New/x", map[string]bool{"@/c/new": false, "@/c/NEW/X": true, "@/c/new/x/y": true, "@/c/new/y": false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := guarded(t, tt.tree, tt.rules)
			for at, want := range tt.open {
				if why, denied := g.Open(strings.Replace(at, "@", "/h/p", 1)); denied != want {
					t.Errorf("Open(%q) = %q, %v", at, why, denied)
				}
			}
		})
	}
}

// TestGuardCreatesInMemory_FS32: a write pattern does not reach into a hidden directory.
func TestGuardCreatesInMemory_FS32(t *testing.T) {
	g := guarded(t, "d /h/p/sec/w;d /h/p/d", "dR=sec aW=. aW=sec/w dW=**/*.key")
	for at, want := range map[string]bool{"/h/p/sec": false, "/h/p/sec/x": false, "/h/p/sec/w": true, "/h/p/d": true} {
		if _, denied, err := g.Create(Identity{}, func() (string, error) { return at, nil }, "n.key"); denied != want || err != nil {
			t.Errorf("Create in %s: %v, %v", at, denied, err)
		}
	}
}

// TestGuardMoves_FS41: a directory is held where something in it may be denied later, if it can be moved at all.
func TestGuardMoves_FS41(t *testing.T) {
	tests := []struct {
		name, tree, rules, from, to string
		denied                      bool
	}{
		{"FS-55 into the area of a pattern", "d /h/p/a", "aW=. dW=x/**/*.key", "@/a", "@/x", true},
		{"FS-31 outside of the write roots", "d /h/q", "aW=. dW=/h/**/*.key", "/h/q", "/h/r", false},
		{"FS-31 from where nothing can be written", "d /h/q", "aW=. dW=p/x/**/*.key dW=x/*", "/h/q/d", "@/x", false},
		{"FS-31 in a directory that is denied", "d /h/p/c/d", "aW=. dW=c dW=*/*/k", "@/c/d", "@/c/e", false},
		{"FS-32 in memory", "d /h/p/sec", "aW=. dR=sec dW=sec/a/*.key", "@/sec/b", "@/sec/a", false},
		{"FS-10 leads to a name that may appear", "", "aW=. dR=nd/x/y", "@/nd", "@/o", true},
		{"FS-10 leads to it, deeper", "", "aW=. dR=nd/x/y", "@/nd/x", "@/o", true},
		{"FS-10 the name itself is judged as what it is", "", "aW=. dR=nd/x/y", "@/nd/x/y", "@/o", false},
		{"FS-41 the directory that holds it is pinned, so the kernel refuses", "d /h/p/d/e", "aW=. dR=d/nd/y", "@/d", "@/o", false},
		{"FS-10 beside it", "", "aW=. dR=nd/x/y", "@/ne", "@/o", false},
		{"FS-10 case 6 what was a file and is a directory", "f /h/p/f", "aW=. dR=f/x", "@/f", "@/g", true},
	}
	for _, tt := range tests {
		g := guarded(t, tt.tree, tt.rules)
		from, to := strings.Replace(tt.from, "@", "/h/p", 1), strings.Replace(tt.to, "@", "/h/p", 1)
		if why, denied := g.Move(from, to); denied != tt.denied {
			t.Errorf("%s: Move = %q, %v", tt.name, why, denied)
		}
	}
	g := guarded(t, "f /h/p/f", "aW=. dR=f/x")
	if !g.Moves() {
		t.Error("FS-10: the moving of what may become a directory is judged")
	}
	if why, denied := g.Leave("/h/p/f"); denied {
		t.Errorf("FS-10: a file that holds nothing cannot be moved: %q", why)
	}
	if g = guarded(t, "", "aW=. dR=new"); g.Moves() {
		t.Error("the moving of directories is judged where nothing asks for it")
	}
}

// TestGuardAgrees draws scenes with patterns: nothing that existed at the start is refused by the guard, since mounts show it
// or hide it, and whatever those hide stays so.
func TestGuardAgrees(t *testing.T) {
	series := rand.NewChaCha8([32]byte{'g', 'u', 'a', 'r', 'd'})
	data := make([]byte, 220)
	guards, hidden := 0, 0
	for range sceneCount {
		series.Read(data)
		tree, in := scene(t, data)
		c := &choices{data[150:]}
		for _, list := range []*[]policy.PathRule{&in.Rules.DenyRead, &in.Rules.AllowRead, &in.Rules.AllowWrite, &in.Rules.DenyWrite, &in.Rules.CredentialDeny} {
			for range c.next(3) {
				text := join(in.Cwd, fuzzPatterns[c.next(len(fuzzPatterns))])
				*list = append(*list, policy.PathRule{Entry: text, Key: "pattern", Path: text, Pattern: glob.IsPattern(text), Anchor: in.Cwd})
			}
		}
		plan, err := Build(tree, in)
		if err != nil {
			t.Fatalf("%v\n%s", err, describe(tree, in))
		}
		g := NewGuard(plan)
		if !g.Reads() || tree.mounts != nil { // patterns also count at other paths, for what other mounts cover there
			continue
		}
		guards++
		v, err := apply(tree, plan)
		if err != nil {
			t.Fatalf("%v\n%s", err, describe(tree, in))
		}
		for _, p := range tree.paths() {
			if v.at(p).kind != onHost {
				hidden++
			}
			if tree.objects[p].kind == 'l' {
				continue // what is opened is where a link leads
			}
			if why, denied := g.Open(p); denied {
				t.Fatalf("%s, which was there, is refused by %s\n%s\nplan:\n%s\npatterns %+v", p, why, describe(tree, in), listing(plan), plan.Patterns)
			}
		}
	}
	if guards < sceneCount/20 || hidden < guards {
		t.Errorf("%d guards and %d hidden paths: the generator makes too little", guards, hidden)
	}
}
