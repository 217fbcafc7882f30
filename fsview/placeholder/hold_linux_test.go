package placeholder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// field is a state directory and a project on a real disk, as a person has them.
type field struct {
	t              *testing.T
	state, project string
}

func newField(t *testing.T) *field {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &field{t: t, state: filepath.Join(root, "state/srt"), project: filepath.Join(root, "p")}
	if err := os.Mkdir(f.project, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A directory of mode 0555 would keep a user from removing what a failed test left.
		filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				os.Chmod(p, 0o755)
			}
			return nil
		})
	})
	return f
}

func (f *field) path(name string) string { return filepath.Join(f.project, name) }

// names are files, or directories where they end in a slash.
func (f *field) names(list ...string) []Name {
	var names []Name
	for _, n := range list {
		names = append(names, Name{Path: f.path(n), Dir: strings.HasSuffix(n, "/")})
	}
	return names
}

func (f *field) hold(list ...string) *Session {
	f.t.Helper()
	s, err := Hold(f.state, f.names(list...))
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *field) release(s *Session) {
	f.t.Helper()
	if err := s.Release(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) sweep() {
	f.t.Helper()
	if err := Sweep(f.state); err != nil {
		f.t.Fatal(err)
	}
}

// die is what the end of a process does to a session: its descriptors are closed.
func die(s *Session) {
	s.st.close()
	for _, fd := range s.parents {
		unix.Close(fd)
	}
}

func (f *field) write(name, content string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// tree lists the project: mode, name, content of each entry.
func (f *field) tree() []string {
	f.t.Helper()
	list := []string{}
	err := filepath.WalkDir(f.project, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == f.project {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%v %s", info.Mode(), strings.TrimPrefix(p, f.project+"/"))
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %q", content)
		}
		list = append(list, text)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

func (f *field) wantTree(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), f.tree()); diff != "" {
		f.t.Errorf("the project (-want +got):\n%s", diff)
	}
}

// wantForgotten checks that the journal is empty.
func (f *field) wantForgotten() {
	f.t.Helper()
	info, err := os.Stat(filepath.Join(f.state, journalName))
	if err == nil && info.Size() != 0 {
		data, _ := os.ReadFile(filepath.Join(f.state, journalName))
		f.t.Errorf("the journal still says\n%s", data)
	}
}

func TestFS54_KindsAndModes(t *testing.T) {
	// Of this process: other tests of this package do not run at the same time.
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		t.Run(fmt.Sprintf("umask %03o", umask), func(t *testing.T) {
			f := newField(t)
			defer syscall.Umask(syscall.Umask(umask))
			s := f.hold(".bashrc", ".vscode/")
			f.wantTree(`-r--r--r-- .bashrc ""`, "dr-xr-xr-x .vscode")
			f.release(s)
			f.wantTree()
			f.wantForgotten()
		})
	}
}

func TestFS54_StateIsClosedToOthers(t *testing.T) {
	f := newField(t)
	defer syscall.Umask(syscall.Umask(0))
	defer f.release(f.hold("a"))
	for p, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o700, journalName: 0o600, lockName: 0o600} {
		info, err := os.Stat(filepath.Join(f.state, p))
		if err != nil || info.Mode() != want {
			t.Errorf("%q: %v, %v; want %v", p, info, err, want)
		}
	}
}

// A missing parent is an empty read-only directory, and stands for all names beneath it.
func TestFS33_MissingParentStandsForItsNames(t *testing.T) {
	f := newField(t)
	s := f.hold("nd/x/y", "nd/z", ".claude/commands/", ".claude/agents/", "one", "one/two")
	f.wantTree("dr-xr-xr-x .claude", "dr-xr-xr-x nd", "dr-xr-xr-x one")
	want := []Placeholder{{f.path(".claude"), true}, {f.path("nd"), true}, {f.path("one"), true}}
	if diff := cmp.Diff(want, s.Placeholders()); diff != "" {
		t.Error(diff)
	}
	// A second session asks for another name in a directory that is a placeholder already.
	second := f.hold("nd/other")
	if diff := cmp.Diff([]Placeholder{{f.path("nd"), true}}, second.Placeholders()); diff != "" {
		t.Error(diff)
	}
	f.release(s)
	f.wantTree("dr-xr-xr-x nd")
	f.release(second)
	f.wantTree()
	f.wantForgotten()
}

