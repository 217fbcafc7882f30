package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestNotJSON(t *testing.T) {
	for _, tc := range []struct{ rule, data, detail string }{
		{"CFG-10 trailing comma", `{"a":1,}`, "line 1 column 8"},
		{"CFG-10 comment", "{\n  // no\n}", "line 2 column 3"},
		{"CFG-10 byte order mark", "\ufeff" + smallest, "byte order mark"},
		{"CFG-10 trailing text", smallest + " x", "text follows the value at line 2"},
		{"CFG-10 second value", smallest + "\n{}", "text follows the value at line 3 column 1"},
		{"CFG-10 not UTF-8", "{\"é\":\"\xff\"}", "not UTF-8 (first bad byte at line 1 column 7)"},
		{"CFG-10 not UTF-8 in a key", "{\"\xc3\":1}", "not UTF-8"},
		{"CFG-10 cut off", `{"network":`, "ends before the value does"},
		{"CFG-10 empty", ``, "ends before the value does"},
		{"CFG-10 blank", " \n", "ends before the value does, at line 2 column 1"},
		{"CFG-10 single quotes", `{'a':1}`, "line 1 column 2"},
		{"CFG-10 NaN", `{"a":NaN}`, "line 1 column 6"},
		{"CFG-10 leading zero", `{"a":01}`, "line 1 column 7"},
		{"CFG-10 control character in a string", "{\"a\":\"\n\"}", "line 1"},
		{"CFG-10 half a surrogate pair", `{"a":"\ud83d"}`, "surrogate pair, which is no character, at line 1 column 7"},
		{"CFG-10 low half alone", `{"a":"x\uDE00"}`, "surrogate pair"},
		{"CFG-10 two high halves", `{"a":"\ud83d\uD83D\ude00"}`, "column 7"},
		{"CFG-10 half a pair in a key", `{"\\\udfff":1}`, "column 5"},
		{"CFG-10 too deep", strings.Repeat("[", 100_000), "depth"},
	} {
		_, err := Decode([]byte(tc.data))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(syntax.Detail, tc.detail) {
			t.Errorf("%s: %v; want a SyntaxError with %q", tc.rule, err, tc.detail)
		}
	}
}

func TestWholeMessage(t *testing.T) {
	for _, tc := range []struct{ rule, data, want string }{
		{"case 4, CFG-15", `{}`, "network: Required; filesystem: Required"},
		{"case 4, CFG-10", `[]`, "(root): Expected object, received array"},
		{"CFG-10", `null`, "(root): Expected object, received null"},
		{"CFG-10", `"x"`, "(root): Expected object, received string"},
		{"CFG-15", `{"network":{},"filesystem":{}}`, "network.allowedDomains: Required; network.deniedDomains: Required; " +
			"filesystem.denyRead: Required; filesystem.allowWrite: Required; filesystem.denyWrite: Required"},
		{"CFG-11 case", `{"Network":{},"filesystem":{"denyRead":[],"allowWrite":[],"denyWrite":[]}}`, "network: Required"},
		{"CFG-7 all issues", `{"network":{"allowedDomains":[1,"x.com",true],"deniedDomains":{}},"filesystem":7,"allowPty":"true"}`,
			"network.allowedDomains.0: Expected string, received number; " +
				"network.allowedDomains.2: Expected string, received boolean; " +
				"network.deniedDomains: Expected array, received object; " +
				"filesystem: Expected object, received number; allowPty: Expected boolean, received string"},
	} {
		_, err := Decode([]byte(tc.data))
		var issues *Error
		if !errors.As(err, &issues) || err.Error() != tc.want {
			t.Errorf("%s: %s\ngot  %v\nwant %s", tc.rule, tc.data, err, tc.want)
		}
	}
}

func TestDefault(t *testing.T) {
	c := Default()
	if err := c.Validate(); err != nil {
		t.Errorf("CFG-8: the built-in config is invalid: %v", err)
	}
	want := accept(t, "linux", with(t, "filesystem.allowRead", "[]"))
	if !reflect.DeepEqual(c, want) {
		t.Errorf("CFG-8: got %+v want %+v", c, want)
	}
	c.Network.AllowedDomains = append(c.Network.AllowedDomains, "x.com")
	if len(Default().Network.AllowedDomains) != 0 {
		t.Error("CFG-8: two calls share a list")
	}
	if err := (&Config{}).Validate(); err != nil {
		t.Errorf("LIB-2: the zero config, which is the strictest, is refused: %v", err)
	}
	if err := (*Config)(nil).Validate(); err == nil {
		t.Error("LIB-2: no config is valid")
	}
}

