package broker

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

func init() {
	probes["net-nested"] = func(string) any { return netNestedProbe() }
	probes["net-nested-child"] = func(string) any { return netNestedChild() }
	probes["net-foreign"] = func(string) any { return netForeignProbe() }
	probes["net-own"] = func(string) any { return netOwnProbe() }
}

// netNestedProbe has a child with a network namespace of its own, and a server at the address that the child's sockets have there.
func netNestedProbe() notes {
	n := notes{}
	at := netip.MustParseAddrPort("127.0.0.1:5555")
	l := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	fatal(unix.Bind(l, sockaddrFor(unix.AF_INET, at)))
	fatal(unix.Listen(l, 8))
	cmd, err := os.Executable()
	fatal(err)
	r, w, err := os.Pipe()
	fatal(err)
	p, err := os.StartProcess(cmd, []string{cmd}, &os.ProcAttr{Env: []string{envProbe + "=net-nested-child"}, Files: []*os.File{os.Stdin, w, os.Stderr},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}, GidMappingsEnableSetgroups: false}})
	fatal(err)
	w.Close()
	err = json.NewDecoder(r).Decode(&n)
	_, err2 := p.Wait()
	n.err("child", errors.Join(err, err2))
	_, _, err = unix.Accept(l)
	n.err("outer server", err)
	n.err("idle", idleAgain())
	return n
}

