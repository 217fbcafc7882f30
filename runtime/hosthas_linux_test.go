package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// What a hidden directory hides is refused, what is not there without a sandbox either is not; whoever tells it.
func TestMonitor_WhatIsMissingAnywayIsNoRefusal_VIO10(t *testing.T) {
	for name, open := range map[string]func(testing.TB) (*Sandbox, *eventRecorder, string){
		"traced": func(t testing.TB) (*Sandbox, *eventRecorder, string) {
			dir, cfg := tracedTree(t)
			s, got := tracedSession(t, MonitorAll, cfg)
			return s, got, dir
		},
		"observed": func(t testing.TB) (*Sandbox, *eventRecorder, string) {
			dir, cfg := tracedTree(t)
			s, got := observedSession(t, MonitorAll, cfg)
			return s, got, dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, got, dir := open(t)
			for _, c := range []observedCase{
				wants("read secret/key", "secret/key", secret), wants("read secret/none"), wants("read secret/none/deeper"), wants("read secret/key/beneath"),
				wants("exec secret/key", "secret/key", secret), wants("exec secret/none"), // as the search on PATH does
				wants("chdir secret/sub", "secret/sub", secret), wants("chdir secret/none"), wants("chdir secret"),
				wants("readlink secret/link", "secret/link", secret), wants("readlink secret/none"), wants("readlink secret/key"), // realpath(3)
				wants("readlink secret"), wants("readlink hidden"), wants("readlink /dev/none"), wants("read /dev/none"), wants("readlink /proc/kcore"),
				wants("unlink secret/key", "secret/key", secret), wants("unlink secret/none"), wants("mkdir secret/none/x"),
				wants("read /etc/ssh/ssh_config.d"), wants("read hidden", "hidden", hidden),
			} {
				answers := tracedCalls(t, s, dir, "the key", c.call)
				var list []string
				for _, e := range got.take() {
					list = append(list, strings.TrimPrefix(e.Target, dir+"/"), e.Rule)
				}
				if !slices.Equal(list, c.want) {
					t.Errorf("%s (%v): %q, want %q", c.call, answers, list, c.want)
				}
			}
		})
	}
}

// VIO-10: what cannot be told counts as refused.
func TestHostLooks_VIO10(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(dir+"/file", nil, 0), os.Symlink("nowhere", dir+"/link"), os.Symlink("loop", dir+"/loop"), os.Mkdir(dir+"/d", 0o755)); err != nil {
		t.Fatal(err)
	}
	hides := fsview.Judgement{Denied: true, Substitute: true, Path: dir}
	for _, c := range []struct {
		name    string
		v       fsview.Judgement
		r       refusedAccess
		missing bool
	}{
		{"there", hides, refusedAccess{call: "openat", path: "file", errno: unix.ENOENT}, false},
		{"not there", hides, refusedAccess{call: "openat", path: "none", errno: unix.ENOENT}, true},
		{"beneath a file", hides, refusedAccess{call: "openat", path: "file/x", errno: unix.ENOENT}, true},
		{"a link that leads nowhere", hides, refusedAccess{call: "openat", path: "link", errno: unix.ENOENT}, false},
		{"through a loop", hides, refusedAccess{call: "openat", path: "loop/x", errno: unix.ENOENT}, false},
		{"a name that is too long", hides, refusedAccess{call: "openat", path: strings.Repeat("x", 300), errno: unix.ENOENT}, false},
		{"an observer's read", hides, refusedAccess{call: "openat", path: "none"}, true},
		{"an observer's making of a name", hides, refusedAccess{call: "mkdirat", path: "none", access: fsview.AccessCreate}, false},
		{"a link read", hides, refusedAccess{call: "readlinkat", path: "link", errno: unix.ENOENT}, false},
		{"no link to read", hides, refusedAccess{call: "readlink", path: "file", errno: unix.ENOENT}, true},
		{"another error", hides, refusedAccess{call: "openat", path: "none", errno: unix.EACCES}, false},
		{"a name to be made where there is a directory", hides, refusedAccess{call: "openat", path: "d/new", access: fsview.AccessCreate, errno: unix.ENOENT}, false},
		{"a name to be made where there is none", hides, refusedAccess{call: "openat", path: "none/new", access: fsview.AccessCreate, errno: unix.ENOENT}, true},
		{"what is hidden itself", hides, refusedAccess{call: "openat", errno: unix.ENOENT}, false},
		{"nothing stands in", fsview.Judgement{Denied: true, Path: dir}, refusedAccess{call: "openat", path: "none", errno: unix.ENOENT}, false},
		{"beside it", fsview.Judgement{Denied: true, Substitute: true, Path: dir + "/d"}, refusedAccess{call: "openat", path: "none", errno: unix.ENOENT}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.r.path = filepath.Join(dir, c.r.path)
			var h hostLooks
			if got := h.missingAnyway(c.r, &c.v); got != c.missing {
				t.Errorf("got %v, want %v", got, c.missing)
			}
			h.stalled.Store(true)
			if h.missingAnyway(c.r, &c.v) {
				t.Error("while the host's files do not answer, it was told to be missing anyway")
			}
		})
	}
}
