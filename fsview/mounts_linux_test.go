package fsview_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// ownMounts marks the process of TestMountsBelow_FS48 that has a mount namespace of its own.
const ownMounts = "SRT_TEST_OWN_MOUNTS"

// TestMountsBelow_FS48 plans and runs where other file systems are mounted: m beneath the directory w, o beside it, and r
// read-only. It makes its mounts in a process with a mount namespace of its own; "!" in front of a line of want turns it
// around.
func TestMountsBelow_FS48(t *testing.T) {
	if os.Getenv(ownMounts) == "" {
		inOwnMounts(t)
		return
	}
	for _, c := range []struct {
		name   string
		input  func(dir string, in *fsview.Input)
		script string // starts in w
		want   []string
	}{
		{"FS-48 a mount beneath a write root is writable", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "w") },
			"echo one > m/new && cat m/new; mkdir m/d && mv m/new m/d/new && cat m/d/new; echo x > ../o/new; mv m z; ln a/b/f m/f; mv a/s m/s && cat m/s",
			[]string{"one\none\n", "../o/new: Read-only", "'m' to 'z': Device or resource busy", "cross-device", "sibling"}},
		{"FS-26 a deny on a mount beneath a write root", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "w"), rules(d, "w/m/p/f")
		},
			"echo x > m/p/f; rm m/p/f; mv m/p m/q; mv m/p/f m/f; echo two > m/p/n && mv m/p/n m/n && cat m/n",
			[]string{"m/p/f: Read-only", "remove 'm/p/f': Device or resource busy", "'m/p' to 'm/q': Device or resource busy", "'m/p/f' to 'm/f': Device or resource busy", "two"}},
		{"FS-26 a mount is denied", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "w"), rules(d, "w/m")
		},
			"echo x > m/new; echo x > m/p/f; chmod 700 m; echo three > a/n && cat a/n", []string{"m/new: Read-only", "m/p/f: Read-only", "'m': Read-only", "three"}},
		{"FS-26 a mount point as write root", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "o"), rules(d, "o/p/f")
		},
			"cd ../o; echo four > n && mv n p/n && cat p/n; echo x > p/f; mv p q; echo x > ../w/new; chmod 700 . && echo mode; mv ../o ../z",
			[]string{"four", "p/f: Read-only", "'p' to 'q': Device or resource busy", "../w/new: Read-only", "mode", "!cannot change"}},
		{"FS-26 a write root on another mount", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "o/p") },
			"cd ../o; echo five > p/n && cat p/n; echo x > n; mv p q; chmod 700 .", []string{"five", "n: Read-only", "'p' to 'q': Read-only", "'.': Read-only"}},
		{"FS-26 a file root on another mount", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "o/p/f") },
			"cd ../o; echo six > p/f && cat p/f; echo x > p/n; rm p/f", []string{"six", "p/n: Read-only", "'p/f': Read-only"}},
		{"FS-27 a write root in a denied mount", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite = rules(d, "w", "w/m/p"), rules(d, "w/m")
		}, "echo x > m/p/n; echo x > m/n", []string{"m/p/n: Read-only", "m/n: Read-only"}},
		{"FS-28 a default path on another mount", func(d string, in *fsview.Input) { in.ExtraWrite = []string{d + "/o", d + "/none"} },
			"echo seven > ../o/n && cat ../o/n; echo x > n", []string{"seven", "n: Read-only"}},
		{"FS-48 what is read-only on the host stays so", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "w", "r") },
			"echo x > ../r/n; echo x > ../r/p/f; echo eight > n && cat n", []string{"../r/n: Read-only", "../r/p/f: Read-only", "eight"}},
		{"FS-22 a hidden mount", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyRead = rules(d, "w"), rules(d, "w/m", "o")
		},
			"ls -A m ../o; cat m/p/f ../o/p/f; echo nine > m/n && cat m/n", []string{"m/p/f: No such", "../o/p/f: No such", "nine", "!content"}},
		{"FS-22 a mount shown in a hidden directory", func(d string, in *fsview.Input) {
			in.Rules.DenyRead, in.Rules.AllowRead, in.Rules.AllowWrite = rules(d, "w", "o"), rules(d, "o/p"), rules(d, "w/m")
			in.Cwd = d
		},
			"ls w o; echo ten > w/m/n && cat w/m/n; cat o/p/f; echo x > o/p/f; cat w/a/b/f", []string{"m\n", "ten", "content", "o/p/f: Read-only", "w/a/b/f: No such"}},
		{"FS-41 everything is writable but", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Rules.DenyWrite, in.Rules.DenyRead = rules("/", "."), rules(d, "w/a/b/f", "o/p"), rules(d, "w/m/p/f")
		},
			"echo x > a/b/f; mv a z; echo x > ../o/p/f; mv ../o/p ../o/q; cat m/p/f; echo eleven > ../o/n && cat ../o/n; mkdir ../top && mv ../top a/top && rmdir a/top && echo moved; echo x > ../r/n",
			[]string{"a/b/f: Read-only", "'a' to 'z': Device or resource busy", "../o/p/f: Read-only", "'../o/p' to '../o/q': Device or resource busy", "eleven", "moved", "../r/n: Read-only", "!content"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			dir := mountedTree(t)
			in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid()}
			c.input(dir, &in)
			out := viewBehind(t, in, c.script, true)
			for _, w := range c.want {
				text, absent := strings.CutPrefix(w, "!")
				if strings.Contains(out, text) == absent {
					t.Errorf("want %q in:\n%s", w, out)
				}
			}
		})
	}
}

// inOwnMounts runs this very test in a process that has a mount namespace of its own, and for an ordinary user a user
// namespace that lets it mount.
func inOwnMounts(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// mountedTree is makeTree with a small file system on each of w/m, o and r, the last of them read-only.
func mountedTree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeTree(t, dir)
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"w/m", "o", "r"} {
		at := filepath.Join(dir, name)
		err := errors.Join(os.Mkdir(at, 0o755), unix.Mount("test", at, "tmpfs", 0, "size=1m"), os.Mkdir(at+"/p", 0o755),
			os.WriteFile(at+"/p/f", []byte("content\n"), 0o644))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	if err := unix.Mount("", filepath.Join(dir, "r"), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	return dir
}
