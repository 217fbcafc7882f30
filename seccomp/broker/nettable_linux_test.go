package broker

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

func init() {
	probes["net-table-native"] = func(string) any { return netTable(nativePlaces()) }
	probes["net-table"] = func(string) any { return netTable(brokerPlaces()) }
}

// places are destinations with the same behaviour, of the kernel's loopback or of the outside.
type places struct {
	live, dead, silent    netip.AddrPort
	live6, dead6, silent6 netip.AddrPort
}

func brokerPlaces() places {
	return places{outside(hostLive, 80), outside(hostDead, 80), outside(hostSilent, 80), outside6(hostLive, 80), outside6(hostDead, 80), outside6(hostSilent, 80)}
}

// nativePlaces makes servers within the sandbox.
func nativePlaces() places {
	serve := func(at string) netip.AddrPort {
		l, err := net.Listen("tcp", at)
		fatal(err)
		g := &testGate{}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go g.echo(c)
			}
		}()
		return netip.MustParseAddrPort(l.Addr().String())
	}
	p := places{live: serve("127.0.0.1:0"), live6: serve("[::1]:0")}
	p.dead, p.dead6 = netip.AddrPortFrom(p.live.Addr(), 1), netip.AddrPortFrom(p.live6.Addr(), 1)
	p.silent, p.silent6 = full(unix.AF_INET, p.live.Addr()), full(unix.AF_INET6, p.live6.Addr())
	return p
}

// full is a listener that has no room for another connection: what comes is dropped.
func full(family int, at netip.Addr) netip.AddrPort {
	fd := inetSocket(family, unix.SOCK_STREAM)
	fatal(unix.Bind(fd, sockaddrFor(family, netip.AddrPortFrom(at, 0))))
	fatal(unix.Listen(fd, 0))
	to, err := socket.Local(fd)
	fatal(err)
	fatal(connectTo(inetSocket(family, unix.SOCK_STREAM), family, to))
	return to
}

// netRecorder notes what calls return, with the places' addresses by name.
type netRecorder struct {
	recorder
	p places
}

func netTable(p places) outcomes {
	runtime.LockOSThread()
	result := outcomes{}
	for _, s := range netSituations() {
		r := &netRecorder{p: p}
		s.run(r)
		result[s.name] = r.lines
	}
	return result
}

type netSituation struct {
	name string
	run  func(r *netRecorder)
}

func (r *netRecorder) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *netRecorder) socket(family, kind int) int { return inetSocket(family, kind) }

// connect connects and notes the outcome.
func (r *netRecorder) connect(what string, fd, family int, to netip.AddrPort) {
	r.err("connect "+what, connectTo(fd, family, to))
}

// place names an address.
func (r *netRecorder) place(a netip.AddrPort) string {
	mapped := a.Addr().Is4In6()
	a = unmapped(a)
	for name, p := range map[string]netip.AddrPort{"live": r.p.live, "dead": r.p.dead, "silent": r.p.silent,
		"live6": r.p.live6, "dead6": r.p.dead6, "silent6": r.p.silent6} {
		if p == a {
			if mapped {
				name += " mapped"
			}
			return name
		}
	}
	return "elsewhere " + a.String()
}

// telling leaves out of events what comes a moment after an error.
func telling(events int16) int16 {
	if events&unix.POLLERR != 0 {
		events &^= unix.POLLIN | unix.POLLRDHUP
	}
	return events
}

// trouble notes what a socket says of its connection. Where it is bound after a failure is left out: if its program waited,
// the kernel has never tried.
func (r *netRecorder) trouble(fd int) {
	peer, err := unix.Getpeername(fd)
	r.err("getpeername", err)
	if err == nil {
		r.say("  peer %s", r.place(addrOf(peer)))
	}
	r.say("SO_ERROR %s", sockError(fd))
}

// state notes what a socket says of itself.
func (r *netRecorder) state(fd int) {
	peer, err := unix.Getpeername(fd)
	r.err("getpeername", err)
	if err == nil {
		r.say("  peer %s", r.place(addrOf(peer)))
	}
	local, err := unix.Getsockname(fd)
	r.err("getsockname", err)
	if err == nil {
		a := addrOf(local)
		r.say("  local port %t, loopback %t, mapped %t", a.Port() != 0, a.Addr().Unmap().IsLoopback(), a.Addr().Is4In6())
	}
	r.say("SO_ERROR %s", sockError(fd))
}

func addrOf(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func (r *netRecorder) echo(fd int) { r.err("echo", echoes(fd, "over there and back")) }

// events notes what poll says.
func (r *netRecorder) events(fd int, wait bool) {
	if wait {
		pollFor(fd, unix.POLLOUT)
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT | unix.POLLRDHUP}}
	_, err := unix.Poll(fds, 0)
	r.err("poll", err)
	r.say("  events %#x", telling(fds[0].Revents))
}

func (r *netRecorder) nonblock(fd int, on bool) { r.check(unix.SetNonblock(fd, on)) }

func (r *netRecorder) unspec(fd int) {
	errno := socket.Connect(fd, rawUnspec())
	r.err("connect AF_UNSPEC", asError(errno))
}

func asError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

func (r *netRecorder) rawConnect(what string, fd int, at unsafe.Pointer, size uintptr) {
	r.raw(what, unix.SYS_CONNECT, uintptr(fd), uintptr(at), size)
}

// each runs a situation for IPv4, IPv6, and IPv4 by an IPv6 socket.
func each(list *[]netSituation, name string, run func(r *netRecorder, family int, live, dead, silent netip.AddrPort)) {
	*list = append(*list,
		netSituation{name + ", IPv4", func(r *netRecorder) { run(r, unix.AF_INET, r.p.live, r.p.dead, r.p.silent) }},
		netSituation{name + ", IPv6", func(r *netRecorder) { run(r, unix.AF_INET6, r.p.live6, r.p.dead6, r.p.silent6) }},
		netSituation{name + ", mapped", func(r *netRecorder) { run(r, unix.AF_INET6, r.p.live, r.p.dead, r.p.silent) }})
}

// The kernel's rules of connect(2) and of what follows hold with a broker as without (connect(2), tcp(7), ip(7), ipv6(7)).
func TestNetTable_KernelAndBrokerSayTheSame(t *testing.T) {
	run := func(t *testing.T, s setup) (got outcomes) {
		runSandbox(t, s, &got)
		return got
	}
	want := run(t, setup{probe: "net-table-native", folder: tempFolder(t), alone: true})
	for _, c := range []struct {
		name   string
		filter func() seccomp.Filter
	}{{"network", seccomp.Network}, {"network and names", netFilter}} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t)
			s := netSetup(t, g, "net-table")
			s.filter = c.filter
			got := run(t, s)
			for _, s := range netSituations() {
				if d := diffLines(want[s.name], got[s.name]); d != "" {
					t.Errorf("%s (-kernel, +broker):\n%s", s.name, d)
				}
				if slices.ContainsFunc(want[s.name], func(l string) bool { return strings.HasPrefix(l, "setup:") }) {
					t.Errorf("%s: %q", s.name, want[s.name])
				}
			}
		})
	}
}
