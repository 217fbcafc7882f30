package traces

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// gitEnv keeps git to the test.
var gitEnv = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
	"GIT_COMMITTER_EMAIL=a@example.com", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000"}

// repository has an index that is newer than all files, so that "git status" has no reason to write it anew.
const repository = `git init -q -b main; mkdir d; echo x >f; echo y >d/g; touch -d 2020-01-01 f d/g; git add -A; git commit -qm one
git update-index -q --refresh; git status --short`

// ruleset is a policy under which a command runs in these tests.
type ruleset struct {
	name   string
	absent bool // d/absent, .env.local and secrets are denied, and do not exist
	stage.Rules
}

// rulesets differ in what has to be judged: protected names alone, absent names and missing parents, patterns that make
// every new name and every open suspect, and absent names beside a hidden home or in a home that is writable.
func rulesets(s *stage.Stage) []ruleset {
	write, absent := []string{".", s.Temp}, []string{"secrets/prod.env", "d/absent", ".env.local"}
	return []ruleset{
		{"protected names", false, stage.Rules{AllowWrite: write}},
		{"absent names", true, stage.Rules{AllowWrite: write, DenyWrite: absent}},
		{"patterns", true, stage.Rules{AllowWrite: write, DenyWrite: append(absent, "elsewhere/*"), DenyRead: []string{"later/*", "hidden"}}},
		{"hidden home", true, stage.Rules{AllowWrite: write, DenyRead: []string{"~"}, AllowRead: []string{"."}, DenyWrite: absent}},
		{"writable home", true, stage.Rules{AllowWrite: []string{"~", s.Temp}, DenyWrite: append(absent, "~/absent")}},
	}
}

// act is something that a command does.
type act struct {
	name    string
	prepare string // shell text, run outside before the watch begins
	script  string
	refused bool // all of it: no event is seen. Otherwise just what is seen when it is done outside.
	absent  bool // only under rules that deny absent names
}

var acts = []act{
	{name: "an empty command", script: "true"},
	{name: "an empty command in a repository", prepare: repository, script: "true"},
	{name: "git status", prepare: repository, script: "git status; git log; git diff; git ls-files --others"},
	{name: "reading everything", prepare: repository, script: "grep -r x . >/dev/null; cat f d/g >/dev/null; ls -laR .. >/dev/null; find / -maxdepth 2 -name '.*' >/dev/null 2>&1 || true"},
	{name: "creation, rename, links, removal", prepare: repository + "; mkdir m; echo m >m/m", script: `
echo a >a; echo b >>a; cp a b; ln a hard; ln -s a soft; mv a d/a; mkdir e; rmdir e; mkfifo p; mkdir -p k/l; echo n >k/l/n; rm -r k; chmod 600 f; touch -d 2021-01-01 f
echo t >"$TMPDIR/t"; rm "$TMPDIR/t"; echo over >f; sed -i s/b/c/ b; rm p; dd if=/dev/zero of=z bs=10 count=2 conv=fsync status=none; truncate -s 5 z; mv -T m moved; set -C; (echo x >z) 2>/dev/null || true`},
	// Whether status writes the index anew depends on how close in time it is to the commit.
	{name: "git add and commit", prepare: repository, script: "echo two >>f; echo new >n; git add -A; git commit -qm two; git --no-optional-locks status --short; git branch other; git stash list"},
	{name: "refused creation of absent names", prepare: repository + "; mkdir ready; echo x >ready/prod.env", refused: true, absent: true, script: `
set +e; exec 2>/dev/null
echo x >d/absent; echo x >>d/absent; : 1<>.env.local; mkdir secrets; mkdir -p secrets/a; mkfifo secrets; ln -s f secrets; ln f d/absent; mv ready secrets; mv -n f d/absent
cp f .env.local; install -D f secrets/prod.env; touch d/absent; touch -h .env.local; mknod d/absent p; dd if=f of=d/absent status=none
python3 -c 'import os
for flags in (os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_CREAT | os.O_TRUNC | os.O_RDWR, os.O_CREAT | os.O_NOFOLLOW):
    for name in ("d/absent", "./d//absent", "/proc/self/cwd/d/absent", os.getcwd() + "/d/../d/absent", "secrets"):
        try: os.open(name, flags | os.O_WRONLY); print("made", name)
        except OSError: pass
import socket
for name in ("d/absent", "secrets"):
    try: socket.socket(socket.AF_UNIX).bind(name); print("bound", name)
    except OSError: pass
try:
    fd = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o600); os.link("/proc/self/fd/%d" % fd, "d/absent", follow_symlinks=True); print("linked")
except OSError: pass'`},
	{name: "refused creation of protected names", prepare: repository + "; mkdir ready", refused: true, script: `
set +e; exec 2>/dev/null
for n in .gitconfig .gitmodules .bashrc .bash_profile .zshrc .zprofile .profile .ripgreprc .mcp.json; do echo x >$n; mkdir $n; ln -s f $n; ln f $n; mkfifo $n; mv ready $n; cp f $n; touch $n; done
for n in .vscode .idea .claude; do mkdir $n; echo x >$n; mv ready $n; ln -s d $n; mkdir -p $n/commands; done
echo x >.git/config; rm .git/config; mv f .git/config; echo x >.git/hooks/pre-commit; mkdir .git/hooks/x; mv .git/hooks x; mv .git x; echo x >../../outside; rm -rf .git/hooks; echo x >/etc/srt-test; mkdir /tmp/other; true`},
}

