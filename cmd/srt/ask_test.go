package main

import (
	"bytes"
	"context"
	"errors"
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

// typed is a terminal on which something was typed already.
type typed struct {
	io.Reader
	shown bytes.Buffer
}

func (t *typed) Write(p []byte) (int, error) { return t.shown.Write(p) }

// still is a command that stands still.
func still() error { return nil }

var usualKeys = keys{interrupt: 0x03, quit: 0x1c, erase: del, kill: 0x15, eof: 0x04}

func TestLineReader(t *testing.T) {
	for _, tc := range []struct{ name, typed, line, shown string }{
		{"plain", "once abcd\r", "once abcd", "once abcd"},
		{"line feed", "no\n", "no", "no"},
		{"erased", "nx\x7fo\r", "no", "nx\b \bo"},
		{"backspace", "nx\x08o\r", "no", "nx\b \bo"},
		{"erased beyond the start", "\x7f\x7fno\r", "no", "no"},
		{"killed", "yes\x15no\r", "no", "yes\b \b\b \b\b \bno"},
		{"function keys", "\x1b[15~n\x1bOPo\r", "no", "no"},
		{"pasted", "\x1b[200~no\x1b[201~\r", "no", "no"},
		{"cursor report", "\x1b[12;40Rno\r", "no", "no"},
		{"title report", "\x1b]lrun abcd\x1b\\no\r", "no", "no"},
		{"title report, bell", "\x1b]lrun abcd\x07no\r", "no", "no"},
		{"device control", "\x1bP1$r0m\x1b\\no\r", "no", "no"},
		{"escape in a string", "\x1b]a\x1bb\x1b\\no\r", "no", "no"},
		{"a line break in a sequence drops the line", "run abcd\x1b]x\r", "", "run abcd"},
		{"bytes beyond ASCII", "n\xc3\xa9o\r", "no", "no"},
		{"control characters", "n\x01\x02\x0e\x00o\r", "no", "no"},
		{"end of file in a line", "n\x04o\r", "no", "no"},
		{"too long", strings.Repeat("a", 100) + "\r", strings.Repeat("a", maxAnswer), strings.Repeat("a", maxAnswer)},
		{"empty", "\r", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tty := &typed{Reader: strings.NewReader(tc.typed)}
			r := lineReader{tty: tty, keys: usualKeys}
			line, err := r.read()
			if err != nil || line != tc.line || tty.shown.String() != tc.shown {
				t.Errorf("%q, %v, shown %q", line, err, tty.shown.String())
			}
		})
	}
}

func TestConverse(t *testing.T) {
	const code = "bcdf"
	once, run := decision{allow: true}, decision{allow: true, remember: true}
	for _, tc := range []struct {
		name, typed string
		want        decision
		err         error
		says        string
	}{
		{"once", "once bcdf\r", once, nil, "allowed this time"},
		{"run", " RUN  BCDF \r", run, nil, "allowed until srt ends"},
		{"no", "no\r", decision{}, nil, "refused this time"},
		{"never", "never\r", decision{remember: true}, nil, "refused until srt ends"},
		{"none", "none\r", decision{remember: true, last: true}, nil, "nothing more is asked"},
		{"empty lines are nothing", strings.Repeat("\r", 50) + "once bcdf\r", once, nil, "allowed"},
		{"no code", "once\rno\r", decision{}, nil, "to allow it, type once bcdf"},
		{"wrong code", "run bcdg\ronce bcdf\r", once, nil, "to allow it, type run bcdf"},
		{"more words", "once bcdf now\rno\r", decision{}, nil, "to allow it"},
		{"no with more words", "no bcdf\rno\r", decision{}, nil, "type once bcdf, run bcdf, no, never or none"},
		{"mistakes", "y\ry\ry\ry\ry\ronce bcdf\r", decision{}, nil, "not an answer either"},
		{"end of file", "\x04", decision{}, nil, "refused this time"},
		{"interrupt", "once bcdf\x03", decision{}, &keyboardInterrupt{}, "once bcdf"},
		{"quit", "\x1c", decision{}, &keyboardInterrupt{quit: true}, ""},
		{"hung up", "once bcdf", decision{}, io.EOF, "once bcdf"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tty := &typed{Reader: strings.NewReader(tc.typed)}
			q := &questioning{tty: tty, keys: usualKeys, ctx: t.Context(), code: code, undisturbed: still}
			got, err := q.converse()
			same := errors.Is(err, tc.err)
			if want, ok := errors.AsType[*keyboardInterrupt](tc.err); ok {
				key, is := errors.AsType[*keyboardInterrupt](err)
				same = is && *key == *want
			}
			if got != tc.want || !same || !strings.Contains(tty.shown.String(), tc.says) {
				t.Errorf("%+v, %v, shown %q", got, err, tty.shown.String())
			}
		})
	}
}

