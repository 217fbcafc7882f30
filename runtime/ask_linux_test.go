package runtime

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// askWorld is a session whose every way out is a proxy behind it, to which every name exists.
type askWorld struct {
	*Sandbox
	t *testing.T

	mu      sync.Mutex
	reached []string // host:port of what was let through
	lines   []string // of violations
}

// newAskWorld makes one that asks f; change may alter the configuration.
func newAskWorld(t *testing.T, f AskFunc, change func(*config.Config), list ...AskOption) *askWorld {
	t.Helper()
	return newWayOut(t, change, WithAsk(f, list...))
}

// newWayOut makes one with options of the test's own.
func newWayOut(t *testing.T, change func(*config.Config), list ...Option) *askWorld {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := &askWorld{t: t}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	cfg := config.Default()
	cfg.Network.ParentProxy.HTTP = "http://" + l.Addr().String()
	cfg.Network.ParentProxy.HTTPS = cfg.Network.ParentProxy.HTTP
	if change != nil {
		change(cfg)
	}
	record := WithOnViolation(func(e violation.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, e.Line())
	})
	w.Sandbox, err = New(t.Context(), cfg, append(list, record)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// serve is the proxy behind the session: it answers every request with "hello".
func (w *askWorld) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.reached = append(w.reached, req.Host)
	w.mu.Unlock()
	if req.Method == http.MethodConnect {
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
		if _, err = http.ReadRequest(r); err != nil {
			return
		}
	}
	fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello\n")
}

// askWays are shell functions: each connects to a host in one way and prints "hello", or the refusal.
const askWays = `
by_proxy() { curl -sSv -p --max-time 50 http://$1/ 2>&1 | grep -aE '^hello|^< HTTP/1.1 403' | tr -d '\r'; }
plain() { curl -sSi --max-time 50 http://$1/ 2>&1 | grep -aE '^hello|^HTTP/1.1 403' | tr -d '\r'; }
socks() { curl -sS --max-time 50 -x "$FTP_PROXY" http://$1/ 2>/dev/null || echo refused; }
captured() { (exec 3<>/dev/tcp/$1/80; printf 'GET / HTTP/1.0\r\nHost: x\r\n\r\n' >&3; tail -n1 <&3) 2>/dev/null || echo refused; }
`

// command prepares a script that may use askWays.
func (w *askWorld) command(script string) (*Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := w.Shell(w.t.Context(), askWays+script)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin", "HOME="}, w.t.TempDir()
	cmd.Stdout, cmd.Stderr, cmd.Text = &out, os.Stderr, "the text"
	return cmd, &out
}

// prints runs a script and wants this output.
func (w *askWorld) prints(script, want string, change ...func(*Cmd)) {
	w.t.Helper()
	cmd, out := w.command(script)
	for _, f := range change {
		f(cmd)
	}
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%s: %v", script, err)
	}
	if got := strings.TrimSpace(out.String()); got != want {
		w.t.Errorf("%s prints %q, want %q", script, got, want)
	}
}

// got are what was let through and the lines of violations until now.
func (w *askWorld) got() (reached, lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reached), slices.Clone(w.lines)
}

// eventuallyTrue waits for something that happens for sure.
func eventuallyTrue(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(askSoon); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never happens that " + what)
		}
	}
}

var waysOut = []string{"by_proxy", "plain", "socks", "captured"}

// Every way out asks with all that is known, obeys the answer, and asks anew the next time. A name that nobody has decided
// about resolves, and its connection asks (LIB-25).
func TestAsk_EveryWayOut_LIB25_LIB26_LIB27_LIB28_NET13(t *testing.T) {
	for _, way := range waysOut {
		t.Run(way, func(t *testing.T) {
			var mu sync.Mutex
			var asked []Destination
			w := newAskWorld(t, func(_ context.Context, d Destination) (Answer, error) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, d)
				if d.Canonical == "no.test" {
					return Answer{Reason: "not <b>today\x1b"}, nil
				}
				return Answer{Allow: true}, nil
			}, nil)
			refused := map[string]string{"by_proxy": "< HTTP/1.1 403 not btoday", "plain": "HTTP/1.1 403 Forbidden"}[way]
			if refused == "" {
				refused = "refused"
			}
			var key string
			w.prints(way+" YES.test; "+way+" yes.test; "+way+" no.test", "hello\nhello\n"+refused, func(c *Cmd) { key = c.Key() })
			mu.Lock()
			defer mu.Unlock()
			if len(asked) < 3 {
				t.Fatalf("asked %+v", asked)
			}
			for i, want := range []string{"yes.test", "yes.test", "no.test"} {
				d := asked[i]
				if d.Canonical != want || d.Port != 80 || d.Key != key || d.Command != "the text" || (d.PID != 0) != (way == "captured") {
					t.Errorf("question %d: %+v", i, d)
				}
			}
			if d := asked[0]; way == "by_proxy" || way == "socks" {
				if d.Host != "YES.test" { // as the client spelled it (LIB-26)
					t.Errorf("spelled %q", d.Host)
				}
			}
			_, lines := w.got()
			if len(lines) == 0 || lines[0] != "deny network-outbound no.test:80 (not btoday)" {
				t.Errorf("recorded %q", lines)
			}
		})
	}
}

