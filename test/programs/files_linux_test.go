package programs

import (
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// sample makes a tree with every kind of object that archivers and copiers treat in a way of their own.
const sample = `
mkdir -p in/d/e in/empty in/secrets; echo one >in/f; echo two >in/d/g; ln in/f in/hard; ln -s d/g in/soft; ln -s /nowhere in/dangling
mkfifo in/fifo; : >in/zero; chmod 640 in/f; chmod 4750 in/d/g; chmod 1777 in/empty; head -c 300000 /dev/zero | tr '\0' x >in/big
printf x | dd of=in/sparse bs=1 seek=1000000 status=none; echo n >"in/new
line"; echo k >in/secrets/prod.env; find in -exec touch -h -d '2020-01-02 03:04:05.678901234' {} +
`

var fileUses = []use{
	{name: "tar", tools: []string{"tar", "gzip"}, prepare: sample, view: stage.View{Times: true, Varying: []string{"*.tar*"}}, script: `
tar --sort=name -cf a.tar in; tar -czf b.tar.gz -C in .; mkdir out flat; tar -xpf a.tar -C out; tar -xzf b.tar.gz -C flat --no-same-permissions
tar -xf a.tar -C out --overwrite; tar -xf a.tar -C out -k 2>/dev/null || echo "kept: $?"; tar -xf a.tar -C out --unlink-first --recursive-unlink; tar -tvf a.tar; tar -df a.tar; diff -r --no-dereference in/d out/in/d`},
	{name: "rsync", tools: []string{"rsync"}, prepare: sample, view: stage.View{Times: true}, script: `
rsync -aHS --itemize-changes in/ out/; echo more >>in/f; touch -d 2021-01-01 in/f; rm in/zero; rsync -aH --delete --itemize-changes in/ out/
rsync -a --inplace in/big out/big; rsync -a --link-dest=../out in/ linked/; rsync -a --backup --suffix=.old in/f out/f; rsync -a --partial-dir=.part --delay-updates in/ delayed/`},
	{name: "cp, mv, ln, install, rm", prepare: sample, view: stage.View{Varying: []string{"mk/*"}}, script: `
cp -a in copy; cp -r in/d rec; cp --remove-destination in/big copy/big; cp -l in/f linked; cp -s "$PWD/in/f" symlinked; cp --backup=numbered in/f copy/hard
mv copy/d copy/moved; mv -f copy/f copy/hard; mv -n in/zero copy/big; mv copy renamed; ln -sfn in/d cur; ln -sfn in/empty cur; ln -f in/big renamed/hard2
install -D -m 750 in/f deep/er/bin; install -d -m 2755 sg; truncate -s 10 trunc; dd if=in/big of=part bs=1000 count=3 seek=2 conv=notrunc status=none
mkdir -p -m 700 p/q/r; mkdir mk; (cd mk; mkdir x; touch x/y; rm -r x); touch -d 2001-01-01 old; touch -c never; umask 077; echo t >tight; mkdir tightd
mkfifo pipe; (echo through >pipe &); cat pipe; split -b 100000 in/big piece.; csplit -s in/d/g 1; rm -rf renamed/empty; rmdir tightd; find renamed -type f -name 'b*' -delete; ls -R`},
	{name: "redirections", script: `
echo a >f; echo b >>f; echo c 1<>f; set -C; (echo d >f) 2>/dev/null || echo kept; echo e >|f; exec 5>five; echo x >&5; exec 5>&-; cat <<<here >doc
for n in 1 2 3; do echo $n; done | tee t1 t2 >/dev/null; { cat f /dev/stdin <t1 >/dev/stdout; echo err >/dev/stderr; echo n >/dev/null; cat /dev/fd/3 3<t2; (echo s >/proc/self/fd/1); } 2>&1 | cat
mktemp -p . tmp.XXXXXX >/dev/null; rm tmp.*; : >missing/x || echo no`},
	{name: "sed -i, perl -i, patch", tools: []string{"sed", "patch", "perl"}, prepare: "mkdir d; seq 1 100 >n; cp n d/n; ln -s n link; chmod 600 d/n", script: `
sed -i 's/5/five/' n d/n; sed -i.bak '1d' d/n; sed -i --follow-symlinks '2d' link; sed -n 'w out' n; perl -pi.orig -e 's/7/seven/' n
diff -u --label d/n.bak --label d/n d/n.bak d/n >p || true; patch -R d/n <p; patch -b -o patched d/n.bak p; sed -i 's/x/y/' absent || echo "status $?"; sort -o n n; ls -la --time-style=+`},
	{name: "vim -es", tools: []string{"vim"}, prepare: "seq 1 50 >n; ln -s n link; ln n hard; mkdir d; chmod 600 n",
		view: stage.View{Varying: []string{"d/%*"}}, script: `
vim -Nu NONE -es -c '%s/1/one/g' -c 'wq' n; vim -Nu NONE -es -c 'set backup backupdir=.,d backupext=.b' -c 'normal ggdd' -c 'w d/copy' -c 'wq' link
vim -Nu NONE -es -c 'set undofile undodir=d' -c 'normal Gp' -c 'normal Aend' -c 'wq' n; vim -Nu NONE -es -c 'e! new/file' -c 'w ++p' -c 'q!' || true
vim -Nu NONE -es -c 'r !echo filtered' -c 'saveas saved' -c 'qa!' n; ls -A . d`},
	{name: "sqlite3", tools: []string{"sqlite3"}, view: stage.View{Varying: []string{"*.db"}}, script: `
sqlite3 a.db 'create table t(x integer primary key, y); begin; insert into t(y) values (1),(2),(3); commit; select * from t;'
sqlite3 a.db 'pragma journal_mode=wal; insert into t(y) values (4); select count(*) from t; pragma wal_checkpoint(truncate); vacuum;'
sqlite3 a.db 'pragma journal_mode=delete; pragma journal_mode=persist; insert into t(y) values (5);' '.backup b.db' '.dump'
for i in 1 2 3 4; do sqlite3 -cmd '.timeout 60000' a.db 'insert into t(y) select y from t;' & done; wait; sqlite3 a.db 'select count(*) from t; pragma integrity_check;'
sqlite3 b.db 'attach "c.db" as c; create table c.u as select * from t; create temp table v as select * from t;'; ls`},
	{name: "FS-53 cp -r and grep -r of a whole project", tools: []string{"grep"}, prepare: repository + sample, script: `
grep -rIl line . | sort; grep -rc absent . 2>&1 | sort | tail -3; cp -r . "$TMPDIR/copy"; cp -a . "$TMPDIR/exact"; diff -r --no-dereference -x fifo . "$TMPDIR/copy"; (cd "$TMPDIR"; find copy exact -printf '%y %m %s %l %p\n' | grep -v -e '^d' -e /index | sort); rm in/big; du -a --apparent-size src docs; ls -laR --time-style=+ src docs`,
		view: gitView, varying: []string{`(?m)^d\S+ \d+ \d+ .*$`}},
}

func TestFiles(t *testing.T) { compareAll(t, fileUses) }

// Login shells read what a denied name could stand in for (FS-53).
var shellUses = []use{
	{name: "FS-53 login shells in the home", tools: []string{"bash", "sh"}, script: `
export HOME=$PWD; for shell in bash sh dash; do command -v $shell >/dev/null || continue
$shell -lc 'echo $0 login'; $shell -ic 'echo interactive' 2>&1 </dev/null | grep -v -e 'job control' -e 'process group' -e "can't access tty"; done; ls -A`},
	{name: "FS-53 login shells with their files", tools: []string{"bash", "sh"}, prepare: `
for f in .bashrc .bash_profile .profile .zshrc .zprofile; do echo "echo $f" >$f; done`, script: `
export HOME=$PWD; bash -lc 'echo login'; sh -lc 'echo login'; bash --rcfile .bashrc -ic 'echo interactive' 2>&1 </dev/null | grep -v -e 'job control' -e 'process group'
if command -v zsh >/dev/null; then zsh -lic 'echo zsh'; fi; test -r .bashrc && test ! -e .gitconfig && test ! -L .mcp.json; ls -A`},
}

func TestShells(t *testing.T) { compareAll(t, shellUses) }
