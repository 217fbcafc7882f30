package fsview

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// common is a repository too deep for the search, with a worktree.
const common = "f /s/1/2/3/m/.git/HEAD;d /s/1/2/3/m/.git/hooks;f /s/1/2/3/m/.git/config;f /s/1/2/3/m/.git/worktrees/p/HEAD;" +
	"f /s/1/2/3/m/.git/worktrees/p/commondir text=../..|;f /s/1/2/3/m/.git/worktrees/p/config.worktree"

func TestMandatorySearch(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		want              string // protected locations
	}{
		{"FS-35 files",
			"f /h/p/.gitconfig;f /h/p/.gitmodules;f /h/p/.bashrc;f /h/p/.bash_profile;f /h/p/.zshrc;f /h/p/.zprofile;" +
				"f /h/p/.profile;f /h/p/.ripgreprc;f /h/p/.mcp.json;f /h/p/.env;f /h/p/bashrc", "aW=.",
			"@/.bash_profile @/.bashrc @/.gitconfig @/.gitmodules @/.mcp.json @/.profile @/.ripgreprc @/.zprofile @/.zshrc"},
		{"FS-35 directories", "d /h/p/.vscode;d /h/p/.idea;d /h/p/.claude/commands;d /h/p/.claude/agents;d /h/p/.claude/x", "aW=.",
			"@/.claude/agents @/.claude/commands @/.idea @/.vscode"},
		{"FS-35 the repository", "f /h/p/.git/HEAD;d /h/p/.git/hooks;f /h/p/.git/config;f /h/p/.git/index", "aW=.",
			"@/.git/config @/.git/hooks"},
		{"FS-35 allowGitConfig", "f /h/p/.git/HEAD;d /h/p/.git/hooks;f /h/p/.git/config", "aW=. gitconfig", "@/.git/hooks"},
		{"FS-35 granted by name", "f /h/p/.bashrc;d /h/p/.git/hooks;d /h/p/.Claude/Agents/x", "aW=.bashrc aW=.git/hooks aW=.Claude/Agents/x", ""},
		{"FS-36 no write root, no trace", "f /h/p/.bashrc", "", ""},
		{"FS-36 none outside the write root", "f /h/.bashrc;f /h/p/x", "aW=.", ""},
		{"FS-36 FS-56 disabled", "f /h/p/.bashrc", "disabled", ""},
		{"FS-37 a .git without HEAD in the cwd", "d /h/p/.git/hooks", "aW=.", "@/.git/hooks"},
		{"FS-37 case 22 worktree", "f /h/p/.git", "aW=.", "@/.git"},
		{"FS-38 case 23 depth 3", "f /h/p/a/b/.bashrc;d /h/p/a/.idea;f /h/p/UP/.BashRC;f /h/p/a/b/c/.bashrc", "aW=.",
			"@/UP/.BashRC @/a/.idea @/a/b/.bashrc"},
		{"FS-38 listed directories reach one level less", "d /h/p/a/b/.vscode;f /h/p/a/b/.git/HEAD;d /h/p/a/b/.git/hooks;d /h/p/a/b/.claude/agents",
			"aW=.", ""},
		{"FS-38 depth 4", "d /h/p/a/b/.vscode;f /h/p/a/b/.git/HEAD;d /h/p/a/b/.git/hooks;d /h/p/a/b/.claude/agents", "aW=. depth=4",
			"@/a/b/.claude/agents @/a/b/.git/hooks @/a/b/.vscode"},
		{"FS-38 depth 1", "d /h/p/.vscode;f /h/p/.zshrc;d /h/p/.claude/commands;d /h/p/.git/hooks;f /h/p/a/.zshrc;d /h/p/a/.vscode",
			"aW=. depth=1", "@/.claude/commands @/.git/hooks @/.vscode @/.zshrc"},
		{"FS-38 depth 2", "f /h/p/a/.zshrc;d /h/p/a/.vscode;f /h/p/a/b/.zshrc", "aW=. depth=2", "@/a/.zshrc"},
		{"FS-38 node_modules", "f /h/p/node_modules/.bashrc;f /h/p/a/node_modules/.bashrc;f /h/p/.hid/.bashrc", "aW=.", "@/.hid/.bashrc"},
		{"FS-38 links are not followed", "l /h/p/l /h/p/a/b/c;f /h/p/a/b/c/.bashrc", "aW=.", ""},
		{"FS-38 case is ignored", "d /h/p/.GIT/HOOKS;f /h/p/.Git/Config;d /h/p/.CLAUDE/Commands", "aW=.",
			"@/.CLAUDE/Commands @/.GIT/HOOKS @/.Git/Config"},
		{"FS-39 nested repository", "f /h/p/n/.git/HEAD;d /h/p/n/.git/hooks;f /h/p/n/.git/config", "aW=.",
			"@/n/.git/config @/n/.git/hooks"},
		{"FS-39 not a repository", "d /h/p/n/.git/hooks", "aW=.", ""},
		{"FS-39 own directory that cannot be listed", "d /h/p/x mode=300", "aW=.", "@/x"},
		{"FS-39 own directory that cannot be searched", "d /h/p/x/sub;f /h/p/x/.bashrc;d /h/p/x mode=600", "aW=.", "@/x"},
		{"FS-39 own directory that cannot be searched, directories only", "d /h/p/x/sub;d /h/p/x mode=600", "aW=.", "@/x"},
		{"FS-39 another's directory that cannot be listed", "d /h/p/x mode=711 uid=4", "aW=.", ""},
		{"another file system's refusal", "d /h/p/x/doc eacces", "aW=.", ""},
		{"every write root", "f /h/p/.bashrc;f /o/a/.bashrc;f /o/.idea", "aW=. aW=/o", "@/.bashrc /o/.idea /o/a/.bashrc"},
		{"cwd and home beneath a write root", "f /h/.bashrc;f /h/p/a/b/.bashrc;f /h/q/a/b/.bashrc;f /x/y/z/.bashrc", "aW=/",
			"/h/.bashrc @/a/b/.bashrc"},
		{"the enclosing repository", "f /h/r/.git/HEAD;d /h/r/.git/hooks;d /h/r/x/y/z/w;d /h/r/.vscode", "aW=/ cwd=/h/r/x/y/z/w home=",
			"/h/r/.git/hooks /h/r/.vscode"},
		{"no further than the write root", "f /h/r/.git/HEAD;d /h/r/.git/hooks;d /h/r/x", "aW=/h/r/x cwd=/h/r/x", ""},
		{"a write root in a hidden directory", "f /h/s/a/b/c/.bashrc;d /h/p", "aW=/h dR=/h/s aW=/h/s/a/b/c", "/h/s/a/b/c/.bashrc"},
		{"FS-38 the root", "f /proc/.bashrc;f /sys/.bashrc;f /dev/.bashrc;f /etc/.bashrc;d /h/p", "aW=/ home= root", "/etc/.bashrc"},
		{"bare repository", "f /h/p/r.git/HEAD;d /h/p/r.git/objects;d /h/p/r.git/refs;d /h/p/r.git/hooks;f /h/p/r.git/config", "aW=.",
			"@/r.git/config @/r.git/hooks"},
		{"a folder that only looks like one", "f /h/p/r/HEAD;d /h/p/r/hooks;f /h/p/r/config", "aW=.", ""},
		{"case 22 a .git directory as write root", "f /h/m/.git/HEAD;d /h/m/.git/objects;d /h/m/.git/refs;d /h/m/.git/hooks;f /h/m/.git/config",
			"aW=. aW=/h/m/.git", "/h/m/.git/config /h/m/.git/hooks"},
		{"commondir and worktree configuration", "f /h/p/.git/HEAD;f /h/p/.git/commondir;f /h/p/.git/config.worktree", "aW=.",
			"@/.git/commondir @/.git/config.worktree"},
		{"submodules", "f /h/p/.git/HEAD;f /h/p/.git/modules/a/HEAD;d /h/p/.git/modules/a/hooks;f /h/p/.git/modules/l/b/HEAD;f /h/p/.git/modules/l/b/config;f /h/p/a/.git",
			"aW=.", "@/.git/modules/a/hooks @/.git/modules/l/b/config @/a/.git"},
		{"case 22 a worktree protects the common repository", "f /h/p/.git text=gitdir:~/s/1/2/3/m/.git/worktrees/p;" + common, "aW=. aW=/s",
			"@/.git /s/1/2/3/m/.git/config /s/1/2/3/m/.git/hooks /s/1/2/3/m/.git/worktrees/p/commondir /s/1/2/3/m/.git/worktrees/p/config.worktree"},
		{"a worktree with allowGitConfig", "f /h/p/.git text=gitdir:~/s/1/2/3/m/.git/worktrees/p|;" + common, "aW=. aW=/s gitconfig",
			"@/.git /s/1/2/3/m/.git/hooks /s/1/2/3/m/.git/worktrees/p/commondir"},
		{"a worktree with a relative path, itself not writable", "f /h/w/.git text=gitdir:../../s/1/2/3/m/.git/worktrees/p|;d /h/w/x;" + common,
			"aW=/s cwd=/h/w/x", "/s/1/2/3/m/.git/config /s/1/2/3/m/.git/hooks /s/1/2/3/m/.git/worktrees/p/commondir /s/1/2/3/m/.git/worktrees/p/config.worktree"},
		{"a worktree whose repository nobody can write", "f /h/p/.git text=gitdir:~/s/1/2/3/m/.git/worktrees/p;" + common, "aW=.", "@/.git"},
		{"a submodule deep down", "f /h/p/a/.git text=gitdir:~../m/1/2/3/4;f /h/p/m/1/2/3/4/HEAD;d /h/p/m/1/2/3/4/hooks", "aW=.",
			"@/a/.git @/m/1/2/3/4/hooks"},
		{"a link to a .git file", "l /h/p/.git g;f /h/p/g text=gitdir:~/s/1/2/3/m/.git;" + common, "aW=. aW=/s",
			"@/.git @/g /s/1/2/3/m/.git/config /s/1/2/3/m/.git/hooks"},
		{"a worktree whose git directory is hidden", "f /h/p/.git text=gitdir:~/s/1/2/3/m/.git/worktrees/p;" + common, "aW=/s aW=. dR=/s/1/2/3/m/.git/worktrees",
			"@/.git /s/1/2/3/m/.git/config /s/1/2/3/m/.git/hooks"},
		{"hostile .git files: the root", "f /h/p/.git text=gitdir:~/;f /HEAD;d /hooks", "aW=/ home= root", "@/.git"},
		{"hostile .git files: no git directory", "f /h/p/.git text=gitdir:~src;d /h/p/src/hooks;f /h/p/src/config", "aW=.", "@/.git"},
		{"hostile .git files: an endless way", "f /h/p/.git text=gitdir:~l/l/l;l /h/p/l l", "aW=.", "@/.git"},
		{"hostile .git files: itself", "f /h/p/.git text=gitdir:~.git;f /h/p/x/.git text=gitdir:~..;f /h/p/HEAD text=x", "aW=.", "@/.git @/x/.git"},
		{"hostile .git files: a way into /proc", "f /h/p/.git text=gitdir:~/proc/self/cwd;d /proc", "aW=.", "@/.git"},
		{"hostile .git files: a commondir that is a directory", "f /h/p/.git text=gitdir:~g;d /h/p/g/commondir;f /h/p/g/HEAD", "aW=.", "@/.git @/g/commondir"},
		{"case 06 other kinds", "f /h/p/.claude;f /h/p/.vscode;d /h/p/.gitmodules", "aW=.", "@/.claude @/.gitmodules @/.vscode"},
		{"case 03 linked files", "l /h/p/.bashrc s/rc;f /h/p/s/rc;l /h/p/.profile /etc/profile;f /etc/profile", "aW=.",
			"@/.bashrc @/.profile @/s/rc"},
		{"a linked repository", "l /h/p/.git r;f /h/p/r/HEAD;d /h/p/r/hooks;f /h/p/r/config", "aW=.", "@/.git @/r/config @/r/hooks"},
		{"a linked .claude", "l /h/p/.claude c;d /h/p/c/agents", "aW=.", "@/.claude @/c/agents"},
		{"a link in a read-only place to a writable one", "l /h/p/ro/.bashrc ../x;f /h/p/x;d /h/p/ro", "aW=. dW=ro", "@/x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := newFakeTree(t, tt.tree)
			if tree.objects["/h/p"] == nil {
				tree.add("/h/p", 'd')
			}
			plan, v := built(t, tree, tt.rules)
			var got []string
			for _, p := range tree.paths() {
				m, mounted := v.mounts[p]
				if (mounted && m.Kind == ReadOnly && strings.Contains(m.Why, "FS-3")) ||
					(v.pinned[p] && tree.objects[p].kind == 'l') {
					got = append(got, strings.ReplaceAll(p, "/h/p", "@"))
				}
			}
			if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
				t.Errorf("protected (-want +got):\n%s\nplan:\n%s", d, listing(plan))
			}
		})
	}
}

