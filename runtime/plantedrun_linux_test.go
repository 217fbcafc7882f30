package runtime

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// hostScript runs a script without a sandbox.
func hostScript(dir, script string) error {
	c := exec.Command("/bin/sh", "-c", script)
	c.Dir = dir
	return c.Run()
}

// FS-38: what a command has planted, whatever it does about being told of it, and nothing that it only tried.
func TestPlanted_Commands_FS38(t *testing.T) {
	for _, c := range []struct {
		name, before, script string
		want                 []string // beneath the working directory
	}{
		{"made", "", "mkdir -p n/.vscode; echo x >n/.vscode/tasks.json; echo x >n/.mcp.json", []string{"n/.mcp.json", "n/.vscode"}},
		{"by every call", "", "mkdir n; echo x >n/a; mv n/a n/.bashrc; mkdir n/q; mv n/q n/.idea; ln n/.bashrc n/.profile; ln -s a n/.zshrc",
			[]string{"n/.bashrc", "n/.idea", "n/.profile", "n/.zshrc"}},
		{"of a name that is at the top", "mkdir .vscode", "mkdir -p n/.vscode; echo x >n/.vscode/tasks.json", []string{"n/.vscode"}},
		{"behind decoys", "", "mkdir d; i=0; while [ $i -lt 1100 ]; do : >d/.bashrc; mkdir d/$i; : >d/$i/.bashrc; rm -r d/.bashrc d/$i; i=$((i+1)); done; mkdir n; echo x >n/.mcp.json",
			[]string{"n/.mcp.json"}},
		{"in a directory that moves", "", "mkdir -p t/x/.vscode; mv t/x t/y; mv t n", []string{"n/y/.vscode"}},
		{"exchanged for another", "mkdir -p t o", "mkdir t/.vscode; mv --exchange t o 2>/dev/null || { mv t q; mv o t; mv q o; }", []string{"o/.vscode"}},
		{"refused", "echo x >.bashrc", "echo x >>.bashrc; echo x >.profile; echo x >/etc/profile; mkdir .idea; ln -s x .zshrc", nil},
		{"in vain", "mkdir -p n/.vscode", "mkdir n/.vscode; mkdir none/.vscode; : <n/.bashrc", nil},
		{"gone again", "", "mkdir -p n/.vscode; rm -r n", nil},
		{"of packages", "", "mkdir -p node_modules/p/.vscode", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := config.Default()
			cfg.Filesystem.AllowWrite = beneath(dir, ".")
			var lines []string
			s := newSession(t, func(to *config.Config) { *to = *cfg }, WithWarnings(func(line string) {
				if strings.Contains(line, "act upon by themselves") {
					lines = append(lines, line)
				}
			}))
			run := func(script string) {
				cmd := s.Command(context.Background(), "/bin/sh", "-c", script)
				cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
				_ = cmd.Run() // some of it is refused
			}
			if err := hostScript(dir, c.before); err != nil {
				t.Fatal(err)
			}
			run(c.script)
			if len(c.want) == 0 {
				if len(lines) != 0 {
					t.Errorf("%q", lines)
				}
				return
			}
			if len(lines) != 1 || strings.Count(lines[0], dir) != len(c.want) {
				t.Fatalf("%q, want %q", lines, c.want)
			}
			for _, name := range c.want {
				at := filepath.Join(dir, name)
				if _, err := os.Lstat(at); err != nil || !strings.Contains(lines[0], at) {
					t.Errorf("%q, want %s (%v)", lines[0], at, err)
				}
			}
		})
	}
}
