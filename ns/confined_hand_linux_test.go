package ns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confinedBox is a confined sandbox with leave for hands. Its command may write nothing, its hands beneath dir/rw.
type confinedBox struct {
	dir     string
	launch  *launch
	process *Process
	ruleset *os.File
}

const confinedWrites = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG

// newConfinedBox prepares it; dir has a directory rw.
func newConfinedBox(dir string, args ...string) (*confinedBox, error) {
	l, err := confinedLaunch(args...)
	if err != nil {
		return nil, err
	}
	p := l.program
	ruleset := func(scope uint64) Slot {
		attr := [3]uint64{0: confinedWrites, 2: scope}
		return p.Call("make the ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, Pointer(p, &attr), Int(24), Int(0))
	}
	hand := ruleset(0)
	rule := &unix.LandlockPathBeneathAttr{Allowed_access: confinedWrites}
	fd := openAt(p, filepath.Join(dir, "rw"), unix.O_PATH)
	ptr := Pointer(p, rule)
	p.Store(ptr, int(unsafe.Offsetof(rule.Parent_fd)), fd)
	p.Call("add a rule", "", unix.SYS_LANDLOCK_ADD_RULE, hand.Arg(), Int(unix.LANDLOCK_RULE_PATH_BENEATH), ptr, Int(0))
	p.SendFiles(0, "the ruleset", hand)
	p.RestrictCommand(ruleset(unix.LANDLOCK_SCOPE_SIGNAL))
	return &confinedBox{dir: dir, launch: l}, nil
}

// start starts the command.
func (b *confinedBox) start() error {
	prepared, err := Prepare(&b.launch.Config, b.launch.program)
	if err != nil {
		return err
	}
	if err := prepared.AllowHands(); err != nil {
		return errors.Join(err, prepared.Close())
	}
	if b.process, err = prepared.Start(&b.launch.Command); err == nil {
		b.ruleset = b.process.Files[0]
	}
	return err
}

func (b *confinedBox) hand() (*Hand, error) {
	return StartHand(HandConfig{Process: b.process, Ruleset: b.ruleset, Keep: keeps()})
}

// holdConfined is the re-executed half of tests that kill the host process: it has a confined sandbox that runs a script and
// holds descriptor 3, and a hand that has it as well and waits.
func holdConfined(script string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	b, err := newConfinedBox(os.Getenv("SRT_TEST_DIR"), "/bin/sh", "-c", script)
	fail(err)
	l := b.launch
	l.Stdin, l.Stdout, l.Stderr = os.Stdin, os.Stdout, os.Stderr
	l.Hold = []*os.File{os.NewFile(3, "to hold")}
	fail(b.start())
	h, err := b.hand()
	fail(err)
	p := h.Program()
	h.PassFD(3)
	p.Call("sleep", "", syscall.SYS_NANOSLEEP, Pointer(p, &unix.Timespec{Sec: 3600}), Int(0))
	_, err = h.Do()
	fail(err)
}

// aConfinedBox is one whose command is a cat, for a test.
func aConfinedBox(t *testing.T, args ...string) (b *confinedBox, stdin, out *os.File) {
	t.Helper()
	b, err := newConfinedBox(confinedDir(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	in, stdin := heldPipe(t)
	out, w := heldPipe(t)
	b.launch.Stdin, b.launch.Stdout, b.launch.Stderr = in, w, w
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { b.ruleset.Close() })
	return b, stdin, out
}

func confinedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-confined") // t.TempDir's parent is closed to every other user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	check(t, os.Mkdir(filepath.Join(dir, "rw"), 0o755))
	return dir
}

// TestConfined_Hand: it does what its own ruleset lets it do, with the identity and the capabilities of the command.
func TestConfined_Hand(t *testing.T) {
	needScopes(t)
	b, stdin, _ := aConfinedBox(t, "/bin/cat")
	h, err := b.hand()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		errno syscall.Errno
	}{{"rw/f", 0}, {"f", unix.EACCES}} {
		openAt(h.Program(), filepath.Join(b.dir, c.path), unix.O_CREAT|unix.O_WRONLY)
		if r := do(t, h); r.Errno != c.errno {
			t.Errorf("%s: %v, want %v", c.path, r.Err(), c.errno)
		}
	}
	status := statusFields(t, h.pid)
	if got, want := status["CapEff"], fmt.Sprintf("%016x", uint64(keeps())); got != want || status["NoNewPrivs"] != "1" {
		t.Errorf("capabilities %s, want %s; no_new_privs %s", got, want, status["NoNewPrivs"])
	}
	if os.Geteuid() == 0 {
		another := &Identity{UID: 1000, GID: 1001}
		check(t, os.Chmod(filepath.Join(b.dir, "rw"), 0o777)) // somebody else makes a file in it
		if uid, gid, r := owner(t, h, filepath.Join(b.dir, "rw/another"), another); r.Errno != 0 || uid != 1000 || gid != 1001 {
			t.Errorf("%d:%d, %v", uid, gid, r.Err())
		}
	}
	check(t, h.Close())
	stdin.Close()
	if st, err := b.process.Wait(); err != nil || st.Code != 0 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := b.hand(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
}

// TestConfined_HandNeedsARuleset: nothing else holds it; and as elsewhere, leave for hands is given beforehand.
func TestConfined_HandNeedsARuleset(t *testing.T) {
	needScopes(t)
	p, stdin, _ := lingers(t, "echo up; read x")
	_, err := StartHand(HandConfig{Process: p, Unrestricted: true})
	if err == nil || !strings.Contains(err.Error(), "ruleset") {
		t.Errorf("%v, want a refusal", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, err := StartHand(HandConfig{Process: p, Ruleset: null}); !errors.Is(err, ErrNoHands) {
		t.Errorf("%v, want ErrNoHands", err)
	}
	stdin.Close()
	p.Wait()
}

// TestConfined_CommandHasItsOwnRules: those of the hand are not the command's.
func TestConfined_CommandHasItsOwnRules(t *testing.T) {
	needScopes(t)
	dir := confinedDir(t)
	b, _, out := aConfinedBox(t, "/bin/sh", "-c", `(echo >"$0/rw/f") 2>&- || echo refused; ls "$0/rw"`, dir)
	awaitEnd(t, b.process, out, "refused\n")
}