func TestMandatoryGrantByName_FS35(t *testing.T) {
	for _, name := range []string{".bashrc", ".git/hooks", ".git/config", ".claude/commands/x", ".vscode", ".VSCODE/a/b"} {
		tree := newFakeTree(t, "f /h/p/"+name+"/f")
		plan, v := built(t, tree, "aW="+name)
		if len(plan.WriteRoots) > 0 || v.at("/h/p/"+name).writable || len(plan.Warnings) != 1 {
			t.Errorf("%s: roots %q warnings %q", name, plan.WriteRoots, plan.Warnings)
		}
	}
}

func TestMandatoryPinsNestedRepository_FS41(t *testing.T) { // case 24
	tree := newFakeTree(t, "f /h/p/a/r/.git/HEAD;d /h/p/a/r/.git/hooks;f /h/p/a/r/x")
	_, v := built(t, tree, "aW=. depth=4")
	for _, p := range []string{"/h/p/a", "/h/p/a/r", "/h/p/a/r/.git", "/h/p/a/r/.git/hooks"} {
		if v.movable(p) {
			t.Errorf("%s can be renamed", p)
		}
	}
	if !v.movable("/h/p/a/r/x") || !v.at("/h/p/a/r").writable {
		t.Error("a file beside it cannot be renamed")
	}
}

// failingTree answers listings of some directories, and the reading of some files, with an error.
type failingTree struct {
	*fakeTree
	dirs map[string]error
}

func (f *failingTree) ReadFile(p string, limit int) ([]byte, error) {
	if err := f.dirs[p]; err != nil {
		return nil, err
	}
	return f.fakeTree.ReadFile(p, limit)
}

func (f *failingTree) ReadDir(p string) ([]DirEntry, error) {
	if err := f.dirs[p]; err != nil {
		return nil, err
	}
	return f.fakeTree.ReadDir(p)
}

func TestMandatorySearchFails_FS40(t *testing.T) {
	const disk = "f /h/p/a/.git/HEAD;d /h/p/a/.git/modules/m;f /h/p/a/x"
	for dir, err := range map[string]error{"/h/p": syscall.EIO, "/h/p/a": syscall.ENOTCONN, "/h/p/a/.git": syscall.EMFILE,
		"/h/p/a/.git/modules": syscall.EIO} {
		tree := &failingTree{newFakeTree(t, disk), map[string]error{dir: err}}
		plan, got := Build(tree, input(t, "aW=."))
		var se *SearchError
		if !errors.As(got, &se) || se.Path != dir || !errors.Is(got, err) || plan != nil {
			t.Errorf("%s: %v, %v", dir, plan, got)
		}
	}
	tree := &failingTree{newFakeTree(t, disk), map[string]error{"/": syscall.EIO}}
	if _, err := Build(tree, input(t, "dR=/")); !errors.Is(err, syscall.EIO) {
		t.Errorf("hiding the root: %v", err)
	}
}

