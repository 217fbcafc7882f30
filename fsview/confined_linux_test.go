package fsview_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/probetest"
)

// confined runs a shell script held by one of the two rulesets of a plan without mounts, and gives what it printed.
func confined(t *testing.T, in fsview.Input, asHand bool, script string) string {
	t.Helper()
	plan, err := fsview.Build(fsview.Host(), in)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fsview.Confine(plan, fsview.ConfineInput{Tree: fsview.Host(), UID: in.UID})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ns.NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	hand, command := c.CompileLandlock(p, fsview.CompileOptions{LandlockABI: fsview.ScopeABI})
	if asHand {
		command = hand
	}
	p.RestrictCommand(command)
	p.Chdir(plan.Dir)
	p.Undumpable()
	if err := p.ConfineCapabilities(0); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	prepared, err := ns.Prepare(&ns.Config{Confined: true, Stdin: null, Stdout: w, Stderr: w}, p)
	if err != nil {
		t.Fatal(err)
	}
	proc, err := prepared.Start(&ns.Command{Candidates: []string{"/bin/sh"}, Args: []string{"sh", "-c", script},
		Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}})
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

// TestConfinedRulesets tries on the kernel what the two rulesets let through. Who decides beside them is not there.
func TestConfinedRulesets(t *testing.T) {
	probetest.NeedVersion(t, probe.Landlock, fsview.ScopeABI)
	for _, c := range []struct {
		name   string
		input  func(dir string, in *fsview.Input)
		hand   bool
		script string
		want   []string // "!" in front: must not be there
	}{
		{"a command changes nothing", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "w") }, false,
			"cat a/s; ls a >/dev/null && echo listed; echo x > new; echo x > a/s; rm a/s; mkdir d; mv a q; ln a/s l; ls / >/dev/null && echo root",
			[]string{"sibling", "listed", "create new: Permission", "create a/s: Permission", "'a/s': Permission", "'d': Permission", "'q': Permission", "'a/s': Permission", "root"}},
		{"FS-47 devices", func(string, *fsview.Input) {}, false,
			"echo x > /dev/null && echo null; head -c 3 /dev/zero | wc -c; ls /dev >/dev/null && echo names; echo x > /dev/shm/x; cat /dev/kmsg /dev/mem 2>&1 | head -c 200; cat /proc/self/comm",
			[]string{"null\n", "3\n", "names\n", "/dev/shm/x: Permission", "/dev/kmsg: ", "cat\n", "!x86", "!Linux version"}},
		{"FS-22 a hidden directory", func(d string, in *fsview.Input) { in.Rules.DenyRead = rules(d, "w/a") }, false,
			"cat a/s; ls a; ls .; cat a/b/f; ls w2 && echo beside; cat other; ls /usr >/dev/null && echo usr; (cd a && echo entered); ls /; cat link/f",
			[]string{"a/s: Permission", "'a': Permission", "'.': Permission", "a/b/f: Permission", "beside", "other text", "usr", "entered", "'/': Permission", "link/f: Permission"}},
		{"FS-31 a hidden file", func(d string, in *fsview.Input) { in.Rules.DenyRead = rules(d, "w/a/s") }, false,
			"cat a/s; ls a; cat a/b/f; cat other; ls / >/dev/null && echo root", []string{"a/s: Permission", "b\ns\n", "content", "other text", "root"}},
		{"FS-45 a second name beside it", func(d string, in *fsview.Input) {
			in.Rules.DenyRead = rules(d, "w/other")
			if err := os.Link(filepath.Join(d, "w/other"), filepath.Join(d, "w/second")); err != nil {
				panic(err)
			}
		}, false, "cat other; cat second; cat a/s", []string{"other: Permission", "second: Permission", "sibling"}},
		{"FS-25 revealed", func(d string, in *fsview.Input) {
			in.Rules.DenyRead, in.Rules.AllowRead = rules(d, "w/a"), rules(d, "w/a/b")
		}, false,
			"cat a/s; cat a/b/f; ls a/b; ls a", []string{"a/s: Permission", "content", "f\n", "'a': Permission"}},
		{"FS-51 a file of the caller's", func(d string, in *fsview.Input) { in.PrivateFiles = []string{filepath.Join(d, "w/other")} }, false,
			"cat other; cat a/s", []string{"other: Permission", "sibling"}},
		{"FS-56 no rules", func(d string, in *fsview.Input) { in.Disabled = true }, false, "cat other; echo x > other", []string{"other text", "create other: Permission"}},
		{"a hand changes write roots", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyRead = rules(d, "w/a"), rules(d, "w/other")
		}, true, "echo x > a/new && cat a/new; mv a/new a/b/n && cat a/b/n && rm a/b/n; echo x > out; rm w2; cat other; rmdir w2",
			[]string{"x\nx\n", "create out: Permission", "other: Permission", "'w2': Permission"}},
		{"a hand and shared memory", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules("/", "dev/shm") }, true,
			"echo x > /dev/shm/srt-confined-$$ && cat /dev/shm/srt-confined-$$; rm /dev/shm/srt-confined-$$ && echo gone", []string{"x\ngone"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			makeTree(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "w/other"), []byte("other text\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid()}
			c.input(dir, &in)
			out := confined(t, in, c.hand, c.script)
			for _, w := range c.want {
				text, not := strings.CutPrefix(w, "!")
				if strings.Contains(out, text) == not {
					t.Errorf("want %q in:\n%s", w, out)
				}
			}
		})
	}
}

// TestConfinedMovedMark: what was denied lies elsewhere when the rules are made, and nothing starts.
func TestConfinedMovedMark(t *testing.T) {
	probetest.NeedVersion(t, probe.Landlock, fsview.ScopeABI)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeTree(t, dir)
	in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid()}
	in.Rules.DenyRead = rules(dir, "w/a")
	plan, err := fsview.Build(fsview.Host(), in)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fsview.Confine(plan, fsview.ConfineInput{Tree: fsview.Host(), UID: in.UID})
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range [][2]string{{"w/a", "w/z"}, {"w/w2", "w/a"}} { // the second name is one that was listed
		if err := os.Rename(filepath.Join(dir, move[0]), filepath.Join(dir, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	p, err := ns.NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	_, command := c.CompileLandlock(p, fsview.CompileOptions{LandlockABI: fsview.ScopeABI})
	p.RestrictCommand(command)
	p.Undumpable()
	if err := p.ConfineCapabilities(0); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	prepared, err := ns.Prepare(&ns.Config{Confined: true, Stdin: null, Stdout: null, Stderr: null}, p)
	if err == nil {
		_, err = prepared.Start(&ns.Command{Candidates: []string{"/bin/true"}, Args: []string{"true"}})
	}
	if err == nil || !strings.Contains(err.Error(), "find unchanged") {
		t.Errorf("started: %v", err)
	}
}
