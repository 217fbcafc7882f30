package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() { probes["change-table"] = probeChangeTable }

// probeChangeTable runs the table with the situations that only a judge of changes is asked about.
func probeChangeTable(folder string) any {
	runtime.LockOSThread()
	return runSituations(folder, append(situations(), changeSituations()...))
}

// changeSituations are calls on what exists.
func changeSituations() (list []situation) {
	add := func(name string, run func(r *recorder)) {
		list = append(list, situation{strings.ReplaceAll(name, "/", "_"), run})
	}
	const cwd = unix.AT_FDCWD
	when := []unix.Timespec{{Sec: 1, Nsec: 2}, {Sec: 3, Nsec: 4}}
	for target, path := range targets() {
		if notOurs[target] {
			continue // the host's own
		}
		add("remove_"+target, func(r *recorder) {
			r.err("rmdir", unix.Unlinkat(cwd, path, unix.AT_REMOVEDIR))
			r.err("unlink", unix.Unlinkat(cwd, path, 0))
			r.err("again", unix.Unlinkat(cwd, path, 0))
			r.err("flags", unix.Unlinkat(cwd, path, 1))
		})
		add("truncate_"+target, func(r *recorder) {
			r.err("shorter", unix.Truncate(path, 2))
			r.err("longer", unix.Truncate(path, 100))
			r.err("negative", unix.Truncate(path, -1))
		})
		add("mode_"+target, func(r *recorder) {
			for _, flags := range []uintptr{0, unix.AT_SYMLINK_NOFOLLOW, unix.AT_EMPTY_PATH, 1} {
				r.path(fmt.Sprintf("fchmodat2 %#x", flags), unix.SYS_FCHMODAT2, cwd, path, 0o4710, flags)
			}
			r.path("fchmodat", unix.SYS_FCHMODAT, cwd, path, 0o2750)
		})
		add("owner_"+target, func(r *recorder) {
			for _, flags := range []int{0, unix.AT_SYMLINK_NOFOLLOW, unix.AT_EMPTY_PATH, 1} {
				r.err(fmt.Sprintf("own %#x", flags), unix.Fchownat(cwd, path, os.Getuid(), -1, flags))
				r.err(fmt.Sprintf("other %#x", flags), unix.Fchownat(cwd, path, 12345, 12345, flags))
			}
		})
		add("times_"+target, func(r *recorder) {
			for _, flags := range []int{0, unix.AT_SYMLINK_NOFOLLOW, 1} {
				r.err("set", unix.UtimesNanoAt(cwd, path, when, flags))
			}
			r.times(path)
			r.err("omit one", unix.UtimesNanoAt(cwd, path, []unix.Timespec{{Nsec: nanoOmit}, {Sec: 9}}, 0))
			r.err("omit both", unix.UtimesNanoAt(cwd, path, []unix.Timespec{{Nsec: nanoOmit}, {Nsec: nanoOmit}}, 0))
			r.err("wrong", unix.UtimesNanoAt(cwd, path, []unix.Timespec{{Nsec: 1 << 40}, {Sec: 9}}, 0))
			r.times(path)
			r.path("now", unix.SYS_UTIMENSAT, cwd, path, 0, 0)
		})
		add("xattr_"+target, func(r *recorder) {
			r.err("set", unix.Setxattr(path, "user.a", []byte("value"), 0))
			r.err("create", unix.Setxattr(path, "user.a", []byte("value"), unix.XATTR_CREATE))
			r.err("replace", unix.Setxattr(path, "user.b", nil, unix.XATTR_REPLACE))
			r.err("flags", unix.Setxattr(path, "user.a", nil, 8))
			r.err("link", unix.Lsetxattr(path, "user.l", []byte("x"), 0))
			r.err("space", unix.Setxattr(path, "nothing.b", nil, 0))
			r.err("empty", unix.Setxattr(path, "", nil, 0))
			r.err("long", unix.Setxattr(path, "user."+strings.Repeat("x", 251), nil, 0))
			r.attributes(path)
			r.err("remove", unix.Removexattr(path, "user.a"))
			r.err("again", unix.Removexattr(path, "user.a"))
			r.err("remove link", unix.Lremovexattr(path, "user.l"))
		})
		add("tmpfile_"+target, func(r *recorder) {
			for _, flags := range []int{unix.O_TMPFILE | unix.O_RDWR, unix.O_TMPFILE | unix.O_WRONLY | unix.O_EXCL, unix.O_TMPFILE | unix.O_RDWR | unix.O_CREAT} {
				fd, err := unix.Openat(cwd, path, flags, 0o2777)
				r.fd("openat", fd, err)
			}
		})
		add("trunc_"+target, func(r *recorder) {
			if path == "fifo" {
				return // waits
			}
			for _, flags := range []int{unix.O_TRUNC, unix.O_TRUNC | unix.O_WRONLY, unix.O_TRUNC | unix.O_NOFOLLOW, unix.O_RDWR | unix.O_DIRECTORY} {
				fd, err := unix.Openat(cwd, path, flags, 0)
				r.fd("openat", fd, err)
			}
		})
	}
	add("changes by descriptor", descriptorSituation)
	add("changes of nameless files", namelessSituation)
	add("changes by old calls", oldChanges)
	add("change pointers", changePointers)
	return list
}

