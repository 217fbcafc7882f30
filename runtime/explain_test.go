package runtime

import (
	"slices"
	"strings"
	"testing"
)

func TestExplain_ReasonsForPeople(t *testing.T) {
	for why, want := range map[string]string{
		"filesystem.allowWrite.0 (FS-26)":       "filesystem.allowWrite.0",
		"the sandbox's own resolver (NET-7)":    "the sandbox's own resolver",
		"own devices null, zero (FS-47)":        "own devices null, zero",
		"kernel state":                          "kernel state",
		"filesystem.denyRead.0 (\"a (FS-1)\")":  "filesystem.denyRead.0 (\"a (FS-1)\")",
		"no number (FS-)":                       "no number (FS-)",
		"a word (in-memory)":                    "a word (in-memory)",
		"default write path /tmp/a (1) (FS-28)": "default write path /tmp/a (1)",
		"":                                      "", "(": "(", ")": ")", " ()": " ()", " (-1)": "",
	} {
		if got := unnumbered(why); got != want {
			t.Errorf("%q: got %q, want %q", why, got, want)
		}
	}
}

func TestExplain_EntriesOfProcAreOneLine(t *testing.T) {
	mount := func(kind, why string, paths ...string) (list []PlannedMount) {
		for _, p := range paths {
			list = append(list, PlannedMount{Kind: kind, Path: p, Why: why})
		}
		return list
	}
	var e Explanation
	for _, m := range [][]PlannedMount{
		mount("writable", "x", "/a", "/b", "/c", "/d", "/e"), mount("read-only", "shared", "/proc/fs", "/proc/bus", "/proc/dma", "/proc/irq"),
		mount("read-only", "state", "/proc/sys", "/proc/irq", "/proc/fs"), mount("hide file", "state", "/proc/1", "/proc/2", "/proc/3", "/proc/4"),
		mount("hide file", "state", "/sys/firmware"),
	} {
		e.Mounts = append(e.Mounts, m...)
	}
	var got []string
	for _, m := range folded(e.Mounts) {
		got = append(got, m.Path)
	}
	want := []string{"/a", "/b", "/c", "/d", "/e", "/proc/fs and 3 more in /proc (--json names them)", "/proc/sys", "/proc/irq", "/proc/fs",
		"/proc/1 and 3 more in /proc (--json names them)", "/sys/firmware"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	e.Landlock = []PlannedRule{{Path: "/a", Rights: "write"}, {Path: "/hidden", Rights: "write", Note: "in memory"}}
	var text strings.Builder
	if err := e.WriteText(&text); err != nil || len(e.Mounts) != 17 {
		t.Errorf("%d mounts left, %v", len(e.Mounts), err)
	}
	if want := "\n  /a       write\n  /hidden  write, in memory\n"; !strings.Contains(text.String(), want) {
		t.Errorf("%s\nhas not %q", text.String(), want)
	}
}
