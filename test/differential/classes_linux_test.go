package differential

import (
	"os"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
)

// class is a kind of rule that cases may hold.
type class string

const (
	absentWrite     class = "absent-write"     // write denies of what does not exist (FS-30, FS-33)
	absentRead      class = "absent-read"      // read denies of what does not exist (FS-10)
	denyPatterns    class = "deny-patterns"    // patterns in denyRead, denyWrite and credentials (FS-12 to FS-20, FS-55)
	allowPatterns   class = "allow-patterns"   // patterns in allowRead and allowWrite
	absentMandatory class = "absent-mandatory" // mandatory names of the working directory that do not exist (FS-37)
	ownMandatory    class = "own-mandatory"    // mandatory names that are links, or that allowWrite names, where nothing around is writable
)

// classes are those that cases hold, beside denies and allows of what exists. SRT_DIFF_CLASSES, a list with spaces between,
// or "all", replaces them.
var classes = []class{absentWrite, allowPatterns}

func has(c class) bool {
	text, given := os.LookupEnv("SRT_DIFF_CLASSES")
	if !given {
		return slices.Contains(classes, c)
	}
	words := strings.Fields(text)
	return slices.Contains(words, "all") || slices.Contains(words, string(c))
}

// allowed reports whether a case holds only rules of the classes that are compared.
func allowed(sc scenario) bool {
	pol := sc.Policy
	lists := []struct {
		entries           []model.Entry
		read              bool
		patterns, missing bool
	}{
		{pol.DenyRead, true, has(denyPatterns), has(absentRead)},
		{pol.Credential, true, has(denyPatterns), has(absentRead)},
		{pol.DenyWrite, false, has(denyPatterns), has(absentWrite)},
		{pol.AllowRead, true, has(allowPatterns), true},
		{pol.AllowWrite, false, has(allowPatterns), true},
	}
	for _, l := range lists {
		for _, e := range l.entries {
			pattern, exists := model.Look(sc.Items, e, l.read)
			if pattern && !l.patterns || !pattern && !exists && !l.missing {
				return false
			}
		}
	}
	return true
}
