package test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// greets serves a Unix socket of the host that says "hello" to everybody who can open its file.
func (b *box) greets(path string) {
	b.t.Helper()
	l, err := net.Listen("unix", path)
	b.must(err)
	b.must(os.Chmod(path, 0o777))
	b.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
}

// greeting connects to each path and says what came of it.
const greeting = `
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); print(s.recv(9).decode())
    except OSError as e: print(type(e).__name__)
`

func TestNet_80_SocketsOfTheHostByPath(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		b.mkdir(b.dir+"/s/dir", 0o755)
		listed, other, within := b.dir+"/s/listed", b.dir+"/s/other", b.dir+"/s/dir/within"
		for _, path := range []string{listed, other, within} {
			b.greets(path)
		}
		b.link(listed, "to-listed")
		b.link(other, "to-other")
		b.link(b.dir+"/s/dir", "to-dir")
		run := func(net object) result {
			return b.run(cfg{aw: list{"."}, net: net}, "python3", "-c", greeting, listed, other, within, "to-listed", "to-other", "to-dir/within", b.dir+"/s/none").ok()
		}
		denied := "PermissionError"
		run(nil).prints(strings.Join([]string{denied, denied, denied, denied, denied, denied, "FileNotFoundError"}, "\n"))
		run(object{"allowUnixSockets": list{listed, "to-dir"}}).
			prints(strings.Join([]string{"hello", denied, "hello", "hello", denied, "hello", "FileNotFoundError"}, "\n"))
		run(object{"allowUnixSockets": list{b.dir + "/s"}}).
			prints(strings.Join([]string{"hello", "hello", "hello", "hello", "hello", "hello", "FileNotFoundError"}, "\n"))
		run(object{"allowAllUnixSockets": true}).
			prints(strings.Join([]string{"hello", "hello", "hello", "hello", "hello", "hello", "FileNotFoundError"}, "\n"))
	})
}

// TestNet_80_MovedSockets: a location where the command may rename says nothing; what was there at the start counts.
func TestNet_80_MovedSockets(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		b.mkdir("ok", 0o755)
		for _, path := range []string{b.work + "/ok/standing", b.work + "/file", b.work + "/other", b.work + "/another"} {
			b.greets(path)
		}
		script := greeting + `
import os
def reach(path):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); print(s.recv(9).decode())
    except OSError as e: print(type(e).__name__)
reach("ok/standing")
reach("file")
os.rename("other", "ok/moved")
reach("ok/moved")
os.rename("another", "file")
reach("file")
os.rename("ok/standing", "ok/renamed")
reach("ok/renamed")
os.rename("ok", "elsewhere")
os.mkdir("ok")
os.rename("elsewhere/moved", "ok/standing")
reach("ok/standing")
`
		c := cfg{aw: list{"."}, net: object{"allowUnixSockets": list{"ok", "file"}}}
		denied := "PermissionError"
		b.run(c, "python3", "-c", script).ok().prints(strings.Join([]string{"hello", "hello", denied, denied, "hello", denied}, "\n"))
	})
}

// TestNet_81_NothingOutlivesTheCommand: a hand that connects to a server without room does not keep srt from ending, though a
// thread of the command takes the time limit of the socket away.
func TestNet_81_NothingOutlivesTheCommand(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		path := b.dir + "/full"
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		b.must(err)
		t.Cleanup(func() { unix.Close(fd) })
		b.must(unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		b.must(os.Chmod(path, 0o777))
		b.must(unix.Listen(fd, 0))
		first, err := net.Dial("unix", path)
		b.must(err)
		t.Cleanup(func() { first.Close() })
		b.run(cfg{net: object{"allowUnixSockets": list{path}}}, "python3", "-c", `
import os, socket, sys, threading, time
def connect():
    while True:
        s = socket.socket(socket.AF_UNIX)
        def meddle():
            try:
                while True: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(16))
            except OSError: pass
        threading.Thread(target=meddle, daemon=True).start()
        try: s.connect(sys.argv[1])
        except OSError: pass
        s.close()
for _ in range(4): threading.Thread(target=connect, daemon=True).start()
time.sleep(0.5)
print("done", flush=True)
os._exit(0)
`, path).ok().prints("done")
	})
}

// TestNet_81_OwnSockets: what a command binds its own processes connect to, whatever is listed.
func TestNet_81_OwnSockets(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		b.run(cfg{aw: list{"."}}, "python3", "-c", `
import os, socket
for kind, path in ((socket.SOCK_STREAM, "own"), (socket.SOCK_SEQPACKET, os.path.abspath("seq")), (socket.SOCK_STREAM, "\0abstract")):
    l = socket.socket(socket.AF_UNIX, kind); l.bind(path); l.listen()
    if os.fork() == 0:
        c = socket.socket(socket.AF_UNIX, kind); c.connect(path); c.send(b"to " + str(kind.name).encode()); os._exit(0)
    print(l.accept()[0].recv(99).decode())
`).ok().prints("to SOCK_STREAM\nto SOCK_SEQPACKET\nto SOCK_STREAM")
	})
}

