package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallest is the smallest valid settings file ("B" of the specification).
const smallest = `{"network":{"allowedDomains":[],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":[],"denyWrite":[]}}`

func homeIs(dir string) func() (string, error) {
	return func() (string, error) { return dir, nil }
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadSettings(t *testing.T) {
	dir := t.TempDir()
	good := writeFile(t, filepath.Join(dir, "good"), smallest)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "home", settingsName)
	if err := os.Mkdir(filepath.Dir(dangling), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	inHome := filepath.Join(dir, "second")
	if err := os.Mkdir(inHome, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(inHome, settingsName), smallest)

	tests := []struct {
		name, path, home string
		want             settings
	}{
		{"CFG-1 named", good, "/nonexistent", settings{place: ownPlace{own: good}}},
		{"CFG-2 through a link", link, "/nonexistent", settings{place: ownPlace{own: link}}},
		{"CFG-1 default", "", inHome, settings{place: ownPlace{own: filepath.Join(inHome, settingsName)}}},
		{"CFG-3 absent default", "", dir, settings{absent: filepath.Join(dir, settingsName)}},
		{"CFG-3 dangling default", "", filepath.Dir(dangling), settings{absent: dangling}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readSettings(tt.path, homeIs(tt.home))
			if err != nil {
				t.Fatal(err)
			}
			if got.config == nil || got.place != tt.want.place || got.absent != tt.want.absent {
				t.Errorf("got %q, absent %q, config %v; want %q, absent %q and a config",
					got.place, got.absent, got.config, tt.want.place, tt.want.absent)
			}
		})
	}
}

func TestReadSettingsErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return writeFile(t, filepath.Join(dir, name), text) }
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	const (
		file7  = "Refusing to run with the built-in defaults: that would drop " + fileRules + "."
		asked7 = "Refusing to run with the built-in defaults: that would drop " + askedRules + "."
	)
	tests := []struct {
		name, path, home string
		first, second    string // first is a prefix after the path
	}{
		{"CFG-4 absent", filepath.Join(dir, "missing"), dir, " does not exist.", asked7},
		{"CFG-5 empty", file("empty", ""), dir, " is empty. Delete it, or put a config in it.", file7},
		{"CFG-5 white space", file("blank", " \r\n\t\n"), dir, " is empty. Delete it, or put a config in it.", file7},
		{"CFG-6 directory", dir, dir, " could not be read (EISDIR).", file7},
		{"CFG-6 not a directory", filepath.Join(file("plain", smallest), "x"), dir, " could not be read (ENOTDIR).", file7},
		{"CFG-6 loop", loop, dir, " could not be read (ELOOP).", file7},
		{"CFG-6 default below a file", "", file("home", ""), " could not be read (ENOTDIR).", file7},
		{"CFG-7 not JSON", file("bad", "{,}"), dir, " is not valid JSON: ", file7},
		{"CFG-7 CFG-10 byte-order mark", file("bom", "\ufeff"+smallest), dir, " is not valid JSON: ", file7},
		{"CFG-7 every issue", file("none", "{}"), dir,
			" does not hold a valid config — network: Required; filesystem: Required", file7},
		{"CFG-7 top level", file("list", "[]"), dir, " does not hold a valid config — (root): ", file7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readSettings(tt.path, homeIs(tt.home))
			var detail *settingsError
			if !errors.As(err, &detail) {
				t.Fatalf("got %v, want a settingsError", err)
			}
			spelled := tt.path
			if spelled == "" {
				spelled = filepath.Join(tt.home, settingsName)
			}
			first, second, _ := strings.Cut(err.Error(), "\n")
			if !strings.HasPrefix(first, spelled+tt.first) || second != tt.second {
				t.Errorf("got\n%q\n%q\nwant\n%q\n%q", first, second, spelled+tt.first, tt.second)
			}
		})
	}
}

func TestHomeDirectory(t *testing.T) {
	env := map[string]string{}
	a := &app{getenv: func(name string) string { return env[name] }}
	account, err := accountHome()
	if err != nil {
		t.Fatalf("this test needs an entry for its user in the account database: %v", err)
	}
	env[homeVariable()] = ""
	if got, err := a.homeDirectory(); err != nil || got != account {
		t.Errorf("CLI-50 empty: got %q, %v; want %q from the account database", got, err, account)
	}
	env[homeVariable()] = t.TempDir()
	if got, err := a.homeDirectory(); err != nil || got != env[homeVariable()] {
		t.Errorf("CLI-50: got %q, %v; want %q", got, err, env[homeVariable()])
	}
	env[homeVariable()] = "relative"
	if got, err := a.homeDirectory(); err == nil {
		t.Errorf("CLI-50 relative: got %q, want an error", got)
	}
}
