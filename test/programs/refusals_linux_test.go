package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// refusal is a use of a program that writes what must not be written. The program says so in its own words, and nothing
// changes but what is listed.
type refusal struct {
	name    string
	tools   []string
	prepare string   // shell text, run outside
	script  string   // run inside, and ended by the first failure
	status  int      // exit status
	says    []string // regular expressions, each found on standard error; ": RO" stands for the errors that FS-31 accepts, Q for a quotation mark
	changes []string // patterns (path.Match) of the paths in the project that change; x/... is x and all beneath
}

// readOnly are the words for EROFS, EACCES and EPERM (FS-31).
const readOnly = `(Read-only file system|Permission denied|Operation not permitted)`

var refusals = []refusal{
	{name: "FS-35 git config", tools: []string{"git"}, prepare: repository, script: "git config a.b c", status: 4,
		says: []string{`^error: could not write config file \.git/config: Device or resource busy\n$`}},
	{name: "FS-35 git remote add", tools: []string{"git"}, prepare: repository, script: "git remote add up ../up", status: 128,
		says: []string{`^error: could not write config file \.git/config: Device or resource busy\n`}},
	{name: "FS-35 git branch -m of a branch in the configuration", tools: []string{"git"}, prepare: repository + "git branch -q -u main topic", script: "git branch -m topic other", status: 128,
		says:    []string{`could not write config file \.git/config: Device or resource busy\n`, `Branch is renamed, but update of config-file failed`},
		changes: []string{".git/refs/heads/*", ".git/logs/refs/heads/*", ".git/logs/HEAD"}},
	{name: "FS-35 git sparse-checkout of a host's repository", tools: []string{"git"}, prepare: repository, script: "git sparse-checkout set src", status: 1,
		says: []string{`could not write config file .*\.git/config: Device or resource busy\n`}, changes: []string{".git/config.worktree", ".git/info/sparse-checkout"}},
	{name: "FS-35 git submodule update that changes core.worktree", tools: []string{"git"}, prepare: upstream + "git -C lib config core.worktree ../../../else", script: "git submodule update", status: 128,
		says: []string{`could not write config file .*/\.git/modules/lib/config: Device or resource busy\nfatal: could not set 'core.worktree'`}},
	{name: "FS-37 git submodule add", tools: []string{"git"}, prepare: upstream + "rm -rf .git .gitmodules lib; git init -q",
		script: `git submodule --quiet add "$TMPDIR/upstream" lib`, status: 128, says: []string{`could not (lock|write) config file .*\.gitmodules: RO`},
		changes: []string{".git/modules/...", ".git/objects/...", ".git/index", "lib/..."}},
	{name: "FS-35 a hook", prepare: "git init -q; mkdir -p .git/hooks; echo true >x", script: "cp x .git/hooks/pre-commit", status: 1,
		says: []string{`^cp: cannot create regular file Q\.git/hooks/pre-commitQ: RO\n$`}},
	{name: "FS-37 a checkout of protected names", tools: []string{"git"}, prepare: repository + `git checkout -q -b bad; echo x >.bashrc; echo '{}' >.mcp.json; mkdir .vscode; echo y >.vscode/tasks
git add -A; git commit -qm bad; git checkout -q main`, script: "git checkout bad", status: 128,
		says: []string{`unable to create file \.bashrc: RO\n`, `unable to create file \.mcp\.json: RO\n`, `\.vscode.*: RO\n`}, changes: []string{".git/...", "src/*"}},
	{name: "FS-35 sed -i of an rc file", prepare: "echo old >.bashrc", script: "sed -i s/old/new/ .bashrc", status: 4,
		says: []string{`^sed: cannot rename \./sed\w+: Device or resource busy\n$`}},
	{name: "FS-35 vim -es of an rc file", tools: []string{"vim"}, prepare: "echo old >.bashrc", script: "vim -Nu NONE -es -c '%s/old/new/' -c wq .bashrc </dev/null", status: 1},
	{name: "FS-37 redirection to an absent rc file", script: "echo x >.bashrc", status: 1, says: []string{`^bash: line 1: \.bashrc: RO\n$`}},
	{name: "FS-37 mkdir of a protected directory", script: "mkdir .vscode", status: 1, says: []string{`^mkdir: cannot create directory Q\.vscodeQ: RO\n$`}},
	{name: "FS-30 mkdir -p of a missing parent", script: "mkdir -p .claude/commands/x", status: 1, says: []string{`^mkdir: cannot create directory Q\.claudeQ: RO\n$`}},
	{name: "FS-30 a ready tree moved onto a missing parent", prepare: "mkdir ready; echo x >ready/prod.env", script: "mv ready secrets", status: 1,
		says: []string{`^mv: cannot move QreadyQ to QsecretsQ: RO\n$`}},
	{name: "FS-30 symbolic link", script: "ln -s /etc secrets", status: 1, says: []string{`^ln: failed to create symbolic link QsecretsQ: RO\n$`}},
	{name: "FS-30 hard link", prepare: "echo x >f", script: "ln f .mcp.json", status: 1, says: []string{`^ln: failed to create hard link Q\.mcp\.jsonQ.*: RO\n$`}},
	{name: "FS-30 FIFO", script: "mkfifo .profile", status: 1, says: []string{`^mkfifo: cannot create fifo Q\.profileQ: RO\n$`}},
	{name: "FS-30 install -D", prepare: "echo x >f", script: "install -D f secrets/prod.env", status: 1, says: []string{`^install: cannot create directory Q?secretsQ?: RO\n`}},
	{name: "FS-30 tar extracts all but what is denied", prepare: "mkdir -p in/secrets; echo x >in/secrets/prod.env; echo y >in/f; echo z >in/.bashrc; tar --sort=name -cf a.tar -C in .", script: "tar -xf a.tar",
		status: 2, says: []string{`tar: \./\.bashrc: Cannot open: RO\n`, `tar: \./secrets: Cannot mkdir: RO\n`}, changes: []string{"f"}},
	{name: "FS-30 rsync copies all but what is denied", tools: []string{"rsync"}, prepare: "mkdir -p in/d/secrets; echo x >in/d/secrets/prod.env; echo y >in/f; echo z >in/.bashrc", script: "rsync -r in/ .",
		status: 23, says: []string{`rename .* -> "\.bashrc": RO`}, changes: []string{"f", "d/..."}},
	{name: "FS-30 cp -r copies all but what is denied", prepare: "mkdir -p in/secrets in/d; echo x >in/secrets/prod.env; echo y >in/f; echo z >in/.zshrc", script: "cp -r in/. .", status: 1,
		says: []string{`cannot create directory Q\S*/secretsQ: RO\n`, `cannot create regular file Q\S*/\.zshrcQ: RO\n`}, changes: []string{"f", "d"}},
	{name: "FS-30 sqlite3", tools: []string{"sqlite3"}, script: "sqlite3 .ripgreprc 'create table t(x)'", status: 1, says: []string{`unable to open database`}},
	{name: "FS-30 python", tools: []string{"python3"}, script: `python3 -c 'import os; os.makedirs("secrets/x")'`, status: 1, says: []string{`(OSError|PermissionError): \[Errno \d+\] ` + readOnly + `: 'secrets'`}},
	{name: "FS-30 node", tools: []string{"node"}, script: `node -e 'require("fs").writeFileSync(".gitconfig", "x")'`, status: 1, says: []string{`(EROFS|EACCES|EPERM): [a-z -]+, open '\.gitconfig'`}},
	{name: "FS-30 make", tools: []string{"make"}, prepare: `printf 'all: ok secrets\nok:\n\ttouch ok\nsecrets:\n\tmkdir $@\n' >Makefile`, script: "make -s", status: 2,
		says: []string{`mkdir: cannot create directory QsecretsQ: RO\nmake: \*\*\* \[Makefile:5: secrets\] Error 1\n`}, changes: []string{"ok"}},
}

