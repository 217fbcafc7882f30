package test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// srt where it can have no listener for system calls, because another sandbox around it has one: empty placeholders stand
// for names that must not come to exist, for as long as a command needs them (FS-54). These tests run one at a time: each
// has a state of its own, and placeholders in a directory that all may write (/tmp/claude) are of one state only.

// withoutListener prepares a box whose srt can have no listener, with a state of its own.
func (b *box) withoutListener() {
	b.env = append(b.env, "XDG_STATE_HOME="+b.dir+"/state")
	b.mkdir(b.dir+"/state", 0o755)
	// What a failed test left would stay for good where other sandboxes meet it (/tmp/claude), once the record is gone.
	settings := b.settings(cfg{})
	b.t.Cleanup(func() {
		b.killLeftovers()
		cmd := exec.Command(srtPath, "-s", settings, "exec", "--", "true")
		cmd.Dir, cmd.Env, cmd.SysProcAttr = b.work, b.env, b.command("true").SysProcAttr
		if out, err := cmd.CombinedOutput(); err != nil {
			b.t.Errorf("srt does not clear what is left: %v\n%s", err, out)
		}
	})
}

// srtWithin is srt beneath a filter with a listener.
func (b *box) srtWithin(c cfg, args ...string) []string {
	b.t.Helper()
	return append([]string{listenerPath}, b.srt(c, args...)...)
}

// heldWithin is startHeld for such an srt.
func (b *box) heldWithin(c cfg) *held {
	b.t.Helper()
	c.aw = append(list{b.dir + "/tmp"}, c.aw...)
	cmd, mark := b.waiting(c)
	return b.hold(cmd, mark)
}

// waiting prepares a command that makes the file mark and waits for a line that it then runs.
func (b *box) waiting(c cfg) (cmd *exec.Cmd, mark string) {
	b.t.Helper()
	mark = b.dir + "/tmp/held-" + rand.Text()
	return b.command(b.srtWithin(c, "sh", "-c", "echo >"+mark+"; read end; eval \"$end\"")...), mark
}

// standIn wants an empty placeholder of this type at a path.
func (b *box) standIn(path string, format uint32) {
	b.t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(b.abs(path), &st); err != nil || st.Mode&unix.S_IFMT != format || st.Mode&0o222 != 0 || format == unix.S_IFREG && st.Size != 0 {
		b.t.Errorf("%s is no placeholder: %v, mode %o, %d bytes", path, err, st.Mode, st.Size)
	}
}

// cleared wants that no placeholder and no record of one is left.
func (b *box) cleared(before map[string]string) {
	b.t.Helper()
	b.unchanged(".", before)
	if text, err := os.ReadFile(b.dir + "/state/srt/journal"); err != nil || len(text) > 0 {
		b.t.Errorf("the journal holds %q, %v", text, err)
	}
}

// heldBack is the settings file of most of these tests.
func heldBack() cfg { return cfg{aw: list{"."}, dw: list{"new", "nd/x/y"}, net: unixSockets} }

func TestFS_case05_FS54_Placeholders(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		b.file("f", "a file")
		b.file("ready/x", "prepared")
		b.file(".profile", "") // the person's own empty file stays
		before := b.tree(".")
		h := b.heldWithin(heldBack())
		b.standIn("new", unix.S_IFREG)
		b.standIn(".bashrc", unix.S_IFREG)
		b.standIn("nd", unix.S_IFDIR)
		b.standIn(".vscode", unix.S_IFDIR)
		h.end("true").ok().says("Warning: ", "FS-54")
		b.cleared(before)
		run := func(args ...string) result { b.t.Helper(); return b.host(b.srtWithin(heldBack(), args...)...) }
		lines := []string{"create nd/x: refused", "mkdir nd/x: refused", "rename nd z: EBUSY", "rmdir nd: EBUSY", "mkdir .vscode/x: refused"}
		for _, n := range []string{"new", ".bashrc", ".mcp.json"} {
			lines = append(lines, "create "+n+": EEXIST|EROFS|EACCES|EPERM", "openwrite "+n+": refused", "unlink "+n+": EBUSY", "chmod "+n+": refused",
				"rename "+n+" z: EBUSY", "rename f "+n+": EBUSY", "link "+n+" z: EXDEV", "exchange f "+n+": EBUSY", "size0 "+n+": ok")
		}
		b.checkWith(run, append(lines, "create other: ok", "unlink other: ok")...)
		b.cleared(before)
	})
}

