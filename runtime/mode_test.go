package runtime

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// allFeatures is a system that has everything, but for the features named, in the shape "landlock=4" for less of one.
func allFeatures(without ...string) (list []Feature) {
	values := map[string]int{"landlock": 7}
	for _, m := range modeNeeds {
		for _, n := range m.needs {
			values[n.key] = max(values[n.key], 1)
		}
	}
	for _, key := range []string{"cgroup", "pidfd_getfd", "bpf"} {
		values[key] = 1
	}
	for _, w := range without {
		key, limit, limited := strings.Cut(w, "=")
		values[key] = 0
		if limited {
			values[key] = int(limit[0] - '0')
		}
	}
	for key, value := range values {
		f := Feature{Key: key, Name: key, Present: value > 0, Value: value, Found: "found"}
		if value == 0 || key == "landlock" && value < scopeLandlock {
			f.Remedy = &Remedy{Text: "do something about " + key}
		}
		list = append(list, f)
	}
	return list
}

// TestDecideMode walks every feature: what the mode is without it, with and without enableWeakerNestedSandbox.
func TestDecideMode(t *testing.T) {
	for without, want := range map[string]struct{ strict, weaker Mode }{
		"":                     {ModeFull, ModeFull},
		"cgroup":               {ModeFull, ModeFull},
		"pidfd_getfd":          {ModeFull, ModeFull},
		"bpf":                  {ModeFull, ModeFull},
		"notify":               {ModeFull, ModeFull},
		"process_vm":           {ModeFull, ModeFull},
		"ptrace":               {ModeFull, ModeFull},
		"landlock=5":           {ModeFull, ModeFull},
		"landlock=2":           {ModeFull, ModeFull},
		"procfs":               {ModeNested, ModeNested},
		"procfs notify":        {ModeNested, ModeNested}, // judged when the plan is made: UnjudgedProcessesError
		"userns":               {ModeNone, ModeConfined},
		"pid":                  {ModeNone, ModeConfined},
		"mount":                {ModeNone, ModeConfined},
		"net":                  {ModeNone, ModeConfined},
		"ipc":                  {ModeNone, ModeConfined},
		"uts":                  {ModeNone, ModeConfined},
		"mount_setattr":        {ModeNone, ModeConfined},
		"userns pidfd_getfd":   {ModeNone, ModeConfined},
		"userns cgroup bpf":    {ModeNone, ModeConfined},
		"userns landlock=6":    {ModeNone, ModeConfined},
		"userns landlock=5":    {ModeNone, ModeNone},
		"userns notify":        {ModeNone, ModeNone},
		"userns process_vm":    {ModeNone, ModeNone},
		"userns ptrace":        {ModeNone, ModeNone},
		"openat2":              {ModeNone, ModeNone},
		"seccomp":              {ModeNone, ModeNone},
		"landlock=1":           {ModeNone, ModeNone},
		"landlock":             {ModeNone, ModeNone},
		"procfs mount_setattr": {ModeNone, ModeConfined},
	} {
		found := allFeatures(strings.Fields(without)...)
		strict, weaker := decideMode(found, false), decideMode(found, true)
		if strict.mode != want.strict || weaker.mode != want.weaker || strict.possible != want.weaker || weaker.possible != want.weaker {
			t.Errorf("without %q: %s and %s, possible %s; want %s and %s", without, strict.mode, weaker.mode, strict.possible, want.strict, want.weaker)
		}
		for _, c := range []modeChoice{strict, weaker} {
			err := c.err(nil)
			if (err == nil) != (c.mode != ModeNone) || (len(c.reasons) == 0) != (c.mode == ModeFull) || c.remedy.IsZero() != (c.mode == ModeFull) {
				t.Errorf("without %q in mode %s: %v, %q, %+v", without, c.mode, err, c.reasons, c.remedy)
			}
			for _, key := range strings.Fields(without) {
				key, _, _ = strings.Cut(key, "=")
				if err != nil && c.missing[0] == key && !strings.Contains(err.Error(), key) {
					t.Errorf("without %q: %v does not name it", without, err)
				}
			}
		}
		if strict.mode == ModeNone && want.weaker == ModeConfined && !strings.Contains(strict.err(nil).Error(), "enableWeakerNestedSandbox") {
			t.Errorf("without %q: %v does not name the setting", without, strict.err(nil))
		}
	}
}

// TestDecideMode_NothingAsked: a feature that nobody asked for is missing.
func TestDecideMode_NothingAsked(t *testing.T) {
	if c := decideMode(nil, true); c.mode != ModeNone || c.possible != ModeNone {
		t.Errorf("%+v", c)
	}
}

func TestMode_ZeroValueIsNone(t *testing.T) {
	var m Mode
	if text, err := json.Marshal(Report{Mode: m}); err != nil || m.String() != "none" || !strings.Contains(string(text), `"mode":"none"`) {
		t.Errorf("%s, %s, %v", m, text, err)
	}
}

// TestReasons: modes that lack the same are told together, and what follows from something missing goes without saying.
func TestReasons(t *testing.T) {
	found := allFeatures("userns", "net", "mount", "pid", "ipc", "uts", "procfs")
	for i := range found {
		found[i].Unasked = found[i].Value == 0 && found[i].Key != "userns"
	}
	c := decideMode(found, true)
	if len(c.reasons) != 1 || c.reasons[0] != "modes full and nested need userns (here: found)" || c.remedy.Text != "do something about userns" {
		t.Errorf("%q, %+v", c.reasons, c.remedy)
	}
}

// TestModeError_IsADependencyError: New says as much as Check.
func TestModeError_IsADependencyError(t *testing.T) {
	c := decideMode(allFeatures("userns"), false)
	err := dependencyError(c.err(nil))
	var report *DependencyError
	var mode *ModeError
	if !errors.As(err, &report) || !errors.As(err, &mode) || report.Mode != ModeConfined || report.Remedy == nil || len(report.Errors) != 1 {
		t.Errorf("%+v", err)
	}
}