func TestDuplicateKeys(t *testing.T) {
	fs := `"filesystem":{"denyRead":[],"allowWrite":[],"denyWrite":[]}`
	first := `"network":{"allowedDomains":["a.com"],"deniedDomains":[],"strictAllowlist":true}`
	if _, err := Decode([]byte(`{` + first + `,"network":{"allowedDomains":7},` + fs + `}`)); err == nil {
		t.Error("CFG-11, case 8: an invalid second network is accepted")
	}
	c := accept(t, "linux", []byte(`{`+first+`,"network":{"allowedDomains":["b.com"],"deniedDomains":[]},`+fs+`}`))
	if got := c.Network; !slices.Equal(got.AllowedDomains, []string{"b.com"}) || got.StrictAllowlist {
		t.Errorf("CFG-11, case 8: the two were merged: %+v", got)
	}
	accept(t, "linux", []byte(`{"network":null,`+first+`,`+fs+`}`))
}

func TestTypes(t *testing.T) {
	for _, tc := range []struct{ rule, path, value, reason string }{
		{"CFG-12", "allowPty", "null", "Expected boolean, received null"},
		{"CFG-12", "credentials", "null", "Expected object, received null"},
		{"CFG-12", "network.mitmProxy", "null", "Expected object, received null"},
		{"CFG-12", "network.tlsTerminate", "null", "Expected object, received null"},
		{"CFG-12", "network.parentProxy", "null", "Expected object, received null"},
		{"CFG-12", "filesystem.allowRead", "null", "Expected array, received null"},
		{"CFG-12", "ignoreViolations", "null", "Expected object, received null"},
		{"CFG-12", "javaAgentJarPath", "null", "Expected string, received null"},
		{"CFG-13", "network.strictAllowlist", `"true"`, "Expected boolean, received string"},
		{"CFG-13", "network.strictAllowlist", `1`, "Expected boolean, received number"},
		{"CFG-13", "network.httpProxyPort", `"80"`, "Expected number, received string"},
		{"CFG-13", "network.httpProxyPort", `true`, "Expected number, received boolean"},
		{"CFG-13, case 7", "mandatoryDenySearchDepth", "1.5", "Expected integer, received float"},
		{"case 7", "mandatoryDenySearchDepth", "0", "greater than or equal to 1"},
		{"case 7", "mandatoryDenySearchDepth", "11", "less than or equal to 10"},
		{"CFG-13", "mandatoryDenySearchDepth", "-3", "greater than or equal to 1"},
		{"CFG-13", "mandatoryDenySearchDepth", "1e400", "less than or equal to 10"},
		{"CFG-13", "mandatoryDenySearchDepth", "-1e999999999999", "greater than or equal to 1"},
		{"range", "network.httpProxyPort", "0", "greater than or equal to 1"},
		{"range", "network.socksProxyPort", "65536", "less than or equal to 65535"},
		{"range", "network.tlsTerminate.maxTunnels", "0", "greater than or equal to 1"},
		{"range", "network.tlsTerminate.maxTunnels", "65537", "less than or equal to 65536"},
		{"range", "network.tlsTerminate.handshakeTimeoutMs", "99", "greater than or equal to 100"},
		{"range", "network.tlsTerminate.handshakeTimeoutMs", "600001", "less than or equal to 600000"},
		{"enum", "network.ambiguousRequestTarget", `"Refuse"`, "Expected 'refuse' | 'asSpelled' | 'normalize'"},
		{"enum", "network.ambiguousRequestTarget", `""`, "Expected 'refuse'"},
		{"enum", "credentials.sigv4.streaming", `"allow"`, "Expected 'deny' | 'passthrough'"},
		{"enum", "windows.backend", `"other"`, "Expected 'srt-win' | 'mxc'"},
		{"non-empty", "network.deniedDomainReasons", `""`, "Expected object, received string"},
		{"non-empty", "network.deniedDomainReasons.x", `""`, "at least 1 character"},
		{"non-empty", "network.stripResponseHeaders", `"a"`, "Expected array, received string"},
		{"CFG-38", "ignoreViolations.x", `"a"`, "Expected array, received string"},
		{"git", "git.safeDirectories", `"a"`, "Expected array, received string"},
		{"windows", "windows.sandboxUser", `""`, "at least 1 character"},
		{"windows", "windows.sandboxUser", `"123456789012345678901"`, "at most 20 character"},
		{"windows", "windows.sandboxUser", `"😀😀😀😀😀😀😀😀😀😀😀"`, "at most 20 character"},
	} {
		t.Run(tc.rule+" "+tc.path, func(t *testing.T) {
			refuse(t, "linux", with(t, tc.path, tc.value), tc.path, tc.reason)
		})
	}
	for _, number := range []string{"3", "3.0", "3e0", "30e-1", "0.3e1"} {
		if c := accept(t, "linux", with(t, "mandatoryDenySearchDepth", number)); c.MandatoryDenySearchDepth != 3 {
			t.Errorf("CFG-13, case 7: %s = %d", number, c.MandatoryDenySearchDepth)
		}
	}
}