// notOurs are targets whose attributes are the host's.
var notOurs = map[string]bool{"proc": true, "sys": true, "devnull": true, "root": true, "doubleslash": true, "dotdot": true}

// path makes a call on a directory and a path with any arguments.
func (r *recorder) path(what string, trap uintptr, dirfd int, path string, args ...uintptr) {
	text := append([]byte(path), 0)
	r.raw(what, trap, append([]uintptr{uintptr(dirfd), uintptr(unsafe.Pointer(&text[0]))}, args...)...)
	runtime.KeepAlive(text)
}

// times writes down those of an object, which were set to the seconds after the epoch.
func (r *recorder) times(path string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && st.Mtim.Sec < 100 {
		r.lines = append(r.lines, fmt.Sprint("times ", st.Atim.Sec < 100, st.Mtim))
	}
}

// attributes writes down the extended ones of an object.
func (r *recorder) attributes(path string) {
	var names, value [512]byte
	n, err := unix.Listxattr(path, names[:])
	if err != nil {
		return
	}
	m, _ := unix.Getxattr(path, "user.a", value[:])
	r.lines = append(r.lines, fmt.Sprintf("attributes %q %q", names[:n], value[:max(m, 0)]))
}

func descriptorSituation(r *recorder) {
	for _, flags := range []int{unix.O_RDONLY, unix.O_RDWR, unix.O_PATH} {
		for _, name := range []string{"file", "dir", "tofile", "fifo"} {
			fd, err := unix.Open(name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
			if err != nil {
				r.err("open "+name, err)
				continue
			}
			r.err("fchmod", unix.Fchmod(fd, 0o4751))
			r.err("fchown", unix.Fchown(fd, os.Getuid(), -1))
			r.err("fchown other", unix.Fchown(fd, 12345, 12345))
			r.err("fsetxattr", unix.Fsetxattr(fd, "user.f", []byte("v"), 0))
			r.err("fremovexattr", unix.Fremovexattr(fd, "user.f"))
			r.raw("futimens now", unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0)
			r.raw("futimens flags", unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, unix.AT_SYMLINK_NOFOLLOW)
			for _, trap := range []uintptr{unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT} {
				third := []uintptr{0o700, unix.AT_EMPTY_PATH}
				if trap == unix.SYS_FCHOWNAT {
					third = []uintptr{uintptr(os.Getuid()), 1<<32 - 1, unix.AT_EMPTY_PATH}
				}
				r.path("by the descriptor itself", trap, fd, "", third...)
			}
			link := fmt.Sprintf("/proc/self/fd/%d", fd)
			r.err("by its link", unix.Chmod(link, 0o640))
			r.err("times by its link", unix.UtimesNanoAt(unix.AT_FDCWD, link, []unix.Timespec{{Sec: 5}, {Sec: 6}}, 0))
			r.err("owner by its link", unix.Chown(link, os.Getuid(), -1))
			r.err("attribute by its link", unix.Setxattr(link, "user.p", []byte("v"), 0))
			r.err("truncate by its link", unix.Truncate(link, 1))
			r.check(unix.Close(fd))
		}
	}
	for _, fd := range []int{-1, unix.AT_FDCWD, 9999} {
		r.err("fchmod", unix.Fchmod(fd, 0o700))
		r.err("fchown", unix.Fchown(fd, 0, 0))
		if fd != unix.AT_FDCWD { // which Linux 6.13 and newer take for the working directory
			r.err("fsetxattr", unix.Fsetxattr(fd, "user.f", nil, 0))
		}
		if fd != unix.AT_FDCWD {
			r.err("fremovexattr", unix.Fremovexattr(fd, "user.f"))
		}
		r.raw("futimens", unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0)
		r.err("unlinkat", unix.Unlinkat(fd, "nothing", 0))
		r.path("fchmodat", unix.SYS_FCHMODAT, fd, "nothing", 0o700)
	}
	r.err("mode back", unix.Chmod("dir", 0o755))
	dir, err := unix.Open("dir", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	r.check(err)
	r.path("in a directory", unix.SYS_FCHMODAT, dir, "inner", 0o604)
	r.err("remove in a directory", unix.Unlinkat(dir, "inner", 0))
	r.err("remove beside it", unix.Unlinkat(dir, "../full/sub", unix.AT_REMOVEDIR))
	r.check(unix.Close(dir))
}

// namelessSituation changes what has no name, or none any more.
func namelessSituation(r *recorder) {
	var pipe [2]int
	r.check(unix.Pipe(pipe[:]))
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	r.check(err)
	mem, err := unix.MemfdCreate("x", 0)
	r.check(err)
	temporary, err := unix.Open("dir", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	r.check(err)
	gone, err := unix.Open("file", unix.O_RDWR, 0)
	r.check(err)
	r.err("remove", unix.Unlink("file"))
	for i, fd := range []int{pipe[0], pipe[1], pair[0], mem, temporary, gone} {
		what := fmt.Sprint(i, " ")
		r.err(what+"fchmod", unix.Fchmod(fd, 0o640))
		r.err(what+"fchown", unix.Fchown(fd, os.Getuid(), -1))
		link := fmt.Sprintf("/proc/self/fd/%d", fd)
		r.err(what+"chmod", unix.Chmod(link, 0o600))
		again, err := unix.Open(link, unix.O_RDWR|unix.O_NONBLOCK, 0)
		r.fd(what+"open", again, err)
		again, err = unix.Open(link, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NONBLOCK, 0o600)
		r.fd(what+"create", again, err)
		r.err(what+"truncate", unix.Truncate(link, 1))
		var st unix.Stat_t
		r.check(unix.Fstat(fd, &st))
		r.lines = append(r.lines, fmt.Sprintf("mode %o size %d", st.Mode, st.Size))
		r.err(what+"name", unix.Linkat(unix.AT_FDCWD, link, unix.AT_FDCWD, "named"+fmt.Sprint(i), unix.AT_SYMLINK_FOLLOW))
	}
	for _, path := range []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/null", "/dev/zero", "/dev/full", "/dev/tty"} {
		for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, unix.O_WRONLY | unix.O_APPEND | unix.O_CLOEXEC} {
			fd, err := unix.Open(path, flags, 0o644)
			r.fd(path, fd, err)
		}
	}
	for _, fd := range []int{pipe[0], pipe[1], pair[0], pair[1], mem, temporary, gone} {
		r.check(unix.Close(fd))
	}
}

// changePointers has arguments that are not there.
func changePointers(r *recorder) {
	name, attribute := append([]byte("file"), 0), append([]byte("user.x"), 0)
	at, named := uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&attribute[0]))
	cwd := uintptr(unix.AT_FDCWD & (1<<64 - 1))
	for _, bad := range []uintptr{0, 16, 1 << 63} {
		what := fmt.Sprintf("%#x", bad)
		r.raw(what+" unlinkat", unix.SYS_UNLINKAT, cwd, bad, 0)
		r.raw(what+" truncate", unix.SYS_TRUNCATE, bad, 0)
		r.raw(what+" fchmodat", unix.SYS_FCHMODAT, cwd, bad, 0o700)
		r.raw(what+" fchownat", unix.SYS_FCHOWNAT, cwd, bad, 0, 0, 0)
		r.raw(what+" utimensat", unix.SYS_UTIMENSAT, cwd, bad, 0, 0)
		r.raw(what+" setxattr", unix.SYS_SETXATTR, bad, named, at, 4, 0)
		r.raw(what+" setxattr name", unix.SYS_SETXATTR, at, bad, at, 4, 0)
		r.raw(what+" setxattr value", unix.SYS_SETXATTR, at, named, bad, 4, 0)
		r.raw(what+" setxattr no value", unix.SYS_SETXATTR, at, named, bad, 0, 0)
		r.raw(what+" removexattr", unix.SYS_REMOVEXATTR, at, bad)
		if bad != 0 {
			r.raw(what+" times", unix.SYS_UTIMENSAT, cwd, at, bad, 0)
		}
	}
	r.raw("large value", unix.SYS_SETXATTR, at, named, at, 1<<17, 0)
	runtime.KeepAlive(name)
	runtime.KeepAlive(attribute)
}

