package words

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("a b a"), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := Count(string(text))["a"]; got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}