func TestFS_52_NoEventButTheCommands(t *testing.T) {
	stage.Need(t, "git", "python3")
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) { stage.Each(t, a.check) })
	}
}

func (a act) check(s *stage.Stage) {
	s.T.Helper()
	s.Env = append(s.Env, gitEnv...)
	var want []string
	if !a.refused {
		want = a.record(s, s.Outside)
	}
	tree := s.Tree(".", indexVaries)
	for _, rules := range rulesets(s) {
		if a.absent && !rules.absent {
			continue
		}
		name, settings := rules.name, s.Settings(rules.Rules)
		got := a.record(s, func(text string) stage.Result { return s.Inside(settings, text) })
		if !slices.Equal(got, want) {
			s.T.Errorf("%s: the host sees %d events, want %d:\n%s", name, len(got), len(want), sideBySide(want, got))
		}
		if !a.refused {
			for _, line := range stage.Differences(tree, s.Tree(".", indexVaries)) {
				s.T.Errorf("%s: %s", name, line)
			}
		}
	}
}

// indexVaries: an index holds inode numbers and times.
var indexVaries = stage.View{Varying: []string{".git/index"}}

// record gives what the host sees of the act in a fresh project.
func (a act) record(s *stage.Stage, run func(text string) stage.Result) []string {
	s.T.Helper()
	s.Clear()
	if r := s.Outside(a.prepare); r.Status != 0 {
		s.T.Fatalf("the preparation fails: %v", r)
	}
	before := s.Tree(".", stage.View{})
	w := begin(s)
	r := run(a.script)
	record := w.take()
	if a.refused {
		if r.Stdout != "" {
			s.T.Errorf("done, though refused:\n%s", r.Stdout)
		}
		for _, line := range stage.Differences(before, s.Tree(".", stage.View{})) {
			s.T.Error(line)
		}
	} else if r.Status != 0 || strings.Contains(r.Stderr, "srt") {
		s.T.Errorf("want status 0; %v", r)
	}
	return record
}

// sideBySide shows where two records part.
func sideBySide(want, got []string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	clip := func(list []string) string { return strings.Join(list[i:min(i+6, len(list))], "\n    ") }
	return "after " + strings.Join(want[max(0, i-2):i], ", ") + "\n  want\n    " + clip(want) + "\n  got\n    " + clip(got)
}

// The default directory for temporary files is the one thing that srt makes outside a sandbox: another sandbox may be
// using it, so it stays (FS-50).
func TestFS_50_DefaultTMPDIRIsMadeOnce(t *testing.T) {
	stage.Each(t, func(s *stage.Stage) {
		s.Env = slices.DeleteFunc(s.Env, func(v string) bool {
			return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "CLAUDE_CODE_TMPDIR=")
		})
		s.Must(os.RemoveAll("/tmp/claude"))
		settings := s.Settings(stage.Rules{AllowWrite: []string{"."}})
		w := begin(s)
		for i := range 2 {
			if r := s.Inside(settings, `test "$TMPDIR" = /tmp/claude; mkdir "$TMPDIR/x"; rmdir "$TMPDIR/x"`); r.Status != 0 {
				s.T.Fatal(r)
			}
			want := []string{"create /tmp/claude/"}
			if i > 0 {
				want = []string{"create /tmp/claude/x/", "delete /tmp/claude/x/"}
			}
			if got := w.take(); !slices.Equal(got, want) {
				s.T.Errorf("run %d: the host sees %q, want %q", i, got, want)
			}
			w = begin(s)
		}
		s.Must(os.RemoveAll("/tmp/claude"))
	})
}
