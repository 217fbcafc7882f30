package bpf

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func takenAway(name string) Change {
	return Change{Kind: ChangeGone, Old: TracedPath{Dir: "/d", Text: name}}
}

// What is found by names is what a look at each change would find, after the oldest have been forgotten, too.
func TestHistory_Finds(t *testing.T) {
	var h History
	r := rand.New(rand.NewPCG(1, 2))
	all := []Change{}
	names := []string{"a", "b", "c", "e"}
	for range maxHistory + 500 {
		c := takenAway(names[r.IntN(3)])
		switch r.IntN(40) {
		case 0:
			c = Change{}
		case 1:
			c = Change{Kind: ChangeMove, Old: c.Old, New: TracedPath{Dir: "/d", Text: "x/" + names[r.IntN(3)] + "/"}}
		}
		all = append(all, c)
		h.add(c)
	}
	first := uint64(len(all) - maxHistory)
	concerns := func(k uint64, of []string) bool {
		return all[k].Kind == ChangeUnknown || slices.Contains(of, all[k].Old.LastName()) || slices.Contains(of, all[k].New.LastName())
	}
	for range 2000 {
		of, at := []string{names[r.IntN(4)], names[r.IntN(4)]}, uint64(r.IntN(len(all)+1))
		want := at
		for want >= first && want < uint64(len(all)) && !concerns(want, of) {
			want++
		}
		if got, c := h.Next(of, at); got != want || want >= first && want < uint64(len(all)) && c.text() != all[want].text() {
			t.Fatalf("%q from %d: %d, want %d", of, at, got, want)
		}
		last := at
		for last > first && !concerns(last-1, of) {
			last--
		}
		if got, ok := h.Last(of, at); ok != (at > 0) || ok && got != last-1 {
			t.Fatalf("%q before %d: %d, %v, want %d", of, at, got, ok, int(last)-1)
		}
	}
	for k := range uint64(len(all)) {
		if got := h.At(k); k < first && got.Kind != ChangeUnknown || k >= first && fmt.Sprint(got) != fmt.Sprint(all[k]) {
			t.Fatalf("%d: %+v", k, got)
		}
	}
	if h.At(uint64(len(all))).Kind != ChangeUnknown || h.end() != uint64(len(all)) {
		t.Error("there is something behind the end")
	}
}

// What found no room in the kernel's buffer is something unknown at its place, however often the same is said of it.
func TestHistory_Gaps(t *testing.T) {
	var h History
	h.add(takenAway("a"))
	for _, total := range []uint32{0, 2, 2, 1, 3} {
		h.noteGaps(total)
	}
	if h.end() != 3 || h.At(1).Kind != ChangeUnknown || h.Known(0) || !h.Known(3) {
		t.Errorf("%d changes", h.end())
	}
	var none *History
	if none.Settle() != 0 || !none.Known(0) {
		t.Error("something has happened in no history")
	}
	if _, ok := (&History{}).Last([]string{"a"}, 0); ok {
		t.Error("something was before the beginning")
	}
}

func TestTracedPath_LastName(t *testing.T) {
	for _, c := range []struct{ dir, text, want string }{
		{"/d", "a", "a"}, {"/d", "a/b//", "b"}, {"/d", "..", ""}, {"/d", "a/.", ""}, {"/d/e", "", "e"}, {"/", "", ""}, {"/", "/", ""},
	} {
		if got := (TracedPath{Dir: c.dir, Text: c.text}).LastName(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.dir, c.text, got, c.want)
		}
	}
}
