package test

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// gitEnv keeps git from asking for or reading anything of the host's.
var gitEnv = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
	"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}

// withGit prepares the environment for git.
func (b *box) withGit() {
	need(b.t, "git")
	b.env = append(b.env, gitEnv...)
}

// repository makes a repository with one commit on the host.
func (b *box) repository(dir string) {
	b.t.Helper()
	b.withGit()
	b.file(dir+"/f", "one\n")
	dir = b.abs(dir)
	b.host("git", "init", "-q", "-b", "main", dir).ok()
	b.host("git", "-C", dir, "add", ".").ok()
	b.host("git", "-C", dir, "commit", "-q", "-m", "one").ok()
}

func TestFS_case20_FS37_53_GitInitInAnEmptyDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.withGit()
		r := b.sh(cfg{aw: list{"."}}, "git init -q && git add -A && git status --short")
		r.ok().prints("")
		b.host("git", "status", "--short").ok().prints("")
		if names := namesIn(b.work); len(names) != 1 {
			t.Errorf("the host sees %q, want .git alone", names)
		}
	})
}

func TestFS_case21_FS35_39_Repository(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository(".")
		hook := b.abs(".git/hooks/pre-commit.sample")
		text, err := os.ReadFile(hook)
		b.must(err)
		b.check(cfg{aw: list{"."}}, "create .git/hooks/h: refused", "write "+hook+": refused", "rename .git/hooks x: EBUSY",
			"rename .git x: EBUSY", "write .git/config: refused", "unlink .git/config: EBUSY", "rename f .git/config: EBUSY")
		b.holds(hook, string(text))
		b.absent(".git/hooks/h")
		before, err := os.ReadFile(b.abs(".git/config"))
		b.must(err)
		b.sh(cfg{aw: list{"."}}, "git config a.b c").fails()
		b.holds(".git/config", string(before))
		b.absent(".git/config.lock")
		b.sh(cfg{aw: list{"."}}, "echo two >>f && git add f && git commit -qm two && git branch other && git checkout -q other && "+
			"git rebase -q main && git stash -q; git gc -q && git status --short").ok().prints("")
		b.host("git", "log", "--format=%s", "main").ok().prints("two\none")
		b.host("git", "fsck", "--strict").ok()

		b.sh(cfg{aw: list{"."}, fs: object{"allowGitConfig": true}}, "git config a.b c && ! touch .git/hooks/h").ok()
		b.host("git", "config", "a.b").ok().prints("c")
		b.absent(".git/hooks/h")
	})
}

func TestFS_case22_FS37_Worktree(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository("../main")
		b.must(os.Remove(b.work))
		b.host2(b.home, "git", "-C", b.home+"/main", "worktree", "add", "-q", b.work).ok()
		text, err := os.ReadFile(b.abs(".git"))
		b.must(err)
		b.check(cfg{aw: list{"."}}, "unlink .git: EBUSY", "write .git: refused", "rename .git g: EBUSY", "rename f .git: EBUSY")
		b.holds(".git", string(text))
		b.sh(cfg{aw: list{".", "../main"}}, "echo two >>f && git commit -qam two").ok()
		b.host("git", "log", "-1", "--format=%s").ok().prints("two")
	})
}

// host2 is host in another directory.
func (b *box) host2(dir string, args ...string) result {
	b.t.Helper()
	cmd := b.command(args...)
	cmd.Dir = dir
	return b.finish(cmd)
}

func TestFS_case23_FS38_DepthOfTheSearch(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, f := range []string{"a/b/.bashrc", "a/.idea/x", "UP/.BashRC", "a/b/c/.bashrc"} {
			b.file(f, "old")
		}
		b.check(cfg{aw: list{"."}}, "write a/b/.bashrc: refused", "unlink a/b/.bashrc: EBUSY", "write a/.idea/x: refused",
			"create a/.idea/y: refused", "write UP/.BashRC: refused", "write a/b/c/.bashrc: ok")
		b.holds("a/b/.bashrc", "old")
		b.holds("a/.idea/x", "old")
		b.holds("UP/.BashRC", "old")
		b.check(cfg{aw: list{"."}, top: object{"mandatoryDenySearchDepth": 4}}, "write a/b/c/.bashrc: refused")
	})
}

