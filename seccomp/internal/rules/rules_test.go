package rules

import (
	"slices"
	"testing"
)

func TestFilters_AreWellFormed(t *testing.T) {
	for _, f := range Filters() {
		for _, r := range f.Rules {
			if (len(r.When) == 0) != (r.Text == "") {
				t.Errorf("%s, %s: a condition without text or a text without condition", f.Name, r.Call)
			}
			if r.Number != 0 && len(r.When) != 0 {
				t.Errorf("%s, %s: a rule by number cannot have conditions", f.Name, r.Call)
			}
			for _, c := range r.When {
				if c.Index > 5 || c.Value&^c.Mask != 0 {
					t.Errorf("%s, %s: condition %+v can never hold", f.Name, r.Call, c)
				}
			}
			if r.Errno.String() == "unnamed errno" {
				t.Errorf("%s, %s: errno %d has no name", f.Name, r.Call, r.Errno)
			}
		}
		if f.NotIn != nil && !slices.IsSorted(f.NotIn.Accept) {
			t.Errorf("%s: accepted values are not ascending", f.Name)
		}
	}
}

func TestKnown_RangesAscendAndDoNotTouch(t *testing.T) {
	for _, a := range Arches() {
		last := -2
		for _, r := range Known(a) {
			if int(r.First) <= last+1 && last >= 0 || r.Last < r.First {
				t.Errorf("%s: range %+v after %d", a, r, last)
			}
			last = int(r.Last)
		}
	}
}
