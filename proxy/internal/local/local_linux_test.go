package local

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// algorithm returns the congestion control of a connection.
func algorithm(t *testing.T, c any) (name string) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		}), err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

var loopbacks = []string{"127.0.0.1:0", "127.1.2.3:0", "[::1]:0"}

func TestListenerPassesItsOptionsOn(t *testing.T) {
	for _, address := range loopbacks {
		l := listen(t, address)
		Listener(l)
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if got := algorithm(t, server); got != congestion {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestOtherListenersAreLeftAlone(t *testing.T) {
	l := listen(t, "0.0.0.0:0")
	before := algorithm(t, l)
	Listener(l)
	if got := algorithm(t, l); got != before {
		t.Errorf("%q became %q", before, got)
	}
	u, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	Listener(u) // must not fail
}

func TestDialOnLoopback(t *testing.T) {
	for _, address := range loopbacks {
		l := listen(t, address)
		c := Dial(addrPort(l))
		if c == nil {
			t.Fatal(address)
		}
		defer c.Close()
		if got := algorithm(t, c); got != congestion {
			t.Errorf("%s: %q", address, got)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		for _, ends := range [][2]net.Conn{{c, server}, {server, c}} {
			if _, err := ends[0].Write([]byte("x")); err != nil {
				t.Error(address, err)
			}
			if _, err := io.ReadFull(ends[1], make([]byte, 1)); err != nil {
				t.Error(address, err)
			}
			if ends[0].RemoteAddr().String() != ends[1].LocalAddr().String() {
				t.Errorf("%s: %v, %v", address, ends[0].RemoteAddr(), ends[1].LocalAddr())
			}
		}
	}
}

// TestDialGivesUp: nobody listens there, or it is not on loopback at all.
func TestDialGivesUp(t *testing.T) {
	for _, address := range loopbacks {
		l := listen(t, address)
		to := addrPort(l)
		l.Close()
		if c := Dial(to); c != nil {
			t.Errorf("%v: %v", to, c.RemoteAddr())
		}
	}
	// These reach a server on this host if they are dialled, so that nil means they were not.
	all := addrPort(listen(t, "[::]:0")).Port()
	for _, address := range []string{"0.0.0.0", "::", "::ffff:127.0.0.1"} {
		if c := Dial(netip.AddrPortFrom(netip.MustParseAddr(address), all)); c != nil {
			t.Errorf("%s: %v", address, c.RemoteAddr())
		}
	}
	if c := Dial(netip.AddrPort{}); c != nil {
		t.Error("the zero value")
	}
}

// TestDialDoesNotWait: a server whose backlog is full does not answer.
func TestDialDoesNotWait(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	err = errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0))
	name, err2 := unix.Getsockname(fd)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*unix.SockaddrInet4).Port))
	var held []net.Conn
	for range 10 {
		c := Dial(to)
		if c == nil {
			break
		}
		held = append(held, c)
		defer c.Close()
	}
	if len(held) == 0 || len(held) == 10 {
		t.Errorf("%d connections for a backlog of one", len(held))
	}
}

func addrPort(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }
