package bpf

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What the tracer costs a process outside of every sandbox: nothing measurable is the aim, and the difference between
// "alone" and "traced" the answer.
func BenchmarkTracer_Outside(b *testing.B) {
	for _, call := range []struct {
		name string
		do   func()
	}{
		{"getppid", func() { unix.Getppid() }},
		{"open+close", func() { must(openForReading("/dev/null")) }},
		{"refused mkdir", func() { _ = unix.Mkdir("/proc/none", 0o700) }},
	} {
		b.Run(call.name+"/alone", func(b *testing.B) {
			for b.Loop() {
				call.do()
			}
		})
		b.Run(call.name+"/traced", func(b *testing.B) {
			newTracer(b)
			for b.Loop() {
				call.do()
			}
		})
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// What a refused call costs in a sandbox: 1,000 of them in each round.
func BenchmarkTracer_Inside(b *testing.B) {
	dir := foreignDir(b)
	line := "repeat 1000 " + dir + "/closed/x"
	b.Run("alone", func(b *testing.B) {
		c := startChild(b, 0)
		for b.Loop() {
			c.must(line)
		}
	})
	b.Run("traced", func(b *testing.B) {
		tr, c := newTracer(b), startChild(b, 0)
		trace, err := tr.Trace(c.namespace, TraceOptions{}, func(Refused) bool { return true })
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			c.must(line)
		}
		lost, err := trace.Close()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(lost)/float64(b.N), "lost/op")
	})
}

// What loading and unloading cost a process, once.
func BenchmarkTracer_Load(b *testing.B) {
	for b.Loop() {
		if err := newTracer(b).Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// What a sandbox costs.
func BenchmarkTracer_Trace(b *testing.B) {
	tr, c := newTracer(b), startChild(b, 0)
	for b.Loop() {
		trace, err := tr.Trace(c.namespace, TraceOptions{}, func(Refused) bool { return true })
		if err != nil {
			b.Fatal(err)
		}
		if _, err := trace.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
