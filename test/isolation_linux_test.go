package test

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNet_UDPStaysInside(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		outside, err := net.ListenPacket("udp4", "127.0.0.1:0")
		b.must(err)
		defer outside.Close()
		_, port, _ := net.SplitHostPort(outside.LocalAddr().String())
		script := `
import errno, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0)); s.sendto(b"own", s.getsockname()); print(s.recv(9))
for address in ("192.0.2.1", "8.8.8.8", "10.0.0.1"):
    try: s.sendto(b"x", (address, 53)); print("sent")
    except OSError as e: print(errno.errorcode[e.errno])
try: s.sendto(b"leak", ("127.0.0.1", int(sys.argv[1])))
except OSError as e: pass
print(*{a[4][0].split(".")[0] for a in socket.getaddrinfo("example.com", 80, socket.AF_INET)})
`
		b.run(cfg{allow: list{"example.com", "8.8.8.8"}}, "python3", "-c", script, port).ok().
			prints("b'own'\nEACCES\nEACCES\nEACCES\n198") // NET-3; the stub answers every name
		// What the host sends itself arrives behind anything that came out of the sandbox.
		own, err := net.Dial("udp4", outside.LocalAddr().String())
		b.must(err)
		defer own.Close()
		_, err = own.Write([]byte("end"))
		b.must(err)
		buf := make([]byte, 16)
		n, _, err := outside.ReadFrom(buf)
		if string(buf[:n]) != "end" {
			t.Errorf("%q arrived on the host, %v", buf[:n], err)
		}
	})
}

// TestNet_3_LookupsOfOneFamily: restricted to the families that the system has addresses of, a lookup finds both.
func TestNet_3_LookupsOfOneFamily(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		b.run(cfg{}, "python3", "-c", `
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    found = socket.getaddrinfo("some.test", 80, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    print(len(found), found[0][4][0][:2])
`).ok().prints("1 19\n1 fd")
	})
}

func TestNet_85_OwnLoopback(t *testing.T) {
	need(t, "python3", "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("page", "inside")
		for _, address := range []string{"127.0.0.1", "::1"} {
			host := address
			if strings.Contains(host, ":") {
				host = "[" + host + "]"
			}
			script := "python3 -u -m http.server --bind " + address + " 18080 >/dev/null 2>log & " +
				"curl -sS --retry 40 --retry-connrefused --retry-delay 1 --noproxy '*' http://" + host + ":18080/page || { cat log >&2; exit 1; }"
			b.sh(cfg{aw: list{"."}}, script).ok().prints("inside")
		}
		if c, err := net.Dial("tcp4", "127.0.0.1:18080"); err == nil {
			c.Close()
			t.Error("the sandbox's port is open on the host")
		}
	})
}

func TestNet_81_SocketsOfTheHost(t *testing.T) {
	need(t, "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		abstract, err := net.Listen("unix", "@"+b.mark)
		b.must(err)
		defer abstract.Close()
		script := `
import socket, sys
for path in ("\0" + sys.argv[1],):
    try:
        s = socket.socket(socket.AF_UNIX); s.connect(path); print("connected")
    except OSError as e: print(type(e).__name__)
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))
`
		b.run(cfg{}, "python3", "-c", script, b.mark).ok().prints("ConnectionRefusedError\nb'x'")
		// Abstract names belong to the sandbox's own network namespace, whatever is allowed.
		b.run(cfg{net: object{"allowAllUnixSockets": true}}, "python3", "-c", script, b.mark).ok().prints("ConnectionRefusedError\nb'x'")
	})
}

func TestNet_60_61_ParentProxy(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		seen := make(chan *http.Request, 8)
		parent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r
			fmt.Fprint(w, "from the parent")
		}))
		defer parent.Close()
		given := strings.Replace(parent.URL, "http://", "http://u:p%40@", 1)
		run := func(c cfg, text string, env ...string) result {
			cmd := b.command(b.srt(c, "sh", "-c", text)...)
			cmd.Env = append(b.env, env...)
			return b.finish(cmd)
		}
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p@"))
		for _, how := range []struct {
			net object
			env []string
		}{{nil, []string{"HTTP_PROXY=" + given}}, {nil, []string{"http_proxy=" + given}}, {object{"parentProxy": object{"http": given}}, nil}} {
			c := cfg{allow: list{"svc.test"}, net: how.net}
			run(c, "curl -fsS http://svc.test/x?y", how.env...).ok().prints("from the parent")
			r := <-seen
			if r.Header.Get("Proxy-Authorization") != want || r.RequestURI != "http://svc.test/x?y" || r.Host != "svc.test" {
				t.Errorf("%v: the parent sees %s, %v", how, r.RequestURI, r.Header)
			}
			// The policy comes first.
			run(c, "curl -fsS http://other.test/", how.env...).exits(22)
			// And what names no host of the parent's goes direct.
			run(cfg{allow: list{"localhost:1"}, net: how.net}, byProxy+"curl -fsS http://localhost:1/", how.env...).exits(22).says("502")
		}
		if len(seen) != 0 {
			t.Errorf("%d more requests reached the parent", len(seen))
		}
		if r := run(cfg{}, "env", "HTTP_PROXY="+given, "https_proxy="+given).ok(); strings.Contains(r.stdout, "p%40") {
			t.Errorf("the parent's password is in the command's environment: %v", r)
		}
	})
}

