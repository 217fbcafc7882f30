//go:build amd64 || arm64

package seccomp

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// timeCalls makes one call over and over and prints nanoseconds for each.
func timeCalls(name string) int {
	number, a0, a1 := uintptr(unix.SYS_GETPPID), ^uintptr(0), uintptr(0)
	if name == "ioctl" {
		number, a1 = unix.SYS_IOCTL, 0x5401
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

// allowAll names a filter of one instruction, the least that any filter costs.
const allowAll = "allow-all"

// retAllow is its program: return SECCOMP_RET_ALLOW.
func retAllow() []byte { return []byte{0x06, 0, 0, 0, 0, 0, 0xff, 0x7f} }

// BenchmarkFilters reports what one system call costs with and without the filters: getppid is answered from the
// kernel's bitmap, ioctl is judged by argument. Each row is a fresh process, because a filter stays.
func BenchmarkFilters(b *testing.B) {
	for _, name := range []string{"getppid", "ioctl"} {
		for _, filters := range []string{"", allowAll, "base", "base,namespaces,unix"} {
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