func TestFS54_WhatExistsIsNotTouched(t *testing.T) {
	f := newField(t)
	f.write("empty", "")
	f.write("full", "x")
	if err := os.Symlink("nowhere", f.path("dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.path("dir"), 0o555); err != nil {
		t.Fatal(err)
	}
	before := f.tree()
	s := f.hold("empty", "full", "dangling", "dir/", "dir")
	if got := s.Placeholders(); len(got) != 0 {
		t.Errorf("holds %v", got)
	}
	f.release(s)
	f.wantTree(before...)
}

// Case 30: two in one directory; the first ends, the second's names stay.
func TestFS54_Case30_FirstEndsSecondHolds(t *testing.T) {
	ends := map[string]func(*field, *Session){
		"released": (*field).release,
		"killed": func(f *field, s *Session) {
			die(s)
			f.sweep()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			first := f.hold(".bashrc", ".vscode/", "first")
			second := f.hold(".bashrc", ".vscode/")
			end(f, first)
			f.wantTree(`-r--r--r-- .bashrc ""`, "dr-xr-xr-x .vscode")
			end(f, second)
			f.wantTree()
			f.wantForgotten()
		})
	}
}

// A plan sees another session's placeholder as a file that exists; the session relies on it all the same.
func TestFS54_Case30_Adopt(t *testing.T) {
	f := newField(t)
	f.write("users", "")
	first := f.hold(".bashrc", "nd/")
	second := f.hold()
	if err := second.Adopt([]string{"/", f.path(".bashrc"), f.path("nd"), f.path("users"), f.project}); err != nil {
		t.Fatal(err)
	}
	f.release(first)
	f.wantTree(`-r--r--r-- .bashrc ""`, "dr-xr-xr-x nd", `-rw-r--r-- users ""`)
	f.release(second)
	f.wantTree(`-rw-r--r-- users ""`)
	f.wantForgotten()
}

func TestFS54_AdoptWithoutAnyState(t *testing.T) {
	f := newField(t)
	s := f.hold()
	if err := s.Adopt([]string{f.project}); err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt([]string{f.path("gone")}); !errors.Is(err, ErrChanged) {
		t.Errorf("a path that is gone: %v", err)
	}
	f.release(s)
	if _, err := os.Lstat(f.state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a session without names made the state directory: %v", err)
	}
	if err := s.Adopt(nil); !errors.Is(err, ErrReleased) {
		t.Errorf("after the release: %v", err)
	}
}

// Two state directories do not know of each other; sharing would be a promise that cannot be kept.
func TestFS54_ForeignPlaceholderIsAnError(t *testing.T) {
	f := newField(t)
	defer f.release(f.hold(".bashrc", "nd/"))
	other := *f
	other.state += "-other"
	if _, err := Hold(other.state, f.names(".bashrc")); !errors.Is(err, ErrForeign) {
		t.Errorf("Hold: %v", err)
	}
	if _, err := Hold(other.state, f.names("nd/x")); !errors.Is(err, ErrForeign) {
		t.Errorf("Hold beneath: %v", err)
	}
	s := other.hold("mine")
	if err := s.Adopt([]string{f.path(".bashrc")}); !errors.Is(err, ErrForeign) {
		t.Errorf("Adopt: %v", err)
	}
	other.release(s)
	f.wantTree(`-r--r--r-- .bashrc ""`, "dr-xr-xr-x nd")
}

