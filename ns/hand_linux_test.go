package ns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
	pids := awaitCommand(t, h)
	if !slices.Equal(pids, []string{"1", "2"}) {
		t.Errorf("the sandbox's /proc shows %v, want pid 1 and the command", pids)
	}
}

// awaitCommand waits until pid 1 has forked the command, which Start does not, and gives the processes there are then.
func awaitCommand(t *testing.T, h *Hand) []string {
	t.Helper()
	for {
		if pids := pidsIn(t, h); slices.Contains(pids, "2") {
			return pids
		}
	}
}

// pidsIn lists the processes of the sandbox's /proc.
func pidsIn(t *testing.T, h *Hand) (pids []string) {
	t.Helper()
	p := h.Program()
	p.SendFiles(0, "/proc", openAt(p, "/proc", unix.O_RDONLY|unix.O_DIRECTORY))
	r := must(t, h)
	defer r.Close()
	names, err := r.Files[0].Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := strconv.Atoi(n); err == nil {
			pids = append(pids, n)
		}
	}
	slices.Sort(pids)
	return pids
}

// TestHandCannotLookIntoTheCommand holds what the documentation of Hand says of /proc.
func TestHandCannotLookIntoTheCommand(t *testing.T) {
	b := newBox(t, true)
	h := b.hand(t)
	awaitCommand(t, h)
	for name, want := range map[string]syscall.Errno{
		"status": 0, "cmdline": 0, "maps": unix.EACCES, "environ": unix.EACCES, "mem": unix.EACCES, "fd/0": unix.EACCES, "cwd": unix.EACCES,
	} {
		openAt(h.Program(), "/proc/2/"+name, unix.O_RDONLY)
		if r := do(t, h); r.Errno != want {
			t.Errorf("%s: %v, want %v", name, r.Err(), want)
		}
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
	h.Program()
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