func TestUnknownKeys(t *testing.T) {
	data := with(t, "zeta", `null`, "fileSystem", `{}`, "network.strictAllowList", `true`, "filesystem.denyReads", `["x"]`,
		"network.tlsTerminate", `{"x":1}`, "credentials.files", `[{"path":"p","mode":"deny","why":1}]`,
		"credentials.envVars", `[{"name":"P","mode":"deny","why":1}]`, "git", `{"a\nb":1}`, "ripgrep", `{"command":"rg","y":2}`)
	c := accept(t, "linux", data)
	want := []string{"credentials.envVars.0.why", "credentials.files.0.why", "fileSystem", "filesystem.denyReads",
		`git."a\nb"`, "network.strictAllowList", "network.tlsTerminate.x", "ripgrep.y", "zeta"}
	var got []string
	for _, k := range c.UnknownKeys() {
		got = append(got, k.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("CFG-14, case 83: got %q want %q", got, want)
	}
	c.UnknownKeys()[0].Path = "changed"
	if c.UnknownKeys()[0].Path == "changed" {
		t.Error("CFG-14: the caller can change the list")
	}
	if got := Default().UnknownKeys(); len(got) != 0 {
		t.Errorf("CFG-14: the built-in config has unknown keys: %q", got)
	}
	for _, tc := range []struct{ key, value, path, names string }{
		{"credentials", `{"injectHosts":[]}`, "credentials", "'injectHosts'"},
		{"credentials", `{"Files":[],"a":1}`, "credentials", "'Files', 'a'"},
		{"credentials.sigv4", `{"Streaming":"deny"}`, "credentials.sigv4", "'Streaming'"},
		{"credentials.sigv4", `{"a'\u001b":1}`, "credentials.sigv4", `"a'\x1b"`},
		{"filesystem.denyRead", `[{"path":"x","literal":true,"z":1}]`, "filesystem.denyRead.0", "'z'"},
	} {
		refuse(t, "linux", with(t, tc.key, tc.value), tc.path, "Unrecognized key(s) in object: ")
		refuse(t, "linux", with(t, tc.key, tc.value), tc.path, tc.names)
	}
	env := `[{"name":"A","mode":"mask"},{"name":"B","mode":"mask"}]`
	refuse(t, "linux", with(t, "credentials.allowPlaintextInject", "true", "credentials.envVars", env, "credentials.awsPairs",
		`[{"accessKeyIdVar":"A","secretAccessKeyVar":"B","token":"C"}]`), "credentials.awsPairs.0", "'token'")
}

func TestIgnoredKeys(t *testing.T) {
	c := accept(t, "linux", with(t, "bwrapPath", `"/no/such"`, "socatPath", `"/x"`, "ripgrep", `{"command":"","args":["a"]}`,
		"seccomp", `{}`, "windows.srtWin", `{"path":"x"}`))
	want := []string{"bwrapPath", "ripgrep", "seccomp", "socatPath", "windows.srtWin"}
	if got := c.IgnoredKeys(); !slices.Equal(got, want) {
		t.Errorf("CFG-30: got %q want %q", got, want)
	}
	if got := Default().IgnoredKeys(); len(got) != 0 {
		t.Errorf("CFG-30: the built-in config has %q", got)
	}
	for _, tc := range []struct{ rule, key, value, path, reason string }{
		{"CFG-30, case 23", "ripgrep", `{}`, "ripgrep.command", "Required"},
		{"CFG-30", "ripgrep", `{"command":"rg","args":"x"}`, "ripgrep.args", "Expected array"},
		{"CFG-30", "ripgrep", `{"command":"rg","argv0":1}`, "ripgrep.argv0", "Expected string"},
		{"CFG-30", "seccomp", `{"applyPath":1}`, "seccomp.applyPath", "Expected string"},
		{"CFG-30", "seccomp", `{"argv0":null}`, "seccomp.argv0", "Expected string"},
		{"CFG-30", "windows.srtWin", `{}`, "windows.srtWin.path", "Required"},
		{"CFG-30", "windows.srtWin", `{"path":""}`, "windows.srtWin.path", "at least 1"},
		{"CFG-35, case 23", "bwrapPath", `"bwrap"`, "bwrapPath", "Binary path must be absolute"},
		{"CFG-35", "socatPath", `""`, "socatPath", "Path cannot be empty"},
		{"CFG-35", "javaAgentJarPath", `"~/agent.jar"`, "javaAgentJarPath", "Binary path must be absolute"},
		{"CFG-35", "javaAgentJarPath", `""`, "javaAgentJarPath", "Path cannot be empty"},
	} {
		t.Run(tc.rule, func(t *testing.T) { refuse(t, "linux", with(t, tc.key, tc.value), tc.path, tc.reason) })
	}
	for _, path := range []string{`"C:\\a.jar"`, `"c:/a.jar"`, `"/a.jar"`, `"\\\\host\\a.jar"`} {
		accept(t, "windows", with(t, "javaAgentJarPath", path))
	}
	for _, path := range []string{`"C:a.jar"`, `"a.jar"`, `"1:/a"`, `"C:"`} {
		refuse(t, "windows", with(t, "javaAgentJarPath", path), "javaAgentJarPath", "must be absolute")
	}
}

func TestWholePairs(t *testing.T) {
	c := accept(t, "linux", with(t, "filesystem.denyRead", `["\ud83d\ude00\\ud83d","\u00e9\uD7FF\ue000"]`))
	if got := c.Filesystem.DenyRead; got[0].Path != "😀\\ud83d" || got[1].Path != "é\ud7ff\ue000" {
		t.Errorf("CFG-10: %+v", got)
	}
}

func TestKeptAsWritten(t *testing.T) {
	c := accept(t, "linux", with(t, "filesystem.denyRead", `["/x/","~/y","~u/z"]`, "network.deniedDomains", `["*:22","B.com"]`,
		"network.deniedDomainReasons", `{"B.com":"r","inert.com":"r"}`, "windows.backend", `"mxc"`))
	if got := c.Filesystem.DenyRead; got[0].Path != "/x/" || got[1].Path != "~/y" || got[2].Path != "~u/z" {
		t.Errorf("CFG-62, CFG-63: resolving paths is not for this package: %+v", got)
	}
	if got := c.Network; got.DeniedDomains[1] != "B.com" || len(got.DeniedDomainReasons) != 2 {
		t.Errorf("CFG-31: %+v", got)
	}
	if c.Windows.Backend != "mxc" {
		t.Errorf("CFG-39: a backend is refused at start, not here: %+v", c.Windows)
	}
}

// TestEachLineStandsAlone is CFG-78 and CLI-24: a config line replaces the whole config, under the same checks.
func TestEachLineStandsAlone(t *testing.T) {
	accept(t, "linux", with(t, "network.strictAllowlist", "true"))
	if c := accept(t, "linux", []byte(smallest)); c.Network.StrictAllowlist {
		t.Error("CFG-78: a key left out kept the value of an earlier config")
	}
	refuse(t, "linux", with(t, "network.tlsTerminate", `{}`, "network.mitmProxy", `{"socketPath":"s","domains":["x.com"]}`),
		"network", "mutually exclusive")
}

// TestFilesystemDefaults is FS-1.
func TestFilesystemDefaults(t *testing.T) {
	c := accept(t, "linux", with(t, "filesystem.unknown", "1"))
	if f := c.Filesystem; f.Disabled || f.AllowGitConfig || len(f.AllowRead) != 0 {
		t.Errorf("FS-1: %+v", f)
	}
}
