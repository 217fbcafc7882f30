package runtime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/probe/hostfacts"
)

// Mode is how much of the kernel a command is confined with (docs/modes.md). The zero value is ModeNone.
type Mode string

// The modes, the best one first.
const (
	// ModeFull: namespaces, mounts, Landlock and system call filters.
	ModeFull Mode = "full"
	// ModeNested: the same, where no fresh procfs can be mounted.
	ModeNested Mode = "nested"
	// ModeConfined: Landlock and system call filters alone. Only with enableWeakerNestedSandbox.
	ModeConfined Mode = "confined"
	// ModeNone: no command can be confined.
	ModeNone Mode = "none"
)

// String is the mode's name in output and settings.
func (m Mode) String() string {
	if m == "" {
		return string(ModeNone)
	}
	return string(m)
}

// MarshalText gives the same in JSON.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Remedy is the one thing to do for a better mode, or for a feature. The zero value is nothing.
type Remedy = hostfacts.Remedy

// Feature is one feature of the system's as it was found (package probe).
type Feature struct {
	// Key is its name in SRT_WITHOUT; it does not change.
	Key string `json:"key"`
	// Name is what it is called in sentences.
	Name string `json:"name"`
	// Present tells whether it is there, and Value its version: 1 where it has none, 0 where it is missing.
	Present bool `json:"present"`
	Value   int  `json:"value"`
	// Found is what was found, in a few words.
	Found string `json:"found"`
	// Needs is the kernel version or configuration that brings it, and Why what it is for.
	Needs string `json:"needs"`
	Why   string `json:"why"`
	// Remedy is what to do to have it. Nil: it is there, or nothing is known.
	Remedy *Remedy `json:"remedy,omitempty"`
	// Unasked says that it counts as missing because another one is missing, without which there is nothing to ask.
	Unasked bool `json:"unasked,omitempty"`
}

// need is a feature that a mode cannot be without, and the least version of it.
type need struct {
	key   string
	least int
}

// The versions of Landlock that are needed: from 2 on a file can be renamed into another directory (REFER), from 6 on signals and abstract
// sockets can be kept within a domain. They are fsview's constants, which only Linux has.
const (
	leastLandlock = 2
	scopeLandlock = 6
)

// modeNeeds is what each mode needs, the best one first. Confined mode is the settings' to allow.
var modeNeeds = []struct {
	mode   Mode
	weaker bool // only with enableWeakerNestedSandbox
	needs  []need
}{
	{ModeFull, false, append(slices.Clone(namespaceNeeds), need{"procfs", 1})},
	{ModeNested, false, namespaceNeeds},
	{ModeConfined, true, []need{{"landlock", scopeLandlock}, {"seccomp", 1}, {"notify", 1}, {"process_vm", 1}, {"ptrace", 1}, {"openat2", 1}}},
}

// namespaceNeeds is what a sandbox with namespaces needs.
var namespaceNeeds = []need{{"userns", 1}, {"pid", 1}, {"mount", 1}, {"net", 1}, {"ipc", 1}, {"uts", 1}, {"mount_setattr", 1}, {"openat2", 1},
	{"landlock", leastLandlock}, {"seccomp", 1}}

// modeChoice is a mode and why it is no better one.
type modeChoice struct {
	// mode is the one to start commands in.
	mode Mode
	// possible is the best one that this system gives to whatever settings.
	possible Mode
	// reasons are why it is not full, a sentence each, and remedy the one thing to do.
	reasons []string
	remedy  Remedy
	// missing are the features that the next better mode lacks.
	missing []string
}

// decideMode gives the mode for what was found. weaker is enableWeakerNestedSandbox.
func decideMode(found []Feature, weaker bool) modeChoice {
	c := modeChoice{mode: ModeNone, possible: ModeNone}
	var refused reasonList
	for _, m := range modeNeeds {
		if lacks := c.lacking(found, m.needs); lacks != "" {
			refused.add(m.mode, lacks)
			continue
		}
		if c.possible == ModeNone {
			c.possible = m.mode
		}
		if !m.weaker || weaker {
			c.mode = m.mode
			break
		}
		refused.notes = append(refused.notes, fmt.Sprintf("mode %s is possible here, but commands are started in it only with "+
			"enableWeakerNestedSandbox: true in the settings", m.mode))
	}
	c.reasons = refused.sentences()
	return c
}

// lacking says which of the needs are missing, empty for none. What was not asked because of another one goes without saying.
func (c *modeChoice) lacking(found []Feature, needs []need) string {
	var lacks []string
	for _, n := range needs {
		if f := featureOf(found, n.key); f.Value < n.least {
			c.addMissing(f)
			if !f.Unasked || len(lacks) == 0 {
				lacks = append(lacks, lackText(f, n))
			}
		}
	}
	return strings.Join(lacks, "; ")
}

// reasonList is why modes are not possible: those for the same reason together.
type reasonList struct {
	modes [][]string
	lacks []string
	notes []string
}

func (r *reasonList) add(m Mode, lacks string) {
	if last := len(r.lacks) - 1; last >= 0 && r.lacks[last] == lacks {
		r.modes[last] = append(r.modes[last], m.String())
		return
	}
	r.modes, r.lacks = append(r.modes, []string{m.String()}), append(r.lacks, lacks)
}

func (r *reasonList) sentences() (list []string) {
	for i, lacks := range r.lacks {
		who := "mode " + r.modes[i][0] + " needs "
		if len(r.modes[i]) > 1 {
			who = "modes " + strings.Join(r.modes[i], " and ") + " need "
		}
		list = append(list, who+lacks)
	}
	return append(list, r.notes...)
}

// addMissing notes a missing feature. The first one that has a remedy gives the one thing to do.
func (c *modeChoice) addMissing(f Feature) {
	if slices.Contains(c.missing, f.Key) {
		return
	}
	c.missing = append(c.missing, f.Key)
	if c.remedy.IsZero() && f.Remedy != nil && !f.Unasked {
		c.remedy = *f.Remedy
	}
}

// featureOf finds a feature. One that was not asked is missing.
func featureOf(found []Feature, key string) Feature {
	for _, f := range found {
		if f.Key == key {
			return f
		}
	}
	return Feature{Key: key, Name: key, Found: "not asked"}
}

// lackText says what is missing.
func lackText(f Feature, n need) string {
	if n.least > 1 && f.Value > 0 {
		return fmt.Sprintf("%s of version %d (here: %s)", f.Name, n.least, f.Found)
	}
	return fmt.Sprintf("%s (here: %s)", f.Name, f.Found)
}

// ModeError says that no command is started because this system gives no mode that the settings allow.
type ModeError struct {
	// Possible is the best mode that it gives with other settings.
	Possible Mode
	// Reasons are why, a sentence each, and Remedy what to do.
	Reasons []string
	Remedy  Remedy
	// Missing are the keys of the features that are not there.
	Missing []string

	cause error // what failed first
}

func (e *ModeError) Error() string {
	text := "commands cannot be confined here: " + strings.Join(e.Reasons, ". ")
	if !e.Remedy.IsZero() {
		text += ". " + e.Remedy.String()
	}
	return text
}

// Unwrap gives what failed, nil if nothing was tried.
func (e *ModeError) Unwrap() error { return e.cause }

// err is why nothing can be started.
func (c *modeChoice) err(cause error) error {
	if c.mode != ModeNone {
		return nil
	}
	return &ModeError{Possible: c.possible, Reasons: c.reasons, Remedy: c.remedy, Missing: c.missing, cause: cause}
}
