package placeholder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

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

// New directories inherit the set-group-ID bit of such a directory.
func TestFS54_SetGroupIDDirectory(t *testing.T) {
	f := newField(t)
	if err := os.Chmod(f.project, 0o755|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	s := f.hold("f", "d/")
	f.wantTree("dr-xr-xr-x d", `-r--r--r-- f ""`)
	f.release(s)
	f.wantTree()
	f.wantForgotten()
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

// FS-53: git on the host works with all placeholders that a repository gets.
func TestFS53_GitWorksWithPlaceholders(t *testing.T) {
	f := newField(t)
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = f.project
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "--template=")
	git("commit", "-q", "--allow-empty", "-m", "first")
	s := f.hold(".git/hooks/", ".git/commondir", ".git/config.worktree", ".bashrc", ".vscode/")
	if n := len(s.Placeholders()); n != 5 {
		t.Errorf("%d placeholders", n)
	}
	if got := git("status", "--short"); got != "?? .bashrc" {
		t.Errorf("git status: %q", got)
	}
	f.write("new", "x")
	git("add", "new")
	git("commit", "-q", "-m", "second")
	git("branch", "other")
	git("config", "a.b", "c")
	git("worktree", "add", "-q", filepath.Dir(f.project)+"/tree", "other")
	git("worktree", "remove", filepath.Dir(f.project)+"/tree")
	git("gc", "-q")
	git("fsck")
	f.release(s)
	for _, gone := range []string{".git/hooks", ".git/commondir", ".git/config.worktree", ".bashrc", ".vscode"} {
		if _, err := os.Lstat(f.path(gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	f.wantForgotten()
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
	// A process may have died while it wrote the shorter journal.
	if err := os.WriteFile(filepath.Join(f.state, newJournal), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.release(first)
	if n := len(f.tree()); n != 10 {
		t.Errorf("%d of the 10 names that are still held", n)
	}
	info, err := os.Stat(filepath.Join(f.state, journalName))
	if err != nil || info.Size() == 0 || info.Size() > smallJournal {
		t.Errorf("the journal was not shortened: %v, %v", info, err)
	}
	f.release(second)
	f.wantTree()
	f.wantForgotten()
}
