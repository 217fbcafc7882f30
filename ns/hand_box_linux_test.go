package ns

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// box is a sandbox with a tree of its own for hands to work in.
//
//	dir      tmpfs of the sandbox; no Landlock rule: nothing can be made directly in it
//	dir/rw   writable
//	dir/ro   read-only mount that the Landlock rules would let write, with the file f
//	dir/fifo
type box struct {
	dir     string
	first   func(*Program) // what the set-up begins with; nil: nothing
	process *Process
	ruleset *os.File
	stdin   *os.File // the command lasts until this is closed
}

const rootKeeps = Capabilities(1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE)

// keeps is what the command and its hands keep for the user of the test.
func keeps() Capabilities {
	if os.Geteuid() == 0 {
		return rootKeeps
	}
	return 0
}

// write writes the sandbox's set-up program.
func (b *box) write(p *Program) {
	mount := func(source, target, kind string, flags uintptr) {
		p.Call("mount", target, syscall.SYS_MOUNT, p.Str(source), p.Str(target), p.Str(kind), Int(flags), p.Str(""))
	}
	mkdir := func(path string) {
		p.Call("mkdir", path, syscall.SYS_MKDIRAT, Int(unix.AT_FDCWD), p.Str(path), Int(0o777))
	}
	at := func(name string) string { return filepath.Join(b.dir, name) }
	umask := p.ClearUmask()
	if b.first != nil {
		b.first(p)
	}
	mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE)
	mount("tmpfs", b.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV)
	mkdir(at("rw"))
	mkdir(at("ro"))
	p.Call("mkfifo", "", syscall.SYS_MKNODAT, Int(unix.AT_FDCWD), p.Str(at("fifo")), Int(unix.S_IFIFO|0o666), Int(0))
	f := p.Call("create", "f", syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str(at("ro/f")), Int(unix.O_CREAT|unix.O_WRONLY), Int(0o600))
	p.Call("write", "f", syscall.SYS_WRITE, f.Arg(), p.Str("content"), Int(7))
	p.Close(f)
	mount(at("ro"), at("ro"), "", unix.MS_BIND)
	mount("none", at("ro"), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV)
	mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
	const rights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG
	attr := uint64(rights)
	set := p.Call("make the ruleset", "", unix.SYS_LANDLOCK_CREATE_RULESET, Pointer(p, &attr), Int(8), Int(0))
	for _, name := range []string{"rw", "ro", "fifo"} {
		rule := &unix.LandlockPathBeneathAttr{Allowed_access: rights}
		if name == "fifo" {
			rule.Allowed_access = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
		}
		fd := p.Call("open", name, syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str(at(name)), Int(unix.O_PATH), Int(0))
		ptr := Pointer(p, rule)
		p.Store(ptr, int(unsafe.Offsetof(rule.Parent_fd)), fd)
		p.Call("add a rule", name, unix.SYS_LANDLOCK_ADD_RULE, set.Arg(), Int(unix.LANDLOCK_RULE_PATH_BENEATH), ptr, Int(0))
		p.Close(fd)
	}
	p.SendFiles(0, "the ruleset", set)
	p.RestoreUmask(umask)
	p.Undumpable()
	p.KeepCapabilities(keeps())
	p.NoNewPrivs()
	p.Call("enforce the ruleset", "", unix.SYS_LANDLOCK_RESTRICT_SELF, set.Arg(), Int(0))
}

// open starts the sandbox; its command is cat.
func (b *box) open(allow bool) error {
	p, err := NewProgram()
	if err != nil {
		return err
	}
	l := minimal(p, "/bin/cat")
	if os.Geteuid() == 0 { // as srt does for root: all ids
		l.UIDs, l.GIDs, l.DenySetgroups = []IDMap{{0, 0, 1 << 16}}, []IDMap{{0, 0, 1 << 16}}, false
	}
	in, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	l.Stdin, l.Stdout, l.Stderr = in, null, null
	b.stdin = w
	b.write(p)
	prepared, err := Prepare(&l.Config, p)
	if err != nil {
		w.Close()
		return err
	}
	if allow {
		if err := prepared.AllowHands(); err != nil {
			w.Close()
			return errors.Join(err, prepared.Close())
		}
	}
	if b.process, err = prepared.Start(&l.Command); err != nil {
		w.Close()
		return err
	}
	b.ruleset = b.process.Files[0]
	return nil
}

func (b *box) close() error {
	b.stdin.Close()
	b.ruleset.Close()
	_, err := b.process.Wait()
	return err
}

func newBox(t testing.TB, allow bool) *box {
	t.Helper()
	return newBoxWith(t, allow, nil)
}

// newBoxWith is newBox with a set-up that begins with first.
func newBoxWith(t testing.TB, allow bool, first func(*Program)) *box {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt-hand") // t.TempDir's parent is closed to every other user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := &box{dir: dir, first: first}
	if err := b.open(allow); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *box) path(name string) string { return filepath.Join(b.dir, name) }

func (b *box) config() HandConfig {
	return HandConfig{Process: b.process, Ruleset: b.ruleset, Keep: keeps()}
}

func (b *box) hand(t testing.TB) *Hand {
	t.Helper()
	h, err := StartHand(b.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// openAt appends an open by path.
func openAt(p *Program, path string, flags int) Slot {
	return p.Call("open", path, syscall.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str(path), Int(flags|unix.O_CLOEXEC), Int(0o666))
}

// do runs the program; a step that fails is not fatal.
func do(t testing.TB, h *Hand) HandResult {
	t.Helper()
	r, err := h.Do()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// must runs the program, all of whose steps must succeed.
func must(t testing.TB, h *Hand) HandResult {
	t.Helper()
	r := do(t, h)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return r
}
