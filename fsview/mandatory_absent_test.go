package fsview

import (
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// startRules are the rules for absent names of a start that holds none of them, in path order.
const startRules = ".bash_profile .bashrc .claude/commands .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc"

// mandatoryAbsent lists the rules for absent protected names: a start that has all of startRules is written as "all of DIR".
func mandatoryAbsent(plan *Plan) string {
	byDir := map[string][]string{}
	var dirs []string
	for _, a := range plan.Absent {
		if !strings.Contains(a.Why, "(FS-35)") || !a.Write || a.Read {
			continue
		}
		if byDir[a.Dir] == nil {
			dirs = append(dirs, a.Dir)
		}
		name := strings.TrimPrefix(tail(a.Dir, a.Path), "/")
		if !a.Fold {
			name += "!"
		}
		byDir[a.Dir] = append(byDir[a.Dir], name)
	}
	var list []string
	for _, d := range dirs {
		names := strings.Join(byDir[d], " ")
		if rest, all := strings.CutPrefix(names, startRules); all {
			list = append(list, strings.TrimSuffix("all of "+d+":"+rest, ":"))
			continue
		}
		list = append(list, d+": "+names)
	}
	return strings.ReplaceAll(strings.Join(list, "; "), "/h/p", "@")
}

func TestMandatoryAbsent(t *testing.T) {
	tests := []struct{ name, tree, rules, want string }{
		{"FS-37 every name in the cwd", "", "aW=.", "all of @"},
		{"FS-36 no write root, no trace", "", "", ""},
		{"FS-36 none outside the write roots", "d /h/p/w", "aW=w", "all of @/w"},
		{"FS-36 none in a denied directory", "", "aW=. dW=.", ""},
		{"FS-36 none in a hidden directory", "d /h/p/s", "aW=~ dR=.", ""},
		{"FS-36 FS-56 disabled", "", "disabled", ""},
		{"FS-37 those that are there need none", "f /h/p/.bashrc;d /h/p/.idea;f /h/p/.zshrc", "aW=.",
			"@: .bash_profile .claude/commands .gitconfig .gitmodules .mcp.json .profile .ripgreprc .vscode .zprofile"},
		{"FS-38 a name in other letters says nothing of the one programs read", "f /h/p/.BASHRC", "aW=.", "all of @"},
		{"FS-37 case 20 without a .git nothing under it", "d /h/p/x", "aW=.", "all of @"},
		{"FS-37 a .git", "f /h/p/.git/HEAD", "aW=.", "all of @; @/.git: commondir config config.worktree hooks"},
		{"FS-37 a .git without HEAD", "d /h/p/.git", "aW=.", "all of @; @/.git: commondir config config.worktree hooks"},
		{"FS-37 what the .git holds", "f /h/p/.git/HEAD;d /h/p/.git/hooks;f /h/p/.git/config", "aW=.", "all of @; @/.git: commondir config.worktree"},
		{"FS-35 allowGitConfig", "f /h/p/.git/HEAD", "aW=. gitconfig", "all of @; @/.git: commondir hooks"},
		{"FS-37 a .git file", "f /h/p/.git", "aW=.", "all of @"},
		{"FS-38 beneath a start only what exists", "d /h/p/a/b;d /h/p/.claude;d /h/p/a/.claude", "aW=.",
			"@: .bash_profile .bashrc .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc; @/.claude: agents commands"},
		{"FS-30 a .claude with one of two", "d /h/p/.claude/agents", "aW=.",
			"@: .bash_profile .bashrc .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc; @/.claude: commands"},
		{"FS-39 a nested repository", "f /h/p/n/.git/HEAD;f /h/p/n/.git/config", "aW=.", "all of @; @/n/.git: commondir config.worktree hooks"},
		{"FS-39 a nested repository without a config", "f /h/p/n/.git/HEAD", "aW=.", "all of @; @/n/.git: commondir config.worktree hooks"},
		{"FS-39 no repository", "d /h/p/n/.git", "aW=.", "all of @"},
		{"FS-39 a nested repository too deep", "f /h/p/a/b/n/.git/HEAD", "aW=.", "all of @"},
		{"FS-39 nested with allowGitConfig", "f /h/p/n/.git/HEAD", "aW=. gitconfig", "all of @; @/n/.git: commondir hooks"},
		{"git's doors: submodules", "f /h/p/.git/HEAD;d /h/p/.git/hooks;f /h/p/.git/config;f /h/p/.git/modules/l/b/HEAD;d /h/p/.git/modules/new", "aW=.",
			"all of @; @/.git: commondir config.worktree; @/.git/modules/l/b: commondir config.worktree hooks"},
		{"git's doors: a bare repository", "f /h/p/r.git/HEAD;d /h/p/r.git/objects;d /h/p/r.git/refs;f /h/p/r.git/config", "aW=.",
			"all of @; @/r.git: commondir config.worktree hooks"},
		{"git's doors: a worktree elsewhere", "f /h/p/.git text=gitdir:~/s/1/2/3/m/.git/worktrees/p;f /s/1/2/3/m/.git/HEAD;d /s/1/2/3/m/.git/hooks;" +
			"f /s/1/2/3/m/.git/config;f /s/1/2/3/m/.git/worktrees/p/HEAD;f /s/1/2/3/m/.git/worktrees/p/commondir text=../..", "aW=. aW=/s home=",
			"all of @; all of /s; /s/1/2/3/m/.git: commondir config.worktree; /s/1/2/3/m/.git/worktrees/p: config config.worktree hooks"},
		{"every write root", "d /o", "aW=. aW=/o root", "all of @; all of /o"},
		{"a write root of another user that cannot be written", "d /o", "aW=. aW=/o", "all of @"},
		{"FS-28 a default write path: only what exists", "f /t/.bashrc", "extra=/t root", ""},
		{"FS-28 a default write path that is the cwd", "", "extra=/h/p", "all of @"},
		{"FS-28 a default write path that is listed too", "d /t", "aW=/t extra=/t root", "all of /t"},
		{"the home", "d /h uid=1000", "aW=~", "all of /h; all of @"},
		{"the enclosing repository", "f /h/r/.git/HEAD;d /h/r/x", "aW=/h/r cwd=/h/r/x home=",
			"all of /h/r; /h/r/.git: commondir config config.worktree hooks; all of /h/r/x"},
		{"a .git as write root", "f /h/m/.git/HEAD;d /h/m/.git/objects", "aW=/h/m/.git",
			"all of /h/m/.git: commondir config config.worktree hooks"},
		{"a .claude as write root", "d /h/q/.claude", "aW=/h/q/.claude", "/h/q/.claude: agents commands"},
		{"FS-42 a dangling link", "l /h/p/.bashrc s/rc", "aW=.",
			"@: .bash_profile .claude/commands .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc s/rc!"},
		{"FS-42 a dangling link beneath a start", "l /h/p/a/.profile rc", "aW=.", "all of @; @/a: rc!"},
		{"FS-42 a linked .claude", "l /h/p/.claude c;d /h/p/c/agents", "aW=.",
			"@: .bash_profile .bashrc .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc; @/c: commands"},
		{"FS-42 a linked .claude that leads nowhere", "l /h/p/.claude c", "aW=.",
			"@: .bash_profile .bashrc .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc c/agents! c/commands!"},
		{"FS-42 a linked .claude beneath a start", "l /h/p/a/.claude ../c;d /h/p/c", "aW=.", "all of @"},
		{"FS-42 a linked repository", "l /h/p/.git r;f /h/p/r/HEAD;f /h/p/r/config", "aW=.", "all of @; @/r: commondir config.worktree hooks"},
		{"FS-30 a .claude that is a file is denied itself", "f /h/p/.claude", "aW=.",
			"@: .bash_profile .bashrc .gitconfig .gitmodules .idea .mcp.json .profile .ripgreprc .vscode .zprofile .zshrc"},
		{"FS-7 a second path", "d /h/q;d /h/p/a;m /h/p/a /h/q", "aW=. aW=/h/q home=", "all of @; all of @/a; all of /h/q"},
		{"FS-7 a .git under another name", "d /h/q/.git;d /h/p/g;m /h/p/g /h/q/.git", "aW=. home=",
			"all of @; all of @/g: commondir config config.worktree hooks"},
		{"FS-40 a start that cannot be listed, of another user", "d /h/p/w uid=7 mode=733", "aW=w", "all of @/w"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, "d /h/p;"+tt.tree)
			if !strings.Contains(tt.rules, "root") && strings.Contains(tt.rules, "aW=/s") {
				tree.objects["/s"].uid = 1000
			}
			plan, v := built(t, tree, tt.rules)
			if d := cmp.Diff(tt.want, mandatoryAbsent(plan)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if err := keptInPlace(v, plan); err != nil && !strings.Contains(tt.name, "cannot be listed") {
				t.Error(err)
			}
		})
	}
}

// TestMandatoryAbsentCostsNoLookUp: the listing of a directory says which of its names are there.
func TestMandatoryAbsentCostsNoLookUp(t *testing.T) {
	tree := newFakeTree(t, "f /h/p/.git/HEAD;d /h/p/.claude")
	built(t, tree, "aW=. home=")
	if tree.stats > 4 { // the way to the cwd, .git and .claude
		t.Errorf("%d look-ups", tree.stats)
	}
}

// TestMandatoryAbsentFails_FS40: a directory that cannot be looked at when its names are denied stops the start.
func TestMandatoryAbsentFails_FS40(t *testing.T) {
	tree := &failingTree{newFakeTree(t, "f /h/p/.git/HEAD"), map[string]error{"/h/p/.git": syscall.EIO}}
	if plan, err := Build(tree, input(t, "aW=.")); err == nil {
		t.Errorf("started with %v", plan.Absent)
	}
}
