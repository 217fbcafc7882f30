package ns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// confined is the least that starts a command without namespaces.
func confined(t testing.TB, args ...string) *launch {
	t.Helper()
	l, err := confinedLaunch(args...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func confinedLaunch(args ...string) (*launch, error) {
	p, err := NewProgram()
	if err != nil {
		return nil, err
	}
	l := minimal(p, args...)
	l.Config = Config{Confined: true}
	p.RestrictCommand(scopeRuleset(p, unix.LANDLOCK_SCOPE_SIGNAL))
	return l, p.ConfineCapabilities(keeps())
}

// needScopes skips a test under a kernel that is older than Landlock's scopes (6.12, ABI 6: landlock(7)), where there is no mode
// confined. Under a newer one without them the test goes on, and fails. Package probe, which has the value, imports this one.
func needScopes(t *testing.T) {
	t.Helper()
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno == 0 && abi >= 6 {
		return
	}
	var name unix.Utsname
	check(t, unix.Uname(&name))
	var major, minor int
	release := unix.ByteSliceToString(name.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if major < 6 || major == 6 && minor < 12 {
		t.Skipf("got Landlock ABI %d (%v) of Linux %s, want ABI 6, of 6.12", abi, errno, release)
	}
}

// scopeRuleset appends the making of a ruleset that scopes something and leaves files alone.
func scopeRuleset(p *Program, scope uint64) Slot {
	attr := [3]uint64{2: scope}
	return p.Call("make the ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, Pointer(p, &attr), Int(24), Int(0))
}

// TestConfined_AsWithNamespaces: what a command, and whoever started it, sees of its start and its end is the same (CLI-12,
// CLI-18).
func TestConfined_AsWithNamespaces(t *testing.T) {
	needScopes(t)
	for _, c := range []struct {
		script, out string
		code        int
	}{
		{"exit 0", "", 0},
		{"exit 255", "", 255},
		{"kill -9 $$", "", 137},
		{"kill -TERM $$", "", 143},
		{"sleep 300 & setsid sleep 300 & exit 3", "", 3},
		{"echo out; echo err >&2", "out\nerr\n", 0},
		{"ls /proc/self/fd | wc -l", "4\n", 0}, // with the one that lists them
		{"grep -c '^Seccomp:\\|^NoNewPrivs:.1' /proc/self/status", "2\n", 0},
		{"grep SigBlk /proc/self/status", "SigBlk:\t0000000000000000\n", 0},
		{"cut -d' ' -f6 /proc/$$/stat | grep -qx $$ && echo leads a session", "leads a session\n", 0},
	} {
		out, st, err := run(t, confined(t, "/bin/sh", "-c", c.script))
		if err != nil || st.Code != c.code || out != c.out {
			t.Errorf("%s: %q, %v, %v; want %q, %d", c.script, out, st, err, c.out, c.code)
		}
	}
	_, _, err := run(t, confined(t, "/nonexistent/x"))
	if e, ok := errors.AsType[*ExecError](err); !ok || !errors.Is(e, unix.ENOENT) {
		t.Errorf("%v, want an ExecError", err)
	}
}

// TestConfined_SessionTerminal_CLI10: a terminal is the command's as it is with namespaces.
func TestConfined_SessionTerminal_CLI10(t *testing.T) {
	needScopes(t)
	master, tty := freeTerminal(t)
	l := confined(t, "/bin/sh", "-c", `trap 'exit 7' INT; : </dev/tty && echo up; while :; do sleep 0.01; done`)
	l.Session, l.Stdin, l.Stdout, l.Stderr = SessionTerminal, tty, tty, tty
	p, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	tty.Close()
	master.SetReadDeadline(time.Now().Add(30 * time.Second))
	up := make([]byte, 4)
	if _, err := io.ReadFull(master, up); err != nil || string(up) != "up\r\n" {
		t.Fatalf("%q, %v", up, err)
	}
	if _, err := io.WriteString(master, "\x03"); err != nil {
		t.Error(err)
	}
	if st, err := p.Wait(); err != nil || st.Code != 7 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestConfined_NullInPlaceOfADescriptor_CLI30: at whatever number of the supervisor's own, that of the ruleset included.
func TestConfined_NullInPlaceOfADescriptor_CLI30(t *testing.T) {
	needScopes(t)
	held, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, n := range []int{ctlFD, firstFree, firstFree + 1, firstFree + 2, scratchFD} {
		l := confined(t, "/bin/sh", "-c", fmt.Sprintf("readlink /proc/self/fd/%d; ls /proc/self/fd | wc -l", n))
		l.Null, l.Hold = n, []*os.File{held}
		if out, st, err := run(t, l); err != nil || st.Code != 0 || out != "/dev/null\n5\n" {
			t.Errorf("at %d: %q, %v, %v", n, out, st, err)
		}
	}
}

// TestConfined_FailsClosed: nothing runs with less than a confined sandbox needs.
func TestConfined_FailsClosed(t *testing.T) {
	needScopes(t)
	for _, c := range []struct {
		name string
		less func(*launch)
		want string
	}{
		{"namespaces", func(l *launch) { l.Namespaces = Full }, "no namespaces"},
		{"identity map", func(l *launch) { l.UIDs, _ = identity() }, "no identity maps"},
		{"no ruleset", func(l *launch) { l.program.RestrictCommand(0) }, "RestrictCommand"},
		{"capabilities", func(l *launch) { l.program.confines = false }, "ConfineCapabilities"},
		{"signals not scoped", func(l *launch) {
			l.program.RestrictCommand(scopeRuleset(l.program, unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET))
		}, fixedSteps[fixedSeparate]},
		{"not a ruleset", func(l *launch) {
			l.program.RestrictCommand(openAt(l.program, "/dev/null", unix.O_RDONLY))
		}, fixedSteps[fixedRestrict]},
		{"closed", func(l *launch) { l.program.Close(l.program.restrict) }, fixedSteps[fixedRestrict]},
		{"nothing", func(*launch) {}, ""},
	} {
		l := confined(t, "/bin/sh", "-c", "echo ran")
		c.less(l)
		out, st, err := run(t, l)
		if c.want == "" {
			if err != nil || st.Code != 0 || out != "ran\n" {
				t.Errorf("with all: %q, %v, %v", out, st, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s: %q, %v; want an error with %q", c.name, out, err, c.want)
		}
	}
}

// TestConfined_NoLayerLeft: where the kernel takes no further domain (16 are the most, landlock(7)) nothing runs. The rest of the
// layers are taken by the program, so that either the command's is too much or all are enforced.
func TestConfined_NoLayerLeft(t *testing.T) {
	needScopes(t)
	l := confined(t, "/bin/sh", "-c", "echo ran")
	set := scopeRuleset(l.program, unix.LANDLOCK_SCOPE_SIGNAL)
	for range 15 {
		l.program.Call("enforce", "", unix.SYS_LANDLOCK_RESTRICT_SELF, set.Arg(), Int(0))
	}
	out, _, err := run(t, l)
	if step, ok := errors.AsType[*StepError](err); !ok || step.Op != fixedSteps[fixedRestrict] || !errors.Is(err, unix.E2BIG) || out != "" {
		t.Errorf("%q, %v; want E2BIG", out, err)
	}
}

// TestConfineCapabilities: the command has those that are kept, the two processes above it the right to kill at most.
func TestConfineCapabilities(t *testing.T) {
	needScopes(t)
	in, stdin := heldPipe(t)
	out, w := heldPipe(t)
	l := confined(t, "/bin/sh", "-c", "grep ^Cap /proc/$$/status; echo; read x")
	l.Stdin, l.Stdout, l.Stderr = in, w, w
	p, err := l.start()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	text := make([]byte, 4096)
	var n int
	for !strings.HasSuffix(string(text[:n]), "\n\n") {
		m, err := out.Read(text[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	keep := func(set Capabilities) string { return fmt.Sprintf("%016x", uint64(set)) }
	for _, set := range []string{"CapPrm", "CapEff"} {
		if want := set + ":\t" + keep(keeps()) + "\n"; !strings.Contains(string(text[:n]), want) {
			t.Errorf("the command has\n%s, want %s", text[:n], want)
		}
		for _, pid := range []int{p.pid, p.Pid()} {
			if got, want := statusFields(t, pid)[set], keep(keeps()&CapabilitySet(unix.CAP_KILL)); got != want {
				t.Errorf("%s of %s: %s, want %s", set, statusFields(t, pid)["Name"], got, want)
			}
		}
	}
	stdin.Close()
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// TestConfineCapabilities_AnotherUserMustBeKillable: else a command of root's could become what its supervisor cannot end.
func TestConfineCapabilities_AnotherUserMustBeKillable(t *testing.T) {
	rootOnly(t)
	p := newProgram(t)
	defer p.Release()
	if err := p.ConfineCapabilities(CapabilitySet(unix.CAP_SETUID)); err == nil || !strings.Contains(err.Error(), "CAP_KILL") {
		t.Errorf("%v, want a refusal", err)
	}
}

// TestConfinedAsAnotherUser runs the tests of confined sandboxes again as an ordinary user, when root runs them.
func TestConfinedAsAnotherUser(t *testing.T) {
	needScopes(t)
	if os.Geteuid() != 0 {
		t.Skipf("got user id %d, want 0: the other tests run as an ordinary user already", os.Geteuid())
	}
	dir, err := os.MkdirTemp("", "srt-confined")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const uid = 61185 // nobody's
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "ns.test") // where that user may execute it by name, as some tests do with theirs
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(binary, "-test.run", "Confine", "-test.v")
	run.Dir, run.Env = "/", []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestConfined_AsWithNamespaces") {
		t.Errorf("%v\n%s", err, out)
	}
}

func BenchmarkStartConfined(b *testing.B) {
	for range b.N {
		if _, _, err := run(b, confined(b, "/bin/true")); err != nil {
			b.Fatal(err)
		}
	}
}
