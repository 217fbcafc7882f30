package test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// open opens a file of the account for a standard stream.
func (b *box) open(path string, flags int) *os.File {
	b.t.Helper()
	f, err := os.OpenFile(b.abs(path), flags, 0o644)
	b.must(err)
	b.t.Cleanup(func() { f.Close() })
	return f
}

func TestCLI_10_NoOtherDescriptor(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("f", "x")
		cmd := b.command(b.srt(cfg{aw: list{"."}}, "sh", "-c", "ls /proc/$$/fd")...)
		for range 18 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, b.open("f", os.O_RDWR)) // 3 to 20
		}
		b.finish(cmd).ok().prints("0\n1\n2")
	})
}

func TestCLI_10_ClosedStreams(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		args := b.srt(cfg{aw: list{"."}}, "sh", "-c", "echo ran >ran; ls -l /proc/self/fd >fds 2>&1; exit 3")
		for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
			b.host(append([]string{"sh", "-c", `"$@" ` + closed, "sh"}, args...)...).exits(3)
			b.holds("ran", "ran\n")
			text, err := os.ReadFile(b.abs("fds"))
			b.must(err)
			if strings.Contains(string(text), "socket:") || strings.Contains(string(text), "settings") {
				t.Errorf("%s: a descriptor of srt's own took the closed stream's place:\n%s", closed, text)
			}
			b.must(os.Remove(b.abs("ran")))
		}
	})
}

func TestFS_case31_FS46_StdinFileGivesNoMoreThanReading(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("../v", "line 1\nline 2\n")
		b.must(os.Chmod(b.home+"/v", 0o600))
		before := b.tree("..")
		run := func(flags int) func(args ...string) result {
			return func(args ...string) result {
				cmd := b.command(b.srt(cfg{aw: list{"."}}, args...)...)
				cmd.Stdin = b.open("../v", flags)
				return b.finish(cmd)
			}
		}
		b.checkWith(run(os.O_RDONLY), "holds /proc/self/fd/0 line: ok", "write /proc/self/fd/0: refused", "write /dev/stdin: refused",
			"truncate /proc/self/fd/0: refused", "fchmod0: refused", "futime0: refused", "fsetxattr0: refused", "chmod /proc/self/fd/0: refused")
		b.unchanged("..", before)
		// Opened for writing by the caller, it may be written, but not opened again for that (FS-46).
		b.checkWith(run(os.O_RDWR), "truncate /proc/self/fd/0: refused", "otruncate /proc/self/fd/0: refused", "append /dev/fd/0: refused",
			"write0: ok")
		b.holds("../v", "xine 1\nline 2\n")
	})
}

func TestFS_case31_FS46_StdinDirectoryLeadsNowhere(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.mkdir("../d", 0o755)
		b.mkdir("in", 0o755)
		run := func(dir string) func(args ...string) result {
			return func(args ...string) result {
				cmd := b.command(b.srt(cfg{aw: list{"."}}, args...)...)
				cmd.Stdin = b.open(dir, unix.O_DIRECTORY)
				return b.finish(cmd)
			}
		}
		b.checkWith(run("../d"), "fdir0create n: refused", "create /proc/self/fd/0/n: refused", "fchmod0: refused")
		b.absent("../d/n")
		b.checkWith(run("in"), "fdir0create n: ok")
		// A directory the command may not see is an error, or shows nothing.
		b.file("sec/k", "secret")
		cmd := b.command(b.srt(cfg{dr: list{"sec"}}, "sh", "-c", "cat /proc/self/fd/0/k")...)
		cmd.Stdin = b.open("sec", unix.O_DIRECTORY)
		if r := b.finish(cmd); strings.Contains(r.stdout, "secret") {
			t.Errorf("a hidden directory shows through standard input: %v", r)
		}
	})
}

func TestFS_46_OffsetIsSharedWithTheCaller(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		var text strings.Builder
		for i := range 20000 {
			fmt.Fprintf(&text, "line %d\n", i)
		}
		b.file("f", text.String())
		srt := strings.Join(b.srt(cfg{}), " ")
		for _, use := range []string{"{ %s head -n1; cat; } <f", "{ %s sh -c 'read a; echo $a; read b; echo $b'; cat; } <f",
			"{ read a; %s head -c 100; cat; } <f", "{ %s cat; cat; } <f", "while read -r l; do echo $l; %s true; done <short"} {
			b.file("short", "a\nb\nc\n")
			inside := b.host("sh", "-c", strings.ReplaceAll(use, "%s", srt)).ok()
			outside := b.host("sh", "-c", strings.ReplaceAll(use, "%s", "")).ok()
			if inside.stdout != outside.stdout {
				t.Errorf("%s: %d bytes inside, %d outside", use, len(inside.stdout), len(outside.stdout))
			}
		}
		b.file("out", "")
		b.host("sh", "-c", "{ echo 1; "+srt+" echo 2; echo 3; } >out").ok()
		b.holds("out", "1\n2\n3\n")
	})
}