// The client leaves while the answer is pending: the context ends, nothing is dialled, a refusal is recorded all the same.
func TestAsk_TheClientIsKilled_LIB29(t *testing.T) {
	for _, way := range waysOut {
		t.Run(way, func(t *testing.T) {
			begun, over := make(chan struct{}, 16), make(chan struct{}, 16)
			w := newAskWorld(t, func(ctx context.Context, _ Destination) (Answer, error) {
				begun <- struct{}{}
				<-ctx.Done()
				over <- struct{}{}
				return Answer{Reason: "too late"}, nil
			}, nil)
			cmd, _ := w.command(way + " ask.test")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := cmd.Kill(); err != nil {
				t.Error(err)
			}
			<-over
			if err := cmd.Wait(); err == nil {
				t.Error("the command has ended by itself")
			}
			eventuallyTrue(t, "the refusal is recorded", func() bool { _, lines := w.got(); return len(lines) > 0 })
			reached, lines := w.got()
			if len(reached) > 0 || lines[0] != "deny network-outbound ask.test:80 (too late)" {
				t.Errorf("reached %q, recorded %q", reached, lines)
			}
		})
	}
}

// Close ends what is pending; the command stays confined, and nothing is dialled (LIB-35, LIB-51).
func TestAsk_CloseWhilePending_LIB29(t *testing.T) {
	for _, way := range waysOut {
		t.Run(way, func(t *testing.T) {
			begun, over := make(chan struct{}, 16), make(chan struct{}, 16)
			w := newAskWorld(t, func(ctx context.Context, _ Destination) (Answer, error) {
				begun <- struct{}{}
				<-ctx.Done()
				over <- struct{}{}
				return Answer{Allow: true}, nil
			}, nil)
			cmd, out := w.command(way + " ask.test; echo end")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			<-over
			if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "hello") {
				t.Errorf("%v, %q", err, out)
			}
			if reached, _ := w.got(); len(reached) > 0 {
				t.Errorf("reached %q", reached)
			}
		})
	}
}

// Two at once make two calls, and one when they are joined (case 3).
func TestAsk_case3_JoinedOnDemand_LIB28(t *testing.T) {
	for _, way := range waysOut {
		for name, list := range map[string][]AskOption{"each": nil, "joined": {AskJoin()}} {
			t.Run(way+" "+name, func(t *testing.T) {
				begun, answer := make(chan struct{}, 2), make(chan struct{})
				w := newAskWorld(t, func(context.Context, Destination) (Answer, error) {
					begun <- struct{}{}
					<-answer
					return Answer{Allow: true}, nil
				}, nil, list...)
				cmd, out := w.command(way + " ask.test & " + way + " ask.test & wait")
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				<-begun
				if list == nil {
					<-begun
				} else {
					time.Sleep(500 * time.Millisecond) // the second joins; one that came later would ask by itself
				}
				close(answer)
				if err := cmd.Wait(); err != nil || strings.Count(out.String(), "hello") != 2 {
					t.Errorf("%v, %q", err, out)
				}
				if list != nil && len(begun) > 0 {
					t.Error("asked twice")
				}
			})
		}
	}
}

