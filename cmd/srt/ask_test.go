package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime"
)

// asking is a person who answers when the test says so.
type asking struct {
	shown   chan string // what is asked
	answers chan answered
}

type answered struct {
	decision
	err error
}

func (p *asking) put(ctx context.Context, t target, _ string) (decision, error) {
	p.shown <- fmt.Sprintf("%s:%d", t.host, t.port)
	select {
	case a := <-p.answers:
		return a.decision, a.err
	case <-ctx.Done():
		return decision{}, context.Cause(ctx)
	}
}

// desk is an asker with a person.
type desk struct {
	*asker
	*asking
	t  *testing.T
	wg sync.WaitGroup
}

func newDesk(t *testing.T) *desk {
	p := &asking{make(chan string, 100), make(chan answered)}
	d := &desk{asker: newAsker(p), asking: p, t: t}
	close(d.attached)
	t.Cleanup(func() { d.close(); d.wg.Wait() })
	return d
}

// asks puts a question in the background; the outcome comes as "allow", a reason, or an error.
func (d *desk) asks(ctx context.Context, host string, thread int) <-chan string {
	out := make(chan string, 1)
	d.wg.Go(func() {
		a, err := d.ask(ctx, runtime.Destination{Canonical: host, Port: 80, PID: thread})
		switch {
		case err != nil:
			out <- err.Error()
		case a.Allow:
			out <- "allow"
		default:
			out <- "refuse:" + a.Reason
		}
	})
	return out
}

// waits wants so many questions to be waiting or put, with so many who wait in all.
func (d *desk) waits(questions, waiters int) {
	d.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		d.mu.Lock()
		n, all := len(d.queue), 0
		for _, q := range d.queue {
			all += len(q.waiters)
		}
		d.mu.Unlock()
		if n == questions && all == waiters {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("%d questions for %d, want %d for %d", n, all, questions, waiters)
		}
	}
}

func (d *desk) want(what string, c <-chan string, want string) {
	d.t.Helper()
	if got := <-c; got != want {
		d.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestAsker_OneQuestionAtATimeAndEqualOnesOnce(t *testing.T) {
	d := newDesk(t)
	a1 := d.asks(t.Context(), "a.test", 0)
	d.want("first", d.shown, "a.test:80")
	b := d.asks(t.Context(), "b.test", 0)
	d.waits(2, 2)
	a2 := d.asks(t.Context(), "a.test", 0)
	d.waits(2, 3)
	d.answers <- answered{decision{allow: true}, nil}
	d.want("a", a1, "allow")
	d.want("a again", a2, "allow")
	d.want("second", d.shown, "b.test:80")
	d.answers <- answered{}
	d.want("b", b, "refuse:")
	a3 := d.asks(t.Context(), "a.test", 0)
	d.want("third", d.shown, "a.test:80") // once is once
	d.answers <- answered{err: errNoAnswer}
	d.want("a the third time", a3, errNoAnswer.Error())
}

func TestAsker_Remembers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answer  decision
		same    string // the same host again, empty: asked
		another string // another host
	}{
		{"run", decision{allow: true, remember: true}, "allow", ""},
		{"never", decision{remember: true}, "refuse:", ""},
		{"none", decision{remember: true, last: true}, "refuse:", "refuse:" + reasonNoMore},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t)
			first := d.asks(t.Context(), "a.test", 0)
			<-d.shown
			waiting := d.asks(t.Context(), "b.test", 0)
			d.waits(2, 2)
			d.answers <- answered{tc.answer, nil}
			<-first
			if tc.another == "" {
				d.want("shown", d.shown, "b.test:80")
				d.answers <- answered{}
				tc.another = "refuse:"
			} else {
				d.want("later", d.asks(t.Context(), "c.test", 0), tc.another)
			}
			d.want("waiting", waiting, tc.another)
			d.want("again", d.asks(t.Context(), "a.test", 0), tc.same)
		})
	}
}

func TestAsker_IsBounded(t *testing.T) {
	d := newDesk(t)
	var all []<-chan string
	for i := range maxQuestions {
		all = append(all, d.asks(t.Context(), fmt.Sprintf("h%d.test", i), 0))
	}
	d.waits(maxQuestions, maxQuestions)
	d.want("one too many", d.asks(t.Context(), "more.test", 0), "refuse:"+reasonTooMany)
	d.interrupt() // what is put and what waits
	for _, c := range all {
		d.want("interrupted", c, errInterrupted.Error())
	}
}

