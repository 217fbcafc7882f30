package fsview

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/runtime/policy"
)

func TestHostReadDir(t *testing.T) {
	dir := t.TempDir()
	want := map[string]fs.FileMode{}
	for i := range 1500 { // more than one getdents64 call
		name := fmt.Sprintf("%04d%s", i, strings.Repeat("n", 40))
		want[name] = 0
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"d", "line\nfeed", "\xff\xfe"} {
		want[name] = fs.ModeDir
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	want["l"], want["p"] = fs.ModeSymlink, fs.ModeNamedPipe
	if err := errors.Join(os.Symlink("d", filepath.Join(dir, "l")), unix.Mkfifo(filepath.Join(dir, "p"), 0o600)); err != nil {
		t.Fatal(err)
	}
	list, err := Host().ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, e := range list {
		got[e.Name] = e.Type
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, errno := range map[string]syscall.Errno{"l": syscall.ENOTDIR, "p": syscall.ENOTDIR, "none": syscall.ENOENT} {
		if _, err := Host().ReadDir(filepath.Join(dir, name)); !errors.Is(err, errno) {
			t.Errorf("ReadDir(%s) = %v, want %v", name, err, errno)
		}
	}
}

func TestHostReadDirRefusesBadRecords(t *testing.T) {
	record := make([]byte, 24)
	for _, size := range []byte{0, 5, 19, 25, 255} {
		record[direntReclen] = size
		if _, err := (hostTree{}).appendEntries(nil, "/", record); err == nil {
			t.Errorf("a record of %d bytes in 24 was accepted", size)
		}
	}
}

func TestHostLstat(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "f"), filepath.Join(dir, "l")
	long := strings.Repeat("t/", 200) + "end"
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(long, link), os.Link(file, file+"2")); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(file, &st); err != nil {
		t.Fatal(err)
	}
	info, err := Host().Lstat(file)
	if err != nil || info.ID != (Identity{Dev: st.Dev, Ino: st.Ino}) || info.Link != 2 || info.UID != os.Getuid() {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err = Host().Lstat(link); err != nil || !info.IsLink() {
		t.Errorf("%+v, %v", info, err)
	}
	if target, err := Host().Readlink(link); err != nil || target != long {
		t.Errorf("target %q, %v", target, err)
	}
	if _, err := Host().Lstat(file + "/x"); !absent(err) {
		t.Errorf("beneath a file: %v", err)
	}
	if _, err := Host().Lstat("/" + strings.Repeat("n", maxName+1)); !absent(err) {
		t.Errorf("a long name: %v", err)
	}
	if err := errors.Join(Host().CanCreate(dir), Host().CanSearch(dir)); err != nil {
		t.Errorf("own directory: %v", err)
	}
}

// repository makes a folder like a checkout: 2,000 files in 300 directories down to depth 3, some of them protected.
func repository(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{".git/HEAD", ".git/hooks/pre-push", ".git/config", ".vscode/settings.json", "a0/.mcp.json"}
	for i := range 2000 {
		names = append(names, fmt.Sprintf("a%d/b%d/c%d/f%d", i%6, i%36, i%300, i))
	}
	for _, name := range names {
		p := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestBuildOnHost(t *testing.T) {
	root := repository(t)
	in := Input{Cwd: root, UID: os.Getuid()}
	in.Rules.AllowWrite = []policy.PathRule{{Key: "aW", Entry: ".", Path: root}}
	plan, err := Build(Host(), in)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range plan.Steps {
		got = append(got, s.Kind.String()+" "+strings.TrimPrefix(s.Path, root))
		var st unix.Stat_t
		if err := unix.Lstat(s.Path, &st); err != nil || s.ID.Ino != st.Ino || s.ID.Dev != st.Dev {
			t.Errorf("%s: identity %+v, inode %d, %v", s.Path, s.ID, st.Ino, err)
		}
	}
	sort.Strings(got)
	want := []string{"pin /.git", "pin /a0", "read-only /.git/config", "read-only /.git/hooks", "read-only /.vscode",
		"read-only /a0/.mcp.json", "writable "}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// BenchmarkBuildRepository is the start path of a command in a repository of 2,000 files.
func BenchmarkBuildRepository(b *testing.B) {
	root := repository(b)
	in := Input{Cwd: root, UID: os.Getuid()}
	in.Rules.AllowWrite = []policy.PathRule{{Key: "aW", Entry: ".", Path: root}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(Host(), in); err != nil {
			b.Fatal(err)
		}
	}
}

func TestHostReadFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("f"), []byte("0123456789"), 0o600), os.WriteFile(at("e"), nil, 0o600), os.Symlink("f", at("l")),
		unix.Mkfifo(at("p"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		limit int
		want  string
		errno error
	}{
		{"f", 4, "0123", nil}, {"f", 10, "0123456789", nil}, {"f", 4096, "0123456789", nil}, {"e", 10, "", nil},
		{"l", 10, "", syscall.ELOOP}, {"p", 10, "", syscall.EINVAL}, {".", 10, "", syscall.EINVAL}, {"none", 10, "", syscall.ENOENT},
	} {
		got, err := Host().ReadFile(at(c.name), c.limit)
		if string(got) != c.want || !errors.Is(err, c.errno) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	if got, err := Host().ReadFile("/dev/zero", 10); err == nil {
		t.Errorf("a device: %q", got)
	}
}
