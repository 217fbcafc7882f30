package runtime

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/srt-sandbox/srt/runtime/config"
)

// insidePort is a port of the session's proxies inside a sandbox.
type insidePort int

// exchange has a command send a request as it stands to a port of the proxies, and gives what comes back until the end.
func exchange(t *testing.T, s *Sandbox, port insidePort, request string) string {
	t.Helper()
	c := plain(t, s.Shell(t.Context(), fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d && cat >&3 && cat <&3`, port)))
	c.Stdin = strings.NewReader(request)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errorText(err))
	}
	return string(out)
}

// errorText is what the command of an error has written to standard error.
func errorText(err error) string {
	if failed, ok := errors.AsType[*ExitError](err); ok {
		return string(failed.Stderr)
	}
	return ""
}

// authorization is the header by which a client of the session's proxies shows the token.
func authorization(s *Sandbox) string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("srt:"+s.Proxy().Token)) + "\r\n"
}

// requestTo is a request to the HTTP proxy, of a client that wants no other.
func requestTo(s *Sandbox, line string) string {
	return line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + authorization(s) + "\r\n"
}

// socksRequest is all that a SOCKS5 client says for a connection by name (RFC 1928, RFC 1929).
func socksRequest(s *Sandbox, host string, port uint16) string {
	token := s.Proxy().Token
	return "\x05\x01\x02" + "\x01\x03srt" + string(rune(len(token))) + token +
		"\x05\x01\x00\x03" + string(rune(len(host))) + host + string([]byte{byte(port >> 8), byte(port)})
}

func lines(s *Sandbox) (list []string) {
	for v := range s.Violations().All() {
		list = append(list, v.Line)
	}
	return list
}

// TestLIB30_case1_WhatARefusedClientGets: the answer's reason is cleaned for the record and for the client.
func TestLIB30_case1_WhatARefusedClientGets(t *testing.T) {
	s := newSession(t, nil, WithAsk(func(context.Context, Destination) (Answer, error) {
		return Answer{Reason: "no\u200b\tway <b>"}, nil
	}))
	web, socks := insidePort(s.Proxy().HTTPPort), insidePort(s.Proxy().SOCKSPort)

	got := exchange(t, s, web, requestTo(s, "CONNECT ask.me:443"))
	head, body, _ := strings.Cut(got, "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 403 no way b\r\n") || !strings.Contains(head+"\r\n", "\r\nX-Proxy-Error: blocked-by-allowlist\r\n") ||
		strings.TrimSpace(body) != "Connection blocked by network allowlist" {
		t.Errorf("CONNECT: %q", got)
	}
	if got := exchange(t, s, web, requestTo(s, "GET http://ask.me:443/")); !strings.HasPrefix(got, "HTTP/1.1 403 Forbidden\r\n") {
		t.Errorf("plain HTTP: %q", got)
	}
	got = hex.EncodeToString([]byte(exchange(t, s, socks, socksRequest(s, "ask.me", 443))))
	if !strings.HasPrefix(got, "0502"+"0100"+"0502") {
		t.Errorf("SOCKS: %s", got)
	}
	if want := slices.Repeat([]string{"deny network-outbound ask.me:443 (no way b)"}, 3); !slices.Equal(lines(s), want) {
		t.Errorf("recorded %q", lines(s))
	}
}

// TestLIB30_ReasonsOfStatusLines: a reason becomes ASCII of at most 500 characters.
func TestLIB30_ReasonsOfStatusLines(t *testing.T) {
	s := newSession(t, nil, WithAsk(func(context.Context, Destination) (Answer, error) {
		return Answer{Reason: "é" + strings.Repeat("x", 600)}, nil
	}))
	got := exchange(t, s, insidePort(s.Proxy().HTTPPort), requestTo(s, "CONNECT ask.me:443"))
	if want := "HTTP/1.1 403 ?" + strings.Repeat("x", 499) + "\r\n"; !strings.HasPrefix(got, want) {
		t.Errorf("%.600q", got)
	}
}

// TestLIB29_case4_AClientThatLeaves: the question ends although the command goes on, and nothing is dialled.
func TestLIB29_case4_AClientThatLeaves(t *testing.T) {
	asked, over := make(chan struct{}), make(chan struct{})
	var dialled bool // by the session's one parent; read when that has ended
	parent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { dialled = true }))
	s := newSession(t, func(c *config.Config) {
		c.Network.ParentProxy.HTTP, c.Network.ParentProxy.HTTPS = parent.URL, parent.URL
	},
		WithAsk(func(ctx context.Context, _ Destination) (Answer, error) {
			close(asked)
			<-ctx.Done()
			close(over)
			return Answer{Allow: true}, nil
		}))
	c := plain(t, s.Shell(t.Context(), fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d; read -r request; printf "$request" >&3
		read -r leave; exec 3>&-; read -r end; echo still here`, s.Proxy().HTTPPort)))
	in, err := c.StdinPipe()
	succeed(t, err)
	var out bytes.Buffer
	c.Stdout = &out
	succeed(t, c.Start())
	fmt.Fprintln(in, strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(requestTo(s, "CONNECT ask.me:443")))
	<-asked
	fmt.Fprintln(in, "leave")
	<-over
	fmt.Fprintln(in, "end")
	if err := c.Wait(); err != nil || out.String() != "still here\n" {
		t.Errorf("%v, %q", err, &out)
	}
	succeed(t, s.Close())
	parent.Close()
	if dialled {
		t.Error("something was dialled")
	}
}

