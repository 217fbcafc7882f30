package broker

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() { probes["table"] = probeTable }

// outcomes are what each situation of the table gave, and the tree that it left behind.
type outcomes map[string][]string

// probeTable runs every situation in a folder of its own.
func probeTable(folder string) any {
	runtime.LockOSThread()
	return runSituations(folder, situations())
}

func runSituations(folder string, list []situation) outcomes {
	result := outcomes{}
	for _, s := range list {
		r := &recorder{dir: filepath.Join(folder, s.name)}
		err := os.Chdir(r.dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // it is not among those of this run
		}
		r.check(err)
		unix.Umask(0o022)
		s.run(r)
		unix.Umask(0o022)
		r.check(os.Chdir(folder))
		result[s.name] = r.lines
	}
	return result
}

// recorder writes down what calls return.
type recorder struct {
	dir   string
	lines []string
}

func (r *recorder) check(err error) {
	if err != nil {
		r.lines = append(r.lines, "setup: "+err.Error())
	}
}

// err writes down how a call ended.
func (r *recorder) err(what string, err error) {
	text := "ok"
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		text = unix.ErrnoName(errno)
		if text == "" {
			text = fmt.Sprintf("errno %d", int(errno))
		}
	} else if err != nil {
		text = err.Error()
	}
	r.lines = append(r.lines, what+": "+text)
}

// fd writes down an opening: error, number, flags of the file and of the descriptor, and what it leads to; and closes it.
func (r *recorder) fd(what string, fd int, err error) {
	r.err(what, err)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	flags &^= unix.O_NOFOLLOW // the one flag that an opening by way of an O_PATH descriptor cannot keep
	own, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	link, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	link = strings.ReplaceAll(link, r.dir, "DIR")
	link = strings.ReplaceAll(link, fmt.Sprintf("/proc/%d", os.Getpid()), "/proc/PID")
	link = inodeInName.ReplaceAllString(link, "/#N")
	if strings.HasPrefix(link, "pipe:") || strings.HasPrefix(link, "socket:") {
		link = link[:5]
	}
	lowest, _ := unix.Dup(0)
	unix.Close(lowest)
	r.lines = append(r.lines, fmt.Sprintf("  lowest number: %t, flags %#x %d %s", fd < lowest, flags, own, link))
}

// inodeInName is in the name of a file that was made with O_TMPFILE.
var inodeInName = regexp.MustCompile(`/#\d+`)

// furnish makes what every situation finds.
func furnish(t *testing.T, dir string) {
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o755))
	t.Chdir(dir)
	must(os.WriteFile("file", []byte("content"), 0o644))
	must(os.WriteFile("locked", []byte("content"), 0o000))
	must(os.Mkdir("dir", 0o755))
	must(os.WriteFile("dir/inner", []byte("inner"), 0o600))
	must(os.Mkdir("full", 0o755))
	must(os.Mkdir("full/sub", 0o755))
	must(os.Mkdir("shut", 0o000))
	must(os.Mkdir("readonly", 0o555))
	must(os.WriteFile("readonly0", nil, 0o444))
	must(os.Symlink("file", "tofile"))
	must(os.Symlink("dir", "todir"))
	must(os.Symlink("dir/new", "tonew"))
	must(os.Symlink("tonew", "totonew"))
	must(os.Symlink("nowhere/x", "dangling"))
	must(os.Symlink("loop", "loop"))
	must(os.Symlink(dir+"/dir/abs", "toabs"))
	must(os.Symlink("/proc/self/fd", "fds"))
	must(unix.Mkfifo("fifo", 0o644))
}

type situation struct {
	name string
	run  func(r *recorder)
}

// targets are paths that calls are tried on.
func targets() map[string]string {
	long := strings.Repeat("n", 255)
	return map[string]string{
		"new": "new", "newdeep": "dir/new", "file": "file", "dir": "dir", "todir": "todir", "tofile": "tofile", "tonew": "tonew",
		"totonew": "totonew", "dangling": "dangling", "loop": "loop", "beneathloop": "loop/x", "toabs": "toabs", "fifo": "fifo",
		"slash": "new/", "dirslash": "dir/", "fileslash": "file/", "linkslash": "todir/", "newlinkslash": "tonew/", "slashes": "dir///new", "beneathfile": "file/x",
		"beneathnothing": "nothing/x", "dot": ".", "dotdot": "..", "dirdot": "dir/.", "dirdotdot": "dir/..", "newdot": "nothing/.",
		"empty": "", "root": "/", "doubleslash": "//", "shut": "shut/x", "readonly": "readonly/x", "throughlink": "todir/new",
		"up": "dir/../new", "long": long, "toolong": long + "n", "deeplong": "dir/" + long, "longpath": strings.Repeat("./", 2045) + "new",
		"toolongpath": strings.Repeat("./", 2048) + "new", "locked": "locked", "readonly0": "readonly0",
		"procself": "/proc/self/cwd/new", "procselfdir": "/proc/self/cwd/dir/new", "procthread": "/proc/thread-self/cwd/new", "procfd": "fds/99", "procfdin": "fds/99/x",
		"proc": "/proc/new", "procselfnew": "/proc/self/new", "sys": "/sys/new", "selflink": "/proc/self", "devnull": "/dev/null",
	}
}

