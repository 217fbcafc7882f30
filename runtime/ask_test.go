package runtime

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/proxy"
)

// askSoon bounds every wait for something that happens for sure.
const askSoon = 20 * time.Second

// putTo is the callback that the proxies get for an AskFunc.
func putTo(t *testing.T, f AskFunc, list ...AskOption) func(context.Context, proxy.Question) (proxy.Answer, error) {
	t.Helper()
	s := &Sandbox{opts: newOptions([]Option{WithAsk(f, list...)})}
	s.commands = map[*Cmd]struct{}{{ID: "key", Text: "make \x1b[31m<all>", sandbox: s}: {}}
	ask := s.askProxy()
	if ask == nil {
		t.Fatal("nobody is asked")
	}
	return ask
}

func TestLIB26_WhatTheCallbackGets(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    proxy.Question
		want Destination
	}{
		{"case 8: canonical host", proxy.Question{Host: "q.me", Spelled: "Q.Me.", Port: 443, Key: "key", PID: 7},
			Destination{Host: "Q.Me.", Canonical: "q.me", Key: "key", Command: "make \x1b[31m<all>", Port: 443, PID: 7}},
		{"NET-8: no brackets", proxy.Question{Host: "[::1]", Spelled: "[0:0::1]", Port: 1, Key: "key"},
			Destination{Host: "[0:0::1]", Canonical: "::1", Key: "key", Command: "make \x1b[31m<all>", Port: 1}},
		{"a command that has ended", proxy.Question{Host: "a.test", Spelled: "a.test", Port: 80, Key: "other"},
			Destination{Host: "a.test", Canonical: "a.test", Key: "other", Port: 80}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got Destination
			ask := putTo(t, func(_ context.Context, d Destination) (Answer, error) { got = d; return Answer{Allow: true}, nil })
			answer, err := ask(t.Context(), tc.q)
			if err != nil || answer != (proxy.Answer{Allow: true}) || got != tc.want {
				t.Errorf("%+v, %v; asked about %+v", answer, err, got)
			}
		})
	}
}

func TestVIO20_WhatAPersonSeesIsClean(t *testing.T) {
	d := Destination{Host: "a\x1b[2J<b>\u202ec", Command: "make \x1b[31m<all>\nnow\n" + strings.Repeat("é", 50)}
	if got := d.CleanHost(); got != "a [2Jb c" {
		t.Errorf("host %q", got)
	}
	if got, want := d.CleanCommand(22), "make  [31m<all> now é…"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	if got := d.CleanCommand(1000); strings.ContainsAny(got, "\x1b\n…") {
		t.Errorf("command %q", got)
	}
}

func TestLIB27_NothingButAnAnswerThatAllows(t *testing.T) {
	failed := errors.New("no")
	for _, tc := range []struct {
		name string
		f    AskFunc
		list []AskOption
		want error
	}{
		{"error", func(context.Context, Destination) (Answer, error) { return Answer{Allow: true}, failed }, nil, failed},
		{"panic", func(context.Context, Destination) (Answer, error) { panic("oh") }, nil, errAskPanic},
		{"panic within a time limit", func(context.Context, Destination) (Answer, error) { panic("oh") }, []AskOption{AskTimeout(time.Hour)}, errAskPanic},
		{"panic of a joined call", func(context.Context, Destination) (Answer, error) { panic("oh") }, []AskOption{AskJoin()}, errAskPanic},
		{"LIB-28: no answer in time", func(ctx context.Context, _ Destination) (Answer, error) {
			<-ctx.Done()
			return Answer{Allow: true}, nil
		}, []AskOption{AskTimeout(time.Millisecond)}, ErrAskTimeout},
		{"LIB-28: deaf to its context", func(context.Context, Destination) (Answer, error) {
			time.Sleep(100 * time.Millisecond)
			return Answer{Allow: true}, nil
		}, []AskOption{AskTimeout(time.Millisecond), AskJoin()}, ErrAskTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer, err := putTo(t, tc.f, tc.list...)(t.Context(), proxy.Question{Host: "a.test", Key: "key", Port: 1})
			if !errors.Is(err, tc.want) {
				t.Errorf("%+v, %v; want %v", answer, err, tc.want)
			}
		})
	}
	if s := (&Sandbox{opts: newOptions([]Option{WithAsk(nil)})}); s.askProxy() != nil {
		t.Error("a nil callback is asked")
	}
}

func TestLIB28_TheTimeLimitEndsTheContext(t *testing.T) {
	cause := make(chan error, 1)
	ask := putTo(t, func(ctx context.Context, _ Destination) (Answer, error) {
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return Answer{}, nil
	}, AskTimeout(time.Millisecond))
	if _, err := ask(t.Context(), proxy.Question{Host: "a.test", Key: "key", Port: 1}); !errors.Is(err, ErrAskTimeout) {
		t.Error(err)
	}
	if err := <-cause; !errors.Is(err, ErrAskTimeout) {
		t.Errorf("the callback's context ended with %v", err)
	}
}

