//go:build amd64 || arm64

package seccomp

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// timeCalls makes one call over and over and prints nanoseconds for each.
func timeCalls(name string) int {
	number, a0, a1 := uintptr(unix.SYS_GETPPID), ^uintptr(0), uintptr(0)
	switch name {
	case "ioctl":
		number, a1 = unix.SYS_IOCTL, 0x5401
	case "openat":
		number = unix.SYS_OPENAT // for reading, of a name that cannot be read
	case "sendto":
		number = unix.SYS_SENDTO // on no descriptor
	case "open and close":
		return timePairs(openPasswd)
	case "socket and close":
		return timePairs(func() (uintptr, unix.Errno) {
			fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			return fd, errno
		})
	}
	const rounds, calls = 5, 200_000
	best := time.Duration(1 << 62)
	for range rounds {
		start := time.Now()
		for range calls {
			unix.RawSyscall(number, a0, a1, 0)
		}
		best = min(best, time.Since(start))
	}
	fmt.Println(float64(best.Nanoseconds()) / calls)
	return 0
}

// passwd is a file that every user may read.
var passwd = []byte("/etc/passwd\x00")

func openPasswd() (uintptr, unix.Errno) {
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, ^uintptr(99), uintptr(unsafe.Pointer(&passwd[0])), unix.O_CLOEXEC, 0, 0, 0)
	return fd, errno
}

// timePairs makes a descriptor and closes it, over and over, and prints nanoseconds for each pair.
func timePairs(open func() (uintptr, unix.Errno)) int {
	const rounds, calls = 5, 20_000
	best := time.Duration(1 << 62)
	for range rounds {
		start := time.Now()
		for range calls {
			fd, errno := open()
			if errno != 0 {
				fmt.Fprintln(os.Stderr, errno)
				return 125
			}
			unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
		best = min(best, time.Since(start))
	}
	fmt.Println(float64(best.Nanoseconds()) / calls)
	return 0
}

// allowAll names a filter of one instruction, the least that any filter costs.
const allowAll = "allow-all"

// Programs that a sandbox with a broker loads.
const (
	joined  = "joined with names and network"
	connect = "joined with network"
)

// programsOf gives the programs of a sandbox with a broker, none for other names.
func programsOf(name string) (programs [][]byte) {
	set := map[string][]Filter{
		joined:  {Base(), Namespaces(), UnixDatagram(), Names(), Network()},
		connect: {Base(), Namespaces(), UnixDatagram(), Network()},
	}[name]
	for _, f := range Stack(set...) {
		programs = append(programs, f.Program())
	}
	return programs
}

// retAllow is its program: return SECCOMP_RET_ALLOW.
func retAllow() []byte { return []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f} }

// BenchmarkFilters reports what one system call costs with and without the filters: getppid is answered from the
// kernel's bitmap, ioctl and socket are judged by argument, under names so is openat, under network sendto. Each row is a fresh process, because a filter stays.
func BenchmarkFilters(b *testing.B) {
	for _, name := range []string{"getppid", "ioctl", "openat", "sendto", "open and close", "socket and close"} {
		for _, filters := range []string{"", allowAll, "base", "base,namespaces,unix", "base,namespaces,unix,names", connect, joined} {
			b.Run(name+"/"+strings.ReplaceAll("filters="+filters, ",", "+"), func(b *testing.B) {
				var sum float64
				for b.Loop() {
					sum += measure(b, name, filters)
				}
				b.ReportMetric(sum/float64(b.N), "ns/call")
			})
		}
	}
}

func measure(b *testing.B, name, filters string) float64 {
	b.Helper()
	cmd := confined(b, []string{filters})
	cmd.Env = append(cmd.Env, envBench+"="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	var ns float64
	if _, err := fmt.Sscan(string(out), &ns); err != nil {
		b.Fatal(err)
	}
	return ns
}
