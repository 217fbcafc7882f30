package test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The cases of the filesystem chapter that this version covers, by their numbers. "~/p" is the working directory.

func TestFS_case01_FS1_26_WriteInsideTheWorkingDirectoryOnly(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("~keep", "")
		r := b.host(srtPath, "exec", "--", "sh", "-c", "echo x > f")
		r.fails().says("f")
		b.absent("f")
		b.check(cfg{}, "create f: refused", "mkdir d: refused", "symlink x l: refused", "mkfifo p: refused")
		b.check(cfg{aw: list{"."}}, "create f: ok", "create ../g: refused", "openwrite /etc/passwd: refused")
		b.holds("f", "made")
		b.absent("../g")
	})
}

func TestFS_case02_FS26_31_DenyInsideAWriteRoot(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("conf", "old")
		b.file("prot/x", "old")
		b.file("free", "new")
		before := b.tree(".")
		b.check(cfg{aw: list{"."}, dw: list{"conf", "prot"}},
			"write conf: refused", "truncate conf: refused", "otruncate conf: refused", "chmod conf: refused", "utime conf: refused",
			"setxattr conf: refused", "unlink conf: EBUSY", "rename conf other: EBUSY", "rename free conf: EBUSY",
			"link conf h: EXDEV", "create prot/n: refused", "unlink prot/x: refused", "rmdir prot: EBUSY", "rename prot q: EBUSY",
			"holds conf old: ok")
		b.unchanged(".", before)
	})
}

func TestFS_case03_FS26_AllowBeneathADenyChangesNothing(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.mkdir("prot/sub", 0o755)
		b.check(cfg{aw: list{".", "prot/sub"}, dw: list{"prot"}}, "create prot/sub/n: refused", "create n: ok")
		b.absent("prot/sub/n")
	})
}

func TestFS_case04_FS26_EverythingDeniedStarts(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "old")
		b.check(cfg{aw: list{"/", "."}, dw: list{"/"}}, "create n: refused", "write f: refused", "create ../n: refused",
			"create /var/tmp/"+b.mark+": refused", "write /dev/null: ok")
		b.holds("f", "old")
		b.absent("n")
		b.absent("/var/tmp/" + b.mark)
	})
}

func TestFS_case07_FS32_HiddenDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("sec/k", "secret")
		before := b.tree(".")
		for _, c := range []cfg{{dr: list{"sec"}}, {dr: list{"sec"}, aw: list{"."}}} {
			b.check(c, "empty sec: ok", "read sec/k: ENOENT", "create sec/n: ok", "holds sec/n made: ok", "rename sec t: EBUSY|EROFS",
				"rmdir sec: EBUSY|EROFS")
			b.unchanged(".", before)
		}
	})
}

func TestFS_case08_FS22_31_HiddenFileUnderAnAllow(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file(".env", "secret")
		// Root keeps CAP_DAC_OVERRIDE: the file opens as an empty one (design, "Settled").
		read := "read .env: EACCES"
		if b.who.root() {
			read = "size0 .env: ok"
		}
		b.check(cfg{dr: list{".env"}, ar: list{"."}}, read, "stat .env: ok", "size0 .env: ok", "append .env: refused")
		if r := b.run(cfg{dr: list{".env"}, ar: list{"."}}, "cat", ".env"); strings.Contains(r.stdout, "secret") {
			t.Errorf("the content shows: %v", r)
		}
		b.holds(".env", "secret")
	})
}

func TestFS_case09_FS22_AllowOfTheFileItselfWins(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file(".env", "secret")
		b.check(cfg{dr: list{".env"}, ar: list{".env"}}, "holds .env secret: ok", "append .env: refused")
		r := b.sh(cfg{dr: list{".env"}, aw: list{".env"}}, "cat .env; echo x >> .env")
		if strings.Contains(r.stdout, "secret") {
			t.Errorf("allowWrite lifts a read deny: %v", r)
		}
		b.holds(".env", "secret")
		b.check(cfg{dr: list{"/"}, ar: list{"/"}}, "holds .env secret: ok", "read /etc/passwd: ok")
	})
}

