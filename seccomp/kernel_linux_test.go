//go:build amd64 || arm64

package seccomp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/internal/load"
)

// The child is this test binary: it loads the filters that the first variable names, and then makes the calls of the
// second one, or executes its arguments.
const (
	envFilters = "SRT_TEST_SECCOMP_FILTERS"
	envCalls   = "SRT_TEST_SECCOMP_CALLS"
	envBench   = "SRT_TEST_SECCOMP_BENCH"
)

// call is a system call to make, with what to expect.
type call struct {
	Name   string
	Number uintptr
	Args   [6]uintptr
	Want   syscall.Errno
}

func TestMain(m *testing.M) {
	filters, ok := os.LookupEnv(envFilters)
	if !ok {
		os.Exit(m.Run())
	}
	os.Exit(child(filters))
}

func child(filters string) int {
	var programs [][]byte
	for name := range strings.SplitSeq(filters, ",") {
		for _, f := range all() {
			if f.Name == name {
				programs = append(programs, f.Program())
			}
		}
	}
	programs = append(programs, programsOf(filters)...)
	if filters == allowAll {
		programs = append(programs, retAllow())
	}
	if err := load.Load(programs...); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		return 125
	}
	os.Unsetenv(envFilters)
	switch {
	case os.Getenv(envCalls) != "":
		return makeCalls(os.Getenv(envCalls))
	case os.Getenv(envBench) != "":
		return timeCalls(os.Getenv(envBench))
	}
	path, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "exec:", err)
	return 126
}

// makeCalls answers with the errno of each call, as a JSON list.
func makeCalls(text string) int {
	var calls []call
	if err := json.Unmarshal([]byte(text), &calls); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	got := make([]syscall.Errno, len(calls))
	for i, c := range calls {
		_, _, got[i] = unix.RawSyscall6(c.Number, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
	}
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		return 125
	}
	return 0
}

// confined returns a command that runs under filters, in a session of its own.
func confined(t testing.TB, filters []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), envFilters+"="+strings.Join(filters, ","))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

func errnos(t *testing.T, filters []string, calls []call) []syscall.Errno {
	t.Helper()
	text, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	cmd := confined(t, filters)
	cmd.Env = append(cmd.Env, envCalls+"="+string(text))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, stderr.Bytes())
	}
	var got []syscall.Errno
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(calls) {
		t.Fatalf("child answered %q (%v)", out, err)
	}
	return got
}

// nr is the number of a call on the architecture of this test.
func nr(n numbers) uintptr { return uintptr(n.on(runtime.GOARCH)) }

// high is an upper half that the kernel drops from a 32-bit argument.
const high uintptr = 0xffffffff00000000

// callsOf returns the calls that show every rule of a filter at work, with arguments that change nothing should a
// filter be broken.
func callsOf(filter string) []call {
	var calls []call
	for name, n := range refusedAlways[filter] {
		if nr(n) != none {
			// An invalid descriptor or pointer everywhere.
			calls = append(calls, call{name, nr(n), [6]uintptr{^uintptr(0), 8, ^uintptr(0), 0, 0, 0}, unix.EPERM})
		}
	}
	bad := ^uintptr(0) // no descriptor, no pointer, no process
	var more []call
	switch filter {
	case "observe-writes", "observe-all":
		more = observedCalls(filter)
	case "base":
		more = []call{
			{"TIOCSTI", nr(callIoctl), [6]uintptr{bad, 0x5412}, unix.EPERM},
			{"TIOCSTI high", nr(callIoctl), [6]uintptr{bad, high | 0x5412}, unix.EPERM},
			{"TIOCLINUX", nr(callIoctl), [6]uintptr{bad, 0x541c}, unix.EPERM},
			{"TIOCLINUX high", nr(callIoctl), [6]uintptr{bad, high | 0x541c}, unix.EPERM},
			{"TIOCSETD", nr(callIoctl), [6]uintptr{bad, 0x5423}, unix.EPERM},
			{"TCGETS", nr(callIoctl), [6]uintptr{bad, 0x5401}, unix.EBADF},
			{"suspend by SEIZE", nr(callPtrace), [6]uintptr{0x4206, bad, 0, 0x200000}, unix.EPERM},
			{"suspend by SETOPTIONS", nr(callPtrace), [6]uintptr{0x4200, bad, 0, 0x200001}, unix.EPERM},
			{"SETOPTIONS", nr(callPtrace), [6]uintptr{0x4200, 0x7ffffff0, 0, 1}, unix.ESRCH},
		}
		more = append(more, socketCalls()...)
	case "namespaces":
		more = []call{
			{"clone user", nr(callClone), [6]uintptr{0x10000000 | 17}, unix.EPERM},
			{"clone user high", nr(callClone), [6]uintptr{1<<32 | 0x10000000 | 17}, unix.EPERM},
			{"clone mnt", nr(callClone), [6]uintptr{0x20000 | 17}, unix.EPERM},
			{"clone user mnt", nr(callClone), [6]uintptr{0x10020000 | 17}, unix.EPERM},
			{"clone3", nr(callClone3), [6]uintptr{0, 0}, unix.ENOSYS},
			{"unshare user", nr(callUnshare), [6]uintptr{0x10000000}, unix.EPERM},
			{"unshare mnt", nr(callUnshare), [6]uintptr{0x20000}, unix.EPERM},
			{"unshare 0x100000", nr(callUnshare), [6]uintptr{0x100000}, unix.EPERM},
			{"unshare files", nr(callUnshare), [6]uintptr{0x400}, 0},
		}
	case "unix", "unix-datagram":
		more = unixCalls(filter)
	case "ioctl-names":
		more = ioctlNamesCalls()
	case "names", "opens":
		more = namesCalls(filter)
	case "network":
		more = networkCalls()
	case "changes":
		more = changesCalls()
	case "confined":
		more = confinedCalls()
	}
	return append(calls, more...)
}

