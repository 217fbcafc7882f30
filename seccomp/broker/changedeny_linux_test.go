package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/seccomp"
	"github.com/srt-sandbox/srt/seccomp/notify"
)

func init() {
	probes["change-deny"] = probeChangeDeny
	probes["change-none"] = func(string) any {
		errno, _ := errors.AsType[unix.Errno](unix.Unlink("file"))
		return unix.ErrnoName(errno)
	}
}

// divide makes a folder with a part that may be changed, rw, and in it what may not: secret and the directory kept. Of ro nothing
// may. outside is what must be as it was afterwards.
func divide(t testing.TB) (folder string, judge *changeJudge, outside func() []string) {
	t.Helper()
	folder = memoryFolder(t)
	for _, dir := range []string{"rw", "ro", "rw/kept", "rw/dir", "ro/dir", "rw/deep", "rw/deep/kept"} {
		if err := os.Mkdir(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"rw/file", "rw/secret", "rw/kept/file", "ro/file", "ro/dir/file", "rw/deep/kept/file", "rw/deep/file"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte("content"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"rw/toro": "../ro", "rw/tofile": "../ro/file", "rw/tosecret": "secret", "rw/tonew": "../ro/new"} {
		if err := os.Symlink(text, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	held := []string{"rw/secret", "rw/kept", "rw/deep/kept"}
	judge = &changeJudge{change: func(location string, a fsview.Access) syscall.Errno {
		name, in := strings.CutPrefix(location, folder+"/")
		switch {
		case !in && strings.HasPrefix(location, "/dev/") && a == fsview.AccessWrite:
			return 0
		case !in || name != "rw" && !strings.HasPrefix(name, "rw/"):
			return unix.EROFS
		}
		for _, h := range held {
			switch {
			case name == h && a == fsview.AccessRemove:
				return unix.EBUSY
			case name == h || strings.HasPrefix(name, h+"/"):
				return unix.EROFS
			}
		}
		return 0
	}}
	judge.moves = true
	judge.move = func(from, to string) bool { return from == folder+"/rw/deep" } // with what it holds
	return folder, judge, func() []string { return snapshot(folder, append(held, "ro")) }
}

// snapshot is all that can be told of some objects and what they hold: times and extended attributes too.
func snapshot(folder string, names []string) (lines []string) {
	for _, name := range names {
		top := filepath.Join(folder, name)
		err := filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
			var st unix.Stat_t
			if err == nil {
				err = unix.Lstat(path, &st)
			}
			if err != nil {
				lines = append(lines, err.Error())
				return nil
			}
			var list [256]byte
			n, _ := unix.Llistxattr(path, list[:])
			content := []byte(nil)
			if st.Mode&unix.S_IFMT == unix.S_IFREG {
				content, _ = os.ReadFile(path)
			}
			lines = append(lines, fmt.Sprintf("%s %d %o %d:%d %d %d %v %v %q %q", path, st.Ino, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, st.Mtim, st.Ctim,
				list[:max(n, 0)], content))
			return nil
		})
		if err != nil {
			lines = append(lines, err.Error())
		}
	}
	return lines
}

// spellings are ways to what must not change: a file that is there, and a name that is not.
func spellings(folder string) (files, names []string) {
	files = []string{"ro/file", folder + "/ro/file", "rw/../ro/file", "rw/toro/file", "rw/tofile", "rw/secret", "rw/tosecret", "rw/kept/file",
		"/proc/self/cwd/ro/file", fmt.Sprintf("/proc/%d/cwd/rw/toro/dir/file", os.Getpid()), "/proc/thread-self/root" + folder + "/ro/file",
		"rw/deep/kept/file", "./rw//kept/./file"}
	names = []string{"ro/new", folder + "/ro/new", "rw/../ro/new", "rw/toro/new", "rw/kept/new", "/proc/self/cwd/ro/new", "rw/deep/kept/../kept/new", "ro/dir/new"}
	return files, names
}

// probeChangeDeny tries every change on what must not change, and gives those that succeeded, and those that failed where they must
// not have.
func probeChangeDeny(folder string) any {
	var wrong []string
	refused := func(what, path string, err error) {
		if err == nil {
			wrong = append(wrong, what+" "+path+" succeeded")
		}
	}
	files, names := spellings(folder)
	for _, path := range files {
		changeFile(path, refused)
		for _, flags := range []int{unix.O_RDONLY, unix.O_PATH} {
			fd, err := unix.Open(path, flags|unix.O_NONBLOCK, 0)
			if err != nil {
				wrong = append(wrong, "open "+path+": "+err.Error())
				continue
			}
			refused("fchmod", path, unix.Fchmod(fd, 0o777))
			refused("fchown", path, unix.Fchown(fd, os.Getuid(), os.Getgid()))
			refused("fsetxattr", path, unix.Fsetxattr(fd, "user.x", []byte("x"), 0))
			refused("fremovexattr", path, unix.Fremovexattr(fd, "user.x"))
			refused("futimens", path, futimens(fd))
			changeFile(fmt.Sprintf("/proc/self/fd/%d", fd), func(what, at string, err error) {
				if !strings.HasPrefix(what, "remove") && !strings.HasPrefix(what, "rename") && !strings.HasPrefix(what, "l") {
					refused(what, path+" by "+at, err)
				}
			})
			refused("link by descriptor", path, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, "rw/linked", unix.AT_SYMLINK_FOLLOW))
			_ = unix.Close(fd)
		}
	}
	for _, path := range names {
		makeName(path, refused)
	}
	return append(wrong, changeAllowed()...)
}

func futimens(fd int) error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func opens(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0o666)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// changeFile tries to change a file that is there, and its name.
func changeFile(path string, done func(what, path string, err error)) {
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_TRUNC, unix.O_WRONLY | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC, unix.O_WRONLY | unix.O_APPEND,
		unix.O_ACCMODE} {
		done(fmt.Sprintf("open %#x", flags), path, opens(path, flags))
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags), Mode: modeFor(flags)})
		if err == nil {
			_ = unix.Close(fd)
		}
		done("openat2", path, err)
	}
	done("truncate", path, unix.Truncate(path, 0))
	done("chmod", path, unix.Chmod(path, 0o777))
	done("chown", path, unix.Chown(path, os.Getuid(), os.Getgid()))
	done("times", path, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0))
	done("setxattr", path, unix.Setxattr(path, "user.x", []byte("x"), 0))
	done("removexattr", path, unix.Removexattr(path, "user.x"))
	if base := filepath.Base(path); base == "tofile" || base == "tosecret" {
		return // whose own names may go
	}
	done("remove", path, unix.Unlink(path))
	done("rename away", path, unix.Rename(path, "rw/moved"))
	done("rename onto", path, unix.Rename("rw/dir/none", path))
	done("exchange", path, unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, "rw/file", unix.RENAME_EXCHANGE))
	done("exchange back", path, unix.Renameat2(unix.AT_FDCWD, "rw/file", unix.AT_FDCWD, path, unix.RENAME_EXCHANGE))
	done("link away", path, unix.Link(path, "rw/linked"))
}

