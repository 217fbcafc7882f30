package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// watchedSessions are sessions with each source of what the kernel refuses.
func watchedSessions() map[string]func(testing.TB, Monitor, *config.Config) (*Sandbox, *eventRecorder) {
	return map[string]func(testing.TB, Monitor, *config.Config) (*Sandbox, *eventRecorder){
		"traced": tracedSession,
		"observed": func(t testing.TB, m Monitor, cfg *config.Config) (*Sandbox, *eventRecorder) {
			return observedSession(t, m, cfg)
		},
	}
}

// VIO-10: what is refused by way of a link is told, or counted as lost, whatever becomes of the link in the next moment.
func TestWatched_LinksThatGo_VIO10(t *testing.T) {
	const times = 200
	for _, c := range []struct {
		name, target, rule string
		before, lines      []string
	}{
		{"removed", "outside/zz", noWrite, nil, []string{"linkto work/l ../outside", "create work/l/zz", "unlink work/l"}},
		{"moved away, with a directory in its place", "outside/zz", noWrite, []string{"mkdir work/d"},
			[]string{"linkto work/l ../outside", "create work/l/zz", "rename work/l work/gone", "rename work/d work/l", "rename work/l work/d"}},
		{"hidden file", "secret/key", secret, nil, []string{"linkto work/l ../secret/key", "read work/l", "unlink work/l"}},
		{"hidden, by links one after another", "secret/key", secret, nil,
			[]string{"linkto work/l ../secret", "linkto work/k l/key", "read work/k", "unlink work/l", "unlink work/k"}},
		{"hidden, in a directory that moves", "secret/key", secret, []string{"mkdir work/d"},
			[]string{"linkto work/d/l ../../secret/key", "read work/d/l", "rename work/d work/e", "unlink work/e/l", "rename work/e work/d"}},
		{"hidden file that stands for itself", "hidden", hidden, nil, []string{"linkto work/l ../hidden", "read work/l", "unlink work/l"}},
	} {
		for source, session := range watchedSessions() {
			t.Run(source+"/"+c.name, func(t *testing.T) {
				dir, cfg := tracedTree(t)
				s, got := session(t, MonitorAll, cfg)
				lines := append([]string(nil), c.before...)
				for range times {
					lines = append(lines, c.lines...)
				}
				tracedCalls(t, s, dir, "", lines...)
				told := 0
				for _, e := range got.take() {
					if e.Target != filepath.Join(dir, c.target) || e.Rule != c.rule {
						t.Errorf("%+v", e)
					}
					told++
				}
				if lost := int(s.Violations().Lost()); told+lost != times || told == 0 {
					t.Errorf("%d told and %d lost of %d", told, lost, times)
				}
			})
		}
	}
}

// VIO-10: a link of which nobody knows where it led counts as lost.
func TestTraced_LinksFromBefore_VIO10(t *testing.T) {
	const times = 50
	dir, cfg := tracedTree(t)
	var lines []string
	for i := range times {
		name := fmt.Sprint("work/before", i)
		if err := os.Symlink("../secret/key", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "read "+name, "unlink "+name)
	}
	s, got := tracedSession(t, MonitorAll, cfg)
	tracedCalls(t, s, dir, "", lines...)
	told := len(got.take())
	if lost := int(s.Violations().Lost()); told+lost != times {
		t.Errorf("%d told and %d lost of %d", told, lost, times)
	}
}

// Searches in vain and files that come and go are neither refusals nor lost, though something is hidden.
func TestTraced_BusyWithoutRefusals(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := tracedSession(t, MonitorAll, cfg)
	var lines []string
	for i := range 100 {
		name := fmt.Sprint("work/f", i)
		lines = append(lines, "read "+name, "create "+name, "rename "+name+" work/free", "mkdir work/d", "linkto work/d/l ../free", "read work/d/l",
			"unlink work/d/l", "read work/d/l", "rmdir work/d", "read outside/none")
	}
	for _, answer := range tracedCalls(t, s, dir, "", lines...) {
		if !strings.HasPrefix(answer, "ok") && answer != "ENOENT" {
			t.Fatal(answer)
		}
	}
	if list, lost := got.take(), s.Violations().Lost(); len(list) != 0 {
		t.Errorf("%+v, %d lost", list, lost)
	}
}

// VIO-10: a link that another thread makes and removes all the time leads a call to a refusal or to nothing, and each refusal
// is told or counted as lost.
func TestTraced_LinksOfOtherThreads_VIO10(t *testing.T) {
	dir, cfg := tracedTree(t)
	s, got := tracedSession(t, MonitorWrites, cfg)
	lines := []string{"flicker work/l ../outside"}
	for range 2000 {
		lines = append(lines, "mkdir work/l/zz")
	}
	refused := 0
	for _, answer := range tracedCalls(t, s, dir, "", lines...) {
		if answer == "EROFS" {
			refused++
		}
	}
	told := 0
	for _, e := range got.take() {
		if e.Target != dir+"/outside/zz" {
			t.Errorf("%+v", e)
		}
		told++
	}
	if lost := int(s.Violations().Lost()); told+lost != refused {
		t.Errorf("%d told and %d lost of %d", told, lost, refused)
	}
}