func netNestedChild() notes {
	n := notes{}
	loopbackUp()
	at := netip.MustParseAddrPort("127.0.0.1:5555")
	for name, mode := range map[string]int{"blocking": 0, "non-blocking": unix.SOCK_NONBLOCK} {
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|mode)
		fatal(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		fatal(unix.Bind(fd, sockaddrFor(unix.AF_INET, at)))
		n.err(name, connectTo(fd, unix.AF_INET, outside(hostLive, 80)))
		fatal(unix.Close(fd))
	}
	n.connect("IPv6", unix.AF_INET6, 0, outside6(hostLive, 80))
	n.connect("dead", unix.AF_INET, 0, netip.MustParseAddrPort("127.0.0.1:9"))
	l := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(unix.Bind(l, sockaddrFor(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:0"))))
	fatal(unix.Listen(l, 8))
	own, err := socket.Local(l)
	fatal(err)
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	n.err("own server", connectTo(fd, unix.AF_INET, own))
	_, err = unix.Getpeername(fd)
	n.err("own peer", err)
	d := inetSocket(unix.AF_INET, unix.SOCK_DGRAM)
	n.err("datagram", connectTo(d, unix.AF_INET, outside(hostLive, 80)))
	n.err("datagram to loopback", connectTo(d, unix.AF_INET, own))
	return n
}

// loopbackUp brings lo up, in the process's own network namespace.
func loopbackUp() {
	fd := inetSocket(unix.AF_INET, unix.SOCK_DGRAM)
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	fatal(err)
	request.SetUint16(unix.IFF_UP)
	fatal(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}

// What a command makes for itself leads nowhere but where it has made a way to: no connection of it is captured, and so none is
// joined with what has the same address in the sandbox's own network.
func TestNet_NestedNetworksAreTheKernels(t *testing.T) {
	g := newGate(t)
	s := netSetup(t, g, "net-nested")
	s.more = 1 << unix.CAP_SETFCAP // without which root maps itself into nothing
	noFailures(t, runNotes(t, s, notes{"child": "ok", "outer server": "EAGAIN", "idle": "ok",
		"blocking": "ENETUNREACH", "non-blocking": "ENETUNREACH", "IPv6": "ENETUNREACH", "dead": "ECONNREFUSED", "own server": "ok", "own peer": "ok",
		"datagram": "ENETUNREACH", "datagram to loopback": "ok"}))
	g.sawOnly(t, outside(hostIdle, 80))
}

// netForeignProbe has a socket of another network as its input.
func netForeignProbe() notes {
	n := notes{}
	for _, to := range []netip.AddrPort{outside(hostLive, 80), netip.MustParseAddrPort("127.0.0.1:9"), netip.MustParseAddrPort("0.0.0.0:1081")} {
		n.err(to.String(), connectTo(0, unix.AF_INET, to))
	}
	n.err("dissolve", unspecify(0))
	return n
}

// A socket of the host's network is connected to nothing, however the command has come by it.
func TestNet_SocketsOfTheHostAreNotConnected(t *testing.T) {
	for name, kind := range map[string]int{"stream": unix.SOCK_STREAM, "non-blocking": unix.SOCK_STREAM | unix.SOCK_NONBLOCK, "datagram": unix.SOCK_DGRAM} {
		t.Run(name, func(t *testing.T) {
			fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			g := newGate(t)
			s := netSetup(t, g, "net-foreign")
			s.stdin = os.NewFile(uintptr(fd), "a socket of the host")
			defer s.stdin.Close()
			denials := runNotes(t, s, notes{"192.0.2.1:80": "EACCES", "127.0.0.1:9": "EACCES", "0.0.0.0:1081": "EACCES", "dissolve": "ok"})
			for _, d := range denials {
				if d.Err != nil || d.Why != whyForeign {
					t.Errorf("report %+v", d)
				}
			}
			if len(denials) != 3 {
				t.Errorf("reports %+v", denials)
			}
			g.sawOnly(t)
		})
	}
}

// netOwnProbe connects to the addresses that lo has beside loopback's.
func netOwnProbe() notes {
	n := notes{}
	for _, ip := range ns.OwnAddresses() {
		family := unix.AF_INET
		if ip.Is6() {
			family = unix.AF_INET6
		}
		l := inetSocket(family, unix.SOCK_STREAM)
		n.err("bind", unix.Bind(l, sockaddrFor(family, netip.AddrPortFrom(ip, 5555))))
		fatal(unix.Listen(l, 8))
		n.connect("live "+ip.String(), family, 0, netip.AddrPortFrom(ip, 5555))
		n.connect("dead "+ip.String(), family, 0, netip.AddrPortFrom(ip, 5556))
		for _, port := range []uint16{ns.CapturePort, ns.WaitingPort} {
			n.connect("srt's "+ip.String(), family, 0, netip.AddrPortFrom(ip, port))
		}
		d := inetSocket(family, unix.SOCK_DGRAM)
		n.err("datagram", connectTo(d, family, netip.AddrPortFrom(ip, 5555)))
		for _, port := range []uint16{ns.CapturePort, ns.WaitingPort} {
			s := inetSocket(family, unix.SOCK_STREAM)
			fatal(unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
			n.err("bind to srt's", unix.Bind(s, sockaddrFor(family, netip.AddrPortFrom(ip, port))))
		}
	}
	return n
}

// The addresses of lo are inside, whatever the policy says of them.
func TestNet_OwnAddressesAreInside(t *testing.T) {
	g := newGate(t)
	g.loopback = atItself(func(netip.AddrPort) bool { return true })
	four, six := ns.OwnAddresses()[0].String(), ns.OwnAddresses()[1].String()
	noFailures(t, runNotes(t, netSetup(t, g, "net-own"), notes{"bind": "ok", "live " + four: "ok", "dead " + four: "ECONNREFUSED", "live " + six: "ok",
		"dead " + six: "ECONNREFUSED", "srt's " + four: "ECONNREFUSED", "srt's " + six: "ECONNREFUSED", "datagram": "ok", "bind to srt's": "EADDRINUSE"}))
	g.sawOnly(t)
	if len(g.datagrams) > 0 {
		t.Errorf("refused datagrams %v", g.datagrams)
	}
}

// A namespace is told by its files, whatever this process is in.
func TestInspectNetwork_IsThisProcess(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own, err := inspectNetwork(int(f.Fd()))
	if os.Geteuid() != 0 {
		if err == nil {
			t.Errorf("an ordinary user is told of %+v", own)
		}
		return
	}
	if err != nil || !own.host || own.network == (nodeID{}) {
		t.Errorf("%+v, %v", own, err)
	}
}
