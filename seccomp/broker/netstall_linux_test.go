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
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

func init() {
	probes["net-mute"] = func(string) any { return muteProbe() }
	probes["net-mute-dissolved"] = func(string) any { return muteDissolvedProbe() }
	probes["net-mute-blocking"] = func(string) any { return muteBlockingProbe() }
	probes["net-limit-race"] = func(string) any { return limitRaceProbe() }
	probes["net-linger"] = func(string) any { return lingerProbe() }
	probes["net-many-wait"] = func(string) any { return manyWaitProbe() }
	probes["net-stolen"] = func(string) any { return stolenProbe() }
}

// mute makes a socket that drops whatever comes to it, which takes no right (IP_MINTTL, ip(7)).
func mute(mode int) int {
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|mode)
	fatal(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MINTTL, 255))
	return fd
}

// forever has the two ends of a connection wait for each other without limit, so that a test ends only if nothing waits for that.
func forever(s *Server) { s.network.patience = 1 << 60 }

// joins waits until as many connections are being joined.
func joins(s *Server, count int) {
	eventually(func() bool {
		s.network.mu.Lock()
		defer s.network.mu.Unlock()
		joining := 0
		for _, x := range s.network.connections {
			if x.mu.TryLock() {
				if x.joining && !x.settled {
					joining++
				}
				x.mu.Unlock()
			}
		}
		return joining == count
	})
}

func muteProbe() notes {
	n := notes{}
	for i := range 4 {
		n.err(fmt.Sprint(i), connectTo(mute(unix.SOCK_NONBLOCK), unix.AF_INET, outside(hostLive, 80)))
	}
	n.err("joining", ask(hostMeasure, 80))
	return n
}

// A sandbox ends while its sockets keep their other ends waiting.
func TestNet_MuteSocketsKeepNoSandboxFromEnding(t *testing.T) {
	g := newGate(t)
	s := netSetup(t, g, "net-mute")
	var server *Server
	s.server = func(made *Server) { server = made; forever(made) }
	g.measure = func() { joins(server, 4) }
	noFailures(t, runNotes(t, s, notes{"0": "EINPROGRESS", "1": "EINPROGRESS", "2": "EINPROGRESS", "3": "EINPROGRESS", "joining": "ok"}))
}

func muteDissolvedProbe() notes {
	n := notes{}
	const count = 8
	var fds []int
	for range count {
		fd := mute(unix.SOCK_NONBLOCK)
		_ = connectTo(fd, unix.AF_INET, outside(hostLive, 80))
		fds = append(fds, fd)
	}
	n.err("joining", ask(hostMeasure, 80))
	for _, fd := range fds {
		go func() { _ = unspecify(fd) }()
		go func() { _ = connectTo(fd, unix.AF_INET, outside(hostLive, 80)) }()
		go func() { sockError(fd) }()
	}
	// Whoever waits does so in its own place: more of them than workers, and others are served.
	for i := range 50 {
		n.connect(fmt.Sprint("loopback ", i%2), unix.AF_INET, 0, netip.MustParseAddrPort("127.0.0.1:9"))
		n.connect("live", unix.AF_INET, 0, outside(hostLive, 80))
	}
	return n
}

func TestNet_DissolvingMuteSocketsStallsNobody(t *testing.T) {
	g := newGate(t)
	s := netSetup(t, g, "net-mute-dissolved")
	s.workers = 2
	var server *Server
	s.server = func(made *Server) { server = made; forever(made) }
	g.measure = func() { joins(server, 8) }
	noFailures(t, runNotes(t, s, notes{"joining": "ok", "live": "ok", "loopback 0": "ECONNREFUSED", "loopback 1": "ECONNREFUSED"}))
}

func muteBlockingProbe() notes {
	n := notes{}
	for range 4 {
		fd := mute(0)
		go func() { _ = connectTo(fd, unix.AF_INET, outside(hostLive, 80)) }()
	}
	n.err("joining", ask(hostMeasure, 80))
	for range 20 {
		n.connect("live", unix.AF_INET, 0, outside(hostLive, 80))
		n.connect("loopback", unix.AF_INET, 0, netip.MustParseAddrPort("127.0.0.1:9"))
	}
	return n
}

func TestNet_BlockingMuteSocketsStallNobody(t *testing.T) {
	g := newGate(t)
	s := netSetup(t, g, "net-mute-blocking")
	s.workers = 2
	var server *Server
	s.server = func(made *Server) { server = made; forever(made) }
	g.measure = func() { joins(server, 4) }
	noFailures(t, runNotes(t, s, notes{"joining": "ok", "live": "ok", "loopback": "ECONNREFUSED"}))
}

