package ns

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestListenCapture_Capture: both families are accepted, on every loopback address, with the address connected to.
func TestListenCapture_Capture(t *testing.T) {
	c := newCaptured(t)
	for addr, want := range map[string]string{"127.0.0.1:1081": "[::ffff:127.0.0.1]:1081", "127.77.1.2:1081": "[::ffff:127.77.1.2]:1081",
		"[::1]:1081": "[::1]:1081", "[::ffff:127.1.2.3]:1081": "[::ffff:127.1.2.3]:1081"} {
		s := c.socket(t, family(addr), unix.SOCK_STREAM)
		if err := unix.Connect(s, sockaddr(addr)); err != nil {
			t.Fatalf("%s: %v", addr, err)
		}
		fd, _, err := unix.Accept4(c.capture, unix.SOCK_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		local, err := unix.Getsockname(fd)
		if got := addrPort(t, local, err); got != want {
			t.Errorf("%s: accepted at %s, want %s", addr, got, want)
		}
		unix.Close(fd)
	}
}

// TestListenCapture_Waiting: a connection to the waiting room stays in SYN_SENT until a spare socket connects back; both are
// then established with one another. The descriptor is watched from before the connect, as event loops do.
func TestListenCapture_Waiting(t *testing.T) {
	c := newCaptured(t)
	for _, room := range []string{"127.1.2.3:1082", "127.255.255.254:1082", "[::1]:1082"} {
		t.Run(room, func(t *testing.T) {
			caller := c.socket(t, family(room), unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
			if err := unix.Connect(caller, sockaddr(room)); !errors.Is(err, unix.EINPROGRESS) {
				t.Fatalf("%v, want EINPROGRESS", err)
			}
			if got := state(t, caller); got != synSent {
				t.Fatalf("state %d, want SYN_SENT", got)
			}
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(caller), Events: unix.POLLOUT}, {Fd: int32(c.waiting), Events: unix.POLLIN}}, 0); err != nil || n != 0 {
				t.Fatalf("%d are ready, %v: something answered", n, err)
			}
			spare := c.socket(t, family(room), unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
			if err := unix.SetsockoptInt(spare, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
				t.Fatal(err)
			}
			if err := unix.Bind(spare, sockaddr(room)); err != nil {
				t.Fatal(err)
			}
			local, err := unix.Getsockname(caller)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Connect(spare, local); err != nil && !errors.Is(err, unix.EINPROGRESS) {
				t.Fatal(err)
			}
			pollFor(t, caller, unix.POLLOUT)
			pollFor(t, spare, unix.POLLOUT)
			if a, b := state(t, caller), state(t, spare); a != established || b != established {
				t.Fatalf("states %d and %d, want ESTABLISHED", a, b)
			}
			peer, err := unix.Getpeername(spare)
			if got, want := addrPort(t, peer, err), addrPort(t, local, nil); got != want {
				t.Errorf("the spare socket is connected to %s, want %s", got, want)
			}
			for _, pair := range [][2]int{{caller, spare}, {spare, caller}} {
				if _, err := unix.Write(pair[0], []byte("hello")); err != nil {
					t.Fatal(err)
				}
				expectRead(t, pair[1], "hello")
			}
		})
	}
}

// TestListenCapture_WaitingEndsByShutdown: the host side ends the wait of a connection that it cannot make.
func TestListenCapture_WaitingEndsByShutdown(t *testing.T) {
	c := newCaptured(t)
	caller := c.socket(t, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	if err := unix.Connect(caller, sockaddr("127.1.2.3:1082")); !errors.Is(err, unix.EINPROGRESS) {
		t.Fatalf("%v, want EINPROGRESS", err)
	}
	if err := unix.Shutdown(caller, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if got := pollFor(t, caller, unix.POLLOUT); got&unix.POLLHUP == 0 {
		t.Errorf("events %#x, want POLLHUP", got)
	}
}

// TestListenCapture_DNS: both sockets of the name server take what programs send to 127.0.0.1:53.
func TestListenCapture_DNS(t *testing.T) {
	c := newCaptured(t)
	udp := c.socket(t, unix.AF_INET, unix.SOCK_DGRAM)
	if err := unix.Sendto(udp, []byte("query"), 0, sockaddr("127.0.0.1:53")); err != nil {
		t.Fatal(err)
	}
	expectRead(t, c.dnsUDP, "query")
	tcp := c.socket(t, unix.AF_INET, unix.SOCK_STREAM)
	if err := unix.Connect(tcp, sockaddr("127.0.0.1:53")); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(tcp, []byte("query")); err != nil {
		t.Fatal(err)
	}
	fd, _, err := unix.Accept4(c.dnsTCP, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	expectRead(t, fd, "query")
}

// TestListenCapture_IsCloseOnExec: neither the host side's copies nor the program's reach the command.
func TestListenCapture_IsCloseOnExec(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.ListenCapture(0)
	l := minimal(p, "/bin/sh", "-c", "ls /proc/self/fd | grep -vx -e 0 -e 1 -e 2 -e 3") // 3 is the directory itself
	l.Namespaces &^= unix.CLONE_NEWNS
	r, w := l.output(t)
	process, err := l.start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(process)
	for i, f := range process.Files {
		if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("socket %d: flags %#x, %v; want FD_CLOEXEC", i, flags, err)
		}
	}
	buf := make([]byte, 100)
	n, _ := r.Read(buf)
	if st, err := process.Wait(); err != nil || n != 0 && st.Code == 0 {
		t.Errorf("the command holds %q (%v, %v)", buf[:n], st, err)
	}
}

// TestListenCapture_WithoutIPv6: on a kernel without IPv6, for which a filter stands in, the listeners are of IPv4.
func TestListenCapture_WithoutIPv6(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.NoNewPrivs()
	p.Filter("no IPv6", refusesIPv6())
	p.ListenCapture(0)
	l := minimal(p, "/bin/true")
	_, w := l.output(t)
	process, err := l.start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer closeFiles(process)
	var got []string
	for _, f := range process.Files {
		sa, err := unix.Getsockname(int(f.Fd()))
		got = append(got, addrPort(t, sa, err))
	}
	want := []string{"0.0.0.0:1081", "0.0.0.0:1082", "127.0.0.1:53", "127.0.0.1:53"}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("socket %d is bound to %s, want %s", i, got[i], want[i])
		}
	}
	if _, err := process.Wait(); err != nil {
		t.Error(err)
	}
}

// TestHand_MakesSocketsInBatches: eight of each family come in one message, in the sandbox's network namespace.
func TestHand_MakesSocketsInBatches(t *testing.T) {
	c := newCaptured(t)
	h := c.hand(t)
	p := h.Program()
	var slots []Slot
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		for range batch {
			slots = append(slots, p.Call("socket", "", syscall.SYS_SOCKET, Int(family), Int(unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC), Int(0)))
		}
	}
	p.SendFiles(0, "spare sockets", slots...)
	r := must(t, h)
	defer r.Close()
	if len(r.Files) != 2*batch {
		t.Fatalf("%d sockets came, want %d", len(r.Files), 2*batch)
	}
	for i, f := range r.Files {
		fd := int(f.Fd())
		want := []int{unix.AF_INET, unix.AF_INET6}[i/batch]
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || got != want {
			t.Errorf("socket %d is of family %d, %v; want %d", i, got, err, want)
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
			t.Errorf("socket %d has flags %#x, %v; want O_NONBLOCK", i, flags, err)
		}
		if !sameNetwork(t, fd, c.capture) || sameNetwork(t, fd, outside(t)) {
			t.Errorf("socket %d is in another network namespace", i)
		}
	}
}
