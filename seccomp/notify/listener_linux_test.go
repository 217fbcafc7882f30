package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

// supervised is a child under filters, and the listener of the last one.
type supervised struct {
	*Listener
	cmd  *exec.Cmd
	out  bytes.Buffer
	errs bytes.Buffer
	// The child is reaped as soon as it ends: before Linux 6.11 a filter has a process until then, and a listener no end.
	ended chan struct{}
	err   error // what came of it, once ended is closed
}

// end waits until the child has ended, and gives what came of it.
func (s *supervised) end() error {
	<-s.ended
	return s.err
}

// supervise starts a child in a mode under programs.
func supervise(t testing.TB, mode, calls string, programs ...[]byte) *supervised {
	t.Helper()
	var quoted []string
	for _, p := range programs {
		quoted = append(quoted, strings.ReplaceAll(strconv.QuoteToASCII(string(p)), ",", `\x2c`))
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	defer theirs.Close()
	defer unix.Close(fds[0])
	s := &supervised{cmd: child(t, mode, ""), ended: make(chan struct{})}
	s.cmd.Env = append(s.cmd.Env, envFilters+"="+strings.Join(quoted, ","), envCalls+"="+calls)
	s.cmd.ExtraFiles = []*os.File{theirs}
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.errs
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	theirs.Close()
	s.Listener, err = New(receiveFile(t, fds[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.end()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func receiveFile(t testing.TB, socket int) *os.File {
	t.Helper()
	b, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, cn, _, _, err := unix.Recvmsg(socket, b, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		t.Fatalf("no listener came (%v)", err)
	}
	msgs, err := unix.ParseSocketControlMessage(control[:cn])
	if err != nil || len(msgs) != 1 {
		t.Fatalf("%d control messages (%v)", len(msgs), err)
	}
	got, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(got[0]), "listener")
}

// wait waits for the child's end and fails the test if it was not a good one.
func (s *supervised) wait(t testing.TB) string {
	t.Helper()
	if err := s.end(); err != nil {
		t.Fatalf("child: %v\n%s", err, s.errs.Bytes())
	}
	return s.out.String()
}

// mustReceive receives one call.
func (s *supervised) mustReceive(t testing.TB) Notification {
	t.Helper()
	var n Notification
	if err := s.Receive(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// everyCall lists what the filters must and must not put to the listener, with arguments that change nothing.
func everyCall(opens bool) []call {
	const bad = ^uintptr(0) // no descriptor, no pointer
	calls := legacyCalls(opens)
	for name, n := range map[string]uintptr{
		"openat2": unix.SYS_OPENAT2, "mkdirat": unix.SYS_MKDIRAT, "mknodat": unix.SYS_MKNODAT,
		"symlinkat": unix.SYS_SYMLINKAT, "linkat": unix.SYS_LINKAT, "renameat": unix.SYS_RENAMEAT,
		"renameat2": unix.SYS_RENAMEAT2, "bind": unix.SYS_BIND,
		"umask": unix.SYS_UMASK, "setuid": unix.SYS_SETUID, "setgid": unix.SYS_SETGID, "setreuid": unix.SYS_SETREUID,
		"setregid": unix.SYS_SETREGID, "setresuid": unix.SYS_SETRESUID, "setresgid": unix.SYS_SETRESGID,
		"setfsuid": unix.SYS_SETFSUID, "setfsgid": unix.SYS_SETFSGID, "setgroups": unix.SYS_SETGROUPS,
	} {
		calls = append(calls, call{Name: name, Number: n, Args: [6]uintptr{bad, bad, bad, bad, bad}, Asked: true})
	}
	for _, flags := range openFlags {
		c := call{Name: fmt.Sprintf("openat %#x", flags), Number: unix.SYS_OPENAT, Args: [6]uintptr{bad, bad, flags},
			Asked: opens || flags&unix.O_CREAT != 0, Want: unix.EFAULT}
		calls = append(calls, c)
	}
	for name, c := range map[string]struct {
		number uintptr
		want   syscall.Errno
	}{
		"unlinkat": {unix.SYS_UNLINKAT, unix.EINVAL}, "truncate": {unix.SYS_TRUNCATE, unix.EINVAL},
		"fchmodat": {unix.SYS_FCHMODAT, unix.EFAULT}, "readlinkat": {unix.SYS_READLINKAT, unix.EINVAL},
		"connect": {unix.SYS_CONNECT, unix.EBADF}, "statx": {unix.SYS_STATX, unix.EINVAL},
		"ioctl": {unix.SYS_IOCTL, unix.EBADF},
	} {
		calls = append(calls, call{Name: name, Number: c.number, Args: [6]uintptr{bad, bad, bad, bad, bad}, Want: c.want})
	}
	calls = append(calls, call{Name: "landlock_create_ruleset", Number: unix.SYS_LANDLOCK_CREATE_RULESET, Args: [6]uintptr{bad, 24}, Want: unix.EOPNOTSUPP},
		call{Name: "landlock_create_ruleset of an srt inside", Number: unix.SYS_LANDLOCK_CREATE_RULESET, Args: [6]uintptr{bad, 0x218}, Want: unix.EFAULT})
	return append(calls, call{Name: "btrfs subvolume", Number: unix.SYS_IOCTL, Args: [6]uintptr{bad, 0x50009418}, Want: unix.EPERM})
}

// openFlags are open(2)'s, with O_CREAT and without: alone, with the access modes, O_TMPFILE, O_PATH, and with a half of
// the register set that the kernel drops.
var openFlags = []uintptr{0, unix.O_WRONLY, unix.O_RDWR | unix.O_TRUNC, unix.O_CREAT, unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC,
	unix.O_CREAT | unix.O_EXCL | unix.O_RDWR, unix.O_TMPFILE | unix.O_RDWR, unix.O_PATH, unix.O_PATH | unix.O_CREAT,
	unix.O_DIRECTORY, 0xffffffff00000000 | unix.O_CREAT, 0x4000000000}

// Each call is put to the listener, or is not, exactly as the filters' table says, under all other filters as well.
func TestListener_EveryCallOfTheTable_FS30_FS55(t *testing.T) {
	for _, asking := range []seccomp.Filter{seccomp.Names(), seccomp.Opens()} {
		for _, set := range [][]seccomp.Filter{
			{asking}, {seccomp.Base(), seccomp.Namespaces(), seccomp.UnixDatagram(), asking},
		} {
			joined := seccomp.Stack(set...)
			t.Run(joined[0].Name, func(t *testing.T) {
				driveCalls(t, everyCall(asking.Name == "opens"), joined[0].Program())
			})
		}
	}
}

func driveCalls(t *testing.T, calls []call, program []byte) {
	text, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	s := supervise(t, modeCalls, string(text), program)
	const first = 7000
	asked := map[uintptr]Notification{} // by the value that answered it
	for {
		var n Notification
		err := s.Receive(&n)
		if errors.Is(err, ErrGone) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		value := uintptr(first + len(asked))
		asked[value] = n
		if err := s.Respond(n.ID, int64(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	var got []gave
	if out := s.wait(t); json.Unmarshal([]byte(out), &got) != nil || len(got) != len(calls) {
		t.Fatalf("the child said %q", out)
	}
	for i, c := range calls {
		n, wasAsked := asked[got[i].Value]
		switch {
		case wasAsked != c.Asked:
			t.Errorf("%s: put to the listener: %t, want %t (it gave %v)", c.Name, wasAsked, c.Asked, got[i])
		case !c.Asked && got[i].Errno != c.Want:
			t.Errorf("%s: %v, want %v", c.Name, got[i].Errno, c.Want)
		case c.Asked && (uintptr(n.Nr) != c.Number || !sameArgs(n.Args, c.Args)):
			t.Errorf("%s: the listener was shown %+v, want call %d with %#x", c.Name, n, c.Number, c.Args)
		case c.Asked && n.PID == 0:
			t.Errorf("%s: of no thread", c.Name)
		}
	}
}

func sameArgs(got [6]uint64, want [6]uintptr) bool {
	for i := range got {
		if got[i] != uint64(want[i]) {
			return false
		}
	}
	return true
}

// mkdir is one call for a child to make.
const mkdir = `[{"Name":"mkdirat","Number":%d,"Args":[0,0,0,0,0,0]}]`

func oneMkdir() string { return fmt.Sprintf(mkdir, unix.SYS_MKDIRAT) }

func askMkdir() []byte { return answers(unix.SYS_MKDIRAT, unix.SECCOMP_RET_USER_NOTIF) }

// A refusal of one filter goes before another's notification, whichever was loaded first (seccomp(2)).
func TestListener_IsNotAskedWhatAnotherFilterRefuses(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), answers(unix.SYS_MKDIRAT, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)), askMkdir())
	var n Notification
	if err := s.Receive(&n); !errors.Is(err, ErrGone) {
		t.Errorf("received %+v (%v), want nothing until the end", n, err)
	}
	if got := answered(t, s); got.Errno != unix.EPERM {
		t.Errorf("the call gave %v, want EPERM", got.Errno)
	}
}

// answered is what came of a child's one call.
func answered(t *testing.T, s *supervised) gave {
	t.Helper()
	var got []gave
	if out := s.wait(t); json.Unmarshal([]byte(out), &got) != nil || len(got) != 1 {
		t.Fatalf("the child said %q", out)
	}
	return got[0]
}

func TestListener_Answers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*supervised, uint64) error
		want   gave
	}{
		"a value":  {func(s *supervised, id uint64) error { return s.Respond(id, 42, 0) }, gave{42, 0}},
		"an errno": {func(s *supervised, id uint64) error { return s.Respond(id, 42, unix.EROFS) }, gave{^uintptr(0), unix.EROFS}},
		"go on":    {func(s *supervised, id uint64) error { return s.Continue(id) }, gave{^uintptr(0), unix.EFAULT}},
	} {
		t.Run(name, func(t *testing.T) {
			s := supervise(t, modeCalls, oneMkdir(), askMkdir())
			n := s.mustReceive(t)
			if err := s.Valid(n.ID); err != nil {
				t.Errorf("a waiting call is said to be over: %v", err)
			}
			if err := c.answer(s, n.ID); err != nil {
				t.Fatal(err)
			}
			if err := s.Respond(n.ID, 0, 0); err == nil {
				t.Error("a call was answered twice")
			}
			if got := answered(t, s); got != c.want {
				t.Errorf("the call gave %+v, want %+v", got, c.want)
			}
		})
	}
}

// The caller's death ends its call: what was read from its memory does not count, and nobody is answered.
func TestListener_TheCallerDies(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	n := s.mustReceive(t)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Receive(&n); !errors.Is(err, ErrGone) {
		t.Errorf("receive: %v, want ErrGone", err)
	}
	if err := s.Valid(n.ID); !errors.Is(err, ErrCallEnded) {
		t.Errorf("valid: %v, want ErrCallEnded", err)
	}
	if err := s.Respond(n.ID, 0, 0); !errors.Is(err, ErrCallEnded) {
		t.Errorf("respond: %v, want ErrCallEnded", err)
	}
	if _, err := s.AddFD(AddFD{ID: n.ID, Flags: AddSend}); !errors.Is(err, ErrCallEnded) {
		t.Errorf("add: %v, want ErrCallEnded", err)
	}
}

// A signal does not take a received call from its caller, so that what was performed is answered and not done again.
func TestListener_ASignalDoesNotInterruptAReceivedCall(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	n := s.mustReceive(t)
	awaitKillable(t, s.cmd.Process.Pid, n.PID)
	if err := unix.Tgkill(s.cmd.Process.Pid, int(n.PID), unix.SIGURG); err != nil {
		t.Fatal(err)
	}
	if err := s.Valid(n.ID); err != nil {
		t.Errorf("after a signal: %v", err)
	}
	if err := s.Respond(n.ID, 42, 0); err != nil {
		t.Error(err)
	}
	if err := s.Receive(&n); !errors.Is(err, ErrGone) {
		t.Errorf("the call came again (%v): %+v", err, n)
	}
	if got := answered(t, s); got.Value != 42 {
		t.Errorf("the call gave %+v, want 42", got)
	}
}

// awaitKillable waits until a thread sleeps so that only a fatal signal wakes it (TASK_KILLABLE, which shows as D). With
// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV that follows the reception of its call; without, it never comes.
func awaitKillable(t *testing.T, pid int, thread uint32) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, thread))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "\nState:\tD") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the caller can still be interrupted:\n%s", b)
		}
	}
}

