package modetable

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
)

var update = flag.Bool("update", false, "write docs/modes.md anew")

const page = "../../docs/modes.md"

// TestPage: the page for people has this table, and no other one.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Page(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Error("docs/modes.md is not of this table: go generate ./runtime/modetable")
	}
	if _, err := Page("nothing"); err == nil {
		t.Error("a page without marks is taken")
	}
}

// TestSettings: every key that docs/settings.md has for Linux is in exactly one row, and no row has another.
func TestSettings(t *testing.T) {
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := linuxKeys(string(text))
	if len(documented) < 50 {
		t.Fatalf("only %d keys found: %q", len(documented), documented)
	}
	var listed []string
	for _, r := range rows {
		listed = append(listed, r.Settings...)
	}
	slices.Sort(listed)
	for _, k := range documented {
		if !slices.Contains(listed, k) {
			t.Errorf("no row has %s", k)
		}
	}
	for i, k := range listed {
		if !slices.Contains(documented, k) {
			t.Errorf("docs/settings.md has no %s", k)
		}
		if i > 0 && listed[i-1] == k {
			t.Errorf("two rows have %s", k)
		}
	}
}

// linuxKeys are the keys in the first column of the tables that have a column for Linux.
func linuxKeys(text string) (keys []string) {
	section, linux := "", false
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(text) {
		switch cells := strings.Split(strings.TrimSpace(line), " | "); {
		case strings.HasPrefix(line, "## "):
			section = ""
			if name := quoted.FindStringSubmatch(line); name != nil {
				section = name[1] + "."
			}
		case !strings.HasPrefix(line, "|"):
			linux = false
		case strings.HasPrefix(line, "| Key |"):
			linux = strings.HasSuffix(strings.TrimSpace(line), "| Linux |")
		case linux && !strings.HasPrefix(line, "|---") && cells[len(cells)-1] != "- |":
			before := ""
			for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
				key := m[1]
				if strings.HasPrefix(key, ".") {
					key = before[:strings.LastIndex(before, ".")] + key
				}
				before = key
				if key == "maskDuplicates" {
					key = "files[]." + key
				}
				keys = append(keys, section+key)
			}
		}
	}
	return keys
}

// TestRows: what the table says is complete, and can be told apart.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows {
		if r.ID == "" || seen[r.ID] {
			t.Errorf("%q is no name for a row, or of two", r.ID)
		}
		seen[r.ID] = true
		if r.What == "" && len(r.Settings) == 0 {
			t.Errorf("%s: about nothing", r.ID)
		}
		for i, c := range r.Cells {
			if i > 0 && c.Verdict < NoEffect && c.Text == "" {
				t.Errorf("%s, mode %s: %s, without a word", r.ID, modes[i], c.Verdict)
			}
			if strings.ContainsAny(c.Text, "\n|") {
				t.Errorf("%s, mode %s: not a cell: %q", r.ID, modes[i], c.Text)
			}
		}
	}
}

// TestRefusals: whatever fsview refuses in mode confined has a row that says so, and no other row says it of a file.
func TestRefusals(t *testing.T) {
	kinds := fsview.RefusalKinds()
	for _, k := range kinds {
		if r, ok := Find(string(k)); !ok || r.In("confined").Verdict != Refused {
			t.Errorf("fsview refuses %q, which no row says", k)
		}
	}
	for _, r := range rows {
		if r.In("confined").Verdict == Refused && !slices.Contains(kinds, fsview.RefusalKind(r.ID)) {
			t.Errorf("row %s says refused, and nothing refuses it", r.ID)
		}
	}
}

func TestExcused(t *testing.T) {
	for _, tt := range []struct {
		mode, id string
		want     bool
	}{
		{"full", "mask", false}, {"nested", "mask", false}, {"confined", "mask", true}, {"nested", "proc-write", true}, {"confined", "requests", false},
		{"confined", "other-systems", false}, {"none", "requests", true}, {"", "requests", true},
	} {
		why, got := Excused(tt.mode, tt.id)
		if got != tt.want || got != (why != "") {
			t.Errorf("%s in mode %q: %v %q", tt.id, tt.mode, got, why)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a test may excuse itself by a row that there is not")
		}
	}()
	Excused("confined", "nothing")
}
