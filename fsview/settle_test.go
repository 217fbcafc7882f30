package fsview

import (
	"slices"
	"strings"
	"testing"
)

// TestLinksInHiddenDirectories_FS22: a re-allowed link shows only what lies in the same hidden directory and is not denied.
func TestLinksInHiddenDirectories_FS22(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		shown             bool
	}{
		{"target in the same directory", "l /h/p/s/l t;f /h/p/s/t", "dR=s aR=s/l", true},
		{"the same, by a pattern", "l /h/p/s/l t;f /h/p/s/t", "dR=s* aR=s/l", true},
		{"another match of one pattern", "l /h/p/s/l ../s2/t;f /h/p/s2/t", "dR=s* aR=s/l", false},
		{"another match of one pattern, deeper", "l /h/p/a/x/l ../../b/x/t;f /h/p/b/x/t", "dR=**/x aR=a/x/l", false},
		{"both in the one deny of the root", "l /h/p/s/l /h/o;f /h/o", "dR=/ aR=s/l", true},
		{"in another directory that the deny of the root spreads to", "l /h/p/s/l /w/o;f /w/o", "dR=/ aR=s/l", true},
		{"denied later, by name", "l /h/p/s/l t;d /h/p/s/t", "dR=s dR=s/t/none aR=s/l", false},
		{"denied later, by a pattern", "l /h/p/s/l t;d /h/p/s/t", "dR=s dR=s/t/* aR=s/l", false},
	}
	for _, tt := range tests {
		plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
		shown := slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Kind == Reveal && strings.HasSuffix(s.Path, "/l") })
		if shown != tt.shown {
			t.Errorf("%s: shown %v\n%s", tt.name, shown, listing(plan))
		}
	}
}
