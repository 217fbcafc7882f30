package fsview

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMandatoryLeadsElsewhere: a protected name counts wherever it leads from the working directory, the home and the
// enclosing repository, and as a write root itself.
func TestMandatoryLeadsElsewhere(t *testing.T) {
	const repository = "f %/HEAD;d %/objects;d %/refs;"
	tests := []struct{ name, tree, rules, want string }{
		{"FS-35 a link of the cwd", "l /h/p/.vscode ../ext;d /h/ext", "aW=/h/ext", ""},
		{"FS-35 a link of the cwd into a write root", "l /h/p/.vscode ../ext/v;d /h/ext/v", "aW=/h/ext", "writable /h/ext\nread-only /h/ext/v"},
		{"FS-35 a link of the home", "l /h/.bashrc dot/rc;f /h/dot/rc", "aW=/h/dot", "writable /h/dot\nread-only /h/dot/rc"},
		{"FS-35 links of a .claude", "l /h/.claude/agents ../dot/a;d /h/dot/a", "aW=/h/dot", "writable /h/dot\nread-only /h/dot/a"},
		{"FS-35 a linked .claude", "l /h/.claude dot;d /h/dot/agents", "aW=/h/dot", "writable /h/dot\nread-only /h/dot/agents"},
		{"FS-35 links of a .git", "f /h/p/.git/HEAD;l /h/p/.git/hooks /h/ext/k;d /h/ext/k", "aW=/h/ext", "writable /h/ext\nread-only /h/ext/k"},
		{"FS-35 the enclosing repository", "f /h/p/.git/HEAD;d /h/p/s;l /h/p/.idea ../ext/i;d /h/ext/i", "aW=/h/ext cwd=/h/p/s", "writable /h/ext\nread-only /h/ext/i"},
		{"FS-36 no write root covers the target", "l /h/p/.vscode ../o;d /h/o;d /h/ext", "aW=/h/ext", "writable /h/ext"},
		{"FS-37 the cwd's .git file as write root", "f /h/p/.git", "aW=.git", ""},
		{"FS-37 another .git file as write root", "f /h/p/s/.git", "aW=s/.git", ""},
		{"git's doors: commondir", "f /h/p/.git/commondir", "aW=.git/commondir", ""},
		{"git's doors: config.worktree", "f /h/p/.git/config.worktree", "aW=.git/config.worktree", ""},
		{"git's doors: a submodule's", strings.ReplaceAll(repository, "%", "/h/p/.git/modules/a/b") + "f /h/p/.git/modules/a/b/config", "aW=.git/modules/a/b/config", ""},
		{"git's doors: beneath a submodule's hooks", strings.ReplaceAll(repository, "%", "/h/p/.git/modules/m") + "d /h/p/.git/modules/m/hooks/x", "aW=.git/modules/m/hooks/x", ""},
		{"git's doors: a worktree's", "f /h/p/.git/worktrees/w/HEAD;f /h/p/.git/worktrees/w/commondir;f /h/p/.git/worktrees/w/config.worktree",
			"aW=.git/worktrees/w/config.worktree", ""},
		{"git's doors: a bare repository's", strings.ReplaceAll(repository, "%", "/h/r") + "d /h/r/hooks", "aW=/h/r/hooks", ""},
		{"git's doors: a directory called config", "d /h/r/config", "aW=/h/r/config", "writable /h/r/config"},
		{"git's doors: a submodule called config", strings.ReplaceAll(repository, "%", "/h/p/.git/modules/config") + "d /h/p/.git/modules/config/hooks",
			"aW=.git/modules/config", "writable @/.git/modules/config\nread-only @/.git/modules/config/hooks"},
		{"git's doors: all submodules as write root", strings.ReplaceAll(repository, "%", "/h/p/.git/modules/a/b") + "d /h/p/.git/modules/a/b/hooks",
			"aW=.git/modules", "pin @/.git/modules/a/b\npin @/.git/modules/a\nwritable @/.git/modules\nread-only @/.git/modules/a/b/hooks"},
		{"allowGitConfig", "f /h/p/.git/config.worktree", "aW=.git/config.worktree gitconfig", "writable @/.git/config.worktree"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			if d := cmp.Diff(tt.want, listing(plan)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestMandatoryLeadsToWhatIsMissing_FS30: nor is it made.
func TestMandatoryLeadsToWhatIsMissing_FS30(t *testing.T) {
	plan, _ := built(t, newFakeTree(t, "l /h/p/.bashrc ../ext/rc;d /h/p;d /h/ext"), "aW=/h/ext")
	for _, a := range plan.Absent {
		if a.Path == "/h/ext/rc" && a.Write && a.Dir == "/h/ext" {
			return
		}
	}
	t.Errorf("what .bashrc leads to can be made: %+v", plan.Absent)
}

// TestUnwritableSearchFails_FS40: a home that cannot be looked at stops the start.
func TestUnwritableSearchFails_FS40(t *testing.T) {
	tree := &flakyTree{fakeTree: newFakeTree(t, "d /h/p;d /w"), left: map[string]int{"/h/.bashrc": 2}, err: syscall.EIO}
	var search *SearchError
	if _, err := Build(tree, input(t, "aW=/w")); !errors.As(err, &search) {
		t.Errorf("Build: %v", err)
	}
}
