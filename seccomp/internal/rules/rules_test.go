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
			if r.Notify != (r.Errno == 0) {
				t.Errorf("%s, %s: answers %v and asks the listener: %t; want one of them", f.Name, r.Call, r.Errno, r.Notify)
			}
			if !r.Notify && !slices.Contains(Errnos(), r.Errno) {
				t.Errorf("%s, %s: errno %d is in no list", f.Name, r.Call, r.Errno)
			}
			if r.Notify && r.Number != 0 {
				t.Errorf("%s, %s: a rule by number cannot ask the listener", f.Name, r.Call)
			}
		}
		if f.NotIn != nil && !slices.IsSorted(f.NotIn.Accept) {
			t.Errorf("%s: accepted values are not ascending", f.Name)
		}
	}
}

func TestErrnos_AscendAndHaveNames(t *testing.T) {
	if !slices.IsSorted(Errnos()) {
		t.Errorf("%v is not ascending", Errnos())
	}
	for _, e := range Errnos() {
		if e.String() == Errno(0).String() {
			t.Errorf("errno %d has no name", e)
		}
	}
}

// The filters that a sandbox without absent denies loads must not need a listener.
func TestFilters_OnlyTheBrokersAskAListener(t *testing.T) {
	for _, f := range Filters() {
		if want := f.Name == "names" || f.Name == "opens"; f.Notifies() != want {
			t.Errorf("%s: Notifies is %t, want %t", f.Name, f.Notifies(), want)
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
