//go:build linux

package ns

import (
	"encoding/binary"
	"io"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkNetworkSetUp reports what each step of a network's set-up takes within the start, in microseconds of the new
// process's own clock, from many starts.
func BenchmarkNetworkSetUp(b *testing.B) {
	steps := []struct {
		name  string
		write func(*Program)
	}{
		{"nothing", func(*Program) {}},
		{"LoopbackUp", (*Program).LoopbackUp},
		{"ProhibitRoutes", (*Program).ProhibitRoutes},
		{"UnpacedTCP", (*Program).UnpacedTCP},
		{"Listen", func(p *Program) { p.Listen(0, 3128, 1080) }},
		{"ListenCapture", func(p *Program) { p.ListenCapture(4) }},
	}
	sums := make([]float64, len(steps))
	for b.Loop() {
		p := newProgram(b)
		const size = 16 // struct timespec
		clock, _ := p.Buffer(size * (len(steps) + 1))
		now := func(i int) {
			p.Call("read the clock", "", unix.SYS_CLOCK_GETTIME, Int(unix.CLOCK_MONOTONIC), Arg{value: clock.value + uintptr(size*i)})
		}
		now(0)
		for i, s := range steps {
			s.write(p)
			now(i + 1)
		}
		p.Call("write", "", unix.SYS_WRITE, Int(1), clock, Int(size*(len(steps)+1)))
		l := minimal(p, "/bin/true")
		r, w := l.output(b)
		process, err := l.start()
		w.Close()
		if err != nil {
			b.Fatal(err)
		}
		out, err := io.ReadAll(r)
		if err != nil || len(out) != size*(len(steps)+1) {
			b.Fatalf("%d bytes, %v", len(out), err)
		}
		r.Close()
		l.Stdin.Close()
		if _, err := process.Wait(); err != nil {
			b.Fatal(err)
		}
		closeFiles(process)
		at := func(i int) float64 {
			return float64(binary.NativeEndian.Uint64(out[size*i:]))*1e6 + float64(binary.NativeEndian.Uint64(out[size*i+8:]))/1e3
		}
		for i := range steps {
			sums[i] += at(i+1) - at(i)
		}
	}
	for i, s := range steps {
		b.ReportMetric(sums[i]/float64(b.N), "us:"+s.name)
	}
	b.ReportMetric(0, "ns/op")
}
