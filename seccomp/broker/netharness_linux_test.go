package broker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/seccomp"
)

// The destinations of the tests, by their last byte: 192.0.2.N and 2001:db8::N (RFC 5737, RFC 3849).
const (
	hostLive    = 1  // an echo server
	hostDead    = 2  // nobody listens
	hostDenied  = 3  // refused by the policy
	hostSilent  = 4  // dialling never ends
	hostSlow    = 5  // dialling ends when the test says so
	hostFailing = 6  // dialling fails with the error that is the port's number
	hostTimeout = 7  // dialling gives up by itself, with no error of the kernel's
	hostRelease = 8  // refused, after one dial to hostSlow was let go on (EXFULL)
	hostIdle    = 9  // refused: EXFULL if nothing is dialled for and no tunnel is open, else EBUSY
	hostBusy    = 11 // refused: EXFULL if as many dials are under way as the port says, else EBUSY
	hostMeasure = 10 // refused, after the test has measured (EXFULL)
)

func outside(host byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, host}), port)
}

func outside6(host byte, port uint16) netip.AddrPort {
	a := netip.MustParseAddr("2001:db8::").As16()
	a[15] = host
	return netip.AddrPortFrom(netip.AddrFrom16(a), port)
}

// testGate sends what is allowed to an echo server of the test.
type testGate struct {
	server   net.Listener
	slow     chan struct{} // what a dial to hostSlow waits for, once each
	loopback func(netip.AddrPort) []netip.AddrPort

	measure func()
	banner  bool // a tunnel begins with what the gate was asked for, a line

	mu        sync.Mutex
	judged    []netip.AddrPort
	datagrams []netip.AddrPort
	dialling  int
	tunnels   int
	reached   map[string]int // first lines that arrived, with keep
	keep      bool
}

func newGate(t testing.TB) *testGate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &testGate{server: l, slow: make(chan struct{}), reached: map[string]int{}}
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Add(1)
			go func() {
				defer wait.Done()
				g.echo(c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		wait.Wait()
		if !eventually(g.idle) {
			t.Errorf("%d dials and %d tunnels are left", g.dialling, g.tunnels)
		}
	})
	return g
}

// idle tells whether nothing is dialled for and no tunnel is open.
func (g *testGate) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dialling+g.tunnels == 0
}

// echo sends back what comes, and ends after the end of it.
func (g *testGate) echo(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 64<<10)
	for first := true; ; first = false {
		n, err := c.Read(buf)
		if n > 0 && first && g.keep {
			g.mu.Lock()
			line, _, _ := bytes.Cut(buf[:n], []byte{'\n'})
			g.reached[string(line)]++
			g.mu.Unlock()
		}
		if _, werr := c.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (g *testGate) count(n *int, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*n += by
}

func (g *testGate) Judge(_ int, dst netip.AddrPort) (Way, error) {
	g.mu.Lock()
	g.judged = append(g.judged, dst)
	g.mu.Unlock()
	b := dst.Addr().AsSlice()
	host := b[len(b)-1]
	switch host {
	case hostRelease:
		g.slow <- struct{}{}
		return nil, unix.EXFULL
	case hostIdle:
		if !g.idle() {
			return nil, unix.EBUSY
		}
		return nil, unix.EXFULL
	case hostBusy:
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.dialling != int(dst.Port()) {
			return nil, unix.EBUSY
		}
		return nil, unix.EXFULL
	case hostMeasure:
		g.measure()
		return nil, unix.EXFULL
	}
	if host == hostDenied || dst.Addr().Zone() != "" || dst.Addr().IsPrivate() {
		return nil, errors.New("denied by the test")
	}
	if dst.Addr().IsLoopback() {
		host = hostLive
	}
	return &testWay{g, host, dst}, nil
}

func (g *testGate) Loopback(dst netip.AddrPort) []netip.AddrPort {
	if g.loopback == nil {
		return nil
	}
	return g.loopback(dst)
}

// atItself is a rule for loopback destinations that are the host's unless something listens at them.
func atItself(rule func(netip.AddrPort) bool) func(netip.AddrPort) []netip.AddrPort {
	return func(dst netip.AddrPort) []netip.AddrPort {
		if rule(dst) {
			return []netip.AddrPort{dst}
		}
		return nil
	}
}

func (g *testGate) Datagram(_ int, dst netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.datagrams = append(g.datagrams, dst)
}

type testWay struct {
	gate *testGate
	host byte
	dst  netip.AddrPort
}

func (w *testWay) Dial(ctx context.Context) (Upstream, error) {
	w.gate.count(&w.gate.dialling, 1)
	defer w.gate.count(&w.gate.dialling, -1)
	at := w.gate.server.Addr().String()
	switch w.host {
	case hostSilent:
		<-ctx.Done()
		return nil, ctx.Err()
	case hostSlow:
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.gate.slow:
		}
	case hostFailing:
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.Errno(w.dst.Port()))}
	case hostTimeout:
		return nil, os.ErrDeadlineExceeded
	case hostDead:
		at = "127.0.0.1:1"
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	w.gate.count(&w.gate.tunnels, 1)
	return &testUpstream{w.gate, c.(*net.TCPConn), w.dst}, nil
}

