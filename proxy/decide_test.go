package proxy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// asked is a callback that gives one answer and keeps the questions.
type asked struct {
	mu        sync.Mutex
	questions []Question
	answer    func(context.Context) (Answer, error)
}

func (a *asked) ask(ctx context.Context, q Question) (Answer, error) {
	a.mu.Lock()
	a.questions = append(a.questions, q)
	a.mu.Unlock()
	return a.answer(ctx)
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.questions)
}

func always(allow bool, reason string) *asked {
	return &asked{answer: func(context.Context) (Answer, error) { return Answer{allow, reason}, nil }}
}

func asks(a *asked) func(*Options) { return func(o *Options) { o.Ask = a.ask } }

// nowhere allows nothing, so that everything is for the callback.
var nowhere = policy.NetworkRules{AllowedDomains: []string{}}

func TestNET13_case24_Answers(t *testing.T) {
	_, port := echo(t)
	for _, tc := range []struct {
		name   string
		answer func(context.Context) (Answer, error)
		reason string // empty: allowed
		line   string // empty: like reason
	}{
		{"plain allow", func(context.Context) (Answer, error) { return Answer{Allow: true}, nil }, "", ""},
		{"allow with a reason", func(context.Context) (Answer, error) { return Answer{true, "why not"}, nil }, "", ""},
		{"zero answer", func(context.Context) (Answer, error) { return Answer{}, nil }, "user denied", ""},
		{"a reason", func(context.Context) (Answer, error) { return Answer{Reason: "no\u200b\tway <b>"}, nil }, "no way b", ""},
		{"nothing left of a reason", func(context.Context) (Answer, error) { return Answer{Reason: "<>\x01"}, nil }, "user denied", ""},
		{"beyond ASCII", func(context.Context) (Answer, error) { return Answer{Reason: "non é"}, nil }, "non ?", "non é"},
		{"over 500 units", func(context.Context) (Answer, error) { return Answer{Reason: strings.Repeat("a", 501)}, nil }, strings.Repeat("a", 500), ""},
		{"error", func(context.Context) (Answer, error) { return Answer{Allow: true}, errors.New("no terminal") }, "permission prompt failed", ""},
		{"panic", func(context.Context) (Answer, error) { panic("oops") }, "permission prompt failed", ""},
		{"end of its goroutine", func(context.Context) (Answer, error) { runtime.Goexit(); return Answer{}, nil }, "permission prompt failed", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &asked{answer: tc.answer}
			h := start(t, nowhere, asks(a))
			target := fmt.Sprintf("127.0.0.1:%d", port)
			p := h.connectTo(target)
			if tc.reason == "" {
				p.want(established)
				p.send("x")
				p.want("x")
				h.wantLines()
				return
			}
			if got := p.rest(); got != refused403(tc.reason) {
				t.Errorf("%q", got)
			}
			line := tc.line
			if line == "" {
				line = tc.reason
			}
			h.wantLines("deny network-outbound " + target + " (" + line + ")")
		})
	}
}

func TestNET13_case23_WhoIsNotAsked(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	strict := policy.NetworkRules{AllowedDomains: []string{"127.0.0.1"}, StrictAllowlist: true}
	for _, tc := range []struct {
		name   string
		rules  policy.NetworkRules
		head   string
		answer string
		lines  []string
	}{
		{"strictAllowlist, with a list of the command", strict, "CONNECT cmd.test:443 HTTP/1.1\r\n" + credentials(policy.ProxyUser(id), testToken),
			refused403("host is not on the allow list"), []string{"deny network-outbound cmd.test:443 (host is not on the allow list)"}},
		{"denied", baseRules, "CONNECT evil.test:443 HTTP/1.1\r\n" + auth,
			refused403("host is on the deny list"), []string{"deny network-outbound evil.test:443 (host is on the deny list)"}},
		{"malformed", baseRules, "CONNECT a%b.test:443 HTTP/1.1\r\n" + auth,
			refused403("malformed host"), []string{"deny network-outbound a%b.test:443 (malformed host)"}},
		{"no credentials", baseRules, "CONNECT nope.test:443 HTTP/1.1\r\n", denied407, nil},
		{"wrong token", baseRules, "CONNECT nope.test:443 HTTP/1.1\r\n" + credentials("srt", strings.Repeat("0", 32)), denied407, nil},
		{"no target", baseRules, "CONNECT nope.test HTTP/1.1\r\n" + auth, bad400, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := always(true, "")
			h := start(t, tc.rules, asks(a), commands(t, id, "cmd.test"))
			p := h.dial()
			p.send("%s\r\n", tc.head)
			if got := p.rest(); got != tc.answer {
				t.Errorf("\n got %q\nwant %q", got, tc.answer)
			}
			if a.count() != 0 {
				t.Errorf("asked: %+v", a.questions)
			}
			h.wantLines(tc.lines...)
		})
	}
}

