package broker

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp/broker/internal/socket"
)

// netSituations are what programs do with sockets.
func netSituations() (list []netSituation) {
	add := func(name string, run func(r *netRecorder)) { list = append(list, netSituation{name, run}) }
	add("arguments", argumentsSituation)
	add("families", familiesSituation)
	add("datagrams", datagramSituation)
	add("only IPv6", onlySixSituation)
	each(&list, "blocking", blockingSituation)
	each(&list, "dead", deadSituation)
	each(&list, "non-blocking", nonBlockingSituation)
	each(&list, "dead, non-blocking", deadNonBlockingSituation)
	each(&list, "pending", pendingSituation)
	each(&list, "time limit", limitSituationOf)
	each(&list, "listening", listeningSituation)
	each(&list, "modes", modesSituation)
	each(&list, "bound", boundSituation)
	each(&list, "options", optionsSituation)
	each(&list, "half-close", halfCloseSituation)
	each(&list, "copies", copiesSituation)
	each(&list, "epoll", epollSituation)
	each(&list, "select", selectSituation)
	each(&list, "port 0", portZeroSituation)
	return list
}

func argumentsSituation(r *netRecorder) {
	file, err := os.Open("/proc/self/status")
	r.check(err)
	defer file.Close()
	path, err := unix.Open("/", unix.O_PATH, 0)
	r.check(err)
	defer unix.Close(path)
	four, six := r.socket(unix.AF_INET, unix.SOCK_STREAM), r.socket(unix.AF_INET6, unix.SOCK_STREAM)
	defer unix.Close(four)
	defer unix.Close(six)
	a4, a6 := socket.Address(unix.AF_INET, r.p.dead), socket.Address(unix.AF_INET6, r.p.dead6)
	a4, a6 = append(a4, make([]byte, 200)...), append(a6, make([]byte, 200)...)
	for name, fd := range map[string]int{"none": -1, "high": 9999, "file": int(file.Fd()), "path": path} {
		r.lines = append(r.lines, name)
		r.rawConnect("connect", fd, unsafe.Pointer(&a4[0]), 16)
		r.rawConnect("connect long", fd, unsafe.Pointer(&a4[0]), 129)
		r.raw("connect nowhere", unix.SYS_CONNECT, uintptr(fd), 8, 16)
		var peer [128]byte
		size := uint32(len(peer))
		r.raw("getpeername", unix.SYS_GETPEERNAME, uintptr(fd), uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&size)))
		r.raw("SO_ERROR", unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR, uintptr(unsafe.Pointer(&peer)), uintptr(unsafe.Pointer(&size)))
	}
	sortBlocks(r)
	for _, size := range []int{0, 1, 2, 3, 8, 15, 16, 17, 28, 128, 129, 1 << 20, -1} {
		r.rawConnect(fmt.Sprintf("IPv4, %d bytes", size), four, unsafe.Pointer(&a4[0]), uintptr(size))
		r.rawConnect(fmt.Sprintf("IPv6, %d bytes", size), six, unsafe.Pointer(&a6[0]), uintptr(size))
	}
	r.raw("IPv4, nowhere", unix.SYS_CONNECT, uintptr(four), 8, 16)
	r.raw("IPv4, nowhere, no bytes", unix.SYS_CONNECT, uintptr(four), 8, 0)
	r.raw("IPv4, high", unix.SYS_CONNECT, uintptr(four), 1<<63, 16)
}

// sortBlocks is for lines that were written in the order of a map: each block begins with a name alone.
func sortBlocks(r *netRecorder) {
	var blocks []string
	for _, l := range r.lines {
		if !bytes.Contains([]byte(l), []byte(":")) {
			blocks = append(blocks, l)
			continue
		}
		blocks[len(blocks)-1] += "|" + l
	}
	sorted(blocks)
	r.lines = blocks
}

