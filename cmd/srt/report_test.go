package main

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestOwnFiles_FS51: the settings file in use is protected, and so is the default one that the next run may read.
func TestOwnFiles_FS51(t *testing.T) {
	const empty = `{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}`
	home := t.TempDir()
	standard := filepath.Join(home, settingsName)
	other := writeFile(t, filepath.Join(t.TempDir(), "s"), empty)
	run := func(args ...string) []string {
		f := newFake()
		f.ended <- nil
		if status, _, errs := cliEnv(t, f, map[string]string{homeVariable(): home}, append(args, "true")...); status != 0 {
			t.Fatalf("status %d: %s", status, errs)
		}
		return f.opts.ownFiles
	}
	check := func(name string, want []string, args ...string) {
		if got := run(args...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	check("no settings file", []string{standard})
	check("another one", []string{other, standard}, "-s", other)
	writeFile(t, standard, empty)
	check("the default one", []string{standard})
	check("another one beside it", []string{other, standard}, "-s", other)
}
