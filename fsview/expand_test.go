package fsview

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// denies lists the steps of a plan that hide or protect something, and the patterns that are judged later, as "hide @/a".
func denies(plan *Plan) (steps, patterns []string) {
	for _, s := range plan.Steps {
		if s.Kind != Pin && !strings.Contains(s.Why, "FS-35") {
			steps = append(steps, s.Kind.String()+" "+strings.ReplaceAll(s.Path, "/h/p", "@"))
		}
	}
	for _, p := range plan.Patterns {
		how := ""
		for flag, on := range map[string]bool{"r": p.Read, "w": p.Write, "h": p.Hard} {
			if on {
				how += flag
			}
		}
		letters := strings.Split(how, "")
		slices.Sort(letters)
		patterns = append(patterns, strings.Join(letters, "")+" "+strings.ReplaceAll(p.Text, "/h/p", "@"))
	}
	return steps, patterns
}

func TestPatterns(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		steps, patterns   string // separated by "; "
	}{
		{"FS-12 anchored at cwd, case 14", "f /h/p/b.pem;f /h/p/a/k.pem;f /h/k.pem", "dR=*.pem", "hide file @/b.pem", "r @/*.pem"},
		{"FS-12 any depth", "f /h/p/b.pem;f /h/p/a/k.pem;f /h/k.pem", "dR=**/*.pem", "hide file @/a/k.pem; hide file @/b.pem", "r @/**/*.pem"},
		{"FS-12 the home", "f /h/.k;f /h/p/.k", "dR=~/*k", "hide file /h/.k", "r /h/*k"},
		{"FS-12 case-sensitive", "f /h/p/A.PEM", "dR=*.pem", "", "r @/*.pem"},
		{"FS-12 glob characters of the cwd are a name", "f /w/[x]/a.k;f /w/x/a.k", "cwd=/w/[x] dR=*.k", "hide file /w/[x]/a.k", "r /w/[[]x]/*.k"},
		{"FS-15 a matched directory with all beneath", "d /h/p/sec1;f /h/p/sec1/k", "dR=sec?", "hide directory @/sec1", "r @/sec?"},
		{"FS-15 an allow pattern allows all beneath", "d /h/p/ab;f /h/p/ab/f;d /h/p/b", "aW=a*", "writable @/ab", ""},
		{"FS-16 case 15 a pattern and a name", "d /h/p/x*y;d /h/p/xay", "dR=x*y", "hide directory @/x*y; hide directory @/xay", "r @/x*y"},
		{"FS-16 case 16 a backward range is a name", "d /h/p/t[user-id]", "dR=t[user-id]", "hide directory @/t[user-id]", "r @/t[user-id]"},
		{"FS-16 a set and a name", "f /h/p/[ab];f /h/p/a", "dR=[ab]", "hide file @/[ab]; hide file @/a", "r @/[ab]"},
		{"FS-16 beneath a name that exists", "f /h/p/[WI]/a/.env;f /h/p/W/.env", "dR=[WI]/**/.env",
			"hide file @/W/.env; hide file @/[WI]/a/.env", "r @/[WI]/**/.env; r @/[[]WI]/**/.env"},
		{"FS-16 a dangling link counts as existing for a deny", "l /h/p/[x] gone", "dW=[x] aW=.", "writable @", "w @/[x]"},
		{"FS-16 an allow through a link is none", "l /h/p/[x] d;d /h/p/d", "aW=[x]", "", ""},
		{"FS-16 an allow beneath a link is none", "l /h/p/[x] d;d /h/p/d;f /h/p/d/a1", "aW=[x]/a*", "", ""},
		{"FS-16 an allow with a link further on is none", "d /h/p/[x];l /h/p/[x]/l ../d;d /h/p/d", "aW=[x]/l", "", ""},
		{"FS-16 an allow that is a name", "d /h/p/[x]", "aW=[x]", "writable @/[x]", ""},
		{"FS-18 a linked directory outside", "l /h/p/ext /h/ext;f /h/ext/k.pem", "dR=**/*.pem", "hide file /h/ext/k.pem",
			"r @/**/*.pem; r /h/ext/**.pem"},
		{"FS-18 a link to a match", "l /h/p/a.pem /h/key;f /h/key", "dR=*.pem", "hide file /h/key", "r @/*.pem"},
		{"FS-18 a link to its own directory", "l /h/p/self .;f /h/p/a.pem", "dR=**/*.pem", "hide file @/a.pem", "r @/**/*.pem"},
		{"FS-18 a link above the start", "l /h/p/up ..;f /h/b.pem", "dR=**/*.pem", "", "r @/**/*.pem"},
		{"FS-18 a link above that matches", "l /h/p/d/up ..;f /h/p/d/x", "dR=d/u*", "hide directory @", ""},
		{"FS-18 a link to the root that matches", "l /h/p/d/up /", "dR=d/u*", "hide directory @/d", ""},
		{"FS-18 links in a circle", "l /h/p/a /e/x;l /e/x/b /e/y;l /e/y/c /e/x;f /e/y/k.pem", "dR=**/*.pem", "hide file /e/y/k.pem",
			"r @/**/*.pem; r /e/x/**.pem; r /e/y/**.pem"},
		{"FS-18 a dangling match", "l /h/p/a.pem gone", "dR=*.pem", "", "r @/*.pem"},
		{"FS-18 the literal directory is a link", "l /h/p/l /h/e;f /h/e/k.pem", "dR=l/*.pem", "hide file /h/e/k.pem", "r /h/e/*.pem"},
		{"FS-18 a match that cannot be inspected", "f /h/p/d/a.pem eio", "dR=d/*.pem", "hide directory @/d", ""},
		{"FS-18 a link to what cannot be inspected", "l /h/p/a.pem /h/e/x;f /h/e/x eio", "dR=*.pem", "hide directory /h/e", "r @/*.pem"},
		{"FS-19 a directory that cannot be listed", "d /h/p/l mode=311;f /h/p/l/a.pem;f /h/p/o/a.pem", "dR=**/*.pem aR=l/a.pem",
			"hide directory @/l; hide file @/o/a.pem", "r @/**/*.pem"},
		{"FS-19 the literal directory cannot be listed", "d /h/p/l mode=311", "dR=l/*.pem", "hide directory @/l", ""},
		{"FS-19 not a directory that leads nowhere", "d /h/p/l mode=0", "dR=*.pem", "", "r @/*.pem"},
		{"FS-20 what a directory holds", "f /h/p/a/build/o;d /h/p/b/build", "dR=**/build/**", "hide directory @/a/build", "r @/**/build/**"},
		{"FS-20 an allow re-opens new names alone", "f /h/p/a/build/o;d /h/p/a/build/n", "dR=*/build/** aR=a/build",
			"hide directory @/a/build/n; hide file @/a/build/o", "r @/*/build/**"},
		{"FS-20 beneath a name that exists", "f /h/p/[x]/o", "dR=[x]/**", "hide directory @/[x]", "r @/[x]/**"},
		{"FS-6 a write pattern covers all beneath", "f /h/p/a/build/o;d /h/p/b/build", "aW=. dW=*/build/**",
			"writable @; read-only @/a/build; read-only @/b/build", "w @/*/build"},
		{"FS-22 the deepest match decides", "f /h/p/s1/k.pem;f /h/p/s1/o", "dR=s* dR=**/*.pem aR=s1", "hide file @/s1/k.pem", "r @/s*; r @/**/*.pem"},
		{"FS-22 allow patterns", "f /h/p/s/a.txt;f /h/p/s/b", "dR=s aR=s/*.txt", "hide directory @/s; reveal @/s/a.txt", ""},
		{"FS-22 an allow pattern does not follow links", "d /h/p/s;l /h/p/s/l ../t;f /h/p/t/a.txt", "dR=s dR=t aR=s/*/*.txt",
			"hide directory @/s; hide directory @/t", ""},
		{"FS-26 case 2 with patterns", "f /h/p/conf1;f /h/p/prot/a", "aW=. dW=conf? dW=prot/*", "writable @; read-only @/conf1; read-only @/prot/a",
			"w @/conf?; w @/prot/*"},
		{"FS-55 a wildcard in the first component", "f /opt1/x;f /opt2/y", "dR=/opt*/x", "hide file /opt1/x", "r /opt*/x"},
		{"FS-55 from the root", "f /h/p/a.pem;f /etc/b.pem;f /proc/1/c.pem;f /sys/d.pem", "dR=/**/*.pem", "hide file /etc/b.pem; hide file @/a.pem",
			"r /**/*.pem"},
		{"FS-55 no root in the area", "f /opt/x1", "aW=. dW=/opt/x*", "writable @", ""},
		{"FS-55 a root in the area", "d /h/p/q", "aW=q dW=**/x", "writable @/q", "w @/**/x"},
		{"FS-55 an area around a root that leads elsewhere", "d /h/p/q", "aW=q dW=*/x", "writable @/q", "w @/*/x"},
		{"FS-55 an area that cannot reach a root", "d /h/p/q", "aW=q dW=*.x", "writable @/q", ""},
		{"FS-55 a directory that cannot be listed, for writing", "d /h/p/l mode=311", "aW=. dW=l/*.x", "writable @; read-only @/l", "w @/l/*.x"},
		{"FS-55 what is hidden whole needs no judging", "d /h/p/s", "dR=s dR=s/*.pem", "hide directory @/s", ""},
		{"FS-55 a hidden directory with a re-opened part", "d /h/p/s/o", "dR=s dR=s/o/*.pem aR=s/o", "hide directory @/s; reveal @/s/o", "r @/s/o/*.pem"},
		{"FS-55 the area does not exist", "", "aW=. dW=n/*.x dR=n/*.y", "writable @", "r @/n/*.y; w @/n/*.x"},
		{"FS-55 grants are existing matches", "d /h/p/out1;d /h/p/out2;l /h/p/out3 q;d /h/p/q", "aW=out*", "writable @/out1; writable @/out2", ""},
		{"FS-55 a grant within a grant", "d /h/p/o1/o2", "aW=**/o*", "writable @/o1", ""},
		{"FS-55 a grant within what is hidden in a grant", "d /h/p/o1/s/o2", "dR=o1/s aW=**/o*", "writable @/o1; hide directory @/o1/s; reveal writable @/o1/s/o2", ""},
		{"FS-55 no grant through a link on the way", "l /h/p/l q;d /h/p/q/o1", "aW=l/o*", "", ""},
		{"FS-57 a credential pattern", "f /h/p/s/a.key", "cred=**/*.key aR=s/a.key aR=**/*.key dR=x", "hide file @/s/a.key", "hr @/**/*.key; r"},
		{"FS-47 a pattern in /dev", "f /dev/null;f /dev/nvram", "dR=/dev/nu*", "hide file /dev/null", ""},
		{"FS-47 a link to the sandbox's own", "l /h/p/a.log /dev/null;f /dev/null", "dR=*.log", "", "r @/*.log"},
		{"FS-3 an allow that ends in a separator matches nothing", "d /h/p/ab", "aW=~/p/a*/", "", ""},
		{"FS-3 a relative one loses it", "d /h/p/xa", "dR=x*/", "hide directory @/xa", "r @/x*"},
		{"FS-13 names are bytes", "f /h/p/\xff.pem", "dR=?.pem", "hide file @/\xff.pem", "r @/?.pem"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			steps, patterns := denies(plan)
			patterns = slices.DeleteFunc(patterns, func(p string) bool { return strings.HasSuffix(p, "/x") && strings.HasPrefix(p, "r @/x") })
			if got := strings.Join(steps, "; "); got != tt.steps {
				t.Errorf("steps    %q\nwant     %q", got, tt.steps)
			}
			if got := strings.Join(patterns, "; "); got != strings.TrimSuffix(tt.patterns, "; r") {
				t.Errorf("patterns %q\nwant     %q", got, tt.patterns)
			}
		})
	}
}

