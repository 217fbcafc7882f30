//go:build linux

package ns

import (
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func BenchmarkStartHand(b *testing.B) {
	box := newBox(b, true)
	for b.Loop() {
		h, err := StartHand(box.config())
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHand is one round trip, on a locked thread as the broker's workers are.
func BenchmarkHand(b *testing.B) {
	box := newBox(b, true)
	for _, c := range []struct {
		name  string
		write func(*Hand, *Program)
	}{
		{"getpid", func(_ *Hand, p *Program) { p.Call("getpid", "", syscall.SYS_GETPID) }},
		{"open", func(_ *Hand, p *Program) { p.Close(openAt(p, box.path("rw/f"), unix.O_CREAT|unix.O_WRONLY)) }},
		{"reopen", func(_ *Hand, p *Program) {
			p.ReopenFD("open again", "", openAt(p, box.path("ro/f"), unix.O_PATH), unix.O_RDONLY)
		}},
		{"passed", func(h *Hand, _ *Program) { h.Pass(box.stdin) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			h := box.hand(b)
			b.ReportAllocs()
			for b.Loop() {
				c.write(h, h.Program())
				if r, err := h.Do(); err != nil || r.Failed >= 0 {
					b.Fatal(r.Err(), err)
				}
			}
		})
	}
}
