package ns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
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
	dir, err := os.MkdirTemp("", "srt-hand") // t.TempDir's parent is closed to every other user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b := &box{dir: dir}
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

func TestHandWorksInTheSandbox(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	f := openAt(p, b.path("rw/new"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
	p.Call("write", "", syscall.SYS_WRITE, f.Arg(), p.Str("hello"), Int(5))
	must(t, h)

	p = h.Program()
	f = openAt(p, b.path("rw/new"), unix.O_RDONLY)
	p.SendFiles(2, "the file", f)
	r := must(t, h)
	defer r.Close()
	if len(r.Files) != 3 || r.Files[0] != nil || r.Files[2] == nil {
		t.Fatalf("files %v, want one at index 2", r.Files)
	}
	if text, err := io.ReadAll(r.Files[2]); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	// The host's directory is not what the sandbox mounted on it.
	if list, err := os.ReadDir(b.dir); err != nil || len(list) != 0 {
		t.Errorf("the host's %s holds %v, %v", b.dir, list, err)
	}
}

// TestHandIsHeld asks for what the command could not do either. Each must be refused by the kernel.
func TestHandIsHeld_FS26_FS44(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	create := unix.O_CREAT | unix.O_WRONLY
	for _, c := range []struct {
		what string
		call func(*Program)
		want syscall.Errno
	}{
		{"create on a read-only mount", func(p *Program) { openAt(p, b.path("ro/n"), create) }, unix.EROFS},
		{"write on a read-only mount", func(p *Program) { openAt(p, b.path("ro/f"), unix.O_WRONLY) }, unix.EROFS},
		{"create where Landlock allows nothing", func(p *Program) { openAt(p, b.path("n"), create) }, unix.EACCES},
		{"create on the host", func(p *Program) { openAt(p, filepath.Dir(b.dir)+"/n", create) }, unix.EACCES},
		{"mount", func(p *Program) {
			p.Call("mount", "", syscall.SYS_MOUNT, p.Str("tmpfs"), p.Str(b.path("rw")), p.Str("tmpfs"), Int(0), p.Str(""))
		}, unix.EPERM},
		{"umount", func(p *Program) { p.Call("umount", "", unix.SYS_UMOUNT2, p.Str(b.dir), Int(unix.MNT_DETACH)) }, unix.EPERM},
		{"make a device", func(p *Program) {
			p.Call("mknod", "", syscall.SYS_MKNODAT, Int(unix.AT_FDCWD), p.Str(b.path("rw/dev")), Int(unix.S_IFCHR|0o666), Int(0x103))
		}, unix.EPERM},
		{"find itself in /proc", func(p *Program) { openAt(p, "/proc/self/status", unix.O_RDONLY) }, unix.ENOENT},
		{"find its thread in /proc", func(p *Program) { openAt(p, "/proc/thread-self/status", unix.O_RDONLY) }, unix.ENOENT},
		{"open a terminal", func(p *Program) { openAt(p, "/dev/tty", unix.O_RDONLY) }, unix.ENXIO},
		{"use the place of a listener that is not there", func(p *Program) {
			p.Call("ioctl", "", syscall.SYS_IOCTL, Int(HandListener), Int(unix.SECCOMP_IOCTL_NOTIF_RECV), p.Str(""))
		}, unix.ENOTTY},
		{"find a descriptor of the host process", func(p *Program) {
			p.Call("fcntl", "", syscall.SYS_FCNTL, Int(HandFirst), Int(unix.F_GETFD), Int(0))
		}, unix.EBADF},
	} {
		c.call(h.Program())
		if r := do(t, h); r.Errno != c.want {
			t.Errorf("%s: %v, want %v", c.what, r.Err(), c.want)
		}
	}
}

// TestHandCannotBeSeen looks for the hand in the sandbox's /proc, through the hand itself.
func TestHandCannotBeSeen(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	p.SendFiles(0, "/proc", openAt(p, "/proc", unix.O_RDONLY|unix.O_DIRECTORY))
	r := must(t, h)
	defer r.Close()
	names, err := r.Files[0].Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, n := range names {
		if _, err := strconv.Atoi(n); err == nil {
			pids = append(pids, n)
		}
	}
	slices.Sort(pids)
	if !slices.Equal(pids, []string{"1", "2"}) {
		t.Errorf("the sandbox's /proc shows %v, want pid 1 and the command", pids)
	}
}

// statusFields reads fields of proc_pid_status(5).
func statusFields(t testing.TB, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

func TestHandHasNoRightsOfTheHost_FS44(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	got := statusFields(t, h.pid)
	none, kept := fmt.Sprintf("%016x", 0), fmt.Sprintf("%016x", uint64(keeps()))
	for name, want := range map[string]string{
		"CapEff": kept, "CapPrm": kept, "CapBnd": kept, "CapInh": none, "CapAmb": none, "NoNewPrivs": "1", "Name": "srt-hand",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", h.pid))
	if os.Geteuid() != 0 && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		t.Errorf("its memory can be read by another process: %v", err)
	}
	if os.Geteuid() != 0 {
		return // only root may ask for the namespaces of what is not dumpable
	}
	for _, name := range []string{"user", "mnt", "net", "ipc", "uts", "cgroup", "pid"} {
		of := func(pid int) string {
			link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
			if err != nil {
				t.Fatal(err)
			}
			return link
		}
		if (of(h.pid) == of(b.process.Pid())) != (name != "pid") {
			t.Errorf("%s: the hand is in %s, the sandbox in %s", name, of(h.pid), of(b.process.Pid()))
		}
	}
}

func TestHandReopensDescriptors(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	found := openAt(p, b.path("ro/f"), unix.O_PATH)
	again := p.ReopenFD("open again", "f", found, unix.O_RDONLY)
	text, bytes := p.Scratch(16)
	n := p.Call("read", "f", syscall.SYS_READ, again.Arg(), text, Int(16))
	where, path := p.Scratch(4096)
	size := p.Call("readlink", "f", syscall.SYS_READLINKAT, Int(HandFDs), p.Name(found), where, Int(4096))
	r := must(t, h)
	if n, _ := r.Value(n); string(bytes[:n]) != "content" {
		t.Errorf("read %q", bytes[:n])
	}
	if n, _ := r.Value(size); string(path[:n]) != b.path("ro/f") {
		t.Errorf("it is %q", path[:n])
	}

	// With another descriptor's rights nothing more is possible (FS-46).
	p = h.Program()
	found = openAt(p, b.path("ro/f"), unix.O_PATH)
	p.ReopenFD("open again", "f", found, unix.O_WRONLY)
	if r := do(t, h); r.Errno != unix.EROFS || r.Op != "open again" || r.Subject != "f" {
		t.Errorf("%v, want EROFS", r.Err())
	}
}

func TestHandIsPassedDescriptors(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := h.Program()
	p.Call("getpid", "", syscall.SYS_GETPID) // slots of passed descriptors need not be the first
	in, out := h.Pass(r), h.PassFD(int(w.Fd()))
	p.Call("write", "", syscall.SYS_WRITE, out.Arg(), p.Str("through"), Int(7))
	p.SendFiles(0, "the reading end", in)
	res := must(t, h)
	defer res.Close()
	for s, want := range map[Slot]uintptr{in: HandFirst, out: HandFirst + 1} {
		if v, ok := res.Value(s); !ok || v != want {
			t.Errorf("slot %d holds %d, want %d", s, v, want)
		}
	}
	w.Close()
	// The end of file proves that the hand has closed its copy.
	if text, err := io.ReadAll(res.Files[0]); err != nil || string(text) != "through" {
		t.Errorf("%q, %v", text, err)
	}
	p = h.Program()
	for range maxFiles + 1 {
		h.Pass(r)
	}
	if _, err := h.Do(); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("too many descriptors: %v", err)
	}
	h.Program()
	must(t, h)
}

func TestHandInterpreter(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	absent := openAt(p, b.path("absent"), unix.O_RDONLY)
	p.Tolerate(unix.EISDIR, unix.ENOENT)
	perm := p.Call("umount", "", unix.SYS_UMOUNT2, p.Str(b.dir), Int(0)) // EPERM is also what -1 looks like
	p.Tolerate(unix.EPERM)
	left := p.Call("getpid", "", syscall.SYS_GETPID)
	p.OnlyIf(absent)
	word, bytes := p.Buffer(8)
	binary.NativeEndian.PutUint64(bytes, 0xaabb)
	taken := p.SkipUnless(word, 0, 0xff, 0xbb, 5)
	one := p.Call("getuid", "", syscall.SYS_GETUID)
	taken.End()
	not := p.SkipUnless(word, 0, 0xff00, 0xbb00, 1)
	two := p.Call("getuid", "", syscall.SYS_GETUID)
	three := p.Call("getuid", "", syscall.SYS_GETUID)
	not.End()
	four := p.Call("getuid", "", syscall.SYS_GETUID)
	name := p.Name(four)
	p.SkipUnless(word, 0, ^uint64(0), 0, ToEnd)
	five := p.Call("getuid", "", syscall.SYS_GETUID)
	p.Call("fail", "", syscall.SYS_CLOSE, Int(-1))
	r := must(t, h)
	for i, c := range []struct {
		slot Slot
		ok   bool
		err  syscall.Errno
	}{{absent, false, unix.ENOENT}, {perm, false, unix.EPERM}, {left, false, 0}, {one, true, 0}, {two, false, 0}, {three, false, 0}, {four, true, 0}, {five, false, 0}, {0, false, 0}} {
		if _, ok := r.Value(c.slot); ok != c.ok || r.Tolerated(c.slot) != c.err {
			t.Errorf("%d: %v %v, want %v %v", i, ok, r.Tolerated(c.slot), c.ok, c.err)
		}
	}
	text := unsafe.Slice((*byte)(pointer(name.value)), nameSize)
	if got := unix.ByteSliceToString(text); got != strconv.Itoa(os.Getuid()) {
		t.Errorf("a name of %q", got)
	}
}

func TestDecimalNames(t *testing.T) {
	for _, n := range []uintptr{0, 9, 10, 99, 100, 1048576, 1<<64 - 1} {
		b := make([]byte, nameSize)
		writeDecimal(uintptr(unsafe.Pointer(&b[0])), n)
		if got := unix.ByteSliceToString(b); got != strconv.FormatUint(uint64(n), 10) {
			t.Errorf("%d is written %q", n, got)
		}
	}
}

func TestHandProgramThatDoesNotFit(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	p.Buffer(handSize)
	openAt(p, "/", unix.O_RDONLY)
	if _, err := h.Do(); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("data: %v", err)
	}
	p = h.Program()
	for range handSize {
		p.Call("getpid", "", syscall.SYS_GETPID)
	}
	if _, err := h.Do(); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("steps: %v", err)
	}
	p = h.Program()
	if _, bytes := p.Buffer(1024); slices.Max(bytes) != 0 {
		t.Error("a buffer holds what an earlier program left")
	}
	must(t, h)
}

