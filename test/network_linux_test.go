package test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// recorder is a web server on the host's loopback that remembers what arrived.
type recorder struct {
	*httptest.Server
	port string
	mu   sync.Mutex
	got  []*http.Request
}

func (b *box) web() *recorder {
	b.t.Helper()
	rec := &recorder{}
	rec.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec.mu.Lock()
		rec.got = append(rec.got, r)
		rec.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "hello %s", body)
	}))
	rec.port = rec.URL[strings.LastIndex(rec.URL, ":")+1:]
	b.t.Cleanup(rec.Close)
	return rec
}

func (r *recorder) requests() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*http.Request(nil), r.got...)
}

func TestNet_ClientsByEveryVariable(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		allowed := cfg{allow: list{"localhost:" + web.port}}
		url := " http://localhost:" + web.port + "/x"
		clients := map[string]string{
			"curl http_proxy":  byProxy + "curl -fsS" + url,
			"curl connect":     byProxy + "curl -fsSp" + url,
			"curl socks5h":     byProxy + "curl -fsS -x $FTP_PROXY" + url,
			"curl all_proxy":   byProxy + "unset http_proxy; curl -fsS" + url,
			"curl https_proxy": byProxy + "http_proxy=$https_proxy curl -fsS" + url,
			"python urllib":    byProxy + `python3 -c 'import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())'` + url,
		}
		if exists("wget") {
			clients["wget"] = byProxy + "wget -qO-" + url
		}
		for name, text := range clients {
			r := b.sh(allowed, text)
			if r.status != 0 || !strings.HasPrefix(r.stdout, "hello") {
				t.Errorf("%s, allowed: %v", name, r)
			}
			before := len(web.requests())
			if r := b.sh(cfg{allow: list{"localhost:1"}}, text); r.status == 0 || strings.Contains(r.stdout, "hello") {
				t.Errorf("%s, off the list: %v", name, r)
			}
			if got := len(web.requests()); got != before {
				t.Errorf("%s, off the list: %d requests arrived", name, got-before)
			}
		}
		for _, r := range web.requests() {
			for _, h := range []string{"Proxy-Authorization", "Authorization", "Via", "X-Forwarded-For"} {
				if r.Header.Get(h) != "" {
					t.Errorf("the upstream sees %s: %q", h, r.Header.Get(h)) // NET-30
				}
			}
		}
	})
}

func exists(tool string) bool {
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		if _, err := os.Stat(filepath.Join(dir, tool)); err == nil {
			return true
		}
	}
	return false
}

// exchange is one request as bytes to a proxy inside a sandbox, and what has to be in the answer.
type exchange struct {
	rule  string
	input string // @ stands for the port of a server on the host, $AUTH for the session's credentials, $AS(user) for its token with another user
	want  []string
	not   string
}

// An input must make the proxy close the connection, since the client leaves only then: one that goes earlier gets no
// answer (NET-25).

// rawClient sends each of its arguments over a connection of its own to the proxy named by the first and prints every
// answer as one line in base64.
const rawClient = `
import base64, os, re, socket, sys
from urllib.parse import unquote
m = re.match(r"http://([^:]*):([^@]*)@", os.environ["HTTP_PROXY"])
auth = base64.b64encode((unquote(m[1]) + ":" + m[2]).encode())
for text in sys.argv[2:]:
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.settimeout(30)
    data = base64.b64decode(text)
    data = data.replace(b"$AUTH", b"Proxy-Authorization: Basic " + auth).replace(b"$TOKEN", m[2].encode())
    for name in ("bob", ""):
        data = data.replace(b"$AS(%s)" % name.encode(), b"Proxy-Authorization: basic " + base64.b64encode((name + ":" + m[2]).encode()))
    data = data.replace(b"$LEN", bytes([len(m[2])]))
    s.sendall(data)
    got = b""
    try:
        while True:
            part = s.recv(65536)
            if not part: break
            got += part
    except ConnectionResetError: pass
    print(base64.b64encode(got).decode())
`

