package broker

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcOwner(t *testing.T) {
	for location, want := range map[string]int{"/proc/7": 7, "/proc/7/fd": 7, "/proc/7/ns": 7, "/proc/7/map_files": 7, "/proc/7/task/9": 7, "/proc/7/task/9/fd": 7,
		"/mnt/proc/7/fd": 7, "/proc": 0, "/proc/sys": 0, "/": 0, "": 0, "/proc/fd": 0, "/proc/7/task": 0, "/proc/self/fd": 0, "/proc/99999999999/fd": 0, "fd": 0} {
		if got, ok := procOwner(location); ok != (want != 0) || ok && got != want {
			t.Errorf("%s: %d, %t; want %d", location, got, ok, want)
		}
	}
}

func TestParseTerminal(t *testing.T) {
	for text, want := range map[string]uint64{"5 (a) S 1 5 5 34816 5 0": 34816, "5 (a) b) (c) S 1 5 5 0 -1": 0, "5 (x) R 1 2 3 -2147483648": 1 << 31} {
		if got, err := parseTerminal([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5 (a) S 1 5 5", "5 (a) S 1 5 5 x", ")"} {
		if _, err := parseTerminal([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// The kernel's rules for directories that all may write, of proc_sys_fs(5).
func TestSticky_Rules(t *testing.T) {
	object := func(mode uint16, uid uint32) *info { return &info{unix.Statx_t{Mode: mode, Uid: uid}} }
	all, group := object(unix.S_IFDIR|0o1777, 0), object(unix.S_IFDIR|0o1770, 0)
	for name, c := range map[string]struct {
		regular, fifos int
		dir, object    *info
		want           bool
	}{
		"own":                    {2, 2, all, object(unix.S_IFREG, 5), true},
		"of the directory's":     {2, 2, all, object(unix.S_IFREG, 0), true},
		"other's":                {1, 0, all, object(unix.S_IFREG, 6), false},
		"not protected":          {0, 2, all, object(unix.S_IFREG, 6), true},
		"fifo":                   {0, 1, all, object(unix.S_IFIFO, 6), false},
		"fifo not protected":     {2, 0, all, object(unix.S_IFIFO, 6), true},
		"not sticky":             {2, 2, object(unix.S_IFDIR|0o777, 0), object(unix.S_IFREG, 6), true},
		"group":                  {2, 2, group, object(unix.S_IFREG, 6), false},
		"group, protected less":  {1, 1, group, object(unix.S_IFREG, 6), true},
		"group, fifo":            {0, 2, group, object(unix.S_IFIFO, 6), false},
		"nobody else may write":  {2, 2, object(unix.S_IFDIR|0o1755, 0), object(unix.S_IFREG, 6), true},
		"device":                 {0, 0, all, object(unix.S_IFCHR, 6), false},
		"device, group may only": {2, 2, group, object(unix.S_IFCHR, 6), true},
	} {
		s := &sysctls{regular: c.regular, fifos: c.fifos}
		if got := s.mayReuse(c.dir, c.object, 5); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	link := func(uid uint32) *info { return object(unix.S_IFLNK|0o777, uid) }
	for name, c := range map[string]struct {
		dir, link *info
		want      bool
	}{"own": {all, link(5), true}, "other's": {all, link(6), false}, "of the directory's": {all, link(0), true},
		"not for all": {group, link(6), true}, "not sticky": {object(unix.S_IFDIR|0o777, 0), link(6), true}} {
		if got := mayFollow(c.dir, c.link, 5); got != c.want {
			t.Errorf("link, %s: %t", name, got)
		}
	}
}

func TestNew_NeedsAllItWorksWith(t *testing.T) {
	for _, c := range []Config{{}, {Judge: &testJudge{}}, {Workers: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestProcRelative(t *testing.T) {
	for _, c := range []struct {
		location, name, relative string
		thread                   int
		magic                    bool
	}{
		{"/proc/7", "exe", "exe", 0, true},
		{"/proc/7", "environ", "environ", 0, false},
		{"/proc/7/fd", "3", "fd/3", 0, true},
		{"/proc/7/fd", "..", "fd/..", 0, false},
		{"/proc/7/ns", "mnt", "ns/mnt", 0, true},
		{"/proc/7/map_files", "1-2", "map_files/1-2", 0, false},
		{"/proc/7/task/9", "cwd", "cwd", 9, true},
		{"/mnt/7/task/9/fd", "0", "fd/0", 9, true},
	} {
		relative, thread := procRelative(c.location, c.name)
		if relative != c.relative || thread != c.thread || isMagic(relative) != c.magic {
			t.Errorf("%s in %s: %q of thread %d, magic %t", c.name, c.location, relative, thread, isMagic(relative))
		}
	}
}