func TestFS_case10_FS22_AllowOfALinkToADeniedFile(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("sec/k", "secret")
		b.link("sec/k", "lk")
		if !b.who.root() {
			b.check(cfg{dr: list{"sec/k"}, ar: list{"lk"}}, "read sec/k: EACCES", "read lk: EACCES")
		}
		r := b.sh(cfg{dr: list{"sec/k"}, ar: list{"lk"}}, "cat sec/k lk")
		if strings.Contains(r.stdout, "secret") {
			t.Errorf("a link re-allows its target: %v", r)
		}
	})
}

func TestFS_case11_FS22_DeepestRuleDecides(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, f := range []string{"a/f", "a/b/f", "a/b/c/f", "a/b/c/d/f"} {
			b.file(f, "text of "+f)
		}
		b.check(cfg{dr: list{"a", "a/b/c"}, ar: list{"a/b", "a/b/c/d"}}, "read a/f: ENOENT", "read a/b/f: ok", "read a/b/c/f: ENOENT",
			"read a/b/c/d/f: ok", "create a/b/n: refused", "create a/b/c/d/n: refused")
	})
}

func TestFS_case12_FS27_HiddenHomeVisibleProject(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("../.bashrc", "secret")
		b.file("src", "source")
		b.mkdir("build", 0o755)
		b.check(cfg{dr: list{"~"}, ar: list{"."}, aw: list{"build"}}, "create build/o: ok", "read ../.bashrc: ENOENT", "create n: refused",
			"holds src source: ok")
		b.holds("build/o", "made")
		b.holds("../.bashrc", "secret")
		b.absent("n")
	})
}

func TestFS_case13_FS22_DenyAndAllowWriteOfOneDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("sec/k", "secret")
		b.check(cfg{dr: list{"sec"}, aw: list{"sec"}}, "holds sec/k secret: ok", "create sec/n: ok")
		b.holds("sec/n", "made")
		b.check(cfg{dr: list{"sec"}, aw: list{"."}}, "read sec/k: ENOENT", "create sec/m: ok", "create m: ok")
		b.absent("sec/m")
		b.holds("m", "made")
	})
}

func TestFS_case15_FS16_17_LiteralNameWithGlobCharacter(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("x*y/k", "1")
		b.file("xay/k", "2")
		b.check(cfg{dr: list{object{"path": "x*y", "literal": true}}}, "empty x*y: ok", "read x*y/k: ENOENT", "holds xay/k 2: ok")
	})
}

func TestFS_case16_FS8_16_WritePatternThatIsALink(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.mkdir("target", 0o755)
		b.link("target", "l*k")
		r := b.check(cfg{aw: list{"l*k"}}, "create l*k/n: refused", "create target/n: refused")
		r.says("l*k")
		b.absent("target/n")
	})
}

func TestFS_case17_FS3_PatternThatCanMatchNothing(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, c := range []cfg{{dr: list{"~/p/**/.env/"}}, {dw: list{b.work + "/x*/"}}} {
			r := b.run(c, "touch", b.dir+"/tmp/ran")
			r.exits(1).says("Error: ", "filesystem.den", ".0")
			b.absent("../../tmp/ran")
		}
	})
}

func TestFS_case18_FS2_4_BadEntriesNameTheirKey(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, bad := range []any{"", 5, object{"path": "x"}, object{"path": "x", "literal": true, "z": 1}} {
			for _, key := range []string{"denyRead", "allowRead", "allowWrite", "denyWrite"} {
				c := cfg{aw: list{"."}, fs: object{key: list{"ok", bad}}}
				r := b.run(c, "touch", "ran")
				r.exits(1).says("Error: ", "filesystem."+key+".1")
				b.absent("ran")
			}
		}
	})
}

