package broker

import (
	"context"
	"io"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func netOneProbe() notes {
	n := notes{}
	n.connect("blocking", unix.AF_INET, 0, outside(hostLive, 80))
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	n.err("non-blocking", connectTo(fd, unix.AF_INET, outside(hostLive, 80)))
	pollFor(fd, unix.POLLOUT)
	n["error"] = sockError(fd)
	fatal(unix.Close(fd))
	return n
}

// faultyGate does something wrong.
type faultyGate struct {
	*testGate
	judge func()
}

func (g *faultyGate) Judge(pid int, dst netip.AddrPort) (Way, error) {
	g.judge()
	return g.testGate.Judge(pid, dst)
}

// A mistake of srt's own refuses the connection and is reported.
func TestNet_FaultsFailTheCallAndAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		gate    func(g *testGate) Gate
		mutate  func(c *Config)
		want    notes
		reports int
	}{
		"judge": {gate: func(g *testGate) Gate { return &faultyGate{testGate: g, judge: func() { panic("test") }} },
			want: notes{"blocking": "EIO", "non-blocking": "EIO", "error": "none"}, reports: 2},
		"no policy": {mutate: func(c *Config) { c.Gate = nil },
			want: notes{"blocking": "EIO", "non-blocking": "EIO", "error": "none"}, reports: 2},
		"no hand": {mutate: func(c *Config) { c.NewHand = func() (Hand, error) { return nil, io.ErrNoProgress } },
			want: notes{"blocking": "ok", "non-blocking": "EINPROGRESS", "error": "EIO"}, reports: 1},
		"dead hand": {mutate: func(c *Config) {
			start := c.NewHand
			c.NewHand = func() (Hand, error) {
				h, err := start()
				if err == nil {
					err = h.Kill()
				}
				return h, err
			}
		}, want: notes{"blocking": "ok", "non-blocking": "EINPROGRESS", "error": "EIO"}, reports: 1},
		"dial": {gate: func(g *testGate) Gate { return panicGate{g} },
			want: notes{"blocking": "EIO", "non-blocking": "EINPROGRESS", "error": "EIO"}, reports: 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			s := netSetup(t, g, "net-one")
			if c.gate != nil {
				s.gate = c.gate(g)
			}
			s.mutate = c.mutate
			denials := runNotes(t, s, c.want)
			if len(denials) != c.reports {
				t.Errorf("reports %+v", denials)
			}
			for _, d := range denials {
				if d.Err == nil || d.Call != "connect" {
					t.Errorf("report %+v", d)
				}
			}
		})
	}
}

// panicGate has ways that panic.
type panicGate struct{ *testGate }

func (g panicGate) Judge(int, netip.AddrPort) (Way, error) { return panicWay{}, nil }

type panicWay struct{}

func (panicWay) Dial(context.Context) (Upstream, error) { panic("test") }

// Of failures that nobody asks for the oldest are dropped.
func TestNet_KeptFailuresAreBounded(t *testing.T) {
	n := network{connections: map[uint64]*connection{}}
	for i := range uint64(3 * maxFailed) {
		x := &connection{network: &n, cookie: i}
		n.connections[i] = x
		n.settle(x, unix.ECONNREFUSED, true)
		if i%3 == 0 {
			n.forget(x) // it was asked for
		}
	}
	if len(n.connections) > maxFailed || len(n.failed) > maxFailed || len(n.connections) < maxFailed/2 {
		t.Errorf("%d are kept, %d in order", len(n.connections), len(n.failed))
	}
	if _, ok := n.connections[3*maxFailed-1]; !ok {
		t.Error("the newest is gone")
	}
}
