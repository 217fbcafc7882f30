package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEscape_010_AbsentAtStart: CVE-2026-25725. A deny of something that is not there yet holds against every way to make
// it (FS-30), and nothing stands in for it on the host (FS-33, FS-53). broker_linux_test.go attacks this further.
func TestEscape_010_AbsentAtStart(t *testing.T) {
	for name, s := range map[string]settings{
		"write deny": {AllowWrite: []string{"."}, DenyWrite: []string{"later"}},
		"deeper":     {AllowWrite: []string{"."}, DenyWrite: []string{"later/b/c"}},
		"dangling":   {AllowWrite: []string{"."}, DenyWrite: []string{"dangling"}},
		"mandatory":  {AllowWrite: []string{"."}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.link("later", "work/dangling")
				w.write("work/ready/b/c", "pwned\n")
				w.settings = s
				attack := `for n in later .bashrc .vscode; do
	: > $n; mkdir $n; mkdir -p $n/b/c; ln -s ready $n; ln ready/b/c $n; mkfifo $n; mv ready $n; mv ready/b/c $n; cp -r ready $n; tee $n </dev/null
done; echo pwned > dangling; mkdir -p dangling/b; true`
				o := w.sh(attack)
				denied := []string{"later"}
				if name == "mandatory" {
					denied = []string{".bashrc", ".vscode"}
				}
				for _, n := range denied {
					if got := describe(w.work + "/" + n); !strings.HasPrefix(got, "error: no such file") {
						t.Errorf("ESCAPE: %s: %s\n%s", n, got, o.err)
					}
				}
				w.outside(attack)
				for _, n := range denied {
					if got := describe(w.work + "/" + n); strings.HasPrefix(got, "error: ") {
						t.Errorf("without a sandbox the attack does not make %s either", n)
					}
				}
			})
		})
	}
	t.Run("read deny", func(t *testing.T) {
		each(t, func(t *testing.T, w *world) {
			w.write("out/secret", "top secret\n")
			w.settings.DenyRead = []string{"later", "tree/later"}
			w.loot(`cat $WORLD/out/secret > /dev/null; mkdir tree; for n in later tree/later; do
	cp $WORLD/out/secret $n; cat $n; ln $n h; cat h; mv $n moved; cat moved; done 2>/dev/null | sed 's/^/got /'`, "got top secret")
		})
	})
}

// TestEscape_010_AbsentWhereNothingCanCreateIt: the same deny needs no refusal, and holds, outside of write roots.
func TestEscape_010_AbsentWhereNothingCanCreateIt(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings.DenyWrite = []string{w.out + "/later"}
		w.holds(`echo pwned > $WORLD/out/later`, "out")
	})
}

// repository is a scene with everything that makes a host's git, shell or editor run something (FS-35), in the working
// directory and in a nested repository.
func repository(w *world) {
	for _, dir := range []string{"work/", "work/nested/"} {
		w.write(dir+".git/HEAD", "ref: refs/heads/main\n")
		w.write(dir+".git/config", "[core]\n")
		w.write(dir+".git/hooks/pre-commit", "true\n")
		w.write(dir+".vscode/tasks.json", "{}\n")
		w.write(dir+".claude/commands/c.md", "c\n")
		w.write(dir+".claude/agents/a.md", "a\n")
		w.write(dir+".idea/x.xml", "x\n")
		for _, f := range []string{".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc", ".mcp.json"} {
			w.write(dir+f, "safe\n")
		}
	}
	w.write("work/.git/modules/sub/HEAD", "ref: refs/heads/main\n")
	w.write("work/.git/modules/sub/config", "[core]\n")
	w.write("work/.git/modules/sub/hooks/post-checkout", "true\n")
	w.write("work/tree/.git", "gitdir: ../.git/worktrees/tree\n")
}

// protected are the places of repository that must not change, without their parents, which a command may write to.
func protected() []string {
	var all []string
	for _, dir := range []string{"work/", "work/nested/"} {
		for _, f := range []string{".git/config", ".git/hooks", ".vscode", ".claude/commands", ".claude/agents", ".idea", ".gitconfig",
			".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc", ".mcp.json"} {
			all = append(all, dir+f)
		}
	}
	return append(all, "work/.git/modules/sub/config", "work/.git/modules/sub/hooks", "work/tree/.git")
}