func TestFS_case19_FS11_LockedDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("locked/s", "secret")
		b.must(os.Chmod(b.abs("locked"), 0))
		// FS-11: what is not inspectable hides the nearest ancestor that is. An error before the start is as good.
		r := b.sh(cfg{dr: list{"locked/s"}, aw: list{"."}}, "chmod 755 locked; cat locked/s")
		if strings.Contains(r.stdout, "secret") {
			t.Errorf("readable after chmod: %v", r)
		}
		b.must(os.Chmod(b.abs("locked"), 0o755))
		b.holds("locked/s", "secret")
	})
}

func TestFS_case27_FS29_LinksLeadingOut(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("../g", "old")
		b.mkdir("../out", 0o755)
		b.link("../g", "l")
		b.link("../out", "d")
		b.check(cfg{aw: list{"."}}, "write l: refused", "truncate l: refused", "create d/n: refused", "link ../g h: EXDEV",
			"rename ../g h: EXDEV|EROFS", "write l: refused")
		b.holds("../g", "old")
		b.absent("../out/n")
		b.absent("h")
		// Through a link into a write root a write is allowed (FS-29).
		b.link("p/in", "../into")
		b.file("in", "old")
		b.check(cfg{aw: list{"."}}, "write ../into: ok")
	})
}

func TestFS_case28_FS8_WriteRootThatIsALink(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.mkdir("../other", 0o755)
		b.link("../other", "sl")
		r := b.check(cfg{aw: list{"sl"}}, "create sl/n: refused", "create ../other/n: refused", "create n: refused")
		r.says("sl", b.home+"/other")
		if n := strings.Count(r.stderr, "\n"); n != 1 {
			t.Errorf("%d lines of warning, want 1: %v", n, r)
		}
		b.absent("../other/n")
	})
}

func TestFS_case32_FS22_57_CredentialDenyIsNotLifted(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("keys/sub/b", "secret")
		b.file("keys/a", "secret")
		c := cfg{ar: list{"keys/sub", "keys/sub/b"}, aw: list{".", "keys/sub"},
			top: object{"credentials": object{"files": list{object{"path": "keys", "mode": "deny"}}}}}
		b.check(c, "empty keys: ok", "read keys/sub/b: ENOENT", "read keys/a: ENOENT", "create n: ok")
		b.holds("keys/sub/b", "secret")
	})
}

func TestFS_case34_FS56_Disabled(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("netrc", "real")
		b.file("sec", "seen")
		c := cfg{dr: list{"sec"}, fs: object{"disabled": true},
			top: object{"credentials": object{"files": list{object{"path": "netrc", "mode": "deny"}}}}}
		b.check(c, "holds netrc real: ok", "holds sec seen: ok", "create ../z: ok", "create .bashrc: ok", "kill0 1: ok")
		b.holds("../z", "made")
		b.holds(".bashrc", "made")
		r := b.run(c, "sh", "-c", `echo "$TMPDIR"; ls /proc | grep -c '^[0-9]'`)
		if lines := strings.Fields(r.ok().stdout); len(lines) != 1 || len(lines[0]) > 1 {
			t.Errorf("TMPDIR is set, or the host's processes show: %v", r) // FS-47, FS-50, FS-56
		}
	})
}

func TestFS_case36_FS5_28_EmptyHome(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		cmd := b.command(b.srt(cfg{aw: list{"~"}}, probePath, "create", "n", ";", "create", "/n", ";", "create", b.home+"/n")...)
		cmd.Env = append(b.env, "HOME=")
		r := b.finish(cmd)
		if r.status == 0 {
			for i, line := range strings.Fields(r.stdout) {
				if line != "EROFS" && line != "EACCES" {
					t.Errorf("operation %d: %s; %v", i, line, r)
				}
			}
		}
		b.absent("n")
		b.absent("/n")
		b.absent("../n")
	})
}

func TestFS_10_AbsentWriteRootGrantsNothing(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.check(cfg{aw: list{"later"}}, "mkdir later: refused", "create later: refused").says("later")
		b.absent("later")
	})
}

