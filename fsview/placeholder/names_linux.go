package placeholder

import (
	"path"
	"slices"
	"strings"
)

// checkPath is nil for an absolute path other than / in its shortest form.
func checkPath(p string) error {
	if p == "/" || !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return &Error{Op: "use the path", Path: p, Err: ErrPath, Advice: "this is a mistake of the caller; report it"}
	}
	return nil
}

// sortedNames are names in path order, each path once. The same path asked for as a file and as a directory is a
// directory's: that denies no less.
func sortedNames(names []Name) ([]Name, error) {
	list := slices.Clone(names)
	for _, n := range list {
		if err := checkPath(n.Path); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b Name) int {
		switch {
		case a.Path != b.Path:
			return strings.Compare(a.Path, b.Path)
		case a.Dir == b.Dir:
			return 0
		case a.Dir:
			return -1
		default:
			return 1
		}
	})
	return slices.CompactFunc(list, func(a, b Name) bool { return a.Path == b.Path }), nil
}

func byPath(a, b Placeholder) int { return strings.Compare(a.Path, b.Path) }

// split is the directory and the last name of an absolute path.
func split(p string) (dir, name string) {
	dir, name = path.Split(p)
	return path.Clean(dir), name
}

// meaningful reports that a file at p, whatever it holds, changes what git does on the host: a lock file stops it.
func meaningful(p string) bool {
	return strings.HasSuffix(p, ".lock") && strings.Contains(p, "/.git/")
}