// TestEscape_011_HookPlanted: hooks, configuration and start-up files that exist are never writable (FS-35 to FS-39),
// though the settings name them for writing.
func TestEscape_011_HookPlanted(t *testing.T) {
	attacks := map[string]string{
		"overwrite":        `for f in %[1]s; do if [ -d $f ]; then echo pwned > $f/$(ls $f | head -1); else echo pwned > $f; fi; done`,
		"plant":            `for f in %[1]s; do [ -d $f ] && echo pwned > $f/planted && chmod 755 $f/planted; done`,
		"delete":           `for f in %[1]s; do rm -rf $f; echo pwned > $f; done`,
		"move away":        `for f in %[1]s; do mv $f $f.away && echo pwned > $f; done`,
		"move over":        `for f in %[1]s; do echo pwned > new; mv -T new $f; done`,
		"parents away":     `for f in .git nested nested/.git .git/modules .git/modules/sub .claude tree; do mv $f $f.away && mkdir -p $f/hooks && echo pwned > $f/config; done`,
		"make executable":  `for f in %[1]s; do chmod -R a+rwx $f; done`,
		"other case":       `for f in .GIT/config .Git/HOOKS/pre-commit; do echo pwned > $f; done; echo pwned > .git/config`,
		"git's own method": `git config core.fsmonitor 'touch pwned'; git config --file .git/config alias.x '!touch pwned'; git -C nested config core.hooksPath /tmp`,
	}
	var relative []string
	for _, p := range protected() {
		relative = append(relative, strings.TrimPrefix(p, "work/"))
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				repository(w)
				w.settings.AllowWrite = []string{".", ".git/hooks", ".bashrc", "nested"}
				if strings.Contains(attack, "%") {
					attack = fmt.Sprintf(attack, strings.Join(relative, " "))
				}
				w.holds(attack, protected()...)
			})
		})
	}
	for _, gap := range knownGaps {
		t.Log("known gap:", gap.what, "-", gap.why)
	}
}

// TestEscape_011_CommonRepository: the hooks and configuration that a worktree or submodule shares with a repository
// elsewhere are out of reach too, however deep that lies in a write root (FS-37).
func TestEscape_011_CommonRepository(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const common = "home/a/b/c/d/main/.git"
		for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n", "hooks/pre-push": "#!/bin/sh\n",
			"worktrees/work/HEAD": "ref: refs/heads/w\n", "worktrees/work/commondir": "../..\n"} {
			w.write(common+"/"+name, text)
		}
		w.write("work/.git", "gitdir: "+w.dir+"/"+common+"/worktrees/work\n")
		w.settings.AllowWrite = []string{".", w.home}
		w.holds(`g=$WORLD/`+common+`; echo pwned > $g/hooks/pre-push; echo pwned > $g/hooks/post-checkout; echo pwned > $g/config; echo / > $g/worktrees/work/commondir
mv $g/hooks $g/old && mkdir $g/hooks; mv $g $g.old; echo 'gitdir: /tmp' > .git; rm -f .git`, common+"/hooks", common+"/config", common+"/worktrees/work/commondir", "work/.git")
	})
}

// TestEscape_014_WriteRootReplacedBetweenRuns: CVE-2024-42472. A write root that has become a link grants nothing.
func TestEscape_014_WriteRootReplacedBetweenRuns(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/root/f", "f\n")
		w.sh(`mv root away && ln -s ../out root`)
		if target, err := os.Readlink(w.work + "/root"); err != nil || target != "../out" {
			t.Fatalf("the first run did not replace the root: %v", err)
		}
		w.settings.AllowWrite = []string{"root"}
		w.holds(`echo pwned > root/victim; echo pwned > $WORLD/out/new`, "out")
	})
}

// TestEscape_016_HiddenDirectory: srt#149. What is written into a hidden directory stays in memory, and nothing of its
// content shows (FS-32).
func TestEscape_016_HiddenDirectory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/h/secret", "top secret\n")
		w.write("work/s", "top secret\n")
		w.settings.DenyRead = []string{"h", "s"}
		w.holds(`echo pwned > h/secret; echo pwned > h/new; chmod 0700 h; rm -rf h; echo pwned > s; chmod 0644 s; rm -f s`, "work/h", "work/s")
	})
	each(t, func(t *testing.T, w *world) {
		w.write("work/h/secret", "top secret\n")
		w.write("work/s", "top secret\n")
		w.must(os.Chmod(w.work+"/s", 0o600))
		w.settings.DenyRead = []string{"h", "s"}
		w.loot(`chmod 0644 s; cat s h/secret /proc/self/cwd/h/secret; cp -a h s $WORLD/loot/; cat h/../h/secret; dd if=s; tar -cf - h s`, "top secret")
	})
}

