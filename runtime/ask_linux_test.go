package runtime

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
)

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

// pendingAsk is a command that waits for an answer, which comes when the context has ended; over tells that it has.
func pendingAsk(t *testing.T, way string, late Answer) (w *askWorld, cmd *Cmd, out *bytes.Buffer, over <-chan struct{}) {
	t.Helper()
	begun, ended := make(chan struct{}, 16), make(chan struct{}, 16)
	w = newAskWorld(t, func(ctx context.Context, _ Destination) (Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return late, nil
	}, nil)
	cmd, out = w.command(way + " ask.test; echo end")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	return w, cmd, out, ended
}

// The client leaves while the answer is pending: the context ends, nothing is dialled, a refusal is recorded all the same.
func TestAsk_TheClientIsKilled_LIB29(t *testing.T) {
	for _, way := range waysOut {
		t.Run(way, func(t *testing.T) {
			w, cmd, _, over := pendingAsk(t, way, Answer{Reason: "too late"})
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
			w, cmd, out, over := pendingAsk(t, way, Answer{Allow: true})
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
		{"LIB-27: the answer of docs/library.md", "a.test", func(context.Context, Destination) (Answer, error) {
			return Answer{Allow: true, Reason: "not today"}, nil
		}, nil, nil, "hello"},
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
