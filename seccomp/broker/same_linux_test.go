package broker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() {
	probes["same"] = func(string) any { return sameProbe() }
	probes["refused-moves"] = func(string) any { return refusedMovesProbe() }
}

const sameText = "[core]\n\tworktree = ../lib\n"

// sameRenames are renames of from onto a protected file: the content of both, and the error.
var sameRenames = []struct {
	name             string
	onto             string
	have, now        string
	mode             os.FileMode
	flags            uint
	want             unix.Errno
	noOwner, removed bool
}{
	{name: "a mount", onto: "mounted0", have: sameText, now: sameText, removed: true},
	{name: "a name that is denied", onto: "denied1", have: sameText, now: sameText, removed: true},
	{name: "larger than a chunk", onto: "mounted2", have: strings.Repeat("x", sameChunk+1), now: strings.Repeat("x", sameChunk+1), removed: true},
	{name: "exactly a chunk", onto: "mounted3", have: strings.Repeat("x", sameChunk), now: strings.Repeat("x", sameChunk), removed: true},
	{name: "another content", onto: "mounted4", have: sameText, now: strings.ToUpper(sameText), want: unix.EBUSY},
	{name: "another end", onto: "mounted5", have: strings.Repeat("x", sameChunk+1), now: strings.Repeat("x", sameChunk) + "y", want: unix.EBUSY},
	{name: "another size", onto: "denied6", have: sameText, now: sameText + "x", want: unix.EROFS},
	{name: "not replaced", onto: "mounted7", have: sameText, now: sameText, flags: unix.RENAME_NOREPLACE, want: unix.EEXIST},
	{name: "exchanged", onto: "denied8", have: sameText, now: sameText, flags: unix.RENAME_EXCHANGE, want: unix.EROFS},
	{name: "exchanged with a mount", onto: "mounted9", have: sameText, now: sameText, flags: unix.RENAME_EXCHANGE, want: unix.EBUSY},
	{name: "a hidden file", onto: "mounted10", have: sameText, now: sameText, mode: 0o200, want: unix.EBUSY, noOwner: true},
	{name: "empty", onto: "mounted11", want: unix.EBUSY},
	{name: "too large", onto: "denied12", have: strings.Repeat("x", sameMax+1), now: strings.Repeat("x", sameMax+1), want: unix.EROFS},
	{name: "denied to read", onto: "secret13", have: sameText, now: sameText, want: unix.EBUSY},
}

func sameProbe() (results []string) {
	for i, r := range sameRenames {
		err := unix.Renameat2(unix.AT_FDCWD, fmt.Sprintf("from%d", i), unix.AT_FDCWD, r.onto, r.flags)
		results = append(results, errnoOf(err))
	}
	return results
}

// asErrno is the error number of a system call's error, 0 for none.
func asErrno(err error) unix.Errno {
	errno, _ := errors.AsType[unix.Errno](err)
	return errno
}

// errnoOf is its name, and what the error says where it has none.
func errnoOf(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}

// TestRename_SameContent: of a refused rename onto a file with the same content, the old name goes and nothing denied
// changes. FS-31 holds for all others.
func TestRename_SameContent_FS31(t *testing.T) {
	for _, reads := range []bool{false, true} {
		t.Run(fmt.Sprintf("reads %t", reads), func(t *testing.T) { testSameContent(t, reads) })
	}
}

func testSameContent(t *testing.T, reads bool) {
	folder := tempFolder(t)
	t.Chdir(folder)
	s := setup{probe: "same", folder: folder}
	for i, r := range sameRenames {
		mode := r.mode
		if mode == 0 {
			mode = 0o644
		}
		if err := os.WriteFile(fmt.Sprintf("from%d", i), []byte(r.now), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.onto, []byte(r.have), mode); err != nil {
			t.Fatal(err)
		}
		if r.noOwner {
			if err := os.Chmod(r.onto, 0); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(r.onto, "denied") {
			s.mounts = append(s.mounts, r.onto)
		}
	}
	denied := func(at string) bool { return strings.Contains(at, "/denied") }
	judge := &testJudge{suspect: func(n string) bool { return denied("/" + n) }, create: denied, reads: reads,
		open: func(at string) bool { return strings.Contains(at, "/secret") }}
	s.judge = judge
	if reads {
		s.filter = seccomp.Opens
	}
	var got []string
	denials := runSandbox(t, s, &got)
	refused := 0
	for i, r := range sameRenames {
		want, removed := "<nil>", r.removed
		if r.want != 0 {
			want = unix.ErrnoName(r.want)
		}
		if r.onto == "secret13" && !reads {
			want, removed = "<nil>", true
		}
		if got[i] != want {
			t.Errorf("%s: %s, want %s", r.name, got[i], want)
		}
		if _, err := os.Lstat(fmt.Sprintf("from%d", i)); (err != nil) != removed {
			t.Errorf("%s: the old name is removed: %v, want %t", r.name, err, removed)
		}
		if want == "EROFS" {
			refused++
		}
		if err := os.Chmod(r.onto, 0o600); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(r.onto); err != nil || !bytes.Equal(now, []byte(r.have)) {
			t.Errorf("%s: the protected file has changed: %v", r.name, err)
		}
	}
	if len(denials) != refused {
		t.Errorf("%d refusals are reported, want %d: %v", len(denials), refused, denials)
	}
}

func refusedMovesProbe() map[string]string {
	move := func(from, to string) string { return errnoOf(unix.Rename(from, to)) }
	return map[string]string{"onto a denied mount": move("file", "denied"), "of a mount onto a denied name": move("mounted", "denied-too"),
		"onto a denied file": move("file", "denied-later"), "of a directory": move("tree", "moved"), "of a directory that is a mount": move("top", "moved"),
		"of a read-only directory": move("sealed/tree", "sealed/moved")}
}

// What is there at the start and denied is a mount, of which the kernel says EBUSY (FS-31).
func TestRename_ErrorsAreTheKernels_FS31(t *testing.T) {
	folder := tempFolder(t)
	t.Chdir(folder)
	for _, name := range []string{"file", "denied", "mounted", "denied-later"} {
		if err := os.WriteFile(name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tree", "top", "sealed", "sealed/tree"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	denied := func(at string) bool { return strings.Contains(at, "/denied") }
	judge := &testJudge{suspect: func(n string) bool { return denied("/" + n) }, create: denied, moves: true,
		move: func(string, string) bool { return true }}
	var got map[string]string
	runSandbox(t, setup{judge: judge, probe: "refused-moves", folder: folder, mounts: []string{"denied", "mounted", "top", "sealed!"}}, &got)
	for what, want := range map[string]string{"onto a denied mount": "EBUSY", "of a mount onto a denied name": "EBUSY", "onto a denied file": "EROFS",
		"of a directory": "EXDEV", "of a directory that is a mount": "EBUSY",
		"of a read-only directory": "EROFS"} {
		if got[what] != want {
			t.Errorf("%s: %s, want %s", what, got[what], want)
		}
	}
}
