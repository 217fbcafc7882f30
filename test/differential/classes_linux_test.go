package differential

import (
	"os"
	"strings"

	"github.com/srt-sandbox/srt/test/differential/internal/model"
)

// on lists the classes of rules that are compared.
var on = strings.Fields(os.Getenv("SRT_DIFF_CLASSES"))

func has(class string) bool {
	for _, c := range on {
		if c == class || c == "all" {
			return true
		}
	}
	return false
}

func allowed(sc scenario) bool {
	pol := sc.Policy
	lists := []struct {
		entries    []model.Entry
		read, deny bool
	}{{pol.DenyRead, true, true}, {pol.Credential, true, true}, {pol.AllowRead, true, false}, {pol.DenyWrite, false, true}, {pol.AllowWrite, false, false}}
	for _, l := range lists {
		for _, e := range l.entries {
			pattern := !e.Marked && strings.ContainsAny(strings.TrimSuffix(e.Text, "/**"), "*?[]")
			switch {
			case pattern && l.deny && !has("denyPatterns"), pattern && !l.deny && !has("allowPatterns"):
				return false
			case !pattern && l.deny && l.read && !has("absentRead") && !model.Exists(sc.Items, e, true):
				return false
			case !pattern && l.deny && !l.read && !has("absentWrite") && !model.Exists(sc.Items, e, false):
				return false
			}
		}
	}
	return true
}