func TestNet_70_74_ReasonsAndViolations(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		c := cfg{deny: list{"evil.test", "*:22"}, net: object{"deniedDomainReasons": object{"evil.test": "No <b>evil</b>\nplease é ✓"}}}
		b.exchanges(c, "3128", "@", []exchange{{"case 11", connectTo("evil.test:443"), []string{"403 No bevil/b please ? ?\r\n"}, ""}})
		path := b.settings(c)
		r := b.host(srtPath, "-d", "-s", path, "exec", "--", "sh", "-c", "curl -s http://evil.test/; curl -sp http://Nope.test:81/; curl -s http://a.test:22/; true").ok()
		r.says("deny network-outbound evil.test:80 (No bevil/b please é ✓)", "deny network-outbound Nope.test:81 (host is not on the allow list)",
			"deny network-outbound a.test:22 (host is on the deny list)")
		quiet := c
		quiet.top = object{"ignoreViolations": object{"*": list{"evil.test"}}}
		r = b.host(srtPath, "-d", "-s", b.settings(quiet), "exec", "--", "sh", "-c", "curl -s http://evil.test/; curl -s http://nope.test/; true").ok()
		if r.says("nope.test:80"); strings.Contains(r.stderr, "deny network-outbound evil") {
			t.Errorf("an ignored violation shows: %v", r)
		}
		token := b.run(c, "printenv", "CLOUDSDK_PROXY_PASSWORD").ok().stdout
		if r := b.host(srtPath, "-d", "-s", path, "exec", "--", "printenv", "CLOUDSDK_PROXY_PASSWORD").ok(); strings.Contains(r.stderr, strings.TrimSpace(r.stdout)) || r.stdout == token {
			t.Errorf("the token is in the debug lines or the same for two sessions: %v", r)
		}
	})
}

func TestFS_65_ManyEntries(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		c := cfg{aw: list{"."}}
		for i := range 1000 {
			name := fmt.Sprintf("keys/%d", i)
			b.file(name, "secret")
			if i%2 == 0 {
				c.dr = append(c.dr, name)
			} else {
				c.dw = append(c.dw, name)
			}
		}
		before := b.tree(".")
		r := b.sh(c, "cat keys/*[02468]; for f in keys/*; do echo x >$f; rm -f $f; done 2>/dev/null; ls keys | wc -l")
		r.ok().prints("1000")
		b.unchanged(".", before)
	})
}

func TestNested_SrtInsideSrt(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		inner := b.srt(cfg{aw: list{"."}}, probePath, "create", "in", ";", "create", "../out")
		for _, c := range []cfg{{aw: list{".."}}, {aw: list{".."}, top: object{"allowNestedUserNamespaces": true}}} {
			r := b.run(c, inner...)
			if r.status == 0 {
				r.prints("ok\nEROFS")
			} else {
				// Where the inner one cannot be made, nothing runs and a sentence says why (docs/architecture.md).
				r.exits(1).prints("").says("Error: ")
				b.absent("in")
			}
			b.absent("../out")
		}
	})
}

func TestGit_PushOverHTTP(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository("../origin")
		b.host("git", "-C", b.home+"/origin", "config", "http.receivepack", "true").ok()
		b.host("git", "-C", b.home+"/origin", "checkout", "-q", "--detach").ok()
		port := b.gitServer(b.home)
		c := cfg{aw: list{"."}, allow: list{"localhost:" + port}}
		b.sh(c, byProxy+"git clone -q http://localhost:"+port+"/origin/.git w && cd w && echo two >>f && git commit -qam two && git push -q origin main").ok()
		b.host("git", "-C", b.home+"/origin", "log", "--format=%s", "main").ok().prints("two\none")
		b.sh(c, byProxy+"cd w && echo three >>f && git commit -qam three && git fetch -q && git status -sb").ok().prints("## main...origin/main [ahead 1]")
	})
}
