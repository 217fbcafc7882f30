package fsview

import (
	"testing"
)

// FS-35, FS-51: what would be refused whatever grants it says so, and not that an entry lacks.
func TestJudge_ProtectedWherever_FS35_FS51(t *testing.T) {
	j := NewJudge(&Plan{Own: []string{"/h/.srt-settings.json"}})
	for location, want := range map[string]string{
		"/h/.bashrc": "protected name .bashrc", "/h/.BashRC": "protected name .bashrc", "/p/.vscode/tasks.json": "protected name .vscode",
		"/p/.claude/commands/x": "protected name .claude/commands", "/p/.git/hooks/pre-commit": "protected name .git/hooks",
		"/h/.srt-settings.json": "srt's own file",
		// what an entry, or a setting of its own, would allow
		"/h/bashrc": RuleAllowWrite, "/h/.bashrc.d": RuleAllowWrite, "/p/.claude": RuleAllowWrite, "/p/.claude/other": RuleAllowWrite,
		"/p/.git/config": RuleAllowWrite, "/p/hooks/x": RuleAllowWrite, "/p/commands": RuleAllowWrite, "/h/.srt-settings.json2": RuleAllowWrite,
	} {
		for _, a := range []Access{AccessWrite, AccessCreate, AccessRemove} {
			if v := j.Judge(location, a); !v.Denied || v.Rule != want || v.Entry != "" {
				t.Errorf("%s %s: %+v, want %s", a, location, v, want)
			}
		}
		if v := j.Judge(location, AccessRead); v.Denied {
			t.Errorf("read %s: %+v", location, v)
		}
	}
}

// FS-35: whether a name exists where the command starts says nothing about it elsewhere.
func TestGuard_Mandatory_FS35(t *testing.T) {
	g := NewGuard(&Plan{Absent: []Absent{{Path: "/p/x", Dir: "/p", Name: "x", Write: true, Why: "deny"}}})
	for name, want := range map[string]bool{".bashrc": true, ".VSCode": true, ".claude": true, "hooks": false, ".git": false, "x": false, "": false} {
		if g.Mandatory(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	if (*Guard)(nil).Mandatory(".bashrc") {
		t.Error("a nil guard sees no name")
	}
}

// FS-41: a rename between what two entries grant fails though both are granted.
func TestJudge_Between(t *testing.T) {
	plan := &Plan{Steps: []Step{
		{Kind: Pin, Path: "/w/pinned", Why: "filesystem.denyWrite.0 (FS-41)", Dir: true},
		{Kind: Writable, Path: "/w", Why: "filesystem.allowWrite.0 (FS-26)", Dir: true}, {Kind: Writable, Path: "/o/deep", Why: "filesystem.allowWrite.1 (FS-26)", Dir: true},
	}}
	j := NewJudge(plan)
	for _, c := range []struct{ from, to, rule string }{
		{"/w/a", "/o/deep/a", "filesystem.allowWrite.1"}, {"/o/deep/a", "/w/a", "filesystem.allowWrite.1"},
		{"/w/a", "/w/b/c", ""}, {"/w/pinned/a", "/w/a", "filesystem.denyWrite.0"}, {"/w/pinned/a", "/w/pinned/b", ""},
		{"/o/a", "/o/b", ""}, {"/w/a", "/x", "filesystem.allowWrite.0"}, {"/w", "/ww", ""},
	} {
		v := j.Between(c.from, c.to)
		if v.Denied != (c.rule != "") || v.Rule != c.rule || v.Denied && (v.Path != c.to || v.Reason == "") {
			t.Errorf("%s, %s: %+v, want %q", c.from, c.to, v, c.rule)
		}
	}
}
