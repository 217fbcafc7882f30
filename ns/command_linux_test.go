package ns

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStatus_CLI12(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 3", 3}, {"exit 255", 255}, {"kill -9 $$", 137}, {"kill -TERM $$", 143}, {"kill -INT $$", 130}} {
		_, st, err := run(t, minimal(newProgram(t), "/bin/sh", "-c", c.script))
		if err != nil || st.Code != c.code {
			t.Errorf("%s: %v, %v; want %d", c.script, st, err, c.code)
		}
	}
}

func TestCommandThatCannotBeExecuted(t *testing.T) {
	for name, want := range map[string]syscall.Errno{"/nonexistent/x": unix.ENOENT, "/etc/passwd": unix.EACCES, "/": unix.EACCES} {
		_, _, err := run(t, minimal(newProgram(t), name))
		var e *ExecError
		if !errors.As(err, &e) || !errors.Is(err, want) {
			t.Errorf("%s: %v, want an ExecError with %v", name, err, want)
		}
	}
}

// TestUnsearchableDirectoryIsNotAProgram holds CLI-12 for a PATH that leads through a directory of somebody else's.
func TestUnsearchableDirectoryIsNotAProgram_CLI12(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("got user id 0, want another: every directory may be searched by root")
	}
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/locked", 0); err != nil {
		t.Fatal(err)
	}
	c := minimal(newProgram(t), "tool")
	c.Candidates = []string{dir + "/locked/tool", "/nonexistent/tool"}
	if _, _, err := run(t, c); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v, want not found", err)
	}
}

func TestScriptWithoutInterpreterLine(t *testing.T) {
	path := t.TempDir() + "/script"
	if err := os.WriteFile(path, []byte("echo \"$0 $1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, minimal(newProgram(t), path, "word"))
	if err != nil || out != path+" word\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestCandidatesAreTriedInOrder(t *testing.T) {
	c := minimal(newProgram(t), "echo", "found")
	c.Candidates = []string{"/nonexistent/echo", "/etc/passwd", "/bin/echo"}
	out, _, err := run(t, c)
	if err != nil || out != "found\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestUnpacedTCP(t *testing.T) {
	p := newProgram(t)
	p.UnpacedTCP()
	before, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, minimal(p, "/bin/cat", "/proc/sys/net/ipv4/tcp_congestion_control"))
	if err != nil || out != "reno\n" {
		t.Errorf("%q, %v", out, err)
	}
	if after, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the host's was %q and is %q, %v", before, after, err)
	}
}

func TestRefusesWithoutItsNamespaces(t *testing.T) {
	c := minimal(newProgram(t), "/bin/true")
	c.Namespaces = unix.CLONE_NEWUSER
	if _, _, err := run(t, c); err == nil {
		t.Error("a sandbox without a pid namespace was started")
	}
	c = minimal(newProgram(t), "/bin/true", "a\x00b")
	if _, _, err := run(t, c); err == nil {
		t.Error("an argument with a NUL byte was cut short")
	}
}

func TestWrongMapsEndTheStart(t *testing.T) {
	c := minimal(newProgram(t), "/bin/sh", "-c", "echo the command must not run")
	c.UIDs = []IDMap{{0, 4294967294, 1}, {0, 4294967294, 1}}
	out, _, err := run(t, c)
	if err == nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}

// A command has the signal mask of who started it, and ignores what is ignored there, as a child of package os/exec does
// (execve(2)). Its handlers are none of the host side's.
func TestSignalsAreThoseOfAnyChild(t *testing.T) {
	signal.Ignore(syscall.SIGUSR1)
	t.Cleanup(func() { signal.Reset(syscall.SIGUSR1) })
	args := []string{"/bin/grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"}
	want, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := run(t, minimal(newProgram(t), args...))
	if err != nil || got != string(want) {
		t.Errorf("in a sandbox\n%swithout one\n%s%v", got, want, err)
	}
	// Whoever runs the tests may have others ignored.
	_, rest, _ := strings.Cut(got, "SigIgn:\t")
	ignored, err := strconv.ParseUint(rest[:min(16, len(rest))], 16, 64)
	if err != nil || ignored&(1<<(syscall.SIGUSR1-1)) == 0 {
		t.Errorf("SIGUSR1 is not ignored: %v\n%s", err, got)
	}
}