// TestEscape_017_OverlappingRules: srt#263. No combination of lists opens what one of them closes.
func TestEscape_017_OverlappingRules(t *testing.T) {
	tables := []settings{
		{AllowWrite: []string{".", "d", "d/x"}, DenyWrite: []string{"d"}},
		{AllowWrite: []string{".", "d/x", "d/x/f"}, DenyWrite: []string{"d", "d/x"}},
		{AllowWrite: []string{"d/x/f", "."}, DenyWrite: []string{"."}},
		{AllowWrite: []string{"."}, DenyWrite: []string{"d"}, AllowRead: []string{"d", "d/x"}},
		{AllowWrite: []string{"."}, DenyRead: []string{"d"}, AllowRead: []string{"d/x"}, DenyWrite: []string{"d/x"}},
		{AllowWrite: []string{"."}, DenyRead: []string{"."}, AllowRead: []string{"d"}, DenyWrite: []string{"d"}},
		{AllowWrite: []string{"/"}, DenyWrite: []string{"d"}},
		{AllowWrite: nil, AllowRead: []string{"/"}},
	}
	for i, s := range tables {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.write("work/d/x/f", "protected\n")
				w.settings = s
				w.holds(`cd $WORLD/work; echo pwned > d/x/f; rm -f d/x/f; rm -rf d; mkdir -p d/x; echo pwned > d/x/f`, "work/d")
			})
		})
	}
}

// TestEscape_018_FileGrantIsNoDirectory: codex#40433. A grant of one file opens neither its directory nor another object
// of its name.
func TestEscape_018_FileGrantIsNoDirectory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/f", "granted\n")
		w.write("work/g", "not granted\n")
		w.settings.AllowWrite = []string{"f"}
		before := w.identities("work/g", "out/victim")
		w.sh(`echo new > f; echo pwned > g; rm f; mkdir f; ln -sf ../out/victim f; echo pwned > f; mv g f`)
		if diff := difference(before, w.identities("work/g", "out/victim")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
		if info, err := os.Lstat(w.work + "/f"); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the granted file was replaced: %v %v", info, err)
		}
	})
}

// TestEscape_019_DirectoryIsNoPolicy: CVE-2025-59532. Being in a directory grants nothing.
func TestEscape_019_DirectoryIsNoPolicy(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings.AllowWrite = nil
		w.holds(`echo pwned > f; cd ../out && echo pwned > victim`, "work", "out")
	})
}

// TestEscape_022_PatternDeny: a deny pattern holds for what is there and for what is made later (FS-55).
func TestEscape_022_PatternDeny(t *testing.T) {
	t.Run("write", func(t *testing.T) {
		each(t, func(t *testing.T, w *world) {
			w.write("work/old.pem", "protected\n")
			w.write("work/d/ready", "pwned\n")
			w.settings.DenyWrite = []string{"**/*.pem", "t[ab]c/x"}
			w.sh(`rm -f old.pem; echo pwned > old.pem; for n in new.pem d/new.pem d/e/new.pem tac/x tbc/x; do
	mkdir -p d/e tac tbc; echo pwned > $n; mkdir $n; ln d/ready $n; ln -s ready $n; mv d/ready $n; cp d/ready $n; done
mkdir -p q; touch q/x; mv q tac; mv -T q tac; mv -T d/e z; cp -r q tbc; true`)
			if got := w.read("work/old.pem"); got != "protected\n" {
				t.Errorf("ESCAPE: old.pem: %q", got)
			}
			for name := range w.snapshot("work") {
				if base := filepath.Base(name); strings.HasSuffix(base, ".pem") && base != "old.pem" || strings.HasSuffix(name, "bc/x") || strings.HasSuffix(name, "ac/x") {
					t.Errorf("ESCAPE: %s was made", name)
				}
			}
		})
	})
	t.Run("read", func(t *testing.T) {
		each(t, func(t *testing.T, w *world) {
			w.write("work/d/.env", "top secret\n")
			w.write("work/plain", "top secret\n")
			w.settings.DenyRead = []string{"**/.env"}
			w.loot(`mv d e; { cat d/.env e/.env; ln d/.env x; cat x; cp plain e/.env; mkdir -p n; ln plain n/.env; cat n/.env; cat < n/.env
mv n/.env n/y; cat n/y; mv n o; cat o/.env; exec 3< o/.env; cat <&3; dd if=o/.env; } 2>/dev/null | sed 's/^/got /'`, "got top secret")
		})
	})
}

