package broker

import "strings"

// pathMax is the size of a path with its NUL byte that the kernel takes (PATH_MAX, path_resolution(7)), linkMax how many
// symbolic links it follows in one call (MAXSYMLINKS).
const (
	pathMax = 4096
	linkMax = 40
)

// splitPath parts a path that is not empty into what leads to the last component and that component, as the kernel does:
// slashes behind it stay with it (they say that it must be a directory), and dir ends in a slash or is empty. dir+last is
// the path. For a path of slashes alone last is empty.
func splitPath(path string) (dir, last string) {
	end := len(strings.TrimRight(path, "/"))
	if end == 0 {
		return path, ""
	}
	start := strings.LastIndexByte(path[:end], '/') + 1
	return path[:start], path[start:]
}

// nameOf is a last component without the slashes behind it.
func nameOf(last string) string { return strings.TrimRight(last, "/") }

// isName tells whether a last component can name something new: the others (".", "..", none) stand for a directory that
// exists (path_resolution(7)).
func isName(last string) bool {
	n := nameOf(last)
	return n != "" && n != "." && n != ".."
}

// nextComponent parts a path into its first component and the rest; slashes before either are dropped.
func nextComponent(path string) (name, rest string) {
	name, rest, _ = strings.Cut(strings.TrimLeft(path, "/"), "/")
	return name, strings.TrimLeft(rest, "/")
}

// joinLocation appends a name to an absolute location.
func joinLocation(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}
