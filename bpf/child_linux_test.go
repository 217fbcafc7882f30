package bpf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// childVariable makes the test binary a process of a sandbox: it waits for a line, and does what it says.
const childVariable = "SRT_BPF_CHILD"

func TestMain(m *testing.M) {
	if level, child := os.LookupEnv(childVariable); child {
		os.Exit(childMain(level))
	}
	status := m.Run()
	if left := openOfBPF(); status == 0 && len(left) > 0 {
		fmt.Fprintln(os.Stderr, "descriptors that were not closed:", left)
		status = 1
	}
	os.Exit(status)
}

// openOfBPF lists what this process still holds of the kernel's BPF.
func openOfBPF() (left []string) {
	runtime.GC()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "anon_inode:bpf") {
			left = append(left, e.Name()+" "+to)
		}
	}
	return left
}

// childMain makes further user namespaces as long as level is above 0, and acts in the last.
func childMain(level string) int {
	n, err := strconv.Atoi(level)
	if err == nil && n > 0 {
		cmd := childCommand(n-1, unix.CLONE_NEWUSER)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "level %d: %v\n", n, err)
			return 1
		}
		return 0
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		what, argument, _ := strings.Cut(in.Text(), " ")
		act, there := actions[what]
		if !there {
			fmt.Fprintln(os.Stderr, "no action", what)
			return 1
		}
		fmt.Println(answer(act(argument)))
	}
	return 0
}

// answer is an error as a number for the parent.
func answer(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return "errno " + strconv.Itoa(int(errno))
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

var actions = map[string]func(string) error{
	"chdir":     os.Chdir,
	"name":      setName,
	"clone":     func(string) error { return exec.Command("/bin/true").Run() },
	"supported": func(string) error { return supportedAsText() },
	"mkdir":     func(name string) error { return unix.Mkdir(name, 0o700) },
	"rmdir":     unix.Rmdir,
	"unlink":    unix.Unlink,
	"call":      rawCall,
	"read":      openForReading,
	"repeat":    repeat,
	"trace":     traceForever,
	"pipe":      markPipe,
	"tracing":   func(string) error { return reasonOf(TracingSupported()) },
	"mknod":     func(name string) error { return unix.Mknod(name, unix.S_IFIFO|0o600, 0) },
	"symlink":   func(name string) error { return unix.Symlink("to", name) },
	"create": func(name string) error {
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	},
	"link":     func(names string) error { return two(names, unix.Link) },
	"rename":   func(names string) error { return two(names, unix.Rename) },
	"exchange": func(names string) error { return two(names, exchange) },
}

func two(names string, do func(a, b string) error) error {
	a, b, _ := strings.Cut(names, " ")
	return do(a, b)
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// setName gives this thread a name (task_rename is the tracepoint).
func setName(name string) error {
	runtime.LockOSThread()
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return prctlName(p)
}

func supportedAsText() error { return reasonOf(Supported()) }

// reasonOf is the reason inside an error, which has the same text in the parent.
func reasonOf(err error) error {
	for _, reason := range []error{ErrNoCapability, ErrInactive, ErrOldKernel, ErrRefused} {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return err
}

func childCommand(level int, flags uintptr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childVariable + "=" + strconv.Itoa(level), "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if flags&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// child is a running process of a sandbox.
type child struct {
	t         testing.TB
	cmd       *exec.Cmd
	namespace *os.File // its user namespace, of the first level
	in        io.WriteCloser
	out       *bufio.Scanner
}

// startChild starts a process in a new user namespace, and as many user namespaces below as depth says. With none below
// it is in a new pid namespace, too; the making of further ones needs a /proc that fits.
func startChild(t testing.TB, depth int) *child {
	flags := uintptr(unix.CLONE_NEWUSER)
	if depth == 0 {
		flags |= unix.CLONE_NEWPID
	}
	return start(t, childCommand(depth, flags))
}

func start(t testing.TB, cmd *exec.Cmd) *child {
	t.Helper()
	runtime.LockOSThread() // Pdeathsig is about the thread
	t.Cleanup(runtime.UnlockOSThread)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(c.end)
	if c.namespace, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.namespace.Close() })
	return c
}

// do has the child act, and gives its answer.
func (c *child) do(line string) string {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
	if !c.out.Scan() {
		c.t.Fatalf("%q: the child has ended", line)
	}
	return c.out.Text()
}

func (c *child) must(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		if got := c.do(line); got != "ok" {
			c.t.Fatalf("%q: %s", line, got)
		}
	}
}

// end waits until the child is gone.
func (c *child) end() {
	c.in.Close()
	if c.cmd.ProcessState == nil {
		if err := c.cmd.Wait(); err != nil {
			c.t.Error(err)
		}
	}
}