// TestEscape_023_StrangeNames: names are taken as they are, wherever they stand (CVE-2024-32462).
func TestEscape_023_StrangeNames(t *testing.T) {
	for _, name := range []string{"a\nb", "-rf", "--", "a b", "$(touch x)", "`x`", "\\", "a\\040b", "\x1b(B", "é", "a#b", `"q"`, "'q'", "..."} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.write("work/"+name+"/f", "protected\n")
				w.settings.DenyWrite = []string{name + "/f"}
				w.settings.DenyRead = []string{w.out + "/" + "victim"}
				w.env = append(w.env, "NAME="+name)
				w.holds(`echo pwned > "./$NAME/f"; rm -f "./$NAME/f"; mv "./$NAME" z`, filepath.Join("work", name, "f"))
			})
		})
	}
	each(t, func(t *testing.T, w *world) {
		w.settings.DenyWrite = []string{"a\x00b"}
		w.refused("")
	})
}

// TestEscape_024_ManyRules: a thousand denies all hold; none is dropped on the way (FS-65).
func TestEscape_024_ManyRules(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for i := range 1000 {
			w.write(fmt.Sprintf("work/d%d/f%d", i%10, i), "protected\n")
			w.settings.DenyWrite = append(w.settings.DenyWrite, fmt.Sprintf("d%d/f%d", i%10, i))
		}
		before := w.snapshot("work")
		w.sh(`for f in d*/f*; do echo pwned > $f; done 2>/dev/null; rm -rf d*`)
		if diff := difference(before, w.snapshot("work")); diff != "" {
			t.Errorf("ESCAPE: %.2000s", diff)
		}
	})
}

// TestEscape_025_StrangeObjects: a FIFO or a socket as the place of a rule does not hang the start. It cannot be changed,
// and nothing is written into one that a rule names or that is outside of the write roots (FS-46); see knownGaps for the rest.
func TestEscape_025_StrangeObjects(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.must(mkdirFor(w, w.work+"/hidden"))
		names := []string{w.work + "/fifo", w.work + "/.bashrc", w.work + "/hidden/fifo", w.out + "/fifo"}
		for _, name := range names {
			w.must(unix.Mkfifo(name, 0o644))
		}
		w.must(unix.Mknod(w.work+"/sock", unix.S_IFSOCK|0o644, 0))
		w.own(w.dir)
		fifos := map[string]*os.File{}
		for _, name := range names {
			f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
			w.must(err)
			defer f.Close()
			fifos[name] = f
		}
		w.settings.DenyWrite, w.settings.DenyRead = []string{"fifo"}, []string{"sock", "hidden/fifo"}
		attack := `for f in fifo .bashrc hidden/fifo $WORLD/out/fifo; do echo pwned > $f; done; for f in fifo .bashrc hidden/fifo $WORLD/out/fifo; do chmod 0600 $f; rm -f $f; done; echo pwned > sock`
		before := w.snapshot("work", "out")
		w.sh(attack)
		if diff := difference(before, w.snapshot("work", "out")); diff != "" {
			t.Errorf("ESCAPE: %s", diff)
		}
		for name, f := range fifos {
			buf := make([]byte, 10)
			if n, _ := unix.Read(int(f.Fd()), buf); n > 0 {
				t.Errorf("ESCAPE: %q came out of %s", buf[:n], name)
			}
		}
	})
}

// TestEscape_026_UnsearchableDirectory: what a deny cannot look into does not open (FS-11). For root nothing is
// unsearchable, and the deny holds as it stands.
func TestEscape_026_UnsearchableDirectory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.write("work/closed/secret", "top secret\n")
		w.must(os.Chmod(w.work+"/closed", 0))
		w.settings.DenyRead = []string{"closed/secret"}
		w.loot(`chmod 0755 closed; cat closed/secret; mv closed open; cat open/secret`, "top secret")
	})
	each(t, func(t *testing.T, w *world) {
		w.write("work/closed/f", "protected\n")
		w.must(os.Chmod(w.work+"/closed", 0))
		w.settings.DenyWrite = []string{"closed/f"}
		w.sh(`chmod 0755 closed; echo pwned > closed/f; rm -rf closed/f; mv closed open; echo pwned > open/f`)
		w.must(os.Chmod(w.work+"/closed", 0o755))
		if got := w.read("work/closed/f"); got != "protected\n" {
			t.Errorf("ESCAPE: %q", got)
		}
	})
}
