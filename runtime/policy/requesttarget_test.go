package policy

import (
	"strings"
	"testing"
)

// FuzzNormalizeTarget holds what REQ-6 and REQ-7 say of every target: its normalized form is its own, has no dot segment, and
// differs where the target is ambiguous.
func FuzzNormalizeTarget(f *testing.F) {
	f.Fuzz(func(t *testing.T, target string) {
		target, _, _ = strings.Cut(target, "#") // no part of a target
		spelled := "/" + target
		normalized, ambiguous := NormalizeTarget(spelled)
		if again, unclear := NormalizeTarget(normalized); again != normalized || unclear {
			t.Errorf("%q: %q, then %q, ambiguous %v", spelled, normalized, again, unclear)
		}
		path, _, _ := strings.Cut(normalized, "?")
		for segment := range strings.SplitSeq(path, "/") {
			if dotSegment(segment) != 0 {
				t.Errorf("%q keeps a dot segment: %q", spelled, normalized)
			}
		}
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\#\"<>`{}") {
			t.Errorf("%q: %q", spelled, normalized)
		}
		compared := spelled
		if _, query, _ := strings.Cut(spelled, "?"); query == "" {
			compared = strings.TrimSuffix(spelled, "?")
		}
		if escaped := "\"'<>^`{}"; ambiguous != (escape(compared, escaped) != escape(normalized, escaped)) {
			t.Errorf("%q and %q: ambiguous %v", spelled, normalized, ambiguous)
		}
	})
}
