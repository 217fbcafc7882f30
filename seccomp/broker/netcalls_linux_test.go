package broker

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/ns"
)

func init() {
	probes["net-refused"] = func(string) any { return refusedProbe() }
	probes["net-memory"] = func(string) any { return netMemoryProbe() }
	probes["net-host"] = func(string) any { return hostLoopbackProbe() }
	probes["net-pair"] = func(string) any { return hostPairProbe() }
	probes["net-signals"] = func(string) any { return netSignalsProbe() }
	probes["net-kernel-signals"] = func(string) any { return kernelSignalsProbe() }
	probes["net-bind"] = func(string) any { return netBindProbe() }
	probes["net-files"] = func(string) any { return netFilesProbe() }
}

// notes are what a probe found, by what it did.
type notes map[string]string

func (n notes) err(what string, err error) {
	text := "ok"
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		text = unix.ErrnoName(errno)
	} else if err != nil {
		text = err.Error()
	}
	n[what] = text
}

func (n notes) connect(what string, family, mode int, to netip.AddrPort) {
	fd := inetSocket(family, unix.SOCK_STREAM|mode)
	n.err(what, connectTo(fd, family, to))
	fatal(unix.Close(fd))
}

// runNotes runs a probe and compares.
func runNotes(t *testing.T, s setup, want notes) []Denial {
	t.Helper()
	var got notes
	b := startSandbox(t, s)
	denials := b.finishWith(t, &got)
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			t.Errorf("%s: %s, want %s", k, got[k], want[k])
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %s", k, got[k])
		}
	}
	return denials
}

func noFailures(t *testing.T, denials []Denial) {
	t.Helper()
	for _, d := range denials {
		t.Errorf("report %+v", d)
	}
}

func refusedProbe() notes {
	n := notes{}
	for name, mode := range map[string]int{"": 0, " non-blocking": unix.SOCK_NONBLOCK} {
		n.connect("denied"+name, unix.AF_INET, mode, outside(hostDenied, 80))
		n.connect("denied IPv6"+name, unix.AF_INET6, mode, outside6(hostDenied, 80))
		n.connect("denied mapped"+name, unix.AF_INET6, mode, outside(hostDenied, 80))
		for _, at := range []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"} {
			for _, port := range []uint16{ns.CapturePort, ns.WaitingPort} {
				n.connect(fmt.Sprint(at, " ", port, name), unix.AF_INET6, mode, netip.AddrPortFrom(netip.MustParseAddr(at), port))
			}
		}
	}
	for _, errno := range []syscall.Errno{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ETIMEDOUT, unix.EACCES} {
		n.connect("dial "+unix.ErrnoName(errno), unix.AF_INET, 0, outside(hostFailing, uint16(errno)))
		fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		n.err("dial", connectTo(fd, unix.AF_INET, outside(hostFailing, uint16(errno))))
		pollFor(fd, unix.POLLOUT)
		n["dial "+unix.ErrnoName(errno)+" non-blocking"] = sockError(fd)
		fatal(unix.Close(fd))
	}
	n.connect("dial times out", unix.AF_INET, 0, outside(hostTimeout, 80))
	fd := inetSocket(unix.AF_INET6, unix.SOCK_STREAM)
	n.err("scope", unix.Connect(fd, &unix.SockaddrInet6{Port: 80, ZoneId: 1, Addr: netip.MustParseAddr("fe80::1").As16()}))
	fatal(unix.Close(fd))
	fd = inetSocket(unix.AF_INET, unix.SOCK_DGRAM)
	n.err("datagram", connectTo(fd, unix.AF_INET, outside(hostLive, 53)))
	fatal(unix.Close(fd))
	return n
}

// NET-7, "Limits of the reference": a refusal is EACCES, a dead host gives what the dial gave, and the ports of srt's own
// are nobody's.
func TestNet_RefusalsAndFailures(t *testing.T) {
	g := newGate(t)
	want := notes{"dial": "EINPROGRESS", "dial times out": "ETIMEDOUT", "datagram": "EACCES", "scope": "EACCES"}
	for _, name := range []string{"", " non-blocking"} {
		for _, how := range []string{"", " IPv6", " mapped"} {
			want["denied"+how+name] = "EACCES"
		}
		for _, at := range []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"} {
			for _, port := range []int{1081, 1082} {
				want[fmt.Sprint(at, " ", port, name)] = "ECONNREFUSED"
			}
		}
		for _, errno := range []string{"ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "EACCES"} {
			want["dial "+errno+name] = errno
		}
	}
	noFailures(t, runNotes(t, netSetup(t, g, "net-refused"), want))
	if want := []netip.AddrPort{outside(hostLive, 53)}; !slices.Equal(g.datagrams, want) {
		t.Errorf("datagrams %v, want %v", g.datagrams, want)
	}
	if !slices.Contains(g.judged, netip.MustParseAddrPort("[fe80::1%1]:80")) {
		t.Errorf("no scope in %v", g.judged)
	}
}

