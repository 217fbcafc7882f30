package fsview_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// view runs a shell script under a plan and gives what it printed. The launch is the least that a view needs: no
// filter, no Landlock, so that what is tested are the mounts.
func view(t *testing.T, in fsview.Input, script string) string {
	t.Helper()
	plan, err := fsview.Build(fsview.Host(), in)
	if err != nil {
		t.Fatal(err)
	}
	p := &ns.Program{}
	umask := p.ClearUmask()
	p.AwaitGo()
	if err := plan.Compile(p, fsview.CompileOptions{LandlockABI: fsview.MinLandlockABI}); err != nil {
		t.Fatal(err)
	}
	p.Chdir(plan.Dir)
	p.RestoreUmask(umask)
	p.KeepCapabilities(0)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	u, g := uint32(os.Geteuid()), uint32(os.Getegid())
	proc, err := ns.Start(&ns.Config{Namespaces: ns.Full, UIDs: []ns.IDMap{{Inside: u, Outside: u, Count: 1}},
		GIDs: []ns.IDMap{{Inside: g, Outside: g, Count: 1}}, DenySetgroups: true, Setup: p, Candidates: []string{"/bin/sh"},
		Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Stdin: null, Stdout: w, Stderr: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Wait(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func rule(path string) []policy.PathRule {
	return []policy.PathRule{{Entry: path, Key: "test", Path: path}}
}

func TestCompiledView(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	unix.Mkdir(filepath.Join(dir, "w"), 0o755)
	in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid()}
	in.Rules.AllowWrite = rule(in.Cwd)
	t.Log(view(t, in, "echo hi; ls -la /dev /proc | head -60; pwd; echo x > f; echo y > ../g; cat f; cat /proc/self/mountinfo; ls /proc; cat /dev/kmsg; head -c 5 /dev/urandom | wc -c; touch /dev/shm/x; ls -la /dev/shm /proc/sys; echo 1 > /proc/sys/kernel/core_pattern; cat /proc/kcore"))
}
