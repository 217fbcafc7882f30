package policy

import (
	"errors"
	"slices"
	"strconv"
)

// ResolveSocketPaths turns the entries of network.allowUnixSockets into absolute, clean texts (NET-80): "~" is in.Home, a
// relative entry starts at in.Cwd, and no character is special. It asks nothing of the disk, so links are still in them. An
// entry that names nothing because there is no home is left out, which grants less. The error is a *PathError.
func ResolveSocketPaths(entries []string, in PathInput) ([]string, error) {
	var out []string
	for i, entry := range entries {
		rule, named, err := pathText(entry, true, false, in.Cwd, in.Home)
		if err != nil {
			if bad, ok := errors.AsType[*PathError](err); ok {
				bad.Key = "network.allowUnixSockets." + strconv.Itoa(i)
			}
			return nil, err
		}
		if named {
			out = append(out, rule.Path)
		}
	}
	return out, nil
}

// SocketAllowed tells whether a location is one of the paths or lies beneath one (NET-80). All are absolute, clean and
// without links.
func SocketAllowed(paths []string, location string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return Covers(p, location) })
}