// late is a terminal on which nobody types in time.
type late struct{ typed }

func (*late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestConverse_TheEnd(t *testing.T) {
	tty := &late{}
	q := &questioning{tty: tty, keys: usualKeys, ctx: t.Context(), code: "bcdf", undisturbed: still}
	if d, err := q.converse(); d.allow || !errors.Is(err, errNoAnswer) || !strings.Contains(tty.shown.String(), "nobody answered") {
		t.Errorf("%+v, %v, %q", d, err, tty.shown.String())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	q.ctx = ctx
	if d, err := q.converse(); d.allow || !errors.Is(err, errInterrupted) {
		t.Errorf("%+v, %v", d, err)
	}
}

// No answer that allows counts if the command ran, or if nobody knows; what refuses does.
func TestConverse_TheCommandRan(t *testing.T) {
	for _, tc := range []struct {
		typed string
		want  decision
		ran   bool
	}{
		{"once bcdf\r", decision{}, true},
		{"run bcdf\r", decision{}, true},
		{"no\r", decision{}, false},
		{"none\r", decision{remember: true, last: true}, false},
	} {
		for _, ran := range []error{runtime.ErrDisturbed, io.ErrUnexpectedEOF} {
			tty := &typed{Reader: strings.NewReader(tc.typed)}
			q := &questioning{tty: tty, keys: usualKeys, ctx: t.Context(), code: "bcdf", undisturbed: func() error { return ran }}
			d, err := q.converse()
			if d != tc.want || errors.Is(err, ran) != tc.ran || tc.ran && strings.Contains(tty.shown.String(), "allowed") {
				t.Errorf("%q: %+v, %v, %q", tc.typed, d, err, tty.shown.String())
			}
		}
	}
}

// Whatever comes from a terminal, nothing but the code allows, and a reader never panics or shows control characters of it.
func FuzzConverse(f *testing.F) {
	for _, seed := range []string{"once bcdf\r", "\x1b]lrun bcdf\x1b\\\r", "run\x1b[2Jbcdf\r", "no\n", "\x03", "\x1b\x1b\x1b[[[once\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tty := &typed{Reader: strings.NewReader(text)}
		q := &questioning{tty: tty, keys: usualKeys, ctx: t.Context(), code: "bcdf", undisturbed: still}
		d, _ := q.converse()
		if d.allow && !strings.Contains(strings.ToLower(text), "b") {
			t.Errorf("%q allows", text)
		}
		for _, b := range tty.shown.Bytes() {
			if b < ' ' && b != '\b' && b != '\r' && b != '\n' || b >= del {
				t.Errorf("%q shows %#x", text, b)
			}
		}
	})
}

func TestQuestionText(t *testing.T) {
	text := questionText(target{"::1", 443}, "make all", "bcdf", time.Minute)
	for _, want := range []string{"connect to ::1 port 443", "command: make all\r\n", "once bcdf ", "run bcdf ", "Answer within 1m0s: "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	codes := map[string]bool{}
	for range 100 {
		code := newCode()
		codes[code] = true
		if len(code) != codeLength || strings.Trim(code, codeLetters) != "" {
			t.Errorf("code %q", code)
		}
	}
	if len(codes) < 50 {
		t.Errorf("only %d codes of 100 differ", len(codes))
	}
	for term, want := range map[string]bool{"": true, "dumb": true, "dumb-emacs-ansi": true, "xterm": false, "linux": false} {
		if dumb(term) != want {
			t.Errorf("%q is dumb: %v", term, !want)
		}
	}
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
