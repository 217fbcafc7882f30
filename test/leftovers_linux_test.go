package test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processes are the living processes that carry the mark of this box in their environment, as "pid (name)". The first
// process of a sandbox lets only root read its environment.
func (b *box) processes() []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(env, []byte(markVariable+"="+b.mark+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			continue // gone, or a zombie that its parent is about to collect
		}
		found = append(found, filepath.Base(dir)+" "+string(stat[bytes.IndexByte(stat, '('):bytes.LastIndexByte(stat, ')')+1]))
	}
	return found
}

// killLeftovers ends what a failed test left running.
func (b *box) killLeftovers() {
	for _, p := range b.processes() {
		pid, _, _ := strings.Cut(p, " ")
		if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() {
			_ = unix.Kill(n, unix.SIGKILL)
		}
	}
}

// eventually waits for a condition of the host and fails the test when it never comes. The message is made then.
func eventually(t *testing.T, what func() string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if last = what(); last == "" {
			return
		}
	}
	t.Fatalf("still, after a long time: %s", last)
}

// appears waits for a file on the host.
func (b *box) appears(path string) {
	b.t.Helper()
	eventually(b.t, func() string {
		if _, err := os.Lstat(b.abs(path)); err != nil {
			return err.Error()
		}
		return ""
	})
}

// deserted waits until no process of this box is left.
func (b *box) deserted() {
	b.t.Helper()
	eventually(b.t, func() string {
		if left := b.processes(); len(left) > 0 {
			return "processes left: " + strings.Join(left, ", ")
		}
		return ""
	})
}

// trace is what a sandbox could leave on a host.
type trace map[string]bool

// hostTrace lists first processes of sandboxes, mounts, sockets that wait or are connected, and files in the places
// that every program uses. Test binaries of other packages run meanwhile and leave traces of their own; leftOver tells
// them apart by waiting.
func hostTrace(t *testing.T) trace {
	t.Helper()
	found := trace{}
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		if comm, err := os.ReadFile(name); err == nil && string(comm) == "srt-init\n" {
			found["process "+filepath.Base(filepath.Dir(name))+" srt-init"] = true
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		found["mount "+line] = true
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "unix"} {
		for _, s := range sockets(table) {
			found[table+" "+s] = true
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock"} {
		for _, name := range namesIn(dir) {
			if !ofTests(name) {
				found["file "+dir+"/"+name] = true
			}
		}
	}
	return found
}

// ofTests tells whether a name in a directory for temporary files is of a test binary.
func ofTests(name string) bool {
	for _, prefix := range []string{"srt-test-", "srt-script-", "srt-escape-", "srt-diff", "srt-stage", "Test", "go-build"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// sockets are the identities of the sockets in one table of /proc/net, but for closed TCP connections that only wait
// for late packets and, for an ordinary user, those of other users.
func sockets(table string) []string {
	text, err := os.ReadFile("/proc/net/" + table)
	if err != nil {
		return nil
	}
	var found []string
	self := strconv.Itoa(os.Getuid())
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 9 && table != "unix" && self != "0" && f[7] != self:
		case len(f) > 6 && table == "unix" && f[0] != "Num":
			found = append(found, strings.Join(f[6:], " "))
		case len(f) > 9 && table != "unix" && f[0] != "sl" && f[3] != "06" /* TIME_WAIT */ :
			found = append(found, f[1]+" "+f[2]+" inode "+f[9])
		}
	}
	return found
}

func namesIn(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// leftOver waits until nothing that came up between before and now is there any more.
func leftOver(t *testing.T, before trace) {
	t.Helper()
	fresh := hostTrace(t)
	for name := range before {
		delete(fresh, name)
	}
	eventually(t, func() string {
		now := hostTrace(t)
		var still []string
		for name := range fresh {
			if now[name] && !strangers(name) {
				still = append(still, name)
			}
		}
		slices.Sort(still)
		return strings.Join(still, "\n")
	})
}

// strangers tells whether a socket is held by a program that has nothing to do with the tests: on a machine that others
// use, one may come up at any time and stay. No socket outlives the last process that holds it.
func strangers(name string) bool {
	_, inode, isSocket := strings.Cut(name, " inode ")
	if !isSocket {
		return false
	}
	held := false
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		env, err := os.ReadFile(filepath.Dir(filepath.Dir(fd)) + "/environ")
		if err != nil || bytes.Contains(env, []byte("\x00"+markVariable+"=")) || bytes.HasPrefix(env, []byte(markVariable+"=")) {
			return false
		}
		held = true
	}
	return held
}

// tree lists everything beneath a directory with type, mode, owner and content, to be compared later.
func (b *box) tree(dir string) map[string]string {
	b.t.Helper()
	found := map[string]string{}
	b.must(filepath.WalkDir(b.abs(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		text := strconv.FormatUint(uint64(st.Mode), 8) + " " + strconv.Itoa(int(st.Uid)) + " "
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(data)
		case d.Type() == os.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += target
		}
		found[path] = text
		return nil
	}))
	return found
}

// unchanged wants that a directory is on the host as it was.
func (b *box) unchanged(dir string, before map[string]string) {
	b.t.Helper()
	sameTrees(b.t, before, b.tree(dir))
}

// sameTrees wants that two trees of the host are the same.
func sameTrees(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, text := range before {
		if got, ok := after[path]; !ok || got != text {
			t.Errorf("host: %s was %.80q, is %.80q", path, text, got)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("host: %s is new", path)
		}
	}
}
