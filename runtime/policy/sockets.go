package policy

import (
	"errors"
	"slices"
	"strconv"
)

// RuleUnixSockets is the list of sockets of the host as a place in the settings: the rule of a refusal where it lacks an
// entry. RuleAllUnixSockets lifts it.
const (
	RuleUnixSockets    = "network.allowUnixSockets"
	RuleAllUnixSockets = "network.allowAllUnixSockets"
)

// ResolveSockets turns the entries of network.allowUnixSockets into absolute, clean texts (NET-80), each with the entry behind
// it: "~" is in.Home, a relative entry starts at in.Cwd, and no character is special. It asks nothing of the disk, so links are
// still in them. An entry that names nothing because there is no home is left out, which grants less. The error is a *PathError.
func ResolveSockets(entries []string, in PathInput) ([]PathRule, error) {
	var out []PathRule
	for i, entry := range entries {
		rule, named, err := pathText(entry, true, false, in.Cwd, in.Home)
		rule.Key = RuleUnixSockets + "." + strconv.Itoa(i)
		if err != nil {
			if bad, ok := errors.AsType[*PathError](err); ok {
				bad.Key = rule.Key
			}
			return nil, err
		}
		if named {
			out = append(out, rule)
		}
	}
	return out, nil
}

// SocketAllowed tells whether a location is one of the paths or lies beneath one (NET-80). All are absolute, clean and
// without links.
func SocketAllowed(paths []string, location string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return Covers(p, location) })
}