// fullListener makes a listener that takes no further connection.
func fullListener() netip.AddrPort {
	l := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(unix.Bind(l, sockaddrFor(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:0"))))
	fatal(unix.Listen(l, 0))
	at, err := socket.Local(l)
	fatal(err)
	for range 3 {
		_ = connectTo(inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK), unix.AF_INET, at)
	}
	return at
}

// limitRaceProbe connects sockets whose time limit and mode are changed all the time.
func limitRaceProbe() notes {
	n := notes{}
	to := fullListener()
	for i := range 300 {
		fd := mute(0)
		var stop atomic.Bool
		var wait sync.WaitGroup
		wait.Go(func() {
			var none unix.Timeval
			for !stop.Load() {
				_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &none)
				if i%2 == 0 {
					_, _ = unix.SetNonblock(fd, true), unix.SetNonblock(fd, false)
				}
			}
		})
		go func() { _ = connectTo(fd, unix.AF_INET, to) }()
		time.Sleep(time.Millisecond)
		n.connect("meanwhile", unix.AF_INET, 0, netip.MustParseAddrPort("127.0.0.1:9"))
		stop.Store(true)
		wait.Wait()
	}
	return n
}

// Not even one worker ever waits in a connect.
func TestNet_NoTimeLimitStallsAWorker(t *testing.T) {
	s := netSetup(t, newGate(t), "net-limit-race")
	s.workers = 1
	noFailures(t, runNotes(t, s, notes{"meanwhile": "ECONNREFUSED"}))
}

// lingerProbe has the broker's copy of a socket be the last, which is to wait until all has been sent that nobody reads.
func lingerProbe() notes {
	n := notes{}
	l := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(unix.Bind(l, sockaddrFor(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:0"))))
	fatal(unix.Listen(l, 8))
	at, err := socket.Local(l)
	fatal(err)
	for range 4 {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		fatal(connectTo(fd, unix.AF_INET, at))
		fatal(unix.SetNonblock(fd, true))
		for err = nil; err == nil; {
			_, err = unix.Write(fd, make([]byte, 1<<16))
		}
		fatal(unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 30_000}))
		_, result := connectApart(fd, netip.MustParseAddrPort("127.0.0.1:77"))
		n.err("held", ask(hostMeasure, 80))
		fatal(unix.Close(fd))
		n.err("closed", ask(hostRelease, 80))
		n.err("result", <-result)
	}
	return n
}

func TestNet_NoLingeringSocketStallsAWorker(t *testing.T) {
	g := newGate(t)
	held := make(chan struct{})
	g.loopback = atItself(func(a netip.AddrPort) bool {
		if a.Port() == 77 {
			held <- struct{}{}
			<-g.slow
		}
		return false
	})
	g.measure = func() { <-held }
	s := netSetup(t, g, "net-linger")
	s.workers = 2
	noFailures(t, runNotes(t, s, notes{"held": "ok", "closed": "ok", "result": "EISCONN"}))
}

func manyWaitProbe() notes {
	n := notes{}
	to := fullListener()
	for i := range 200 {
		switch i % 2 {
		case 0:
			fd := mute(0)
			go func() { _ = connectTo(fd, unix.AF_INET, to) }()
		case 1:
			_ = connectTo(mute(unix.SOCK_NONBLOCK), unix.AF_INET, outside(hostLive, 80))
		}
	}
	n.err("threads", ask(hostMeasure, 80))
	return n
}

// However many wait, they take no threads.
func TestNet_WaitingTakesNoThreads(t *testing.T) {
	g := newGate(t)
	s := netSetup(t, g, "net-many-wait")
	var server *Server
	s.server = func(made *Server) { server = made; forever(made) }
	g.measure = func() {
		joins(server, 100)
		if !eventually(func() bool { return server.network.waiters.Load() == 100 }) {
			t.Errorf("%d callers wait", server.network.waiters.Load())
		}
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil || len(threads) > 150 {
			t.Errorf("%d threads, %v", len(threads), err)
		}
		if open := server.network.rest(); open != 100*lookCost {
			t.Errorf("each caller is looked at every %v", open)
		}
	}
	noFailures(t, runNotes(t, s, notes{"threads": "ok"}))
}

// stolenProbe lets another socket have the address of one that was waiting.
func stolenProbe() notes {
	n := notes{}
	at := netip.MustParseAddrPort("127.0.0.1:5555")
	fd, l := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK), inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	for _, s := range []int{fd, l} {
		fatal(unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}
	fatal(unix.Bind(fd, sockaddrFor(unix.AF_INET, at)))
	n.err("connect", connectTo(fd, unix.AF_INET, outside(hostSlow, 80)))
	fatal(unix.Shutdown(fd, unix.SHUT_RDWR))
	n.err("bind", unix.Bind(l, sockaddrFor(unix.AF_INET, at)))
	n.err("listen", unix.Listen(l, 8))
	release()
	n.err("idle", idleAgain())
	c, _, err := unix.Accept(l)
	if err == nil {
		if err = reads(c, "192.0.2.5:80\n"); err == nil {
			err = errors.New("the upstream is here")
		}
	}
	n.err("other", err)
	return n
}

// An upstream is joined with the very socket that was to be connected, not with whoever has its address meanwhile.
func TestNet_NobodyElseGetsTheUpstream(t *testing.T) {
	g := newGate(t)
	g.banner = true
	noFailures(t, runNotes(t, netSetup(t, g, "net-stolen"), notes{"connect": "EINPROGRESS", "bind": "ok", "listen": "ok", "idle": "ok", "other": "EAGAIN"}))
}

// The two addresses of a connection tell whether a socket is its end.
func TestFacing(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(l)
	fatal(unix.Bind(l, sockaddrFor(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:0"))))
	fatal(unix.Listen(l, 8))
	at, err := socket.Local(l)
	fatal(err)
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	defer unix.Close(fd)
	fatal(connectTo(fd, unix.AF_INET, at))
	from, err := socket.Local(fd)
	fatal(err)
	other := netip.MustParseAddrPort("127.0.0.1:1")
	for p, want := range map[pair]bool{{at, from}: true, {from, at}: false, {at, other}: false, {other, from}: false} {
		if facing(fd, p) != want || facing(l, p) {
			t.Errorf("%v: %v", p, !want)
		}
	}
}
