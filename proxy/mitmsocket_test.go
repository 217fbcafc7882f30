package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

func mustMITM(t *testing.T, path string, domains ...string) *MITM {
	t.Helper()
	m, err := NewMITM(path, domains)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func withMITM(m *MITM) func(*Options) {
	return func(o *Options) {
		rules := &Rules{Network: o.Policy().Network, MITM: m}
		o.Policy = func() *Rules { return rules }
	}
}

// socketDir is a directory with a path short enough for a socket.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "srt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// fakeMITM is a proxy on a Unix socket that answers each connection's first request and then echoes.
func fakeMITM(t *testing.T, answer string) (path string, got chan string) {
	t.Helper()
	path, got = filepath.Join(socketDir(t), "mitm"), make(chan string, 8)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				br := bufio.NewReader(conn)
				for first := true; ; first = false {
					request, err := rawRequest(br)
					if err != nil {
						return
					}
					got <- request
					_, _ = io.WriteString(conn, answer)
					if first && strings.HasPrefix(request, "CONNECT ") {
						_, _ = io.Copy(conn, br)
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return path, got
}

// mitmRules allow what the MITM takes and one name that it does not.
var mitmRules = policy.NetworkRules{AllowedDomains: []string{"mitm.test", "*.mitm.test", "direct.test", "127.0.0.1", "localhost"}}

func TestNET63_TunnelsOfEveryProtocol(t *testing.T) {
	path, got := fakeMITM(t, "HTTP/1.1 200 OK\r\n\r\nearly ")
	c := capture(t, mitmRules, withMITM(mustMITM(t, path, "mitm.test", "*.mitm.test", "127.0.0.1")), func(o *Options) {
		o.Resolver = &fakeResolver{} // none of the names may be looked up here
		o.Parent = mustParent(t, fmt.Sprintf("127.0.0.1:%d", closedPort(t)), "", "*")
	})
	for _, tc := range []struct {
		name, request string
		open          func() *peer
	}{
		{"CONNECT, trailing dot and case", "mitm.test:443", func() *peer { return c.tunnel("MITM.test.:443") }},
		{"CONNECT, subdomain", "a.mitm.test:22", func() *peer { return c.tunnel("a.mitm.test:22") }},
		{"CONNECT, loopback literal", "127.0.0.1:9", func() *peer { return c.tunnel("127.1:9") }},
		{"SOCKS", "mitm.test:443", func() *peer {
			p := c.dial()
			p.send("%s%s", socksLogin("srt", testToken), socksName(1, "mitm.test", 443))
			p.want(socksAdmitted + socksAnswer(0))
			return p
		}},
		{"captured", "a.mitm.test:443", func() *peer { return c.open(c.addresses("a.mitm.test", 443)[1]) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tc.open()
			p.send("hello")
			p.want("early hello")
			want := "CONNECT " + tc.request + " HTTP/1.1\r\nHost: " + tc.request + "\r\n\r\n" // without credentials
			if r := <-got; r != want {
				t.Errorf("\n got %q\nwant %q", r, want)
			}
			p.Close()
		})
	}
	c.wantLines()
}

func TestNET63_PlainRequestsInAbsoluteForm(t *testing.T) {
	path, got := fakeMITM(t, ok200)
	h := start(t, mitmRules, withMITM(mustMITM(t, path, "mitm.test")), func(o *Options) { o.Resolver = &fakeResolver{} })
	p := h.dial()
	for range 2 { // the second one on the same connection to the socket
		p.send("GET http://u:p@MITM.test.:80/a?b#c HTTP/1.1\r\nHost: x\r\n%s\r\n", auth)
		p.want(ok200)
		if r, want := <-got, "GET http://mitm.test/a?b HTTP/1.1\r\nHost: mitm.test\r\n\r\n"; r != want {
			t.Errorf("\n got %q\nwant %q", r, want)
		}
	}
	h.wantLines()
}

// Matches are decided like all others (NET-63), and what does not match goes its own way.
func TestNET63_AfterTheDecision(t *testing.T) {
	path, got := fakeMITM(t, "HTTP/1.1 200 OK\r\n\r\n")
	_, port := echo(t)
	rules := policy.NetworkRules{AllowedDomains: []string{"mitm.test:443", fmt.Sprintf("127.0.0.1:%d", port)}}
	h := start(t, rules, withMITM(mustMITM(t, path, "mitm.test", "other.test")))
	for target, reason := range map[string]string{"other.test:443": policy.ReasonNotAllowed, "mitm.test:80": policy.ReasonNotAllowed} {
		if r := h.connectTo(target).rest(); r != refused403(reason) {
			t.Errorf("%s: %q", target, r)
		}
	}
	p := h.tunnel(fmt.Sprintf("127.0.0.1:%d", port))
	p.send("x")
	p.want("x")
	select {
	case r := <-got:
		t.Errorf("the socket got %q", r)
	default:
	}
}

func TestNET27_case30_DeadSocketIsNoReasonForAnotherRoute(t *testing.T) {
	port, touched := touchedServer(t)
	dir := socketDir(t)
	dead := filepath.Join(dir, "dead")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for name, path := range map[string]string{"dead": dead, "missing": filepath.Join(dir, "missing")} {
		t.Run(name, func(t *testing.T) {
			c := capture(t, mitmRules, withMITM(mustMITM(t, path, "mitm.test", "127.0.0.1", "localhost")), func(o *Options) {
				o.Resolver = &fakeResolver{answers: map[string][][]string{"mitm.test": {{"127.0.0.1"}}, "localhost": {{"127.0.0.1"}}}}
				o.Parent = mustParent(t, fmt.Sprintf("127.0.0.1:%d", port), "", "")
			})
			for _, host := range []string{"mitm.test", "mitm.test.", "MITM.test", "127.0.0.1", "127.1", "localhost"} {
				if got := c.connectTo(fmt.Sprintf("%s:%d", host, port)).rest(); got != failed502 {
					t.Errorf("CONNECT %s: %q", host, got)
				}
				p := c.dial()
				p.send("GET http://%s:%d/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", host, port, auth)
				if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n") {
					t.Errorf("GET %s: %q", host, got)
				}
				p = c.dial()
				p.send("%s%s", socksLogin("srt", testToken), socksName(1, host, port))
				if got := p.rest(); !strings.HasPrefix(got, socksAdmitted+"\x05") || strings.HasPrefix(got, socksAdmitted+"\x05\x00") {
					t.Errorf("SOCKS %s: %q", host, got)
				}
			}
			w, err := c.Judge(testPID, c.addresses("mitm.test", port)[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Dial(t.Context()); Errno(err) != syscall.ECONNREFUSED {
				t.Errorf("captured: %v", err)
			}
			if n := touched.Load(); n != 0 {
				t.Errorf("%d connections went another way", n)
			}
			c.wantLines()
		})
	}
}

func TestNET63_RefusalOfTheSocket(t *testing.T) {
	path, _ := fakeMITM(t, "HTTP/1.1 403 No\r\n\r\n")
	h := start(t, mitmRules, withMITM(mustMITM(t, path, "mitm.test")))
	if got := h.connectTo("mitm.test:443").rest(); got != failed502 {
		t.Errorf("%q", got)
	}
	p := h.dial()
	p.send("%s%s", socksLogin("srt", testToken), socksName(1, "mitm.test", 443))
	if got := p.rest(); got != socksAdmitted+socksAnswer(4) {
		t.Errorf("%q", got)
	}
}

// A change of mitmProxy counts from the next connection (NET-16).
func TestNET16_MITMUpdate(t *testing.T) {
	path, got := fakeMITM(t, "HTTP/1.1 200 OK\r\n\r\n")
	_, port := echo(t)
	var current atomic.Pointer[Rules]
	h := start(t, mitmRules, func(o *Options) {
		current.Store(o.Policy())
		o.Policy = current.Load
	})
	target := fmt.Sprintf("127.0.0.1:%d", port)
	h.tunnel(target)
	current.Store(&Rules{Network: current.Load().Network, MITM: mustMITM(t, path, "127.0.0.1")})
	h.tunnel(target)
	if r := <-got; !strings.HasPrefix(r, "CONNECT "+target+" ") {
		t.Errorf("%q", r)
	}
}

// What was decided by one configuration goes the way of that configuration, though another one came meanwhile (CLI-24).
func TestNET16_CLI24_NoMixtureOfRulesAndWays(t *testing.T) {
	var current atomic.Pointer[Rules]
	h := start(t, mitmRules, func(o *Options) {
		current.Store(o.Policy())
		o.Policy = current.Load
	})
	before, v, _ := h.server.decideNow(asking{host: "127.0.0.1", port: 1})
	if !v.Allowed {
		t.Fatal(v)
	}
	current.Store(&Rules{Network: before.Network, MITM: mustMITM(t, "/run/mitm", "127.0.0.1")})
	if h.server.route(before, v.Host, false) != nil {
		t.Error("a decision of before the update goes the way of after it")
	}
	after, _, _ := h.server.decideNow(asking{host: "127.0.0.1", port: 1})
	if e := h.server.route(after, v.Host, false); e == nil || e.socket != "/run/mitm" {
		t.Errorf("a decision of after the update goes by %+v", e)
	}
}

func TestNewMITM(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		domains    []string
		says       string
	}{
		{"no path", "", []string{"a.test"}, "socketPath is empty"},
		{"NUL", "a\x00b", []string{"a.test"}, "NUL"},
		{"long path", "/" + strings.Repeat("a", maxSocketPath), []string{"a.test"}, "longer than 103 bytes"},
		{"no domains", "/s", nil, "domains is empty"},
		{"a port", "/s", []string{"a.test", "b.test:443"}, "domains[1]"},
		{"everything", "/s", []string{"*"}, "domains[0]"},
	} {
		if _, err := NewMITM(tc.path, tc.domains); !errors.Is(err, ErrInvalidMITM) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	m := mustMITM(t, "@s", "a.test", "*.b.test", "[::1]")
	if m.endpoint.socket != "./@s" {
		t.Errorf("an abstract socket: %q", m.endpoint.socket)
	}
	for host, want := range map[string]bool{"a.test": true, "A.test.": true, "x.a.test": false, "b.test": false, "x.b.test": true, "[::1]": true, "[::2]": false} {
		h, err := config.CanonicalHost(host)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.route(h) != nil; got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	var none *MITM
	if none.route(config.Host{Name: "a.test", Addr: netip.Addr{}}) != nil {
		t.Error("no MITM takes something")
	}
}

// CRED-20: with the opt-in plain requests carry real values towards the socket too, as it is the next hop; tunnels to it never do.
func TestCRED20_PlainRequestsToTheSocket(t *testing.T) {
	store, fakes := masking(t, map[string]string{"GH_TOKEN": secretToken}, "mitm.test")
	for _, allowed := range []bool{false, true} {
		path, got := fakeMITM(t, ok200)
		h := start(t, mitmRules, withMITM(mustMITM(t, path, "mitm.test")), func(o *Options) {
			o.Resolver, o.Credentials, o.AllowPlaintextInject = &fakeResolver{}, store, allowed
		})
		p := h.dial()
		p.send("GET http://mitm.test/ HTTP/1.1\r\nHost: x\r\nA: %s\r\n%s\r\n", fakes["GH_TOKEN"], auth)
		p.want(ok200)
		want := "A: " + fakes["GH_TOKEN"] + "\r\n"
		if allowed {
			want = "A: " + secretToken + "\r\n"
		}
		if r := <-got; !strings.Contains(r, want) {
			t.Errorf("allowed %v: %q", allowed, r)
		}
	}
}
