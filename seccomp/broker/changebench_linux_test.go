package broker

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	for name, b := range changeBenchmarks {
		probes["bench-change-"+name] = func(string) any { return timeIt(b.prepare, b.f) }
	}
}

func nothing(int) {}

// changeBenchmarks are what a build does most where every change comes to the broker.
var changeBenchmarks = map[string]struct{ prepare, f func(i int) }{
	"create":  {nothing, func(i int) { rawCreate(fmt.Sprintf("f%d", i), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY) }},
	"rewrite": {nothing, func(int) { rawCreate("same", unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC) }},
	"append": {func(i int) {
		if i == 0 {
			closeFD(unix.Open("same", unix.O_CREAT|unix.O_WRONLY, 0o644))
		}
	}, func(int) { rawCreate("same", unix.O_WRONLY|unix.O_APPEND) }},
	"unlink":  {func(i int) { rawCreate(fmt.Sprintf("f%d", i), unix.O_CREAT|unix.O_WRONLY) }, func(i int) { fatal(unix.Unlink(fmt.Sprintf("f%d", i))) }},
	"rename":  {func(i int) { rawCreate(fmt.Sprintf("f%d", i), unix.O_CREAT|unix.O_WRONLY) }, func(i int) { fatal(unix.Rename(fmt.Sprintf("f%d", i), fmt.Sprintf("g%d", i))) }},
	"mkdir":   {nothing, func(i int) { fatal(unix.Mkdir(fmt.Sprintf("d%d", i), 0o755)) }},
	"chmod":   {func(int) { rawCreate("same", unix.O_CREAT|unix.O_WRONLY) }, func(i int) { fatal(unix.Chmod("same", uint32(0o600+i&7))) }},
	"times":   {func(int) { rawCreate("same", unix.O_CREAT|unix.O_WRONLY) }, func(int) { fatal(unix.UtimesNanoAt(unix.AT_FDCWD, "same", nil, 0)) }},
	"devnull": {nothing, func(int) { rawCreate("/dev/null", unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC) }},
	"read":    {func(int) { rawCreate("same", unix.O_CREAT|unix.O_WRONLY) }, func(int) { closeFD(unix.Open("same", unix.O_RDONLY, 0)) }},
}

// BenchmarkChanges reports what one call costs, with a judge of changes and without any broker.
func BenchmarkChanges(b *testing.B) {
	for name := range changeBenchmarks {
		for _, with := range []string{"kernel", "changes"} {
			b.Run(name+"/"+with, func(b *testing.B) {
				var sum float64
				for range b.N {
					s := setup{probe: "bench-change-" + name, folder: memoryFolder(b), confined: true, watched: true}
					if with == "changes" {
						s.changes, s.walls = &changeJudge{}, true
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
