package fsview

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCaseOf(t *testing.T) {
	for magic, want := range map[int64]caseOfType{0xef53: caseByFlag, 0x01021994: caseByFlag, 0x4d44: caseIgnored, 0x2011bab0: caseIgnored,
		0xff534d42: caseIgnored, -0x1acb2be: caseIgnored, 0x58465342: caseCounts, 0x9123683e: caseCounts, 0: caseCounts} {
		if got := caseOf(magic); got != want {
			t.Errorf("caseOf(%#x) = %d, want %d", magic, got, want)
		}
	}
}

// TestHostIgnoresCase asks a directory of this machine, and compares with what it does.
func TestHostIgnoresCase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "name"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := os.Lstat(filepath.Join(dir, "NAME"))
	if got := Host().IgnoresCase(dir); got != (err == nil) {
		t.Errorf("IgnoresCase = %v, and looking a name up in other letters gives %v", got, err)
	}
	if !Host().IgnoresCase(filepath.Join(dir, "none")) {
		t.Error("a directory that cannot be asked counts as one that ignores case")
	}
}
