package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// PathInput is what the path lists of one command are resolved from. Lists are as configured.
type PathInput struct {
	DenyRead, AllowRead, AllowWrite, DenyWrite []config.PathEntry
	// CredentialFiles is credentials.files whole: those with mode "deny" become read denies (FS-57).
	CredentialFiles []config.FileCredential
	Cwd             string // absolute; where relative entries start
	Home            string // what `~` stands for; empty when $HOME is empty, and then `~` names nothing (FS-5)
}

// ResolvePaths turns the entries of every list into absolute texts (FS-5, FS-6, FS-12). It asks nothing of the disk.
// The error is a *PathError for the first entry, in the order of the fields of PathRules, that cannot be used.
func ResolvePaths(in PathInput) (PathRules, error) {
	var rules PathRules
	if !strings.HasPrefix(in.Cwd, "/") {
		return rules, &PathError{Key: "working directory", Entry: in.Cwd, Reason: "is not an absolute path"}
	}
	lists := []struct {
		name     string
		entries  []config.PathEntry
		readList bool
		to       *[]PathRule
	}{
		{"denyRead", in.DenyRead, true, &rules.DenyRead},
		{"allowRead", in.AllowRead, true, &rules.AllowRead},
		{"allowWrite", in.AllowWrite, false, &rules.AllowWrite},
		{"denyWrite", in.DenyWrite, false, &rules.DenyWrite},
	}
	for _, l := range lists {
		for i, e := range l.entries {
			key := "filesystem." + l.name + "." + strconv.Itoa(i)
			if err := rules.add(l.to, key, e, l.readList, in); err != nil {
				return PathRules{}, err
			}
		}
	}
	for i, f := range in.CredentialFiles {
		if f.Mode != config.ModeDeny {
			continue
		}
		key := "credentials.files." + strconv.Itoa(i) + ".path"
		if err := rules.add(&rules.CredentialDeny, key, config.PathEntry{Path: f.Path}, true, in); err != nil {
			return PathRules{}, err
		}
	}
	return rules, nil
}

func (r *PathRules) add(to *[]PathRule, key string, e config.PathEntry, readList bool, in PathInput) error {
	rule, named, err := pathText(e.Path, e.Literal, readList, in.Cwd, in.Home)
	if err != nil {
		var bad *PathError
		if errors.As(err, &bad) {
			bad.Key = key
		}
		return err
	}
	if !named {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%s (%q) names nothing, because HOME is empty; set HOME or write the path in full", key, e.Path))
		return nil
	}
	rule.Key = key
	*to = append(*to, rule)
	return nil
}
