package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// From a real process to the reader: who calls is found out in the kernel, at any depth of user namespaces.
func TestSession_FindsItsProcesses(t *testing.T) {
	k := newTestKernel(t)
	k.trace(t, "renamed")
	for _, depth := range []int{0, 1, 3, 32} { // 33 levels below the host's is what the kernel makes
		dir := mkdirs(t, "in")
		c, other := startChild(t, depth), startChild(t, 0)
		var got, none recorder
		s := k.session(t, c.namespace, got.add, ruleFor(t, dir, "other", false), ruleFor(t, dir, "new", false))
		k.session(t, other.namespace, none.add, ruleFor(t, dir, "new", false))
		c.must("chdir "+dir, "name new", "name free", "chdir "+dir+"/in", "name new")
		if err := setName("new"); err != nil { // the host's own processes are in no session
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		c.must("chdir "+dir, "name new")
		list := got.all()
		if len(list) != 1 || list[0].Rule != 1 || list[0].Name != "new" || depth == 0 && list[0].Pid != c.cmd.Process.Pid {
			t.Errorf("depth %d, pid %d: %+v", depth, c.cmd.Process.Pid, list)
		}
		if list := none.all(); len(list) != 0 {
			t.Errorf("depth %d: another sandbox is told %+v", depth, list)
		}
	}
}

// The hooks are told an entry and its directory; here it is the working directory and the one above.
func TestSession_ReadsEntries(t *testing.T) {
	k := newTestKernel(t)
	k.trace(t, "entered")
	dir := mkdirs(t, "new", "free")
	c := startChild(t, 0)
	var got recorder
	s := k.session(t, c.namespace, got.add, ruleFor(t, dir, "NEW", true))
	c.must("chdir "+dir+"/free", "clone", "chdir "+dir+"/new")
	if list := got.all(); len(list) != 0 {
		t.Errorf("an entry without a rule: %+v", list)
	}
	c.must("clone")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list := got.all()
	if len(list) == 0 {
		t.Fatal("the entry is not recognised")
	}
	if r := list[0]; r.Name != "new" || r.Operation != OpMkdir || r.Process == "" || r.Rule != 0 {
		t.Errorf("%+v", r)
	}
}

func TestSession_DoesNotNest(t *testing.T) {
	k := newTestKernel(t)
	outer := startChild(t, 1)
	outer.must("chdir /") // the inner process is there by then
	inner, err := os.Open("/proc/" + childOf(t, outer.cmd.Process.Pid) + "/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	s := k.session(t, outer.namespace, nil)
	if _, err := k.Session(inner, nil); !errors.Is(err, ErrNamespace) {
		t.Errorf("inside: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	k.session(t, inner, nil)
	if _, err := k.Session(outer.namespace, nil); !errors.Is(err, ErrNamespace) {
		t.Errorf("around: %v", err)
	}
}

func childOf(t *testing.T, pid int) string {
	t.Helper()
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range threads {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			return text([]byte(string(b[:len(b)-1]) + "\x00"))
		}
	}
	t.Fatal("no child")
	return ""
}

// With a kernel that takes hooks: every way to create a name. Elsewhere: the broker is chosen, and the reason is typed.
func TestHooks_FS30(t *testing.T) {
	supported := Supported()
	if supported != nil {
		var typed *Unsupported
		if !errors.As(supported, &typed) || typed.Reason == nil || typed.Detail == "" {
			t.Errorf("an untyped reason: %v", supported)
		}
		if m, why := Choose(Need{Names: true}, supported); m != Broker || why != supported.Error() {
			t.Errorf("%v, %q is chosen", m, why)
		}
		if e, err := Load(); err == nil || !errors.As(err, &typed) {
			t.Errorf("Load: %v, %v", e, err)
		}
		t.Skipf("got %v, want a kernel that takes hooks", supported)
	}
	if m, _ := Choose(Need{Names: true}, nil); m != Kernel {
		t.Errorf("%v is chosen", m)
	}
	e, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	k := &testKernel{Enforcer: e}
	defer e.Close()
	dir := mkdirs(t, "tree")
	c := startChild(t, 1)
	var got recorder
	s := k.session(t, c.namespace, got.add, ruleFor(t, dir, "new", false), ruleFor(t, dir, ".BashRC", true))
	c.must("chdir "+dir, "create file", "mkdir dir", "mknod fifo", "symlink sym", "link file file2", "rename file2 file3")
	for _, line := range []string{"create new", "mkdir new", "mknod new", "symlink new", "link file new", "rename file new",
		"rename tree new", "create .bashrc", "mkdir .BASHRC"} {
		if got := c.do(line); got != answer(unix.EROFS) {
			t.Errorf("%s: %s", line, got)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o700); err != nil {
		t.Fatalf("the host itself: %v", err)
	}
	for _, line := range []string{"exchange file new", "exchange new file"} {
		if got := c.do(line); got != answer(unix.EROFS) {
			t.Errorf("%s: %s", line, got)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if list := got.all(); len(list) != 11 || list[0].Operation != OpCreate || list[5].Operation != OpRename {
		t.Errorf("told: %+v", list)
	}
	c.must("rmdir new", "create new")
}
