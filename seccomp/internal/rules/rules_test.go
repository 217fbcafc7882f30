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
		}
		for _, j := range f.Judged {
			choiceIsWellFormed(t, f.Name+", "+j.Call.Name, -1, j.By)
		}
	}
}

// choiceIsWellFormed checks a choice that is reached when argument last has been looked at.
func choiceIsWellFormed(t *testing.T, where string, last int, c *Choice) {
	t.Helper()
	where += ", " + c.Name
	if int(c.Index) <= last || c.Index > 5 {
		t.Errorf("%s: argument %d after %d", where, c.Index, last)
	}
	if c.Ask == slices.Contains(Errnos(), c.Otherwise) || c.Why == "" || c.Name == "" || len(c.Cases) == 0 {
		t.Errorf("%s: answers other values with %v (%q)", where, c.Otherwise, c.Why)
	}
	for i, v := range c.Cases {
		if v.Value&^c.Mask != 0 || i > 0 && c.Cases[i-1].Value >= v.Value {
			t.Errorf("%s: %s can never hold, or does not follow in order", where, v.Name)
		}
		if v.Name == "" || (v.Errno != 0) != (v.Why != "") || v.Errno != 0 && (v.Next != nil || !slices.Contains(Errnos(), v.Errno)) {
			t.Errorf("%s: %+v is not one answer with its reason", where, v)
		}
		if v.Next != nil {
			choiceIsWellFormed(t, where+" = "+v.Name, int(c.Index), v.Next)
		}
	}
}

// What a judged call is refused for, as people read it.
func TestJudged_Refusals(t *testing.T) {
	protocol := Choice{Index: 2, Name: "c", Cases: []Case{{Name: "X"}, {Name: "Y"}}, Otherwise: EPROTONOSUPPORT, Why: "why c"}
	j := Judged{By: &Choice{Name: "a", Cases: []Case{{Name: "P", Next: &protocol}, {Name: "Q"}, {Name: "R", Errno: EPERM, Why: "why R"}},
		Otherwise: EAFNOSUPPORT, Why: "why a"}}
	want := []Refusal{
		{"a = P, c other than X, Y", EPROTONOSUPPORT, false, "why c"},
		{"a = R", EPERM, false, "why R"},
		{"a other than P, Q, R", EAFNOSUPPORT, false, "why a"},
	}
	if got := j.Refusals(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
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

// The filters that a sandbox without a broker loads must not need a listener.
func TestFilters_OnlyTheBrokersAskAListener(t *testing.T) {
	for _, f := range Filters() {
		if want := slices.Contains([]string{"names", "opens", "network", "observe-writes", "observe-all", "changes", "confined-network",
			"made-sockets"}, f.Name); f.Notifies() != want {
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
