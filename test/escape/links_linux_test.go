package escape

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEscape_008_LinkInsideAWriteRoot: CVE-2026-39861. A write is judged where it lands (FS-29).
func TestEscape_008_LinkInsideAWriteRoot(t *testing.T) {
	attacks := map[string]string{
		"through a link to the directory": `ln -s ../out l; echo pwned > l/victim`,
		"through a link to the file":      `ln -s ../out/victim l; echo pwned > l`,
		"new name through a link":         `ln -s ../out l; echo pwned > l/new`,
		"a directory beneath a link":      `ln -s ../out l; mkdir l/new`,
		"dangling link":                   `ln -s ../out/new l; echo pwned > l`,
		"remove through a link":           `ln -s ../out l; rm l/victim`,
		"mode through a link":             `ln -s ../out/victim l; chmod 0600 l`,
		"times through a link":            `ln -s ../out/victim l; touch -d 2001-01-01 l`,
		"owner through a link":            `ln -s ../out/victim l; chown $(id -u):$(id -g) l; chmod u+s l`,
		"attribute through a link": `ln -s ../out/victim l
` + script(call{unix.SYS_SETXATTR, "l", "user.pwned", hex("1"), 1, 0}),
		"up and over":          `cd ..; echo pwned > work/../out/victim`,
		"cwd of a process":     `cd ../out; echo pwned > /proc/self/cwd/victim`,
		"root of a process":    `echo pwned > /proc/self/root/$WORLD/out/victim`,
		"rename out":           `echo pwned > f; mv f ../out/victim`,
		"link out":             `echo pwned > f; ln f ../out/f`,
		"exchange":             `echo pwned > f` + "\n" + script(call{unix.SYS_RENAMEAT2, at, "f", at, "../out/victim", unix.RENAME_EXCHANGE}),
		"link of a descriptor": script(call{unix.SYS_OPENAT, at, "../out", unix.O_TMPFILE | unix.O_RDWR, 0o644}, call{unix.SYS_LINKAT, ret(0), "", at, "../out/new", unix.AT_EMPTY_PATH}, call{unix.SYS_LINKAT, at, "/proc/self/fd/3", at, "../out/new", unix.AT_SYMLINK_FOLLOW}),
		"truncate":             script(call{unix.SYS_TRUNCATE, "../out/victim", 0}),
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) { w.holds(attack, "out") })
		})
	}
}

// TestEscape_009_OtherName: CVE-2026-25724. A deny holds under every name that leads to its location (FS-7).
func TestEscape_009_OtherName(t *testing.T) {
	writes := map[string]string{
		"link":               `echo pwned > alias/f`,
		"new link":           `ln -s p n; echo pwned > n/f`,
		"dots":               `echo pwned > p/../x/../p/./f`,
		"process cwd":        `cd p; echo pwned > /proc/self/cwd/f`,
		"process descriptor": script(call{unix.SYS_OPENAT, at, "p", unix.O_PATH, 0}, call{unix.SYS_OPENAT, ret(0), "f", unix.O_WRONLY | unix.O_TRUNC, 0}),
		"reopened":           script(call{unix.SYS_OPENAT, at, "p/f", unix.O_RDONLY, 0}, call{unix.SYS_OPENAT, at, "/proc/self/fd/3", unix.O_WRONLY | unix.O_TRUNC, 0}, call{unix.SYS_TRUNCATE, "/proc/self/fd/3", 0}),
		"mode":               `chmod 0600 p/f`,
		"delete":             `rm -f p/f`,
		"delete the tree":    `rm -rf p`,
		"create":             `echo pwned > p/new`,
		"hard link within":   `ln p/f p/g`,
	}
	for name, attack := range writes {
		t.Run("write "+name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.write("work/p/f", "protected\n")
				w.write("work/x/f", "other\n")
				w.link("p", "work/alias")
				w.settings.DenyWrite = []string{"alias"}
				w.holds(attack, "work/p")
			})
		})
	}
	each(t, func(t *testing.T, w *world) {
		w.write("work/p/f", "top secret\n")
		w.link("p", "work/alias")
		w.link("p/f", "work/file")
		w.settings.DenyRead = []string{"alias"}
		w.loot(`cat p/f alias/f file /proc/self/cwd/p/f /proc/self/root/$WORLD/work/p/f /proc/*/cwd/p/f; ls -R p alias; cd p && cat f; cp -r p copied; mv p moved; cat moved/f`, "top secret")
	})
}