func TestAsk_WhatComesBeforeTheQuestion_LIB25_LIB27(t *testing.T) {
	failed := func(context.Context, Destination) (Answer, error) { return Answer{Allow: true}, errors.New("no") }
	panics := func(context.Context, Destination) (Answer, error) { panic("oh") }
	zero := func(context.Context, Destination) (Answer, error) { return Answer{}, nil }
	allow := func(context.Context, Destination) (Answer, error) { return Answer{Allow: true}, nil }
	const refused = "< HTTP/1.1 403 "
	for _, tc := range []struct {
		name, host string
		ask        AskFunc
		change     func(*config.Network)
		own        []string // AllowDomains
		want       string
	}{
		{"case 2: error", "a.test", failed, nil, nil, refused + "permission prompt failed"},
		{"case 2: panic", "a.test", panics, nil, nil, refused + "permission prompt failed"},
		{"case 2: zero answer", "a.test", zero, nil, nil, refused + "user denied"},
		{"nobody to ask", "a.test", nil, nil, nil, refused + "host is not on the allow list"},
		{"denied", "a.test", allow, func(n *config.Network) { n.DeniedDomains = []string{"a.test"} }, nil, refused + "host is on the deny list"},
		{"malformed", "a%b.test", allow, nil, nil, refused + "malformed host"},
		{"strict", "a.test", allow, func(n *config.Network) { n.StrictAllowlist = true }, nil, refused + "host is not on the allow list"},
		{"allowed", "a.test", zero, func(n *config.Network) { n.AllowedDomains = []string{"a.test"} }, nil, "hello"},
		{"LIB-31: own list", "a.test", zero, nil, []string{"*.b.test", "a.test:80"}, "hello"},
		{"LIB-31: own list, another port", "a.test", nil, nil, []string{"a.test:81"}, refused + "host is not on the allow list"},
		{"case 6: own list and denied", "a.test", nil, func(n *config.Network) { n.DeniedDomains = []string{"a.test"} }, []string{"a.test"}, refused + "host is on the deny list"},
		{"LIB-31: own list under strictAllowlist", "a.test", nil, func(n *config.Network) { n.StrictAllowlist = true }, []string{"a.test"}, refused + "host is not on the allow list"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newAskWorld(t, tc.ask, func(c *config.Config) {
				if tc.change != nil {
					tc.change(&c.Network)
				}
			})
			script := "by_proxy " + tc.host
			if tc.name == "malformed" { // curl would decode it
				script = `printf 'CONNECT a%%%%b.test:80 HTTP/1.1\r\nProxy-Authorization: Basic %s\r\n\r\n' "$(u=${http_proxy#http://}
					printf %s "${u%%@*}" | sed 's/%3D/=/g; s/%2B/+/g; s/%2F/\//g' | base64 -w0)" >req
					exec 3<>/dev/tcp/127.0.0.1/3128; cat req >&3; head -n1 <&3 | tr -d '\r' | sed 's/^/< /'`
			}
			w.prints(script, tc.want, func(c *Cmd) {
				c.AllowDomains = tc.own
				c.Override = &config.Override{Filesystem: &config.FilesystemOverride{AllowWrite: []config.PathEntry{{Path: "."}}}}
			})
		})
	}
}

// A command's own list is in force from its start to its end, for every way out and for names, and for nobody else, whatever
// a client presents as its name (LIB-31, LIB-32, NET-15).
func TestAllowDomains_OfOneCommand_LIB31_LIB32_NET15(t *testing.T) {
	const id = "6JmUW9rAM0qT2v8cX1yZ3w"
	w := newAskWorld(t, nil, nil)
	allow := func(c *Cmd) { c.ID, c.AllowDomains = id, []string{"a.test"} }
	for _, way := range waysOut {
		w.prints(way+" a.test", "hello", allow)
	}
	// case 6: after its end the list is gone, even for a command of the same id.
	w.prints("captured a.test; socks a.test", "refused\nrefused", func(c *Cmd) { c.ID = id })
	// While one with a list runs, another that presents its id gets nothing of it.
	other, out := w.command(`read x; socks a.test; captured a.test
		curl -sS --max-time 50 -x "$(printf %s "$FTP_PROXY" | sed "s|//[^:]*:|//` + policy.ProxyUser(id) + `:|")" http://a.test/ 2>/dev/null || echo refused`)
	in, start := pipe(t)
	other.Stdin = in
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	w.prints("captured a.test", "hello", allow)
	holder, _ := w.command("read x")
	held, end := pipe(t)
	holder.Stdin = held
	allow(holder)
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(start, "go")
	if err := other.Wait(); err != nil || out.String() != "refused\nrefused\nrefused\n" {
		t.Errorf("%v, %q", err, out)
	}
	fmt.Fprintln(end, "go")
	if err := holder.Wait(); err != nil && !strings.Contains(err.Error(), "exit status") {
		t.Error(err)
	}
	if cfg := w.Config(); len(cfg.Network.AllowedDomains) > 0 {
		t.Errorf("the getter shows %q", cfg.Network.AllowedDomains)
	}
}

