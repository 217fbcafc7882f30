package mode

import "testing"

// TestHarmless: a suite goes on only with an srt that refused the write, in the mode that was asked for.
func TestHarmless(t *testing.T) {
	for _, tt := range []struct {
		mode, printed string
		wrote, want   bool
	}{
		{mode: Full, printed: "pid:[2]\n", want: true},
		{mode: Full, printed: "pid:[1]\n"},
		{mode: Full, printed: "pid:[2]\n", wrote: true},
		{mode: Full, printed: "srt: refused\n"},
		{mode: Full},
		{mode: Nested, printed: "pid:[2]\n", want: true},
		{mode: Nested, printed: "pid:[1]\n"},
		{mode: Confined, printed: "pid:[1]\n", want: true},
		{mode: Confined, printed: "pid:[1]\n", wrote: true},
		{mode: Confined, printed: "pid:[2]\n"}, // not the mode that was asked for
		{mode: Confined},
	} {
		t.Setenv(Variable, tt.mode)
		if got := Harmless(tt.printed, "pid:[1]", tt.wrote); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// TestSettings: the key is added where the mode needs it, and what a test says of it stays.
func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		mode             string
		settings, strict bool
	}{{Full, false, false}, {Nested, true, false}, {Confined, true, true}} {
		t.Setenv(Variable, tt.mode)
		if got := Settings(map[string]any{})[weaker] == true; got != tt.settings {
			t.Errorf("mode %s: settings: %v", tt.mode, got)
		}
		if got := Strict(map[string]any{})[weaker] == true; got != tt.strict {
			t.Errorf("mode %s: strict: %v", tt.mode, got)
		}
		if Settings(map[string]any{weaker: false})[weaker] != false {
			t.Errorf("mode %s: what the test says was changed", tt.mode)
		}
	}
}