// netMemoryProbe asks for a peer and an error with memory of all kinds.
func netMemoryProbe() notes {
	n := notes{}
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	fatal(err)
	at := func(i int) uintptr { return uintptr(unsafe.Pointer(&mem[0])) + uintptr(i) }
	edge := 2 * page
	_, _, errno := unix.RawSyscall(unix.SYS_MUNMAP, at(edge), uintptr(page), 0)
	fatal(asError(errno))
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	fatal(connectTo(fd, unix.AF_INET, outside(hostLive, 80)))
	ask := func(what string, address, size uintptr) {
		_, _, errno := unix.RawSyscall(unix.SYS_GETPEERNAME, uintptr(fd), address, size)
		n.err(what, asError(errno))
	}
	size := (*int32)(unsafe.Pointer(&mem[64]))
	for _, room := range []int32{0, 1, 8, 16, 128, -1} {
		clear(mem[:64])
		*size = room
		ask(fmt.Sprintf("%d bytes", room), at(0), at(64))
		n[fmt.Sprintf("%d bytes give", room)] = fmt.Sprint(*size, [20]byte(mem))
	}
	*size = 16
	ask("no memory", 8, at(64))
	ask("no memory for the size", at(0), 8)
	ask("memory that ends", at(edge-8), at(64))
	ask("size at the end", at(0), at(edge-2))
	fatal(unix.Close(fd))

	fd = inetSocket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	err = connectTo(fd, unix.AF_INET, outside(hostDead, 80))
	n.err("dead", err)
	pollFor(fd, unix.POLLOUT)
	option := func(what string, address, size uintptr) {
		_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR, address, size, 0)
		n.err(what, asError(errno))
	}
	*size = -1
	option("error, -1 bytes", at(0), at(64))
	option("error, no size", at(0), 8)
	clear(mem[:8])
	*size = 2
	option("error, 2 bytes", at(0), at(64))
	n["error, 2 bytes give"] = fmt.Sprint(*size, [4]byte(mem))
	n["error again"] = sockError(fd)
	fatal(unix.Close(fd))
	return n
}

