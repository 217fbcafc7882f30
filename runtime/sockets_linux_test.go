package runtime

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// listenAt makes a socket file and keeps its server.
func listenAt(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
}

// askAbout asks for what lies at a location now.
func askAbout(t *testing.T, r *socketRules, path string) bool {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return r.allowed(path, st.Dev, st.Ino)
}

// TestNet_80_SocketsThatCanBeMoved: where the command may write, only the sockets count that were there at the start.
func TestNet_80_SocketsThatCanBeMoved(t *testing.T) {
	dir := t.TempDir()
	step := func(kind fsview.Kind, path string) fsview.Step {
		return fsview.Step{Kind: kind, Path: filepath.Join(dir, path)}
	}
	for name, c := range map[string]struct {
		plan  fsview.Plan
		moved bool // whether what is moved there counts
	}{
		"nothing writable":       {fsview.Plan{}, true},
		"everything":             {fsview.Plan{RootWritable: true}, false},
		"no rules":               {fsview.Plan{Unrestricted: true}, false},
		"that place":             {fsview.Plan{Steps: []fsview.Step{step(fsview.Writable, "")}}, false},
		"beneath it":             {fsview.Plan{Steps: []fsview.Step{step(fsview.Writable, "listed/sub")}}, false},
		"read-only in it":        {fsview.Plan{Steps: []fsview.Step{step(fsview.Writable, ""), step(fsview.ReadOnly, "listed")}}, true},
		"pinned":                 {fsview.Plan{Steps: []fsview.Step{step(fsview.Pin, "listed"), step(fsview.Writable, "")}}, false},
		"revealed in memory":     {fsview.Plan{Steps: []fsview.Step{step(fsview.HideDir, ""), step(fsview.Reveal, "listed")}}, true},
		"revealed for writing":   {fsview.Plan{Steps: []fsview.Step{step(fsview.HideDir, ""), step(fsview.RevealWritable, "listed")}}, false},
		"in memory":              {fsview.Plan{Steps: []fsview.Step{step(fsview.HideDir, "")}}, false},
		"writable in read-only":  {fsview.Plan{RootWritable: true, Steps: []fsview.Step{step(fsview.ReadOnly, ""), step(fsview.Writable, "listed/sub")}}, false},
		"a place without any":    {fsview.Plan{Steps: []fsview.Step{step(fsview.Writable, "elsewhere")}}, true},
		"a kind of a later time": {fsview.Plan{Steps: []fsview.Step{{Kind: 99, Path: dir}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(dir, "listed")
			t.Cleanup(func() { os.RemoveAll(base) })
			stays, other := filepath.Join(base, "sub", "stays"), filepath.Join(dir, "other")
			os.Remove(other)
			listenAt(t, stays)
			listenAt(t, other)
			r := newSocketRules([]string{base}, &c.plan, func(w string) { t.Error(w) })
			defer func() {
				if err := r.release(); err != nil {
					t.Error(err)
				}
			}()
			if !askAbout(t, r, stays) {
				t.Error("what was there does not count")
			}
			if askAbout(t, r, other) {
				t.Error("what is not listed counts")
			}
			moved := filepath.Join(base, "sub", "moved")
			if err := os.Rename(other, moved); err != nil {
				t.Fatal(err)
			}
			if got := askAbout(t, r, moved); got != c.moved {
				t.Errorf("what was moved there counts: %v, want %v", got, c.moved)
			}
			if err := os.Rename(moved, stays); err != nil {
				t.Fatal(err)
			}
			if got := askAbout(t, r, stays); got != c.moved {
				t.Errorf("what was moved onto a socket counts: %v, want %v", got, c.moved)
			}
		})
	}
}

// TestNet_80_ListedSockets: a listed file that is a socket, none, or not there.
func TestNet_80_ListedSockets(t *testing.T) {
	dir := t.TempDir()
	plan := fsview.Plan{RootWritable: true}
	listenAt(t, dir+"/s")
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := newSocketRules([]string{dir + "/s", dir + "/file", dir + "/none"}, &plan, func(w string) { t.Error(w) })
	defer r.release()
	if !askAbout(t, r, dir+"/s") || len(r.pins) != 1 {
		t.Errorf("%d sockets, want the one that was there", len(r.pins))
	}
	for _, name := range []string{"file", "none"} {
		os.Remove(dir + "/" + name)
		listenAt(t, dir+"/"+name)
		if askAbout(t, r, dir+"/"+name) {
			t.Errorf("%s was not there, and counts", name)
		}
	}
	// The number of a file that is gone is not given out again.
	var st unix.Stat_t
	if err := unix.Lstat(dir+"/s", &st); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		os.Remove(dir + "/s")
		if err := unix.Mknod(dir+"/s", unix.S_IFSOCK|0o600, 0); err != nil {
			t.Fatal(err)
		}
		if askAbout(t, r, dir+"/s") {
			t.Fatalf("the %d. file has the number of the first", i+2)
		}
	}
	var nobody *socketRules
	if nobody.allowed(dir+"/s", st.Dev, st.Ino) || nobody.release() != nil {
		t.Error("without rules something is allowed")
	}
}

// TestNet_80_TooManyNames: what lies beyond the limits does not count, and the person is told once.
func TestNet_80_TooManyNames(t *testing.T) {
	plan := fsview.Plan{RootWritable: true}
	t.Run("names", func(t *testing.T) {
		dir := t.TempDir()
		listenAt(t, dir+"/first/s")
		for i := range maxSocketNames {
			if err := os.MkdirAll(fmt.Sprintf("%s/second/%d", dir, i), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		listenAt(t, dir+"/second/7/s")
		warnings := 0
		r := newSocketRules([]string{dir + "/first", dir + "/second", dir + "/first"}, &plan, func(string) { warnings++ })
		defer r.release()
		if warnings != 1 || !askAbout(t, r, dir+"/first/s") || askAbout(t, r, dir+"/second/7/s") {
			t.Errorf("%d warnings; first %v, deeper %v", warnings, askAbout(t, r, dir+"/first/s"), askAbout(t, r, dir+"/second/7/s"))
		}
	})
	t.Run("sockets", func(t *testing.T) {
		dir := t.TempDir()
		for i := range maxSocketPins + 1 {
			if err := unix.Mknod(fmt.Sprintf("%s/%d", dir, i), unix.S_IFSOCK|0o600, 0); err != nil {
				t.Fatal(err)
			}
		}
		warnings := 0
		r := newSocketRules([]string{dir}, &plan, func(string) { warnings++ })
		defer r.release()
		if warnings != 1 || len(r.pins) != maxSocketPins {
			t.Errorf("%d warnings, %d sockets", warnings, len(r.pins))
		}
	})
}
