package policy

import (
	"strconv"

	"github.com/srt-sandbox/srt/runtime/config"
)

// ResolveMasks gives the credential files that are masked, in their order, as absolute texts: always names, never patterns
// (FS-58). They also count where the filesystem rules are disabled (FS-56). The error is a *PathError for the first entry
// that cannot be used.
func ResolveMasks(in PathInput) ([]PathRule, error) {
	var rules PathRules
	var masks []PathRule
	for i, f := range in.CredentialFiles {
		if f.Mode != config.ModeMask {
			continue
		}
		key := "credentials.files." + strconv.Itoa(i) + ".path"
		entry := config.PathEntry{Path: f.Path, Literal: true}
		if err := rules.add(pathList{&masks, true, true}, key, entry, in); err != nil {
			return nil, err
		}
	}
	return masks, nil
}

// ReadView is what a program is told of the read rules in force, as absolute paths and patterns (FS-56).
type ReadView struct {
	DenyOnly        []string `json:"denyOnly"`
	AllowWithinDeny []string `json:"allowWithinDeny"`
}

// WriteView is what a program is told of the write rules in force, as absolute paths and patterns (FS-56). The default
// write paths are in it (FS-28), the protected names are not (FS-36).
type WriteView struct {
	AllowOnly       []string `json:"allowOnly"`
	DenyWithinAllow []string `json:"denyWithinAllow"`
}

// Views gives what the library answers about the lists of a command. The credential denies stand with the read denies.
// home is absolute, or empty when there is none. With disabled everything may be read and written, and no list counts. No
// slice is nil.
func Views(disabled bool, home string, rules PathRules) (ReadView, WriteView) {
	if disabled {
		return ReadView{DenyOnly: []string{}, AllowWithinDeny: []string{}}, WriteView{AllowOnly: []string{"/"}, DenyWithinAllow: []string{}}
	}
	return ReadView{DenyOnly: texts(nil, rules.DenyRead, rules.CredentialDeny), AllowWithinDeny: texts(nil, rules.AllowRead)},
		WriteView{AllowOnly: texts(DefaultWritePaths(home, rules), rules.AllowWrite), DenyWithinAllow: texts(nil, rules.DenyWrite)}
}

// texts are the paths of lists after those given, each once.
func texts(list []string, lists ...[]PathRule) []string {
	out := append([]string{}, list...)
	seen := make(map[string]bool, len(out))
	for _, p := range out {
		seen[p] = true
	}
	for _, rules := range lists {
		for _, r := range rules {
			if !seen[r.Path] {
				seen[r.Path] = true
				out = append(out, r.Path)
			}
		}
	}
	return out
}