func TestFS_case20_FS53_54_GitWithPlaceholders(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		b.withGit()
		b.host(b.srtWithin(cfg{aw: list{"."}}, "sh", "-c", "git init -q && git add -A && git status --short >/dev/null && cp -r . ../../tmp/c; grep -r x . ; bash -lc true")...).exits(0)
		if names := namesIn(b.work); len(names) != 1 {
			t.Errorf("the host has %q, want .git alone", names)
		}
	})
}

func TestFS_case29_FS52_54_PlaceholdersAfterAKill(t *testing.T) {
	for _, next := range []struct {
		name string
		line func(*box, cfg, ...string) []string
	}{{"next start alike", (*box).srtWithin}, {"next start with a listener", (*box).srt}} {
		t.Run(next.name, func(t *testing.T) {
			each(t, func(t *testing.T, b *box) {
				b.withoutListener()
				b.file("f", "a file")
				before := b.tree(".")
				c := heldBack()
				c.aw = append(c.aw, b.dir+"/tmp")
				cmd, mark := b.waiting(c)
				h := b.hold(cmd, mark)
				b.must(cmd.Process.Kill())
				_ = h.wait()
				h.in.Close()
				b.deserted()
				b.standIn("new", unix.S_IFREG) // nobody was left to remove it
				// The names are free once the last process of the sandbox is all gone, which nobody outside can wait for.
				eventually(t, func() string {
					b.host(next.line(b, heldBack(), "true")...).ok()
					if names := namesIn(b.work); len(names) > 1 {
						return "the next start leaves " + strings.Join(names, " ")
					}
					return ""
				})
				b.cleared(before)
			})
		})
	}
}

func TestFS_case30_FS54_NeighbourKeepsPlaceholders(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		before := b.tree(".")
		first, second := b.heldWithin(heldBack()), b.heldWithin(heldBack())
		first.end("echo x >.bashrc").fails()
		b.standIn("new", unix.S_IFREG)
		b.standIn(".bashrc", unix.S_IFREG)
		second.end("echo x >.bashrc; rm -f new; echo x >new; mkdir nd/x; mv .vscode x").fails()
		b.cleared(before)
		// One with a listener and one without, in either order.
		first = b.heldWithin(heldBack())
		second = b.startHeld(heldBack(), "true")
		first.end("true").ok()
		second.end("echo x >.bashrc; rm -f new; echo x >new; mkdir .idea").fails()
		b.cleared(before)
	})
}

func TestFS_case30_FS54_PlaceholderOfANeighbourIsKept(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		before := b.tree(".")
		first := b.heldWithin(heldBack())
		// The second has no rule about this name, but the first relies on it.
		b.check(cfg{aw: list{"."}}, "unlink new: EBUSY", "rename new z: EBUSY", "openwrite new: refused", "chmod new: refused", "rmdir nd: EBUSY")
		first.end("echo x >new").fails()
		b.cleared(before)
	})
}

func TestFS_52_54_PlaceholderWithContentIsLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		h := b.heldWithin(heldBack())
		b.must(os.Chmod(b.abs("new"), 0o644))
		b.must(os.WriteFile(b.abs("new"), []byte("the person's"), 0o644))
		b.must(os.Chmod(b.abs("nd"), 0o755))
		b.file("nd/x", "the person's")
		h.end("true").ok()
		b.holds("new", "the person's")
		b.holds("nd/x", "the person's")
		b.absent(".bashrc")
	})
}

func TestFS_55_PatternsWithoutAListener(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		b.file("old.pem", "old")
		b.file("old.key", "secret")
		c := cfg{aw: list{"."}, dw: list{"*.pem"}, dr: list{"*.key", "later"}}
		run := func(args ...string) result { b.t.Helper(); return b.host(b.srtWithin(c, args...)...) }
		r := b.checkWith(run, append(b.concealed("old.key"), "write old.pem: refused", "unlink old.pem: EBUSY", "create new.pem: ok")...)
		r.says("hold for what exists now", "*.pem", "*.key", "later")
		if n := strings.Count(r.stderr, "*.pem"); n != 1 {
			t.Errorf("*.pem is named %d times, want once: %v", n, r)
		}
		b.holds("old.pem", "old")
	})
}
