package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

func init() {
	probes["net-crowd"] = func(string) any { return netCrowdProbe() }
	probes["net-leak"] = func(string) any { return netLeakProbe() }
	probes["net-closed"] = func(string) any { return closedProbe() }
	probes["net-killed"] = func(string) any { return netKilledProbe() }
	probes["net-waits"] = func(string) any {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		return fmt.Sprint(connectTo(fd, unix.AF_INET, outside(hostSilent, 80)))
	}
	probes["net-stalled"] = func(string) any { return stalledProbe() }
	probes["net-full"] = func(string) any { return netFullProbe() }
	probes["net-one"] = func(string) any { return netOneProbe() }
	probes["net-rest"] = func(string) any { return netRestProbe() }
}

// idleAgain waits until nothing is dialled for and no tunnel is open.
func idleAgain() error {
	var err error
	if eventually(func() bool { err = ask(hostIdle, 80); return err == nil }) {
		return nil
	}
	return fmt.Errorf("dials or tunnels are left: %w", err)
}

// oneConnection makes one connection of a kind, and ends it. Each kind is another way for something to be left behind.
func oneConnection(i int) error {
	family, to := unix.AF_INET, outside(hostLive, uint16(1000+i%1000))
	switch i % 3 {
	case 1:
		family = unix.AF_INET6
	case 2:
		family, to = unix.AF_INET6, outside6(hostLive, 80)
	}
	mode := 0
	if i%2 == 0 {
		mode = unix.SOCK_NONBLOCK
	}
	kind := i / 6 % 6
	if kind == 1 {
		to = netip.AddrPortFrom(replaceHost(to.Addr(), hostDead), 80)
	}
	if kind == 4 {
		to, mode = netip.AddrPortFrom(replaceHost(to.Addr(), hostSilent), 80), unix.SOCK_NONBLOCK
	}
	fd := inetSocket(family, unix.SOCK_STREAM|mode)
	defer unix.Close(fd)
	err := connectTo(fd, family, to)
	if mode != 0 && errors.Is(err, unix.EINPROGRESS) {
		if kind == 2 {
			return nil // closed at once
		}
		if kind == 4 {
			return unspecify(fd)
		}
		pollFor(fd, unix.POLLOUT)
		err = nil
		if e := sockError(fd); e != "none" {
			err = errors.New(e)
		}
	}
	switch kind {
	case 1:
		if err == nil {
			return errors.New("connected to the dead")
		}
		return nil
	case 3:
		if err == nil {
			err = unspecify(fd)
		}
		return err
	}
	if err != nil {
		return err
	}
	return echoes(fd, fmt.Sprint("hello ", i))
}

func replaceHost(a netip.Addr, host byte) netip.Addr {
	if a.Is4() {
		return outside(host, 0).Addr()
	}
	return outside6(host, 0).Addr()
}

