package broker

import (
	"fmt"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

func init() {
	for name, f := range benchmarks {
		prepare := func(int) {}
		if name == "rename" || name == "read" {
			prepare = benchmarks["create"]
		}
		probes["bench-"+name] = func(string) any { return timeIt(prepare, f) }
	}
}

// benchmarks are what a build does most.
var benchmarks = map[string]func(i int){
	"create": func(i int) { rawCreate(fmt.Sprintf("f%d", i), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) },
	"absolute": func(i int) {
		rawCreate(fmt.Sprintf("%s/a%d", folderOfProbe, i), unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC)
	},
	"rewrite": func(int) { closeFD(unix.Open("same", unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC, 0o644)) },
	"mkdir":   func(i int) { fatal(unix.Mkdir(fmt.Sprintf("d%d", i), 0o755)) },
	"rename":  func(i int) { fatal(unix.Rename(fmt.Sprintf("f%d", i), fmt.Sprintf("g%d", i))) },
	"read":    func(int) { closeFD(unix.Open("f0", unix.O_RDONLY, 0)) },
}

// rawCreate keeps the caller's own scheduler out of the measurement.
func rawCreate(name string, flags uintptr) {
	path := append([]byte(name), 0)
	at := unix.AT_FDCWD
	fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])), flags, 0o644, 0, 0)
	if errno == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	}
	if errno != 0 {
		panic(errno)
	}
}

var folderOfProbe string

func closeFD(fd int, err error) {
	fatal(err)
	fatal(unix.Close(fd))
}

func fatal(err error) {
	if err != nil {
		panic(err)
	}
}

// timeIt gives nanoseconds for each of 10,000 calls.
func timeIt(prepare, f func(int)) float64 {
	var err error
	if folderOfProbe, err = unix.Getwd(); err != nil {
		panic(err)
	}
	const n = 10_000
	for i := range n {
		prepare(i)
	}
	start := time.Now()
	for i := range n {
		f(i)
	}
	return float64(time.Since(start).Nanoseconds()) / n
}

// BenchmarkCalls reports what one call and its close cost, with and without a broker.
func BenchmarkCalls(b *testing.B) {
	for name := range benchmarks {
		for _, with := range []string{"kernel", "broker", "watched", "suspect", "reads"} {
			if name == "read" && with != "kernel" && with != "reads" {
				continue // not put to a listener
			}
			b.Run(name+"/"+with, func(b *testing.B) {
				var sum float64
				for range b.N {
					s := setup{probe: "bench-" + name, folder: memoryFolder(b), filter: seccomp.Names}
					switch with {
					case "broker":
						s.judge = &testJudge{}
					case "watched":
						s.judge, s.watched = &testJudge{}, true
					case "suspect":
						s.judge = &testJudge{suspect: anything}
					case "reads":
						s.judge, s.filter = &testJudge{reads: true}, seccomp.Opens
					}
					var ns float64
					runSandbox(b, s, &ns)
					sum += ns
				}
				b.ReportMetric(sum/float64(b.N), "ns/call")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