// oldChanges are calls of amd64 alone; elsewhere the library has others in their place.
func oldChanges(r *recorder) {
	r.err("chmod", unix.Chmod("file", 0o604))
	r.err("chown", unix.Chown("file", os.Getuid(), -1))
	r.err("lchown", unix.Lchown("tofile", os.Getuid(), -1))
	r.err("utime", unix.Utime("file", &unix.Utimbuf{Actime: 7, Modtime: 8}))
	r.times("file")
	r.err("utimes", unix.Utimes("file", []unix.Timeval{{Sec: 1, Usec: 5}, {Sec: 2, Usec: 6}}))
	r.times("file")
	r.err("utimes", unix.Utimes("file", []unix.Timeval{{Sec: 1, Usec: 1_000_000}, {}}))
	r.err("futimesat", unix.Futimesat(unix.AT_FDCWD, "file", []unix.Timeval{{Sec: 3}, {Sec: 4}}))
	r.times("file")
	r.err("unlink", unix.Unlink("file"))
	r.err("rmdir", unix.Rmdir("full/sub"))
	r.err("rmdir", unix.Rmdir("full"))
}

// TestChangeTable_LikeWithoutABroker runs the table without a filter and with a judge of changes that refuses nothing, both without
// namespaces: all must be alike.
func TestChangeTable_LikeWithoutABroker(t *testing.T) {
	all := append(situations(), changeSituations()...)
	run := func(t *testing.T, s setup) outcomes {
		s.folder, s.probe = memoryFolder(t), "change-table"
		for _, one := range all {
			furnish(t, filepath.Join(s.folder, one.name))
		}
		var got outcomes
		for _, d := range runSandbox(t, s, &got) {
			t.Errorf("refused or failed: %+v", d)
		}
		for name, lines := range got {
			lines = append(lines, tree(filepath.Join(s.folder, name))...)
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], s.folder, "FOLDER")
			}
			got[name] = lines
		}
		return got
	}
	want := run(t, setup{confined: true})
	if len(want) < 700 {
		t.Fatalf("%d situations", len(want))
	}
	for name, s := range map[string]setup{
		"watched": {changes: &changeJudge{}, watched: true},
		"asked":   {changes: &changeJudge{}},
		// Where Landlock cannot hide what must not be read, readings are put to the broker too.
		"reads": {changes: &changeJudge{testJudge: testJudge{reads: true, moves: true}}, watched: true, filter: func() seccomp.Filter {
			return seccomp.Stack(seccomp.Confined(), seccomp.Opens(), seccomp.Changes())[0]
		}},
	} {
		got := run(t, s)
		for situation, lines := range want {
			if d := diffLines(lines, got[situation]); d != "" {
				t.Errorf("%s, %s (-without, +with):\n%s", name, situation, d)
			}
		}
	}
}
