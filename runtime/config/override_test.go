package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func pathEntries(paths ...string) []PathEntry {
	list := []PathEntry{}
	for _, p := range paths {
		list = append(list, PathEntry{Path: p})
	}
	return list
}

func sessionConfig() *Config {
	return &Config{
		Network: Network{AllowedDomains: []string{"a.example", "b.example:443"}},
		Filesystem: Filesystem{Disabled: true, DenyRead: pathEntries("f"), AllowRead: pathEntries("ar"), AllowWrite: pathEntries("w"),
			DenyWrite: pathEntries("dw"), AllowGitConfig: true},
		Credentials:              &Credentials{Files: []FileCredential{{Path: "tok", Credential: Credential{Mode: ModeDeny}}}},
		Git:                      Git{SafeDirectories: []string{"/one"}},
		MandatoryDenySearchDepth: 5,
	}
}

// TestOverrideApply walks the table of LIB-13, each row as a file would say it.
func TestOverrideApply_LIB13(t *testing.T) {
	tests := []struct {
		name, override string
		want           func(c *Config)
	}{
		{"FS-60 nothing", `{}`, func(*Config) {}},
		{"FS-61 FS case 35 an empty section turns the rules on", `{"filesystem": {}}`, func(c *Config) { c.Filesystem.Disabled = false }},
		{"FS-61 disabled for one command", `{"filesystem": {"disabled": true}}`, func(*Config) {}},
		{"FS-60 each list replaces its own, even by nothing", `{"filesystem": {"denyRead": ["x"], "allowWrite": []}}`, func(c *Config) {
			c.Filesystem.Disabled, c.Filesystem.DenyRead, c.Filesystem.AllowWrite = false, pathEntries("x"), pathEntries()
		}},
		{"FS-60 the other two lists", `{"filesystem": {"allowRead": ["x"], "denyWrite": ["y", {"path": "*", "literal": true}]}}`, func(c *Config) {
			c.Filesystem.Disabled, c.Filesystem.AllowRead = false, pathEntries("x")
			c.Filesystem.DenyWrite = []PathEntry{{Path: "y"}, {Path: "*", Literal: true}}
		}},
		{"case 18", `{"filesystem": {"denyWrite": ["x"]}}`, func(c *Config) {
			c.Filesystem.Disabled, c.Filesystem.DenyWrite = false, pathEntries("x")
		}},
		{"FS-60 credentials are replaced whole", `{"credentials": {"allowPlaintextInject": true}}`, func(c *Config) {
			c.Credentials = &Credentials{AllowPlaintextInject: true}
		}},
		{"the default of injectHosts", `{"network": {"allowedDomains": ["a.example"]}}`, func(c *Config) {
			c.Network.AllowedDomains = []string{"a.example"}
		}},
		{"switches", `{"allowPty": true, "allowNestedUserNamespaces": true}`, func(c *Config) { c.AllowPty, c.AllowNestedUserNamespaces = true, true }},
		{"mode", `{"enableWeakerNestedSandbox": true}`, func(c *Config) { c.EnableWeakerNestedSandbox = true }},
		{"git.safeDirectories append", `{"git": {"safeDirectories": ["/two"]}}`, func(c *Config) { c.Git.SafeDirectories = []string{"/one", "/two"} }},
	}
	plain := cmpopts.IgnoreUnexported(Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := DecodeOverride([]byte(tt.override))
			if err != nil {
				t.Fatal(err)
			}
			again, err := DecodeOverride([]byte(tt.override))
			if err != nil {
				t.Fatal(err)
			}
			session, want := sessionConfig(), sessionConfig()
			tt.want(want)
			got, err := o.Apply(session)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, plain); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			spoil(got)
			if d := cmp.Diff(sessionConfig(), session, plain); d != "" {
				t.Errorf("LIB-20 the session shares something with the command (-want +got):\n%s", d)
			}
			if d := cmp.Diff(again, o); d != "" {
				t.Errorf("LIB-20 the override shares something with the command (-want +got):\n%s", d)
			}
		})
	}
}

// spoil changes every list in place.
func spoil(c *Config) {
	f := &c.Filesystem
	for _, l := range [][]PathEntry{f.DenyRead, f.AllowRead, f.AllowWrite, f.DenyWrite} {
		for i := range l {
			l[i].Path = "changed"
		}
	}
	if c.Credentials != nil && len(c.Credentials.Files) > 0 {
		c.Credentials.Files[0].Path = "changed"
	}
	for _, l := range [][]string{c.Network.AllowedDomains, c.Git.SafeDirectories} {
		for i := range l {
			l[i] = "changed"
		}
	}
}