// makeName tries to make a name that is not there.
func makeName(path string, done func(what, path string, err error)) {
	done("create", path, opens(path, unix.O_CREAT|unix.O_WRONLY))
	done("create to read", path, opens(path, unix.O_CREAT|unix.O_EXCL))
	done("mkdir", path, unix.Mkdir(path, 0o777))
	done("mkdir slash", path, unix.Mkdir(path+"/", 0o777))
	done("mknod", path, unix.Mknod(path, unix.S_IFREG|0o666, 0))
	done("fifo", path, unix.Mkfifo(path, 0o666))
	done("symlink", path, unix.Symlink("x", path))
	done("link", path, unix.Link("rw/file", path))
	done("rename", path, unix.Rename("rw/file", path))
	done("rename of a directory", path, unix.Rename("rw/dir", path))
	done("temporary", path, opens(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR))
	if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		done("bind", path, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		_ = unix.Close(fd)
	}
	if fd, err := unix.Open("rw", unix.O_TMPFILE|unix.O_RDWR, 0o600); err == nil {
		done("naming of a temporary", path, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW))
		_ = unix.Close(fd)
	}
}

// changeAllowed makes the same changes where they are allowed, and gives those that failed.
func changeAllowed() (wrong []string) {
	succeeded := func(what, path string, err error) {
		if err != nil {
			wrong = append(wrong, what+" "+path+": "+err.Error())
		}
	}
	succeeded("create", "rw/new", opens("rw/new", unix.O_CREAT|unix.O_RDWR))
	succeeded("chmod", "rw/new", unix.Chmod("rw/new", 0o600))
	succeeded("setxattr", "rw/new", unix.Setxattr("rw/new", "user.x", []byte("x"), 0))
	succeeded("rename", "rw/new", unix.Rename("rw/new", "rw/dir/new"))
	succeeded("link", "rw/dir/new", unix.Link("rw/dir/new", "rw/hard"))
	succeeded("remove", "rw/hard", unix.Unlink("rw/hard"))
	succeeded("write", "/dev/null", opens("/dev/null", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC))
	succeeded("read", "ro/file", opens("ro/file", unix.O_RDONLY))
	succeeded("read link", "rw/tofile", opens("rw/tofile", unix.O_RDONLY))
	for _, name := range []string{"comm", "oom_score_adj", "coredump_filter"} {
		succeeded("set", name, os.WriteFile("/proc/self/"+name, []byte("700"), 0))
		succeeded("set", name, os.WriteFile(fmt.Sprintf("/proc/%d/%s", os.Getpid(), name), []byte("800"), 0))
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", os.Getppid(), name), []byte("900"), 0); err == nil {
			wrong = append(wrong, name+" of the supervisor was set")
		}
	}
	if text, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || string(text) != "800\n" {
		wrong = append(wrong, fmt.Sprintf("oom_score_adj is %q (%v)", text, err))
	}
	for what, err := range map[string]error{"rename of a pin": unix.Rename("rw/kept", "rw/x"), "rename of what holds one": unix.Rename("rw/deep", "rw/x"),
		"remove of a pin": unix.Rmdir("rw/kept"), "mode of a device": unix.Chmod("/dev/null", 0o666), "times of a device": unix.Utimes("/dev/null", nil)} {
		if err == nil {
			wrong = append(wrong, what+" succeeded")
		}
	}
	return wrong
}

