package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/seccomp"
)

func init() {
	probes["deny"] = func(string) any { return denyProbe() }
	probes["read"] = func(string) any { return readProbe() }
	probes["flip"] = func(folder string) any { return flipProbe(folder) }
}

// attempts at making a name, each of which must fail with one of FS-31's errors for a denied one.
func denyProbe() map[string]string {
	result := map[string]string{}
	note := func(what string, err error) {
		result[what] = errnoOf(err)
	}
	for _, path := range []string{"denied", "./denied", "sub/../denied", "sub/denied", "tosub/denied", "todenied", "/proc/self/cwd/denied", "DENIED/../denied"} {
		open := func(what string, flags int) {
			fd, err := unix.Open(path, flags, 0o644)
			if err == nil {
				unix.Close(fd)
			}
			note(what+" "+path, err)
		}
		open("open", unix.O_CREAT|unix.O_WRONLY)
		open("read", unix.O_CREAT|unix.O_RDONLY)
		open("excl", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR, Mode: 0o600})
		if err == nil {
			unix.Close(fd)
		}
		note("openat2 "+path, err)
		if path == "todenied" {
			continue // the others do not follow it
		}
		note("mkdir "+path, unix.Mkdir(path, 0o755))
		note("mkdir slash "+path, unix.Mkdir(path+"/", 0o755))
		note("mknod "+path, unix.Mknod(path, unix.S_IFREG|0o644, 0))
		note("fifo "+path, unix.Mkfifo(path, 0o644))
		note("symlink "+path, unix.Symlink("file", path))
		note("link "+path, unix.Link("file", path))
		note("rename "+path, unix.Rename("file", path))
		note("rename directory "+path, unix.Rename("tree", path))
		note("rename directory slash "+path, unix.Rename("tree", path+"/"))
		note("noreplace "+path, unix.Renameat2(unix.AT_FDCWD, "file", unix.AT_FDCWD, path, unix.RENAME_NOREPLACE))
		note("whiteout "+path, unix.Renameat2(unix.AT_FDCWD, "file", unix.AT_FDCWD, path, unix.RENAME_WHITEOUT))
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			note("bind "+path, unix.Bind(s, &unix.SockaddrUnix{Name: path}))
			unix.Close(s)
		}
	}
	temporary, err := unix.Open(".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	if err == nil {
		note("link temporary", unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", temporary), unix.AT_FDCWD, "denied", unix.AT_SYMLINK_FOLLOW))
		unix.Close(temporary)
	}
	return result
}

