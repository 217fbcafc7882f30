package runtime

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/bpf"
	"github.com/srt-sandbox/srt/fsview"
	"github.com/srt-sandbox/srt/runtime/config"
)

// What the broker has told is told once: the next refused call of that thread, and no other.
func TestToldRefusals(t *testing.T) {
	var told toldRefusals
	if told.has(1, "openat", 10) {
		t.Error("told of nothing")
	}
	told.note(1, "openat", 100)
	told.note(2, "mkdirat", 100)
	told.note(1, "openat", 200)
	for _, c := range []struct {
		thread int
		call   string
		at     time.Duration
		want   bool
	}{
		{1, "openat", 50, false},   // before it
		{3, "openat", 150, false},  // of another thread
		{1, "openat", 150, true},   // that one
		{1, "openat", 160, false},  // and no second
		{1, "mkdirat", 250, false}, // a call that was not told; the thread has come back from the one that was
		{1, "openat", 260, false},
		{2, "mkdirat", 100, true},
	} {
		if got := told.has(c.thread, c.call, c.at); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if len(told.threads) != 0 {
		t.Errorf("left: %v", told.threads)
	}
}

// However many calls the broker refuses that the kernel does not report, what is remembered of them has bounds.
func TestToldRefusals_Bounded(t *testing.T) {
	var told toldRefusals
	for i := range 5 * maxToldCalls {
		told.note(1, "openat", time.Duration(i))
	}
	if n := len(told.threads[1]); n > maxToldCalls {
		t.Errorf("%d of one thread", n)
	}
	if !told.has(1, "openat", 5*maxToldCalls) {
		t.Error("the last one is forgotten")
	}
	for i := range 3 * maxToldThreads {
		told.note(i, "openat", 0)
	}
	if n := len(told.threads); n > maxToldThreads || !told.has(3*maxToldThreads-1, "openat", 0) {
		t.Errorf("%d threads", n)
	}
}

// VIO-10: a path is absolute, has no "." and "..", and is where the links in it lead, inside the root directory alone.
func TestInside_Resolve_VIO10(t *testing.T) {
	base := t.TempDir()
	for _, d := range []string{"root/a/b", "root/etc", "outside"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for to, names := range map[string][]string{"a/b": {"relative"}, "/a": {"absolute", "a/b/up"}, "../../../../../outside": {"a/out"},
		"/none": {"dangling"}, "/loop": {"loop"}, "dangling": {"twice"}, "/storm/storm/storm": {"storm"}, "/proc/self/root": {"magic"}} {
		for _, name := range names {
			if err := os.Symlink(to, filepath.Join(base, "root", name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	root, err := os.OpenFile(filepath.Join(base, "root"), unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	// The kernel names what it finds from this process's root on: in a sandbox, from the sandbox's.
	in := inside{root, func(fd int) (string, bool) {
		found, ok := nameOf(fd)
		return path.Clean("/" + strings.TrimPrefix(found, filepath.Join(base, "root"))), ok
	}}
	for _, c := range []struct {
		dir, text string
		follow    bool
		want      string
	}{
		{"/", "/a/b", true, "/a/b"},
		{"/a", "b/./x", true, "/a/b/x"},
		{"/a", "b//x/", false, "/a/b/x"},
		{"/", "/relative/x", true, "/a/b/x"},
		{"/", "/relative", true, "/a/b"},
		{"/", "/relative", false, "/relative"},
		{"/", "/relative/", false, "/a/b"},
		{"/", "/relative/..", false, "/a"},
		{"/", "/relative/../x", false, "/a/x"},
		{"/", "/absolute/b/up/b/y/z", true, "/a/b/y/z"},
		{"/a", "../absolute/x", true, "/a/x"},
		{"/a", "out/x", true, "/outside/x"}, // nothing of that name is inside
		{"/", "/dangling", true, "/none"},
		{"/", "/dangling", false, "/dangling"},
		{"/", "/dangling/x", true, "/none/x"},
		{"/", "/twice/x", true, "/none/x"},
		{"/", "/loop/x", true, "/loop/x"},
		{"/", "/magic/x", true, "/proc/self/root/x"},
		{"/", "/storm/storm/storm/x", true, "/storm/storm/storm/x"},
		{"/", "/none/../none2/./x", true, "/none2/x"},
		{"/a/b", "", true, "/a/b"},
		{"/a/b", "../../../../..", true, "/"},
		{"/", strings.Repeat("x/", 400) + "y", true, "/" + strings.Repeat("x/", 400) + "y"},
	} {
		if got := in.resolve(bpf.TracedPath{Dir: c.dir, Text: c.text, Follow: c.follow}); got != c.want {
			t.Errorf("%s %s, %v: %s, want %s", c.dir, c.text, c.follow, got, c.want)
		}
	}
}

// What a hook in the kernel reports is reported by it alone.
func TestHookedNames_Reports(t *testing.T) {
	h := &hookedNames{absent: []fsview.Absent{{Dir: "/w", Name: "new"}, {Dir: "/w/d", Name: ".BashRC", Fold: true}}}
	for path, want := range map[string]bool{"/w/new": true, "/w/New": false, "/w/d/.bashrc": true, "/w/d/new": false, "/new": false, "/w": false} {
		if h.reports(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if (*hookedNames)(nil).reports("/w/new") {
		t.Error("no hooks report")
	}
}

// A session without commands loads nothing, and one that is closed begins nothing.
func TestSessionTracing_Closed(t *testing.T) {
	var s sessionTracing
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if err := s.available(false); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := s.begin(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if sharedTracer.users != 0 {
		t.Errorf("%d users", sharedTracer.users)
	}
}

// A command that cannot be traced says so once in its session, and in words.
func TestWatchNothing_SaysSoOnce(t *testing.T) {
	var lines []string
	s := &Sandbox{begun: config.Default(), opts: newOptions([]Option{WithWarnings(func(line string) { lines = append(lines, line) })})}
	for range 3 {
		l := &launch{cmd: &Cmd{sandbox: s}}
		l.watch = watchTraced
		l.watchNothing(errors.New("the reason"))
		if l.watch != watchNothing || l.unwatched == nil {
			t.Errorf("%v, %v", l.watch, l.unwatched)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "the reason") {
		t.Errorf("%q", lines)
	}
}
