package fsview

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// gitBox is a directory with real repositories in it.
type gitBox struct {
	t   *testing.T
	dir string
}

func newGitBox(t *testing.T) *gitBox {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed (apt-get install git)")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &gitBox{t, dir}
	g.run(dir, "git init -q -b main lib && cd lib && echo l >l && git add . && git commit -qm l")
	g.run(dir, "git init -q -b main r && cd r && mkdir d1 d2 && echo 1 >d1/f && echo 2 >d2/f && echo 3 >f && git add . && git commit -qm one && "+
		"git branch other && git submodule -q add ../lib sub && git commit -qm sub && git worktree add -q ../wt -b wt")
	return g
}

// run runs a script in a directory and fails the test when it fails.
func (g *gitBox) run(dir, script string) {
	g.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.dir, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow",
		"GIT_CONFIG_VALUE_0=always"}
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// plan is that of a command in a directory that may write everything in the box.
func (g *gitBox) plan(cwd string, gitConfig bool) *Plan {
	g.t.Helper()
	in := Input{Cwd: cwd, UID: os.Geteuid(), AllowGitConfig: gitConfig}
	in.Rules.AllowWrite = []policy.PathRule{{Key: "test", Path: g.dir}}
	plan, err := Build(Host(), in)
	if err != nil {
		g.t.Fatal(err)
	}
	return plan
}

// contents are the files that a plan makes read-only.
func contents(t *testing.T, plan *Plan) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, s := range plan.Steps {
		if s.Kind == ReadOnly && !s.Dir {
			text, err := os.ReadFile(s.Path)
			if err != nil {
				t.Fatal(err)
			}
			files[s.Path] = string(text)
		}
	}
	return files
}

// broken says which rules of a plan did not hold, as paths in the box: "+" that came to exist, "~" that changed.
func (g *gitBox) broken(plan *Plan, before map[string]string) string {
	var list []string
	for _, a := range plan.Absent {
		if _, err := os.Lstat(join(a.Dir, a.Name)); err == nil {
			list = append(list, "+"+strings.TrimPrefix(join(a.Dir, a.Name), g.dir+"/"))
		}
	}
	for _, s := range plan.Steps {
		if text, err := os.ReadFile(s.Path); s.Kind == ReadOnly && !s.Dir && (err != nil || string(text) != before[s.Path]) {
			list = append(list, "~"+strings.TrimPrefix(s.Path, g.dir+"/"))
		}
	}
	return strings.Join(list, " ")
}

// TestGitNeeds_FS37_FS39 runs git outside of a sandbox and says which rules of a plan it would have met: what everyday work
// needs is not denied. What does meet a rule changes the configuration, which allowGitConfig opens.
func TestGitNeeds_FS37_FS39(t *testing.T) {
	const sparse = "git sparse-checkout set d1"
	tests := []struct {
		name, cwd string
		before    string // what the repository has been made to be
		script    string
		want      string // see broken
	}{
		{"init in an empty directory", "new", "mkdir ../new", "git init -q && echo x >x && git add -A && git commit -qm x", ""},
		{"add and commit", "r", "", "echo n >n && git add -A && git commit -qm n && git status", ""},
		{"branch and checkout", "r", "", "git branch b && git checkout -q -b c other && git checkout -q main && git tag v1", ""},
		{"stash", "r", "", "echo m >>f && git stash -q && git stash pop -q", ""},
		{"rebase and merge", "r", "", "git checkout -q other && echo o >o && git add o && git commit -qm o && git rebase -q main && git checkout -q main && git merge -q other", ""},
		{"worktree add and remove", "r", "", "git worktree add -q ../wt2 -b wt2 && cd ../wt2 && echo x >>f && git commit -qam x && cd ../r && git worktree remove ../wt2", ""},
		{"gc", "r", "", "git gc -q --prune=now && git fsck", ""},
		{"submodule update of one that is not there yet", "r", "git submodule -q deinit -f sub && rm -rf .git/modules/sub && git submodule -q init",
			"git submodule -q update && test -f sub/l", ""},
		{"submodule update of one that is there writes what its configuration says already", "r", "", "git submodule -q update && test -f sub/l", ""},
		{"commit in a submodule", "r", "", "cd sub && git checkout -q -b s && echo x >x && git add x && git commit -qm x && cd .. && git add sub && git commit -qm s", ""},
		{"work in a worktree", "wt", "", "echo x >>f && git commit -qam x && git stash list && git rebase -q main && git gc -q", ""},
		{"sparse-checkout in a repository that is sparse", "r", sparse, "git sparse-checkout set d2 && test ! -e d1/f && git sparse-checkout add d1 && git sparse-checkout reapply", ""},
		{"sparse-checkout in a worktree that is sparse", "wt", sparse, "git sparse-checkout set d2 && test ! -e d1/f", ""},
		{"worktree add in a repository that is sparse", "r", sparse, "git worktree add -q ../wt2 -b wt2", ""},
		{"the first sparse-checkout changes the configuration", "r", "", sparse, "+r/.git/config.worktree ~r/.git/config"},
		{"its end does too", "r", sparse, "git sparse-checkout disable", "~r/.git/config.worktree"},
		{"the first sparse-checkout in a worktree", "wt", "", sparse, "+r/.git/worktrees/wt/config.worktree ~r/.git/config"},
		{"tracking changes the configuration", "r", "", "git branch -q --track t other", "~r/.git/config"},
		{"submodule init changes the configuration", "r", "git submodule -q deinit -f sub", "git submodule -q init", "~r/.git/config"},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			g := newGitBox(t)
			if tt.before != "" {
				dir := filepath.Join(g.dir, tt.cwd)
				if _, err := os.Stat(dir); err != nil {
					dir = filepath.Join(g.dir, "r")
				}
				g.run(dir, tt.before)
			}
			cwd := filepath.Join(g.dir, tt.cwd)
			plan, open := g.plan(cwd, false), g.plan(cwd, true)
			before, beforeOpen := contents(t, plan), contents(t, open)
			g.run(cwd, tt.script)
			if got := g.broken(plan, before); got != tt.want {
				t.Errorf("met %q, want %q", got, tt.want)
			}
			if got := g.broken(open, beforeOpen); got != "" {
				t.Errorf("with allowGitConfig met %q", got)
			}
		})
	}
}
