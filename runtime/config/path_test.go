package config

import "testing"

func TestPathEntries(t *testing.T) {
	for _, key := range []string{"denyRead", "allowRead", "allowWrite", "denyWrite"} {
		full := "filesystem." + key
		accept(t, "linux", with(t, full, `["x","/x/"," ","~","~u",{"path":"x","literal":true}]`))
		for _, tc := range []struct{ rule, entry, reason string }{
			{"CFG-60", `""`, "Path cannot be empty"},
			{"CFG-60", `{"path":"","literal":true}`, "Path cannot be empty"},
			{"CFG-60, case 17", `{"path":"x"}`, pathShape},
			{"CFG-60", `{"path":"x","literal":false}`, pathShape},
			{"CFG-60", `{"path":"x","literal":"true"}`, pathShape},
			{"CFG-60", `{"path":"x","literal":null}`, pathShape},
			{"CFG-60", `{"path":1,"literal":true}`, pathShape},
			{"CFG-60", `{"literal":true}`, pathShape},
			{"CFG-60", `{}`, pathShape},
			{"CFG-60", `null`, pathShape},
			{"CFG-60", `7`, pathShape},
			{"CFG-60", `["x"]`, pathShape},
			{"CFG-60, case 17", `{"path":"x","literal":true,"z":1}`, "Unrecognized key(s) in object: 'z'"},
			{"FS-2", `{"path":"x","literal":true,"Literal":true}`, "'Literal'"},
			{"FS-4", `"a\u0000b"`, "NUL"},
			{"FS-4", `{"path":"a\u0000b","literal":true}`, "NUL"},
		} {
			t.Run(tc.rule+" "+key, func(t *testing.T) {
				refuse(t, "linux", with(t, full, `["ok",`+tc.entry+`]`), full+".1", tc.reason)
			})
		}
	}
}

func TestIsPattern(t *testing.T) {
	for _, tc := range []struct {
		path           string
		posix, windows bool
	}{
		{"a*", true, true}, {"a?", true, true}, {"[a", true, false}, {"a]", true, false}, {"a{b}", false, false},
		{`\\?\C:\a`, true, false}, {`\\?\C:\a*`, true, true}, {"", false, false},
	} {
		e := PathEntry{Path: tc.path}
		if e.IsPattern("linux") != tc.posix || e.IsPattern("darwin") != tc.posix || e.IsPattern("windows") != tc.windows {
			t.Errorf("CFG-61: %q: linux %v windows %v", tc.path, e.IsPattern("linux"), e.IsPattern("windows"))
		}
		e.Literal = true
		if e.IsPattern("linux") || e.IsPattern("windows") {
			t.Errorf("CFG-61: the literal entry %q is a pattern", tc.path)
		}
	}
}

func TestInertDenyPatterns(t *testing.T) {
	for _, tc := range []struct {
		rule, goos, entry string
		refused           bool
	}{
		{"CFG-64, case 16", "linux", `"/data/*/"`, true},
		{"CFG-64, case 16", "linux", `"~/x*/"`, true},
		{"CFG-64", "linux", `"~*/"`, true},
		{"CFG-64", "linux", `"/a[b]c//"`, true},
		{"CFG-64, case 16", "linux", `"build/*/"`, false},
		{"CFG-64, case 16", "linux", `"/x/"`, false},
		{"CFG-64, case 16", "linux", `{"path":"/a*/","literal":true}`, false},
		{"CFG-64", "linux", `"/a*"`, false},
		{"CFG-64", "linux", `"/a*\\"`, false},
		{"CFG-64", "linux", `"/"`, false},
		{"FS-3", "windows", `"/data/*\\"`, true},
		{"FS-3", "windows", `"C:\\data\\*\\"`, true},
		{"FS-3", "windows", `"c:/data/*/"`, true},
		{"FS-3", "windows", `"~\\x*\\"`, true},
		{"CFG-62", "windows", `"%UserProfile%\\x*\\"`, true},
		{"CFG-62", "windows", `"\\\\?\\C:\\x*\\"`, true},
		{"CFG-62", "windows", `"\\\\?\\C:\\x\\"`, false},
		{"CFG-61", "windows", `"C:\\a[b]\\"`, false},
		{"CFG-64", "windows", `"x*\\"`, false},
		{"CFG-64", "windows", `"%TEMP%\\x*\\"`, false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			for _, key := range []string{"filesystem.denyRead", "filesystem.denyWrite"} {
				if tc.refused {
					refuse(t, tc.goos, with(t, key, "["+tc.entry+"]"), key+".0", `"**" segment`)
				} else {
					accept(t, tc.goos, with(t, key, "["+tc.entry+"]"))
				}
				accept(t, tc.goos, with(t, key, "["+tc.entry+"]", "filesystem.disabled", "true"))
			}
			for _, key := range []string{"filesystem.allowRead", "filesystem.allowWrite"} {
				accept(t, tc.goos, with(t, key, "["+tc.entry+"]"))
			}
			if tc.entry[0] != '"' {
				return
			}
			files := `[{"path":` + tc.entry + `,"mode":"deny"}]`
			if tc.refused {
				refuse(t, tc.goos, with(t, "credentials.files", files), "credentials.files.0.path", `"**" segment`)
			} else {
				accept(t, tc.goos, with(t, "credentials.files", files))
			}
			accept(t, tc.goos, with(t, "credentials.files", files, "filesystem.disabled", "true"))
		})
	}
	refuse(t, "linux", with(t, "filesystem.denyRead", `["/data/*/"]`), "filesystem.denyRead.0", `write "/data/*", or`)
}

func TestCredentialPaths(t *testing.T) {
	for _, tc := range []struct{ rule, goos, files, path, reason string }{
		{"CFG-65", "linux", `[{"path":{"path":"x","literal":true},"mode":"deny"}]`, "credentials.files.0.path", "Expected string, received object"},
		{"CFG-65", "linux", `[{"path":"dir/","mode":"mask"}]`, "credentials.files.0.path", "one file"},
		{"CFG-65", "windows", `[{"path":"dir\\","mode":"mask"}]`, "credentials.files.0.path", "one file"},
		{"CFG-60", "linux", `[{"path":"","mode":"deny"}]`, "credentials.files.0.path", "Path cannot be empty"},
		{"FS-4", "linux", `[{"path":"a\u0000","mode":"deny"}]`, "credentials.files.0.path", "NUL"},
		{"CFG-15", "linux", `[{"mode":"deny"}]`, "credentials.files.0.path", "Required"},
		{"CFG-15", "linux", `[{"path":"x"}]`, "credentials.files.0.mode", "Required"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refuse(t, tc.goos, with(t, "credentials.allowPlaintextInject", "true", "credentials.files", tc.files), tc.path, tc.reason)
		})
	}
	accept(t, "linux", with(t, "credentials.files", `[{"path":"dir/","mode":"deny"},{"path":"dir/","mode":"deny"}]`))
}