// TestPatternsListNoMore_FS18: directories that cannot lead to a match are not listed.
func TestPatternsListNoMore_FS18(t *testing.T) {
	const tree = "f /h/p/a/b/c/x.pem;f /h/p/d/e/x.pem;f /h/q/r/x.pem;d /h/p/certs/old"
	for _, tt := range []struct {
		rules string
		want  int64
	}{
		{"dR=*.pem", 1}, {"dR=certs/*.pem", 1}, {"dR=*/b/*.pem", 5}, {"dR=**/*.pem", 8}, {"dR=**/*.pem dR=**/*.key cred=**/.env", 8},
		{"dR=none/*.pem", 0}, {"dR=a/b/c/x.pe?", 1}, {"aR=**/*.pem", 0}, {"dR=/h/q/**/x*", 2},
	} {
		tr := newFakeTree(t, tree)
		built(t, tr, tt.rules)
		if got := tr.lists.Load(); got != tt.want {
			t.Errorf("%s lists %d directories, want %d", tt.rules, got, tt.want)
		}
	}
}

// TestPatternsHold_FS42: the links that lead to a match stay.
func TestPatternsHold_FS42(t *testing.T) {
	for _, tt := range []struct{ tree, rules, held string }{
		{"l /h/p/a.pem s/key;f /h/p/s/key", "aW=. dR=*.pem", "/h/p/a.pem"},
		{"l /h/p/ext /h/ext;f /h/ext/k.pem", "aW=. dR=**/*.pem", "/h/p/ext"},
		{"l /h/p/l q;f /h/p/q/k.pem", "aW=. dW=l/*.pem", "/h/p/l"},
	} {
		plan, _ := built(t, newFakeTree(t, tt.tree), tt.rules)
		if !slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Kind == Pin && s.Path == tt.held }) {
			t.Errorf("%s: %s is not pinned:\n%s", tt.rules, tt.held, listing(plan))
		}
	}
	plan, _ := built(t, newFakeTree(t, "l /h/p/ext /h/ext;f /h/ext/k"), "aW=. dR=**/*.pem")
	if slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Kind == Pin }) {
		t.Errorf("a link that leads to no match is pinned:\n%s", listing(plan))
	}
}