func familiesSituation(r *netRecorder) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		fd := r.socket(family, unix.SOCK_STREAM)
		for _, other := range []uint16{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, 999, 0xffff} {
			for _, size := range []int{16, 28, 110} {
				a := make([]byte, 128)
				copy(a, socket.Address(family, r.p.dead))
				a[0], a[1] = byte(other), byte(other>>8)
				r.rawConnect(fmt.Sprintf("family %d, %d bytes", other, size), fd, unsafe.Pointer(&a[0]), uintptr(size))
			}
		}
		r.unspec(fd)
		r.check(unix.Close(fd))
	}
}

func datagramSituation(r *netRecorder) {
	beyond, beyond6 := netip.MustParseAddrPort("192.0.2.77:53"), netip.MustParseAddrPort("[2001:db8::77]:53")
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		fd := r.socket(family, unix.SOCK_DGRAM)
		for _, a := range []string{"127.0.0.1:9", "127.1.2.3:9", "0.0.0.0:9", "[::1]:9", "[::]:9"} {
			to := netip.MustParseAddrPort(a)
			if family == unix.AF_INET && to.Addr().Is6() {
				continue
			}
			r.connect(a, fd, family, to)
			_, err := unix.Getpeername(fd)
			r.err("getpeername", err)
		}
		r.unspec(fd)
		_, err := unix.Getpeername(fd)
		r.err("getpeername", err)
		r.connect("beyond", fd, family, beyond)
		if family == unix.AF_INET6 {
			r.connect("beyond", fd, family, beyond6)
			a := append(socket.Address(unix.AF_INET, beyond), make([]byte, 16)...)
			r.rawConnect("IPv4 address beyond", fd, unsafe.Pointer(&a[0]), 16)
			a = append(socket.Address(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:9")), make([]byte, 16)...)
			r.rawConnect("IPv4 address", fd, unsafe.Pointer(&a[0]), 16)
		}
		r.check(unix.Close(fd))
	}
}

func onlySixSituation(r *netRecorder) {
	fd := r.socket(unix.AF_INET6, unix.SOCK_STREAM)
	r.check(unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1))
	r.connect("live mapped", fd, unix.AF_INET6, r.p.live)
	r.connect("live", fd, unix.AF_INET6, r.p.live6)
	r.state(fd)
	r.check(unix.Close(fd))
	for _, a := range []string{"[fe80::1]:80", "[ff02::1]:80"} {
		fd := r.socket(unix.AF_INET6, unix.SOCK_STREAM)
		r.connect(a, fd, unix.AF_INET6, netip.MustParseAddrPort(a))
		r.check(unix.Close(fd))
	}
	for _, a := range []string{"224.0.0.1:80", "255.255.255.255:80", "127.255.255.255:80"} {
		fd := r.socket(unix.AF_INET, unix.SOCK_STREAM)
		r.connect(a, fd, unix.AF_INET, netip.MustParseAddrPort(a))
		r.check(unix.Close(fd))
	}
}

func blockingSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM)
	r.state(fd)
	r.connect("live", fd, family, live)
	r.state(fd)
	r.echo(fd)
	r.events(fd, true)
	r.connect("live again", fd, family, live)
	r.connect("dead", fd, family, dead)
	r.echo(fd)
	r.unspec(fd)
	r.state(fd)
	r.connect("live anew", fd, family, live)
	r.state(fd)
	r.echo(fd)
	r.check(unix.Close(fd))
}

func deadSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM)
	for range 3 {
		r.connect("dead", fd, family, dead)
		r.trouble(fd)
		r.events(fd, false)
	}
	r.connect("live", fd, family, live)
	r.state(fd)
	r.echo(fd)
	r.check(unix.Close(fd))
}

func nonBlockingSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	r.connect("live", fd, family, live)
	r.events(fd, true)
	r.state(fd)
	r.connect("live, done", fd, family, live)
	r.connect("live, again", fd, family, live)
	r.echo(fd)
	r.unspec(fd)
	r.connect("live, anew", fd, family, live)
	r.events(fd, true)
	r.echo(fd)
	r.connect("dead, done", fd, family, dead)
	r.connect("dead, again", fd, family, dead)
	r.state(fd)
	r.check(unix.Close(fd))
}

