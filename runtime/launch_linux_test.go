package runtime

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

func TestCandidates_CLI1(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want []string
	}{
		{"./tool", []string{"PATH=/a"}, []string{"./tool"}},
		{"/bin/tool", nil, []string{"/bin/tool"}},
		{"tool", []string{"PATH=/a:/b"}, []string{"/a/tool", "/b/tool"}},
		{"tool", []string{"PATH=/a::/b"}, []string{"/a/tool", "./tool", "/b/tool"}},
		{"tool", []string{"PATH="}, []string{"./tool"}},
		{"", []string{"PATH=/a"}, []string{""}},
	} {
		if got := candidates(c.name, c.env); !slices.Equal(got, c.want) {
			t.Errorf("%q with %v: %v, want %v", c.name, c.env, got, c.want)
		}
	}
	if got := candidates("tool", nil); len(got) < 4 || got[0] != "/usr/local/sbin/tool" {
		t.Errorf("without PATH: %v", got)
	}
}

func TestSurroundings_CLI50_FS5(t *testing.T) {
	for _, c := range []struct {
		dir  string
		env  []string
		home string
		ok   bool
	}{
		{"/w", []string{"HOME=/h"}, "/h", true},
		{"/w", []string{"HOME="}, "", true},
		{"/w", []string{"HOME=/first", "HOME=/last"}, "/last", true},
		{"/w", []string{"HOME=relative"}, "", false},
		{"relative", []string{"HOME=/h"}, "", false},
	} {
		_, home, err := surroundings(c.dir, c.env)
		if (err == nil) != c.ok || err == nil && home != c.home {
			t.Errorf("%q, %v: %q, %v", c.dir, c.env, home, err)
		}
	}
}

// TestUsableTempDir_FS50: a link, another user's directory and what is no directory are not used.
func TestUsableTempDir_FS50(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	uid := os.Geteuid()
	for _, c := range []struct {
		path string
		uid  int
		want string // in the error; empty: usable
	}{
		{dir, uid, ""}, {dir + "/link", uid, "symbolic link"}, {dir + "/file", uid, "not a directory"},
		{dir, uid + 1, "belongs to"}, {"relative", uid, "absolute"}, {dir + "/absent", uid, "no such file"},
	} {
		err := usableTempDir(c.path, c.uid)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s as %d: %v, want %q", c.path, c.uid, err, c.want)
		}
	}
}

func TestChooseTempDir_CLI52(t *testing.T) {
	own := t.TempDir()
	got := chooseTempDir([]string{"CLAUDE_TMPDIR=/nonexistent/x", "CLAUDE_CODE_TMPDIR=" + own}, os.Geteuid())
	if got.path != own || got.own {
		t.Errorf("%+v, want %s, which only the lists make writable", got, own)
	}
	got = chooseTempDir([]string{"CLAUDE_CODE_TMPDIR=/nonexistent/x"}, os.Geteuid())
	if !got.own && got.path != "/dev/shm" || !strings.Contains(got.note, "/nonexistent/x") {
		t.Errorf("%+v, want a default directory and a word on why", got)
	}
	if !filepath.IsAbs(got.path) {
		t.Errorf("%q is not absolute", got.path)
	}
}

// TestEndedContextNeverLaunches_LIB17: an end that comes while the launch is being made keeps the command from existing.
func TestEndedContextNeverLaunches_LIB17(t *testing.T) {
	cause := errors.New("not any more")
	ctx, cancel := context.WithCancelCause(context.Background())
	// The option is called from inside the launch: the command is past the check that Start begins with.
	s, err := New(context.Background(), config.Default(), WithTiming(func(phase string) {
		if phase == "files planned" {
			cancel(cause)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := s.Command(ctx, "/bin/sh", "-c", "echo ran")
	cmd.Stdout, cmd.Dir = w, t.TempDir()
	err = cmd.Start()
	w.Close()
	if !errors.Is(err, cause) {
		t.Errorf("%v, want the cause of the context", err)
	}
	if out, err := io.ReadAll(r); err != nil || len(out) != 0 {
		t.Errorf("the command ran: %q, %v", out, err)
	}
}
