package ns

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain checks at the end that no test left a descriptor open (style.md habit 7).
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hold-a-sandbox" {
		holdSandbox()
	}
	if len(os.Args) > 3 && os.Args[1] == "hold-a-hand" {
		holdHand(os.Args[2])
	}
	// The runtime's poller opens descriptors of its own at the first pipe, and keeps them.
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
	before := openFiles()
	code := m.Run()
	if after := openFiles(); code == 0 && after > before {
		fmt.Fprintf(os.Stderr, "%d descriptors were open before the tests and %d are now\n", before, after)
		code = 1
	}
	os.Exit(code)
}

func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(list)
}

// identity is the identity map of the test's own user.
func identity() (uids, gids []IDMap) {
	u, g := uint32(os.Geteuid()), uint32(os.Getegid())
	return []IDMap{{u, u, 1}}, []IDMap{{g, g, 1}}
}

// launch is a program, the process it is for, and the command.
type launch struct {
	Config
	Command
	program *Program
	ready   chan struct{} // closed when the program is written; nil: it is
}

// minimal is the least that starts a command.
func minimal(p *Program, args ...string) *launch {
	u, g := identity()
	return &launch{Config{Namespaces: Full, UIDs: u, GIDs: g, DenySetgroups: true},
		Command{Candidates: []string{args[0]}, Args: args, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}}, p, nil}
}

func newProgram(t testing.TB) *Program {
	t.Helper()
	p, err := NewProgram()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (l *launch) start() (*Process, error) {
	p, err := Prepare(&l.Config, l.program)
	if l.ready != nil {
		<-l.ready
	}
	if err != nil {
		l.program.Release()
		return nil, err
	}
	return p.Start(&l.Command)
}

// run starts a configuration with a pipe as standard output and error, and gives what was printed and how it ended.
func run(t testing.TB, c *launch) (string, Status, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.Stdin, c.Stdout, c.Stderr = null, w, w
	p, err := c.start()
	w.Close()
	if err != nil {
		return "", Status{}, err
	}
	defer closeFiles(p)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	st, err := p.Wait()
	return string(out), st, err
}

func closeFiles(p *Process) {
	for _, f := range p.Files {
		if f != nil {
			f.Close()
		}
	}
}

func TestStatus_CLI12(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 3", 3}, {"exit 255", 255}, {"kill -9 $$", 137}, {"kill -TERM $$", 143}, {"kill -INT $$", 130}} {
		_, st, err := run(t, minimal(newProgram(t), "/bin/sh", "-c", c.script))
		if err != nil || st.Code != c.code {
			t.Errorf("%s: %v, %v; want %d", c.script, st, err, c.code)
		}
	}
}

func TestCommandThatCannotBeExecuted(t *testing.T) {
	for name, want := range map[string]syscall.Errno{"/nonexistent/x": unix.ENOENT, "/etc/passwd": unix.EACCES, "/": unix.EACCES} {
		_, _, err := run(t, minimal(newProgram(t), name))
		var e *ExecError
		if !errors.As(err, &e) || !errors.Is(err, want) {
			t.Errorf("%s: %v, want an ExecError with %v", name, err, want)
		}
	}
}

// TestUnsearchableDirectoryIsNotAProgram holds CLI-12 for a PATH that leads through a directory of somebody else's.
func TestUnsearchableDirectoryIsNotAProgram_CLI12(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("got user id 0, want another: every directory may be searched by root")
	}
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/locked", 0); err != nil {
		t.Fatal(err)
	}
	c := minimal(newProgram(t), "tool")
	c.Candidates = []string{dir + "/locked/tool", "/nonexistent/tool"}
	if _, _, err := run(t, c); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v, want not found", err)
	}
}

