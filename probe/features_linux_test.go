package probe

import "testing"

func TestEveryFeatureAnswers(t *testing.T) {
	for _, f := range All() {
		r := f.Probe()
		t.Logf("%-14s %v %q %v", f.Key, r.Value, r.Found, r.Err)
		if _, ok := known[f.Key]; !ok {
			t.Errorf("SRT_WITHOUT does not know %s", f.Key)
		}
	}
}
