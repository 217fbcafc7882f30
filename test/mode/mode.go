// Package mode has a run of the suite take place in one mode of docs/modes.md: full, nested or confined, as SRT_TEST_MODE says.
//
// What belongs here: what such a run does to the environment of srt and to the settings files that tests write.
//
// What does not belong here: which tests cannot pass in a mode (package test/modes, which judges a run), and tests of the modes
// themselves, which choose their modes on their own.
package mode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Variable is the environment variable that names the mode of a run. Unset, it is full.
const Variable = "SRT_TEST_MODE"

// The modes, by the names that docs/modes.md has.
const (
	Full     = "full"
	Nested   = "nested"
	Confined = "confined"
)

// without is what SRT_WITHOUT takes away from srt, so that it is in a mode on a system that gives it everything.
var without = map[string]string{Full: "", Nested: "procfs", Confined: "userns"}

// Canary gives settings that grant nothing, as a file beneath dir, with which a suite asks whether srt confines at all (Harmless).
func Canary(dir string) (string, error) {
	text, err := json.Marshal(Settings(map[string]any{
		"network":    map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": []string{}, "allowWrite": []string{}, "denyWrite": []string{}},
	}))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "canary.json")
	return path, os.WriteFile(path, text, 0o644)
}

// weaker is the setting without which srt does not enter mode confined.
const weaker = "enableWeakerNestedSandbox"

// Name gives the mode of this run. A name that is none ends the process: what is tested must be what was asked for.
func Name() string {
	name := os.Getenv(Variable)
	if name == "" {
		return Full
	}
	if _, ok := without[name]; !ok {
		fmt.Fprintf(os.Stderr, "%s=%s: no such mode; give %s, %s or %s\n", Variable, name, Full, Nested, Confined)
		os.Exit(2)
	}
	return name
}

// Env gives what srt's environment has besides in this run, to be put before what a test sets itself.
func Env() []string {
	if w := without[Name()]; w != "" {
		return []string{"SRT_WITHOUT=" + w}
	}
	return nil
}

// Settings adds to the top of a settings file what the mode needs, where the test says nothing of it, and gives the same map. Mode nested
// has the key as well, as in most containers that need it.
func Settings(top map[string]any) map[string]any {
	if Name() == Nested {
		unless(top)
	}
	return Strict(top)
}

// Strict is Settings without what a mode can do without: mode nested keeps other processes from the command, then.
func Strict(top map[string]any) map[string]any {
	if Name() == Confined {
		unless(top)
	}
	return top
}

func unless(top map[string]any) {
	if _, said := top[weaker]; !said {
		top[weaker] = true
	}
}

// Harmless tells whether a run of srt without any grants confined its command, which printed its pid namespace and then tried to write:
// only then may a suite do with srt what harms the machine it runs on. outside is the pid namespace of the caller. Mode confined has no
// pid namespace; that the write was refused has to do there.
func Harmless(printed, outside string, wrote bool) bool {
	ns, _, ended := strings.Cut(printed, "\n")
	return !wrote && ended && strings.HasPrefix(ns, "pid:") && (ns != outside) == (Name() != Confined)
}
