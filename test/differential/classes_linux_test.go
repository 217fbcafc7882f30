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
	absentWrite   class = "absent-write"   // write denies of what does not exist (FS-30, FS-33)
	absentRead    class = "absent-read"    // read denies of what does not exist (FS-10)
	denyPatterns  class = "deny-patterns"  // patterns in denyRead, denyWrite and credentials (FS-12 to FS-20, FS-55)
	allowPatterns class = "allow-patterns" // patterns in allowRead and allowWrite
)

// classes are those that cases hold, beside denies and allows of what exists and mandatory denies: all of them.
// SRT_DIFF_CLASSES, a list with spaces between, narrows them down, to look into one.
var classes = []class{absentWrite, absentRead, denyPatterns, allowPatterns}

func has(c class) bool {
	text, given := os.LookupEnv("SRT_DIFF_CLASSES")
	if !given {
		return slices.Contains(classes, c)
	}
	return slices.Contains(strings.Fields(text), string(c))
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