func TestAsker_KeyboardInterruptRefusesWhatWaits(t *testing.T) {
	d := newDesk(t)
	a := d.asks(t.Context(), "a.test", 0)
	<-d.shown
	b := d.asks(t.Context(), "b.test", 0)
	d.waits(2, 2)
	d.answers <- answered{decision{waiting: true}, nil}
	d.want("a", a, "refuse:")
	d.want("b", b, "refuse:")
	c := d.asks(t.Context(), "c.test", 0)
	d.want("later", d.shown, "c.test:80")
	d.answers <- answered{decision{allow: true}, nil}
	d.want("c", c, "allow")
}

// A question whose client has left is withdrawn (LIB-29), before it is put and while it is.
func TestAsker_ClientsThatLeave_LIB29(t *testing.T) {
	d := newDesk(t)
	first, leave := context.WithCancel(t.Context())
	a := d.asks(first, "a.test", 0)
	<-d.shown
	second, leaveSecond := context.WithCancel(t.Context())
	b := d.asks(second, "b.test", 0)
	d.waits(2, 2)
	leaveSecond()
	d.want("b", b, context.Canceled.Error())
	d.waits(1, 1)
	leave()
	d.want("a", a, context.Canceled.Error())
	d.waits(0, 0)
	c := d.asks(t.Context(), "c.test", 0)
	d.want("next", d.shown, "c.test:80")
	d.close()
	d.want("c", c, errEnded.Error())
	d.want("after the end", d.asks(t.Context(), "d.test", 0), errEnded.Error())
}

// A connect(2) that the pause has interrupted comes back for its answer, once; what was refused is not asked again at once.
func TestAsker_InterruptedCalls(t *testing.T) {
	d := newDesk(t)
	const thread = 7
	ctx, interrupted := context.WithCancel(t.Context())
	first := d.asks(ctx, "a.test", thread)
	<-d.shown
	interrupted()
	d.want("interrupted", first, context.Canceled.Error())
	d.answers <- answered{decision{allow: true}, nil} // the question has stayed
	d.waits(0, 0)
	d.want("made again", d.asks(t.Context(), "a.test", thread), "allow")
	next := d.asks(t.Context(), "a.test", thread)
	d.want("once", d.shown, "a.test:80")
	d.answers <- answered{}
	d.want("next", next, "refuse:")
	d.want("the other address", d.asks(t.Context(), "a.test", thread), "refuse:")
	other := d.asks(t.Context(), "a.test", thread+1)
	d.want("another thread", d.shown, "a.test:80")
	d.answers <- answered{decision{allow: true}, nil}
	d.want("another thread", other, "allow")
}

// Between two questions about a host the command goes on, so that an interrupted call comes back while the question waits: it
// is told the answer, and nothing is left over for a later one.
func TestAsker_ACallThatComesBackWhileTheQuestionStands(t *testing.T) {
	d := newDesk(t)
	const thread = 7
	ctx, interrupted := context.WithCancel(t.Context())
	first := d.asks(ctx, "a.test", thread)
	<-d.shown
	interrupted()
	d.want("interrupted", first, context.Canceled.Error())
	back := d.asks(t.Context(), "a.test", thread)
	d.waits(1, 1)
	d.answers <- answered{decision{allow: true}, nil}
	d.want("made again", back, "allow")
	next := d.asks(t.Context(), "a.test", thread)
	d.want("once is once", d.shown, "a.test:80")
	d.answers <- answered{}
	d.want("next", next, "refuse:")
}

func TestAskOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"not a time", []string{"--ask", "--ask-timeout", "x", "true"}, "error: option '--ask-timeout <time>' argument 'x' is invalid: it must be a time"},
		{"too short", []string{"--ask", "--ask-timeout", "10ms", "true"}, "error: option '--ask-timeout <time>'"},
		{"alone", []string{"--ask-timeout", "30", "true"}, "Error: " + errAskTimeoutAlone.Error()},
		{"no terminal", []string{"--ask", "true"}, "Error: --ask needs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, home := newFake(), t.TempDir()
			var errs bytes.Buffer
			a := &app{stdout: io.Discard, stderr: &errs, getenv: func(name string) string { return map[string]string{"HOME": home}[name] }, open: f.open,
				terminal: func() (*os.File, error) { return nil, errNoTerminal }}
			if code := a.run(tc.args); code != exitFailure || !strings.HasPrefix(errs.String(), tc.want) || len(f.calls) > 0 {
				t.Errorf("status %d, %q, sandbox: %q", code, errs.String(), f.calls)
			}
		})
	}
}