func TestAllowDomains_case7_LIB32(t *testing.T) {
	w := newAskWorld(t, nil, nil)
	const good = "0123456789abcdefghijkl"
	for _, tc := range []struct {
		name, id, entry string
		want            error
	}{
		{"empty", "", "a.test", policy.ErrShortCommandID},
		{"short", "brief", "a.test", policy.ErrShortCommandID},
		{"30 lone surrogates", strings.Repeat("\xed\xa0\x80", 30), "a.test", policy.ErrShortCommandID},
		{"22 ASCII", good, "a.test", nil},
		{"entry *.com", good, "*.com", config.ErrInvalidDomain},
		{"entry *", good, "*", config.ErrInvalidDomain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			remove, err := w.AllowDomains(tc.id, []string{tc.entry})
			if !errors.Is(err, tc.want) || (err == nil) != (remove != nil) {
				t.Errorf("%v", err)
			}
			if err != nil && tc.id != "" && strings.Contains(err.Error(), tc.id) {
				t.Errorf("%q holds the id", err)
			}
			// A command with such an id and a list is not started; a random id needs no check.
			cmd, _ := w.command("true")
			cmd.ID, cmd.AllowDomains = tc.id, []string{tc.entry}
			err, want := cmd.Run(), tc.want
			if tc.id == "" {
				want = nil
			}
			if !errors.Is(err, want) || err != nil && tc.id != "" && strings.Contains(err.Error(), tc.id) {
				t.Errorf("a command with that list: %v", err)
			}
		})
	}
}

func TestAllowDomains_ReplacedAndRemovedWhileItRuns_LIB32(t *testing.T) {
	const key = "0123456789abcdefghijkl"
	w := newAskWorld(t, nil, nil)
	cmd, _ := w.command(`while read -r host; do socks $host; done`)
	in, tell := pipe(t)
	answers, out := pipe(t)
	cmd.Stdin, cmd.Stdout, cmd.ID = in, out, key
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(answers)
	try := func(host, want string) {
		t.Helper()
		fmt.Fprintln(tell, host)
		if got, err := lines.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, %v; want %q", host, got, err, want)
		}
	}
	try("a.test", "refused")
	first, err := w.AllowDomains(key, []string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	try("a.test", "hello")
	second, err := w.AllowDomains(key, []string{"b.test"})
	if err != nil {
		t.Fatal(err)
	}
	try("a.test", "refused")
	try("b.test", "hello")
	first() // of the list that was replaced
	try("b.test", "hello")
	second()
	second()
	try("b.test", "refused")
	tell.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := w.AllowDomains(key, []string{"a.test"}); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if remove, err := w.AllowDomains(key, []string{"a.test"}); !errors.Is(err, ErrClosed) || remove != nil {
		t.Errorf("LIB-35: after Close %v", err)
	}
	second()
}

// Case 5: strictAllowlist that comes while a command runs, and while a question stands.
func TestAsk_case5_StrictWhileItRuns_LIB25(t *testing.T) {
	var w *askWorld
	strict := make(chan struct{})
	w = newAskWorld(t, func(context.Context, Destination) (Answer, error) {
		cfg := w.Config() // every method of the session may be called (LIB-50)
		cfg.Network.StrictAllowlist = true
		if _, err := w.Update(context.WithoutCancel(t.Context()), cfg); err != nil {
			t.Error(err)
		}
		close(strict) // a second question would panic
		return Answer{Allow: true}, nil
	}, nil)
	w.prints("by_proxy a.test; by_proxy b.test", "< HTTP/1.1 403 host is not on the allow list\n< HTTP/1.1 403 host is not on the allow list")
	<-strict
	if reached, _ := w.got(); len(reached) > 0 {
		t.Errorf("reached %q", reached)
	}
}