// loot runs a script whose output is stored in the write root, and wants that the host finds nothing of secret there;
// without a sandbox it must be found.
func (w *world) loot(attack, secret string) {
	w.t.Helper()
	w.settings.AllowWrite = append(w.settings.AllowWrite, w.dir+"/loot")
	w.must(mkdirFor(w, w.dir+"/loot"))
	attack = "{ " + attack + "\n} > $WORLD/loot/got 2>&1; true"
	o := w.sh(attack)
	if got := w.read("loot/got"); strings.Contains(got, secret) {
		w.t.Errorf("ESCAPE: the secret is out:\n%s", got)
		return
	} else if strings.HasPrefix(got, "no file") {
		w.t.Fatalf("the attack stored nothing: %s%s", o.out, o.err)
	}
	w.outside(attack)
	if !strings.Contains(w.read("loot/got"), secret) {
		w.t.Errorf("the attack finds nothing without a sandbox either: %q", w.read("loot/got"))
	}
}

// TestEscape_009_BindAlias: CVE-2026-25724. A mount of the host shows what is denied a second time: whole, in part, or
// with the directory around it. No grant opens it there.
func TestEscape_009_BindAlias(t *testing.T) {
	mounts := map[string]string{
		"outside of the write roots": `mount --bind $WORLD/work $WORLD/alias`,
		"the directory around it":    `mount --bind $WORLD/work $WORLD/work/alias`,
		"the very place":             `mkdir -p $WORLD/work/alias/p; mount --bind $WORLD/work/p $WORLD/work/alias/p`,
		"a granted directory":        `mount --bind $WORLD/work $WORLD/granted; mount --rbind $WORLD/granted $WORLD/alias`,
		"a mount of a mount":         `mount --bind $WORLD/work $WORLD/out; mount --bind $WORLD/out/p $WORLD/work/alias`,
	}
	for name, mount := range mounts {
		t.Run("write "+name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				aliased(w, mount)
				w.settings.AllowWrite, w.settings.DenyWrite = []string{".", w.dir + "/granted"}, []string{"p"}
				w.holds(`for d in $WORLD/alias/p alias/p alias $WORLD/granted/p; do
	echo pwned > $d/f; echo pwned > $d/new; echo pwned > $d/sub/g; mv $d/sub/g $d/sub/h; mv $d $d.z; rm -rf $d/*; done`, "work/p")
			})
		})
		t.Run("read "+name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				aliased(w, mount)
				w.settings.DenyRead, w.settings.AllowRead = []string{"p"}, []string{"alias", w.dir + "/alias"}
				w.settings.AllowWrite = []string{".", w.dir + "/granted", "alias/p"}
				w.loot(`cat p/f alias/f alias/p/f $WORLD/alias/p/f $WORLD/granted/p/f; cat $(find $WORLD -name f)`, "content of work/p/f")
			})
		})
	}
	t.Run("a part of it", func(t *testing.T) {
		each(t, func(t *testing.T, w *world) {
			aliased(w, `mount --bind $WORLD/work/p/sub $WORLD/work/alias`)
			w.settings.DenyWrite = []string{"p"}
			w.holds(`echo pwned > alias/g; echo pwned > alias/new; rm -rf alias/g`, "work/p")
		})
	})
	t.Run("a protected name", func(t *testing.T) {
		each(t, func(t *testing.T, w *world) {
			aliased(w, `mount --bind $WORLD/home/proj/.git/hooks $WORLD/work/alias`)
			w.holds(`echo pwned > alias/pre-push; rm -f alias/pre-commit`, "home")
		})
	})
}

// aliased makes the places of TestEscape_009_BindAlias.
func aliased(w *world, mount string) {
	for _, f := range []string{"work/p/f", "work/p/sub/g", "work/x/f", "home/proj/.git/hooks/pre-commit"} {
		w.write(f, "content of "+f+"\n")
	}
	for _, d := range []string{w.dir + "/alias", w.work + "/alias", w.dir + "/granted"} {
		w.must(mkdirFor(w, d))
	}
	w.umbrella = mount
}