func TestRefusals(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			stage.Need(t, r.tools...)
			stage.EachAlong(t, r.check)
		})
	}
}

func (r refusal) check(s *stage.Stage) {
	s.T.Helper()
	s.Env = append(s.Env, environment...)
	if got := s.Outside(r.prepare); got.Status != 0 {
		s.T.Fatalf("the preparation fails: %v", got)
	}
	settings := s.Settings(stage.Rules{AllowWrite: []string{".", s.Temp}, DenyWrite: []string{absentName + "/prod.env"}})
	before := s.Tree(".", stage.View{})
	got := s.Inside(settings, r.script)
	if got.Status != r.status {
		s.T.Errorf("want status %d; %v", r.status, got)
	}
	for _, text := range r.says {
		text = strings.NewReplacer(": RO", ": "+readOnly, "Q", "['‘’]").Replace(text)
		if !regexp.MustCompile(text).MatchString(got.Stderr) {
			s.T.Errorf("want %s on standard error; %v", text, got)
		}
	}
	after := s.Tree(".", stage.View{})
	for _, tree := range []stage.Tree{before, after} {
		for name := range tree {
			if slices.ContainsFunc(r.changes, func(p string) bool { return covers(p, name) }) {
				delete(tree, name)
			}
		}
	}
	report(s.T, "in the project", before, after)
}

// covers tells whether a pattern of refusal.changes is of a path.
func covers(pattern, name string) bool {
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == top || strings.HasPrefix(name, top+"/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