// commands registers one list.
func commands(t *testing.T, id string, entries ...string) func(*Options) {
	t.Helper()
	lists := new(policy.CommandLists)
	if _, err := lists.Register(id, entries); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Commands = lists }
}

func TestNET15_case25_ListOfTheCommandThatTheUserNameTells(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	_, port := echo(t)
	for _, tc := range []struct {
		name, user string
		ok         bool
	}{
		{"its user name", policy.ProxyUser(id), true},
		{"another", policy.ProxyUser(id + "x"), false},
		{"none", "srt", false},
		{"the id as it is", "srt." + id, false},
		{"case26 over 251 bytes", "srt." + strings.Repeat("A", 252), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, nowhere, commands(t, id, fmt.Sprintf("127.0.0.1:%d", port)))
			p := h.dial()
			p.send("CONNECT 127.1:%d HTTP/1.1\r\n%s\r\n", port, credentials(tc.user, testToken))
			if tc.ok {
				p.want(established)
			} else if got := p.rest(); got != refused403("host is not on the allow list") {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestNET15_ListsExemptNoAddress(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	_, port := echo(t)
	h := start(t, nowhere, commands(t, id, "name.test", fmt.Sprintf("127.0.0.1:%d", port)), func(o *Options) { o.Resolver = resolves("name.test", "127.0.0.1") })
	p := h.dial()
	p.send("CONNECT name.test:%d HTTP/1.1\r\n%s\r\n", port, credentials(policy.ProxyUser(id), testToken))
	if got := p.rest(); got != resolved403("name.test", "a loopback address") {
		t.Errorf("%q", got)
	}
}

func TestNET15_ListsAreVoidBesideAnExternalProxy(t *testing.T) {
	const id = "0123456789abcdefghijkl"
	_, port := echo(t)
	h := start(t, nowhere, commands(t, id, "127.0.0.1"), func(o *Options) { o.Token, o.Open = "", true })
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- h.server.ServeFor(l, id, nil) }()
	p := connect(t, l.Addr().String())
	p.send("CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n", port)
	if got := p.rest(); got != refused403("host is not on the allow list") {
		t.Errorf("%q", got)
	}
	_ = h.server.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestNET13_Question(t *testing.T) {
	for _, tc := range []struct{ target, host, spelled string }{
		{"Q.Me.:443", "q.me", "Q.Me."},
		{"2130706433:443", "127.0.0.1", "2130706433"},
		{"[0:0::1]:443", "[::1]", "[0:0::1]"},
		{"[::ffff:1.2.3.4]:443", "1.2.3.4", "[::ffff:1.2.3.4]"},
	} {
		a := always(false, "")
		h := start(t, nowhere, asks(a))
		p := h.dial()
		p.send("CONNECT %s HTTP/1.1\r\n%s\r\n", tc.target, credentials(policy.ProxyUser("the key"), testToken))
		p.rest()
		want := []Question{{Host: tc.host, Spelled: tc.spelled, Port: 443, Key: "the key"}}
		if !slices.Equal(a.questions, want) {
			t.Errorf("%s: %+v, want %+v", tc.target, a.questions, want)
		}
	}
}

// Nothing is remembered: each connection is asked about, and two at once make two calls (LIB-28).
func TestNET13_AskedForEachConnection(t *testing.T) {
	_, port := echo(t)
	both := make(chan struct{})
	var n atomic.Int32
	a := &asked{answer: func(ctx context.Context) (Answer, error) {
		if n.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
			return Answer{Allow: true}, nil
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}}
	h := start(t, nowhere, asks(a))
	target := fmt.Sprintf("127.0.0.1:%d", port)
	first, second := h.connectTo(target), h.connectTo(target)
	first.want(established)
	second.want(established)
	h.tunnel(target)
	if a.count() != 3 {
		t.Errorf("asked %d times", a.count())
	}
}

func TestNET25_case36_ClientLeavesWhileTheCallbackWaits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		leave func(*peer)
	}{
		{"end of input", func(p *peer) { p.CloseWrite() }},
		{"gone", func(p *peer) { p.Close() }},
		{"reset", func(p *peer) { _ = p.SetLinger(0); p.Close() }},
		{"over 64 KiB", func(p *peer) { _, _ = p.Write(make([]byte, earlyLimit+1)) }},
	} {
		for _, heeds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, heeds its context %v", tc.name, heeds), func(t *testing.T) {
				port, touched := touchedServer(t)
				waiting, ended, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
				a := &asked{answer: func(ctx context.Context) (Answer, error) {
					close(waiting)
					<-ctx.Done()
					close(ended)
					if !heeds {
						<-release
					}
					return Answer{Allow: true}, nil
				}}
				h := start(t, nowhere, asks(a))
				p := h.connectTo(fmt.Sprintf("127.0.0.1:%d", port))
				<-waiting
				tc.leave(p)
				<-ended
				if !settles(func() bool { return h.held() == 0 && len(h.server.slots) == 0 }) {
					t.Error("the descriptor was not released")
				}
				close(release)
				h.wantLines()
				if n := touched.Load(); n != 0 {
					t.Errorf("%d connections were made", n)
				}
			})
		}
	}
}

