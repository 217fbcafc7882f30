package fsview_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
)

// resolverTree makes, in a directory of its own, what /etc/resolv.conf may be on a host: e is the directory, with a file,
// links to one that is there and to one that is not, relative and absolute, and l leads to e.
func resolverTree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.MkdirAll(dir+"/e/sub", 0o755), os.MkdirAll(dir+"/run/r", 0o755), os.Mkdir(dir+"/w", 0o755),
		os.WriteFile(dir+"/e/file", []byte("host\n"), 0o644), os.WriteFile(dir+"/run/r/stub", []byte("host\n"), 0o644),
		os.Symlink("../run/r/stub", dir+"/e/link"), os.Symlink(dir+"/run/r/none", dir+"/e/dangling"),
		os.Symlink(dir+"/way/r/stub", dir+"/e/far"), os.Symlink("run", dir+"/way"), os.Symlink("e", dir+"/l"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// suppliedFiles are files for names in dir.
func suppliedFiles(dir string, names ...string) (list []fsview.SuppliedFile) {
	for _, n := range names {
		list = append(list, fsview.SuppliedFile{Path: filepath.Join(dir, n), Content: []byte("own " + filepath.Base(n) + "\n")})
	}
	return list
}

var resolverNames = []string{"e/file", "e/link", "e/dangling", "e/far"}

// TestSuppliedView_NET7 shows supplied files on the kernel, in a process with a mount namespace of its own. A word "!" in
// front of a line of want turns it around.
func TestSuppliedView_NET7(t *testing.T) {
	if os.Getenv(ownMounts) == "" {
		inOwnMounts(t)
		return
	}
	own := "own file\nown link\nown dangling\nown far\n"
	attack := "cd ../e; for n in file link dangling far; do echo x > $n; chmod 666 $n; rm -f $n; mv $n z; echo y > z && mv -T z $n; ln -sfn /x $n; done; cat file link dangling far; cat ../run/r/stub"
	kept := []string{own + "host\n", "create file: Read-only", "create link: Read-only", "create dangling: Read-only", "permissions of 'file': Read-only",
		"permissions of 'link': Read-only", "remove 'file': Device or resource busy", "remove 'link': Device or resource busy", "remove 'far': Device or resource busy",
		"'link' to 'z': Device or resource busy", "'z' to 'file': Device or resource busy", "'z' to 'link': Device or resource busy",
		"'z' to 'dangling': Device or resource busy", "link 'link': Device or resource busy"}
	for _, c := range []struct {
		name   string
		input  func(dir string, in *fsview.Input)
		script string // starts in w
		want   []string
	}{
		{"nothing is writable", func(d string, in *fsview.Input) {},
			"cd ../e; cat file link dangling far; stat -c '%a %u %F' file link; readlink link; cat ../run/r/stub; echo x > file; echo x > link; rm -f link",
			[]string{own + fmt.Sprintf("644 %d regular file\n644 %[1]d regular file\nhost\n", os.Geteuid()), "file: Read-only", "link: Read-only", "remove 'link': "}},
		{"through a link to the directory", func(d string, in *fsview.Input) {
			in.Supplied = suppliedFiles(d, "l/file", "l/link", "l/dangling", "l/far")
		},
			"cat ../l/file ../e/link", []string{"own file\nown link\n"}},
		{"a write root around it", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "e", "w") }, attack, kept},
		{"a write root further around it", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, ".") },
			attack + "; cd ..; mv e q; mv l q; echo n > run/r/n && mv run/r/n run/r/stub && cat e/link run/r/stub; echo m > e/m && mv e/m w/m && cat w/m",
			append(kept, "'e' to 'q': Device or resource busy", "own link\nn\n", "m\n")},
		{"the link to the directory stays", func(d string, in *fsview.Input) {
			in.Rules.AllowWrite, in.Supplied = rules(d, "."), suppliedFiles(d, "l/file")
		}, "cd ..; rm -f l; ln -sfn run l; mv l q; cat l/file; mv w/../e q", []string{"remove 'l': Device or resource busy", "'l' to 'q': Device or resource busy", "own file\n", "'w/../e' to 'q': Device or resource busy"}},
		{"everything is writable", func(d string, in *fsview.Input) { in.Rules.AllowWrite = absolute("/") }, attack, kept},
		{"FS-56 disabled", func(d string, in *fsview.Input) { in.Disabled = true }, attack, kept},
		{"a write root of the file", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "e/file") }, "cat ../e/file; echo x > ../e/file",
			[]string{"own file\n", "e/file: Read-only"}},
		{"FS-22 denied", func(d string, in *fsview.Input) { in.Rules.DenyRead = rules(d, "e/file", "e/link") }, "cd ../e; cat file; cat link; cat ../run/r/stub; cat dangling",
			[]string{"file: Permission denied", "link: Permission denied", "stub: Permission denied", "own dangling\n", "!host", "!own file", "!own link"}},
		{"FS-22 hidden around", func(d string, in *fsview.Input) { in.Rules.DenyRead = rules(d, "e") }, "ls -A ../e; cat ../e/file ../e/link",
			[]string{"e/file: No such file", "e/link: No such file", "!own"}},
		{"FS-22 re-allowed in a hidden directory", func(d string, in *fsview.Input) {
			in.Rules.DenyRead, in.Rules.AllowRead = rules(d, "e"), rules(d, "e/file")
		}, "ls -A ../e; cat ../e/file; echo x > ../e/file; rm -f ../e/file", []string{"file\n", "own file\n", "e/file: Read-only", "remove '../e/file': Device or resource busy"}},
		{"FS-58 masked", func(d string, in *fsview.Input) {
			in.Masks, in.FakeContent = rules(d, "e/file", "e/link"), func(int, string) ([]byte, error) { return []byte("fake\n"), nil }
		}, "cat ../e/file ../e/link ../e/dangling", []string{"fake\nfake\nown dangling\n"}},
		{"the host mounts /run/r/stub at /e/file", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "e") }, attack, kept},
		{"the host mounts /e at /w", func(d string, in *fsview.Input) { in.Rules.AllowWrite = rules(d, "w") }, "cd ../e && cat file; cat ../w/file; echo x > ../w/n && mv ../w/n ../w/file; cat file", []string{"own file\nhost\n", "'../w/n' to '../w/file': Device or resource busy\nown file\n"}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			dir := resolverTree(t)
			in := fsview.Input{Cwd: filepath.Join(dir, "w"), Home: dir, UID: os.Geteuid(), Supplied: suppliedFiles(dir, resolverNames...)}
			if what, ok := strings.CutPrefix(c.name, "the host mounts "); ok {
				from, to, _ := strings.Cut(what, " at ")
				bind(t, dir+from, dir+to)
			}
			c.input(dir, &in)
			out := viewBehind(t, in, c.script, true)
			for _, w := range c.want {
				text, absent := strings.CutPrefix(w, "!")
				if strings.Contains(out, text) == absent {
					t.Errorf("want %q in:\n%s", w, out)
				}
			}
			for _, n := range []string{"e/file", "e/link"} {
				if got, err := os.ReadFile(filepath.Join(dir, n)); err != nil || string(got) != "host\n" && string(got) != "n\n" {
					t.Errorf("%s on the host: %q, %v", n, got, err)
				}
			}
		})
	}
}

