package placeholder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The directory of a placeholder is exchanged before the removal: nothing beneath another directory is touched, and what
// was made is still found where the session's own descriptor leads.
func TestFS54_DirectorySwap(t *testing.T) {
	swaps := map[string]func(f *field) error{
		"another directory": func(f *field) error { return os.Mkdir(f.path("sub"), 0o755) },
		"a link":            func(f *field) error { return os.Symlink("other", f.path("sub")) },
		"a link to itself":  func(f *field) error { return os.Symlink("moved", f.path("sub")) },
		"a file":            func(f *field) error { return os.WriteFile(f.path("sub"), nil, 0o644) },
		"nothing":           func(*field) error { return nil },
	}
	for name, swap := range swaps {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			for _, dir := range []string{"sub", "other"} {
				if err := os.Mkdir(f.path(dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			// The other directory holds a file that is like a placeholder.
			f.write("other/f", "")
			os.Chmod(f.path("other/f"), 0o444)
			released, killed := f.hold("sub/f"), f.hold("sub/g")
			die(killed)
			if err := os.Rename(f.path("sub"), f.path("moved")); err != nil {
				t.Fatal(err)
			}
			if err := swap(f); err != nil {
				t.Fatal(err)
			}
			f.release(released)
			f.sweep()
			if got := strings.Join(f.tree(), "\n"); !strings.Contains(got, `-r--r--r-- other/f ""`) ||
				strings.Contains(got, "moved/f") || !strings.Contains(got, `-r--r--r-- moved/g ""`) {
				t.Errorf("the project:\n%s", got)
			}
			// The record is kept: the directory may come back.
			os.RemoveAll(f.path("sub"))
			if err := os.Rename(f.path("moved"), f.path("sub")); err != nil {
				t.Fatal(err)
			}
			f.sweep()
			f.wantTree("drwxr-xr-x other", `-r--r--r-- other/f ""`, "drwxr-xr-x sub")
			f.wantForgotten()
		})
	}
}

func TestFS54_RecordOfAnUnreachableDirectoryExpires(t *testing.T) {
	f := newField(t)
	if err := os.Mkdir(f.path("sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	die(f.hold("sub/f"))
	os.RemoveAll(f.path("sub"))
	f.sweep()
	journal := filepath.Join(f.state, journalName)
	data, err := os.ReadFile(journal)
	if err != nil || len(parse(data).live()) != 1 {
		t.Fatalf("%v; the record is gone at once: %q", err, data)
	}
	r := parse(data).live()[0]
	r.time = time.Now().Add(-retention - time.Hour).UnixNano()
	if err := os.WriteFile(journal, []byte(r.makeLine()+r.madeLine()), 0o600); err != nil {
		t.Fatal(err)
	}
	f.sweep()
	f.wantForgotten()
}

// A file that is renamed onto the name just after the placeholder was proven is not lost.
func TestFS52_FileThatArrivesDuringTheRemoval(t *testing.T) {
	f := newField(t)
	s := f.hold("f")
	defer func() { crash = func(string) {} }()
	crash = func(point string) {
		if point == "proven" {
			f.write("new", "precious")
			if err := os.Rename(f.path("new"), f.path("f")); err != nil {
				t.Error(err)
			}
		}
	}
	f.release(s)
	f.wantTree(`-rw-r--r-- f "precious"`)
	f.wantForgotten()
}

// What comes to exist between the record and the making is left as it is, and not denied as a placeholder.
func TestFS54_NameThatAppearsMeanwhile(t *testing.T) {
	f := newField(t)
	defer func() { crash = func(string) {} }()
	crash = func(point string) {
		if point == "recorded" {
			f.write("f", "")
			os.Mkdir(f.path("nd"), 0o700)
		}
	}
	s := f.hold("f", "nd/x", "g")
	if got := s.Placeholders(); len(got) != 1 || got[0].Path != f.path("g") {
		t.Errorf("holds %v", got)
	}
	f.release(s)
	f.wantTree(`-rw-r--r-- f ""`, "drwx------ nd")
	f.wantForgotten()
}

// A directory that another process puts in place of a new one is not changed. (A file is created and opened by one call.)
func TestFS54_SwapWhileItIsMade(t *testing.T) {
	for name, make := range map[string]func(f *field) error{
		"directory": func(f *field) error { return os.Mkdir(f.path("users"), 0o700) },
		"file":      func(f *field) error { return os.WriteFile(f.path("users"), []byte("precious"), 0o644) },
		"link":      func(f *field) error { return os.Symlink(".", f.path("users")) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			if err := make(f); err != nil {
				t.Fatal(err)
			}
			before := f.tree()
			defer func() { crash = func(string) {} }()
			crash = func(point string) {
				if point == "created" {
					os.Remove(f.path("n"))
					os.Rename(f.path("users"), f.path("n"))
				}
			}
			if _, err := Hold(f.state, f.names("n/")); !errors.Is(err, errNotNew) {
				t.Errorf("%v; want %v", err, errNotNew)
			}
			if err := os.Rename(f.path("n"), f.path("users")); err != nil {
				t.Fatal(err)
			}
			f.wantTree(before...)
			f.wantForgotten()
		})
	}
}

func TestFS54_BusyJournal(t *testing.T) {
	f := newField(t)
	s := f.hold("f")
	defer func(d time.Duration) { patience = d }(patience)
	patience = 0
	if err := s.st.acquire(); err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(f.state, f.names("g")); !errors.Is(err, ErrBusy) {
		t.Errorf("Hold: %v", err)
	}
	if err := Sweep(f.state); !errors.Is(err, ErrBusy) {
		t.Errorf("Sweep: %v", err)
	}
	s.st.end()
	f.release(s)
	f.wantTree()
}
