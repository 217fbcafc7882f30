package hostile

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// TestNET3_LoopbackOfTheHost: only the address and port that is allowed leads to the host's loopback, or both addresses that
// localhost stands for where that is; no other address of loopback does, and never the ports that are srt's own inside.
func TestNET3_LoopbackOfTheHost(t *testing.T) {
	w := newWorld(t)
	ports := []string{"5432", "5433", "1081", "1082"}
	for _, port := range ports {
		for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, port))
			must(t, err)
			t.Cleanup(func() { l.Close() })
			go serveBanner(l)
		}
	}
	const attack = `
out = []
for host in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:127.0.0.2", "::127.0.0.1", "64:ff9b::127.0.0.1", "10.203.255.1"):
    for port in (5432, 5433, 1081, 1082):
        for make in (tcp, lambda *a: settled(nonblocking(*a))):
            try:
                s = make(host, port, INET6 if ":" in host else INET); s.setblocking(True)
                out.append("%s %d %s" % (host, port, banner(s)))
            except OSError as e:
                if e.errno not in (errno.ECONNREFUSED, errno.EACCES, errno.ENETUNREACH): out.append("%s %d %s" % (host, port, name(e)))
print("\n".join(sorted(set(out))))
l = socket.socket(INET, TCP); l.bind(("127.0.0.1", 5432)); l.listen(4)
s = socket.socket(INET, TCP); s.connect(("127.0.0.1", 5432)); l.accept()[0].send(b"inside"); print(banner(s))
done()`
	stage.Each(t, func(s *stage.Stage) {
		for _, c := range []struct {
			allow, deny []string
			want, seen  []string
		}{
			{[]string{good}, nil, nil, nil},
			{[]string{"localhost:5432"}, nil, []string{"0.0.0.0 5432 127.0.0.1:5432", "127.0.0.1 5432 127.0.0.1:5432", ":: 5432 ::1:5432",
				"::1 5432 ::1:5432", "::ffff:0.0.0.0 5432 127.0.0.1:5432", "::ffff:127.0.0.1 5432 127.0.0.1:5432"},
				[]string{"127.0.0.1:5432", "[::1]:5432"}},
			{[]string{"localhost", "127.0.0.1:5432", "[::1]:5433"}, []string{"localhost"}, nil, nil},
			{[]string{"*.app.localhost", "localhost.test"}, nil, nil, nil},
			{[]string{"127.0.0.1:5432"}, nil, []string{"0.0.0.0 5432 127.0.0.1:5432", "127.0.0.1 5432 127.0.0.1:5432",
				"::ffff:0.0.0.0 5432 127.0.0.1:5432", "::ffff:127.0.0.1 5432 127.0.0.1:5432"}, []string{"127.0.0.1:5432"}},
			{[]string{"[::1]:5432"}, nil, []string{":: 5432 ::1:5432", "::1 5432 ::1:5432"}, []string{"[::1]:5432"}},
			{[]string{"127.0.0.1", "127.0.0.2"}, []string{"127.0.0.1:5433", "*:5432"}, []string{"127.0.0.2 5433 127.0.0.2:5433",
				"::ffff:127.0.0.2 5433 127.0.0.2:5433"}, []string{"127.0.0.2:5433"}},
		} {
			s.T.Run(fmt.Sprint(c.allow), func(t *testing.T) {
				w.silent(t, func() {
					wantLines(t, w.python(s, rules{Allow: c.allow, Deny: c.deny}, attack), strings.Join(append(list(c.want), "inside"), "\n"))
				}, c.seen...)
			})
		}
	})
}

// TestNET90_ProxyVariables: what a program does with the proxy variables changes nothing about what it may reach.
func TestNET90_ProxyVariables(t *testing.T) {
	w := newWorld(t)
	const attack = `
import urllib.request
http, no = dict(os.environ), [None, "*", "", ".", "10.203.2.1", "bad.test", "0.0.0.0/0", "test", "x, *"]
places = ["http://10.203.2.1/", "http://bad.test/", "http://x.leak.test/", "http://[fd5a:203:1::bad]/", "http://10.203.1.1:80/", "http://good.test:80/", "http://0x0acb0201/", "http://[::ffff:10.203.2.1]/"]
for value in no:
    for proxies in (True, False):
        for k in list(os.environ):
            if "proxy" in k.lower(): del os.environ[k]
        if proxies: os.environ.update({k: v for k, v in http.items() if "proxy" in k.lower()})
        for k in ("no_proxy", "NO_PROXY"):
            os.environ.pop(k, None)
            if value is not None: os.environ[k] = value
        for place in places:
            try:
                with urllib.request.build_opener().open(place, timeout=30) as r: print("reached", place, value, r.status)
            except Exception as e: pass
# The proxies, by every route there is to them, with and without the right password.
import base64, urllib.parse
url = urllib.parse.urlsplit(http["HTTP_PROXY"]); auth = base64.b64encode(("%s:%s" % (url.username, url.password)).encode())
for host in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"):
    for port in (3128, 1080):
        for target in (b"10.203.2.1:7", b"bad.test:7", b"10.203.1.1:8", b"127.0.0.1:1081", b"127.0.0.1:1082", b"127.0.0.1:53", b"198.19.200.1:7", socket.gethostbyname("bad.test").encode() + b":7", b"[::ffff:10.203.2.1]:7", b"0x0acb0201:7", b"[64:ff9b::acb:201]:7"):
            try:
                s = tcp(host, port, INET6 if ":" in host else INET)
                s.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nProxy-Authorization: Basic " + auth + b"\r\n\r\n")
                if b" 200 " in s.recv(100): print("tunnel", host, port, target)
            except OSError: pass
# A proxy within a proxy.
s = tcp("127.0.0.1", 3128); s.sendall(b"CONNECT 10.203.1.1:7 HTTP/1.1\r\nProxy-Authorization: Basic " + auth + b"\r\n\r\n")
print(s.recv(100)[:12].decode())
done()`
	stage.Each(t, func(s *stage.Stage) {
		w.silent(s.T, func() {
			wantLines(s.T, w.python(s, rules{Allow: []string{good + ":7", goodName + ":7"}, Deny: []string{"*.leak.test"}}, attack), "HTTP/1.1 200")
		}, good+":7")
	})
}