func TestFS_41_DirectoriesAboveAProtectedFile(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("a/b/c/conf", "old")
		b.file("a/b/n", "n")
		b.check(cfg{aw: list{"."}, dw: list{"a/b/c/conf"}}, "rename a z: EBUSY", "rename a/b z: EBUSY", "rename a/b/c z: EBUSY",
			"rename a/b/n a/m: ok", "link a/m a/b/c/h: ok", "rename a/m top: ok", "create a/b/c/k: ok", "rename a/b/c/k k: ok",
			"write a/b/c/conf: refused")
		b.holds("a/b/c/conf", "old")
	})
}

func TestFS_47_48_PrivateKernelTrees(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		r := b.sh(cfg{aw: list{"."}}, "ls /dev; ls -A /dev/shm; ls -A /dev/pts")
		want := "core\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\nptmx"
		r.ok().prints(want)
		b.check(cfg{aw: list{"/"}}, "mkdev n: refused", "create /dev/shm/"+b.mark+": ok", "create /sys/n: refused", "openwrite /proc/sys/kernel/hostname: refused",
			"openwrite /proc/sysrq-trigger: EROFS|EACCES|ENOENT", // some kernels lack it
			"openwrite /proc/sys/kernel/core_pattern: refused")
		b.absent("/dev/shm/" + b.mark)
		var st unix.Stat_t
		b.must(unix.Stat(b.work, &st))
		b.sh(cfg{}, "stat -c %u:%g . && id -u").ok().prints(fmt.Sprintf("%d:%d\n%d", st.Uid, st.Gid, b.who.uid))
	})
}

func TestFS_49_HiddenWorkingDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "secret")
		r := b.run(cfg{dr: list{"."}}, "sh", "-c", "pwd; cat f")
		r.fails().says(b.work)
		if got, _, _ := strings.Cut(r.stdout, "\n"); got != b.home {
			t.Errorf("starts in %q, want %q: %v", got, b.home, r)
		}
	})
}

func TestFS_50_TemporaryDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, unusable := range []string{"/nonexistent/x", b.dir + "/link"} {
			b.mkdir(b.dir+"/target", 0o755)
			if unusable == b.dir+"/link" {
				b.link("target", b.dir+"/link")
			}
			cmd := b.command(b.srt(cfg{}, "sh", "-c", `f=$(mktemp) && echo x >"$f" && echo "$TMPDIR" && rm "$f"`)...)
			cmd.Env = append(b.env, "CLAUDE_CODE_TMPDIR="+unusable)
			if r := b.finish(cmd).ok(); strings.Contains(r.stdout, unusable) {
				t.Errorf("an unusable TMPDIR is used: %v", r)
			}
		}
	})
}

// copyProgram makes a copy of srt in the working directory's tree. Another process writes it: a descriptor of this one that
// is open for writing could be in a child that has not executed its program yet, and the copy then not be executed (ETXTBSY).
func (b *box) copyProgram(name string) {
	b.must(exec.Command("cp", srtPath, b.abs(name)).Run())
	b.must(os.Chmod(b.abs(name), 0o755))
}

func TestFS_51_OwnFilesAreNotWritable(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		c := cfg{aw: list{"/"}}
		path := b.settings(c)
		b.file("srt", "")
		b.copyProgram("srt")
		b.must(os.Link(b.abs("srt"), b.abs("srt2"))) // package managers do so; nobody writes to what runs, by whatever name
		before, err := os.ReadFile(path)
		b.must(err)
		run := func(args ...string) result {
			return b.host(append([]string{b.abs("srt"), "-s", path, "exec", "--"}, args...)...)
		}
		b.checkWith(run, "write "+path+": refused|EBUSY|EROFS|EACCES|EPERM", "unlink "+path+": EBUSY", "write srt: EROFS|EACCES|EPERM|ETXTBSY",
			"unlink srt: EBUSY", "write srt2: ETXTBSY", "create n: ok")
		b.holds(path, string(before))
	})
}