// TestLIB1_DefaultInputs: with a configuration alone nobody is asked and the kernel's refusals are not reported; those of the
// proxies are.
func TestLIB1_DefaultInputs(t *testing.T) {
	s := newSession(t, nil)
	if err := sh(t, s, "echo x >made").Run(); err == nil {
		t.Error("the command may write")
	}
	exchange(t, s, insidePort(s.Proxy().HTTPPort), requestTo(s, "CONNECT ask.me:443"))
	if want := []string{"deny network-outbound ask.me:443 (host is not on the allow list)"}; !slices.Equal(lines(s), want) {
		t.Errorf("recorded %q", lines(s))
	}
	for _, opts := range [][]Option{{nil}, {WithAsk(nil)}, {WithLogger(nil), WithTiming(nil)}} {
		newSession(t, nil, opts...) // that an option is none is no fault
	}
}

// TestLIB4_TheParentProxyIsThatOfTheStart: it comes from the environment of the embedding process as it was then, in either
// case, unless the configuration names one.
func TestLIB4_TheParentProxyIsThatOfTheStart(t *testing.T) {
	parent := func(name string) string {
		l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }))
		t.Cleanup(l.Close)
		return l.URL
	}
	first, second, third := parent("first"), parent("second"), parent("third")
	for _, variable := range []string{"HTTP_PROXY", "http_proxy"} {
		for _, v := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"} {
			t.Setenv(v, "") // to be restored
			succeed(t, os.Unsetenv(v))
		}
		allow := func(c *config.Config) { c.Network.AllowedDomains = []string{"a.test"} }
		t.Setenv(variable, first)
		s := newSession(t, allow)
		t.Setenv(variable, second)
		named := newSession(t, func(c *config.Config) { allow(c); c.Network.ParentProxy.HTTP = third })
		for _, tc := range []struct {
			s    *Sandbox
			want string
		}{{s, "first"}, {named, "third"}, {newSession(t, allow), "second"}} {
			got := exchange(t, tc.s, insidePort(tc.s.Proxy().HTTPPort), requestTo(tc.s, "GET http://a.test/"))
			if !strings.HasSuffix(got, "\r\n\r\n"+tc.want) {
				t.Errorf("%s: %q, want the %s parent", variable, got, tc.want)
			}
		}
		cfg := s.Config()
		cfg.Network.ParentProxy.HTTP = third
		if notLive, err := s.Update(t.Context(), cfg); err != nil || !slices.Equal(notLive, []string{"network.parentProxy"}) {
			t.Errorf("an update: %v, %v", notLive, err)
		}
		if got := exchange(t, s, insidePort(s.Proxy().HTTPPort), requestTo(s, "GET http://a.test/")); !strings.HasSuffix(got, "first") {
			t.Errorf("%s: after an update %q", variable, got)
		}
	}
}

// TestLIB12_ProxiesAreThereWithNothingAllowed: a command that may reach nothing has the variables and listeners of the proxies, and an
// update opens a host to it while it runs.
func TestLIB12_ProxiesAreThereWithNothingAllowed(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	succeed(t, err)
	s := newSession(t, nil)
	c := plain(t, s.Shell(t.Context(), `while read -r host; do curl -sS -o /dev/null -w '%{http_code}\n' --noproxy '' "$host"; done`))
	in, err := c.StdinPipe()
	succeed(t, err)
	out, err := c.StdoutPipe()
	succeed(t, err)
	succeed(t, c.Start())
	answers := bufio.NewReader(out)
	for _, want := range []string{"403\n", "200\n"} {
		fmt.Fprintln(in, "localhost:"+port)
		if got, err := answers.ReadString('\n'); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		cfg := s.Config()
		cfg.Network.AllowedDomains = []string{"localhost:" + port}
		if _, err := s.Update(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, in.Close())
	succeed(t, c.Wait())
}

// TestVIO12_case26_ClassesInTheirOrder: a name that leads to two addresses which no name may lead to is refused once, with both
// classes in the one order, whatever that of the addresses.
func TestVIO12_case26_ClassesInTheirOrder(t *testing.T) {
	usual := net.DefaultResolver
	defer func() { net.DefaultResolver = usual }()
	for _, addresses := range [][][4]byte{{{169, 254, 1, 1}, {127, 0, 0, 1}}, {{127, 0, 0, 1}, {169, 254, 1, 1}}} {
		net.DefaultResolver = resolverOf(t, addresses)
		s := newSession(t, func(c *config.Config) { c.Network.AllowedDomains = []string{"both.test"} })
		got := exchange(t, s, insidePort(s.Proxy().HTTPPort), requestTo(s, "CONNECT both.test:443"))
		if !strings.HasPrefix(got, "HTTP/1.1 403 ") || strings.Contains(got, "169.254.1.1") {
			t.Errorf("%q", got)
		}
		if want := []string{"deny network-outbound both.test:443 (resolved to a loopback address / a link-local address)"}; !slices.Equal(lines(s), want) {
			t.Errorf("recorded %q", lines(s))
		}
	}
}

// resolverOf is a resolver to which every name has these addresses, in this order.
func resolverOf(t *testing.T, addresses [][4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	succeed(t, err)
	t.Cleanup(func() { server.Close() })
	go func() {
		for buffer := make([]byte, 512); ; {
			n, client, err := server.ReadFrom(buffer)
			if err != nil {
				return // closed
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}
			m.Additionals = nil
			for _, a := range addresses {
				if q.Type == dnsmessage.TypeA {
					m.Answers = append(m.Answers, dnsmessage.Resource{Body: &dnsmessage.AResource{A: a},
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 1}})
				}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(answer, client) // a lost answer is asked for again
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}