// TestChanges_WhatIsDeniedStaysAsItIs_FS30_FS41: by every call and every spelling, with the judge alone in the way: hands may
// change the whole folder.
func TestChanges_WhatIsDeniedStaysAsItIs_FS30_FS41(t *testing.T) {
	folder, judge, outside := divide(t)
	before := outside()
	var wrong []string
	b := startSandbox(t, setup{changes: judge, walls: true, probe: "change-deny", folder: folder})
	denials := b.finishWith(t, &wrong)
	for _, w := range wrong {
		t.Error(w)
	}
	if d := diffLines(before, outside()); d != "" {
		t.Errorf("changed (-before, +after):\n%s", d)
	}
	calls := map[string]bool{}
	for _, d := range denials {
		if d.Err != nil {
			t.Errorf("%s %q: %v", d.Call, d.Path, d.Err)
			continue
		}
		calls[d.Call] = true
		if inside := strings.HasPrefix(d.Path, folder+"/") || strings.HasPrefix(d.Path, "/proc/"); !inside && d.Path != "/dev/null" || d.Why != "test.change" && d.Why != "test.move" {
			t.Errorf("reported %+v", d)
		}
	}
	for _, call := range []string{"openat", "openat2", "truncate", "fchmodat", "fchmod", "fchownat", "fchown", "utimensat", "setxattr", "removexattr", "fsetxattr",
		"fremovexattr", "unlinkat", "renameat", "renameat2", "linkat", "symlinkat", "mkdirat", "mknodat", "bind"} {
		older := strings.TrimSuffix(call, "at")
		if !calls[call] && !calls[older] && !slices.Contains([]string{"fchmodat", "fchownat"}, call) {
			t.Errorf("no refused %s was reported", call)
		}
	}
}

// TestChanges_NoJudge: a call that nobody expects fails and is reported.
func TestChanges_NoJudge(t *testing.T) {
	folder := memoryFolder(t)
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var errno string
	b := startSandbox(t, setup{judge: &testJudge{}, filter: seccomp.Changes, probe: "change-none", folder: folder})
	denials := b.finishWith(t, &errno)
	if errno != "EIO" || len(denials) != 1 || denials[0].Err == nil {
		t.Errorf("%s, %+v", errno, denials)
	}
	if _, err := os.Stat(filepath.Join(folder, "file")); err != nil {
		t.Error(err)
	}
}

// TestNew_ChangesAreNeverLookedAtAlone: a call that went on unjudged could change whatever Landlock does not know.
func TestNew_ChangesAreNeverLookedAtAlone(t *testing.T) {
	c := Config{Listener: new(notify.Listener), NewHand: func() (Hand, error) { return nil, unix.EIO }, Judge: &testJudge{}, Changes: &changeJudge{},
		Observe: &Observation{Judge: idleJudge{}, Only: true}}
	if _, err := New(c); err == nil {
		t.Error("accepted")
	}
}