type testUpstream struct {
	gate *testGate
	conn *net.TCPConn
	dst  netip.AddrPort
}

func (u *testUpstream) Close() error {
	u.gate.count(&u.gate.tunnels, -1)
	return u.conn.Close()
}

func (u *testUpstream) Relay(conn net.Conn, done func()) {
	client := conn.(*net.TCPConn)
	if u.gate.banner {
		_, _ = client.Write([]byte(u.dst.String() + "\n"))
	}
	var both sync.WaitGroup
	for _, d := range [...][2]*net.TCPConn{{u.conn, client}, {client, u.conn}} {
		both.Go(func() {
			// Without splice, whose pipes package poll keeps.
			if _, err := io.Copy(struct{ io.Writer }{d[0]}, struct{ io.Reader }{d[1]}); err != nil {
				client.Close()
				u.conn.Close()
			}
			_ = d[0].CloseWrite()
		})
	}
	go func() {
		both.Wait()
		client.Close()
		u.conn.Close()
		done()
		u.gate.count(&u.gate.tunnels, -1)
	}()
}

func (g *testGate) sawOnly(t *testing.T, want ...netip.AddrPort) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.judged {
		if !slices.Contains(want, a) {
			t.Errorf("%v was judged", a)
		}
	}
}

// netFilter is the filter for connections, and that for names.
func netFilter() seccomp.Filter { return seccomp.Stack(seccomp.Network(), seccomp.Names())[0] }

// netSetup is a sandbox whose connections a gate judges.
func netSetup(t testing.TB, g Gate, probe string) setup {
	return setup{judge: &testJudge{}, filter: seccomp.Network, gate: g, probe: probe, folder: tempFolder(t)}
}

// inetSocket makes a socket, and is for probes, which panic on what cannot be.
func inetSocket(family, kind int) int {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	fatal(err)
	return fd
}

// sockaddrFor is an address for a socket of a family, IPv4-mapped where the two differ.
func sockaddrFor(family int, a netip.AddrPort) unix.Sockaddr {
	if family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// connectTo connects a socket, again after EINTR, which Go's own signals cause.
func connectTo(fd, family int, a netip.AddrPort) error {
	return unix.Connect(fd, sockaddrFor(family, a))
}

// pollFor waits for events with a limit that is there only so that a failing test ends.
func pollFor(fd int, events int16) int16 {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		_, err := unix.Poll(fds, 20_000)
		if !errors.Is(err, unix.EINTR) {
			fatal(err)
			return fds[0].Revents
		}
	}
}

// echoes tells whether a connected socket leads to an echo server.
func echoes(fd int, text string) error {
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return err
	}
	return reads(fd, text)
}

func reads(fd int, text string) error {
	got := make([]byte, 0, len(text))
	for len(got) < len(text) {
		if pollFor(fd, unix.POLLIN)&unix.POLLIN == 0 {
			return errors.New("nothing came")
		}
		n, err := unix.Read(fd, got[len(got):cap(got)])
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		got = got[:len(got)+max(n, 0)]
	}
	if string(got) != text {
		return errors.New("something else came: " + string(got))
	}
	return nil
}

func sockError(fd int) string {
	v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err.Error()
	}
	if v == 0 {
		return "none"
	}
	return unix.ErrnoName(syscall.Errno(v))
}

func rawUnspec() []byte { return binary.NativeEndian.AppendUint16(nil, unix.AF_UNSPEC) }

// eventually waits until something is so, with a limit that is there only so that a failing test ends.
func eventually(what func() bool) bool {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if what() {
			return true
		}
	}
	return what()
}