func TestPatternErrors(t *testing.T) {
	for _, tt := range []struct {
		name, tree, rules string
		reason            error
	}{
		{"FS-47 processes", "f /proc/1/environ", "dR=/proc/*/environ", ErrPerProcess},
		{"FS-19 the root cannot be listed", "d /a", "dR=/*/x", ErrUninspected},
		{"FS-11 not inspectable in the root", "f /bad1 eio", "dR=/bad?", ErrUninspected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "d /h/p;"+tt.tree)
			if strings.Contains(tt.name, "cannot be listed") {
				tree.objects["/"].mode = 0o311
			}
			_, err := Build(tree, input(t, tt.rules))
			var ee *EntryError
			if !errors.As(err, &ee) || !errors.Is(err, tt.reason) || ee.Advice == "" {
				t.Errorf("error %v, want %v", err, tt.reason)
			}
		})
	}
}

// typedTree is a fakeTree in which the type of some entries is not reported.
type typedTree struct {
	*fakeTree
	unknown string
}

func (f typedTree) ListTypes(p string) ([]DirEntry, error) {
	list, err := f.ReadDir(p)
	for i := range list {
		if strings.HasPrefix(list[i].Name, f.unknown) {
			list[i].Type = unknownType
		}
	}
	return list, err
}

// TestUnknownType_FS19: what may be a directory counts as one that cannot be listed.
func TestUnknownType_FS19(t *testing.T) {
	tree := newFakeTree(t, "f /h/p/d/u1/k.pem eacces;f /h/p/d/k.pem;f /h/p/e/k.pem")
	tree.objects["/h/p/d/u1"].err = syscall.EACCES
	plan, err := Build(typedTree{tree, "u"}, input(t, "dR=*/**/*.pem aR=d/k.pem"))
	if err != nil {
		t.Fatal(err)
	}
	steps, _ := denies(plan)
	if got, want := strings.Join(steps, "; "), "hide directory @/d; hide file @/e/k.pem"; got != want {
		t.Errorf("steps %q, want %q", got, want)
	}
	plan, err = Build(typedTree{tree, "u"}, input(t, "dR=d/*.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if steps, _ = denies(plan); len(steps) != 1 || steps[0] != "hide file @/d/k.pem" {
		t.Errorf("an entry that cannot match counts: %q", steps)
	}
}

// TestPatternsOfMany_FS65 case 36: every one of 3,500 files is hidden, though a second goroutine lists.
func TestPatternsOfMany_FS65(t *testing.T) {
	var lines strings.Builder
	for i := range 3500 {
		fmt.Fprintf(&lines, "f /h/p/d%d/%d.key;", i%7, i)
	}
	plan, _ := built(t, newFakeTree(t, lines.String()), "dR=**/*.key")
	if steps, _ := denies(plan); len(steps) != 3500 {
		t.Errorf("%d files are hidden", len(steps))
	}
}

// TestPatternsOverMounts_FS7: what matches later is judged at each path at which a mount shows it.
func TestPatternsOverMounts_FS7(t *testing.T) {
	for _, tt := range []struct{ tree, rules, steps, patterns string }{
		{"f /h/p/a/k.pem;d /m;m /m /h/p/a", "dR=a/*.pem", "hide file /m/k.pem; hide file @/a/k.pem", "r @/a/*.pem; r /m/*.pem"},
		{"f /h/p/a/k.pem;d /m;m /m /h/p/a", "dR=*/*.pem", "hide file @/a/k.pem; hide file /m/k.pem", "r @/*/*.pem; r /m/*.pem"},
	} {
		plan, _ := built(t, newFakeTree(t, tt.tree), tt.rules)
		steps, patterns := denies(plan)
		slices.Sort(steps)
		want := strings.Split(tt.steps, "; ")
		slices.Sort(want)
		if !slices.Equal(steps, want) || strings.Join(patterns, "; ") != tt.patterns {
			t.Errorf("%s: steps %q patterns %q", tt.rules, steps, patterns)
		}
	}
}

// TestExpansionIsDeterministic: what is found by two goroutines comes in one order.
func TestExpansionIsDeterministic(t *testing.T) {
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, "f /h/p/d%d/%d.key;d /h/p/l%d mode=0;", i%50, i, i)
	}
	first := ""
	for range 5 {
		plan, _ := built(t, newFakeTree(t, lines.String()), "dR=**/*.key dW=**/*.key aW=.")
		got := listing(plan) + strings.Join(plan.Notes, "\n")
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatal("two plans of one tree differ")
		}
	}
}