func TestScriptWithoutInterpreterLine(t *testing.T) {
	path := t.TempDir() + "/script"
	if err := os.WriteFile(path, []byte("echo \"$0 $1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, minimal(newProgram(t), path, "word"))
	if err != nil || out != path+" word\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestCandidatesAreTriedInOrder(t *testing.T) {
	c := minimal(newProgram(t), "echo", "found")
	c.Candidates = []string{"/nonexistent/echo", "/etc/passwd", "/bin/echo"}
	out, _, err := run(t, c)
	if err != nil || out != "found\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestFailedStepIsNamed(t *testing.T) {
	p := newProgram(t)
	p.Call("open", "/nonexistent", unix.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str("/nonexistent"), Int(0), Int(0))
	_, _, err := run(t, minimal(p, "/bin/sh", "-c", "echo the command must not run"))
	var e *StepError
	if !errors.As(err, &e) || e.Op != "open" || e.Subject != "/nonexistent" || !errors.Is(err, unix.ENOENT) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "ENOENT") {
		t.Errorf("%q does not name the error as the kernel does", err)
	}
}

func TestInterpreter(t *testing.T) {
	p := newProgram(t)
	absent := p.Call("open", "absent", unix.SYS_OPENAT, Int(unix.AT_FDCWD), p.Str("/nonexistent"), Int(0), Int(0))
	p.Tolerate(unix.ENOENT)
	p.Call("write", "left out", unix.SYS_WRITE, Int(1), p.Str("no"), Int(2))
	p.OnlyIf(absent)
	p.Call("write", "1", unix.SYS_WRITE, Int(1), p.Str("a"), Int(1))
	p.Unless(absent)
	pid := p.Call("getpid", "", unix.SYS_GETPID)
	addr, _ := p.Buffer(8)
	p.Store(addr, 0, pid)
	p.Expect("be", "pid 1", addr, 0, 1<<32-1, 1, unix.ESRCH)
	p.Call("write", "2", unix.SYS_WRITE, Int(1), p.Str("b"), Int(1))
	p.OnlyIf(pid)
	p.Call("write", "3", unix.SYS_WRITE, Int(1), p.Str("no"), Int(2))
	p.Unless(pid)
	out, _, err := run(t, minimal(p, "/bin/true"))
	if err != nil || out != "ab" {
		t.Errorf("%q, %v; want ab", out, err)
	}
	p = newProgram(t)
	addr, _ = p.Buffer(8)
	p.Expect("find", "seven", addr, 0, ^uint64(0), 7, unix.ESTALE)
	if _, _, err := run(t, minimal(p, "/bin/true")); !errors.Is(err, unix.ESTALE) {
		t.Errorf("an expectation that does not hold: %v, want ESTALE", err)
	}
}

// TestOnlyTheStandardStreams holds FS-46 and CLI-10, with descriptors of the host process open that are not
// close-on-exec.
func TestOnlyTheStandardStreams_FS46(t *testing.T) {
	leak, err := unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	out, _, err := run(t, minimal(newProgram(t), "/bin/sh", "-c", "for f in /proc/self/fd/*; do echo ${f##*/}; done"))
	if err != nil {
		t.Fatal(err)
	}
	// The shell's own opening of the directory is the fourth.
	if got := strings.Join(strings.Fields(out), " "); got != "0 1 2 3" {
		t.Errorf("descriptors %q, want 0 1 2 and that of the listing", got)
	}
}

func TestStreamsMayHaveAnyNumbers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := minimal(newProgram(t), "/bin/sh", "-c", "read x; echo $x; echo err >&2")
	in, inw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(inw, "line")
	inw.Close()
	c.Stdin, c.Stdout, c.Stderr = in, w, w
	p, err := c.start()
	in.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.ReadFrom(r)
	if _, err := p.Wait(); err != nil || out.String() != "line\nerr\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestListenersAreReceived_NET4(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.Listen(0, 3128, 1080)
	c := minimal(p, "/bin/sh", "-c", "cat /proc/net/tcp; exit 0")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.Stdin, c.Stdout, c.Stderr = null, null, null
	proc, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(proc)
	if len(proc.Files) != 4 && len(proc.Files) != 2 {
		t.Fatalf("%d listeners", len(proc.Files))
	}
	for i, f := range proc.Files {
		sa, err := unix.Getsockname(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		port := map[int]int{0: 3128, 1: 1080}[i%2]
		switch a := sa.(type) {
		case *unix.SockaddrInet4:
			if a.Port != port || a.Addr != [4]byte{127, 0, 0, 1} {
				t.Errorf("listener %d: %v", i, a)
			}
		case *unix.SockaddrInet6:
			if a.Port != port || i < 2 {
				t.Errorf("listener %d: %v", i, a)
			}
		}
	}
	if _, err := proc.Wait(); err != nil {
		t.Error(err)
	}
}

func TestUnpacedTCP(t *testing.T) {
	p := newProgram(t)
	p.UnpacedTCP()
	before, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, minimal(p, "/bin/cat", "/proc/sys/net/ipv4/tcp_congestion_control"))
	if err != nil || out != "reno\n" {
		t.Errorf("%q, %v", out, err)
	}
	if after, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the host's was %q and is %q, %v", before, after, err)
	}
}