// The answers that go to the caller's memory fit it (getpeername(2), getsockopt(2)).
func TestNet_AnswersInTheCallersMemory(t *testing.T) {
	g := newGate(t)
	whole := "2 0 0 80 192 0 2 1 0 0 0 0 0 0 0 0 0 0 0 0"
	cut := func(n int) string {
		words := strings.Fields(whole)
		for i := n; i < len(words); i++ {
			words[i] = "0"
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	want := notes{"0 bytes": "ok", "1 bytes": "ok", "8 bytes": "ok", "16 bytes": "ok", "128 bytes": "ok", "-1 bytes": "EINVAL",
		"0 bytes give": "16 " + cut(0), "1 bytes give": "16 " + cut(1), "8 bytes give": "16 " + cut(8), "16 bytes give": "16 " + cut(16),
		"128 bytes give": "16 " + cut(16), "-1 bytes give": "-1 " + cut(0), "no memory": "EFAULT", "no memory for the size": "EFAULT",
		"memory that ends": "EFAULT", "size at the end": "EFAULT", "dead": "EINPROGRESS", "error, -1 bytes": "EINVAL", "error, no size": "EFAULT",
		"error, 2 bytes": "ok", "error, 2 bytes give": fmt.Sprintf("2 [%d 0 0 0]", unix.ECONNREFUSED), "error again": "none"}
	noFailures(t, runNotes(t, netSetup(t, g, "net-memory"), want))
}

// hostLoopbackProbe connects to loopback ports, of which 5432 is one of the host.
func hostLoopbackProbe() notes {
	n := notes{}
	try := func(what string, family int, at string) {
		fd := inetSocket(family, unix.SOCK_STREAM)
		defer unix.Close(fd)
		if err := connectTo(fd, family, netip.MustParseAddrPort(at)); err != nil {
			n.err(what, err)
			return
		}
		if err := echoes(fd, "ping"); err != nil {
			n[what] = "inside"
			return
		}
		peer, err := unix.Getpeername(fd)
		fatal(err)
		n[what] = "host, peer " + addrOf(peer).String()
	}
	all := func(when string) {
		try(when+"IPv4", unix.AF_INET, "127.0.0.1:5432")
		try(when+"other IPv4", unix.AF_INET, "127.0.0.9:5432")
		try(when+"any IPv4", unix.AF_INET, "0.0.0.0:5432")
		try(when+"mapped", unix.AF_INET6, "[::ffff:127.0.0.1]:5432")
		try(when+"IPv6", unix.AF_INET6, "[::1]:5432")
		try(when+"any IPv6", unix.AF_INET6, "[::]:5432")
		try(when+"another port", unix.AF_INET, "127.0.0.1:5433")
	}
	all("")
	l, err := net.Listen("tcp4", "127.0.0.1:5432")
	fatal(err)
	go shut(l)
	all("with a server on 127.0.0.1, ")
	fatal(l.Close())
	l, err = net.Listen("tcp", "[::]:5432")
	fatal(err)
	go shut(l)
	all("with a server on ::, ")
	fatal(l.Close())
	return n
}

// shut closes whatever comes.
func shut(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}

// An allow-listed port of the host's loopback is reached unless the sandbox has a server there (NET-58, NET-85).
func TestNet_LoopbackOfTheHost(t *testing.T) {
	g := newGate(t)
	g.loopback = atItself(func(a netip.AddrPort) bool {
		return a.Port() == 5432 && (a.Addr().IsLoopback() && a.Addr() != netip.MustParseAddr("127.0.0.9"))
	})
	want := notes{}
	for _, when := range []string{"", "with a server on 127.0.0.1, ", "with a server on ::, "} {
		four, six := "host, peer ", "host, peer "
		if when != "" {
			four = "inside"
		}
		if strings.Contains(when, "::") {
			six = "inside"
		}
		add := func(what, kind, peer string) {
			if kind != "inside" {
				kind += peer
			}
			want[when+what] = kind
		}
		add("IPv4", four, "127.0.0.1:5432")
		add("any IPv4", four, "127.0.0.1:5432")
		add("mapped", four, "[::ffff:127.0.0.1]:5432")
		add("IPv6", six, "[::1]:5432")
		add("any IPv6", six, "[::1]:5432")
		want[when+"another port"] = "ECONNREFUSED"
		want[when+"other IPv4"] = "ECONNREFUSED"
	}
	want["with a server on ::, other IPv4"] = "inside"
	noFailures(t, runNotes(t, netSetup(t, g, "net-host"), want))
}

// hostPairProbe looks for the host's server at both addresses of localhost, while the sandbox has one at the other.
func hostPairProbe() notes {
	n := notes{}
	try := func(what string) {
		for _, at := range []string{"127.0.0.1:5432", "[::1]:5432"} {
			to := netip.MustParseAddrPort(at)
			family := unix.AF_INET6
			if to.Addr().Is4() {
				family = unix.AF_INET
			}
			fd := inetSocket(family, unix.SOCK_STREAM)
			err := connectTo(fd, family, to)
			if err != nil {
				n.err(what+at, err)
			} else if echoes(fd, "ping") != nil {
				n[what+at] = "inside"
			} else {
				n[what+at] = "host"
			}
			unix.Close(fd)
		}
	}
	try("")
	for _, at := range []string{"127.0.0.1:5432", "[::1]:5432"} {
		l, err := net.Listen("tcp", at)
		fatal(err)
		go shut(l)
		try("server at " + at + ", ")
		fatal(l.Close())
	}
	return n
}

// Where the name localhost allows a port, a server of the sandbox at either address keeps a program that tries both from
// the host's (NET-85).
func TestNet_LoopbackOfTheHostByName(t *testing.T) {
	g := newGate(t)
	g.loopback = func(a netip.AddrPort) []netip.AddrPort {
		return []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port()), netip.AddrPortFrom(netip.IPv6Loopback(), a.Port())}
	}
	want := notes{"127.0.0.1:5432": "host", "[::1]:5432": "host",
		"server at 127.0.0.1:5432, 127.0.0.1:5432": "inside", "server at 127.0.0.1:5432, [::1]:5432": "ECONNREFUSED",
		"server at [::1]:5432, 127.0.0.1:5432": "ECONNREFUSED", "server at [::1]:5432, [::1]:5432": "inside"}
	noFailures(t, runNotes(t, netSetup(t, g, "net-pair"), want))
}

