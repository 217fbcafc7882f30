package broker

import (
	"context"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	probes["net-bench-native"] = func(string) any { return netBench(nativePlaces()) }
	probes["net-bench"] = func(string) any { return netBench(brokerPlaces()) }
}

// netBench gives the nanoseconds that connecting takes at the median, without the making and closing of the socket.
func netBench(p places) map[string]float64 {
	const n = 3000
	result := map[string]float64{}
	measure := func(name string, mode int, connect func(fd int)) {
		var times []time.Duration
		for range n {
			fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|mode)
			start := time.Now()
			connect(fd)
			times = append(times, time.Since(start))
			fatal(unix.Close(fd))
		}
		slices.Sort(times)
		result[name] = float64(times[n/2].Nanoseconds())
	}
	measure("blocking", 0, func(fd int) { fatal(connectTo(fd, unix.AF_INET, p.live)) })
	measure("non-blocking", unix.SOCK_NONBLOCK, func(fd int) {
		_ = connectTo(fd, unix.AF_INET, p.live)
		pollFor(fd, unix.POLLOUT)
		if sockError(fd) != "none" {
			panic("not connected")
		}
	})
	if p.live == outside(hostLive, 80) {
		measure("refused", 0, func(fd int) { _ = connectTo(fd, unix.AF_INET, outside(hostDenied, 80)) })
	} else {
		measure("refused", 0, func(fd int) { _ = connectTo(fd, unix.AF_INET, p.dead) })
	}
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(connectTo(fd, unix.AF_INET, p.live))
	again := func(name string, call func()) {
		var times []time.Duration
		for range n {
			start := time.Now()
			call()
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		result[name] = float64(times[n/2].Nanoseconds())
	}
	again("SO_ERROR", func() { sockError(fd) })
	again("getpeername", func() { _, _ = unix.Getpeername(fd) })
	fatal(unix.Close(fd))
	return result
}

// BenchmarkConnect reports what connecting costs a program: by the kernel to a server on loopback, and by the broker, with
// the dial to a server on the host's loopback.
func BenchmarkConnect(b *testing.B) {
	for name, s := range map[string]func(b *testing.B) setup{
		"kernel": func(b *testing.B) setup { return setup{probe: "net-bench-native", folder: tempFolder(b), alone: true} },
		"broker without dialling": func(b *testing.B) setup {
			return netSetup(b, instantGate{newGate(b)}, "net-bench")
		},
		"broker": func(b *testing.B) setup { return netSetup(b, newGate(b), "net-bench") },
	} {
		b.Run(name, func(b *testing.B) {
			sums := map[string]float64{}
			for range b.N {
				var got map[string]float64
				runSandbox(b, s(b), &got)
				for k, v := range got {
					sums[k] += v
				}
			}
			for k, v := range sums {
				b.ReportMetric(v/float64(b.N), k+"-ns")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// instantGate has a connection to everything, that leads nowhere.
type instantGate struct{ *testGate }

func (g instantGate) Judge(pid int, dst netip.AddrPort) (Way, error) {
	way, err := g.testGate.Judge(pid, dst)
	if err != nil {
		return nil, err
	}
	return instantWay{way}, nil
}

type instantWay struct{ Way }

func (instantWay) Dial(context.Context) (Upstream, error) { return instantUpstream{}, nil }

type instantUpstream struct{}

func (instantUpstream) Close() error { return nil }

func (instantUpstream) Relay(conn net.Conn, done func()) {
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
		done()
	}()
}