// exchanges runs them all in one sandbox.
func (b *box) exchanges(c cfg, proxyPort, hostPort string, list []exchange) {
	b.t.Helper()
	b.exchangesWith(func(args ...string) result { return b.run(c, args...) }, proxyPort, hostPort, list)
}

// exchangesWith is exchanges with another way to start the sandbox.
func (b *box) exchangesWith(run func(args ...string) result, proxyPort, hostPort string, list []exchange) {
	b.t.Helper()
	need(b.t, "python3")
	args := []string{"python3", "-c", rawClient, proxyPort}
	for _, e := range list {
		args = append(args, base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(e.input, "@", hostPort))))
	}
	r := run(args...).ok()
	answers := strings.Split(r.stdout, "\n")
	for i, e := range list {
		got, err := base64.StdEncoding.DecodeString(answers[i])
		b.must(err)
		for _, want := range e.want {
			if !bytes.Contains(got, []byte(want)) {
				b.t.Errorf("%s: %q\ngot  %q\nwant %q in it", e.rule, e.input, got, want)
			}
		}
		if e.not != "" && bytes.Contains(got, []byte(e.not)) {
			b.t.Errorf("%s: %q\ngot %q\nwithout %q", e.rule, e.input, got, e.not)
		}
	}
}

// chapter is the configuration of the network chapter's cases.
func chapter() cfg {
	return cfg{allow: list{"127.0.0.1", "localhost", "*.wild.test:8080"}, deny: list{"evil.test", "*:22"}}
}

func connectTo(target string) string {
	return "CONNECT " + target + " HTTP/1.1\r\nHost: x\r\n$AUTH\r\n\r\n"
}

func TestNet_HTTPProxyCases(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		get := "GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		const off, on = "403 host is not on the allow list", "403 host is on the deny list"
		list := []exchange{
			{"case 1", "CONNECT 127.0.0.1:@ HTTP/1.1\r\n\r\n", []string{"407 Proxy Authentication Required", `Basic realm="srt"`}, "200"},
			{"case 1", connectTo("127.0.0.1:@") + get, []string{"HTTP/1.1 200 Connection Established\r\n\r\n", "hello"}, ""},
			{"case 2", connectTo("evil.test:443"), []string{on, "X-Proxy-Error: blocked-by-allowlist"}, ""},
			{"case 2", connectTo("EVIL.test:443"), []string{on}, ""},
			{"case 2", connectTo("evil.test.:443"), []string{on}, ""},
			{"case 3", connectTo("nope.test:443"), []string{off, "Connection blocked by network allowlist"}, ""},
			{"case 3", "GET http://nope.test:81/ HTTP/1.1\r\nHost: x\r\n$AUTH\r\nConnection: close\r\n\r\n", []string{"403 Forbidden", "allowlist\n"}, ""},
			{"case 4", connectTo("127.0.0.1:22"), []string{on}, ""},
			{"case 4", connectTo("a.wild.test:8081"), []string{off}, ""},
			{"case 4", connectTo("wild.test:8080"), []string{off}, ""},
			{"case 6", connectTo("[::1%lo]:80"), []string{"403 malformed host"}, ""},
			{"case 6", connectTo("*.test:443"), []string{"403 malformed host"}, ""},
			{"case 8", strings.Replace(connectTo("127.0.0.1:@"), "$AUTH", "$AS(bob)", 1) + get, []string{"200 Connection", "hello"}, ""},
			{"case 8", strings.Replace(connectTo("127.0.0.1:@"), "$AUTH", "$AS()", 1), []string{"407 Proxy"}, "200"},
			{"case 15", connectTo("127.0.0.1:1"), []string{"502 Bad Gateway"}, ""},
			{"case 15", "GET http://127.0.0.1:@/1 HTTP/1.1\r\nHost: x\r\n$AUTH\r\n\r\nGET http://127.0.0.1:@/2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
				[]string{"HTTP/1.1 200 OK", "407 Proxy"}, ""},
		}
		for _, spelling := range []string{"127.1", "0x7f.0.0.1", "2130706433", "017700000001", "[::ffff:7f00:1]", "127.0.0.1."} {
			list = append(list, exchange{"case 5", connectTo(spelling+":@") + get, []string{"200 Connection Established", "hello"}, ""})
		}
		for _, target := range []string{"127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80/x"} {
			list = append(list, exchange{"case 6", connectTo(target), []string{"400 Bad Request"}, ""})
		}
		b.exchanges(chapter(), "3128", web.port, list)
		b.exchanges(chapter(), "1080", web.port, list[:4]) // NET-3: each port takes either protocol
	})
}

