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
	Home            string // what `~` stands for; empty when $HOME is empty: then `~` names nothing, which is a warning in an allow list and an error in a deny list (FS-5)
}

// ResolvePaths turns the entries of every list into absolute texts (FS-5, FS-6, FS-12). It asks nothing of the disk.
// The error is a *PathError for the first entry, in the order of the fields of PathRules, that cannot be used.
func ResolvePaths(in PathInput) (PathRules, error) {
	var rules PathRules
	if !strings.HasPrefix(in.Cwd, "/") {
		return rules, &PathError{Key: "working directory", Entry: in.Cwd, Reason: "is not an absolute path"}
	}
	lists := []struct {
		pathList
		name    string
		entries []config.PathEntry
	}{
		{pathList{&rules.DenyRead, true, true}, "denyRead", in.DenyRead},
		{pathList{&rules.AllowRead, true, false}, "allowRead", in.AllowRead},
		{pathList{&rules.AllowWrite, false, false}, "allowWrite", in.AllowWrite},
		{pathList{&rules.DenyWrite, false, true}, "denyWrite", in.DenyWrite},
	}
	for _, l := range lists {
		for i, e := range l.entries {
			key := "filesystem." + l.name + "." + strconv.Itoa(i)
			if err := rules.add(l.pathList, key, e, in); err != nil {
				return PathRules{}, err
			}
		}
	}
	for i, f := range in.CredentialFiles {
		if f.Mode != config.ModeDeny {
			continue
		}
		key := "credentials.files." + strconv.Itoa(i) + ".path"
		if err := rules.add(pathList{&rules.CredentialDeny, true, true}, key, config.PathEntry{Path: f.Path}, in); err != nil {
			return PathRules{}, err
		}
	}
	return rules, nil
}

// pathList is where the entries of one list go, and how they are taken.
type pathList struct {
	to   *[]PathRule
	read bool // a read list (FS-6)
	deny bool
}

func (r *PathRules) add(l pathList, key string, e config.PathEntry, in PathInput) error {
	rule, named, err := pathText(e.Path, e.Literal, l.read, in.Cwd, in.Home)
	if err == nil && !named && l.deny {
		// A deny that cannot be honoured stops the start; what it was to protect is still there.
		err = &PathError{Entry: e.Path, Reason: "names nothing, because HOME is empty, so it would deny nothing; set HOME or write the path in full"}
	}
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
	if rule.Pattern && rooted(e.Path) && strings.HasSuffix(e.Path, "/") {
		// As a pattern it matches nothing (FS-3).
		if l.deny {
			return &PathError{Key: key, Entry: e.Path, Reason: `is a pattern that ends in "/", so it would deny nothing; leave the "/" out`}
		}
		rule.Pattern, rule.Anchor = false, ""
	}
	*l.to = append(*l.to, rule)
	return nil
}

// rooted reports whether an entry's place does not depend on the working directory.
func rooted(entry string) bool { return strings.HasPrefix(entry, "/") || strings.HasPrefix(entry, "~") }
