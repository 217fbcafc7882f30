package policy

import (
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// GlobPatternWarnings are the pattern entries that are not enforced in full, as configured, each once: first those of
// denyWrite, then those of denyRead and of credential files with mode "deny" (FS-64). live says that what a command makes
// and opens is judged while it runs: then there are none. Else these hold for what exists at the start, not for names
// that come to exist later.
//
// Patterns of the allow lists are never among them: they count for what exists at the start and no more (FS-17, FS-55),
// and the plan warns of one that allows nothing. The answer does not depend on the disk, so that entries which are names
// too are included (FS-16); marked entries are not. Callers give no lists under filesystem.disabled (FS-56).
func GlobPatternWarnings(in PathInput, live bool) []string {
	if live {
		return nil
	}
	var list []string
	have := make(map[string]bool)
	add := func(entry string, readList bool) {
		if strings.ContainsAny(dropDeepWildcard(entry, readList), globCharacters) && !have[entry] {
			have[entry] = true
			list = append(list, entry)
		}
	}
	entries := func(from []config.PathEntry, readList bool) {
		for _, e := range from {
			if !e.Literal {
				add(e.Path, readList)
			}
		}
	}
	entries(in.DenyWrite, false)
	clear(have)
	entries(in.DenyRead, true)
	for _, f := range in.CredentialFiles {
		if f.Mode == config.ModeDeny {
			add(f.Path, true)
		}
	}
	return list
}