// TestHandLeaksNothing runs 1,000 programs, complete and failed, and then looks which number is the next free one.
func TestHandLeaksNothing(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before := openFiles()
	for i := range 1000 {
		p := h.Program()
		h.Pass(null)
		fd := openAt(p, b.path("ro"), unix.O_PATH)
		switch i % 3 {
		case 1:
			openAt(p, b.path("absent"), unix.O_RDONLY)
		case 2:
			p.SendFiles(0, "a directory", fd)
		}
		r := do(t, h)
		r.Close()
		if v, _ := r.Value(fd); v != HandFirst+1 {
			t.Fatalf("program %d: descriptor %d", i, v)
		}
	}
	if after := openFiles(); after != before {
		t.Errorf("%d descriptors were open in this process and %d are now", before, after)
	}
	p := h.Program()
	fd := openAt(p, "/", unix.O_PATH)
	p.SendFiles(0, "/", fd)
	r := must(t, h)
	defer r.Close()
	if v, _ := r.Value(fd); v != HandFirst {
		t.Errorf("the next free descriptor is %d, want %d", v, HandFirst)
	}
}

// blockingOpen appends an open that waits for somebody at the FIFO's other end, after a byte to w.
func (b *box) blockingOpen(h *Hand, w *os.File) {
	p := h.Program()
	out := h.Pass(w)
	p.Call("write", "", syscall.SYS_WRITE, out.Arg(), p.Str("x"), Int(1))
	openAt(p, b.path("fifo"), unix.O_RDONLY)
}