func furnishDenied(t *testing.T) string {
	folder := tempFolder(t)
	t.Chdir(folder)
	for _, err := range []error{os.WriteFile("file", []byte("x"), 0o644), os.Mkdir("sub", 0o755), os.Mkdir("DENIED", 0o755), os.Mkdir("tree", 0o755), os.Symlink("sub", "tosub"), os.Symlink("denied", "todenied")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// namedDenied tells locations whose last component is denied.
func namedDenied(location string) bool { return filepath.Base(location) == "denied" }

func TestDeny_EveryWayIsRefusedAndReported_FS30_FS31_FS33(t *testing.T) {
	for _, reads := range []bool{false, true} {
		folder := furnishDenied(t)
		before := tree(folder)
		judge := &testJudge{suspect: func(n string) bool { return n == "denied" }, create: namedDenied, reads: reads}
		filter := seccomp.Names
		if reads {
			filter = seccomp.Opens
		}
		var got map[string]string
		denials := runSandbox(t, setup{judge: judge, filter: filter, probe: "deny", folder: folder}, &got)
		for what, errno := range got {
			want := "EROFS"
			if what == "excl todenied" {
				want = "EEXIST" // the link
			}
			if strings.HasPrefix(what, "whiteout") && errno == "EINVAL" {
				continue // the file system has none
			}
			if errno != want {
				t.Errorf("%s: %s, want %s", what, errno, want)
			}
		}
		if len(got) < 100 {
			t.Errorf("only %d attempts", len(got))
		}
		if after := tree(folder); !slices.Equal(before, after) {
			t.Errorf("the tree has changed:\n%s", diffLines(before, after))
		}
		refused := 0
		for _, errno := range got {
			if errno == "EROFS" {
				refused++
			}
		}
		if len(denials) != refused {
			t.Errorf("%d reports of %d refusals", len(denials), refused)
		}
		for _, d := range denials {
			if d.Why != "test.create" || d.PID == 0 || d.Call == "" || !strings.HasPrefix(d.Path, folder) || !namedDenied(d.Path) {
				t.Errorf("report %+v", d)
			}
		}
	}
}

// What the host has made meanwhile stays readable, and is not written.
func TestDeny_NameThatExistsByNow_FS33(t *testing.T) {
	folder := furnishDenied(t)
	if err := os.WriteFile("denied", []byte("by the host"), 0o666); err != nil {
		t.Fatal(err)
	}
	judge := &testJudge{suspect: func(n string) bool { return n == "denied" }, create: namedDenied}
	var got map[string]string
	runSandbox(t, setup{judge: judge, probe: "deny", folder: folder}, &got)
	for what, want := range map[string]string{"open denied": "EROFS", "read denied": "<nil>", "excl denied": "EEXIST", "mkdir denied": "EEXIST", "mknod denied": "EEXIST",
		"symlink denied": "EEXIST", "link denied": "EEXIST", "rename denied": "EROFS", "noreplace denied": "EEXIST", "bind denied": "EADDRINUSE", "openat2 todenied": "EROFS"} {
		if got[what] != want {
			t.Errorf("%s: %s, want %s", what, got[what], want)
		}
	}
	if text, err := os.ReadFile("denied"); err != nil || string(text) != "by the host" {
		t.Errorf("%q, %v", text, err)
	}
}

func readProbe() map[string]string {
	result := map[string]string{}
	note := func(what string, err error) { result[what] = fmt.Sprint(err) }
	open := func(path string, flags int) {
		fd, err := unix.Open(path, flags, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		note(fmt.Sprintf("%s %#x", path, flags), err)
	}
	for _, path := range []string{"secret", "./secret", "tosecret", "secrets/in", "tosecrets/in", "/proc/self/cwd/secret", "open"} {
		open(path, unix.O_RDONLY)
		open(path, unix.O_WRONLY)
		open(path, unix.O_CREAT|unix.O_RDWR)
		open(path, unix.O_RDWR|unix.O_TRUNC)
	}
	open("secrets", unix.O_RDONLY|unix.O_DIRECTORY)
	open("new-secret", unix.O_CREAT|unix.O_RDWR)
	if fd, err := unix.Open("secret", unix.O_PATH, 0); err == nil {
		open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY)
		for k, v := range result {
			if strings.HasPrefix(k, "/proc/self/fd") {
				result["reopen"] = v
				delete(result, k)
			}
		}
		unix.Close(fd)
	}
	note("move", unix.Rename("secret", "public"))
	note("exchange", unix.Renameat2(unix.AT_FDCWD, "open", unix.AT_FDCWD, "secret", unix.RENAME_EXCHANGE))
	note("link", unix.Link("secret", "public"))
	note("move directory", unix.Rename("secrets", "public"))
	text, err := os.ReadFile("/proc/self/maps")
	note("maps", err)
	if len(text) == 0 {
		result["maps"] = "empty"
	}
	return result
}

func TestReads_AreJudgedWhereTheyLead_FS10_FS55(t *testing.T) {
	folder := tempFolder(t)
	t.Chdir(folder)
	for _, err := range []error{os.WriteFile("secret", []byte("secret"), 0o666), os.WriteFile("open", nil, 0o666), os.Mkdir("secrets", 0o755),
		os.WriteFile("secrets/in", []byte("secret"), 0o666), os.Symlink("secret", "tosecret"), os.Symlink("secrets", "tosecrets")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before := tree(folder)
	judge := &testJudge{reads: true, open: func(at string) bool { return strings.Contains(at, "secret") }}
	var got map[string]string
	runSandbox(t, setup{judge: judge, filter: seccomp.Opens, probe: "read", folder: folder}, &got)
	for what, result := range got {
		allowed := strings.HasPrefix(what, "open ") || what == "maps"
		if want := map[bool]string{true: "<nil>", false: "permission denied"}[allowed]; result != want {
			t.Errorf("%s: %s, want %s", what, result, want)
		}
	}
	if after := tree(folder); !slices.Equal(before, after) {
		t.Errorf("the tree has changed:\n%s", diffLines(before, after))
	}
}

// flipProbe makes names while other threads change the paths, the links and the directories that they lead through.
func flipProbe(folder string) map[string]int {
	counts := map[string]int{}
	may, err := unix.Open("dir", unix.O_PATH, 0) // the one in which nothing is denied, before it moves
	if err != nil {
		panic(err)
	}
	var stop atomic.Bool
	var wait sync.WaitGroup
	background := func(f func()) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for !stop.Load() {
				f()
			}
		}()
	}
	path := [8]byte{'a', 'l', 'l', 'o', 'w', 'e', 'd', 0}
	word := (*uint64)(unsafe.Pointer(&path))
	allowed, denied := *word, uint64(0)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&denied)), 8), "denied\x00")
	background(func() { atomic.StoreUint64(word, denied); atomic.StoreUint64(word, allowed) })
	background(func() {
		unix.Renameat2(unix.AT_FDCWD, "link", unix.AT_FDCWD, "otherlink", unix.RENAME_EXCHANGE)
	})
	background(func() {
		unix.Renameat2(unix.AT_FDCWD, "dir", unix.AT_FDCWD, "otherdir", unix.RENAME_EXCHANGE)
	})
	cwd := uintptr(unix.AT_FDCWD & (1<<64 - 1))
	p := uintptr(unsafe.Pointer(&path))
	end := time.Now().Add(1500 * time.Millisecond)
	for time.Now().Before(end) {
		for name, f := range map[string]func() syscall.Errno{
			"mkdir":   func() syscall.Errno { _, _, e := syscall.Syscall6(unix.SYS_MKDIRAT, cwd, p, 0o755, 0, 0, 0); return e },
			"symlink": func() syscall.Errno { _, _, e := syscall.Syscall6(unix.SYS_SYMLINKAT, p, cwd, p, 0, 0, 0); return e },
			"rename": func() syscall.Errno {
				unix.Mknod("victim", unix.S_IFREG|0o600, 0)
				_, _, e := syscall.Syscall6(unix.SYS_RENAMEAT2, cwd, uintptr(unsafe.Pointer(unsafe.StringData("victim\x00"))), cwd, p, 0, 0)
				return e
			},
			"open": func() syscall.Errno {
				fd, _, e := syscall.Syscall6(unix.SYS_OPENAT, cwd, p, unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0)
				if e == 0 {
					unix.Close(int(fd))
				}
				return e
			},
			"through link": func() syscall.Errno {
				fd, err := unix.Open("link/here", unix.O_CREAT|unix.O_RDWR, 0o600)
				if err == nil {
					unix.Close(fd)
					return 0
				}
				return asErrno(err)
			},
			"into directory": func() syscall.Errno { return asErrno(unix.Mkdir("dir/inner", 0o700)) },
		} {
			if e := f(); e != 0 {
				counts[name+" "+unix.ErrnoName(e)]++
			} else {
				counts[name]++
			}
		}
		for _, name := range []string{"allowed", "good/here", "victim"} {
			if unix.Unlink(name) != nil {
				unix.Rmdir(name)
			}
		}
		unix.Unlinkat(may, "inner", unix.AT_REMOVEDIR)
	}
	stop.Store(true)
	wait.Wait()
	runtime.KeepAlive(&path)
	return counts
}

