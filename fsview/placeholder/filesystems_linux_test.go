package placeholder

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// envInside is set for a test that has been started again in namespaces of its own.
const envInside = "SRT_PLACEHOLDER_INSIDE"

// inNamespace runs the calling test again in a user and a mount namespace, where anybody may mount, and reports that this
// is the outer run.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(envInside) != "" {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var only []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		only = append(only, "^"+part+"$")
	}
	cmd := exec.Command(self, "-test.v", "-test.run", strings.Join(only, "/"))
	cmd.Env = append(os.Environ(), envInside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a namespace: %v\n%s", err, out)
	}
	return true
}

func (f *field) mount(kind, data string) {
	f.t.Helper()
	if err := unix.Mount(kind, f.project, kind, unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		f.t.Fatalf("mount %s: %v", kind, err)
	}
	f.t.Cleanup(func() { unix.Unmount(f.project, unix.MNT_DETACH) })
}

// What a file system offers differs: ramfs has no extended attributes and no birth times, an overlay shows what lies in
// another file system.
func TestFS54_FileSystems(t *testing.T) {
	overlay := func(f *field) string {
		root := f.t.TempDir()
		for _, dir := range []string{"lower", "upper", "work"} {
			if err := os.Mkdir(root+"/"+dir, 0o755); err != nil {
				f.t.Fatal(err)
			}
		}
		return "lowerdir=" + root + "/lower,upperdir=" + root + "/upper,workdir=" + root + "/work,userxattr"
	}
	none := func(*field) string { return "" }
	tests := []struct {
		kind string
		data func(*field) string
	}{{"tmpfs", none}, {"ramfs", none}, {"overlay", overlay}}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			if inNamespace(t) {
				return
			}
			f := newField(t)
			f.mount(tt.kind, tt.data(f))
			f.write("users", "")
			before := f.tree()
			first := f.hold(".bashrc", ".vscode/", "nd/x")
			second := f.hold(".bashrc", ".vscode/")
			f.release(first)
			f.wantTree(`-r--r--r-- .bashrc ""`, "dr-xr-xr-x .vscode", before[0])
			die(second)
			f.sweep()
			f.wantTree(before...)
			f.wantForgotten()

			// A killed one whose file was used since.
			s := f.hold("f", "d/")
			if err := os.Chmod(f.path("f"), 0o644); err != nil {
				t.Fatal(err)
			}
			f.write("f", "mine")
			die(s)
			f.sweep()
			f.wantTree(append([]string{`-rw-r--r-- f "mine"`}, before...)...)
			f.wantForgotten()
		})
	}
}

// What cannot be removed is an error, stays in the journal, and is removed when it can be.
func TestFS54_RemovalThatFails(t *testing.T) {
	if inNamespace(t) {
		return
	}
	f := newField(t)
	f.mount("tmpfs", "")
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("", f.project, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	s, killed := f.hold("f", "d/"), f.hold("g")
	die(killed)
	remount(unix.MS_RDONLY)
	if err := s.Release(); !errors.Is(err, unix.EROFS) {
		t.Errorf("Release: %v", err)
	}
	if err := Sweep(f.state); !errors.Is(err, unix.EROFS) {
		t.Errorf("Sweep: %v", err)
	}
	if _, err := Hold(f.state, f.names("h")); !errors.Is(err, unix.EROFS) {
		t.Errorf("Hold: %v", err)
	}
	// What is there can be held all the same, though it cannot be removed now.
	again := f.hold("f")
	remount(0)
	f.sweep()
	f.wantTree(`-r--r--r-- f ""`)
	f.release(again)
	f.wantTree()
	f.wantForgotten()
}

// A volume that is not there keeps its records: what was made on it is removed when it is back.
func TestFS54_VolumeThatComesBack(t *testing.T) {
	if inNamespace(t) {
		return
	}
	f := newField(t)
	f.mount("tmpfs", "")
	tree, err := unix.OpenTree(unix.AT_FDCWD, f.project, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(tree)
	die(f.hold("f"))
	if err := unix.Unmount(f.project, 0); err != nil {
		t.Fatal(err)
	}
	f.write("f", "")
	os.Chmod(f.path("f"), 0o444)
	f.sweep()
	f.wantTree(`-r--r--r-- f ""`)
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, f.project, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		t.Fatal(err)
	}
	f.wantTree(`-r--r--r-- f ""`)
	f.sweep()
	f.wantTree()
	f.wantForgotten()
}

// In a sandbox in a sandbox the state directory is in memory.
func TestFS54_Volatile(t *testing.T) {
	if inNamespace(t) {
		return
	}
	f := newField(t)
	s := f.hold("f")
	defer f.release(s)
	if s.Volatile() {
		t.Error("a state directory on a disk is said to be in memory")
	}
	other := *f
	other.state = f.path("memory")
	if err := os.Mkdir(other.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", other.state, "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(other.state, unix.MNT_DETACH)
	m := other.hold("g")
	if !m.Volatile() {
		t.Error("a state directory in memory is said to be on a disk")
	}
	other.release(m)
}

// Without a record there is no placeholder, and a record that was written in part does no harm.
func TestFS54_NoRoomForTheJournal(t *testing.T) {
	if inNamespace(t) {
		return
	}
	f := newField(t)
	f.state = f.path("state")
	if err := os.Mkdir(f.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", f.state, "tmpfs", 0, "mode=0700,size=4k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(f.state, unix.MNT_DETACH)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	if _, err := Hold(f.state, f.names(names...)); !errors.Is(err, unix.ENOSPC) || !errors.Is(err, ErrState) {
		t.Errorf("%v", err)
	}
	f.wantForgotten()
	s := f.hold("one")
	if _, err := os.Lstat(f.path("n0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a placeholder without a record: %v", err)
	}
	f.release(s)
	f.wantForgotten()
}

// The point of it all: a placeholder that is mounted read-only on itself cannot be made into anything, and the end of a
// neighbour leaves it where it is.
func TestFS54_MountedPlaceholderIsADeny(t *testing.T) {
	if inNamespace(t) {
		return
	}
	f := newField(t)
	first, second := f.hold("f"), f.hold("f")
	if err := unix.Mount(f.path("f"), f.path("f"), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", f.path("f"), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, attempt := range []error{os.Remove(f.path("f")), os.Chmod(f.path("f"), 0o644), os.Rename(f.path("f"), f.path("g"))} {
		if attempt == nil {
			t.Error("a mounted placeholder was changed")
		}
	}
	f.release(first)
	if _, err := os.Lstat(f.path("f")); err != nil {
		t.Error(err)
	}
	if err := unix.Unmount(f.path("f"), 0); err != nil {
		t.Fatal(err)
	}
	f.release(second)
	f.wantTree()
}
