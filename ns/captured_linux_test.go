package ns

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// captured is a sandbox as a program that knows no proxy finds it: without a route, with the sockets of ListenCapture. Its
// sockets are made by a hand, in batches, and used from here: a socket stays in the namespace it was made in.
type captured struct {
	box
	capture, waiting, dnsUDP, dnsTCP int
}

const (
	captureAt = 3 // of the first socket in Process.Files
	batch     = 8
)

func newCaptured(t testing.TB) *captured {
	t.Helper()
	c := &captured{}
	c.box = *newBoxWith(t, true, func(p *Program) {
		p.LoopbackUp()
		p.ProhibitRoutes()
		p.ListenCapture(captureAt)
	})
	files := c.process.Files[captureAt:]
	if len(files) != 4 {
		t.Fatalf("%d sockets came, want 4", len(files))
	}
	for i, fd := range []*int{&c.capture, &c.waiting, &c.dnsUDP, &c.dnsTCP} {
		if files[i] == nil {
			t.Fatalf("socket %d did not come", i)
		}
		f := files[i]
		t.Cleanup(func() { f.Close() })
		*fd = int(f.Fd())
	}
	return c
}

// socket makes a socket in the sandbox. It is closed at the test's end.
func (c *captured) socket(t testing.TB, family, kind int) int {
	t.Helper()
	h := c.hand(t)
	p := h.Program()
	p.SendFiles(0, "a socket", p.Call("socket", "", syscall.SYS_SOCKET, Int(family), Int(kind|unix.SOCK_CLOEXEC), Int(0)))
	r := must(t, h)
	t.Cleanup(r.Close)
	return int(r.Files[0].Fd())
}

func sockaddr(text string) unix.Sockaddr {
	a := netip.MustParseAddrPort(text)
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

// addrPort is the text of a socket address.
func addrPort(t testing.TB, sa unix.Sockaddr, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)).String()
	}
	t.Fatalf("a socket address of type %T", sa)
	return ""
}

func family(text string) int {
	if netip.MustParseAddrPort(text).Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// state is the state of a TCP socket, TCP_* of linux/tcp_states.h.
func state(t testing.TB, fd int) uint8 {
	t.Helper()
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return info.State
}

const (
	established = 1
	synSent     = 2
)

// pollFor waits until fd has events, ten seconds at most, and gives what it has.
func pollFor(t testing.TB, fd int, events int16) int16 {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		n, err := unix.Poll(fds, 10_000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n != 1 {
			t.Fatalf("nothing happens at descriptor %d: %v", fd, err)
		}
		return fds[0].Revents
	}
}

// expectRead reads once.
func expectRead(t testing.TB, fd int, want string) {
	t.Helper()
	buf := make([]byte, len(want)+1)
	pollFor(t, fd, unix.POLLIN)
	if n, err := unix.Read(fd, buf); err != nil || string(buf[:n]) != want {
		t.Errorf("read %q, %v; want %q", buf[:max(n, 0)], err, want)
	}
}

// outside is a socket of the test's own namespace.
func outside(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// sameNetwork tells whether two sockets are of one network namespace (SO_NETNS_COOKIE, Linux 5.14).
func sameNetwork(t testing.TB, a, b int) bool {
	t.Helper()
	var cookies [2]uint64
	for i, fd := range []int{a, b} {
		var err error
		if cookies[i], err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
			t.Fatal(os.NewSyscallError("getsockopt", err))
		}
	}
	return cookies[0] == cookies[1]
}
