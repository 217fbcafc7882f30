package programs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

func TestMain(m *testing.M) { stage.Main(m) }

// use is one use of a program.
type use struct {
	name    string
	tools   []string           // commands it needs
	setup   func(*stage.Stage) // fills the project before each run; may be nil
	prepare string             // shell text that does the same, run outside after setup
	script  string             // what is run outside and inside
	env     func(*stage.Stage) []string
	rules   func(r *stage.Rules) // changes the rules; may be nil
	view    stage.View           // what of the tree varies from run to run
	heavy   bool                 // takes long: not run in the ways that another covers
	varying []string             // regular expressions of output that varies
}

// way is one set of rules that must not be felt.
type way struct {
	name      string
	denyWrite []string
	denyRead  []string
	covered   bool // another way asks for all that this one does, and more
}

// absentName is a directory of which nothing exists, in a project: its deny is in force in every run.
const absentName = "secrets"

// ways differ in how much has to be judged. None of the names that they deny is used by any program here.
var ways = []way{
	{"FS-37 protected names alone", nil, nil, true},
	{"FS-30 absent denies", []string{absentName + "/prod.env", ".env.production", "config.d/local/key"}, nil, false},
	{"FS-55 every new name is suspect", []string{absentName + "/prod.env", "elsewhere/*"}, nil, true},
	{"FS-10 every open is judged", []string{absentName + "/prod.env", "elsewhere/*"}, []string{"elsewhere/hidden", "elsewhere/**/*"}, false},
}

// probe tries to make what is denied, before the program runs in the very same sandbox, and leaves nothing behind.
const probe = "if mkdir " + absentName + " 2>/dev/null; then rmdir " + absentName + "; echo '" + notInForce + "' >&2; fi; "

const notInForce = "the deny of an absent name is not in force"

// outcome is all that is compared.
type outcome struct {
	result stage.Result
	tree   stage.Tree
}

// play fills the project afresh and runs the script there.
func (u use) play(s *stage.Stage, run func(text string) stage.Result) outcome {
	s.T.Helper()
	s.Clear()
	if u.setup != nil {
		u.setup(s)
	}
	if u.prepare != "" {
		if r := s.Outside(u.prepare); r.Status != 0 {
			s.T.Fatalf("the preparation fails: %v", r)
		}
	}
	r := run(u.script)
	for _, text := range u.varying {
		varies := regexp.MustCompile(text)
		r.Stdout, r.Stderr = varies.ReplaceAllString(r.Stdout, "..."), varies.ReplaceAllString(r.Stderr, "...")
	}
	return outcome{r, s.Tree(".", u.view)}
}

// compare runs a use outside and in every way inside.
func (u use) compare(s *stage.Stage) {
	s.T.Helper()
	s.Env = append(s.Env, environment...)
	if u.env != nil {
		s.Env = append(s.Env, u.env(s)...)
	}
	want := u.play(s, s.Outside)
	if want.result.Status != 0 {
		s.T.Fatalf("it fails without a sandbox: %v", want.result)
	}
	for _, w := range ways {
		if u.heavy && w.covered {
			continue
		}
		s.T.Run(w.name, func(t *testing.T) {
			own := *s
			own.T = t
			u.within(&own, w, want)
		})
	}
}

// within runs a use in one way inside.
func (u use) within(s *stage.Stage, w way, want outcome) {
	rules := stage.Rules{AllowWrite: []string{".", s.Temp}, DenyWrite: w.denyWrite, DenyRead: w.denyRead}
	if u.rules != nil {
		u.rules(&rules)
	}
	settings := s.Settings(rules)
	elsewhere := stage.View{Without: []string{"home/p", "tmp"}}
	around := s.Tree(s.Dir, elsewhere)
	got := u.play(s, func(text string) stage.Result {
		if len(w.denyWrite) > 0 {
			text = probe + text
		}
		return s.Inside(settings, text)
	})
	if strings.Contains(got.result.Stderr, notInForce) {
		s.T.Error(notInForce)
		got.result.Stderr = strings.ReplaceAll(got.result.Stderr, notInForce+"\n", "")
	}
	if got.result.Status != want.result.Status {
		s.T.Errorf("want status %d; %v", want.result.Status, got.result)
	}
	sameText(s.T, "standard output", want.result.Stdout, got.result.Stdout)
	sameText(s.T, "standard error", want.result.Stderr, got.result.Stderr)
	report(s.T, "in the project", want.tree, got.tree)
	report(s.T, "around the project", around, s.Tree(s.Dir, elsewhere))
}

// sameText fails the test with the lines from the first to the last that differ.
func sameText(t *testing.T, what, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	a, b := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	t.Errorf("%s differs; outside:\n%s\ninside:\n%s", what, strings.Join(a, ""), strings.Join(b, ""))
}

// report fails the test with the first differences of two trees.
func report(t *testing.T, what string, want, got stage.Tree) {
	t.Helper()
	lines := stage.Differences(want, got)
	if len(lines) == 0 {
		return
	}
	shown := lines[:min(len(lines), 12)]
	t.Errorf("%s %d objects differ:\n%s", what, len(lines), strings.Join(shown, "\n"))
}

// compareAll is a test of its own for each use.
func compareAll(t *testing.T, uses []use) {
	t.Helper()
	for _, u := range uses {
		t.Run(u.name, func(t *testing.T) {
			stage.Need(t, u.tools...)
			stage.EachAlong(t, u.compare)
		})
	}
}

// environment keeps programs from asking for or reading anything of the host's, and from using the time.
var environment = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
	"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
	"GIT_COMMITTER_DATE=1700000000 +0000", "GIT_EDITOR=true", "GIT_PAGER=cat", "SOURCE_DATE_EPOCH=1700000000",
	"GIT_CONFIG_COUNT=6", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
	"GIT_CONFIG_KEY_1=pack.threads", "GIT_CONFIG_VALUE_1=1", "GIT_CONFIG_KEY_2=gc.autoDetach", "GIT_CONFIG_VALUE_2=false",
	"GIT_CONFIG_KEY_3=protocol.file.allow", "GIT_CONFIG_VALUE_3=always", "GIT_CONFIG_KEY_4=safe.directory", "GIT_CONFIG_VALUE_4=*",
	"GIT_CONFIG_KEY_5=advice.detachedHead", "GIT_CONFIG_VALUE_5=false"}