func TestSignalAndKill(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(*Process) error
		code int
		err  bool
	}{
		{"TERM", func(p *Process) error { return p.Signal(unix.SIGTERM) }, 143, false},
		{"kill", func(p *Process) error { return p.Kill() }, 0, true},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cfg := minimal(newProgram(t), "/bin/sh", "-c", "echo up; exec sleep 60")
		null, _ := os.Open(os.DevNull)
		cfg.Stdin, cfg.Stdout, cfg.Stderr = null, w, w
		p, err := cfg.start()
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		io.ReadFull(r, make([]byte, 3))
		if err := c.act(p); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		st, err := p.Wait()
		var killed *KilledError
		if errors.As(err, &killed) != c.err || st.Code != c.code {
			t.Errorf("%s: %v, %v", c.name, st, err)
		}
		if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("Kill after the end: %v", err)
		}
		r.Close()
		null.Close()
	}
}

// holdSandbox is the re-executed half of TestNothingOutlivesTheHost.
func holdSandbox() {
	program, err := NewProgram()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c := minimal(program, "/bin/sh", "-c", "setsid sleep 300 & echo up; exec sleep 300")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	p, err := c.start()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p.Wait()
	os.Exit(0)
}

// TestNothingOutlivesTheHost kills the host process with SIGKILL: the pipe that every process of the sandbox holds
// comes to its end only when all are gone (CLI-17).
func TestNothingOutlivesTheHost_CLI17(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	host := exec.Command("/proc/self/exe", "hold-a-sandbox")
	host.Stdout, host.Stderr = w, w
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	up := make([]byte, 3)
	if _, err := io.ReadFull(r, up); err != nil || string(up) != "up\n" {
		t.Fatalf("%q, %v", up, err)
	}
	host.Process.Kill()
	host.Wait()
	r.SetReadDeadline(time.Now().Add(30 * time.Second))
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("processes of the sandbox are still alive: %q, %v", rest, err)
	}
}

func TestRefusesWithoutItsNamespaces(t *testing.T) {
	c := minimal(newProgram(t), "/bin/true")
	c.Namespaces = unix.CLONE_NEWUSER
	if _, _, err := run(t, c); err == nil {
		t.Error("a sandbox without a pid namespace was started")
	}
	c = minimal(newProgram(t), "/bin/true", "a\x00b")
	if _, _, err := run(t, c); err == nil {
		t.Error("an argument with a NUL byte was cut short")
	}
}