func TestOverrideApply_LIB13_NilIsACopy(t *testing.T) {
	session := sessionConfig()
	got, err := (*Override)(nil).Apply(session)
	if err != nil || got == session {
		t.Fatalf("%p of %p, %v", got, session, err)
	}
	spoil(got)
	if d := cmp.Diff(sessionConfig(), session, cmpopts.IgnoreUnexported(Config{})); d != "" {
		t.Error(d)
	}
}

// TestOverrideApply_LIB2: what an override and the session's settings are together is checked like a settings file.
func TestOverrideApply_LIB2(t *testing.T) {
	for name, c := range map[string]struct {
		o    Override
		path string
	}{
		"an empty path":    {Override{Filesystem: &FilesystemOverride{DenyRead: pathEntries("")}}, "filesystem.denyRead.0"},
		"an inert deny":    {Override{Filesystem: &FilesystemOverride{DenyRead: pathEntries("/x*/")}}, "filesystem.denyRead.0"},
		"a host":           {Override{Network: NetworkOverride{AllowedDomains: []string{"*.com"}}}, "network.allowedDomains.0"},
		"an injectHost":    {Override{Credentials: &Credentials{EnvVars: []EnvCredential{{Name: "A", Credential: Credential{Mode: ModeDeny, InjectHosts: []string{"c.example"}}}}}}, "credentials.envVars.0.injectHosts.0"},
		"a mask, no TLS":   {Override{Credentials: &Credentials{EnvVars: []EnvCredential{{Name: "A", Credential: Credential{Mode: ModeMask}}}}}, "credentials"},
		"a safe directory": {Override{Git: Git{SafeDirectories: []string{"a\x00b"}}}, "git.safeDirectories.1"},
	} {
		_, err := c.o.Apply(sessionConfig())
		var bad *Error
		if !errors.As(err, &bad) || !slices.ContainsFunc(bad.Issues, func(i Issue) bool { return i.Path == c.path }) {
			t.Errorf("%s: %v, want an issue at %s", name, err, c.path)
		}
	}
}

// TestDecodeOverride_LIB13_Refusals: what counts for the whole session is refused by its name, in every place it may stand.
func TestDecodeOverride_LIB13_Refusals(t *testing.T) {
	refused := map[string]string{"case 19": `{"network": {"deniedDomains": []}}`}
	for _, key := range []string{"ignoreViolations", "enableWeakerNetworkIsolation", "mandatoryDenySearchDepth", "windows", "javaAgentJarPath"} {
		refused[key] = `{"` + key + `": {}}`
	}
	for _, key := range []string{"deniedDomains", "strictAllowlist", "allowUnixSockets", "allowAllUnixSockets", "allowLocalBinding", "mitmProxy",
		"parentProxy", "httpProxyPort", "tlsTerminate", "deniedResolvedAddresses", "deniedDomainReasons"} {
		refused["network."+key] = `{"network": {"` + key + `": []}}`
	}
	refused["filesystem.allowGitConfig"] = `{"filesystem": {"allowGitConfig": true}}`
	for path, text := range refused {
		if path == "case 19" {
			path = "network.deniedDomains"
		}
		_, err := DecodeOverride([]byte(text))
		var bad *Error
		if !errors.As(err, &bad) || len(bad.Issues) != 1 || bad.Issues[0].Path != path || !strings.Contains(bad.Issues[0].Reason, "cannot be overridden") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`{"filesytem": {}}`, `{"filesystem": {"denyreads": []}}`, `{"network": {"x": 1}}`} {
		var bad *Error
		if _, err := DecodeOverride([]byte(text)); !errors.As(err, &bad) || !strings.Contains(err.Error(), "Unrecognized key") {
			t.Errorf("%s: %v", text, err)
		}
	}
	var syntax *SyntaxError
	if _, err := DecodeOverride([]byte(`{`)); !errors.As(err, &syntax) {
		t.Errorf("half an object: %v", err)
	}
}

// TestOverrideKnowsEveryKey_LIB13: no key of a settings file is unknown to an override: it counts, or is refused with a
// reason.
func TestOverrideKnowsEveryKey_LIB13(t *testing.T) {
	for _, row := range settingTable() {
		if strings.HasPrefix(row.path, "windows.") || strings.HasPrefix(row.path, "network.tlsTerminate.") {
			continue // refused with their section
		}
		section, key, nested := strings.Cut(row.path, ".")
		text := `{"` + section + `": null}`
		if nested {
			text = `{"` + section + `": {"` + key + `": null}}`
		}
		var bad *Error
		if _, err := DecodeOverride([]byte(text)); !errors.As(err, &bad) || strings.Contains(err.Error(), "Unrecognized") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