// FS-52: a placeholder that gained content or entries is left alone, and so is whatever took its place.
func TestFS52_ChangedPlaceholderIsLeftAlone(t *testing.T) {
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	changes := map[string]func(f *field){
		"content": func(f *field) {
			must(os.Chmod(f.path("f"), 0o644))
			f.write("f", "mine")
			must(os.Chmod(f.path("f"), 0o444))
		},
		"written and emptied": func(f *field) {
			must(os.Chmod(f.path("f"), 0o644))
			f.write("f", "mine")
			must(os.Truncate(f.path("f"), 0))
			must(os.Chmod(f.path("f"), 0o444))
		},
		"mode":       func(f *field) { must(os.Chmod(f.path("f"), 0o644)) },
		"hard link":  func(f *field) { must(os.Link(f.path("f"), f.path("f2"))) },
		"other file": func(f *field) { f.write("new", ""); must(os.Rename(f.path("new"), f.path("f"))) },
		"other empty read-only file": func(f *field) {
			f.write("new", "")
			must(os.Chmod(f.path("new"), 0o444))
			must(os.Rename(f.path("new"), f.path("f")))
		},
		"link":  func(f *field) { must(os.Remove(f.path("f"))); must(os.Symlink("d", f.path("f"))) },
		"FIFO":  func(f *field) { must(os.Remove(f.path("f"))); must(unix.Mkfifo(f.path("f"), 0o444)) },
		"entry": func(f *field) { must(os.Chmod(f.path("d"), 0o755)); f.write("d/x", "") },
		"entry, read-only again": func(f *field) {
			must(os.Chmod(f.path("d"), 0o755))
			f.write("d/x", "")
			must(os.Chmod(f.path("d"), 0o555))
		},
		"directory's mode": func(f *field) { must(os.Chmod(f.path("d"), 0o755)) },
		"other directory": func(f *field) {
			must(os.Mkdir(f.path("other"), 0o555))
			must(os.Remove(f.path("d")))
			must(os.Rename(f.path("other"), f.path("d")))
		},
	}
	for name, change := range changes {
		for how, end := range map[string]func(*field, *Session){"release": (*field).release, "sweep": func(f *field, s *Session) {
			die(s)
			f.sweep()
		}} {
			t.Run(name+"/"+how, func(t *testing.T) {
				f := newField(t)
				s := f.hold("f", "d/")
				untouched := map[bool]string{true: "d", false: "f"}[!strings.Contains(name, "directory") && !strings.Contains(name, "entry")]
				change(f)
				var want []string
				for _, entry := range f.tree() {
					if fields := strings.Fields(entry); fields[1] != untouched {
						want = append(want, entry)
					}
				}
				end(f, s)
				f.wantTree(want...)
				f.wantForgotten()
			})
		}
	}
}

func TestFS52_RemovedPlaceholderIsForgotten(t *testing.T) {
	f := newField(t)
	s := f.hold("f", "d/")
	os.Remove(f.path("f"))
	os.Remove(f.path("d"))
	f.release(s)
	f.wantTree()
	f.wantForgotten()
}

func TestFS52_ReleaseTwice(t *testing.T) {
	f := newField(t)
	s := f.hold("f")
	f.release(s)
	second := f.hold("f")
	f.release(s)
	f.wantTree(`-r--r--r-- f ""`)
	f.release(second)
	f.wantTree()
}

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
	for _, err := range []error{os.Mkdir(open, 0o755), os.Mkdir(target, 0o700), os.Symlink(target, f.path("link")),
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

func TestFS54_List(t *testing.T) {
	f := newField(t)
	if list, err := List(f.state); err != nil || len(list) != 0 {
		t.Errorf("without a state directory: %v, %v", list, err)
	}
	s := f.hold("b", "a/")
	list, err := List(f.state)
	if diff := cmp.Diff([]Placeholder{{f.path("a"), true}, {f.path("b"), false}}, list); diff != "" || err != nil {
		t.Error(diff, err)
	}
	f.release(s)
	if list, err := List(f.state); err != nil || len(list) != 0 {
		t.Errorf("after the release: %v, %v", list, err)
	}
}

// Starts and ends of many sessions at once: while a session lives its names exist, afterwards nothing does.
func TestFS54_RacingSessions(t *testing.T) {
	f := newField(t)
	names := f.names(".bashrc", ".vscode/", "nd/x")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for i := range 12 {
				s, err := Hold(f.state, names)
				if err != nil {
					t.Error(err)
					return
				}
				for _, p := range s.Placeholders() {
					if _, err := os.Lstat(p.Path); err != nil {
						t.Errorf("held and not there: %v", err)
					}
				}
				if n := len(s.Placeholders()); n != 3 {
					t.Errorf("%d placeholders", n)
				}
				if i%3 == 0 {
					die(s)
				} else if err := s.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f.sweep()
	f.wantTree()
	f.wantForgotten()
}

func TestFS54_HundredsOfNames(t *testing.T) {
	f := newField(t)
	var list []string
	for i := range 600 {
		list = append(list, fmt.Sprintf("n%d", i))
	}
	first := f.hold(list...)
	if n := len(first.Placeholders()); n != len(list) {
		t.Fatalf("%d placeholders", n)
	}
	second := f.hold(list[:10]...)
	f.release(first)
	if n := len(f.tree()); n != 10 {
		t.Errorf("%d of the 10 names that are still held", n)
	}
	f.release(second)
	f.wantTree()
	f.wantForgotten()
}