// LIB-29: that the client has left ends the context; what is answered then is still told to whoever records it.
func TestLIB29_ARefusalAfterTheClientHasLeft(t *testing.T) {
	for name, list := range map[string][]AskOption{
		"plain": nil, "time limit": {AskTimeout(time.Hour)}, "joined": {AskJoin()}, "both": {AskJoin(), AskTimeout(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			ask := putTo(t, func(ctx context.Context, _ Destination) (Answer, error) {
				<-ctx.Done()
				return Answer{Reason: "too late"}, nil
			}, list...)
			ctx, leave := context.WithCancel(t.Context())
			leave()
			if answer, err := ask(ctx, proxy.Question{Host: "a.test", Key: "key", Port: 1}); err != nil || answer.Reason != "too late" {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
}

// joining puts n equal questions and waits until the callback has the first and the others have joined it.
type joining struct {
	calls   atomic.Int32
	answer  chan Answer
	gone    chan struct{} // closed when the context of a call has ended
	goneOne sync.Once
}

func (j *joining) ask(ctx context.Context, _ Destination) (Answer, error) {
	j.calls.Add(1)
	select {
	case a := <-j.answer:
		return a, nil
	case <-ctx.Done():
		j.goneOne.Do(func() { close(j.gone) })
		return Answer{}, context.Cause(ctx)
	}
}

func newJoining() *joining { return &joining{answer: make(chan Answer), gone: make(chan struct{})} }

func TestLIB28_EqualQuestionsAreJoinedOnDemand(t *testing.T) {
	q := proxy.Question{Host: "a.test", Spelled: "a.test", Key: "key", Port: 443}
	spelled, port, key, host := q, q, q, q
	spelled.Spelled, port.Port, key.Key, host.Host = "A.test.", 444, "other", "b.test"
	for _, tc := range []struct {
		name  string
		other proxy.Question
		join  bool
		calls int32
	}{
		{"two calls", q, false, 2},
		{"joined", q, true, 1},
		{"another spelling", spelled, true, 1},
		{"another port", port, true, 2},
		{"another command", key, true, 2},
		{"another host", host, true, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := newJoining()
			var list []AskOption
			if tc.join {
				list = append(list, AskJoin())
			}
			ask := putTo(t, j.ask, list...)
			var wg sync.WaitGroup
			var allowed atomic.Int32
			begun := make(chan struct{}, 2)
			for _, question := range []proxy.Question{q, tc.other} {
				wg.Go(func() {
					begun <- struct{}{}
					if a, err := ask(t.Context(), question); err == nil && a.Allow {
						allowed.Add(1)
					}
				})
			}
			<-begun
			<-begun
			time.Sleep(20 * time.Millisecond) // the second may still be on its way: then it makes a call of its own
			for j.calls.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			for range tc.calls {
				j.answer <- Answer{Allow: true}
			}
			wg.Wait()
			if j.calls.Load() != tc.calls || allowed.Load() != 2 {
				t.Errorf("%d calls, %d allowed", j.calls.Load(), allowed.Load())
			}
		})
	}
}

// LIB-29: one who leaves does not end the call of another; the last one does.
func TestLIB29_LeavingAJoinedCall(t *testing.T) {
	j := newJoining()
	shared := &joined{call: j.ask}
	d := Destination{Canonical: "a.test", Port: 1, Key: "key"}
	first, leaveFirst := context.WithCancel(t.Context())
	second, leaveSecond := context.WithCancel(t.Context())
	defer leaveSecond()
	type end struct {
		Answer
		err error
	}
	ends := make(chan end, 2)
	put := func(ctx context.Context) { a, err := shared.ask(ctx, d); ends <- end{a, err} }
	waiting := func() int {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		for _, q := range shared.pending {
			return q.waiting
		}
		return 0
	}
	until := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(askSoon); waiting() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d wait, want %d", waiting(), n)
			}
		}
	}
	go put(first)
	until(1)
	go put(second)
	until(2)
	leaveFirst()
	until(1)
	select {
	case <-j.gone:
		t.Fatal("one who left has ended the call of the other")
	default:
	}
	j.answer <- Answer{Allow: true}
	for range 2 {
		if e := <-ends; e.err != nil || !e.Allow {
			t.Errorf("%+v, %v", e.Answer, e.err)
		}
	}
	// The last one who leaves ends it, and the next question is a new one.
	third, leaveThird := context.WithCancel(t.Context())
	go put(third)
	until(1)
	leaveThird()
	<-j.gone
	if e := <-ends; e.err == nil {
		t.Errorf("%+v after everybody has left", e.Answer)
	}
	fourth, leaveFourth := context.WithCancel(t.Context())
	defer leaveFourth()
	go put(fourth)
	until(1)
	j.answer <- Answer{}
	if e := <-ends; e.err != nil || e.Allow || j.calls.Load() != 3 {
		t.Errorf("%+v, %v after %d calls", e.Answer, e.err, j.calls.Load())
	}
}
