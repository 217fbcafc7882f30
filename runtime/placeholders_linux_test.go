package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview/placeholder"
)

// stateHome has placeholders be recorded in a directory of the test's own.
func stateHome(t *testing.T) (state string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", dir)
	return filepath.Join(dir, "srt")
}

// TestPlaceholders_AreTheSandboxs_FS54: pid 1 holds what keeps them. When srt's own copy is gone, another start does not
// remove them while the command runs, and does so afterwards.
func TestPlaceholders_AreTheSandboxs_FS54(t *testing.T) {
	state := stateHome(t)
	k := newFakeHooks(t)
	k.loadErr = errors.New("no hooks")
	h := newHookedSandbox(t, k)
	setBroker(t, errors.New("no listener"))
	c := h.start(t, `echo x >new; echo up; read x`)
	if got := c.until("up\n"); !strings.Contains(got, "Read-only file system") {
		t.Errorf("%q", got)
	}
	l := c.process.(*linuxProcess).launch
	if l.mechanism.Name != byPlaceholders {
		t.Fatalf("%+v", l.mechanism)
	}
	// As when srt is killed: the number leads to something else, on which no lock can be taken or given up. The file that has
	// it stays as it is, since the command's end uses that.
	if err := control(l.held.session.File(), func(number int) error {
		fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Dup3(fd, number, unix.O_CLOEXEC), unix.Close(fd))
	}); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		if err := placeholder.Sweep(state); err != nil {
			t.Error(err)
		}
		_, err := os.Lstat(h.dir + "/new")
		return err == nil
	}
	if !there() {
		t.Error("another start has removed a placeholder that a running command relies on")
	}
	c.end()
	if there() {
		t.Error("the placeholder is still there")
	}
}

// TestPlaceholders_ComeLast_FS54: hooks that hold the names need neither broker nor placeholders; hooks that fail for a
// command leave it to what there is.
func TestPlaceholders_ComeLast_FS54(t *testing.T) {
	stateHome(t)
	for _, c := range []struct {
		name    string
		add     error
		want    string
		refused bool
	}{{"hooks", nil, byKernel, false}, {"hooks that fail", errors.New("broken"), byPlaceholders, true}} {
		k := newFakeHooks(t)
		k.addErr = c.add
		h := newHookedSandbox(t, k)
		setBroker(t, errors.New("no listener"))
		cmd := h.start(t, `echo x >new; echo up; read x`)
		if got := cmd.until("up\n"); strings.Contains(got, "Read-only file system") != c.refused {
			t.Errorf("%s: %q", c.name, got)
		}
		if l := cmd.process.(*linuxProcess).launch; l.mechanism.Name != c.want {
			t.Errorf("%s: %+v, want %s", c.name, l.mechanism, c.want)
		}
		cmd.end()
	}
}

// TestPlaceholders_StateOfSomebodyElse_FS54: a state directory that cannot be this user's, as that of the host's root is for
// root of a user namespace, keeps no command from starting where no placeholder is needed.
func TestPlaceholders_StateOfSomebodyElse_FS54(t *testing.T) {
	state := stateHome(t)
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	journal, err := os.OpenFile(filepath.Join(state, "journal"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = journal.WriteString("something\n")
		err = errors.Join(err, journal.Close(), os.Chmod(state, 0o777)) // #nosec G302 -- no state directory is like that
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := placeholder.List(state); !errors.Is(err, placeholder.ErrState) {
		t.Fatalf("want a directory that cannot be used, got %v", err)
	}
	k := newFakeHooks(t)
	k.loadErr = errors.New("no hooks")
	h := newHookedSandbox(t, k)
	c := h.start(t, `echo x >fine; cat fine; read x`)
	if got := c.until("x\n"); got != "x\n" {
		t.Errorf("%q", got)
	}
	c.end()
}
