package test

import (
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// What a command sees: reads that nothing denies, hidden and re-allowed places, credential files, lists of one command.

func TestFS_21_ReadsAreAllowedUnlessDenied(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("../other/f", "elsewhere")
		b.file(b.dir+"/beyond", "outside of the home")
		b.check(cfg{}, "holds ../other/f elsewhere: ok", "holds "+b.dir+"/beyond outside: ok", "read /etc/passwd: ok", "list /usr: ok", "list /: ok",
			"read /proc/self/status: ok", "list /sys: ok")
	})
}

func TestFS_25_ReallowedPlacesListOnlyTheWay(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("h/a/b/shown", "text")
		b.file("h/a/b/not", "secret")
		b.file("h/a/not", "secret")
		b.file("h/not", "secret")
		b.file("hf", "secret")
		c := cfg{dr: list{"h", "hf"}, ar: list{"h/a/b/shown"}}
		r := b.sh(c, "ls -A h h/a h/a/b; cat h/a/b/shown; ls -A; stat -c %s hf").ok()
		r.prints("h:\na\n\nh/a:\nb\n\nh/a/b:\nshown\ntexth\nhf\n0")
		b.check(c, "read h/a/b/not: ENOENT", "read h/not: ENOENT", "stat h/a/not: ENOENT")
	})
}

// masked is a settings file that masks a file.
func masked(path string) object {
	return object{"credentials": object{"allowPlaintextInject": true, "files": list{object{"path": path, "mode": "mask"}}}}
}

// FS-58: a masked file shows a fake by every name, and stays what and where it is.
func TestFS_case33_FS58_MaskedFile(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("tok", "real")
		b.file("other", "x")
		b.link("tok", "alias")
		c := cfg{dr: list{"tok"}, ar: list{"tok"}, aw: list{".", "tok"}, top: masked("tok")}
		b.check(c, "read tok: ok", "write tok: EROFS", "chmod tok: EROFS", "unlink tok: EBUSY", "rename tok t2: EBUSY",
			"rename other tok: EBUSY", "link tok h: EXDEV", "create n: ok").silent()
		r := b.sh(c, "cat tok; echo; cat alias; echo; cp tok c; cat c; stat -c ' %a' tok").ok()
		if fakes := strings.Fields(r.stdout); len(fakes) != 4 || !strings.HasPrefix(fakes[0], "fake_value_") || fakes[0] != fakes[1] || fakes[0] != fakes[2] || fakes[3] != "600" {
			t.Errorf("%v", r)
		}
		b.holds("tok", "real")
	})
}

func TestFS_case34_FS56_57_59_DisabledWithMask(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("d/tok", "real")
		b.file("netrc", "plain")
		top := object{"credentials": object{"allowPlaintextInject": true, "files": list{object{"path": "d/tok", "mode": "mask"},
			object{"path": "netrc", "mode": "deny"}, object{"path": "missing", "mode": "mask"}}}}
		c := cfg{dr: list{"netrc"}, fs: object{"disabled": true}, top: top}
		b.check(c, "read d/tok: ok", "write d/tok: EROFS", "unlink d/tok: EBUSY", "rename d e: EBUSY", "holds netrc plain: ok", "create ../z: ok",
			"create .bashrc: ok").silent()
		if r := b.sh(c, "cat d/tok").ok(); !strings.HasPrefix(r.stdout, "fake_value_") {
			t.Errorf("%v", r)
		}
		b.holds("d/tok", "real")
		b.holds("../z", "made")
		b.holds(".bashrc", "made")
	})
}

func TestFS_59_MaskPathsThatCannotBe(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		r := b.run(cfg{top: masked("d/")}, "touch", b.dir+"/tmp/ran")
		r.exits(1).says("Error: ", "credentials.files.0")
		b.absent(b.dir + "/tmp/ran")
		b.file("d/k", "secret")
		b.check(cfg{top: masked("d")}, "read d/k: ENOENT") // denied, not skipped (design, "Settled")
	})
}

// The lists of one command are decided by config.Override; what comes of them is what a session with these settings does.
func TestFS_case35_FS60_61_ListsOfOneCommand(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "secret")
		session := cfg{dr: list{"f"}, fs: object{"disabled": true}}
		b.check(session, "holds f secret: ok", "create ../m: ok")
		decoded, err := config.Decode(session.json())
		b.must(err)
		one, err := (&config.Override{Filesystem: &config.FilesystemOverride{}}).Apply(decoded)
		b.must(err)
		c := cfg{fs: object{"disabled": one.Filesystem.Disabled}}
		for _, e := range one.Filesystem.DenyRead {
			c.dr = append(c.dr, e.Path)
		}
		read := "read f: EACCES"
		if b.who.root() {
			read = "size0 f: ok"
		}
		b.check(c, read, "size0 f: ok", "create ../n: refused", "create n: refused")
		b.absent("../n")
	})
}

// Stricter than FS-9: a link that a command made in an earlier launch chooses nothing that a list then grants. Links that no
// command can make, and those that lead to what is not denied, keep working.
func TestFS_8_9_LinksOfAnEarlierLaunchGrantNothing(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("../vault/f", "secret")
		b.file("../vault/x.txt", "secret")
		b.file("../own/f", "shown")
		b.link("own", "../stowed")
		b.file("real/f", "real")
		c := cfg{dr: list{"~"}, ar: list{".", "sub/f", "pat/*.txt", "~/through", "bin/f", "~/stowed/f"}, aw: list{".", "sub", "sub/dir"}}
		b.link("p/hop/f", "../through")
		b.sh(c, "ln -s ../vault sub; ln -s ../vault pat; ln -s ../vault hop; ln -s real bin").ok()
		r := b.check(c, "read sub/f: ENOENT", "read ../vault/f: ENOENT", "read pat/x.txt: ENOENT", "read ../vault/x.txt: ENOENT", "read ../through: ENOENT",
			"create sub/n: ENOENT", "holds bin/f real: ok", "holds ../own/f shown: ok")
		b.absent("../vault/n")
		r.says(`("sub/f") leads to "`+b.home+`/vault/f" through the link "`+b.work+`/sub"`, `("pat/*.txt") leads to`, `("~/through") leads to`, `("sub") leads through a link`)
		if n := strings.Count(r.stderr, "a command can have made"); n != 3 {
			t.Errorf("%d warnings, want 3: %v", n, r)
		}
		c.ar = list{".", "sub/f", "~/vault/f"}
		b.check(c, "holds sub/f secret: ok", "read ../vault/x.txt: ENOENT")
	})
}
