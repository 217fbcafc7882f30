package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// placed is a file or FIFO for srt, with the names that a test needs.
func placed(t *testing.T, kind uint32, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	if err := unix.Mknod(path, kind|0o600, 0); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Link(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// given is a descriptor of it as a caller hands it down.
func given(t *testing.T, path string) int { return openFlags(t, path, unix.O_RDWR) }

// CLI-21, CLI-30: a channel that has a second name could be opened by that.
func TestChannelWithASecondName_CLI21(t *testing.T) {
	for name, kind := range map[string]uint32{"FIFO": unix.S_IFIFO, "file": unix.S_IFREG} {
		fd := given(t, placed(t, kind, "other"))
		f := newFake()
		status, _, stderr := cli(t, f, "--control-fd", strconv.Itoa(fd), "true")
		if want := "Error: --control-fd " + strconv.Itoa(fd) + " is not usable: it has a second name, a hard link"; status != 1 || !strings.HasPrefix(stderr, want) || len(f.calls) > 0 {
			t.Errorf("%s: %d, %q, %q", name, status, stderr, f.calls)
		}
	}
}

// The report is kept from commands by its name, and has no second one.
func TestPlaceOfTheReport(t *testing.T) {
	tests := []struct {
		name    string
		kind    uint32
		numbers bool // by descriptor
		reader  bool
		links   []string
		refused string
	}{
		{"file", unix.S_IFREG, false, false, nil, ""},
		{"descriptor of a file", unix.S_IFREG, true, false, nil, ""},
		{"FIFO", unix.S_IFIFO, false, true, nil, ""},
		{"descriptor of a FIFO", unix.S_IFIFO, true, true, nil, ""},
		{"file of two names", unix.S_IFREG, false, false, []string{"b"}, "it has a second name"},
		{"descriptor of a file of two names", unix.S_IFREG, true, false, []string{"b"}, "it has a second name"},
		{"FIFO of three names", unix.S_IFIFO, false, true, []string{"b", "c"}, "it has a second name"},
		{"descriptor of a FIFO of two names", unix.S_IFIFO, true, true, []string{"b"}, "it has a second name"},
		{"FIFO that nobody reads", unix.S_IFIFO, false, false, nil, "it is a FIFO that nobody reads"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := placed(t, tt.kind, tt.links...)
			if tt.reader {
				reader, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(reader)
			}
			target := path
			if tt.numbers {
				target = "fd:" + strconv.Itoa(given(t, path))
			}
			f := newFake()
			f.watched = refused(1)
			f.ended <- nil
			status, _, stderr := cli(t, f, "--violations="+target, "true")
			if tt.refused != "" {
				if status != 1 || !strings.Contains(stderr, " is not usable: "+tt.refused) || len(f.calls) > 0 {
					t.Errorf("%d, %q, %q", status, stderr, f.calls)
				}
				return
			}
			own, private := slices.Contains(f.opts.ownFiles, path), slices.Contains(f.opts.privateFiles, path)
			if status != 0 || stderr != "" || own != (tt.kind == unix.S_IFREG) || private != (tt.kind == unix.S_IFIFO) {
				t.Errorf("%d, %q, own %q, private %q", status, stderr, f.opts.ownFiles, f.opts.privateFiles)
			}
		})
	}
}

// A reader of the report's FIFO may come a little later than srt.
func TestReportWaitsForItsReader(t *testing.T) {
	path := placed(t, unix.S_IFIFO)
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		f, err := openReport(path)
		done <- opened{f, err}
	}()
	reader, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) // waits for a writer, as cat does
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(reader)
	report := <-done
	if report.err != nil {
		t.Fatal(report.err)
	}
	defer report.f.Close()
	if place, err := placeOf(report.f); err != nil || place != (ownPlace{private: path}) {
		t.Errorf("%+v, %v", place, err)
	}
	buf := make([]byte, 8)
	if _, err := report.f.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(reader, buf); err != nil || string(buf[:n]) != "line\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// What a descriptor leads to is known by the kernel's word, not by the name that it was opened by.
func TestNameOf_CLI30(t *testing.T) {
	moved := placed(t, unix.S_IFIFO)
	movedFD := given(t, moved)
	if err := os.Rename(moved, moved+"2"); err != nil {
		t.Fatal(err)
	}
	removed := placed(t, unix.S_IFREG)
	removedFD := given(t, removed)
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.MemfdCreate("settings", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	inherited(t, memory)
	for name, tt := range map[string]struct {
		fd   int
		want ownPlace
	}{
		"moved":   {movedFD, ownPlace{private: moved + "2"}},
		"removed": {removedFD, ownPlace{}},
		"memory":  {memory, ownPlace{}},
		"pipe":    {pipeEnds(t).fd, ownPlace{}},
		"device":  {openFlags(t, "/dev/null", unix.O_RDWR), ownPlace{}},
	} {
		if got, err := placeOfDescriptor(tt.fd); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
	covered := unix.Stat_t{Nlink: 1, Ino: 1}
	if name, err := nameOf(given(t, placed(t, unix.S_IFREG)), &covered); err == nil || !strings.Contains(err.Error(), "cannot be kept from it") {
		t.Errorf("what is not at its name: %q, %v", name, err)
	}
}

// FS-51: the settings of a later run come from the same file or FIFO, whatever it was called here.
func TestPlaceOfTheSettings_FS51(t *testing.T) {
	path := placed(t, unix.S_IFREG)
	writeFile(t, path, smallest)
	got, err := readSettings("/dev/fd/"+strconv.Itoa(openFlags(t, path, unix.O_RDONLY)), homeIs("/nonexistent"))
	if err != nil || got.place != (ownPlace{own: path}) {
		t.Errorf("by descriptor: %+v, %v", got, err)
	}
	fifo := placed(t, unix.S_IFIFO, "b")
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(fifo, []byte(smallest), 0o600) }()
	_, err = readSettings(fifo, homeIs("/nonexistent"))
	if _, ok := errors.AsType[*settingsError](err); !ok || !errors.Is(err, errOtherName) || !strings.Contains(err.Error(), "is not safe to use: it has a second name") {
		t.Errorf("a FIFO of two names: %v", err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// A directory on the way to the report that an earlier command could have put there is not followed.
func TestReportThroughALink(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, err := range []error{os.MkdirAll("real/sub", 0o700), os.Symlink("real", "link"), os.Symlink("../real", "real/up")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for target, link := range map[string]string{
		"v": "", "real/v": "", "./real/sub/../v": "", dir + "/real/v": "",
		"link/v": "link", "link/sub/v": "link", "real/up/v": "real/up", dir + "/link/v": "link", "./link/../link/v": "./link", "link/../v": "link", "link//v": "link",
	} {
		f, err := openReport(target)
		if err == nil {
			f.Close()
		}
		if (err != nil) != (link != "") || err != nil && !strings.HasPrefix(err.Error(), link+" on the way to it is a symbolic link") {
			t.Errorf("%s: %v, want %q", target, err, link)
		}
	}
	t.Chdir("link") // the person's own way here
	if f, err := openReport("sub/v"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
}