func situations() (list []situation) {
	add := func(name string, run func(r *recorder)) {
		list = append(list, situation{strings.ReplaceAll(name, "/", "_"), run})
	}
	opens := map[string]int{
		"creat": unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, "excl": unix.O_CREAT | unix.O_EXCL | unix.O_RDWR,
		"rdonly": unix.O_CREAT, "append": unix.O_CREAT | unix.O_WRONLY | unix.O_APPEND | unix.O_CLOEXEC,
		"nofollow":  unix.O_CREAT | unix.O_NOFOLLOW | unix.O_WRONLY | unix.O_NONBLOCK,
		"directory": unix.O_CREAT | unix.O_DIRECTORY, "path": unix.O_CREAT | unix.O_PATH, "nonblock": unix.O_CREAT | unix.O_RDWR | unix.O_NONBLOCK,
		"nonblockwr": unix.O_CREAT | unix.O_WRONLY | unix.O_NONBLOCK | unix.O_SYNC | unix.O_NOATIME, "acc3": unix.O_CREAT | unix.O_ACCMODE | unix.O_NONBLOCK,
		"exclnofollow": unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_WRONLY | unix.O_TRUNC, "read": unix.O_RDONLY | unix.O_NONBLOCK,
		"readdir": unix.O_RDONLY | unix.O_DIRECTORY, "readnofollow": unix.O_NOFOLLOW | unix.O_NONBLOCK, "write": unix.O_WRONLY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		"tmpfile": unix.O_TMPFILE | unix.O_WRONLY,
	}
	for target, path := range targets() {
		for how, flags := range opens {
			if path == "fifo" && flags&unix.O_NONBLOCK == 0 && flags&unix.O_ACCMODE != unix.O_RDWR {
				continue // waits
			}
			add("open_"+how+"_"+target, func(r *recorder) {
				fd, err := unix.Openat(unix.AT_FDCWD, path, flags, 0o4777)
				r.fd("openat", fd, err)
				fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags), Mode: modeFor(flags)})
				if err != unix.ENOSYS {
					r.fd("openat2", fd, err)
				}
			})
		}
		add("mkdir_"+target, func(r *recorder) {
			r.err("mkdirat", unix.Mkdirat(unix.AT_FDCWD, path, 0o7777))
			r.err("again", unix.Mkdirat(unix.AT_FDCWD, path, 0o700))
		})
		add("mknod_"+target, func(r *recorder) {
			r.err("file", unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFREG|0o666, 0))
			r.err("fifo", unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFIFO|0o666, 0))
			r.err("device", unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFCHR|0o666, 259))
			r.err("directory", unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFDIR|0o666, 259))
		})
		add("symlink_"+target, func(r *recorder) {
			r.err("symlinkat", unix.Symlinkat("some/where", unix.AT_FDCWD, path))
			r.err("empty", unix.Symlinkat("", unix.AT_FDCWD, path))
			r.err("long", unix.Symlinkat(strings.Repeat("x", 4095), unix.AT_FDCWD, path))
			r.err("too long", unix.Symlinkat(strings.Repeat("x", 4096), unix.AT_FDCWD, path))
		})
		for _, other := range []string{"file", "dir", "tofile", "nothing"} {
			add("rename_"+other+"_"+target, func(r *recorder) { r.err("rename", unix.Rename(other, path)) })
			add("link_"+other+"_"+target, func(r *recorder) {
				r.err("link", unix.Link(other, path))
				if strings.Trim(path, "/") == "" {
					return
				}
				r.err("follow", unix.Linkat(unix.AT_FDCWD, other, unix.AT_FDCWD, strings.TrimRight(path, "/")+"2", unix.AT_SYMLINK_FOLLOW))
			})
		}
		for _, other := range []string{"file", "dir"} {
			add("renameback_"+other+"_"+target, func(r *recorder) { r.err("rename", unix.Rename(path, "full/"+other)) })
		}
		for how, flags := range map[string]uint{"exchange": unix.RENAME_EXCHANGE, "noreplace": unix.RENAME_NOREPLACE, "whiteout": unix.RENAME_WHITEOUT,
			"both": unix.RENAME_EXCHANGE | unix.RENAME_NOREPLACE, "unknown": 1 << 10} {
			add("renameat2_"+how+"_"+target, func(r *recorder) {
				r.err("file", unix.Renameat2(unix.AT_FDCWD, "file", unix.AT_FDCWD, path, flags))
			})
		}
		add("linkback_"+target, func(r *recorder) {
			r.err("link", unix.Link(path, "made"))
			r.err("follow", unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, "made2", unix.AT_SYMLINK_FOLLOW))
		})
		add("bind_"+target, func(r *recorder) { r.bind(path) })
	}
	return append(list, moreSituations()...)
}

