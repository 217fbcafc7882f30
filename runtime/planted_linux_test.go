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
	return &plantedJudge{Guard: guard, except: except, names: map[string]plantedBefore{}}
}

// made creates a name as a command would, and lets the judge see it.
func (j *plantedJudge) made(t *testing.T, dir, name string) {
	t.Helper()
	j.tried(t, dir, name)
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// tried lets the judge see an attempt.
func (j *plantedJudge) tried(t *testing.T, dir, name string) {
	t.Helper()
	if _, denied, err := j.Create(fsview.Identity{Dev: 9, Ino: 9}, func() (string, error) { return dir, nil }, name); denied || err != nil {
		t.Fatalf("%s/%s: denied %v, %v", dir, name, denied, err)
	}
}

func (j *plantedJudge) text() string {
	line, _ := j.line()
	return line
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
	line := j.text()
	if want := filepath.Join(root, "a/b/.VSCode"); !strings.Contains(line, want) || strings.Count(line, root) != 1 {
		t.Errorf("want %s alone, got %q", want, line)
	}
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if line := j.text(); line != "" {
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
	if none.text() != "" {
		t.Error("no judge tells something")
	}
}

func TestPlanted_IsBounded(t *testing.T) {
	root := t.TempDir()
	j := newPlantedJudge()
	for i := range shownPlanted + 3 {
		j.made(t, filepath.Join(root, fmt.Sprintf("d%d\n\x1b", i)), ".vscode")
	}
	line, all := j.line()
	if strings.Count(line, root) != shownPlanted || !strings.Contains(line, "and 3 more") || strings.ContainsAny(line, "\n\x1b") || len(all) != shownPlanted+3 {
		t.Errorf("%d names: %q, %d", shownPlanted+3, line, len(all))
	}
	for i := range maxPlanted {
		j.made(t, filepath.Join(root, "many", fmt.Sprint(i)), ".idea")
	}
	if line := j.text(); len(j.names) != maxPlanted || !strings.Contains(line, "this is not all") {
		t.Errorf("%d names are remembered: %q", len(j.names), line)
	}
}

// FS-38: what is made and removed takes no room from what stays, and what there is much of does not hide what there is little
// of.
func TestPlanted_DecoysHideNothing_FS38(t *testing.T) {
	root := t.TempDir()
	j := newPlantedJudge()
	for i := range maxPlanted + 100 {
		dir := filepath.Join(root, "decoy", fmt.Sprint(i))
		j.made(t, dir, ".bashrc")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 * shownPlanted {
		j.made(t, filepath.Join(root, "a", fmt.Sprint(i)), ".bashrc")
	}
	j.made(t, filepath.Join(root, "z"), ".mcp.json")
	if line := j.text(); !strings.Contains(line, filepath.Join(root, "z/.mcp.json")) || strings.Contains(line, "not all") {
		t.Errorf("%q", line)
	}
}

// FS-38: what an attempt came to counts, and not the attempt.
func TestPlanted_OnlyWhatCame_FS38(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, ".bashrc")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := newPlantedJudge()
	j.tried(t, root, ".bashrc")
	j.tried(t, root, ".profile")
	if line := j.text(); line != "" {
		t.Errorf("what failed is told: %q", line)
	}
	if err := os.WriteFile(file, []byte("longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if line := j.text(); !strings.Contains(line, file) {
		t.Errorf("what was changed is not told: %q", line)
	}
}

// FS-38: a name is found again when directories around it have been renamed, one after another, and when they have not.
func TestPlanted_FollowsDirectories_FS38(t *testing.T) {
	root := t.TempDir()
	j := newPlantedJudge()
	if j.Follows() {
		t.Error("there is nothing to follow")
	}
	j.made(t, filepath.Join(root, "a/b"), ".vscode")
	if !j.Follows() {
		t.Error("nothing is followed")
	}
	j.Renames(root+"/other", root+"/elsewhere")
	j.Renames(root+"/a", root+"/failed") // it did not come to that
	for _, m := range [][2]string{{"a/b", "a/c"}, {"a", "d"}, {"d", "e"}} {
		from, to := filepath.Join(root, m[0]), filepath.Join(root, m[1])
		j.Renames(from, to)
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if line := j.text(); !strings.Contains(line, filepath.Join(root, "e/c/.vscode")) {
		t.Errorf("%q", line)
	}
	for i := range 2 * maxPlantedMoves {
		j.Renames(fmt.Sprint(root, "/e", strings.Repeat("x", i)), fmt.Sprint(root, "/e", strings.Repeat("x", i+1)))
	}
	if line := j.text(); !strings.Contains(line, "not all") {
		t.Errorf("%q", line)
	}
}

// FS-38: which names are looked for does not depend on which exist where the command starts.
func TestPlanted_EveryName_FS38(t *testing.T) {
	j := newPlantedJudge()
	for name, want := range map[string]bool{".bashrc": true, ".Mcp.JSON": true, ".idea": true, ".claude": true, "hooks": false, ".git": false, "": false} {
		if j.Mandatory(name) != want || want && !j.Suspect(name) {
			t.Errorf("%s: %v", name, !want)
		}
	}
	var nothing *fsview.Guard
	if nothing.Mandatory(".bashrc") {
		t.Error("without rules about names no call is looked at")
	}
}
