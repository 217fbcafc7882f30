package config

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guideRows are the rows of a section's tables in docs/library.md, split into cells.
func guideRows(t *testing.T, section string) (rows [][]string) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(guide), "\n"+section+"\n")
	if !found {
		t.Fatalf("docs/library.md has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) > 3 && !strings.HasPrefix(cells[1], "---") {
			rows = append(rows, cells[1:len(cells)-1])
		}
	}
	return rows[1:] // the first is the head
}

// quoted are the texts of a cell that stand in backquotes.
func quoted(cell string) (list []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// TestLIB21_LIB22_LIB23_TheGuideHasTheTableOfEffects: docs/library.md lists every setting that has an effect on Linux under the
// moment at which a change counts.
func TestLIB21_LIB22_LIB23_TheGuideHasTheTableOfEffects(t *testing.T) {
	bare, whole := &Config{}, &Config{Credentials: &Credentials{}, Network: Network{TLSTerminate: &TLSTerminate{}}}
	want := map[string][]string{}
	for _, row := range settingTable() {
		var when string
		switch effect := row.effect("linux", bare); {
		case effect == Live:
			when = "from the next connection"
		case effect == Fixed && row.effect("linux", whole) == Live:
			when = "the same, if the session began"
		case effect == NextLaunch:
			when = "from the next launch"
		case effect == Fixed:
			when = "in a new session"
		default:
			continue
		}
		want[when] = append(want[when], row.path)
	}
	rows := guideRows(t, "## Updates")
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
	for _, row := range rows {
		found := false
		for when, paths := range want {
			if !strings.HasPrefix(strings.TrimSpace(row[0]), when) {
				continue
			}
			found = true
			has := quoted(row[1])
			slices.Sort(has)
			slices.Sort(paths)
			if !slices.Equal(has, paths) {
				t.Errorf("%s:\nthe guide has %v\nthe code has  %v", when, has, paths)
			}
		}
		if !found {
			t.Errorf("no effect of the code is %q", row[0])
		}
	}
}

// TestLIB13_TheGuideHasTheTableOfOverrides: what docs/library.md says can be overridden can, and every other setting is refused by
// name.
func TestLIB13_TheGuideHasTheTableOfOverrides(t *testing.T) {
	can := map[string]bool{}
	for _, row := range guideRows(t, "### Overrides") {
		for _, path := range quoted(row[0]) {
			can[path] = true
		}
	}
	known := map[string]bool{}
	for _, row := range settingTable() {
		known[row.path] = true
		var value any = json.RawMessage("null")
		names := strings.Split(row.path, ".")
		for _, name := range slices.Backward(names) {
			value = map[string]any{name: value}
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		_, err = DecodeOverride(text)
		refused := err != nil && strings.Contains(err.Error(), "cannot be overridden for one command")
		if refused == can[row.path] {
			t.Errorf("%s: the guide says that it can be overridden: %v; the code says: %v", row.path, can[row.path], err)
		}
	}
	for path := range can {
		if !known[path] {
			t.Errorf("%s is no setting", path)
		}
	}
}

// TestLIB21_CLI32_TheControlChannelHasTheLiveSettings: docs/cli.md names the settings that a line of the control channel changes.
func TestLIB21_CLI32_TheControlChannelHasTheLiveSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n**What changes.** ")
	text, _, found := strings.Cut(text, ", from the next")
	if !found {
		t.Fatal("docs/cli.md does not say what changes")
	}
	var want []string
	for _, row := range settingTable() {
		if row.effect("linux", &Config{}) == Live {
			want = append(want, row.path[strings.LastIndexByte(row.path, '.')+1:])
		}
	}
	has := quoted(strings.ReplaceAll(text, "`network.", "`"))
	slices.Sort(has)
	slices.Sort(want)
	if !slices.Equal(has, want) {
		t.Errorf("the page has %v\nthe code has %v", has, want)
	}
}