func TestDefaultWritePaths_FS28(t *testing.T) {
	const npm, debug = "/h/.npm/_logs", "/h/.claude/debug"
	for _, tt := range []struct {
		rules      string
		npm, debug bool
	}{
		{"", true, true},
		{"dR=~/.n*", false, true},
		{"dR=~/.n*x", true, true},
		{"dR=~/.npm/*", false, true},
		{"dR=~/*", false, false},
		{"dR=~/** aR=~", true, true},
		{"dR=~/* aR=~", false, false},
		{"dR=~/* aR=~/.npm", true, false},
		{"dR=~/.*/** aR=~/.npm", false, false},
		{"dR=~/.n*/* aR=~/.npm/_logs", true, true},
		{"dR=~/* aR=~/.n*", false, false},
		{"cred=~/* aR=~/.npm", false, false},
		{"dR=/*/.npm", false, true},
		{"dR=/**/debug", true, false},
	} {
		in := input(t, tt.rules)
		list := DefaultWritePaths("/h", in.Rules)
		if slices.Contains(list, npm) != tt.npm || slices.Contains(list, debug) != tt.debug || !slices.Contains(list, "/dev/null") {
			t.Errorf("%s: %q", tt.rules, list)
		}
	}
	if list := DefaultWritePaths("", policy.PathRules{}); slices.Contains(list, npm) {
		t.Error("a path in no home")
	}
}
