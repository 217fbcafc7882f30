package notify

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/internal/load"
)

// What cannot be undone happens in a child: this test binary, executed once more. It stands under an outer filter if the
// second variable names one, loads the programs of the third, the last of them with a listener that it sends over
// descriptor 3, and then does what its mode says.
const (
	envMode    = "SRT_TEST_NOTIFY_MODE"
	envOuter   = "SRT_TEST_NOTIFY_OUTER"
	envFilters = "SRT_TEST_NOTIFY_FILTERS"
	envCalls   = "SRT_TEST_NOTIFY_CALLS"

	modeAvailable     = "available"      // prints the reason that Available gives
	modeLeavesNothing = "leaves-nothing" // asks Available often and looks at its own threads and descriptors
	modeCalls         = "calls"          // makes the calls of the fourth variable and prints what they gave
	modeOpen          = "open"           // opens a file for creation, reads from it and prints its flags and what it read
	modeBench         = "bench"          // makes as many mkdirat calls as the fourth variable says, prints the time of each

	sockFD = 3
)

// TestMain also checks that no test left a descriptor open.
func TestMain(m *testing.M) {
	mode, ok := os.LookupEnv(envMode)
	if !ok {
		// The runtime's poller opens descriptors of its own at the first pipe, and keeps them.
		if r, w, err := os.Pipe(); err == nil {
			r.Close()
			w.Close()
		}
		before := descriptors()
		code := m.Run()
		if after := descriptors(); code == 0 && after > before {
			fmt.Fprintf(os.Stderr, "%d descriptors were open before the tests and %d are now\n", before, after)
			code = 1
		}
		os.Exit(code)
	}
	runtime.LockOSThread()
	if err := childMain(mode); err != nil {
		fmt.Fprintln(os.Stderr, mode+":", err)
		os.Exit(125)
	}
}

// child returns the command of a child under an outer filter ("": none).
func child(t testing.TB, mode, outer string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	// The race detector would otherwise wait a second at the end of each child.
	cmd.Env = append(os.Environ(), envMode+"="+mode, envOuter+"="+outer, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func childMain(mode string) error {
	if outer := os.Getenv(envOuter); outer != "" {
		return underOuter(outer)
	}
	if text := os.Getenv(envFilters); text != "" {
		if err := loadAndSend(strings.Split(text, ",")); err != nil {
			return err
		}
	}
	switch mode {
	case modeAvailable:
		return printReason()
	case modeLeavesNothing:
		return leavesNothing()
	case modeCalls:
		return makeCalls(os.Getenv(envCalls))
	case modeOpen:
		return openAndRead()
	case modeBench:
		return timeCalls(os.Getenv(envCalls))
	}
	return errors.New("no such mode")
}

// underOuter puts this thread under a filter and executes the binary once more, so that the whole process is.
func underOuter(outer string) error {
	switch outer {
	case "allow":
		if err := load.Load(ret(unix.SECCOMP_RET_ALLOW)); err != nil {
			return err
		}
	case "no-seccomp":
		if err := load.Load(answers(unix.SYS_SECCOMP, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))); err != nil {
			return err
		}
	case "listener":
		fd, err := load.Listen(ret(unix.SECCOMP_RET_ALLOW))
		if err != nil {
			return err
		}
		// Open for as long as the process lives.
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	os.Unsetenv(envOuter)
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// loadAndSend loads programs, given as Go-quoted strings, and sends the listener of the last one.
func loadAndSend(quoted []string) error {
	for i, q := range quoted {
		text, err := strconv.Unquote(q)
		if err != nil {
			return err
		}
		if i < len(quoted)-1 {
			if err := load.Load([]byte(text)); err != nil {
				return err
			}
			continue
		}
		fd, err := load.Listen([]byte(text))
		if err != nil {
			return err
		}
		if err := unix.Sendmsg(sockFD, []byte{0}, unix.UnixRights(fd), nil, 0); err != nil {
			return err
		}
		unix.Close(fd)
	}
	return nil
}

func printReason() error {
	err := Available()
	var u *UnavailableError
	switch {
	case err == nil:
		fmt.Println("nil")
	case errors.As(err, &u):
		fmt.Println(u.Reason)
	default:
		return err
	}
	return nil
}

// leavesNothing waits for the threads of the probes, which end after they have answered.
func leavesNothing() error {
	if err := Available(); err != nil { // Go's runtime opens its poller when it first needs it
		return err
	}
	before := descriptors()
	for range 20 {
		if err := Available(); err != nil {
			return err
		}
	}
	if after := descriptors(); after != before {
		return fmt.Errorf("%d descriptors were open and %d are", before, after)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		worst, err := mostFilters()
		if err != nil || worst == 1 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a thread is under %d filters, want 1", worst)
		}
		runtime.Gosched()
	}
}

// mostFilters is the highest number of filters that a thread of this process is under.
func mostFilters() (most int, err error) {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return 0, err
	}
	for _, name := range tasks {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // ended
		}
		_, rest, _ := strings.Cut(string(b), "\nSeccomp_filters:")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(list)
}

// call is a system call to make, and gave what came of it.
type call struct {
	Name   string
	Number uintptr
	Args   [6]uintptr
	Asked  bool          // is it put to the listener?
	Want   syscall.Errno // what it gives if not
}

type gave struct {
	Value uintptr
	Errno syscall.Errno
}

func makeCalls(text string) error {
	var calls []call
	if err := json.Unmarshal([]byte(text), &calls); err != nil {
		return err
	}
	got := make([]gave, len(calls))
	for i, c := range calls {
		got[i].Value, _, got[i].Errno = unix.RawSyscall6(c.Number, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
	}
	return json.NewEncoder(os.Stdout).Encode(got)
}

func openAndRead() error {
	fd, err := unix.Openat(unix.AT_FDCWD, "/nowhere/at/all", unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		fmt.Println("open:", err)
		return nil
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil {
		return err
	}
	var b [16]byte
	n, err := unix.Pread(fd, b[:], 0)
	fmt.Println(fd, flags, string(b[:n]))
	return err
}

func timeCalls(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	start := time.Now()
	for range n {
		unix.RawSyscall(unix.SYS_MKDIRAT, ^uintptr(0), 0, 0)
	}
	fmt.Println(float64(time.Since(start).Nanoseconds()) / float64(n))
	return nil
}

// ret is a program of one instruction.
func ret(action uint32) []byte { return insn(nil, unix.BPF_RET|unix.BPF_K, 0, 0, action) }

// answers is a program that gives one system call an answer and allows the rest.
func answers(number, action uint32) []byte {
	b := insn(nil, unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, 0)
	b = insn(b, unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, number)
	b = insn(b, unix.BPF_RET|unix.BPF_K, 0, 0, action)
	return insn(b, unix.BPF_RET|unix.BPF_K, 0, 0, unix.SECCOMP_RET_ALLOW)
}

func insn(b []byte, op uint16, jt, jf uint8, k uint32) []byte {
	b = binary.NativeEndian.AppendUint16(b, op)
	return binary.NativeEndian.AppendUint32(append(b, jt, jf), k)
}
