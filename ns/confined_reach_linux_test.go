package ns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// awaitEnd waits for the end of the command, whose output must end as said.
func awaitEnd(t *testing.T, p *Process, out *os.File, want string) {
	t.Helper()
	out.SetReadDeadline(time.Now().Add(60 * time.Second))
	text, err := io.ReadAll(out)
	if err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	if st, err := p.Wait(); err != nil || st.Code != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

// reaches are the ways in which one process can act on another, or look into it, by its number. None of them is left to a
// confined command for processes outside of its sandbox, or for the two that end it.
var reaches = []struct {
	name string
	try  func(pid int) error
}{
	{"kill 0", func(pid int) error { return unix.Kill(pid, 0) }},
	{"kill", func(pid int) error { return unix.Kill(pid, unix.SIGKILL) }},
	{"stop", func(pid int) error { return unix.Kill(pid, unix.SIGSTOP) }},
	{"continue", func(pid int) error { return unix.Kill(pid, unix.SIGCONT) }},
	{"tkill", func(pid int) error { return call(unix.SYS_TKILL, uintptr(pid), uintptr(unix.SIGKILL)) }},
	{"tgkill", func(pid int) error { return unix.Tgkill(pid, pid, unix.SIGKILL) }},
	{"rt_sigqueueinfo", func(pid int) error {
		info := [128]byte{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // SI_QUEUE
		return call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(&info)))
	}},
	{"pidfd_send_signal", func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return fmt.Errorf("pidfd_open: %w", err)
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}},
	{"F_SETOWN", signalByPipe},
	{"ptrace attach", func(pid int) error { return unix.PtraceAttach(pid) }},
	{"ptrace seize", func(pid int) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid)) }},
	{"process_vm_readv", func(pid int) error {
		var b [8]byte
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 1 << 16, Len: 8}}, 0)
		return err
	}},
	{"pidfd_getfd", func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return fmt.Errorf("pidfd_open: %w", err)
		}
		defer unix.Close(fd)
		got, err := unix.PidfdGetfd(fd, 1, 0)
		if err == nil {
			unix.Close(got)
		}
		return err
	}},
	{"kcmp", func(pid int) error { return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 2) }},
	{"mem", openOf("mem", os.O_RDONLY)},
	{"write mem", openOf("mem", os.O_WRONLY)},
	{"environ", readOf("environ")},
	{"auxv", readOf("auxv")},
	{"maps", readOf("maps")},
	{"syscall", readOf("syscall")},
	{"exe", linkOf("exe")},
	{"cwd", linkOf("cwd")},
	{"root", linkOf("root")},
	{"fd", anyDescriptor},
	{"ns", linkOf("ns/user")},
}

func call(trap uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := syscall.Syscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// signalByPipe has the kernel send a signal when a pipe can be read (F_SETSIG of fcntl(2)). What comes of it shows nowhere but
// in the process that would have it.
func signalByPipe(pid int) error {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	for _, c := range [][2]int{{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(uintptr(p[0]), c[0], c[1]); err != nil {
			return err
		}
	}
	if _, err := unix.Write(p[1], []byte("x")); err != nil {
		return err
	}
	return unix.EPERM
}

func openOf(name string, flags int) func(int) error {
	return func(pid int) error {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, name), flags, 0)
		if err == nil {
			f.Close()
		}
		return err
	}
}

func readOf(name string) func(int) error {
	return func(pid int) error {
		_, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		return err
	}
}

// anyDescriptor tells where one of the process's descriptors leads. Which numbers there are, root may see (proc_pid_fd(5)).
func anyDescriptor(pid int) error {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	for _, e := range list {
		if linkOf("fd/"+e.Name())(pid) == nil {
			return nil
		}
	}
	return unix.EACCES
}

func linkOf(name string) func(int) error {
	return func(pid int) error {
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", pid, name))
		return err
	}
}

// reachOut is the re-executed half of TestConfined_ReachesNobody: the command. It reads process numbers and prints which way
// was open.
func reachOut(string) {
	var n int
	if _, err := fmt.Scan(&n); err != nil {
		panic(err)
	}
	for range n {
		var name string
		var pid int
		if _, err := fmt.Scan(&name, &pid); err != nil {
			panic(err)
		}
		for _, r := range reaches {
			if err := r.try(pid); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
				fmt.Printf("%s of the %s: %v\n", r.name, name, err)
			}
		}
	}
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.EPERM) {
		fmt.Println("all:", err)
	}
	fmt.Println("done")
	os.Exit(0)
}

// TestConfined_ReachesNobody: neither the processes that end the sandbox, nor srt, its hands, another sandbox's command or anybody
// else's process can be signalled, traced or looked into, whoever the user is.
func TestConfined_ReachesNobody(t *testing.T) {
	needScopes(t)
	bystander := exec.Command("/bin/sleep", "300")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	other, stdinOfOther, _ := lingers(t, "echo up; read x; exit 6")
	b, stdin, out := aConfinedBox(t, testBinary(t), "reach-out", "x")
	hand, err := b.hand()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reaches { // the ways are there: this process, which nothing holds, may go those that do no harm
		switch r.name {
		case "kill 0", "continue", "kcmp", "pidfd_getfd", "environ", "auxv", "maps", "exe", "cwd", "root", "fd", "ns", "mem":
			if err := r.try(bystander.Process.Pid); err != nil {
				t.Errorf("%s of the bystander, from outside: %v", r.name, err)
			}
		}
	}
	targets := []struct {
		name string
		pid  int
	}{
		{"supervisor", b.process.Pid()}, {"keeper", b.process.pid}, {"host", os.Getpid()}, {"hand", hand.pid},
		{"bystander", bystander.Process.Pid}, {"other-supervisor", other.Pid()}, {"other-keeper", other.pid},
		{"other-command", childOf(t, other.Pid())}, {"parent", os.Getppid()},
	}
	fmt.Fprintln(stdin, len(targets))
	for _, target := range targets {
		fmt.Fprintln(stdin, target.name, target.pid)
	}
	awaitEnd(t, b.process, out, "done\n")
	must(t, func() *Hand { hand.Program(); return hand }())
	check(t, hand.Close())
	stdinOfOther.Close()
	if st, err := other.Wait(); err != nil || st.Code != 6 {
		t.Errorf("the other sandbox: %v, %v", st, err)
	}
	check(t, bystander.Process.Kill())
	bystander.Wait()
}

// childOf is the first child of a process.
func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(text), &child); err != nil {
		t.Fatal(err)
	}
	return child
}
