package runtime

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/srt-sandbox/srt/fsview"
)

func TestParseMounts(t *testing.T) {
	text := `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime master:1 propagate_from:2 - ext4 /dev/vda rw,discard
40 27 254:0 /a\040b\134/c /m\011\012nt rw - ext4 /dev/vda rw
41 27 0:4 net:[4026531840] /run/n rw - nsfs nsfs rw
42 27 4095:1048575 / /x - y rw shared:3 - fuse.sshfs user@host:/a\040-\040b rw
`
	text = strings.Replace(text, "/x - y", `/x\040-\040y`, 1)
	mounts, kinds, err := parseMounts(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []fsview.Mount{
		{ID: 22, Parent: 27, Dev: 21, Root: "/", Point: "/proc"},
		{ID: 27, Parent: 1, Dev: 254 << 32, Root: "/", Point: "/"},
		{ID: 40, Parent: 27, Dev: 254 << 32, Root: `/a b\/c`, Point: "/m\t\nnt"},
		{ID: 41, Parent: 27, Dev: 4, Root: "net:[4026531840]", Point: "/run/n"},
		{ID: 42, Parent: 27, Dev: 4095<<32 | 1048575, Root: "/", Point: "/x - y"},
	}
	if d := cmp.Diff(want, mounts); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"proc", "ext4", "ext4", "nsfs", "fuse.sshfs"}, kinds); d != "" {
		t.Error(d)
	}
}

func TestParseMountsRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, line := range []string{"\n", "22 27 0:21 / /proc rw,relatime", "22 27 0:21 / /proc rw - proc", "x 27 0:21 / /proc rw - proc proc rw",
		"22 27 021 / /proc rw - proc proc rw", "22 27 0:-1 / /proc rw - proc proc rw", "22 27 0:4294967296 / /proc rw - proc proc rw",
		"22 27 0:21 / proc rw - proc proc rw"} {
		if mounts, _, err := parseMounts("27 1 254:0 / / rw - ext4 x rw\n" + line); !errors.Is(err, errMountLine) || mounts != nil {
			t.Errorf("%q: %v, %v", line, mounts, err)
		}
	}
}

func TestParseMountsOfThisHost(t *testing.T) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	mounts, _, err := parseMounts(string(text))
	if err != nil || len(mounts) != strings.Count(string(text), "\n") {
		t.Errorf("%d mounts, %v", len(mounts), err)
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("27 1 254:0 / / rw master:1 - ext4 /dev/vda rw\n")
	f.Add("40 27 254:0 /a\\040b\\1 /m\\999 rw - ext4 x rw\n")
	f.Fuzz(func(t *testing.T, text string) {
		mounts, kinds, err := parseMounts(text)
		if len(mounts) != len(kinds) || (err != nil && mounts != nil) {
			t.Errorf("%d mounts, %d kinds, %v", len(mounts), len(kinds), err)
		}
		for _, m := range mounts {
			if m.Point == "" || m.Point[0] != '/' {
				t.Errorf("a mount at %q", m.Point)
			}
		}
	})
}

func BenchmarkParseMounts(b *testing.B) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := parseMounts(string(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestIsKernelMount(t *testing.T) {
	for _, c := range []struct {
		point, kind string
		want        bool
	}{
		{"/proc", "proc", false}, {"/proc/sys/fs/binfmt_misc", "binfmt_misc", false}, {"/sys", "sysfs", false}, {"/sys/fs/cgroup", "cgroup2", false},
		{"/dev/cgroup", "cgroup", false}, {"/c/proc", "proc", true}, {"/procs", "proc", true}, {"/c/sys", "sysfs", true}, {"/mnt/cg", "cgroup2", true},
		{"/c/tmp", "tmpfs", false}, {"/", "ext4", false},
	} {
		if got := isKernelMount(c.point, c.kind); got != c.want {
			t.Errorf("%s %s: %v", c.kind, c.point, got)
		}
	}
}

// TestMountsAreThoseOfNow reads the mounts after something else was remembered: that never stands for another text.
func TestMountsAreThoseOfNow(t *testing.T) {
	want, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, remembered := range []*mountList{nil, {text: []byte("27 1 254:0 / /other rw - ext4 x rw\n")}, {text: want[:len(want)-1]}} {
		lastMounts.Store(remembered)
		for range 2 { // the second time it is what the first one has remembered
			var h host
			if err := h.readMounts(); err != nil {
				t.Fatal(err)
			}
			mounts, _, err := parseMounts(string(want))
			if err != nil || !slices.Equal(h.mounts, mounts) {
				t.Errorf("read %v, want %v, %v", h.mounts, mounts, err)
			}
		}
	}
}

// TestReadTextReadsAll reads a file that is longer than the buffer, in which something lies already.
func TestReadTextReadsAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	text := bytes.Repeat([]byte("0123456789\n"), 10_000)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readText(path, append(make([]byte, 0, 5), "ab"...))
	if err != nil || string(got) != "ab"+string(text) {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(text)+2)
	}
	if _, err := readText(path+"-not", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
