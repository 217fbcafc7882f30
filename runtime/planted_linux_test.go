package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
)

func newPlantedJudge(except ...string) *plantedJudge {
	guard := fsview.NewGuard(&fsview.Plan{Absent: []fsview.Absent{
		{Path: "/p/.vscode", Dir: "/p", ID: fsview.Identity{Dev: 1, Ino: 2}, Name: ".vscode", Fold: true, Write: true, Why: "protected"},
		{Path: "/p/.git/hooks", Dir: "/p/.git", ID: fsview.Identity{Dev: 1, Ino: 3}, Name: "hooks", Fold: true, Write: true, Why: "protected"},
	}})
	return &plantedJudge{Guard: guard, except: except, names: map[string]struct{}{}}
}

// made creates a name as a command would, and lets the judge see it.
func (j *plantedJudge) made(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, denied, err := j.Create(fsview.Identity{Dev: 9, Ino: 9}, func() (string, error) { return dir, nil }, name); denied || err != nil {
		t.Fatalf("%s/%s: denied %v, %v", dir, name, denied, err)
	}
}

func TestPlanted_FS38(t *testing.T) {
	root := t.TempDir()
	j := newPlantedJudge(filepath.Join(root, "tmp"))
	for _, c := range []struct{ dir, name string }{
		{"a/b", ".VSCode"}, // told
		{"a", "hooks"},     // a name that says nothing by itself
		{"a", "main.go"},
		{"node_modules/x", ".vscode"}, // a package's own
		{"tmp", ".vscode"},            // the command's own business
	} {
		j.made(t, filepath.Join(root, c.dir), c.name)
	}
	line := j.line()
	if want := filepath.Join(root, "a/b/.VSCode"); !strings.Contains(line, want) || strings.Count(line, root) != 1 {
		t.Errorf("want %s alone, got %q", want, line)
	}
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if line := j.line(); line != "" {
		t.Errorf("what is gone again is told: %q", line)
	}
}

func TestPlanted_RefusalsAndErrorsStay(t *testing.T) {
	j := newPlantedJudge()
	if why, denied, err := j.Create(fsview.Identity{Dev: 1, Ino: 2}, nil, ".vscode"); !denied || why != "protected" || err != nil {
		t.Errorf("FS-30: %q, %v, %v", why, denied, err)
	}
	gone := errors.New("gone")
	if _, _, err := j.Create(fsview.Identity{}, func() (string, error) { return "", gone }, ".vscode"); !errors.Is(err, gone) {
		t.Errorf("a directory that cannot be told: %v", err)
	}
	var none *plantedJudge
	if none.line() != "" {
		t.Error("no judge tells something")
	}
}

func TestPlanted_IsBounded(t *testing.T) {
	root := t.TempDir()
	j := newPlantedJudge()
	for i := range shownPlanted + 3 {
		j.made(t, filepath.Join(root, fmt.Sprintf("d%d\n\x1b", i)), ".vscode")
	}
	line := j.line()
	if strings.Count(line, root) != shownPlanted || !strings.Contains(line, "and 3 more") || strings.ContainsAny(line, "\n\x1b") {
		t.Errorf("%d names: %q", shownPlanted+3, line)
	}
	for i := range 2 * maxPlanted {
		j.remember(fmt.Sprint("/x", i))
	}
	if len(j.names) != maxPlanted {
		t.Errorf("%d names are remembered", len(j.names))
	}
}
