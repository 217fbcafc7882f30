package probe

import (
	"errors"
	"maps"
	"testing"
)

func TestParseWithout(t *testing.T) {
	for text, want := range map[string]Limits{
		"":                      {},
		"procfs":                {"procfs": 0},
		" procfs , notify,":     {"procfs": 0, "notify": 0},
		"landlock=4":            {"landlock": 4},
		"landlock=4,landlock=2": {"landlock": 2},
		"landlock=2,landlock=4": {"landlock": 2},
		"landlock,landlock=4":   {"landlock": 0},
	} {
		if got, err := ParseWithout(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"proc", "notify=1", "landlock=", "landlock=x", "landlock=-1", "procfs notify", "PROCFS"} {
		got, err := ParseWithout(text)
		if _, ok := errors.AsType[*WithoutError](err); !ok || got != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
