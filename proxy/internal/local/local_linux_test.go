package local

import (
	"errors"
	"io"
	"net"
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

func TestControlOnLoopback(t *testing.T) {
	dialer := net.Dialer{Control: Control}
	for _, address := range loopbacks {
		l := listen(t, address)
		c, err := dialer.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(address, err)
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
		if _, err := c.Write([]byte("x")); err != nil {
			t.Error(address, err)
		}
		if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
			t.Error(address, err)
		}
		if c.RemoteAddr().String() != l.Addr().String() || c.LocalAddr().String() != server.RemoteAddr().String() {
			t.Errorf("%s: from %v to %v", address, c.LocalAddr(), c.RemoteAddr())
		}
	}
}

// TestControlKeepsErrors: a refusal is package net's to report, in full.
func TestControlKeepsErrors(t *testing.T) {
	for _, address := range loopbacks {
		l := listen(t, address)
		l.Close()
		c, err := (&net.Dialer{Control: Control}).Dial("tcp", l.Addr().String())
		var op *net.OpError
		if !errors.Is(err, unix.ECONNREFUSED) || !errors.As(err, &op) || op.Addr.String() != l.Addr().String() {
			t.Errorf("%s: %v, %v", address, c, err)
		}
	}
}

// TestControlLeavesOthersAlone: a socket for another host is neither changed nor connected.
func TestControlLeavesOthersAlone(t *testing.T) {
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "0.0.0.0:80", "[::]:80", "[::ffff:127.0.0.1]:80", "/run/socket", ""} {
		raw := newSocket(t)
		before := congestionOf(t, int(raw))
		if err := Control("tcp", address, raw); err != nil {
			t.Errorf("%q: %v", address, err)
		}
		if got := congestionOf(t, int(raw)); got != before {
			t.Errorf("%q: %q became %q", address, before, got)
		}
		if _, err := unix.Getpeername(int(raw)); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("%q: connected, %v", address, err)
		}
	}
}

func congestionOf(t *testing.T, fd int) string {
	t.Helper()
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// rawSocket is a socket as package net shows it to Control.
type rawSocket int

func (r rawSocket) Control(f func(fd uintptr)) error       { f(uintptr(r)); return nil }
func (rawSocket) Read(func(fd uintptr) (done bool)) error  { return errors.ErrUnsupported }
func (rawSocket) Write(func(fd uintptr) (done bool)) error { return errors.ErrUnsupported }

func newSocket(t *testing.T) rawSocket {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return rawSocket(fd)
}