func TestMandatorySearchVanished(t *testing.T) { // case 24: neighbours remove directories meanwhile
	tree := &failingTree{newFakeTree(t, "d /h/p/a;f /h/p/.bashrc"), map[string]error{"/h/p/a": syscall.ENOENT}}
	if plan, err := Build(tree, input(t, "aW=.")); err != nil || listing(plan) != "writable @\nread-only @/.bashrc" {
		t.Errorf("%v, %v", plan, err)
	}
}

func TestMandatorySearchListsOnce(t *testing.T) {
	tree := newFakeTree(t, "f /h/p/a/b/x;f /h/p/.git/HEAD;d /h/p/c;f /h/p/node_modules/m/x")
	built(t, tree, "aW=. home=")
	if tree.lists.Load() != 5 { // @, a, a/b, .git, c
		t.Errorf("%d directories were listed", tree.lists.Load())
	}
	stats := tree.stats
	for _, name := range []string{"1", "2", "3", "4"} {
		tree.add("/h/p/a/b/"+name, 'f')
	}
	tree.stats = 0
	built(t, tree, "aW=. home=")
	if tree.stats != stats {
		t.Errorf("files cost look-ups: %d, %d before", tree.stats, stats)
	}
}

// TestMandatoryGitFileFails_FS40: a .git file that cannot be read for another reason than permission stops the start.
func TestMandatoryGitFileFails_FS40(t *testing.T) {
	for err, fails := range map[error]bool{syscall.EIO: true, syscall.EMFILE: true, syscall.EACCES: false, syscall.ENOENT: false, syscall.EINVAL: false} {
		tree := &failingTree{newFakeTree(t, "f /h/p/.git"), map[string]error{"/h/p/.git": err}}
		_, got := Build(tree, input(t, "aW=."))
		var se *SearchError
		if errors.As(got, &se) != fails || (fails && (se.Path != "/h/p/.git" || !errors.Is(got, err))) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
