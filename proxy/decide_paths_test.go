package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// touchedServer counts the connections to a port of 127.0.0.1.
func touchedServer(t *testing.T) (port int, touched *atomic.Int32) {
	t.Helper()
	touched = new(atomic.Int32)
	return serveEach(t, func(c *net.TCPConn) {
		touched.Add(1)
		_, _ = io.Copy(io.Discard, c)
	}).Port, touched
}

// ways sends the same destination by each protocol and returns the whole answer.
func (h *harness) ways(user, host string, port int) map[string]func() *peer {
	field := credentials(user, testToken)
	return map[string]func() *peer{
		"CONNECT": func() *peer {
			p := h.dial()
			p.send("CONNECT %s:%d HTTP/1.1\r\n%s\r\n", host, port, field)
			return p
		},
		"plain": func() *peer {
			p := h.dial()
			p.send("GET http://%s:%d/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", host, port, field)
			return p
		},
		"SOCKS": func() *peer {
			p := h.dial()
			p.send("%s%s", socksLogin(user, testToken), socksName(1, host, port))
			return p
		},
	}
}

func TestNET7_case23_case24_case25_OneDecisionOnEveryPath(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	port, touched := ready200(t, "127.0.0.1:0")
	listed := policy.ProxyUser(id)
	for _, tc := range []struct {
		name       string
		rules      policy.NetworkRules
		ask        *asked
		user, host string
		ok         bool
		questions  int
		reason     string
	}{
		{"allow list", baseRules, always(false, ""), "srt", "127.0.0.1", true, 0, ""},
		{"list of the command", nowhere, always(false, ""), listed, "127.0.0.1", true, 0, ""},
		{"callback allows", nowhere, always(true, ""), "srt", "127.0.0.1", true, 1, ""},
		{"callback allows with a reason", nowhere, always(true, "x"), "srt", "127.0.0.1", true, 1, ""},
		{"callback denies", nowhere, always(false, "not now"), "srt", "127.0.0.1", false, 1, "not now"},
		{"no callback", nowhere, nil, "srt", "127.0.0.1", false, 0, "host is not on the allow list"},
		{"deny list", policy.NetworkRules{DeniedDomains: []string{"127.0.0.1"}}, always(true, ""), listed, "127.0.0.1", false, 0, "host is on the deny list"},
		{"strictAllowlist", policy.NetworkRules{StrictAllowlist: true}, always(true, ""), listed, "127.0.0.1", false, 0, "host is not on the allow list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, tc.rules, commands(t, id, "127.0.0.1"), func(o *Options) {
				if tc.ask != nil {
					o.Ask = tc.ask.ask
				}
			})
			before := touched.Load()
			var lines []string
			for way, open := range h.ways(tc.user, tc.host, port) {
				want := refuses[way]
				if tc.ok {
					want = grants[way]
				} else {
					lines = append(lines, fmt.Sprintf("deny network-outbound %s:%d (%s)", tc.host, port, tc.reason))
				}
				if got := open().rest(); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %q", way, got)
				}
			}
			h.wantLines(lines...)
			if tc.ask != nil && tc.ask.count() != 3*tc.questions {
				t.Errorf("asked %d times for three connections", tc.ask.count())
			}
			if !tc.ok && touched.Load() != before {
				t.Error("a refused destination was dialled")
			}
		})
	}
}

func TestNET25_case36_ClientLeavesOnEveryPath(t *testing.T) {
	port, touched := touchedServer(t)
	for _, way := range []string{"CONNECT", "plain", "SOCKS"} {
		t.Run(way, func(t *testing.T) {
			waiting, release := make(chan struct{}), make(chan struct{})
			a := &asked{answer: func(context.Context) (Answer, error) {
				close(waiting)
				<-release // it does not heed its context
				return Answer{Allow: true}, nil
			}}
			h := start(t, nowhere, asks(a))
			p := h.ways("srt", "127.0.0.1", port)[way]()
			<-waiting
			p.CloseWrite()
			if !settles(func() bool { return h.held() == 0 && len(h.server.slots) == 0 }) {
				t.Error("the descriptor was not released")
			}
			close(release)
			if touched.Load() != 0 {
				t.Error("dialled")
			}
			h.wantLines()
		})
	}
}

func FuzzDecide(f *testing.F) {
	f.Add("a.test", uint16(443), "0123456789abcdefghijkl", true)
	f.Add("EVIL.test.", uint16(1), "", false)
	f.Add("[::1%lo]", uint16(22), "x", true)
	f.Add("0x7f.1", uint16(22), "srt.", true)
	network, err := policy.NewNetwork(baseRules)
	if err != nil {
		f.Fatal(err)
	}
	rules := &Rules{Network: network}
	var lists policy.CommandLists
	if _, err := lists.Register("0123456789abcdefghijkl", []string{"cmd.test", "evil.test"}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host string, port uint16, key string, allow bool) {
		s, err := New(Options{
			Policy: func() *Rules { return rules }, Token: testToken, Commands: &lists,
			Ask: func(context.Context, Question) (Answer, error) { return Answer{Allow: allow}, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		a := asking{key: key, host: host, port: port}
		_, v, undecided := s.decideNow(a)
		if undecided {
			if _, v, err = s.decideByAsking(t.Context(), a, v); err != nil {
				t.Fatal(err)
			}
		}
		canonical, hostErr := config.CanonicalHost(host)
		static := network.Decide(host, port)
		switch {
		case v.Allowed && (hostErr != nil || static.Denied || v.Host != canonical):
			t.Errorf("%+v allowed: %+v", a, v)
		case v.Allowed && !allow && !static.Allowed && (canonical.Name != "cmd.test" || key == ""):
			t.Errorf("%+v allowed by nothing", a)
		case !v.Allowed && v.Reason == "":
			t.Errorf("%+v refused without a reason", a)
		}
	})
}
