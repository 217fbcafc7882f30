package policy

import (
	"fmt"
	"path"
	"strings"
)

// PathRule is one entry of a path list, turned into an absolute text (FS-5, FS-6). Links are not followed here: what
// the text leads to is a question for the disk, which package fsview asks.
type PathRule struct {
	Entry   string // the entry as written, for messages
	Key     string // where it stands, for example "filesystem.denyRead.0"
	Path    string // absolute and clean; a pattern (Pattern) is anchored the same way
	Pattern bool   // Path holds glob characters that the entry did not mark as literal (FS-12)
	// Anchor is, for a pattern, the leading directory of Path that the entry did not write: the working directory, the
	// home, or one above. Glob characters in it are part of a name. Empty for an absolute entry.
	Anchor string
}

// PathRules are the path lists of one command, in the order of the settings file. The zero value denies no read and
// grants no write.
type PathRules struct {
	DenyRead, AllowRead, AllowWrite, DenyWrite []PathRule
	// CredentialDeny are the credential files with mode "deny": read denies that no list lifts (FS-57).
	CredentialDeny []PathRule
	// Warnings are lines for the person, one for each allow entry that names nothing (FS-5).
	Warnings []string
}

// PathError is an entry of a path list that cannot be used. It stops the start (FS-4).
type PathError struct {
	Key    string // where the entry stands, for example "filesystem.denyRead.0"
	Entry  string // the entry as written
	Reason string // what is wrong with it
}

// Error names the key, the entry and what is wrong, with control characters quoted.
func (e *PathError) Error() string { return fmt.Sprintf("%s: %s (entry %q)", e.Key, e.Reason, e.Entry) }

// globCharacters make a string entry a pattern (FS-12).
const globCharacters = "*?[]"

// pathText turns one entry into a rule. The second result is false when the entry names nothing, which only `~` under
// an empty home does (FS-5). readList says that the entry stands in a read list, where a pattern keeps a trailing
// `/**` (FS-20).
func pathText(entry string, literal, readList bool, cwd, home string) (PathRule, bool, error) {
	rule := PathRule{Entry: entry}
	switch {
	case entry == "":
		return rule, false, &PathError{Entry: entry, Reason: "Path cannot be empty"}
	case strings.IndexByte(entry, 0) >= 0:
		return rule, false, &PathError{Entry: entry, Reason: "a path cannot hold a NUL byte; remove it"}
	}
	text, base := entry, cwd
	if !literal {
		text = dropDeepWildcard(entry, readList)
		rule.Pattern = strings.ContainsAny(text, globCharacters)
	}
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		if home == "" {
			return rule, false, nil
		}
		text, base = strings.TrimLeft(text[1:], "/"), absolute(home, cwd)
	case strings.HasPrefix(text, "/"):
		base = ""
	}
	rule.Path = path.Clean(base + "/" + text)
	if rule.Pattern && base != "" {
		rule.Anchor = anchor(path.Clean(base), text)
	}
	if !strings.ContainsAny(rule.Path[len(rule.Anchor):], globCharacters) {
		rule.Pattern, rule.Anchor = false, "" // none, or ".." has folded the last one away
	}
	return rule, true, nil
}

// anchor is what is left of base when a text relative to it is folded.
func anchor(base, text string) string {
	rest := path.Clean(text) + "/"
	for strings.HasPrefix(rest, "../") {
		base, rest = path.Dir(base), rest[3:]
	}
	return base
}

// dropDeepWildcard removes one trailing `/**`, unless what remains of a read entry is still a pattern (FS-6, FS-20).
func dropDeepWildcard(entry string, readList bool) string {
	rest, found := strings.CutSuffix(entry, "/**")
	if !found || (readList && strings.ContainsAny(rest, globCharacters)) {
		return entry
	}
	if rest == "" {
		return "/"
	}
	return rest
}

func absolute(text, cwd string) string {
	if strings.HasPrefix(text, "/") {
		return text
	}
	return cwd + "/" + text
}

// Covers reports whether p is base or lies beneath it by whole components. Both are absolute and clean.
func Covers(base, p string) bool {
	if base == "/" || base == p {
		return true
	}
	return len(p) > len(base) && p[len(base)] == '/' && p[:len(base)] == base
}

// sharedWritePaths are granted in every home (FS-28).
var sharedWritePaths = [...]string{
	"/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty", "/dev/dtracehelper", "/dev/autofs_nowait",
	"/tmp/claude", "/private/tmp/claude",
}

// homeWritePaths are granted beneath the home directory unless a read deny covers them (FS-28).
var homeWritePaths = [...]string{".npm/_logs", ".claude/debug"}

// DefaultWritePaths are the absolute paths that are writable whatever the lists say (FS-28), existing or not. home is
// absolute, or empty when there is none. The two directories in it are left out when a read deny or a credential deny
// covers them, unless an allowRead name covered by the same deny covers them; nothing lifts a credential deny. A deny
// pattern counts as covering all beneath its longest literal directory, which is the stricter reading.
func DefaultWritePaths(home string, rules PathRules) []string {
	list := make([]string, 0, len(sharedWritePaths)+len(homeWritePaths))
	list = append(list, sharedWritePaths[:]...)
	if home == "" {
		return list
	}
	for _, name := range homeWritePaths {
		if p := path.Join(home, name); !homePathHidden(p, rules) {
			list = append(list, p)
		}
	}
	return list
}

func homePathHidden(p string, rules PathRules) bool {
	for _, deny := range rules.CredentialDeny {
		if Covers(literalDirectory(deny), p) {
			return true
		}
	}
	for _, deny := range rules.DenyRead {
		base := literalDirectory(deny)
		if Covers(base, p) && !reopened(base, p, rules.AllowRead) {
			return true
		}
	}
	return false
}

// reopened reports whether an allowRead name at or beneath base covers p.
func reopened(base, p string, allow []PathRule) bool {
	for _, a := range allow {
		if !a.Pattern && Covers(base, a.Path) && Covers(a.Path, p) {
			return true
		}
	}
	return false
}

// literalDirectory is the path of a name, and for a pattern the longest leading directory without glob characters.
func literalDirectory(r PathRule) string {
	i := strings.IndexAny(r.Path, globCharacters)
	if !r.Pattern || i < 0 {
		return r.Path
	}
	return path.Clean(r.Path[:strings.LastIndexByte(r.Path[:i], '/')+1])
}
