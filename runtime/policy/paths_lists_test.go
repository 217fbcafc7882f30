package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/config"
)

func names(paths ...string) []config.PathEntry {
	var list []config.PathEntry
	for _, p := range paths {
		list = append(list, config.PathEntry{Path: p})
	}
	return list
}

func TestResolvePaths(t *testing.T) {
	got, err := ResolvePaths(PathInput{
		DenyRead:   names("~/s", "*.pem"),
		AllowRead:  []config.PathEntry{{Path: "x*", Literal: true}},
		AllowWrite: names("."),
		DenyWrite:  names("conf/**"),
		CredentialFiles: []config.FileCredential{
			{Path: "~/masked", Credential: config.Credential{Mode: config.ModeMask}},
			{Path: "~/.netrc", Credential: config.Credential{Mode: config.ModeDeny}},
		},
		Cwd: "/h/p", Home: "/h",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := PathRules{
		DenyRead: []PathRule{{Entry: "~/s", Key: "filesystem.denyRead.0", Path: "/h/s"},
			{Entry: "*.pem", Key: "filesystem.denyRead.1", Path: "/h/p/*.pem", Pattern: true, Anchor: "/h/p"}},
		AllowRead:  []PathRule{{Entry: "x*", Key: "filesystem.allowRead.0", Path: "/h/p/x*"}},
		AllowWrite: []PathRule{{Entry: ".", Key: "filesystem.allowWrite.0", Path: "/h/p"}},
		DenyWrite:  []PathRule{{Entry: "conf/**", Key: "filesystem.denyWrite.0", Path: "/h/p/conf"}},
		// FS-57: a mask is no deny, and the key counts every file.
		CredentialDeny: []PathRule{{Entry: "~/.netrc", Key: "credentials.files.1.path", Path: "/h/.netrc"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestResolvePathsEmptyHome_FS5(t *testing.T) {
	got, err := ResolvePaths(PathInput{AllowWrite: names("~", "~/x", "y"), Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.AllowWrite) != 1 || got.AllowWrite[0].Path != "/w/y" || got.AllowWrite[0].Key != "filesystem.allowWrite.2" {
		t.Errorf("got %+v", got.AllowWrite)
	}
	if len(got.Warnings) != 2 || !strings.Contains(got.Warnings[1], `"~/x"`) {
		t.Errorf("warnings %q", got.Warnings)
	}
}

// TestResolvePathsDenyUnderEmptyHome_FS5: what cannot be denied must not be left open in silence.
func TestResolvePathsDenyUnderEmptyHome_FS5(t *testing.T) {
	credential := func(mode string) []config.FileCredential {
		return []config.FileCredential{{Path: "~/.netrc", Credential: config.Credential{Mode: mode}}}
	}
	tests := []struct {
		name string
		in   PathInput
		key  string // "" for no error
	}{
		{"denyRead", PathInput{DenyRead: names("k", "~")}, "filesystem.denyRead.1"},
		{"denyRead beneath", PathInput{DenyRead: names("~/.ssh/**")}, "filesystem.denyRead.0"},
		{"denyRead pattern", PathInput{DenyRead: names("~/*.key")}, "filesystem.denyRead.0"},
		{"denyRead marked", PathInput{DenyRead: []config.PathEntry{{Path: "~/x", Literal: true}}}, "filesystem.denyRead.0"},
		{"denyWrite", PathInput{AllowWrite: names("~"), DenyWrite: names("~/x")}, "filesystem.denyWrite.0"},
		{"credential", PathInput{CredentialFiles: credential(config.ModeDeny)}, "credentials.files.0.path"},
		{"a mask is no deny", PathInput{CredentialFiles: credential(config.ModeMask)}, ""},
		{"allowRead", PathInput{AllowRead: names("~/x")}, ""},
		{"allowWrite", PathInput{AllowWrite: names("~")}, ""},
		{"a name that starts with a tilde", PathInput{DenyRead: names("~x", "a/~")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Cwd = "/w"
			_, err := ResolvePaths(tt.in)
			var bad *PathError
			switch {
			case tt.key == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.key != "" && (!errors.As(err, &bad) || bad.Key != tt.key || !strings.Contains(err.Error(), "HOME is empty")):
				t.Errorf("error %v, want one at %s", err, tt.key)
			}
		})
	}
}

func TestResolvePathsRefused_FS4(t *testing.T) {
	bad := []PathInput{
		{DenyRead: names("a", "b\x00"), Cwd: "/w"},
		{CredentialFiles: []config.FileCredential{{Path: "\x00", Credential: config.Credential{Mode: config.ModeDeny}}}, Cwd: "/w"},
		{DenyWrite: names(""), Cwd: "/w"},
		{Cwd: "w"},
	}
	keys := []string{"filesystem.denyRead.1", "credentials.files.0.path", "filesystem.denyWrite.0", "working directory"}
	for i, in := range bad {
		rules, err := ResolvePaths(in)
		var pe *PathError
		if !errors.As(err, &pe) || pe.Key != keys[i] {
			t.Errorf("input %d: error %v, want one at %s", i, err, keys[i])
		}
		if len(rules.DenyRead)+len(rules.AllowWrite) > 0 {
			t.Errorf("input %d: rules beside an error", i)
		}
	}
}

func FuzzPathText(f *testing.F) {
	for _, s := range []string{"~", "~/../x", "a/**", "/**", "..", "a/../../..", "~//", "x*/**", "{", "a\x00", "~\x00"} {
		f.Add(s, false, true, "/h")
	}
	f.Add("~", true, false, "")
	f.Fuzz(func(t *testing.T, entry string, literal, readList bool, home string) {
		if strings.IndexByte(home, 0) >= 0 {
			t.Skip("the environment holds no NUL byte")
		}
		rule, ok, err := pathText(entry, literal, readList, "/w/c", home)
		if err != nil || !ok {
			return
		}
		switch p := rule.Path; {
		case !strings.HasPrefix(p, "/"), p != "/" && strings.HasSuffix(p, "/"), strings.Contains(p, "//"),
			strings.Contains(p+"/", "/../"), strings.Contains(p+"/", "/./"), strings.IndexByte(p, 0) >= 0:
			t.Errorf("pathText(%q) = %q is not absolute and clean", entry, p)
		case home == "" && strings.HasPrefix(entry, "~/"):
			t.Errorf("pathText(%q) = %q with an empty home", entry, p)
		case rule.Pattern && !Covers(rule.Anchor, p) && rule.Anchor != "", rule.Pattern && rule.Anchor == p:
			t.Errorf("pathText(%q): %q is not beneath its anchor %q", entry, p, rule.Anchor)
		case literal && rule.Pattern:
			t.Errorf("pathText(%q): a marked entry became a pattern", entry)
		}
	})
}
