package stage

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// View says what of a tree is looked at. The zero value looks at everything but times.
type View struct {
	// Times adds the modification times of all but directories.
	Times bool
	// Varying are patterns (path.Match) of paths beneath the top whose content, size and time differ from run to run.
	// Their presence, type, mode and owner are looked at all the same.
	Varying []string
	// Without are patterns of paths beneath the top that are not looked at, with all beneath.
	Without []string
}

// Tree describes the objects of a tree, by their paths beneath its top.
type Tree map[string]string

// Tree describes everything beneath a directory of the host.
func (s *Stage) Tree(dir string, v View) Tree {
	s.T.Helper()
	top, found := s.Abs(dir), Tree{}
	s.Must(filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		if matches(v.Without, rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		found[rel], err = describe(name, v.Times, matches(v.Varying, rel))
		return err
	}))
	return found
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// describe is the type, mode, owner, links and content of an object.
func describe(name string, times, varying bool) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return "", fmt.Errorf("lstat %s: %w", name, err)
	}
	text := fmt.Sprintf("mode %o, owner %d:%d", st.Mode, st.Uid, st.Gid)
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR {
		text += fmt.Sprintf(", %d links", st.Nlink)
		if times && !varying {
			text += fmt.Sprintf(", time %d.%09d", st.Mtim.Sec, st.Mtim.Nsec)
		}
	}
	switch {
	case kind == unix.S_IFLNK:
		target, err := os.Readlink(name)
		return text + ", to " + target, err
	case kind == unix.S_IFREG && !varying:
		data, err := os.ReadFile(name)
		return fmt.Sprintf("%s, %d bytes %x %.60q", text, len(data), sha256.Sum256(data), data), err
	}
	return text, nil
}

// Differences says one line for each object in which got is not want.
func Differences(want, got Tree) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch text, ok := got[name]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s is missing, was: %s", name, want[name]))
		case text != want[name]:
			lines = append(lines, fmt.Sprintf("%s\n    want %s\n     got %s", name, want[name], text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			lines = append(lines, fmt.Sprintf("%s is there: %s", name, got[name]))
		}
	}
	return lines
}