func TestHandKilledInACall(t *testing.T) {
	for name, end := range map[string]func(*Hand) error{"kill": (*Hand).Kill, "close": (*Hand).Close} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, true)
			h := b.hand(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			done := make(chan error, 1)
			b.blockingOpen(h, w)
			go func() {
				_, err := h.Do()
				done <- err
			}()
			io.ReadFull(r, make([]byte, 1))
			w.Close()
			if err := end(h); err != nil {
				t.Error(err)
			}
			if err := <-done; !errors.Is(err, ErrHandKilled) {
				t.Errorf("Do: %v", err)
			}
			if _, err := h.Do(); !errors.Is(err, ErrHandKilled) {
				t.Errorf("the next Do: %v", err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if err := h.Kill(); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("Kill after Close: %v", err)
			}
		})
	}
}

func TestHandThatEndsByItself(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	p := h.Program()
	p.Call("exit", "", syscall.SYS_EXIT_GROUP, Int(3))
	if _, err := h.Do(); !errors.Is(err, ErrHandGone) {
		t.Errorf("%v", err)
	}
	if _, err := h.Do(); !errors.Is(err, ErrHandGone) {
		t.Errorf("the next: %v", err)
	}
}

// holdHand is the re-executed half of TestHandDoesNotOutliveTheHost. Descriptor 3 is a pipe that the hand alone holds on.
func holdHand(dir string) {
	b := &box{dir: dir}
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(b.open(true))
	h, err := StartHand(b.config())
	fail(err)
	if os.Args[3] == "blocked" {
		b.blockingOpen(h, os.NewFile(3, "pipe"))
	} else {
		p := h.Program()
		p.Call("write", "", syscall.SYS_WRITE, h.PassFD(3).Arg(), p.Str("x"), Int(1))
		// Held in the hand for the whole test: a copy above the numbers that a program's end closes is not possible, so
		// the program itself waits, for a time that no test takes.
		ts := &unix.Timespec{Sec: 3600}
		p.Call("sleep", "", syscall.SYS_NANOSLEEP, Pointer(p, ts), Int(0))
	}
	_, err = h.Do()
	fail(err)
}