func unixCalls(filter string) []call {
	stream := syscall.Errno(0)
	if filter == "unix" {
		stream = unix.EPERM
	}
	bad := ^uintptr(0) >> 1
	return []call{
		{"stream", nr(callSocket), [6]uintptr{1, 1}, stream},
		{"stream high", nr(callSocket), [6]uintptr{high | 1, 1}, stream},
		{"seqpacket", nr(callSocket), [6]uintptr{1, 5}, stream},
		{"datagram", nr(callSocket), [6]uintptr{1, 2}, unix.EPERM},
		{"datagram with flags", nr(callSocket), [6]uintptr{1, 0x80802}, unix.EPERM},
		{"datagram high", nr(callSocket), [6]uintptr{1, high | 2}, unix.EPERM},
		{"raw", nr(callSocket), [6]uintptr{1, 3}, unix.EPERM},
		{"vsock", nr(callSocket), [6]uintptr{40, 1}, unix.EPERM},
		{"vsock high", nr(callSocket), [6]uintptr{high | 40, 1}, unix.EPERM},
		{"datagram pair", nr(callSocketpair), [6]uintptr{1, 2, 0, bad}, unix.EPERM},
		{"datagram pair high", nr(callSocketpair), [6]uintptr{high | 1, high | 0x80002, 0, bad}, unix.EPERM},
		{"raw pair", nr(callSocketpair), [6]uintptr{1, 3, 0, bad}, unix.EPERM},
		// The kernel makes the sockets before it finds the array unwritable.
		{"stream pair", nr(callSocketpair), [6]uintptr{1, 1, 0, bad}, unix.EFAULT},
		{"seqpacket pair", nr(callSocketpair), [6]uintptr{1, 5, 0, bad}, unix.EFAULT},
		{"AF_INET", nr(callSocket), [6]uintptr{2, 1}, 0},
	}
}

// namesCalls are those of names and opens, loaded without a listener: what would be asked fails with ENOSYS.
func namesCalls(filter string) []call {
	bad := ^uintptr(0) // no descriptor, no pointer
	var calls []call
	for name, n := range askedAlways {
		calls = append(calls, asked(name, n, unix.ENOSYS, bad, bad, bad, bad)...)
	}
	plain := unix.EFAULT
	if filter == "opens" {
		plain = unix.ENOSYS
	}
	for _, flags := range []uintptr{0, 2, 0x241, 0xc2, 0x40, high | 0x40, high, 0x410002, 0x210000, 0x200040} {
		want := plain
		if flags&0x40 != 0 {
			want = unix.ENOSYS
		}
		name := fmt.Sprintf("open with %#x", flags)
		calls = append(calls, asked(name, callOpen, want, bad, flags)...)
		calls = append(calls, asked(name+" at", callOpenat, want, bad, bad, flags)...)
	}
	return append(append(calls, ioctlNamesCalls()...), asked("landlock_create_ruleset", callLandlock, unix.EOPNOTSUPP, 0, 0, 1)...)
}

// asked is a call, if this architecture has it.
func asked(name string, n numbers, want syscall.Errno, args ...uintptr) []call {
	if nr(n) == none {
		return nil
	}
	c := call{Name: name, Number: nr(n), Want: want}
	copy(c.Args[:], args)
	return []call{c}
}

// ioctlNamesCalls are the requests that make a name.
func ioctlNamesCalls() (calls []call) {
	bad := ^uintptr(0)
	for _, request := range []uintptr{0x50009401, 0x5000940e, 0x50009417, 0x50009418, 0x40186f04, 0x4020bc10, 0x4030bc1d} {
		name := fmt.Sprintf("ioctl %#x", request)
		calls = append(calls, asked(name, callIoctl, unix.EPERM, bad, request)...)
		calls = append(calls, asked(name+" high", callIoctl, unix.EPERM, bad, high|request)...)
		calls = append(calls, asked(name+" and one more", callIoctl, unix.EBADF, bad, request+0x20)...)
	}
	return calls
}

func TestKernel_EveryRuleGivesItsErrno_NET81_NET83(t *testing.T) {
	for _, filter := range filterNames {
		t.Run(filter, func(t *testing.T) {
			calls := callsOf(filter)
			for i, got := range errnos(t, []string{filter}, calls) {
				if c := calls[i]; got != c.Want {
					t.Errorf("%s: got errno %d (%v), want %d (%v)", c.Name, got, got, c.Want, c.Want)
				}
			}
		})
	}
}

// With all filters loaded, the answers are still each filter's own.
func TestKernel_FiltersStack(t *testing.T) {
	all := []string{"base", "namespaces", "unix"}
	for _, filter := range all {
		calls := callsOf(filter)
		for i, got := range errnos(t, all, calls) {
			c := calls[i]
			if strings.HasPrefix(c.Name, "AF_UNIX") {
				c.Want = unix.EPERM // base leaves it to unix
			}
			if got != c.Want {
				t.Errorf("%s, %s: got %v, want %v", filter, c.Name, got, c.Want)
			}
		}
	}
}