// TestNet_81_WithoutAListener: where no system call can be put to srt, Unix sockets are refused as a whole and names do not resolve;
// the proxies are the way out.
func TestNet_81_WithoutAListener(t *testing.T) {
	need(t, "python3", "curl")
	each(t, func(t *testing.T, b *box) {
		b.withoutListener()
		web := b.web()
		c := cfg{allow: list{"localhost:" + web.port}, net: object{"allowUnixSockets": list{"/"}}}
		b.host(b.srtWithin(c, "python3", "-c", `
import socket
try: socket.socket(socket.AF_UNIX)
except OSError as e: print(type(e).__name__)
try: socket.getaddrinfo("some.test", 80)
except socket.gaierror as e: print(e.errno == socket.EAI_AGAIN)
try: socket.create_connection(("192.0.2.1", 80))
except OSError as e: print(type(e).__name__)
`)...).ok().prints("PermissionError\nTrue\nPermissionError")
		b.host(b.srtWithin(c, "sh", "-c", byProxy+"curl -fsS http://localhost:"+web.port+"/")...).ok().prints("hello ")
	})
}

// TestNet_63_MITMSocket: what matches goes to the socket, as a tunnel and as a request, after it was allowed and by no other way.
func TestNet_63_MITMSocket(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		path := b.dir + "/mitm"
		l, err := net.Listen("unix", path)
		b.must(err)
		defer l.Close()
		b.must(os.Chmod(path, 0o777))
		heads := make(chan string, 16)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					r := bufio.NewReader(c)
					line, _ := r.ReadString('\n')
					for head := line; ; {
						next, err := r.ReadString('\n')
						if head += next; err != nil || next == "\r\n" {
							heads <- head
							break
						}
					}
					if strings.HasPrefix(line, "CONNECT ") {
						io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nfrom the socket")
						return
					}
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nfrom the socket")
				}()
			}
		}()
		c := cfg{allow: list{"a.test"}, net: object{"mitmProxy": object{"socketPath": path, "domains": list{"a.test", "b.test"}}}}
		b.sh(c, "curl -fsS http://a.test/x").ok().prints("from the socket")
		if head := <-heads; !strings.HasPrefix(head, "GET http://a.test/x HTTP/1.1\r\n") || strings.Contains(head, "Proxy-Authorization") {
			t.Errorf("the request: %q", head)
		}
		// Without a proxy, too.
		b.run(c, "bash", "-c", "exec 3<>/dev/tcp/a.test/7; cat <&3").ok().prints("from the socket")
		if head := <-heads; !strings.HasPrefix(head, "CONNECT a.test:7 HTTP/1.1\r\n") || strings.Contains(head, "Proxy-Authorization") {
			t.Errorf("the tunnel: %q", head)
		}
		b.sh(c, "curl -fsS http://b.test/").fails()
		l.Close()
		b.sh(c, "curl -sS -o /dev/null -w '%{http_code}' http://a.test/").ok().prints("502")
		if len(heads) != 0 {
			t.Errorf("more arrived: %q", <-heads)
		}
	})
}

// TestNet_64_ExternalProxies: a proxy of the host's stands in the place of srt's own, unfiltered, at the same port inside.
func TestNet_64_ExternalProxies(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		b.must(err)
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					r := bufio.NewReader(c)
					line, _ := r.ReadString('\n')
					for {
						if next, err := r.ReadString('\n'); err != nil || next == "\r\n" {
							break
						}
					}
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nexternal: %s", strings.TrimSpace(line))
				}()
			}
		}()
		port := l.Addr().(*net.TCPAddr).Port
		web := b.web()
		http := cfg{allow: list{"localhost:" + web.port}, net: object{"httpProxyPort": port}}
		b.sh(http, `echo "$HTTP_PROXY $FTP_PROXY"; curl -fsS http://not-listed.test/x`).ok().
			prints("http://localhost:3128 socks5h://localhost:1080\nexternal: GET http://not-listed.test/x HTTP/1.1")
		// The other side is srt's, by the policy and without credentials (NET-18).
		b.sh(http, byProxy+"unset http_proxy HTTP_PROXY; curl -fsS -x socks5h://localhost:1080 http://localhost:"+web.port+"/").ok().prints("hello ")
		b.sh(http, "curl -fsS -x socks5h://localhost:1080 http://not-listed.test/").fails()

		socks := cfg{allow: list{"localhost:" + web.port}, net: object{"socksProxyPort": port}}
		b.sh(socks, "curl -fsS -x http://localhost:1080 http://not-listed.test/y").ok().prints("external: GET http://not-listed.test/y HTTP/1.1")
		b.sh(socks, byProxy+"curl -fsS http://localhost:"+web.port+"/").ok().prints("hello ")
		b.sh(socks, "curl -fsS http://not-listed.test/").fails()
	})
}
