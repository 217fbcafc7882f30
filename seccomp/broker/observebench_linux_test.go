package broker

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() {
	probes["bench-observed-write"] = func(string) any {
		return bestOf(func(int) { closeFD(unix.Open("w/file", unix.O_WRONLY, 0)) })
	}
	probes["bench-observed-read"] = func(string) any {
		return bestOf(func(int) { closeFD(unix.Open("w/file", unix.O_RDONLY, 0)) })
	}
	probes["bench-observed-absolute"] = func(f string) any {
		return bestOf(func(int) { closeFD(unix.Open(f+"/w/file", unix.O_RDONLY, 0)) })
	}
	probes["bench-observed-missing"] = func(string) any {
		return bestOf(func(int) { _, _ = unix.Open("w/none", unix.O_RDONLY, 0) })
	}
	probes["bench-observed-create"] = func(string) any {
		return bestOf(func(i int) { rawCreate(fmt.Sprintf("w/c%d", i), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) })
	}
	probes["bench-observed-refused"] = func(string) any {
		return bestOf(func(int) { _ = unix.Mkdir("ro/x", 0o755) })
	}
	probes["bench-observed-stat"] = func(string) any {
		var st unix.Stat_t
		return bestOf(func(int) { must(unix.Stat("w/file", &st)) })
	}
	probes["bench-observed-exec"] = func(string) any { return bestOf(func(int) { must(exec.Command("/bin/true").Run()) }) }
}

// bestOf gives nanoseconds for each call in the fastest of several rounds, which others on the machine disturbed least.
func bestOf(f func(int)) float64 {
	const rounds, n = 20, 100
	best := time.Duration(1 << 62)
	for r := range rounds {
		start := time.Now()
		for i := range n {
			f(r*n + i)
		}
		best = min(best, time.Since(start))
	}
	return float64(best.Nanoseconds()) / n
}

// BenchmarkObserved reports what a call costs without an observer, and with one that tells of writes alone or of all.
func BenchmarkObserved(b *testing.B) {
	for _, call := range []string{"read", "write", "absolute", "missing", "create", "refused", "stat", "exec"} {
		for _, with := range []string{"kernel", "writes", "all"} {
			b.Run(call+"/"+with, func(b *testing.B) {
				var sum float64
				for range b.N {
					f := observedFolder(b)
					var server *Server
					s := observing(f, "bench-observed-"+call, with == "all", &server)
					switch with {
					case "kernel":
						s.judge = nil
					case "writes":
						s.filter = seccomp.ObserveWrites
					}
					var ns float64
					runSandbox(b, s, &ns)
					sum += ns
				}
				b.ReportMetric(sum/float64(b.N)/1000, "us/call")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