// TestHandDoesNotOutliveTheHost kills the host process while its hand is in a call (CLI-17). The pipe comes to its end only
// when the hand is gone.
func TestHandDoesNotOutliveTheHost_CLI17(t *testing.T) {
	for _, how := range []string{"blocked", "asleep"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		host := exec.Command("/proc/self/exe", "hold-a-hand", t.TempDir(), how)
		host.Stdout, host.Stderr, host.ExtraFiles = os.Stderr, os.Stderr, []*os.File{w}
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		host.Process.Kill()
		host.Wait()
		r.SetReadDeadline(time.Now().Add(30 * time.Second))
		if rest, err := io.ReadAll(r); err != nil {
			t.Errorf("%s: the hand is still alive: %q, %v", how, rest, err)
		}
		r.Close()
	}
}

// TestIdleHandDoesNotOutliveTheHost does so while the hand waits for a program.
func TestIdleHandDoesNotOutliveTheHost(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	unix.Close(h.ctl)
	h.ctl = -1
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, h.pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Error(err)
	}
	if _, err := h.Do(); !errors.Is(err, ErrHandGone) {
		t.Errorf("%v", err)
	}
}

func TestHandsAreRefused(t *testing.T) {
	b := newBox(t, false)
	if _, err := StartHand(b.config()); !errors.Is(err, ErrNoHands) {
		t.Errorf("without AllowHands: %v", err)
	}
	for _, c := range []HandConfig{{}, {Process: b.process}, {Ruleset: b.ruleset}} {
		if h, err := StartHand(c); err == nil {
			t.Errorf("started with %+v", c)
			h.Close()
		}
	}
	other := &box{dir: t.TempDir()}
	if err := other.open(true); err != nil {
		t.Fatal(err)
	}
	c := other.config()
	c.Ruleset = other.stdin // not a ruleset: the set-up fails, and names the step
	var step *StepError
	if _, err := StartHand(c); !errors.As(err, &step) || step.Op != "enforce the Landlock ruleset" {
		t.Errorf("without a ruleset: %v", err)
	}
	other.stdin.Close()
	if _, err := other.process.Wait(); err != nil {
		t.Error(err)
	}
	c.Ruleset = other.ruleset
	if _, err := StartHand(c); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the sandbox's end: %v", err)
	}
	other.ruleset.Close()
}

func TestHandsAtOnce(t *testing.T) {
	b := newBox(t, true)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			h, err := StartHand(b.config())
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Close()
			for j := range 50 {
				p := h.Program()
				openAt(p, b.path(fmt.Sprintf("rw/%d-%d", i, j)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
				if r, err := h.Do(); err != nil || r.Err() != nil {
					t.Errorf("%d %d: %v, %v", i, j, r.Err(), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestHandsAsAnotherUser runs the tests of this file again as an ordinary user, when root runs them.
func TestHandsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("got user id %d, want 0: the other tests run as an ordinary user already", os.Geteuid())
	}
	dir, err := os.MkdirTemp("", "srt-hands")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const uid = 61184 // nobody's
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("/proc/self/exe", "-test.run", "Hand", "-test.v")
	run.Dir, run.Env = "/", []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHandIsHeld_FS26_FS44") {
		t.Errorf("%v\n%s", err, out)
	}
}