func TestNet_case12_UserinfoIsNoHost(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		b.exchanges(chapter(), "3128", "@", []exchange{ // here "@" stands for itself
			{"case 12", "GET http://evil.test:pw@127.0.0.1:" + web.port + "/x HTTP/1.1\r\nHost: x\r\n$AUTH\r\nConnection: close\r\n\r\n", []string{"200 OK", "hello"}, ""},
			{"case 6", connectTo("u:p@127.0.0.1:80"), []string{"400 Bad Request"}, ""},
		})
		got := web.requests()
		if len(got) != 1 || got[0].Header.Get("Authorization") != "" || got[0].Host != "127.0.0.1:"+web.port {
			t.Errorf("upstream saw %+v", got)
		}
	})
}

// socksTo is a SOCKS5 exchange with the session's credentials: greeting, RFC 1929, and a request.
func socksTo(command, kind byte, address string, port int) string {
	if kind == 3 {
		address = string(rune(len(address))) + address
	}
	return "\x05\x01\x02" + "\x01\x03srt$LEN$TOKEN" + string([]byte{5, command, 0, kind}) + address + string([]byte{byte(port >> 8), byte(port)})
}

func TestNet_SOCKSCases(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		var port int
		fmt.Sscan(web.port, &port)
		get := "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
		granted, reply := "\x05\x02\x01\x00\x05\x00", func(code byte) string { return "\x05\x02\x01\x00\x05" + string([]byte{code}) }
		mapped := string(net.ParseIP("127.0.0.1").To16())
		b.exchanges(chapter(), "1080", "@", []exchange{
			{"granted", socksTo(1, 3, "localhost", port) + get, []string{granted, "hello"}, ""},
			{"case 7", socksTo(1, 3, "evil.com\x00.a.wild.test", 8080), []string{reply(2)}, ""},
			{"case 7", socksTo(1, 3, "a\r\nb.wild.test", 8080), []string{reply(2)}, ""},
			{"case 7", socksTo(1, 3, "::ffff:1.2.3.4%x.wild.test", 8080), []string{reply(2)}, ""},
			{"case 7", socksTo(1, 3, "", 8080), []string{reply(2)}, ""},
			{"case 8", "\x05\x01\x02\x01\x03bob$LEN$TOKEN", []string{"\x05\x02\x01\x01"}, ""},
			{"case 8", "\x05\x01\x02\x01\x03srt\x05wrong", []string{"\x05\x02\x01\x01"}, ""},
			{"case 9", socksTo(2, 3, "localhost", port), []string{reply(7)}, ""},
			{"case 9", socksTo(3, 3, "localhost", port), []string{reply(7)}, ""},
			{"case 9", socksTo(1, 4, mapped, port) + get, []string{granted, "hello"}, ""},
			{"case 9", "\x04\x01\x00\x50\x7f\x00\x00\x01u\x00", nil, "\x00"},
			{"case 15", socksTo(1, 3, "localhost", 1), []string{"\x05\x02\x01\x00\x05"}, granted},
		})
	})
}

