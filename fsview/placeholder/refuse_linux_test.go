package placeholder

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFS30_NamesThatCannotBeHeld(t *testing.T) {
	f := newField(t)
	f.write("file", "x")
	if err := os.Symlink(".", f.path("link")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		want       error
	}{
		{"beneath a file", f.path("file/x"), ErrObstructed},
		{"beneath a file, deeper", f.path("file/x/y"), ErrObstructed},
		{"through a link", f.path("link/x"), ErrObstructed},
		{"FS-53 a lock file of git", f.path(".git/config.lock"), ErrMeaning},
		{"relative", "x", ErrPath},
		{"with dots", f.project + "/../x", ErrPath},
		{"root", "/", ErrPath},
		{"NUL", f.path("a\x00b"), ErrPath},
		{"nothing can be made there", "/sys/srt-placeholder", fs.ErrPermission},
		{"a name that is too long", f.path(strings.Repeat("n", 256)), unix.ENAMETOOLONG},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := f.tree()
			_, err := Hold(f.state, append(f.names("a", "z"), Name{Path: tt.path}))
			if !errors.Is(err, tt.want) {
				t.Errorf("%v; want %v", err, tt.want)
			}
			f.wantTree(before...)
			f.wantForgotten()
		})
	}
}

func TestFS54_StateThatCannotBeUsed(t *testing.T) {
	f := newField(t)
	open, target := f.path("open"), f.path("target")
	for _, err := range []error{os.Mkdir(open, 0o700), os.Chmod(open, 0o770), os.Mkdir(target, 0o700), os.Symlink(target, f.path("link")),
		os.WriteFile(f.path("file"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{open, f.path("link"), f.path("file"), f.path("file/below"), "/sys/srt"} {
		if _, err := Hold(state, f.names("a")); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", state, err)
		}
	}
	if _, err := Hold("relative", f.names("a")); !errors.Is(err, ErrPath) {
		t.Errorf("relative: %v", err)
	}
	if _, err := os.Lstat(f.path("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a placeholder without a record: %v", err)
	}
}

// A state directory that others may look into, as one that an outer sandbox hides, is closed to them.
func TestFS54_StateIsClosedWhenFoundOpen(t *testing.T) {
	f := newField(t)
	f.state = f.path("state")
	if err := os.Mkdir(f.state, 0o755); err != nil {
		t.Fatal(err)
	}
	defer f.release(f.hold("a"))
	if info, err := os.Stat(f.state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// FS-54: a file that is far too long for a journal is not read into memory.
func TestFS54_JournalThatIsTooLong(t *testing.T) {
	state := t.TempDir()
	if err := unix.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(state+"/"+journalName, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(journalLimit + 1); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(state); !errors.Is(err, unix.EFBIG) {
		t.Errorf("want EFBIG, got %v", err)
	}
}