// A call that died before it was received is passed over.
func TestListener_PassesOverADeadCall(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	if err := s.await(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.end()
	var n Notification
	if err := s.Receive(&n); !errors.Is(err, ErrGone) {
		t.Errorf("received %+v (%v), want ErrGone", n, err)
	}
}

// Several receivers share the calls: each call comes to one of them, and every one hears of the end.
func TestListener_SeveralReceivers(t *testing.T) {
	const calls = 300
	s := supervise(t, modeBench, strconv.Itoa(calls), askMkdir())
	var wait sync.WaitGroup
	var received sync.Map
	for range 3 {
		wait.Go(func() {
			for {
				var n Notification
				if err := s.Receive(&n); err != nil {
					if !errors.Is(err, ErrGone) {
						t.Error(err)
					}
					return
				}
				if _, twice := received.LoadOrStore(n.ID, true); twice {
					t.Errorf("call %#x was received twice", n.ID)
				}
				if err := s.Respond(n.ID, 0, unix.EPERM); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	count := 0
	received.Range(func(any, any) bool { count++; return true })
	if count != calls {
		t.Errorf("%d calls were received, want %d", count, calls)
	}
	s.wait(t)
}

func TestListener_StopEndsEveryReceive(t *testing.T) {
	s := supervise(t, modeCalls, oneMkdir(), askMkdir())
	held := s.mustReceive(t)
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			var n Notification
			if err := s.Receive(&n); !errors.Is(err, ErrStopped) {
				t.Errorf("received %+v (%v), want ErrStopped", n, err)
			}
		})
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if err := s.Stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
	if err := s.Respond(held.ID, 42, 0); err != nil {
		t.Errorf("a call received before could not be answered: %v", err)
	}
	if got := answered(t, s); got.Value != 42 {
		t.Errorf("the call gave %+v, want 42", got)
	}
}
