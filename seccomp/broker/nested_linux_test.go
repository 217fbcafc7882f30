package broker

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { probes["nested"] = func(string) any { return nestedProbe() } }

// nestedProbe makes names in namespaces of its own, with another root directory (allowNestedUserNamespaces).
func nestedProbe() []string {
	cmd, err := os.Executable()
	if err != nil {
		return []string{err.Error()}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return []string{err.Error()}
	}
	p, err := os.StartProcess(cmd, []string{cmd}, &os.ProcAttr{Env: []string{envProbe + "=nested-child"}, Files: []*os.File{os.Stdin, w, os.Stderr},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}, GidMappingsEnableSetgroups: false}})
	w.Close()
	if err != nil {
		return []string{err.Error()}
	}
	defer r.Close()
	var lines []string
	if err := json.NewDecoder(r).Decode(&lines); err != nil {
		lines = append(lines, err.Error())
	}
	if _, err := p.Wait(); err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

func init() { probes["nested-child"] = func(string) any { return nestedChild() } }

func nestedChild() []string {
	runtime.LockOSThread()
	var lines []string
	note := func(what string, err error) { lines = append(lines, fmt.Sprint(what, " ", err)) }
	open := func(path string, flags int) {
		fd, err := unix.Open(path, flags|unix.O_CREAT, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		note(path, err)
	}
	open("before", unix.O_RDWR)
	open("closed/x", unix.O_RDWR)
	note("bind", unix.Mount("jail", "jail", "", unix.MS_BIND, ""))
	note("chroot", unix.Chroot("jail"))
	open("fromcwd", unix.O_RDWR)
	open("../fromcwdup", unix.O_RDWR)
	for _, path := range []string{"/new", "/../../up", "/sub/../new2", "/abs", "/rel", "/out", "/sub/new", "/nothing/x", "/denied", "/sub/denied", "/todenied"} {
		open(path, unix.O_RDWR|unix.O_EXCL)
		open(path, unix.O_RDWR)
	}
	note("mkdir", unix.Mkdir("/../dir", 0o755))
	note("rename", unix.Rename("/new", "/../renamed"))
	note("link", unix.Link("/renamed", "/sub/linked"))
	note("chdir", unix.Chdir("/sub"))
	open("../../../high", unix.O_RDWR)
	return lines
}

// TestRoots compares with the kernel what a caller with its own root directory and namespaces makes, and where.
func TestRoots_AreTheCallers_FS30_FS44(t *testing.T) {
	run := func(s setup) (lines []string) {
		folder := tempFolder(t)
		t.Chdir(folder)
		for _, err := range []error{os.MkdirAll("jail/sub", 0o755), os.Mkdir("closed", 0o755), os.Symlink("/target", "jail/abs"), os.Symlink("sub/target", "jail/rel"),
			os.Symlink("../../../../outside", "jail/out"), os.Symlink("denied", "jail/todenied")} {
			if err != nil {
				t.Fatal(err)
			}
		}
		// Of somebody else, whom the root of an inner user namespace has no rights over. (Over the caller's own it has more
		// there than the hand, which keeps to what the caller's modes allow.)
		if os.Geteuid() == 0 {
			if err := os.Chown("closed", 1000, 1000); err != nil {
				t.Fatal(err)
			}
		}
		s.probe, s.folder, s.more = "nested", folder, 1<<unix.CAP_SETFCAP // without which root maps itself into nothing
		var got []string
		runSandbox(t, s, &got)
		return append(got, tree(folder)...)
	}
	roots := func(c *Config) { c.Roots = true }
	want := run(setup{})
	if !strings.Contains(strings.Join(want, "\n"), "chroot <nil>") {
		t.Fatalf("the probe could not do its work: %q", want)
	}
	if d := diffLines(want, run(setup{judge: &testJudge{}, mutate: roots})); d != "" {
		t.Errorf("(-without, +with):\n%s", d)
	}
	got := run(setup{judge: &testJudge{suspect: func(n string) bool { return n == "denied" }, create: namedDenied}, mutate: roots})
	for _, line := range got {
		if strings.Contains(line, "/denied ") && strings.Contains(line, "links=") {
			t.Errorf("made: %s", line)
		}
	}
}
