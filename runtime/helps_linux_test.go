package runtime

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// followed adds to the settings what the advice for a refusal says, and tells whether it said so.
func followed(t *testing.T, cfg *config.Config, advice string) bool {
	t.Helper()
	_, text, ok := strings.Cut(advice, "add ")
	if !ok || !strings.Contains(advice, "filesystem.allowWrite") {
		return false
	}
	var path string
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&path); err != nil {
		t.Fatalf("%s: %v", advice, err)
	}
	cfg.Filesystem.AllowWrite = append(cfg.Filesystem.AllowWrite, config.PathEntry{Path: path})
	return true
}

// VIO-10: whoever follows the advice for what was refused gets further, and in the end through: no advice leads to the same
// refusal, and none to a refusal that nobody tells of.
func TestAdvice_Helps_VIO10(t *testing.T) {
	for _, call := range []string{
		"write outside/f", "create outside/f", "create outside/new", "trunc outside/f", "mkdir outside/new", "unlink outside/f", "chmod outside/f",
		"truncate outside/f", "symlink outside/new", "in outside x",
		"rename outside/f work/g", "rename work/free outside/g", "rename outside/f outside/g", "link work/free outside/g", "rename outside/f work/sub/g",
	} {
		for source, session := range watchedSessions() {
			t.Run(source+"/"+call, func(t *testing.T) {
				dir, cfg := tracedTree(t)
				for range 4 {
					s, got := session(t, MonitorAll, cfg)
					if answer := tracedCalls(t, s, dir, "", call)[0]; strings.HasPrefix(answer, "ok") {
						return
					}
					list := got.take()
					if len(list) == 0 {
						t.Fatal("nobody tells of the refusal")
					}
					next := *cfg
					for _, e := range list {
						if !followed(t, &next, e.Advice()) {
							t.Fatalf("%+v: %s", e, e.Advice())
						}
					}
					cfg = &next
				}
				t.Errorf("still refused with %v", cfg.Filesystem.AllowWrite)
			})
		}
	}
}

// VIO-10: two paths that two entries grant, and the way between them.
func TestWatched_Apart_VIO10(t *testing.T) {
	for source, session := range watchedSessions() {
		for call, target := range map[string]string{"rename outside/f work/g": "work/g", "rename work/free outside/f": "outside/f", "link work/free outside/g": "outside/g"} {
			t.Run(source+"/"+call, func(t *testing.T) {
				dir, cfg := tracedTree(t)
				cfg.Filesystem.AllowWrite = beneath(dir, "work", "outside")
				s, got := session(t, MonitorWrites, cfg)
				answer := tracedCalls(t, s, dir, "", call)[0]
				list := got.take()
				if answer != "EXDEV" || len(list) != 1 || list[0].Target != filepath.Join(dir, target) || !strings.Contains(list[0].Advice(), `add "`+dir+`"`) {
					t.Errorf("%s: %+v", answer, list)
				}
				for v := range s.Violations().All() {
					if v.Advice() != list[0].Advice() {
						t.Errorf("%s", v.Advice())
					}
				}
			})
		}
	}
}

// FS-35, FS-51: where an entry would not help, the advice says so, from the report and from Why.
func TestAdvice_NothingHelps_FS35_FS51(t *testing.T) {
	for source, session := range watchedSessions() {
		t.Run(source, func(t *testing.T) {
			dir, cfg := tracedTree(t)
			for _, name := range []string{"outside/.bashrc", "outside/.vscode"} {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, got := session(t, MonitorWrites, cfg)
			for call, name := range map[string]string{"write outside/.bashrc": ".bashrc", "create outside/.profile": ".profile", "unlink outside/.vscode": ".vscode",
				"mkdir outside/.idea": ".idea"} {
				tracedCalls(t, s, dir, "", call)
				list := got.take()
				if len(list) != 1 || list[0].Rule != "protected name "+name || !strings.HasPrefix(list[0].Advice(), "nothing in the settings allows it") {
					t.Errorf("%s: %+v", call, list)
				}
				v, err := s.Why(context.Background(), Query{QueryWrite, filepath.Join(dir, "outside", name)})
				if err != nil || v.Allowed || v.Rule != "protected name "+name || !strings.HasPrefix(v.Advice, "nothing in the settings allows it") {
					t.Errorf("%s: %+v, %v", call, v, err)
				}
			}
		})
	}
}

// VIO-10: where the file modes of the host refuse it too, no setting is advised, and what is refused for the same modes is
// advised alike.
func TestAdvice_FileModes_VIO10(t *testing.T) {
	if os.Geteuid() == 0 {
		if refusedByModes("/etc/new", "", 2) != "" {
			t.Error("root passes file modes")
		}
		return
	}
	dir, cfg := tracedTree(t)
	closed := filepath.Join(dir, "closed")
	if err := os.MkdirAll(filepath.Join(closed, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(closed, 0o755) })
	s, got := observedSession(t, MonitorWrites, cfg)
	for call, modes := range map[string]string{"create closed/new": closed, "write closed/in/x": closed, "mkdir /new": "/", "write /etc/passwd": "/etc/passwd",
		"utimes /etc/passwd": "/etc/passwd", "write outside/f": "", "chmod outside/f": ""} {
		tracedCalls(t, s, dir, "", call)
		for _, e := range got.take() {
			if e.Modes != modes || (modes != "") != strings.HasPrefix(e.Advice(), "no setting would help") {
				t.Errorf("%s: %+v, %s", call, e, e.Advice())
			}
		}
	}
	v, err := s.Why(context.Background(), Query{QueryWrite, "/etc/passwd"})
	if err != nil || v.Allowed || !strings.HasPrefix(v.Advice, "no setting would help") {
		t.Errorf("%+v, %v", v, err)
	}
}