// grants and refuses are what the answers of each protocol begin with.
var (
	grants  = map[string]string{"CONNECT": established, "plain": "HTTP/1.1 200 ", "SOCKS": socksAdmitted + socksAnswer(0)}
	refuses = map[string]string{"CONNECT": "HTTP/1.1 403 ", "plain": "HTTP/1.1 403 Forbidden\r\n", "SOCKS": socksAdmitted + socksAnswer(2)}
)

// A denial is recorded even if it comes too late for its client (LIB-29).
func TestNET25_case36_LateDenialIsRecorded(t *testing.T) {
	waiting := make(chan struct{})
	a := &asked{answer: func(ctx context.Context) (Answer, error) {
		close(waiting)
		<-ctx.Done()
		return Answer{Reason: "no"}, nil
	}}
	h := start(t, nowhere, asks(a))
	p := h.connectTo("ask.test:443")
	<-waiting
	p.Close()
	if !settles(func() bool { return len(h.lines()) == 1 }) {
		t.Fatal("the denial was not recorded")
	}
	h.wantLines("deny network-outbound ask.test:443 (no)")
}

// What the client sends while the callback waits reaches the destination (NET-25).
func TestNET25_EarlyBytesDuringTheCallback(t *testing.T) {
	_, port := echo(t)
	answer := make(chan struct{})
	a := &asked{answer: func(context.Context) (Answer, error) { <-answer; return Answer{Allow: true}, nil }}
	h := start(t, nowhere, asks(a))
	p := h.connectTo(fmt.Sprintf("127.0.0.1:%d", port))
	p.send("one ")
	if !settles(func() bool { return a.count() == 1 }) {
		t.Fatal("not asked")
	}
	p.send("two ")
	close(answer)
	p.want(established)
	p.send("three")
	p.want("one two three")
}

// The answer counts under the rules in force when it comes.
func TestNET16_UpdateWhileTheCallbackWaits(t *testing.T) {
	port, touched := touchedServer(t)
	for _, tc := range []struct {
		name   string
		rules  policy.NetworkRules
		reason string
	}{
		{"denied now", policy.NetworkRules{DeniedDomains: []string{"127.0.0.1"}}, "host is on the deny list"},
		{"strict now", policy.NetworkRules{StrictAllowlist: true}, "host is not on the allow list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, _ := policy.NewNetwork(nowhere)
			after, err := policy.NewNetwork(tc.rules)
			if err != nil {
				t.Fatal(err)
			}
			var current atomic.Pointer[Rules]
			current.Store(&Rules{Network: before})
			a := &asked{answer: func(context.Context) (Answer, error) {
				current.Store(&Rules{Network: after})
				return Answer{Allow: true}, nil
			}}
			h := start(t, nowhere, asks(a), func(o *Options) { o.Policy = current.Load })
			if got := h.connectTo(fmt.Sprintf("127.0.0.1:%d", port)).rest(); got != refused403(tc.reason) {
				t.Errorf("%q", got)
			}
			if touched.Load() != 0 {
				t.Error("it was dialled")
			}
		})
	}
}

// An allow of the callback does not spare the check of resolved addresses (NET-50).
func TestNET50_CallbackExemptsNoAddress(t *testing.T) {
	h := start(t, nowhere, asks(always(true, "")), func(o *Options) { o.Resolver = resolves("name.test", "169.254.169.254") })
	if got := h.connectTo("name.test:80").rest(); got != resolved403("name.test", "a link-local address") {
		t.Errorf("%q", got)
	}
}

func TestNET38_CallbackDoesNotOpenAnOpaqueTunnel(t *testing.T) {
	h := start(t, nowhere, asks(always(true, "")), func(o *Options) { o.RefuseOpaqueTunnels = true })
	if got := h.connectTo("name.test:443").rest(); !strings.HasPrefix(got, "HTTP/1.1 403 Forbidden\r\n") {
		t.Errorf("%q", got)
	}
	h.wantLines("deny http-request CONNECT name.test:443 (this proxy does not tunnel CONNECTs it cannot inspect)")
}

func TestCloseEndsPendingQuestions(t *testing.T) {
	waiting, ended := make(chan struct{}), make(chan struct{})
	a := &asked{answer: func(ctx context.Context) (Answer, error) {
		close(waiting)
		<-ctx.Done()
		defer close(ended)
		return Answer{Reason: "too late"}, nil
	}}
	h := start(t, nowhere, asks(a))
	h.connectTo("ask.test:443")
	<-waiting
	if err := h.server.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	h.wantLines()
}
