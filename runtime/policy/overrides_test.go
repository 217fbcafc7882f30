package policy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/config"
)

func pathEntries(paths ...string) []config.PathEntry {
	list := []config.PathEntry{}
	for _, p := range paths {
		list = append(list, config.PathEntry{Path: p})
	}
	return list
}

func TestResolveMasks_FS58(t *testing.T) {
	file := func(path, mode string) config.FileCredential {
		return config.FileCredential{Path: path, Credential: config.Credential{Mode: mode}}
	}
	in := PathInput{Cwd: "/h/p", Home: "/h", CredentialFiles: []config.FileCredential{
		file("~/.netrc", config.ModeMask), file("k", config.ModeDeny), file("a*[b]", config.ModeMask), file("/x/../y", config.ModeMask)}}
	masks, err := ResolveMasks(in)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ key, path string }{
		{"credentials.files.0.path", "/h/.netrc"}, {"credentials.files.2.path", "/h/p/a*[b]"}, {"credentials.files.3.path", "/y"}} {
		if m := masks[i]; m.Key != want.key || m.Path != want.path || m.Pattern {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	if len(masks) != 3 {
		t.Errorf("%d masks", len(masks))
	}
	for _, bad := range []PathInput{
		{Cwd: "/h/p", CredentialFiles: []config.FileCredential{file("~/.netrc", config.ModeMask)}},
		{Cwd: "/h/p", Home: "/h", CredentialFiles: []config.FileCredential{file("a\x00b", config.ModeMask)}},
	} {
		var pe *PathError
		if masks, err := ResolveMasks(bad); !errors.As(err, &pe) || pe.Key != "credentials.files.0.path" || masks != nil {
			t.Errorf("%v, %v", masks, err)
		}
	}
}

func TestViews_FS56_FS28(t *testing.T) {
	rules, err := ResolvePaths(PathInput{Cwd: "/h/p", Home: "/h", DenyRead: pathEntries("s", "s"), AllowRead: pathEntries("s/a"), AllowWrite: pathEntries(".", "/tmp/claude"),
		DenyWrite: pathEntries("k"), CredentialFiles: []config.FileCredential{{Path: "~/.netrc", Credential: config.Credential{Mode: config.ModeDeny}}}})
	if err != nil {
		t.Fatal(err)
	}
	read, write := Views(false, "/h", rules)
	if d := cmp.Diff(ReadView{[]string{"/h/p/s", "/h/.netrc"}, []string{"/h/p/s/a"}}, read); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	want := append(DefaultWritePaths("/h", rules), "/h/p")
	if d := cmp.Diff(WriteView{want, []string{"/h/p/k"}}, write); d != "" {
		t.Errorf("write (-want +got):\n%s", d)
	}
	read, write = Views(true, "/h", rules)
	if d := cmp.Diff(ReadView{[]string{}, []string{}}, read); d != "" {
		t.Errorf("disabled, read (-want +got):\n%s", d)
	}
	if d := cmp.Diff(WriteView{[]string{"/"}, []string{}}, write); d != "" {
		t.Errorf("disabled, write (-want +got):\n%s", d)
	}
}
