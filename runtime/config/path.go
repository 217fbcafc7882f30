package config

import "strings"

// pathShape is the message of a path entry of the wrong shape (CFG-60).
const pathShape = `Expected a path, or { "path": "<path>", "literal": true }`

// pathNode is the schema of a path entry (CFG-60): a string, or an object with exactly path and literal: true.
func pathNode() node[PathEntry] {
	check := func(w *walk, path string, in *PathEntry) {
		apply(w, path, in.Path, []rule[string]{pathNotEmpty, withoutNUL})
	}
	return node[PathEntry]{
		decode: func(w *walk, path string, tree any, out *PathEntry) {
			before := len(w.issues)
			switch value := tree.(type) {
			case string:
				*out = PathEntry{Path: value}
			case map[string]any:
				name, ok := value["path"].(string)
				if !ok || value["literal"] != true {
					w.fail(path, pathShape)
				}
				unknownKeys(w, path, value, strict, []string{"path", "literal"})
				*out = PathEntry{Path: name, Literal: true}
			default:
				w.fail(path, pathShape)
			}
			if len(w.issues) == before {
				check(w, path, out)
			}
		},
		check:  check,
		absent: func(*PathEntry) bool { return false },
	}
}

// IsPattern reports whether an entry is a pattern on a platform (a GOOS value): a string that holds one of * ? [ ],
// on Windows one of * ?, after the prefix \\?\ is dropped (CFG-61, CFG-62). A literal entry never is.
func (e PathEntry) IsPattern(goos string) bool { return !e.Literal && isPattern(e.Path, goos) }

func isPattern(path, goos string) bool {
	if goos == "windows" {
		return strings.ContainsAny(strings.TrimPrefix(path, `\\?\`), "*?")
	}
	return strings.ContainsAny(path, "*?[]")
}

// separators are the bytes that part the components of a path on a platform.
func separators(goos string) string {
	if goos == "windows" {
		return `/\`
	}
	return "/"
}

// isAbsolute reports whether a path, as written, is absolute on a platform. On Windows a path from the root of the
// current drive counts too: no working directory goes into its tail.
func isAbsolute(path, goos string) bool {
	seps := separators(goos)
	if path != "" && strings.IndexByte(seps, path[0]) >= 0 {
		return true
	}
	if goos != "windows" || len(path) < 3 || path[1] != ':' || strings.IndexByte(seps, path[2]) < 0 {
		return false
	}
	letter := path[0] | 0x20
	return 'a' <= letter && letter <= 'z'
}

// isRooted reports whether the place of a path does not depend on the working directory: it is absolute, starts with
// "~", or (Windows) with a variable of CFG-62.
func isRooted(path, goos string) bool {
	if strings.HasPrefix(path, "~") || isAbsolute(path, goos) {
		return true
	}
	if goos != "windows" {
		return false
	}
	for _, name := range []string{"%USERPROFILE%", "%HOMEDRIVE%", "%HOMEPATH%"} {
		if len(path) >= len(name) && strings.EqualFold(path[:len(name)], name) {
			return true
		}
	}
	return false
}

// inertDeny is CFG-64 and FS-3: it returns why a deny entry is a pattern that could match nothing, or "".
func inertDeny(path, goos string) string {
	seps := separators(goos)
	trimmed := strings.TrimRight(path, seps)
	if trimmed == path || !isPattern(path, goos) || !isRooted(path, goos) {
		return ""
	}
	return quoteEntry(path) + " is a pattern that ends in a separator, so it would deny nothing; write " +
		quoteEntry(trimmed) + `, or put a "**" segment where directories may lie between (` +
		quoteEntry(trimmed+path[len(trimmed):len(trimmed)+1]+"**") + " for all below)"
}

// denyPatterns makes the check of CFG-64 over the two deny lists.
func denyPatterns(goos string) objectRule[Filesystem] {
	return func(w *walk, path string, f *Filesystem) {
		if f.Disabled {
			return
		}
		for _, list := range []struct {
			key     string
			entries []PathEntry
		}{{"denyRead", f.DenyRead}, {"denyWrite", f.DenyWrite}} {
			for i, entry := range list.entries {
				if entry.Literal {
					continue
				}
				if reason := inertDeny(entry.Path, goos); reason != "" {
					w.fail(join(join(path, list.key), decimal(i)), reason)
				}
			}
		}
	}
}

// maskedFile makes the check of CFG-65: a mask covers one file.
func maskedFile(goos string) objectRule[FileCredential] {
	return func(w *walk, path string, f *FileCredential) {
		if f.Mode == ModeMask && strings.TrimRight(f.Path, separators(goos)) != f.Path {
			w.fail(join(path, "path"), quoteEntry(f.Path)+` ends in a separator, and mode "mask" covers one file, not a `+
				`directory; name the file, or use mode "deny"`)
		}
	}
}