// TestEscape_012_AncestorMoved: the directories above a protected location cannot be moved or replaced (FS-41), and
// neither can a link on the way to it (FS-42).
func TestEscape_012_AncestorMoved(t *testing.T) {
	attacks := map[string]string{
		"rename":              `mv a z; mkdir -p a/b; echo pwned > a/b/f`,
		"rename below":        `mv a/b a/z; mkdir -p a/b; echo pwned > a/b/f`,
		"exchange":            `mkdir z` + "\n" + script(call{unix.SYS_RENAMEAT2, at, "z", at, "a", unix.RENAME_EXCHANGE}),
		"exchange below":      `mkdir z` + "\n" + script(call{unix.SYS_RENAMEAT2, at, "z", at, "a/b", unix.RENAME_EXCHANGE}),
		"exchange the file":   `echo pwned > z` + "\n" + script(call{unix.SYS_RENAMEAT2, at, "z", at, "a/b/f", unix.RENAME_EXCHANGE}),
		"rename onto":         `mkdir -p z; rm -rf a; mv z a`,
		"rename file onto":    `echo pwned > z; mv -f z a/b/f`,
		"into a subdirectory": `mkdir c; mv a c/`,
		"unlink":              `rm -f a/b/f; echo pwned > a/b/f`,
		"rmdir":               `rm -rf a; mkdir -p a/b; echo pwned > a/b/f`,
		"link over":           `ln -sfn ../out l`,
		"link removed":        `rm l`,
		"link exchanged":      `ln -s ../out z` + "\n" + script(call{unix.SYS_RENAMEAT2, at, "z", at, "l", unix.RENAME_EXCHANGE}),
		"link moved":          `mv l z`,
		"whiteout":            script(call{unix.SYS_RENAMEAT2, at, "a/b/f", at, "z", unix.RENAME_WHITEOUT}, call{unix.SYS_RENAMEAT2, at, "a/b/f", at, "z", unix.RENAME_NOREPLACE}),
		"beneath the mount":   `cd a/b; rm -f f; mv ../b ../y; mv $WORLD/work/a/b $WORLD/work/y`,
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.write("work/a/b/f", "protected\n")
				w.write("work/r/f", "behind a link\n")
				w.link("r", "work/l")
				w.settings.DenyWrite = []string{"a/b/f", "l/f"}
				before := w.identities("work/a", "work/a/b", "work/a/b/f", "work/l", "work/r/f")
				w.sh(attack)
				if diff := difference(before, w.identities("work/a", "work/a/b", "work/a/b/f", "work/l", "work/r/f")); diff != "" {
					t.Fatalf("ESCAPE: %s", diff)
				}
				w.outside(attack)
				if difference(before, w.identities("work/a", "work/a/b", "work/a/b/f", "work/l", "work/r/f")) == "" {
					t.Error("the attack changes nothing outside a sandbox either")
				}
			})
		})
	}
}

// TestEscape_013_HardLinkOfAProtectedFile: no new name for a protected or outside file in a write root (FS-29, FS-31).
func TestEscape_013_HardLinkOfAProtectedFile(t *testing.T) {
	attacks := map[string]string{
		"protected file":     `ln p g; echo pwned > g`,
		"outside file":       `ln ../out/victim g; echo pwned > g`,
		"through a link":     `ln -s p n; ln -L n g; echo pwned > g`,
		"by descriptor":      script(call{unix.SYS_OPENAT, at, "p", unix.O_RDONLY, 0}, call{unix.SYS_LINKAT, at, "/proc/self/fd/3", at, "g", unix.AT_SYMLINK_FOLLOW}) + `; echo pwned > g`,
		"out, by descriptor": script(call{unix.SYS_OPENAT, at, "../out/victim", unix.O_RDONLY, 0}, call{unix.SYS_LINKAT, at, "/proc/self/fd/3", at, "g", unix.AT_SYMLINK_FOLLOW}) + `; echo pwned > g`,
		"of a hidden file":   `ln h g; echo pwned > g; chmod 0600 g`,
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, w *world) {
				w.write("work/p", "protected\n")
				w.write("work/h", "hidden\n")
				w.settings.DenyWrite, w.settings.DenyRead = []string{"p"}, []string{"h"}
				w.holds("rm -f g n; "+attack, "work/p", "work/h", "out")
			})
		})
	}
}
