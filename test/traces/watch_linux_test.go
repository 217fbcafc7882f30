package traces

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// watch records what happens to the names and files in directories that existed when it began. What happens within a
// directory that is made later is not recorded, so that records do not depend on who is faster: trees are compared for
// that.
type watch struct {
	t    *testing.T
	fd   int
	dirs map[int32]string
}

// changes are the events of a change. Attributes are mode, owner and times; a new number of links is no event here.
const changes = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_CLOSE_WRITE

// kinds are the words for events in a record.
var kinds = []struct {
	mask uint32
	word string
}{{unix.IN_CREATE, "create"}, {unix.IN_DELETE, "delete"}, {unix.IN_MODIFY, "modify"}, {unix.IN_ATTRIB, "attributes"},
	{unix.IN_MOVED_FROM, "from"}, {unix.IN_MOVED_TO, "to"}, {unix.IN_CLOSE_WRITE, "close"}}

// begin watches everything beneath the directories for temporary files, among them all that belongs to the tests, and
// the names at the top of the host and of /etc.
func begin(s *stage.Stage) *watch {
	s.T.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	s.Must(err)
	w := &watch{t: s.T, fd: fd, dirs: map[int32]string{}}
	s.T.Cleanup(w.end)
	for _, d := range private {
		w.beneath(d.path)
	}
	for _, dir := range []string{"/", "/etc", "/etc/ssh", "/etc/ssh/ssh_config.d", "/usr", "/usr/local", "/var", "/var/lib", "/opt", "/srv", "/mnt"} {
		w.add(dir)
	}
	return w
}

// end stops watching. It may be called twice.
func (w *watch) end() {
	if w.fd >= 0 {
		unix.Close(w.fd)
		w.fd = -1
	}
}

func (w *watch) beneath(top string) {
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			w.add(path)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *watch) add(dir string) {
	wd, err := unix.InotifyAddWatch(w.fd, dir, changes|unix.IN_ONLYDIR)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOENT):
	case err != nil:
		w.t.Fatalf("inotify_add_watch %s (fs.inotify.max_user_watches may be too low): %v", dir, err)
	default:
		w.dirs[int32(wd)] = dir
	}
}

// take gives the events since the last take, as "word path", with a slash at the end for a directory. Equal neighbours
// are one, as the kernel may or may not have made them one.
func (w *watch) take() []string {
	w.t.Helper()
	var record []string
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(w.fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			return slices.Compact(record)
		}
		if err != nil {
			w.t.Fatalf("read of inotify: %v", err)
		}
		for rest := buf[:n]; len(rest) > 0; {
			// struct inotify_event: wd, mask, cookie, len, name (inotify(7)).
			wd, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:end], "\x00"))
			rest = rest[end:]
			record = append(record, w.words(wd, mask, name)...)
		}
	}
}

// chosen are the names that sed and git make up.
var chosen = regexp.MustCompile(`^(sed|tmp_obj_|tmp_pack_|tmp_idx_)\w{6}$`)

// nameless is what a file of O_TMPFILE is called that never got a name.
var nameless = regexp.MustCompile(`^#\d+$`)

func (w *watch) words(wd int32, mask uint32, name string) []string {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.t.Fatal("too many events: the record has a hole")
	}
	if name == "" || nameless.MatchString(name) {
		return nil // of a watched directory itself, which its parent's watch has with the name, or of no name at all
	}
	path := filepath.Join(w.dirs[wd], chosen.ReplaceAllString(name, "${1}XXXXXX"))
	if mask&unix.IN_ISDIR != 0 {
		path += "/"
	}
	var record []string
	for _, k := range kinds {
		if mask&k.mask != 0 {
			record = append(record, k.word+" "+path)
		}
	}
	return record
}

// silent wants no event since the last take.
func (w *watch) silent(what string) {
	w.t.Helper()
	if record := w.take(); len(record) > 0 {
		w.t.Errorf("%s: the host sees\n%s", what, strings.Join(record, "\n"))
	}
}

// The watch sees what it has to see, so that its silence means something.
func TestWatch(t *testing.T) {
	stage.Each(t, func(s *stage.Stage) {
		s.File("d/old", "")
		w := begin(s)
		r := s.Outside("echo x >f; mv f d/g; chmod 600 d/old; mkdir e; ln d/g h; rm h; : >d/old; rmdir e; touch $HOME/k $TMPDIR/l /var/tmp/m /dev/shm/n /run/o /tmp/q")
		if r.Status != 0 {
			s.T.Fatal(r)
		}
		p := s.Work
		want := []string{"create " + p + "/f", "modify " + p + "/f", "close " + p + "/f", "from " + p + "/f", "to " + p + "/d/g",
			"attributes " + p + "/d/old", "create " + p + "/e/", "create " + p + "/h", "delete " + p + "/h"}
		got := w.take()
		if len(got) < len(want) {
			s.T.Fatalf("the record is %q", got)
		}
		for _, line := range append(want, "delete "+p+"/e/", "close "+p+"/d/old", "create "+s.Home+"/k", "create "+s.Temp+"/l", "create /var/tmp/m",
			"create /dev/shm/n", "create /run/o", "create /tmp/q") {
			if !slices.Contains(got, line) {
				s.T.Errorf("%q is not in the record %q", line, got)
			}
		}
		w.silent("nothing")
		for _, name := range []string{"/var/tmp/m", "/dev/shm/n", "/run/o", "/tmp/q"} {
			s.Must(os.Remove(name))
		}
	})
}
