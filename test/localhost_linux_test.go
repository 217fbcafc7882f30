package test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// servers are two web servers of the host: one on each loopback address, on one port, each of which says where it is.
func (b *box) servers() (port string) {
	b.t.Helper()
	four, err := net.Listen("tcp4", "127.0.0.1:0")
	b.must(err)
	_, port, _ = net.SplitHostPort(four.Addr().String())
	six, err := net.Listen("tcp6", "[::1]:"+port)
	b.must(err)
	for _, l := range []net.Listener{four, six} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "host "+l.Addr().String())
		}))
		b.must(s.Listener.Close())
		s.Listener = l
		s.Start()
		b.t.Cleanup(s.Close)
	}
	return port
}

// unsetProxies leaves a client without any proxy variable.
const unsetProxies = "unset http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY NO_PROXY no_proxy; "

// TestNet_3_DevelopmentServer: a port of localhost that is listed is the host's for every client, with proxy variables and
// without, at both addresses.
func TestNet_3_DevelopmentServer(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		port := b.servers()
		byName := cfg{allow: list{"localhost:" + port}}
		url := func(host string) string { return " http://" + host + ":" + port + "/" }
		python := `python3 -c 'import sys,urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())'`
		for _, tc := range []struct{ name, script, want string }{
			{"curl", "curl -fsS" + url("localhost"), "host "},
			{"curl without proxies", unsetProxies + "curl -fsS" + url("localhost"), "host "},
			{"curl by the proxy", "curl -fsS --noproxy ''" + url("localhost"), "host "},
			{"curl IPv4", "curl -4fsS" + url("localhost"), "host 127.0.0.1:" + port},
			{"curl IPv6", "curl -6fsS" + url("localhost"), "host [::1]:" + port},
			{"curl IPv4 literal", "curl -fsS" + url("127.0.0.1"), "host 127.0.0.1:" + port},
			{"curl IPv6 literal", "curl -fsS" + url("[::1]"), "host [::1]:" + port},
			{"RFC 6761 curl beneath localhost", "curl -fsS" + url("app.localhost"), "host "},
			{"python", python + url("localhost"), "host "},
			{"python without proxies", unsetProxies + python + url("localhost"), "host "},
			{"node", "command -v node >/dev/null || exec echo host '(no node)'; node -e 'fetch(process.argv[1]).then(r=>r.text()).then(console.log)'" + url("localhost"), "host "},
		} {
			if r := b.sh(byName, tc.script); r.status != 0 || !strings.HasPrefix(r.stdout, tc.want) {
				t.Errorf("%s: %v", tc.name, r)
			}
		}
	})
}

// TestNet_3_NET85_ServerInsideFirst: a server that the command starts keeps its port, at whichever address it listens.
func TestNet_3_NET85_ServerInsideFirst(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		port := b.servers()
		const serve = `
import socket, sys
port = int(sys.argv[1])
for host, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
    l = socket.socket(family, socket.SOCK_STREAM)
    l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind((host, port)); l.listen(8)
    s = socket.create_connection(("localhost", port), 30)
    a = l.accept()[0]; a.sendall(b"inside"); print(host, s.recv(9).decode())
    for x in (s, a, l): x.close()
s = socket.create_connection(("localhost", port), 30)
s.sendall(b"GET / HTTP/1.0\r\n\r\n"); print(b"host " in s.makefile("rb").read())
`
		b.file("serve.py", serve)
		b.sh(cfg{allow: list{"localhost:" + port}}, "python3 serve.py "+port).ok().prints("127.0.0.1 inside\n::1 inside\nTrue")
	})
}

// TestNet_3_NET7_DenyOfEitherSpelling: a deny wins over a list of the other spelling, and explain why says so.
func TestNet_3_NET7_DenyOfEitherSpelling(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		port := b.servers()
		four, six := "connect 127.0.0.1:"+port, "connect [::1]:"+port
		for _, tc := range []struct {
			name        string
			allow, deny list
			four, six   string
		}{
			{"literal for the name", list{"127.0.0.1:" + port}, nil, "ok", "ECONNREFUSED"},
			{"name", list{"localhost:" + port}, nil, "ok", "ok"},
			{"name without a port", list{"localhost"}, nil, "ok", "ok"},
			{"name denied", list{"127.0.0.1:" + port, "[::1]"}, list{"localhost"}, "ECONNREFUSED", "ECONNREFUSED"},
			{"literal denied", list{"localhost"}, list{"127.0.0.1:" + port}, "ECONNREFUSED", "ok"},
			{"port denied", list{"localhost"}, list{"*:" + port}, "ECONNREFUSED", "ECONNREFUSED"},
			{"another port", list{"localhost:1", "127.0.0.2"}, nil, "ECONNREFUSED", "ECONNREFUSED"},
		} {
			c := cfg{allow: tc.allow, deny: tc.deny}
			t.Log(tc.name)
			b.check(c, four+": "+tc.four, six+": "+tc.six)
		}
	})
}
