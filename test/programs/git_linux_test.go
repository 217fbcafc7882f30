package programs

import (
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// gitView: an index holds inode numbers and times of the files.
var gitView = stage.View{Varying: []string{".git/index", "*/.git/index", ".git/worktrees/*/index", ".git/modules/*/index", "*/.git/modules/*/index"}}

// repository makes a repository with a few commits, on branches main and topic, in the project.
const repository = `
git init -q
mkdir -p src docs
for i in 1 2 3 4 5 6 7 8 9; do echo "line $i" >>src/a; echo "text $i" >docs/$i; done
printf '#!/bin/sh\nexit 0\n' >run; chmod 755 run; ln -s src/a link
git add -A; git commit -qm one
git checkout -qb topic
echo topic >src/topic; git add -A; git commit -qm topic
sed -i '1s/.*/changed by topic/' src/a; git commit -qam topic2
git checkout -q main
echo main >src/main; git add -A; git commit -qm main
`

// upstream makes a repository in TMPDIR, and submodules from it in the project.
const upstream = `
up="$TMPDIR/upstream"
git init -q "$up"; echo one >"$up/f"; git -C "$up" add f; git -C "$up" commit -qm one
git init -q; git submodule --quiet add "$up" lib; git commit -qm 'with lib'
echo two >>"$up/f"; git -C "$up" commit -qam two
git update-index --cacheinfo "160000,$(git -C "$up" rev-parse HEAD),lib"; git commit -qm 'newer lib'
`

var gitUses = []use{
	{name: "init in an empty directory", view: gitView, script: `
git init; git add -A; git status --short; git config user.x y
echo one >f; git add f; git commit -m one; git log --stat; git ls-files --stage`},
	{name: "add, commit, branch", view: gitView, prepare: repository, script: `
mkdir -p new/secrets; echo x >new/secrets/prod.env; echo y >>src/a; rm docs/1; git mv docs/2 docs/two
git add -A; git status; git commit -m two; git branch other; git branch -v; git checkout other; echo z >z
git add z; git commit -qm three; git tag -a -m tagged v1; git log --graph --oneline --all; git diff main other
git checkout -q main; git merge other; git reset -q --hard HEAD~1; git reflog; git ls-files --stage`},
	{name: "stash", view: gitView, prepare: repository, script: `
echo staged >s; git add s; echo changed >>src/a; echo untracked >u
git stash push -u -m work; git status --short; git stash list; git stash show -p
git stash pop; git status --short; git stash -q; git stash branch stashed; git ls-files --stage`},
	{name: "rebase", view: gitView, prepare: repository, script: `
sed -i '1s/.*/changed by main/' src/a; git commit -qam main2; git checkout -q topic
git rebase main || { git status --short; echo resolved >src/a; git add src/a; git rebase --continue; }
GIT_SEQUENCE_EDITOR='sed -i 2s/pick/squash/' git rebase -i main~1
git log --format=%s%n%b; git ls-files --stage; ls .git`},
	{name: "merge, cherry-pick, revert, bisect", view: gitView, prepare: repository, script: `
git merge -m merged topic; git revert --no-edit HEAD~1; git checkout -q -b picked HEAD~1; git cherry-pick topic~1 || git cherry-pick --skip
git bisect start picked main~2 || true; git bisect run sh -c 'test ! -e src/main' || true; git bisect reset
git log --oneline --all; git ls-files --stage`},
	{name: "patches and archives", view: gitView, prepare: repository, script: `
git format-patch -o patches main..topic; git am patches/*; git archive --format=tar HEAD | tar -tvf -
git notes add -m note; git diff main topic | git apply --stat; git clean -fdx; git fsck --strict; git ls-files --stage </dev/null`},
	{name: "worktree add", view: gitView, prepare: repository, script: `
git worktree add wt topic; cd wt; echo wt >wt; git add wt; git commit -qm wt; git status --short; cat .git; cd ..
git worktree add -b second trees/second; git worktree list; git worktree move wt moved; git worktree lock moved
git worktree remove trees/second; git worktree prune -v; git log --oneline --all; find .git/worktrees | sort; git -C moved ls-files --stage`},
	{name: "allowGitConfig: submodule update", view: gitView, prepare: upstream, rules: func(r *stage.Rules) { r.AllowGitConfig = true }, script: `
git submodule status; git submodule update; git submodule status; cat lib/f; echo more >>lib/f
git -C lib checkout -qb work; git -C lib commit -qam three; git add lib; git commit -qm 'own lib'; git submodule foreach git log --oneline
git status --short; git -C lib ls-files --stage`},
	{name: "submodule update", view: gitView, prepare: upstream, script: `
git submodule status; git submodule update; git submodule status; cat lib/f; git submodule update --init --recursive
git submodule foreach git log --oneline; git status --short; git -C lib ls-files --stage; ls -A .git/modules/lib`},
	{name: "branch -m of a branch that is not in the configuration", view: gitView, prepare: repository, script: `
git branch -m topic renamed; git branch -v; git reflog renamed; git ls-files --stage`},
	{name: "gc", view: gitView, prepare: repository, script: `
git gc -q; git count-objects -v; echo x >x; git add x; git commit -qm x; git repack -adfq; git prune; git pack-refs --all
git gc --prune=now --aggressive -q; git fsck --strict; git commit-graph write --reachable; git multi-pack-index write; git ls-files --stage`},
	{name: "sparse-checkout", view: gitView, prepare: repository + "git sparse-checkout set --cone src\n", script: `
ls; git sparse-checkout list; git sparse-checkout add docs; ls docs; git sparse-checkout set docs; ls; git sparse-checkout reapply
git status --short; git checkout -q topic; ls; git ls-files -t`},
	{name: "clone", view: gitView, prepare: upstream, script: `
git clone -q --no-hardlinks "$TMPDIR/upstream" copy; cd copy; echo c >>f; git commit -qam c; git fetch -q; git status; git log --oneline --all; git ls-files --stage
cd ..; git clone -q --no-hardlinks --bare "$TMPDIR/upstream" bare.git; git clone -q --no-local --depth 1 "file://$TMPDIR/upstream" shallow; ls`},
	{name: "allowGitConfig: config, branch -m, remote", view: gitView, prepare: repository,
		rules: func(r *stage.Rules) { r.AllowGitConfig = true }, script: `
git config a.b c; git config --unset a.b; git remote add up ../up; git remote rename up down; git branch -m topic renamed
git branch -u main renamed; git branch -D renamed; git sparse-checkout init --cone; git sparse-checkout set src; git sparse-checkout disable; git config -l --local; git ls-files --stage`},
	{name: "FS-53 add -A and status see no name of srt", view: gitView, prepare: "git init -q; echo x >f", script: `
git status; git add -A -v; git status --porcelain=v2 --untracked-files=all --ignored; git ls-files --stage; git clean -ndx`},
}

func TestGit(t *testing.T) {
	for i := range gitUses {
		gitUses[i].tools = []string{"git"}
	}
	compareAll(t, gitUses)
}