func deadNonBlockingSituation(r *netRecorder, family int, live, dead, _ netip.AddrPort) {
	for _, asks := range []string{"SO_ERROR", "connect", "SO_ERROR and connect", "read", "nothing"} {
		r.lines = append(r.lines, asks)
		fd := r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
		r.connect("dead", fd, family, dead)
		r.events(fd, true)
		_, err := unix.Getpeername(fd)
		r.err("getpeername", err)
		switch asks {
		case "SO_ERROR":
			r.trouble(fd)
			r.trouble(fd)
			r.events(fd, false)
		case "connect":
			r.connect("dead", fd, family, dead)
			r.trouble(fd)
		case "SO_ERROR and connect":
			r.trouble(fd)
			r.connect("dead", fd, family, dead)
			r.trouble(fd)
		case "read":
			r.say("SO_ERROR %s", sockError(fd))
			n, err := unix.Read(fd, make([]byte, 1))
			r.err("read", err)
			r.say("  %d", n)
			_, err = unix.Write(fd, []byte("x"))
			r.err("write", err)
		}
		r.unspec(fd)
		r.say("SO_ERROR %s", sockError(fd))
		r.connect("live", fd, family, live)
		r.events(fd, true)
		r.state(fd)
		r.echo(fd)
		r.check(unix.Close(fd))
	}
}

func pendingSituation(r *netRecorder, family int, live, _, silent netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	r.connect("silent", fd, family, silent)
	r.connect("silent", fd, family, silent)
	r.connect("live", fd, family, live)
	r.state(fd)
	r.events(fd, false)
	r.unspec(fd)
	r.events(fd, false)
	r.say("SO_ERROR %s", sockError(fd))
	r.connect("live", fd, family, live)
	r.events(fd, true)
	r.state(fd)
	r.echo(fd)
	r.check(unix.Close(fd))
	fd = r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	r.connect("silent", fd, family, silent)
	r.err("shutdown", unix.Shutdown(fd, unix.SHUT_RDWR))
	r.events(fd, false)
	r.check(unix.Close(fd))
}

func limitSituationOf(r *netRecorder, family int, live, _, silent netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM)
	limit := unix.Timeval{Usec: 20_000}
	r.check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
	r.connect("live", fd, family, live)
	r.unspec(fd)
	r.connect("silent", fd, family, silent)
	r.connect("silent again", fd, family, silent)
	r.state(fd)
	r.events(fd, false)
	got, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	r.check(err)
	r.say("limit %d %d", got.Sec, got.Usec)
	r.check(unix.Close(fd))
}

func listeningSituation(r *netRecorder, family int, live, _, _ netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM)
	r.check(unix.Listen(fd, 1))
	r.connect("live", fd, family, live)
	_, err := unix.Getpeername(fd)
	r.err("getpeername", err)
	r.check(unix.Close(fd))
}

func modesSituation(r *netRecorder, family int, live, dead, silent netip.AddrPort) {
	fd := r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	r.connect("live", fd, family, live)
	r.nonblock(fd, false)
	r.connect("live, blocking", fd, family, live)
	r.state(fd)
	r.echo(fd)
	r.check(unix.Close(fd))
	fd = r.socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	r.connect("dead", fd, family, dead)
	r.nonblock(fd, false)
	r.connect("dead, blocking", fd, family, dead)
	r.trouble(fd)
	r.connect("live, blocking", fd, family, live)
	r.echo(fd)
	r.check(unix.Close(fd))
	fd = r.socket(family, unix.SOCK_STREAM)
	r.nonblock(fd, true)
	r.connect("silent", fd, family, silent)
	r.nonblock(fd, false)
	limit := unix.Timeval{Usec: 20_000}
	r.check(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit))
	r.connect("silent, blocking", fd, family, silent)
	r.nonblock(fd, true)
	r.connect("silent, non-blocking", fd, family, silent)
	r.check(unix.Close(fd))
}
