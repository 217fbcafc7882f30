package proxy

import (
	"net"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// servingFor serves a further listener with an identity.
func (h *harness) servingFor(key string) string {
	h.t.Helper()
	return h.serving(func(l net.Listener) error { return h.server.ServeFor(l, key, nil) })
}

func TestNET21_ListenerTellsWhoItIs(t *testing.T) {
	h := start(t, baseRules)
	addr := h.servingFor("the listener's key")
	for _, user := range []string{"srt", policy.ProxyUser("another key"), "bob", "srt." + strings.Repeat("A", 252)} {
		p := connect(t, addr)
		p.send("CONNECT evil.test:443 HTTP/1.1\r\n%s\r\n", credentials(user, testToken))
		p.rest()
		p = connect(t, addr)
		p.send("GET http://evil.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", credentials(user, testToken))
		p.rest()
	}
	for _, user := range []string{"srt", policy.ProxyUser("another key")} {
		p := connect(t, addr)
		p.send("%s%s", socksLogin(user, testToken), socksName(1, "evil.test", 443))
		p.rest()
	}
	if len(h.events) != 10 {
		t.Errorf("%d events", len(h.events))
	}
	for _, e := range h.events {
		if e.CommandID != "the listener's key" {
			t.Errorf("%s: attributed to %q", e.Line(), e.CommandID)
		}
	}
}

func TestNET15_ListOfTheListenersCommand(t *testing.T) {
	const id, other = "0123456789abcdefghijkl", "another id of 22 chars"
	_, port := echo(t)
	lists := new(policy.CommandLists)
	if _, err := lists.Register(id, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	h := start(t, nowhere, func(o *Options) { o.Commands = lists })
	mine, others := h.servingFor(id), h.servingFor(other)
	for _, tc := range []struct {
		name, addr, user string
		ok               bool
	}{
		{"its listener, any name", mine, "srt", true},
		{"its listener, another's name", mine, policy.ProxyUser(other), true},
		{"another's listener, its name", others, policy.ProxyUser(id), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := connect(t, tc.addr)
			p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n%s\r\n", port, credentials(tc.user, testToken))
			if tc.ok {
				p.want(established)
			} else if got := p.rest(); got != refused403("host is not on the allow list") {
				t.Errorf("%q", got)
			}
		})
	}
}

// The identity of a listener is no credential (NET-18), but for rsync, which cannot present one.
func TestNET18_case1_ListenerStillAsksForTheToken(t *testing.T) {
	rules := policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}}
	for _, tc := range []struct {
		name, head, key, answer string
	}{
		{"CONNECT", "CONNECT 127.0.0.1:80 HTTP/1.1\r\n", "the key", denied407},
		{"a wrong token", "CONNECT 127.0.0.1:873 HTTP/1.1\r\n" + credentials("srt", strings.Repeat("0", 32)), "the key", denied407},
		{"an empty field", "CONNECT 127.0.0.1:873 HTTP/1.1\r\nProxy-Authorization: \r\n", "the key", denied407},
		{"rsync on a listener that tells nothing", "CONNECT 127.0.0.1:873 HTTP/1.0\r\n", "", denied407},
		{"another method to port 873", "GET http://127.0.0.1:873/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", "the key", denied407},
		{"rsync to what is not allowed", "CONNECT nope.test:873 HTTP/1.0\r\n", "the key", refused403("host is not on the allow list")},
		{"rsync to a closed port", "CONNECT 127.0.0.1:873 HTTP/1.0\r\n", "the key", failed502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, rules)
			p := connect(t, h.servingFor(tc.key))
			p.send("%s\r\n", tc.head)
			if got := p.rest(); got != tc.answer {
				t.Errorf("\n got %q\nwant %q", got, tc.answer)
			}
		})
	}
}
