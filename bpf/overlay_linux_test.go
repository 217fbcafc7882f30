package bpf

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory is the one that a hook will see, also where the file system numbers its directories anew (overlayfs over
// several file systems), and however the rule and the process came to it (bind mounts).
func TestSession_KnowsDirectoriesOfEveryFileSystem(t *testing.T) {
	k := newTestKernel(t)
	k.trace(t, "renamed")
	base := mkdirs(t, "lower", "upper", "over", "bound", "memory")
	runtime.LockOSThread() // and never let go: the thread ends with its mount namespace
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, name) }
	mount := func(source, target, kind string, flags uintptr, data string) {
		t.Helper()
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			t.Fatalf("mount %s: %v", target, err)
		}
		if target != "/" {
			t.Cleanup(func() {
				if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
					t.Errorf("unmount %s: %v", target, err)
				}
			})
		}
	}
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	for _, name := range []string{"lower", "upper", "memory"} {
		mount("tmpfs", at(name), "tmpfs", 0, "")
	}
	for _, dir := range []string{"lower/d", "lower/both", "upper/up/both", "upper/work", "memory/d", "memory/other"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount("overlay", at("over"), "overlay", 0, "lowerdir="+at("lower")+",upperdir="+at("upper/up")+",workdir="+at("upper/work"))
	mount(at("memory"), at("bound"), "", unix.MS_BIND, "")
	var rules []Rule
	denied := []string{"over/d", "over/both", "over", "memory/d"}
	for _, dir := range denied {
		rules = append(rules, ruleFor(t, at(dir), "new", false))
	}
	c := startChild(t, 0)
	var got recorder
	s := k.session(t, c.namespace, got.add, rules...)
	for _, dir := range append(denied, "bound/d", "memory", "bound/other", "lower/d") {
		c.must("chdir "+at(dir), "name new")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want := []int{0, 1, 2, 3, 3} // bound/d is memory/d; the others are not denied
	list := got.all()
	for i := range max(len(list), len(want)) {
		if i >= len(list) || i >= len(want) || list[i].Rule != want[i] {
			t.Fatalf("told %+v, want the rules %v", list, want)
		}
	}
}
