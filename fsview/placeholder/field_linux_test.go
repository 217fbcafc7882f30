package placeholder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
