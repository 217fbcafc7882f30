package fsview

import (
	"slices"
	"strings"
)

// protectedWherever is the rule that would refuse writing at a path once any entry granted it, empty if none would: srt's own
// files (FS-51), and names that are protected in whatever directory can be written (FS-35), as far as no setting lifts that.
// To say that an entry lacks would be advice that does not help.
func (pl *Plan) protectedWherever(location string) string {
	if slices.Contains(pl.Own, location) {
		return "srt's own file"
	}
	before := ""
	for name := range strings.SplitSeq(strings.ToLower(location[1:]), "/") {
		switch {
		case name == claudeName: // what lies in it may be free
		case slices.Contains(startNames[:], name):
			return "protected name " + name
		case before == claudeName && slices.Contains(claudeNames[:], name):
			return "protected name " + claudeName + "/" + name
		case before == ".git" && (name == "hooks" || name == "commondir"):
			return "protected name .git/" + name
		}
		before = name
	}
	return ""
}