// connectApart connects on a thread of its own, and gives that thread's number first.
func connectApart(fd int, to netip.AddrPort) (tid int, result <-chan error) {
	number, answer := make(chan int), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		number <- unix.Gettid()
		answer <- connectTo(fd, unix.AF_INET, to)
	}()
	return <-number, answer
}

func netBindProbe() notes {
	n := notes{}
	bind := func(what string, family, kind int, at string) {
		fd := inetSocket(family, kind)
		fatal(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
		n.err(what, unix.Bind(fd, sockaddrFor(family, netip.MustParseAddrPort(at))))
		fatal(unix.Close(fd))
	}
	bind("any port", unix.AF_INET, unix.SOCK_STREAM, "127.0.0.1:0")
	bind("a port", unix.AF_INET6, unix.SOCK_STREAM, "[::]:4567")
	bind("low port", unix.AF_INET, unix.SOCK_STREAM, "0.0.0.0:81")
	bind("low port IPv6", unix.AF_INET6, unix.SOCK_DGRAM, "[::1]:81")
	bind("capture", unix.AF_INET, unix.SOCK_STREAM, "127.0.0.1:1081")
	bind("waiting", unix.AF_INET, unix.SOCK_STREAM, "127.5.0.1:1082")
	bind("waiting IPv6", unix.AF_INET6, unix.SOCK_STREAM, "[::1]:1082")
	bind("waiting datagram", unix.AF_INET, unix.SOCK_DGRAM, "127.5.0.1:1082")
	bind("elsewhere", unix.AF_INET, unix.SOCK_STREAM, "192.0.2.1:99")
	bind("elsewhere high", unix.AF_INET, unix.SOCK_STREAM, "192.0.2.1:9999")
	var first uint32
	for _, what := range []string{"netlink", "second netlink"} {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		fatal(err)
		n.err(what, unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
		name, err := unix.Getsockname(fd)
		fatal(err)
		pid := name.(*unix.SockaddrNetlink).Pid
		switch what {
		case "netlink":
			first = pid
			n["netlink port is the process"] = strconv.FormatBool(pid == uint32(os.Getpid()))
		default:
			n["netlink ports differ"] = strconv.FormatBool(pid != first)
		}
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err == nil {
		n.err("netlink group of the privileged", unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}))
		fatal(unix.Close(fd))
	}
	return n
}

// A bind has the outcome that it has without a broker, but for the ports of srt's own.
func TestNet_Binds(t *testing.T) {
	var want notes
	runSandbox(t, setup{probe: "net-bind", folder: tempFolder(t), alone: true}, &want)
	for _, what := range []string{"capture", "waiting", "waiting IPv6"} {
		want[what] = "EADDRINUSE"
	}
	noFailures(t, runNotes(t, netSetup(t, newGate(t), "net-bind"), want))
}

// netFilesProbe connects from a thread that has descriptors of its own.
func netFilesProbe() notes {
	n := notes{}
	fd := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		fatal(unix.Unshare(unix.CLONE_FILES))
		fatal(unix.Close(fd))
		own := inetSocket(unix.AF_INET, unix.SOCK_STREAM)
		n["same number"] = strconv.FormatBool(own == fd)
		n.err("own", connectTo(own, unix.AF_INET, outside(hostLive, 80)))
		// As the rest of its runtime cannot know of it, only calls that do not go by the poller.
		n.err("  echo", echoes(own, "hello"))
	}()
	<-done
	n.err("the others'", connectTo(fd, unix.AF_INET, outside(hostDenied, 80)))
	n.err("peer of the others'", func() error { _, err := unix.Getpeername(fd); return err }())
	return n
}

func TestNet_ThreadsWithDescriptorsOfTheirOwn(t *testing.T) {
	noFailures(t, runNotes(t, netSetup(t, newGate(t), "net-files"), notes{"same number": "true", "own": "ok", "  echo": "ok",
		"the others'": "EACCES", "peer of the others'": "ENOTCONN"}))
}
