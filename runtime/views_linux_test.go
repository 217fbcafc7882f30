package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestLIB36_Getters: what is told is what is in force for a command that starts here, and changes with an update.
func TestLIB36_Getters(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", home)
	dir, err := filepath.EvalSymlinks(dir)
	succeed(t, err)
	s := newSession(t, func(c *config.Config) {
		c.Filesystem.DenyRead = []config.PathEntry{{Path: "s"}, {Path: "*.key"}, {Path: "[x]", Literal: true}}
		c.Filesystem.AllowRead = []config.PathEntry{{Path: "s/a"}}
		c.Filesystem.AllowWrite = []config.PathEntry{{Path: "."}}
		c.Filesystem.DenyWrite = []config.PathEntry{{Path: "~/k"}}
		c.Credentials = &config.Credentials{Files: []config.FileCredential{{Path: "~/.netrc", Credential: config.Credential{Mode: config.ModeDeny}}}}
	})
	read, err := s.ReadPolicy()
	succeed(t, err)
	wantRead := ReadPolicy{DenyOnly: []string{dir + "/s", dir + "/*.key", dir + "/[x]", home + "/.netrc"}, AllowWithinDeny: []string{dir + "/s/a"},
		Literal: []string{dir + "/s", dir + "/[x]", home + "/.netrc", dir + "/s/a"}, Credentials: []string{home + "/.netrc"}}
	if d := cmp.Diff(wantRead, read); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	write, err := s.WritePolicy()
	succeed(t, err)
	if d := cmp.Diff(WritePolicy{append(DefaultWritePaths(), dir), []string{home + "/k"}}, write); d != "" {
		t.Errorf("write (-want +got):\n%s", d)
	}
	if !slices.Contains(DefaultWritePaths(), home+"/.npm/_logs") {
		t.Errorf("%v", DefaultWritePaths())
	}
	if d := cmp.Diff(NetworkPolicy{AllowedDomains: []string{}}, s.NetworkPolicy()); d != "" {
		t.Error(d)
	}
	if s.Warnings() == nil || s.CA() != nil || s.Backend() != "namespaces" {
		t.Errorf("%v, %v, %q", s.Warnings(), s.CA(), s.Backend())
	}
	next := s.Config()
	next.Filesystem.Disabled, next.Network.DeniedDomains = true, []string{"d.example"}
	_, err = s.Update(t.Context(), next)
	succeed(t, err)
	if read, err := s.ReadPolicy(); err != nil || !cmp.Equal(read, ReadPolicy{[]string{}, []string{}, []string{}, []string{}}) {
		t.Errorf("FS-56: %+v, %v", read, err)
	}
	if write, err := s.WritePolicy(); err != nil || !cmp.Equal(write, WritePolicy{[]string{"/"}, []string{}}) {
		t.Errorf("FS-56: %+v, %v", write, err)
	}
	if got := s.NetworkPolicy(); !cmp.Equal(got, NetworkPolicy{[]string{}, []string{"d.example"}}) || len(s.Warnings()) != 0 {
		t.Errorf("%+v, %v", got, s.Warnings())
	}
}

func TestLIB36_RealPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	succeed(t, err)
	succeed(t, os.Mkdir(dir+"/real", 0o755))
	succeed(t, os.Symlink("real", dir+"/link"))
	t.Chdir(dir)
	for path, want := range map[string]string{
		"/": "/", dir + "/link": dir + "/real", "link/a/b": dir + "/real/a/b", "absent/../link": dir + "/real", "": dir,
	} {
		if got, err := RealPath(path); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want)
		}
	}
}
