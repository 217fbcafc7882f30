package fsview

import "testing"

// FS-51, FS-54: the directory in which srt keeps its journal is neither seen nor made by a command, and its missing parents,
// which are everybody's, can be made.
func TestPrivate_FS51(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		hidden            bool   // the directory is
		pattern           string // that denies its making
	}{
		{"there", "d /h/.local/state/srt", "aW=~ private=/h/.local/state/srt", true, ""},
		{"there, and nothing may be written", "d /h/.local/state/srt", "private=/h/.local/state/srt", true, ""},
		{"there, and allowed", "d /h/.local/state/srt", "aR=~/.local aW=~/.local/state/srt private=/h/.local/state/srt", true, ""},
		{"a link to it", "l /h/.local/state ../s;d /h/s/srt", "aW=~ private=/h/.local/state/srt", true, ""},
		{"absent", "d /h", "aW=~ private=/h/.local/state/srt", false, "/h/.local/state/srt"},
		{"absent, a name with a pattern in it", "d /h", "aW=~ private=/h/[x]/srt", false, "/h/[[]x[]]/srt"},
		{"absent where nothing can be made", "d /h", "aW=. private=/h/.local/state/srt", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			hidden := false
			for _, s := range plan.Steps {
				hidden = hidden || s.Kind == HideDir && (s.Path == "/h/.local/state/srt" || s.Path == "/h/s/srt")
			}
			if hidden != tt.hidden {
				t.Errorf("hidden: %v", hidden)
			}
			pattern := ""
			for _, p := range plan.Patterns {
				if pattern = p.Text; !p.Write || p.Read {
					t.Errorf("a pattern that does more than deny creation: %+v", p)
				}
			}
			if tt.pattern == "" != (pattern == "") {
				t.Fatalf("pattern: %q", pattern)
			}
			if tt.pattern == "" {
				return
			}
			g := NewGuard(plan)
			in := func(dir string) func() (string, error) { return func() (string, error) { return dir, nil } }
			for dir, want := range map[string]bool{"/h/.local/state": tt.pattern == "/h/.local/state/srt", "/h/p": false, "/h/[x]": tt.pattern != "/h/.local/state/srt"} {
				if _, denied, err := g.Create(Identity{}, in(dir), "srt"); denied != want || err != nil {
					t.Errorf("srt in %s: denied %v, %v", dir, denied, err)
				}
			}
			if g.Suspect(".local") {
				t.Error("a missing parent cannot be made")
			}
		})
	}
}

func TestPrivate_CannotBeInspected_FS11(t *testing.T) {
	plan, _ := built(t, newFakeTree(t, "d /h/p;d /h/.local/state eio"), "private=/h/.local/state/srt")
	for _, s := range plan.Steps {
		if s.Kind == HideDir && s.Path == "/h/.local" {
			return
		}
	}
	t.Error("what stands for it is not hidden")
}

// CLI-30: the FIFO or file over which the caller is told what to do is not seen by a command, whatever the settings allow.
func TestPrivateFiles_CLI30(t *testing.T) {
	tests := []struct {
		name, tree, rules string
		hidden            bool
	}{
		{"in a tree that is written to", "p /h/p/ctl", "aW=. privateFile=/h/p/ctl", true},
		{"and nothing may be written", "p /h/p/ctl", "privateFile=/h/p/ctl", true},
		{"allowed by its name", "p /h/p/ctl", "dR=~ aR=/h/p/ctl aW=/h/p/ctl privateFile=/h/p/ctl", true},
		{"without any other rule", "f /h/p/ctl", "disabled privateFile=/h/p/ctl", true},
		{"a link to it", "p /h/p/ctl;l /h/p/link ctl", "aW=. privateFile=/h/p/link", true},
		{"a directory", "d /h/p/ctl", "aW=. privateFile=/h/p/ctl", false},
		{"gone", "d /h/p", "aW=. privateFile=/h/p/ctl", false},
		{"gone, without any other rule", "d /h/p", "disabled privateFile=/h/p/ctl", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan, _ := built(t, newFakeTree(t, "d /h/p;"+tt.tree), tt.rules)
			hidden := plan.Hides("/h/p/ctl")
			if hidden != tt.hidden {
				t.Errorf("hidden: %v in %+v", hidden, plan.Steps)
			}
		})
	}
}