func modeFor(flags int) uint64 {
	if flags&(unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY) != 0 {
		return 0o4777
	}
	return 0
}

func (r *recorder) bind(path string) {
	if len(path) > 108 {
		return
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	r.check(err)
	defer unix.Close(fd)
	r.err("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	name, err := unix.Getsockname(fd)
	// A name that was judged in its directory, or that leads by way of the caller, is bound by its last component.
	if sa, ok := name.(*unix.SockaddrUnix); ok && err == nil && path != "" && !strings.Contains(path, "proc") && !strings.Contains(path, "fds") {
		r.lines = append(r.lines, "name "+sa.Name)
	}
	r.err("again", unix.Bind(fd, &unix.SockaddrUnix{Name: "other"}))
}

// diffLines lists where two records differ.
func diffLines(a, b []string) string {
	var out strings.Builder
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			fmt.Fprintf(&out, "\t%d: %q\n\t%d: %q\n", i, x, i, y)
		}
	}
	return out.String()
}

// withoutBoundName leaves out what getsockname says.
func withoutBoundName(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "name ") })
}

// envFull has every situation of the table run under every judge, envSeed chooses which judge each is run under otherwise:
// the day, unless it is set.
const (
	envFull = "SRT_TEST_BROKER_FULL"
	envSeed = "SRT_TEST_BROKER_SEED"
)

// chosen tells whether a situation is to be run under the judge of a number, of as many as there are.
func chosen(t *testing.T, judges int) func(situation string, judge int) bool {
	if os.Getenv(envFull) != "" {
		t.Log("every situation under every judge")
		return func(string, int) bool { return true }
	}
	seed := strconv.FormatInt(time.Now().Unix()/(24*60*60), 10)
	if s := os.Getenv(envSeed); s != "" {
		seed = s
	}
	t.Logf("every situation under one judge, %s=%s", envSeed, seed)
	return func(situation string, judge int) bool {
		h := fnv.New32a()
		h.Write([]byte(seed + situation))
		return int(h.Sum32()%uint32(judges)) == judge
	}
}

// TestTable_LikeWithoutABroker runs the table without a broker and with several judges that refuse nothing: all must be alike.
func TestTable_LikeWithoutABroker_FS30_FS33(t *testing.T) {
	// Root's /tmp has the sticky bit; the folder must have the same name in each run, for the lengths of paths.
	run := func(t *testing.T, judge Judge, filter func() seccomp.Filter, of func(situation string) bool) outcomes {
		folder := memoryFolder(t)
		for _, s := range situations() {
			if of(s.name) {
				furnish(t, filepath.Join(folder, s.name))
			}
		}
		var got outcomes
		for _, d := range runSandbox(t, setup{judge: judge, filter: filter, probe: "table", folder: folder}, &got) {
			t.Errorf("refused or failed: %+v", d)
		}
		for name, lines := range got {
			lines = append(lines, tree(filepath.Join(folder, name))...)
			for i := range lines {
				lines[i] = strings.ReplaceAll(lines[i], folder, "FOLDER")
			}
			got[name] = lines
		}
		return got
	}
	want := run(t, nil, nil, func(string) bool { return true })
	if len(want) < 500 {
		t.Fatalf("%d situations", len(want))
	}
	cases := []struct {
		name   string
		judge  Judge
		filter func() seccomp.Filter
	}{
		{"fast", &testJudge{}, seccomp.Names},
		{"slow", &testJudge{suspect: anything, moves: true}, seccomp.Names},
		{"moves", &testJudge{moves: true}, seccomp.Names},
		{"reads", &testJudge{reads: true}, seccomp.Opens},
	}
	among := chosen(t, len(cases))
	for n, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			of := func(situation string) bool { return among(situation, n) }
			got := run(t, c.judge, c.filter, of)
			bad := 0
			for situation, lines := range want {
				if !of(situation) {
					continue
				}
				with := got[situation]
				if c.judge.Suspect("x") {
					lines, with = withoutBoundName(lines), withoutBoundName(with)
				}
				if d := diffLines(lines, with); d != "" {
					bad++
					t.Errorf("%s (-without, +with):\n%s", situation, d)
				}
			}
			t.Logf("%d of %d situations differ", bad, len(got))
		})
	}
}
