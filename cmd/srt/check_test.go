package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime"
)

// TestModeStatus holds that every mode has a status of its own, and none but full has 0.
func TestModeStatus(t *testing.T) {
	want := map[runtime.Mode]int{runtime.ModeFull: 0, runtime.ModeNested: 10, runtime.ModeConfined: 11, runtime.ModeNone: 1}
	for mode, status := range want {
		if got, ok := modeStatus[mode]; !ok || got != status {
			t.Errorf("%s has status %d", mode, got)
		}
	}
	if len(modeStatus) != len(want) {
		t.Errorf("%v", modeStatus)
	}
}

// TestRenderReport: the mode and what to do come first, files and commands can be copied, and JSON has the same.
func TestRenderReport(t *testing.T) {
	r := runtime.Report{Mode: runtime.ModeConfined, Reasons: []string{"mode full needs x", "told in the error"},
		Errors: []string{"Nothing starts: told in the error"}, Warnings: []string{"w"},
		Remedy: &runtime.Remedy{Text: "Do it", File: "/etc/p", Content: "a {\n\n  b,\n}\n", Commands: []string{"load /etc/p"}},
		Features: []runtime.Feature{{Key: "x", Name: "the x", Found: "EPERM", Needs: "Linux 9", Why: "x-ing", Remedy: &runtime.Remedy{Text: "get x"}},
			{Key: "y", Name: "the y", Found: "not asked without x", Unasked: true}, {Key: "z", Name: "the z", Present: true, Value: 3, Found: "version 3"}}}
	text, err := renderReport(r, false)
	const want = "Mode: confined\nWhy: mode full needs x\nTo do: Do it\n\n  /etc/p:\n\n    a {\n\n      b,\n    }\n\n    load /etc/p\n\n" +
		"Error: Nothing starts: told in the error\nWarning: w\n\nFeatures:\n  no   x  the x  see below\n  no   y  the y  not asked without x\n" +
		"  yes  z  the z  version 3\n\nNo x (the x): EPERM.\n  For: x-ing.\n  Needs: Linux 9.\n  To do: get x.\n"
	if err != nil || text != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, text, want)
	}
	text, err = renderReport(r, true)
	var back runtime.Report
	if err != nil || json.Unmarshal([]byte(text), &back) != nil || back.Mode != r.Mode || len(back.Features) != 3 || back.Remedy.Content != r.Remedy.Content {
		t.Errorf("%v: %s", err, text)
	}
	if text, err = renderReport(runtime.Report{Mode: runtime.ModeNone, Errors: []string{"Unsupported platform"}}, false); err != nil ||
		text != "Mode: none\nError: Unsupported platform\n" || strings.Contains(text, "Features") {
		t.Errorf("%v: %s", err, text)
	}
}
