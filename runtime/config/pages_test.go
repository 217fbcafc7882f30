package config

import (
	"os"
	"strings"
	"testing"
)

// TestTheSettingsOfThePagesAreValid: every whole settings file that the pages for people show is one, with no key that srt does
// not know.
func TestTheSettingsOfThePagesAreValid(t *testing.T) {
	for page, want := range map[string]int{"../../README.md": 1, "../../docs/settings.md": 4} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for block := range strings.SplitSeq(string(text), "\n```") {
			_, block, _ = strings.Cut(block, "\n")
			if _, shown, ok := strings.Cut(block, "$ cat settings.json\n"); ok {
				block, _, _ = strings.Cut(shown, "\n$ ")
			}
			if !strings.HasPrefix(block, "{\n") || !strings.Contains(block, `"allowedDomains"`) {
				continue
			}
			found++
			c, err := Decode([]byte(block))
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, block)
			} else if keys := c.UnknownKeys(); len(keys) > 0 {
				t.Errorf("%s: %v", page, keys)
			}
		}
		if found < want {
			t.Errorf("%s: %d settings files, want %d at least", page, found, want)
		}
	}
}
