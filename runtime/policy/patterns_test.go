package policy

import (
	"errors"
	"slices"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

func TestGlobPatternWarnings_FS64(t *testing.T) {
	credential := func(p, mode string) config.FileCredential {
		return config.FileCredential{Path: p, Credential: config.Credential{Mode: mode}}
	}
	in := PathInput{
		DenyRead:   append(names("*.pem", "a", "/opt*/x", "b/**", "*.pem", "c*/**"), config.PathEntry{Path: "m*", Literal: true}),
		AllowRead:  names("/*/x", "y?"),
		AllowWrite: names("out*"),
		DenyWrite:  append(names("*.lock", "d/**", "e*/**", "t[user-id]", "*.pem"), config.PathEntry{Path: "m*", Literal: true}),
		CredentialFiles: []config.FileCredential{credential("*.key", config.ModeDeny), credential("*.pem", config.ModeDeny),
			credential("x*", config.ModeMask), credential("y", config.ModeDeny)},
		Cwd: "/w",
	}
	want := []string{"*.lock", "e*/**", "t[user-id]", "*.pem", "*.pem", "/opt*/x", "c*/**", "*.key"}
	if got := GlobPatternWarnings(in, false); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := GlobPatternWarnings(in, true); len(got) != 0 {
		t.Errorf("names are judged as they come, yet %q", got)
	}
	if got := GlobPatternWarnings(PathInput{}, false); len(got) != 0 {
		t.Errorf("no lists, yet %q", got)
	}
}

func TestPatternAnchor_FS12(t *testing.T) {
	for _, tt := range []struct{ entry, cwd, home, path, anchor string }{
		{"*.pem", "/w/[x]", "/h", "/w/[x]/*.pem", "/w/[x]"},
		{"./*.pem", "/w/[x]", "/h", "/w/[x]/*.pem", "/w/[x]"},
		{"../*.pem", "/w/[x]", "/h", "/w/*.pem", "/w"},
		{"a/../../b/*", "/w/[x]", "/h", "/w/b/*", "/w"},
		{"../../../*", "/w/[x]", "/h", "/*", "/"},
		{"~/*.pem", "/w", "/h/*", "/h/*/*.pem", "/h/*"},
		{"~//../*.pem", "/w", "/h/*", "/h/*.pem", "/h"},
		{"~/*", "/w", "h", "/w/h/*", "/w/h"},
		{"/a/*", "/w", "/h", "/a/*", ""},
		{"*", "/", "/h", "/*", "/"},
	} {
		got, ok, err := pathText(tt.entry, false, true, tt.cwd, tt.home)
		if err != nil || !ok || got.Path != tt.path || got.Anchor != tt.anchor || !got.Pattern {
			t.Errorf("%q in %q: %+v, %v", tt.entry, tt.cwd, got, err)
		}
	}
}

// TestTrailingSeparator_FS3: as a pattern such an entry matches nothing.
func TestTrailingSeparator_FS3(t *testing.T) {
	for _, entry := range []string{"/data/*/", "~/x?/", "~*/", "/a[b]//"} {
		for _, in := range []PathInput{
			{DenyRead: names(entry)}, {DenyWrite: names(entry)},
			{CredentialFiles: []config.FileCredential{{Path: entry, Credential: config.Credential{Mode: config.ModeDeny}}}},
		} {
			in.Cwd, in.Home = "/w", "/h"
			var bad *PathError
			if _, err := ResolvePaths(in); !errors.As(err, &bad) || bad.Entry != entry {
				t.Errorf("%q in a deny list: %v", entry, err)
			}
		}
		got, err := ResolvePaths(PathInput{AllowRead: names(entry), AllowWrite: names(entry), Cwd: "/w", Home: "/h"})
		if err != nil || got.AllowRead[0].Pattern || got.AllowWrite[0].Pattern {
			t.Errorf("%q in an allow list is a pattern: %+v, %v", entry, got, err)
		}
	}
	got, err := ResolvePaths(PathInput{DenyRead: names("build/*/", "/data/"), Cwd: "/w"})
	if err != nil || got.DenyRead[0].Path != "/w/build/*" || !got.DenyRead[0].Pattern || got.DenyRead[1].Path != "/data" {
		t.Errorf("%+v, %v", got.DenyRead, err)
	}
}