func TestNet_case31_32_CallsThatLeadAround(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.check(cfg{aw: list{"."}}, "socket 1 1: ok", "socket 1 5: ok", "socket 1 2: EPERM", "socket 40 1: EPERM", "iouring: EPERM", "socketpair 1 1: ok",
			"socketpair 1 5: ok", "socketpair 1 2: EPERM", "socket 2 1: ok", "socket 10 2: ok", "socket 16 3: ok",
			"userns: EPERM", "mountns: EPERM", "clone3: ENOSYS", "mount . /mnt: EPERM", "umount /proc: EPERM", "setns: EPERM")
		b.sh(cfg{}, "true & wait; (true); unshare -Ur true").fails()
		b.check(cfg{net: object{"allowAllUnixSockets": true}}, "socket 1 1: ok", "userns: EPERM", "iouring: EPERM")
		b.check(cfg{top: object{"allowNestedUserNamespaces": true}}, "socket 1 2: EPERM", "iouring: EPERM")
		nested := cfg{top: object{"allowNestedUserNamespaces": true}}
		if b.who.root() {
			// Mapping root's own id takes CAP_SETFCAP since Linux 5.12, which root does not keep (docs/architecture.md).
			b.run(nested, "unshare", "-U", "true").ok()
		} else {
			b.run(nested, "unshare", "-Ur", "true").ok()
		}
	})
}

func TestNet_case33_ProxiesAcceptFromTheFirstInstruction(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		ports := []string{"127.0.0.1:3128", "[::1]:3128", "127.0.0.1:1080", "[::1]:1080"}
		args := b.srt(cfg{}, probePath)
		for i, p := range ports {
			if i > 0 {
				args = append(args, ";")
			}
			args = append(args, "connect", p)
		}
		for range 100 {
			b.host(args...).ok().prints("ok\nok\nok\nok")
		}
	})
}

func TestNet_3_NothingElseIsReachable(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		own, err := net.Listen("tcp6", "[::1]:0")
		b.must(err)
		defer own.Close()
		b.check(cfg{allow: list{"localhost:1", "127.0.0.2"}}, "connect 127.0.0.1:"+web.port+": ECONNREFUSED", "connect "+own.Addr().String()+": ECONNREFUSED",
			"connect 192.0.2.1:80: EACCES", "connect [2001:db8::1]:80: EACCES")
		if got := web.requests(); len(got) != 0 {
			t.Errorf("%d requests arrived", len(got))
		}
	})
}

func TestNet_case35_SSH(t *testing.T) {
	need(t, "git", "ssh", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		b.withGit()
		// The command waits for a line while ssh runs, and all command lines are read meanwhile.
		banner, err := net.Listen("tcp4", "127.0.0.1:0")
		b.must(err)
		defer banner.Close()
		_, port, _ := net.SplitHostPort(banner.Addr().String())
		r := b.sh(chapter(), "git ls-remote git@github.com:x/y; git ls-remote ssh://git@nope.test:2222/x/y; printf %s $CLOUDSDK_PROXY_PASSWORD")
		r.says("github.com:22: 403 host is on the deny list", "nope.test:2222: 403 host is not on the allow list")

		cmd := b.command(b.srt(chapter(), "sh", "-c", "printf '%s\n' $CLOUDSDK_PROXY_PASSWORD; git ls-remote ssh://git@localhost:"+port+"/x/y")...)
		out, err := cmd.StdoutPipe()
		b.must(err)
		b.must(cmd.Start())
		token, err := bufio.NewReader(out).ReadString('\n')
		b.must(err)
		conn, err := banner.Accept() // ssh is connected now, and waits for the server
		b.must(err)
		if first, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(first, "SSH-2.0-") {
			t.Errorf("the server got %q, %v", first, err)
		}
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		connects := 0
		for _, name := range lines {
			text, _ := os.ReadFile(name)
			if bytes.Contains(text, []byte(strings.TrimSpace(token))) {
				t.Errorf("%s holds the token: %q", name, text)
			}
			if bytes.Contains(text, []byte("\x00localhost\x00"+port+"\x00")) || bytes.Contains(text, []byte("localhost "+port)) {
				connects++
			}
		}
		if len(token) < 32 || connects == 0 {
			t.Errorf("token %q, %d connecting processes: the test looked at nothing", token, connects)
		}
		conn.Close()
		_ = cmd.Wait()
	})
}
