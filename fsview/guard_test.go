package fsview

import (
	"errors"
	"testing"
)

var projectID = Identity{Dev: 7, Ino: 100}

// guardPlan is a plan with one rule of every kind. /p is the project.
func guardPlan() *Plan {
	return &Plan{
		AllowRead: []string{"/p", "/p/keys/open.pem", "/p/open", "/w"},
		Absent: []Absent{
			{Path: "/p/new/x/y", Dir: "/p", ID: projectID, Name: "new", Write: true, Why: "denyWrite.0"},
			{Path: "/p/.bashrc", Dir: "/p", ID: projectID, Name: ".bashrc", Fold: true, Write: true, Why: "protected"},
			{Path: "/home/u/.aws", Dir: "/home/u", ID: Identity{Dev: 7, Ino: 5}, Name: ".aws", Read: true, Why: "denyRead.0"},
			{Path: "/home/u/.netrc", Dir: "/home/u", ID: Identity{Dev: 7, Ino: 5}, Name: ".netrc", Read: true, Hard: true, Why: "cred"},
		},
		Patterns: []Pattern{
			{Text: "/p/**/*.key", Write: true, Why: "denyWrite.1"},
			{Text: "/p/**/*.pem", Read: true, Why: "denyRead.1"},
			{Text: "/p/sec*", Read: true, Hard: true, Why: "cred.1"},
		},
	}
}

func TestGuard_NothingToJudge(t *testing.T) {
	for _, p := range []*Plan{{}, {Patterns: []Pattern{{Text: "/p/*"}}}, {AllowRead: []string{"/p"}}} {
		g := NewGuard(p)
		if g != nil || g.Names() || g.Reads() || g.Moves() || g.Suspect(".bashrc") {
			t.Errorf("a plan that mounts enforce alone has a guard: %+v", g)
		}
	}
}

func TestGuard_WhichCallsAreJudged(t *testing.T) {
	p := guardPlan()
	if g := NewGuard(p); !g.Names() || !g.Reads() || !g.Moves() {
		t.Error("a guard with rules of every kind judges everything")
	}
	p.Patterns, p.Absent = nil, p.Absent[:2]
	if g := NewGuard(p); !g.Names() || g.Reads() || g.Moves() {
		t.Error("reading stays untrapped where no rule is about it")
	}
}

func TestGuard_Create(t *testing.T) {
	g := NewGuard(guardPlan())
	other := Identity{Dev: 7, Ino: 101}
	tests := []struct {
		rule    string
		dir     Identity
		at      string
		name    string
		suspect bool
		why     string
	}{
		{"FS-30 missing parent", projectID, "/p", "new", true, "denyWrite.0"},
		{"FS-30 same name elsewhere", other, "/p/a", "new", true, ""},
		{"FS-30 same inode, other device", Identity{Dev: 8, Ino: 100}, "/q", "new", true, ""},
		{"FS-12 case counts", projectID, "/p", "NEW", false, ""},
		{"FS-38 case is ignored", projectID, "/p", ".BashRC", true, "protected"},
		{"FS-55 pattern", other, "/p/a/b", "k.key", true, "denyWrite.1"},
		{"FS-55 pattern, its own directory", projectID, "/p", "k.key", true, "denyWrite.1"},
		{"FS-12 anchored", other, "/w", "k.key", true, ""},
		{"FS-10 what must not be opened is not made", other, "/home/u", ".aws", true, "denyRead.0"},
		{"FS-10 nor what matches a read pattern", other, "/p/a", "k.pem", true, "denyRead.1"},
		{"FS-22 unless it may be opened", other, "/p/keys", "open.pem", true, ""},
		{"other names", projectID, "/p", "main.go", false, ""},
	}
	for _, tt := range tests {
		if got := g.Suspect(tt.name); got != tt.suspect {
			t.Errorf("%s: Suspect(%q) = %v", tt.rule, tt.name, got)
		}
		why, denied, err := g.Create(tt.dir, func() (string, error) { return tt.at, nil }, tt.name)
		if err != nil || why != tt.why || denied != (tt.why != "") {
			t.Errorf("%s: Create(%q in %q) = %q, %v, %v", tt.rule, tt.name, tt.at, why, denied, err)
		}
	}
}

func TestGuard_CreateFailsWithTheLocation(t *testing.T) {
	gone := errors.New("gone")
	_, _, err := NewGuard(guardPlan()).Create(projectID, func() (string, error) { return "", gone }, "k.key")
	if !errors.Is(err, gone) {
		t.Errorf("a directory whose location cannot be told: %v", err)
	}
}

func TestGuard_Open(t *testing.T) {
	g := NewGuard(guardPlan())
	tests := []struct{ rule, at, why string }{
		{"FS-10 appears later", "/home/u/.aws", "denyRead.0"},
		{"FS-10 and what lies beneath", "/home/u/.aws/credentials", "denyRead.0"},
		{"FS-10 whole components", "/home/u/.awsome", ""},
		{"FS-57 hard", "/home/u/.netrc", "cred"},
		{"FS-15 match", "/p/a/k.pem", "denyRead.1"},
		{"FS-15 beneath a match", "/p/a.pem/x/y", "denyRead.1"},
		{"FS-22 the deeper deny beats a write root above", "/p/k.pem", "denyRead.1"},
		{"FS-22 allow at equal depth", "/p/keys/open.pem", ""},
		{"FS-22 allow above", "/p/open/k.pem", "denyRead.1"},
		{"FS-22 allow beneath a match", "/p/open", ""},
		{"FS-57 no list lifts it", "/p/secrets/x", "cred.1"},
		{"elsewhere", "/w/k.pem", ""},
		{"the root", "/", ""},
	}
	for _, tt := range tests {
		if why, denied := g.Open(tt.at); why != tt.why || denied != (tt.why != "") {
			t.Errorf("%s: Open(%q) = %q, %v", tt.rule, tt.at, why, denied)
		}
	}
}