func netCrowdProbe() []string {
	var mu sync.Mutex
	var bad []string
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for {
				i := int(next.Add(1))
				if i > 2000 {
					return
				}
				if err := oneConnection(i); err != nil {
					mu.Lock()
					bad = append(bad, fmt.Sprint(i, " ", err))
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return bad
}

// Many threads connect at once, by all ways, and each gets what it asked for.
func TestNet_CrowdOfConnections(t *testing.T) {
	for _, workers := range []int{1, 64} {
		var bad []string
		s := netSetup(t, newGate(t), "net-crowd")
		s.workers = workers
		runSandbox(t, s, &bad)
		if len(bad) > 0 {
			t.Errorf("with %d workers: %d failures: %q", workers, len(bad), bad[:min(len(bad), 10)])
		}
	}
}

func netLeakProbe() []string {
	var bad []string
	for round := range 2 {
		for i := range 200 + 1800*round {
			if err := oneConnection(i); err != nil {
				bad = append(bad, fmt.Sprint(i, " ", err))
			}
		}
		if err := errors.Join(idleAgain(), ask(hostMeasure, 80)); err != nil {
			bad = append(bad, err.Error())
		}
	}
	return bad
}

// Thousands of connections leave no descriptor, goroutine or entry behind.
func TestNet_NothingLeaks(t *testing.T) {
	g := newGate(t)
	type sizes struct{ files, goroutines, known, dialling int }
	var measured []sizes
	var server *Server
	settled := func() sizes {
		n := &server.network
		n.mu.Lock()
		defer n.mu.Unlock()
		return sizes{len(openFiles()), runtime.NumGoroutine(), len(n.connections) - n.broken(), n.dialling}
	}
	g.measure = func() {
		// What ends takes a moment; it must come to what it was.
		last := settled()
		eventually(func() bool {
			last = settled()
			return last.known == 0 && last.dialling == 0 && (len(measured) == 0 || last.files <= measured[0].files && last.goroutines <= measured[0].goroutines)
		})
		measured = append(measured, last)
	}
	var bad []string
	s := netSetup(t, g, "net-leak")
	s.server = func(made *Server) { server = made }
	runSandbox(t, s, &bad)
	if len(bad) > 0 {
		t.Errorf("%d failures: %q", len(bad), bad[:min(len(bad), 10)])
	}
	if len(measured) != 2 || measured[0].known != 0 || measured[1].known != 0 || measured[1].files > measured[0].files+spareBatch ||
		measured[1].goroutines > measured[0].goroutines+2 || measured[1].dialling != 0 {
		t.Errorf("measured %+v", measured)
	}
}

// broken is how many failures are kept. n.mu is held.
func (n *network) broken() (count int) {
	for _, x := range n.connections {
		if x.state == broken {
			count++
		}
	}
	return count
}

// closedProbe closes sockets while they are dialled for.
func closedProbe() notes {
	n := notes{}
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	n.err("connect", connectTo(fd, unix.AF_INET, outside(hostSlow, 80)))
	fatal(unix.Close(fd))
	release()
	n.err("idle", idleAgain())
	return n
}

// A program that closes its socket while it is dialled for leaves no tunnel behind, and its local port is free again.
func TestNet_ClosedWhilePending(t *testing.T) {
	noFailures(t, runNotes(t, netSetup(t, newGate(t), "net-closed"), notes{"connect": "EINPROGRESS", "idle": "ok"}))
}

func netKilledProbe() notes {
	n := notes{}
	self, err := os.Executable()
	fatal(err)
	for range 4 {
		p, err := os.StartProcess(self, []string{self}, &os.ProcAttr{Env: []string{envProbe + "=net-waits"}, Files: []*os.File{os.Stdin, nil, os.Stderr}})
		fatal(err)
		awaitDials(1)
		n.err("kill", p.Kill())
		_, err = p.Wait()
		fatal(err)
		awaitDials(0)
	}
	n.err("idle", idleAgain())
	return n
}

func TestNet_KilledCallersEndTheirDials(t *testing.T) {
	s := netSetup(t, newGate(t), "net-killed")
	s.workers = 2
	noFailures(t, runNotes(t, s, notes{"kill": "ok", "idle": "ok"}))
}

// stalledProbe has more calls wait than there are workers, and connects meanwhile.
func stalledProbe() notes {
	n := notes{}
	var waiting []<-chan error
	for i := range 8 {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		_, c := dialWaiting(fd, outside(hostSlow, 80), i+1)
		waiting = append(waiting, c)
	}
	n.connect("meanwhile", unix.AF_INET, 0, outside(hostLive, 80))
	for range waiting {
		release()
	}
	for _, c := range waiting {
		n.err("they", <-c)
	}
	return n
}

func TestNet_WaitingHoldsNoWorker(t *testing.T) {
	s := netSetup(t, newGate(t), "net-stalled")
	s.workers = 1
	noFailures(t, runNotes(t, s, notes{"meanwhile": "ok", "they": "ok"}))
}

func netFullProbe() notes {
	n := notes{}
	var fds []int
	dial := func(name string, port uint16) {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		n.err(name, connectTo(fd, unix.AF_INET, outside(hostSilent, port)))
		fds = append(fds, fd)
	}
	for i := range 10 {
		dial(fmt.Sprint(i), 80)
	}
	dial("one destination", 80)
	for i := range 10 {
		dial(fmt.Sprint(10+i), 81)
	}
	n.connect("blocking", unix.AF_INET, 0, outside(hostSilent, 82))
	fatal(unspecify(fds[0]))
	if err := eventuallyConnects(outside(hostSilent, 82)); err != nil {
		n.err("after one has ended", err)
	}
	return n
}

// eventuallyConnects waits until a connect is not refused for want of room.
func eventuallyConnects(to netip.AddrPort) (err error) {
	eventually(func() bool {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		err = connectTo(fd, unix.AF_INET, to)
		return !errors.Is(err, unix.EAGAIN)
	})
	return err
}

func unspecify(fd int) error { return asError(socket.Connect(fd, rawUnspec())) }

// The dials that are under way are bounded, and half of that for one destination; beyond that a connect says so at once.
func TestNet_TooManyDials(t *testing.T) {
	s := netSetup(t, newGate(t), "net-full")
	s.server = func(made *Server) { made.network.limit = 20 }
	want := notes{"one destination": "EAGAIN", "blocking": "EAGAIN", "after one has ended": "EINPROGRESS"}
	for i := range 20 {
		want[fmt.Sprint(i)] = "EINPROGRESS"
	}
	noFailures(t, runNotes(t, s, want))
}

// Close ends a Server in the middle of dials of both kinds.
func TestNet_CloseEndsDials(t *testing.T) {
	g := newGate(t)
	b := startSandbox(t, netSetup(t, g, "net-waits"))
	if !eventually(func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.dialling == 1 }) {
		t.Error("nothing is dialled for")
	}
	if err := b.server.Close(); err != nil {
		t.Error(err)
	}
	if err := b.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-b.served; err != nil {
		t.Error(err)
	}
	b.out.Close()
	var killed *ns.KilledError
	if _, err := b.process.Wait(); !errors.As(err, &killed) {
		t.Error(err)
	}
}

// netRestProbe leaves tunnels and dials behind when it ends.
func netRestProbe() string {
	for i := range 10 {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		fatal(connectTo(fd, unix.AF_INET, outside(hostLive, 80)))
		fd = inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		if err := connectTo(fd, unix.AF_INET, outside([]byte{hostLive, hostSilent}[i%2], 80)); !errors.Is(err, unix.EINPROGRESS) {
			return err.Error()
		}
	}
	return "left"
}

// What a program leaves behind ends with the sandbox.
func TestNet_TheEndOfTheSandboxEndsAll(t *testing.T) {
	g := newGate(t)
	var got string
	runSandbox(t, netSetup(t, g, "net-rest"), &got)
	if got != "left" {
		t.Error(got)
	}
}
