package fsview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLaterRules(t *testing.T) {
	plan := &Plan{
		Absent:   []Absent{{Path: "/a", Write: true, Fold: true, Why: "x"}, {Path: "/b", Write: true, Read: true, Hard: true}},
		Patterns: []Pattern{{Text: "/p/*.pem", Read: true, Why: "y"}, {Text: "/q*", Write: true}},
	}
	want := []LaterRule{
		{"not to be created, in any letter case", "/a", "x"}, {"not to be created, not to be opened, whatever is allowed", "/b", ""},
		{"pattern: not to be opened", "/p/*.pem", "y"}, {"pattern: not to be created", "/q*", ""},
	}
	if d := cmp.Diff(want, plan.LaterRules()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
