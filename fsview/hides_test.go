package fsview

import "testing"

func TestFS22HidesDeepestStepDecides(t *testing.T) {
	plan := &Plan{Steps: []Step{
		{Kind: Pin, Path: "/a/d/x"},
		{Kind: HideDir, Path: "/a"},
		{Kind: Reveal, Path: "/a/b"},
		{Kind: HideFile, Path: "/a/b/c"},
		{Kind: RevealWritable, Path: "/a/w"},
		{Kind: EmptyDir, Path: "/e"},
		{Kind: Writable, Path: "/w"},
		{Kind: ReadOnly, Path: "/w/r"},
	}}
	for path, want := range map[string]bool{
		"/": false, "/a": true, "/a/d/x": true, "/ab": false, "/a/b": false, "/a/b/x": false, "/a/b/c": true, "/a/b/cc": false,
		"/a/w/x": false, "/e/x": true, "/w/x": false, "/w/r": false,
	} {
		if got := plan.Hides(path); got != want {
			t.Errorf("Hides(%q) = %v, want %v", path, got, want)
		}
	}
	if (&Plan{}).Hides("/a") {
		t.Error("a plan without steps hides something")
	}
}