// TestFS_46_StdinThatTheSandboxHasItsOwnOf: what the caller opened is what the command reads, and the shell goes on behind it.
func TestFS_46_StdinThatTheSandboxHasItsOwnOf(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		want, err := os.ReadFile("/etc/hosts")
		b.must(err)
		b.host(append([]string{"sh", "-c", `"$@" </etc/hosts`, "sh"}, b.srt(cfg{}, "cat")...)...).ok().prints(strings.TrimSuffix(string(want), "\n"))
		first, rest, _ := strings.Cut(string(want), "\n")
		b.host(append([]string{"sh", "-c", `{ "$@"; cat; } </etc/hosts`, "sh"}, b.srt(cfg{}, "sh", "-c", `read -r x; echo "$x"`)...)...).ok().
			prints(first + "\n" + strings.TrimSuffix(rest, "\n"))
		// The copy leads neither to the file's mode nor to its content.
		b.host(append([]string{"sh", "-c", `"$@" </etc/hosts`, "sh"}, b.srt(cfg{}, "sh", "-c", `chmod 777 /proc/self/fd/0 2>/dev/null; echo x 2>/dev/null >/proc/self/fd/0; true`)...)...).ok()
		got, err := os.ReadFile("/etc/hosts")
		b.must(err)
		if string(got) != string(want) {
			t.Error("the host's file has changed")
		}
	})
}

func TestLandlock_SecondWall(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("../v", "old")
		b.host("mkfifo", b.home+"/pipe").ok()
		b.host("mkfifo", b.abs("inside")).ok()
		reader, err := unix.Open(b.home+"/pipe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		b.must(err)
		defer unix.Close(reader)
		run := func(args ...string) result {
			cmd := b.command(b.srt(cfg{aw: list{"."}}, args...)...)
			cmd.Stdin = b.open("../v", os.O_RDWR)
			return b.finish(cmd)
		}
		// Read-only mounts let FIFOs and inherited descriptors through; the ruleset does not (FS-46).
		b.checkWith(run, "write /proc/self/fd/0: refused", "write /dev/stdin: refused", "fifowrite ../pipe: refused", "fifowrite inside: ok",
			"write /dev/null: ok")
		b.holds("../v", "old")
		buf := make([]byte, 8)
		if n, err := unix.Read(reader, buf); n > 0 {
			t.Errorf("%q came through the FIFO, %v", buf[:n], err)
		}
	})
}

func TestRlimit_NOFILE(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		for _, n := range []string{"100", "256", "517"} {
			args := append([]string{"bash", "-c", "ulimit -Sn " + n + ` && exec "$@"`, "bash"}, b.srt(cfg{}, "sh", "-c", "ulimit -Sn; ulimit -Hn")...)
			hard := b.host("bash", "-c", "ulimit -Hn").ok().stdout
			b.host(args...).ok().prints(n + "\n" + strings.TrimSpace(hard))
		}
	})
}

func TestCLI_case24_Words(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		words := []string{"a  b", "$HOME", "", "it's", "new\nline", `back\slash`, "!!", "*", "~", `"`, "-n", "é", "\xff\x01"}
		want := strings.Join(words, "|") + "|"
		b.run(cfg{}, append([]string{"printf", "%s|"}, words...)...).ok().prints(want)
		b.host(append([]string{srtPath, "-s", b.settings(cfg{}), "printf", "%s|"}, words...)...).ok().prints(want)
	})
}

func TestCLI_LargeOutputAndInput(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		const size = 32 << 20
		cmd := b.command(b.srt(cfg{}, "sh", "-c", "wc -c; head -c 33554432 /dev/zero")...)
		cmd.Stdin = strings.NewReader(strings.Repeat("x", size))
		r := b.finish(cmd).ok()
		if want := fmt.Sprintf("%d\n", size); !strings.HasPrefix(r.stdout, want) || len(r.stdout) != len(want)+size {
			t.Errorf("%d bytes, begins %.20q", len(r.stdout), r.stdout)
		}
		// A reader that goes away ends the writer, as outside.
		head := exec.Command("sh", "-c", strings.Join(b.srt(cfg{}, "yes"), " ")+" | head -n1")
		head.Env, head.Dir = b.env, b.work
		head.SysProcAttr = b.command("true").SysProcAttr
		if out, err := head.Output(); string(out) != "y\n" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
		b.deserted()
	})
}