// flipJudge denies a name everywhere, another beneath one directory, and a third in one directory by its identity.
type flipJudge struct {
	testJudge
	forbidden fsview.Identity
}

func (j *flipJudge) Create(dir fsview.Identity, at func() (string, error), name string) (string, bool, error) {
	if name == "inner" && dir == j.forbidden {
		return "test.identity", true, nil
	}
	return j.testJudge.Create(dir, at, name)
}

func TestDeny_HoldsWhilePathsChange_FS30_FS42(t *testing.T) {
	folder := tempFolder(t)
	t.Chdir(folder)
	for _, err := range []error{os.Mkdir("good", 0o755), os.Mkdir("bad", 0o755), os.Mkdir("dir", 0o755), os.Mkdir("otherdir", 0o755),
		os.Symlink("good", "link"), os.Symlink("bad", "otherlink")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat("otherdir", &st); err != nil {
		t.Fatal(err)
	}
	judge := &flipJudge{testJudge{suspect: func(n string) bool { return n == "denied" || n == "here" || n == "inner" },
		create: func(at string) bool { return namedDenied(at) || at == folder+"/bad/here" }},
		fsview.Identity{Dev: st.Dev, Ino: st.Ino, Type: os.ModeDir}}
	var counts map[string]int
	runSandbox(t, setup{judge: judge, probe: "flip", folder: folder}, &counts)
	t.Log(counts)
	for _, name := range []string{"mkdir", "open", "through link", "into directory"} {
		if counts[name] == 0 || counts[name+" EROFS"] == 0 {
			t.Errorf("%s: %d allowed and %d refused: the test has seen only one side", name, counts[name], counts[name+" EROFS"])
		}
	}
	for _, name := range []string{"denied", "bad/here"} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"dir", "otherdir"} {
		var dir unix.Stat_t
		if err := unix.Stat(name, &dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(name + "/inner"); dir.Ino == st.Ino && !os.IsNotExist(err) {
			t.Errorf("the denied name was made in the directory that is called %s now", name)
		}
	}
}
