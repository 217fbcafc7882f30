package ns

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProhibitRoutes_NET3: nothing but loopback can be sent to, and the kernel says so at once. It refuses to connect to some
// addresses for what they are, with or without a route: those of a link that is not named, and TCP to more than one host of IPv6.
func TestProhibitRoutes_NET3(t *testing.T) {
	c := newCaptured(t)
	for _, to := range []struct {
		addr         string
		connect, tcp syscall.Errno
	}{
		{"8.8.8.8:53", unix.EACCES, unix.EACCES},
		{"10.1.1.1:443", unix.EACCES, unix.EACCES},
		{"169.254.169.254:80", unix.EACCES, unix.EACCES},
		{"0.1.2.3:80", unix.EACCES, unix.EACCES},
		{"255.255.255.255:67", unix.EACCES, unix.EACCES},
		{"224.0.0.251:5353", unix.EACCES, unix.EACCES},
		{"239.1.2.3:9", unix.EACCES, unix.EACCES},
		{"[2001:db8::1]:53", unix.EACCES, unix.EACCES},
		{"[fd00:ec2::254]:80", unix.EACCES, unix.EACCES},
		{"[::ffff:8.8.8.8]:53", unix.EACCES, unix.EACCES},
		{"[fe80::1]:80", unix.EINVAL, unix.EINVAL},
		{"[ff02::fb]:5353", unix.EINVAL, unix.ENETUNREACH},
		{"[ff0e::1]:9", unix.EACCES, unix.ENETUNREACH},
	} {
		t.Run(to.addr, func(t *testing.T) {
			udp, tcp := c.socket(t, family(to.addr), unix.SOCK_DGRAM), c.socket(t, family(to.addr), unix.SOCK_STREAM)
			if err := unix.SetsockoptInt(udp, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
				t.Fatal(err)
			}
			if err := unix.Sendto(udp, []byte("out"), 0, sockaddr(to.addr)); !errors.Is(err, unix.EACCES) {
				t.Errorf("a datagram: %v, want EACCES", err)
			}
			if err := unix.Connect(udp, sockaddr(to.addr)); !errors.Is(err, to.connect) {
				t.Errorf("connecting a datagram socket: %v, want %v", err, to.connect)
			}
			if err := unix.Connect(tcp, sockaddr(to.addr)); !errors.Is(err, to.tcp) {
				t.Errorf("TCP: %v, want %v", err, to.tcp)
			}
		})
	}
}

// TestProhibitRoutes_LoopbackStays_NET85: within the sandbox TCP and UDP work.
func TestProhibitRoutes_LoopbackStays_NET85(t *testing.T) {
	c := newCaptured(t)
	for _, addr := range []string{"127.0.0.1:0", "127.9.8.7:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
				server, client := c.socket(t, family(addr), kind), c.socket(t, family(addr), kind)
				if err := unix.Bind(server, sockaddr(addr)); err != nil {
					t.Fatal(err)
				}
				sa, err := unix.Getsockname(server)
				if err != nil {
					t.Fatal(err)
				}
				if kind == unix.SOCK_STREAM {
					if err := unix.Listen(server, 1); err != nil {
						t.Fatal(err)
					}
				}
				if err := unix.Connect(client, sa); err != nil {
					t.Fatalf("type %d: %v", kind, err)
				}
				if _, err := unix.Write(client, []byte("in")); err != nil {
					t.Fatalf("type %d: %v", kind, err)
				}
				if kind == unix.SOCK_STREAM {
					if server, _, err = unix.Accept(server); err != nil {
						t.Fatal(err)
					}
					defer unix.Close(server)
				}
				expectRead(t, server, "in")
			}
		})
	}
}

// TestProhibitRoutes_WithoutTheSecondFamily: a kernel that knows nothing of a family refuses its route, and that is all. 12 is a
// family without routes (AF_DECnet).
func TestProhibitRoutes_WithoutTheSecondFamily(t *testing.T) {
	p := newProgram(t)
	p.LoopbackUp()
	p.prohibitRoutes(unix.AF_INET, 12)
	if _, st, err := run(t, minimal(p, "/bin/true")); err != nil || st.Code != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

// TestProhibitRoutes_FailsClosed: a route that the kernel refuses, whichever it is, ends the start, and the message names it.
func TestProhibitRoutes_FailsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		write   func(*Program)
		subject string
	}{
		"the first is refused": {func(p *Program) { p.prohibitRoutes(12, unix.AF_INET6) }, "the default routes of IPv4"},
		"the first is there":   {func(p *Program) { p.prohibitRoutes(unix.AF_INET, 12); p.ProhibitRoutes() }, "the default routes of IPv4"},
		"the second is there":  {func(p *Program) { p.prohibitRoutes(unix.AF_INET6, 12); p.ProhibitRoutes() }, "the default routes of IPv6"},
	} {
		p := newProgram(t)
		p.LoopbackUp()
		c.write(p)
		out, _, err := run(t, minimal(p, "/bin/echo", "ran"))
		var e *StepError
		if !errors.As(err, &e) || e.Op != "prohibit" || e.Subject != c.subject || out != "" {
			t.Errorf("%s: %q, %v; want a StepError of %s", name, out, err, c.subject)
		}
	}
}