// bind shows a file or directory at another path until the test ends.
func bind(t *testing.T, from, to string) {
	t.Helper()
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount(from, to, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestResolverFilesOfThisHost_NET7 starts with the files of this very machine, and asks libc.
func TestResolverFilesOfThisHost_NET7(t *testing.T) {
	files := fsview.ResolverFiles(os.ReadFile)
	in := fsview.Input{Cwd: "/", UID: os.Geteuid(), Supplied: files}
	for _, f := range files {
		want := string(f.Content)
		if _, err := os.Lstat(f.Path); err != nil {
			want = "" // nothing can be shown where nothing is
		}
		if got := view(t, in, "cat "+f.Path+" 2>/dev/null"); got != want {
			t.Errorf("%s: %q, want %q", f.Path, got, want)
		}
	}
	if out := view(t, in, "getent ahosts localhost; getent ahosts $(uname -n); getent passwd root"); strings.Count(out, "127.0.0.1 ") < 2 || !strings.Contains(out, "root:") {
		t.Errorf("libc finds %s", out)
	}
}

// BenchmarkResolverFiles starts a shell without and with the three files.
func BenchmarkResolverFiles(b *testing.B) {
	for name, files := range map[string][]fsview.SuppliedFile{"without": nil, "with": fsview.ResolverFiles(os.ReadFile)} {
		b.Run(name, func(b *testing.B) {
			in := fsview.Input{Cwd: "/", UID: os.Geteuid(), Supplied: files}
			for b.Loop() {
				if out := view(b, in, "echo up"); out != "up\n" {
					b.Fatalf("%.300s", out)
				}
			}
		})
	}
}
