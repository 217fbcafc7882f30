package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/runtime"
)

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
