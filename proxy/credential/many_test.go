package credential

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// manyTokens is a text with n different values for the pattern of maskMany.
func manyTokens(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "token=%x\n", i)
	}
	return b.String()
}

// TestTooManyValues_CRED9 holds that a text in which there are more values than can be kept is hidden, not shown, and that one
// with as many as can be is masked.
func TestTooManyValues_CRED9(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rule := config.Credential{Mode: config.ModeMask, Extract: `token=(\S+)`, InjectHosts: []string{"*.example.com"}}
	for _, c := range []struct {
		values int
		hidden bool
	}{{maxValues, false}, {maxValues + 1, true}} {
		text := manyTokens(c.values)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newStore(t)
		var warned []string
		m, err := s.Mask(Spec{
			Credentials: &config.Credentials{
				Files: []config.FileCredential{{Path: path, Credential: rule}}, EnvVars: []config.EnvCredential{{Name: "LIST", Credential: rule}},
			},
			LookupEnv: func(string) (string, bool) { return text, true },
			Warn:      func(line string) { warned = append(warned, line) },
		})
		if err != nil {
			t.Fatal(err)
		}
		fake, err := m.File(0, path)
		if errors.Is(err, ErrHide) != c.hidden || (err != nil) != c.hidden || strings.Contains(string(fake), "=1a\n") {
			t.Errorf("%d values: %v", c.values, err)
		}
		vars := m.Variables()
		if len(vars) != 1 || vars[0].Unset != c.hidden || len(warned) > 0 != c.hidden || strings.Contains(vars[0].Value, "=1a\n") {
			t.Errorf("%d values: %d variables, warnings %q", c.values, len(vars), warned)
		}
	}
}

// TestHostsShareAScanner_CRED25 holds that what a wildcard covers costs no more memory for being asked for under many names.
func TestHostsShareAScanner_CRED25(t *testing.T) {
	s := newStore(t)
	plant(t, s, "x", "fake_value_a", "real a", "*.example.com")
	plant(t, s, "x", "fake_value_b", "real b", "b.example.com")
	first := at(t, s, "a0.example.com")
	for i := range 3 * maxHosts {
		if next := at(t, s, fmt.Sprintf("a%d.example.com", i)); i < maxHosts-2 && next.scanner != first.scanner {
			t.Fatalf("host %d has a scanner of its own", i)
		}
	}
	if got := at(t, s, "b.example.com"); len(got.list) != 2 {
		t.Errorf("%d values at a host of two", len(got.list))
	}
	if len(s.lists) > maxLists || len(s.scanners.byList) > maxLists {
		t.Errorf("%d lists, %d scanners", len(s.lists), len(s.scanners.byList))
	}
	for i := range 2 * maxLists {
		plant(t, s, "x", fmt.Sprintf("fake_value_%d_", i), "real", fmt.Sprintf("h%d.example.org", i))
	}
	for i := range 2 * maxLists {
		if got := at(t, s, fmt.Sprintf("h%d.example.org", i)); len(got.list) != 1 || got.list[0].sentinel != fmt.Sprintf("fake_value_%d_", i) {
			t.Fatalf("host %d: %v", i, got.Names())
		}
	}
	if len(s.lists) > maxLists || len(s.scanners.byList) > maxLists {
		t.Errorf("%d lists, %d scanners", len(s.lists), len(s.scanners.byList))
	}
}

// TestLaunchesWithOwnEnvironments_CRED6 holds that commands whose environments are their own never send one another's values, and
// that equal ones have one sentinel; a variable of srt's own environment that is changed is the same credential.
func TestLaunchesWithOwnEnvironments_CRED6(t *testing.T) {
	s := newStore(t)
	launchWith := func(value string, own bool) string {
		m, err := s.Mask(Spec{
			Credentials: maskEnv(env("TOKEN", config.Credential{})), DefaultHosts: []string{"api.example.com"}, OwnEnv: own,
			LookupEnv: func(string) (string, bool) { return value, true },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m.Variables()[0].Value
	}
	one, two, again := launchWith("of one", true), launchWith("of two", true), launchWith("of one", true)
	if one == two || one != again {
		t.Errorf("%s, %s, %s", one, two, again)
	}
	for sentinel, want := range map[string]string{one: "of one", two: "of two"} {
		if got := valueOf(t, s, sentinel, "api.example.com"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	before := launchWith("srt's", false)
	if after := launchWith("srt's, changed", false); after != before || valueOf(t, s, after, "api.example.com") != "srt's, changed" {
		t.Errorf("%s, %s", before, after)
	}
	if got := valueOf(t, s, one, "api.example.com"); got != "of one" {
		t.Errorf("%q", got)
	}
}
