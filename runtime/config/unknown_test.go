package config

import (
	"strings"
	"testing"
)

func TestMistypedKeys_CFG14(t *testing.T) {
	known := []string{"allowedDomains", "deniedDomains", "requestRules", "tlsTerminate", "injectHosts", "mode", "path", "files"}
	for _, tc := range []struct{ key, want string }{
		{"requestRule", "requestRules"},
		{"RequestRules", "requestRules"},
		{"request_rules", "requestRules"},
		{"tlsTermiante", "tlsTerminate"},
		{"tlsTermnte", "tlsTerminate"},
		{"tlsTrmnte", ""},
		{"injectHost", "injectHosts"},
		{"allowDomains", "allowedDomains"},
		{"MODE", "mode"},
		{"mod", "mode"},
		{"made", "mode"},
		{"md", ""},
		{"hosts", ""},
		{"note", ""},
		{"_comment", ""},
		{"", ""},
		{strings.Repeat("requestRules", 10), ""},
	} {
		if got := meant(tc.key, known); got != tc.want {
			t.Errorf("CFG-14: %q is taken for %q, want %q", tc.key, got, tc.want)
		}
	}
}

func TestGraveKeys_CFG14(t *testing.T) {
	c := accept(t, "linux", with(t, "network.requestRule", `[]`, "network.later", `1`, "credentials.envVars",
		`[{"name":"P","mode":"deny","hosts":["a.example"]}]`))
	want := []string{
		"settings key credentials.envVars.0.hosts is unknown and has no effect",
		"settings key network.later is unknown and has no effect",
		"settings key network.requestRule is unknown and has no effect; is requestRules meant?",
	}
	keys := c.UnknownKeys()
	if len(keys) != len(want) {
		t.Fatalf("CFG-14: got %q", keys)
	}
	for i, k := range keys {
		if k.String() != want[i] || k.Grave() != (i != 1) {
			t.Errorf("CFG-14: %q, grave %v; want %q", k, k.Grave(), want[i])
		}
	}
}
