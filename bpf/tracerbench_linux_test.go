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
			beginTrace(b, newTracer(b), startChild(b, 0))
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
		trace := beginTrace(b, tr, c)
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

// What a sandbox costs: after another one, and as the first in a while, which attaches the program.
func BenchmarkTracer_Trace(b *testing.B) {
	for name, after := range map[string]func(*Tracer){"next": func(*Tracer) {}, "first": (*Tracer).detach} {
		b.Run(name, func(b *testing.B) {
			tr, c := newTracer(b), startChild(b, 0)
			for b.Loop() {
				if _, err := beginTrace(b, tr, c).Close(); err != nil {
					b.Fatal(err)
				}
				after(tr)
			}
		})
	}
}

func beginTrace(b *testing.B, tr *Tracer, c *child) *Trace {
	b.Helper()
	trace, err := tr.Trace(c.namespace, TraceOptions{Reads: true, Hides: true}, func(Refused) bool { return true })
	if err != nil {
		b.Fatal(err)
	}
	return trace
}
