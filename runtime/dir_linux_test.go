package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// FS-49: a command starts in its directory. Where that is hidden it starts in the home or at the top and a warning says so;
// where there is none it does not start, as with os/exec: what it writes would go somewhere else.
func TestWorkingDirectory_FS49(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"home", "there", "hidden/in"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(dir+"/file", nil, 0o600), os.Symlink("there", dir+"/link"), os.Symlink("none", dir+"/dangling")); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Filesystem.DenyRead = []config.PathEntry{{Path: dir + "/hidden"}}
	var warned []string
	s, err := New(t.Context(), cfg, WithWarnings(func(line string) { warned = append(warned, line) }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tests := []struct {
		dir, want string
		err       error
		warns     bool
	}{
		{"there", "there", nil, false},
		{"link", "there", nil, false},
		{"there/../there//", "there", nil, false},
		{"hidden", "home", nil, true},
		{"hidden/in", "home", nil, true},
		{"none", "", syscall.ENOENT, false},
		{"hidden/none", "", syscall.ENOENT, false},
		{"dangling", "", syscall.ENOENT, false},
		{"file", "", syscall.ENOTDIR, false},
		{"file/in", "", syscall.ENOTDIR, false},
	}
	for _, tt := range tests {
		warned = nil
		c := s.Command(t.Context(), "/bin/pwd", "-P")
		c.Dir, c.Env = dir+"/"+tt.dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir + "/home"}
		out, err := c.Output()
		if tt.err == nil {
			warns := slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, "is hidden from the command") })
			if got := strings.TrimSpace(string(out)); err != nil || got != filepath.Join(dir, tt.want) || warns != tt.warns {
				t.Errorf("%s: %s, %v, warnings %q", tt.dir, got, err, warned)
			}
			continue
		}
		if _, ok := errors.AsType[*LaunchError](err); !ok || !errors.Is(err, tt.err) || len(out) > 0 || len(warned) > 0 {
			t.Errorf("%s: %q, %v, warnings %q; want %v", tt.dir, out, err, warned, tt.err)
		}
	}
}