func TestFS_35_MandatoryNames(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		names := []string{".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
			".mcp.json", ".vscode/x", ".idea/x", ".claude/commands/x", ".claude/agents/x"}
		var lines []string
		for _, name := range names {
			b.file(name, "old")
			lines = append(lines, "write "+name+": refused", "holds "+name+" old: ok")
		}
		b.check(cfg{aw: append(list{"."}, list{".bashrc", ".vscode"}...)}, lines...)
		for _, name := range names {
			b.holds(name, "old")
		}
		b.check(cfg{aw: list{"."}, fs: object{"disabled": true}}, "write .bashrc: ok")
	})
}

func TestFS_case24_FS39_41_NestedRepository(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository("sub/nested")
		c := cfg{aw: list{"."}, top: object{"mandatoryDenySearchDepth": 4}} // FS-38: two directories above it
		b.check(c, "rename sub/nested x: EBUSY", "rename sub x: EBUSY", "rename sub/nested/f sub/nested/g: ok",
			"create sub/nested/.git/hooks/h: refused", "write sub/nested/.git/config: refused")
		b.absent("sub/nested/.git/hooks/h")
		b.sh(c, "cd sub/nested && git add -A && git commit -qm two && git status --short && git branch x").ok().prints("")
		b.host("git", "-C", "sub/nested", "log", "-1", "--format=%s", "x").ok().prints("two")
	})
}

func TestFS_case25_FS42_MandatoryNameThatIsALink(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("vs/x", "old")
		b.link("vs", ".vscode")
		b.check(cfg{aw: list{"."}}, "unlink .vscode: EBUSY", "rename .vscode v: EBUSY", "write vs/x: refused", "create vs/y: refused")
		if target, err := os.Readlink(b.abs(".vscode")); target != "vs" {
			t.Errorf("the host link leads to %q, %v", target, err)
		}
		b.holds("vs/x", "old")
	})
}

func TestFS_case26_FS7_42_DeniedLink(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("s/env", "secret")
		b.link("s/env", ".env")
		c := cfg{dr: list{".env"}, aw: list{"."}}
		b.check(c, "unlink .env: EBUSY", "rename s t: EBUSY", "rename s/env e: EBUSY")
		if r := b.sh(c, "cat s/env .env"); strings.Contains(r.stdout, "secret") {
			t.Errorf("readable: %v", r)
		}
		b.holds(".env", "secret")
	})
}

// gitServer serves the repositories beneath a directory over HTTP, as git's own backend does.
func (b *box) gitServer(root string) (port string) {
	b.t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	b.must(err)
	server := httptest.NewServer(&cgi.Handler{Path: strings.TrimSpace(string(path)) + "/git-http-backend",
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
			"GIT_CONFIG_VALUE_0=*", "REMOTE_USER=a"}, InheritEnv: []string{"PATH"}})
	b.t.Cleanup(server.Close)
	return server.URL[strings.LastIndex(server.URL, ":")+1:]
}

// byProxy makes clients use the proxy for the loopback too, which NO_PROXY names: without it they would connect by themselves,
// and be captured (NET-3).
const byProxy = "unset NO_PROXY no_proxy; "

func TestGit_CloneOverHTTP(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository("../origin")
		port := b.gitServer(b.home)
		for _, host := range []string{"127.0.0.1", "localhost"} {
			copied := "copy-" + host
			b.sh(cfg{aw: list{"."}, allow: list{host}}, byProxy+"git clone -q http://"+host+":"+port+"/origin/.git "+copied).ok()
			b.holds(copied+"/f", "one\n")
			b.host("git", "-C", b.abs(copied), "log", "--format=%s").ok().prints("one")
		}
	})
}

func TestGit_CloneOffTheList(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository("../origin")
		port := b.gitServer(b.home)
		for _, c := range []cfg{{}, {allow: list{"localhost:1"}}, {allow: list{"127.0.0.1"}}, {allow: list{"localhost"}, deny: list{"localhost"}}} {
			c.aw = list{"."}
			b.sh(c, byProxy+"git clone http://localhost:"+port+"/origin/.git copy").fails().says("403")
			b.absent("copy")
		}
	})
}
