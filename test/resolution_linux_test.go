package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How entries become rules, seen by a command: links, directories that cannot be listed, srt's own files, other names of a
// file, and settings that change meanwhile.

func TestFS_9_AllowedLinkIsAllowedByThatNameAlone(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("h/target", "text")
		b.link("target", "h/l")
		b.file("out", "outside")
		b.link("../out", "h/lo")
		c := cfg{dr: list{"h"}, ar: list{"h/l", "h/missing"}}
		b.check(c, "holds h/l text: ok", "read h/target: ENOENT", "stat h/missing: ENOENT", "lstat h/lo: ENOENT")
	})
}

func TestFS_15_20_PatternsOnDirectories(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, f := range []string{"d1/f", "d1/sub/g", "d2/f", "e/d1/f"} {
			b.file(f, "text")
		}
		b.mkdir("d3", 0o755)
		b.check(cfg{dr: list{"d?"}, ar: list{"d2/f"}}, "read d1/f: ENOENT", "read d1/sub/g: ENOENT", "holds d2/f text: ok", "holds e/d1/f text: ok")
		// With a pattern before it, `/**` hides what holds an entry; an empty one stays as it is.
		b.check(cfg{dr: list{"d?/**"}, ar: list{"d2"}}, append(b.concealed("d2/f"), "read d1/f: ENOENT", "read d1/sub/g: ENOENT", "empty d3: ok",
			"holds e/d1/f text: ok")...)
		// Without one it is the directory.
		b.check(cfg{dr: list{"d1/**"}, ar: list{"d1/f"}}, "holds d1/f text: ok", "read d1/sub/g: ENOENT", "holds d2/f text: ok")
		b.check(cfg{aw: list{"d?"}, dw: list{"d2"}}, "create d1/sub/n: ok", "create d2/n: refused", "create d3/n: ok", "create e/d1/n: refused")
	})
}

func TestFS_19_DirectoryThatCannotBeListed(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("locked/a.key", "secret")
		b.file("locked/free", "beside it")
		b.file("open/a.key", "secret")
		b.must(os.Chmod(b.abs("locked"), 0o300))
		r := b.sh(cfg{dr: list{"**/*.key"}, ar: list{"locked/free"}, aw: list{"."}}, "chmod 755 locked; cat locked/a.key open/a.key locked/free")
		if strings.Contains(r.stdout, "secret") {
			t.Errorf("what the walk could not list is readable: %v", r)
		}
		if seen := strings.Contains(r.stdout, "beside"); seen != b.who.root() { // root can list it
			t.Errorf("the directory is shown: %v; %v", seen, r)
		}
		b.must(os.Chmod(b.abs("locked"), 0o755))
	})
}

func TestFS_23_OwnProgramInAHiddenDirectory(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("h/other", "secret")
		b.copyProgram("h/srt")
		settings := b.settings(cfg{dr: list{"h"}})
		b.host(b.abs("h/srt"), "-s", settings, "exec", "--", "sh", "-c", "ls -A h; h/srt --version >/dev/null && cat h/other").fails().prints("srt")
	})
}

func TestFS_24_SSHConfiguration(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		const dir = "/etc/ssh/ssh_config.d"
		if _, err := os.Stat(dir); err != nil {
			need(t, "ssh") // its package makes the directory
			t.Fatal(err)
		}
		want := "" // an ordinary user's sandbox shows root's files as another's, which ssh refuses
		if b.who.root() {
			want = strings.Join(namesIn(dir), "\n")
		}
		b.run(cfg{}, "ls", "-A", dir).ok().prints(want)
	})
}

func TestFS_45_OtherHardLinkIsNoted(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("p", "protected")
		b.must(os.Link(b.abs("p"), b.abs("q")))
		settings := b.settings(cfg{aw: list{"."}, dw: list{"p"}})
		r := b.host(srtPath, "exec", "--debug", "-s", settings, "--", "true").ok()
		if !strings.Contains(r.stderr, filepath.Join(b.work, "p")) || !strings.Contains(r.stderr, "link") {
			t.Errorf("no line names the file that has another name: %v", r)
		}
		b.run(cfg{aw: list{"."}, dw: list{"p"}}, "true").ok().silent()
	})
}

func TestFS_63_RulesOfARunningCommandStay(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "old")
		h := b.startHeld(cfg{aw: list{"."}, dw: list{"f", "later"}, dr: list{"hidden"}}, "true")
		files, err := filepath.Glob(b.dir + "/settings-*.json")
		b.must(err)
		for _, name := range files {
			b.must(os.WriteFile(name, cfg{aw: list{"/"}}.json(), 0o644))
		}
		b.must(os.Rename(b.work, b.home+"/moved")) // and the working directory is another's name
		b.mkdir(b.work, 0o755)
		h.end("echo x >f; echo x >later; mkdir later; echo x >hidden; cat hidden; echo x >fine; exit 0")
		b.holds("../moved/f", "old")
		b.holds("../moved/fine", "x\n")
		b.absent("../moved/later")
		// One that starts now has the new settings.
		b.host(srtPath, "-s", files[0], "exec", "--", "sh", "-c", "echo x >later").ok()
		b.holds("later", "x\n")
	})
}