func TestGuard_AllowedBeneathADeeperDeny(t *testing.T) {
	p := &Plan{AllowRead: []string{"/p/a.pem/pub"}, Patterns: []Pattern{{Text: "/p/*.pem", Read: true, Why: "deny"}}}
	g := NewGuard(p)
	if why, denied := g.Open("/p/a.pem/pub/x"); denied {
		t.Errorf("FS-22: the deepest rule decides, yet it is refused by %q", why)
	}
	if _, denied := g.Open("/p/a.pem/priv"); !denied {
		t.Error("FS-22: an allow beneath opens what it covers alone")
	}
}

func TestGuard_DeepPattern_FS20(t *testing.T) {
	p := &Plan{AllowRead: []string{"/p/a/build", "/p/b/build/x"}, Patterns: []Pattern{{Text: "/p/**/build/**", Read: true, Why: "deny"}}}
	g := NewGuard(p)
	for at, want := range map[string]bool{
		"/p/a/build/new": false, "/p/a/build": false, "/p/b/build/new": true, "/p/b/build/x/build/y": true, "/p/b/build/x/y": false, "/p/b/build": false,
	} {
		if _, denied := g.Open(at); denied != want {
			t.Errorf("FS-20: Open(%q) = %v", at, denied)
		}
	}
}

func TestGuard_LeavesKernelTreesAlone_FS47(t *testing.T) {
	g := NewGuard(&Plan{Patterns: []Pattern{{Text: "/**/*", Read: true, Why: "deny"}}})
	for at, want := range map[string]bool{"/proc/1/status": false, "/dev/null": false, "/sys/x": false, "/etc/passwd": true} {
		if _, denied := g.Open(at); denied != want {
			t.Errorf("FS-47: Open(%q) = %v", at, denied)
		}
	}
}

func TestGuard_Move(t *testing.T) {
	tests := []struct {
		rule     string
		pattern  Pattern
		from, to string
		denied   bool
	}{
		{"into the area", Pattern{Text: "/p/src/**/*.key", Write: true}, "/p/tmp/d", "/p/src/d", true},
		{"within the area", Pattern{Text: "/p/src/**/*.key", Write: true}, "/p/src/a/d", "/p/src/b/d", false},
		{"out of the area, writing", Pattern{Text: "/p/src/**/*.key", Write: true}, "/p/src/d", "/p/tmp/d", false},
		{"out of the area, reading", Pattern{Text: "/p/src/**/*.key", Read: true}, "/p/src/d", "/p/tmp/d", true},
		{"elsewhere", Pattern{Text: "/p/src/**/*.key", Write: true, Read: true}, "/p/a", "/p/b", false},
		{"to the depth that counts", Pattern{Text: "/p/*/x.key", Write: true}, "/p/a/b", "/p/b", true},
		{"from the depth that counts", Pattern{Text: "/p/*/x.key", Write: true}, "/p/b", "/p/a/b", false},
	}
	for _, tt := range tests {
		tt.pattern.Why = "why"
		why, denied := NewGuard(&Plan{RootWritable: true, Patterns: []Pattern{tt.pattern}}).Move(tt.from, tt.to)
		if denied != tt.denied || (why != "") != denied {
			t.Errorf("FS-55 %s: Move(%q, %q) = %q, %v", tt.rule, tt.from, tt.to, why, denied)
		}
	}
}

// FS-10, FS-55: a link at a name on the way to what is denied would show that under the name it leads to.
func TestGuard_Redirect(t *testing.T) {
	plan := &Plan{WriteRoots: []string{"/p"},
		Absent: []Absent{{Path: "/p/s/deep/token", Dir: "/p", ID: projectID, Name: "s", Read: true, Why: "absent"}},
		Patterns: []Pattern{{Text: "/p/.husky/*", Write: true, Why: "husky"}, {Text: "/p/**/.github/workflows/*.yml", Write: true, Why: "github"},
			{Text: "/p/**/*.key", Read: true, Why: "key"}}}
	plan.Steps = []Step{{Kind: Writable, Path: "/p", Dir: true}}
	g := NewGuard(plan)
	for at, want := range map[string]string{
		"/p/.husky": "husky", "/p/a/.husky": "", "/p/.github": "github", "/p/a/b/.github": "github", "/p/x/.github/workflows": "github",
		"/p/workflows": "", "/p/node_modules/.bin/tsc": "", "/p/s": "absent", "/p/s/deep": "absent", "/p/s/other": "", "/p/t": "", "/q/.github": "",
	} {
		if why, denied := g.Redirect(at); why != want || denied != (want != "") {
			t.Errorf("Redirect(%q) = %q, %v; want %q", at, why, denied, want)
		}
	}
	if why, denied := g.Move("/p/t", "/p/s"); !denied || why != "absent" {
		t.Errorf("a directory may take the place of one on the way: %q, %v", why, denied)
	}
	if _, denied := (*Guard)(nil).Redirect("/p/x"); denied {
		t.Error("a nil guard refuses")
	}
}

func TestGuard_Leave(t *testing.T) {
	g := NewGuard(guardPlan())
	for at, want := range map[string]bool{
		"/home/u/.aws": true, "/home/u/.aws/credentials": true, "/home/u": false, "/home": false, "/home/v": false,
		"/p/k.pem": true, "/p/main.go": false,
	} {
		if _, denied := g.Leave(at); denied != want {
			t.Errorf("FS-10: Leave(%q) = %v", at, denied)
		}
	}
	if _, denied := (*Guard)(nil).Leave("/p"); denied {
		t.Error("a nil guard refuses")
	}
}
