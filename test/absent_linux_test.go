package test

import (
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Names that do not exist when the command starts (FS-30, FS-33).

// waysToMake are all calls that could make a name, tried on NAME. "f" is a file and "ready" a prepared tree.
var waysToMake = []string{"create NAME", "mkdir NAME", "mkfifo NAME", "symlink f NAME", "symlink ready NAME", "link f NAME", "rename f NAME",
	"rename ready NAME", "renamenew f NAME", "renamenew ready NAME", "tmplink . NAME", "opencreate NAME", "openat2create NAME", "bind NAME"}

// cannotMake are the lines of a check in which every way fails, and the name looks absent all the time.
func cannotMake(names ...string) (lines []string) {
	for _, name := range names {
		lines = append(lines, "stat "+name+": ENOENT", "lstat "+name+": ENOENT", "read "+name+": ENOENT", "openwrite "+name+": ENOENT",
			"unlink "+name+": ENOENT", "rename "+name+" other: ENOENT")
		for _, way := range waysToMake {
			want := ": refused"
			if strings.HasPrefix(way, "bind") {
				want = ": EROFS|EACCES|EPERM|EADDRINUSE"
			}
			lines = append(lines, strings.ReplaceAll(way, "NAME", name)+want)
		}
		lines = append(lines, "lstat "+name+": ENOENT")
	}
	return lines
}

// unixSockets lets a test make sockets with a path.
var unixSockets = object{"allowAllUnixSockets": true}

func TestFS_case05_FS30_33_52_NamesThatDoNotExist(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "a file")
		b.file("ready/x/y", "prepared")
		before := b.tree(".")
		c := cfg{aw: list{"."}, dw: list{"new", "nd/x/y", b.work + "/ready/deep"}, net: unixSockets}
		lines := append(cannotMake("new", "nd", "ready/deep"), "create nd/x/y: ENOENT", "mkdir nd/x: ENOENT", "exchange f new: ENOENT", "create new/x: ENOENT")
		b.check(c, lines...).silent()
		b.unchanged(".", before)
		// What is denied is that name alone.
		b.check(c, "create newer: ok", "create ready/new: ok", "mkdir ready/x/nd: ok", "rename ready moved: EBUSY", "rename f g: ok",
			"rename newer f: ok", "bind sock: ok", "link g h: ok", "tmplink . t: ok", "exchange g ready/new: ok")
		b.holds("ready/new", "a file")
		b.absent("new")
	})
}

func TestFS_case05_FS33_53_HostSeesNothingMeanwhile(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository(".")
		c := cfg{aw: list{"."}, dw: list{"new", "nd/x/y", ".git/config.lock"}, dr: list{"later"}}
		tree := func() map[string]string {
			all := b.tree(".")
			delete(all, b.abs(".git/index")) // git writes it anew
			return all
		}
		before := tree()
		r := b.startHeld(c, "git add -A; git status --short; cp -r . ../../tmp/copy; grep -r one . >/dev/null; ls -A")
		sameTrees(t, before, tree())
		b.host("git", "status", "--short", "--ignored").ok().prints("")
		r.end().ok().prints(".git\nf").silent()
		sameTrees(t, before, tree())
		b.absent(b.dir + "/tmp/copy/new")
	})
}

// held is a command in a sandbox that has run a script and waits for its end.
type held struct {
	b    *box
	in   io.WriteCloser
	wait func() result
}

// startHeld runs shell text in a sandbox that then waits for held.end, and returns when the text has run.
func (b *box) startHeld(c cfg, text string) *held {
	b.t.Helper()
	c.aw = append(list{b.dir + "/tmp"}, c.aw...)
	mark := b.dir + "/tmp/held-" + rand.Text()
	cmd := b.command(b.srt(c, "sh", "-c", text+"\necho >"+mark+"; read end; eval \"$end\"")...)
	return b.hold(cmd, mark)
}

// hold starts a prepared command and returns when it has made the file mark.
func (b *box) hold(cmd *exec.Cmd, mark string) *held {
	b.t.Helper()
	in, err := cmd.StdinPipe()
	b.must(err)
	ended := make(chan result, 1)
	wait := b.start(cmd)
	go func() { ended <- wait() }()
	eventually(b.t, func() string {
		select {
		case r := <-ended:
			b.t.Fatalf("the command has ended: %v", r)
		default:
		}
		if _, err := os.Lstat(mark); err != nil {
			return "the command does not wait"
		}
		return ""
	})
	return &held{b: b, in: in, wait: func() result { return <-ended }}
}

// end lets the command run the last lines and gives how it ended.
func (h *held) end(lines ...string) result {
	h.b.t.Helper()
	_, err := io.WriteString(h.in, strings.Join(lines, "; ")+"\n")
	h.b.must(err)
	h.in.Close()
	return h.wait()
}

func TestFS_case06_FS30_BeneathAFile(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "old")
		b.file("g", "new")
		b.check(cfg{aw: list{"."}, dw: list{"f/x"}}, "write f: refused", "unlink f: EBUSY", "rename f h: EBUSY", "rename g f: EBUSY",
			"mkdir f/x: ENOTDIR|EROFS|EACCES|EPERM", "create f/x: ENOTDIR|EROFS|EACCES|EPERM", "create n: ok")
		b.holds("f", "old")
	})
}

func TestFS_case30_FS54_NeighbourKeepsAbsentDenies(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		c := cfg{aw: list{"."}, dw: list{"new"}}
		first, second := b.startHeld(c, "true"), b.startHeld(c, "true")
		first.end("exit 0").ok().silent()
		r := second.end("echo x >.bashrc", "echo x >new", "mkdir .vscode", "mv .idea x; ls -A")
		r.ok().prints("")
		if names := namesIn(b.work); len(names) > 0 {
			t.Errorf("the host has %q; %v", names, r)
		}
	})
}

func TestFS_30_UnderEachSpelling(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("d/f", "a file")
		b.link("d", "ld")
		b.link("d/new", "dangling")
		c := cfg{aw: list{"."}, dw: list{"d/new", ".MCP.json"}}
		b.check(c, "create d/new: refused", "create ./d/../d//new: refused", "create ld/new: refused", "create "+b.work+"/d/new: refused",
			"mkdir d/new/: refused", "mkdir ld/new/: refused", "opencreate dangling: refused", "create /proc/self/cwd/d/new: refused",
			"create /proc/self/root"+b.work+"/d/new: refused", "rename d e: EBUSY", "create .mcp.json: refused", "create .MCP.json: refused",
			"create d/NEW: ok", "create .bashrc: refused", "create .BashRC: refused")
		b.absent("d/new")
	})
}

func TestFS_10_33_ReadDeniedNamesThatAppear(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "seen")
		c := cfg{aw: list{"."}, dr: list{"later", "d/later"}}
		// What the command itself puts there and what the host puts there is not to be read.
		h := b.startHeld(c, "true")
		b.file("later", "secret")
		b.file("d/later/x", "secret")
		r := h.end("cat later d/later/x ./d/../later; cat <later; ln later l && cat l; mv later m && cat m; cp f l2; cat l2; cat f")
		r.prints("seenseen")
		b.holds("later", "secret")
	})
}
