package fsview_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// view runs a shell script under a plan and gives what it printed. The launch is the least that a view needs: no
// filter, no Landlock, so that what is tested are the mounts.
func view(t testing.TB, in fsview.Input, script string) string {
	t.Helper()
	return viewBehind(t, in, script, false)
}

// viewBehind is view, on request with the Landlock rules of the plan, as in a real launch.
func viewBehind(t testing.TB, in fsview.Input, script string, landlock bool) string {
	t.Helper()
	plan, err := fsview.Build(fsview.Host(), in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ns.NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	umask := p.ClearUmask()
	opts := fsview.CompileOptions{LandlockABI: fsview.MinLandlockABI}
	if err := plan.Compile(p, opts); err != nil {
		t.Fatal(err)
	}
	ruleset := ns.Slot(0)
	if landlock {
		ruleset = plan.CompileLandlock(p, opts)
	}
	p.Chdir(plan.Dir)
	p.RestoreUmask(umask)
	p.KeepCapabilities(0)
	if landlock {
		p.NoNewPrivs()
		fsview.CompileRestrict(p, ruleset)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	u, g := uint32(os.Geteuid()), uint32(os.Getegid())
	prepared, err := ns.Prepare(&ns.Config{Namespaces: ns.Full, UIDs: []ns.IDMap{{Inside: u, Outside: u, Count: 1}},
		GIDs: []ns.IDMap{{Inside: g, Outside: g, Count: 1}}, DenySetgroups: true, Stdin: null, Stdout: w, Stderr: w}, p)
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

// rules makes rules of paths beneath a directory.
func rules(dir string, names ...string) (list []policy.PathRule) {
	for _, n := range names {
		list = append(list, policy.PathRule{Entry: n, Key: "test", Path: filepath.Join(dir, n)})
	}
	return list
}

// TestCompiledView runs each kind of step on the kernel. A script prints the errors that it meets; want lists what must
// be in its output, not what must be absent: "!" in front turns a line around.
func TestCompiledView(t *testing.T) {
	for _, c := range []struct {
		name   string
		input  func(dir string, in *fsview.Input)
		script string
		want   []string
	}{
		{"FS-26 only the root is writable", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "w") },
			"echo x > new && cat new; echo y > ../out; mkdir ../d; chmod 700 ..; touch /etc/passwd",
			[]string{"x", "../out: Read-only", "'../d': Read-only", "'..': Read-only"}},
		{"FS-31 a denied file", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "w"), rules(d, "w/a/b/f")
		},
			"cat a/b/f; echo x > a/b/f; rm -f a/b/f; chmod 777 a/b/f; ln a/b/f l; mv -T w2 a/b/f",
			[]string{"content", "a/b/f: Read-only", "'a/b/f': Device or resource busy", "permissions of 'a/b/f': Read-only", "Invalid cross-device link"}},
		{"FS-41 its ancestors stay, and nothing else is hampered", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "w"), rules(d, "w/a/b/f")
		},
			"mv a z; rmdir a/b; mv a/b q; echo 1 > a/n && mv a/n a/b/n && ln a/b/n m && mv m a/m && cat a/m a/b/n",
			[]string{"cannot move 'a' to 'z': Device or resource busy", "'a/b': Device or resource busy", "1\n1\n", "!cross-device"}},
		{"FS-31 a hidden file", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyRead = rules(d, "w"), rules(d, "w/a/b/f")
		},
			"stat -c %s,%a a/b/f; chmod 777 a/b/f; rm -f a/b/f; ls a/b; cat a/b/f",
			[]string{"0,0", "permissions of 'a/b/f': Read-only", "'a/b/f': Device or resource busy", "f\n", "!content"}},
		{"FS-32 a hidden directory", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyRead = rules(d, "w"), rules(d, "w/a")
		},
			"ls -A a; stat -c %a a; echo n > a/n && cat a/n; cat a/b/f; rmdir a; mv a z",
			[]string{"755", "n\n", "a/b/f: No such file", "'a': Device or resource busy"}},
		{"FS-22 revealed within hidden", func(d string, in *fsview.Input) {
			in.Rules.DenyRead, in.Rules.AllowRead = rules(d, "w/a"), rules(d, "w/a/b")
		},
			"ls a; cat a/b/f; echo x > a/b/f; cat a/s", []string{"b\n", "content", "a/b/f: Read-only", "a/s: No such file"}},
		{"FS-22 writable within hidden", func(d string, in *fsview.Input) {
			in.Rules.DenyRead, in.Rules.AllowWrite = rules(d, "w/a"), rules(d, "w/a/b")
		},
			"echo x > a/b/new && cat a/b/new; cat a/s", []string{"x\n", "a/s: No such file"}},
		{"FS-42 a link on the way stays", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "w"), rules(d, "w/link/f")
		},
			"cat link/f; rm link; mv link z; ln -sfn /tmp link; echo x > a/b/f",
			[]string{"content", "'link': Device or resource busy", "a/b/f: Read-only"}},
		{"FS-47 private /dev and /proc", func(d string, in *fsview.Input) {},
			"ls /dev | tr '\\n' ' '; head -c 3 /dev/zero | wc -c; echo x > /dev/null && echo null; echo x > /dev/shm/x && cat /dev/shm/x; " +
				"echo /proc/[0-9]*; mknod /dev/n c 1 3; echo 1 > /proc/sys/kernel/sysrq; ls /proc/mask /proc/h0",
			[]string{"core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ", "3\n", "null\n", "x\n", "/proc/1 /proc/2\n",
				"'/proc/mask': No such file"}},
		{"FS-56 no rules", func(d string, in *fsview.Input) { in.Disabled = true },
			"echo x > ../out && cat ../out; cat a/b/f", []string{"x\n", "content"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			makeTree(t, dir)
			in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid()}
			c.input(dir, &in)
			out := view(t, in, c.script)
			for _, w := range c.want {
				text, absent := strings.CutPrefix(w, "!")
				if strings.Contains(out, text) == absent {
					t.Errorf("want %q in:\n%s", w, out)
				}
			}
			if got, err := os.ReadFile(filepath.Join(dir, "w/a/b/f")); err != nil || string(got) != "content\n" {
				t.Errorf("on the host: %q, %v", got, err)
			}
		})
	}
}

func makeTree(t *testing.T, dir string) {
	t.Helper()
	for _, d := range []string{"w/a/b", "w/w2"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"w/a/b/f": "content\n", "w/a/s": "sibling\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/b", filepath.Join(dir, "w/link")); err != nil {
		t.Fatal(err)
	}
}
