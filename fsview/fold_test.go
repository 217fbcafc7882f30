package fsview

import "testing"

func TestFoldName(t *testing.T) {
	same := [][]string{
		{".bashrc", ".BashRC", ".BASHRC", ".ba\u017fhrc", ".ba\u200dshrc", ".bashrc.", ".bashrc "},
		{"hooks", "HOO\u212aS", "\ufeffhooks"},
		{"config", "con\ufb01g", "CONF\u0130G"},
		{"\u00e9", "e\u0301", "\u00c9"},
		{"strasse", "stra\u00dfe", "STRA\u1e9eE"},
	}
	for _, list := range same {
		for _, name := range list {
			if foldName(name) != foldName(list[0]) {
				t.Errorf("%q is not taken for %q", name, list[0])
			}
		}
	}
	for _, pair := range [][2]string{{"new", "news"}, {".bashrc", "bashrc"}, {"a", "\xff"}, {"..", "."}, {"a.b", "ab"}} {
		if foldName(pair[0]) == foldName(pair[1]) {
			t.Errorf("%q is taken for %q", pair[0], pair[1])
		}
	}
}

// TestAbsentIgnoresCase_FS30: a rule about a directory that ignores case holds for every spelling, and the directory is
// asked once, for such rules alone.
func TestAbsentIgnoresCase_FS30(t *testing.T) {
	tree := newFakeTree(t, "d /h/p/c nocase;d /h/p/d")
	plan, _ := built(t, tree, "aW=. dW=c/New dW=d/New dR=c/old")
	for _, a := range plan.Absent {
		if want := a.Dir == "/h/p/c" || a.Mandatory; a.Fold != want {
			t.Errorf("%s: Fold is %v", a.Path, a.Fold)
		}
	}
	g := NewGuard(plan)
	dir, _ := tree.Lstat("/h/p/c")
	other, _ := tree.Lstat("/h/p/d")
	at := func() (string, error) { return "/h/p/c", nil }
	if _, denied, err := g.Create(dir.ID, at, "NEW"); !denied || err != nil || !g.Suspect("NEW") {
		t.Errorf("NEW can be made where it is the same as New: %v", err)
	}
	if _, denied, _ := g.Create(other.ID, func() (string, error) { return "/h/p/d", nil }, "NEW"); denied {
		t.Error("NEW cannot be made where it is another name (FS-12)")
	}
	if _, denied := g.Open("/h/p/c/OLD/x"); !denied {
		t.Error("OLD can be read where it is the same as old")
	}
}