func TestWrongMapsEndTheStart(t *testing.T) {
	c := minimal(newProgram(t), "/bin/sh", "-c", "echo the command must not run")
	c.UIDs = []IDMap{{0, 4294967294, 1}, {0, 4294967294, 1}}
	out, _, err := run(t, c)
	if err == nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestStartsAtOnce(t *testing.T) {
	errs := make(chan error)
	const n = 20
	for i := range n {
		go func() {
			c := minimal(newProgram(t), "/bin/sh", "-c", fmt.Sprintf("exit %d", i))
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				errs <- err
				return
			}
			defer null.Close()
			c.Stdin, c.Stdout, c.Stderr = null, null, null
			p, err := c.start()
			if err != nil {
				errs <- err
				return
			}
			st, err := p.Wait()
			if err == nil && st.Code != i {
				err = fmt.Errorf("status %d, want %d", st.Code, i)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte{})
	f.Add(message{msgFailed, 1, 2, 3}.encode())
	f.Add(bytes.Repeat([]byte{0xff}, 15))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := decodeMessage(b)
		if ok != (len(b) == msgSize) {
			t.Fatalf("%d bytes: %v", len(b), ok)
		}
		if ok && !bytes.Equal(m.encode(), b) {
			t.Fatalf("%x is not %v", b, m)
		}
	})
}

// FuzzFailure gives a report of a hostile or broken child to the host side: it must turn into an error, never a panic.
func FuzzFailure(f *testing.F) {
	f.Add(uint32(programSetup), uint32(0), uint32(2))
	f.Add(uint32(programFixed), uint32(fixedLimit), uint32(1))
	f.Add(uint32(99), uint32(1<<31), uint32(1<<31))
	f.Fuzz(func(t *testing.T, program, step, errno uint32) {
		p := &Process{program: &Program{}, name: "x"}
		if err := p.failure(message{msgFailed, program, step, errno}); err == nil || err.Error() == "" {
			t.Fatalf("no error for %d %d %d", program, step, errno)
		}
	})
}

func BenchmarkStart(b *testing.B) {
	for range b.N {
		if _, _, err := run(b, minimal(newProgram(b), "/bin/true")); err != nil {
			b.Fatal(err)
		}
	}
}

// TestManySteps has more results than fit in 16 bits: each must stay its own.
func TestManySteps(t *testing.T) {
	p := newProgram(t)
	first := p.Call("getpid", "", unix.SYS_GETPID)
	for range 1<<16 + 10 {
		p.Call("getuid", "", unix.SYS_GETUID)
	}
	last := p.Call("dup", "", unix.SYS_DUP, Int(1))
	addr, _ := p.Buffer(16)
	p.Store(addr, 0, first)
	p.Store(addr, 8, last)
	p.Expect("keep", "the first result", addr, 0, 1<<32-1, 1, unix.ERANGE)
	p.Expect("keep", "the last result", addr, 8, 1<<32-1, firstFree, unix.ERANGE)
	if _, _, err := run(t, minimal(p, "/bin/true")); err != nil {
		t.Error(err)
	}
}

// TestProgramThatDoesNotFit must end as an error of the start, not as a program without its end.
func TestProgramThatDoesNotFit(t *testing.T) {
	p := newProgram(t)
	p.data = len(p.mem) - 1024
	for range 100 {
		p.Str("twenty bytes of text")
	}
	p.Call("getpid", "", unix.SYS_GETPID)
	if _, _, err := run(t, minimal(p, "/bin/true")); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("data: %v", err)
	}
	p = newProgram(t)
	p.steps = len(p.mem) / 2 / stepSize
	p.Call("getpid", "", unix.SYS_GETPID)
	if _, _, err := run(t, minimal(p, "/bin/true")); !errors.Is(err, ErrProgramTooLarge) {
		t.Errorf("steps: %v", err)
	}
}

func TestPreparedAndNotStarted(t *testing.T) {
	c := minimal(newProgram(t), "/bin/true")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c.Stdin, c.Stdout, c.Stderr = null, null, null
	p, err := Prepare(&c.Config, c.program)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(p.process.pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}
