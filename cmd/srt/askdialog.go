package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	// maxCommandShown is how much of the command a question shows, in UTF-16 units.
	maxCommandShown = 200
	// maxMistakes is how many answers are not understood before the host is refused.
	maxMistakes = 5
	// codeLength of codeLetters make 16 bits, of letters that are not mistaken for one another and make no words.
	codeLength  = 4
	codeLetters = "bcdfghjkmnprstvz"
)

// newCode draws what an answer that allows must contain. The command has been stopped before, so nothing that it wrote, and
// nothing that it made the terminal type, knows it.
func newCode() string {
	code := make([]byte, codeLength)
	rand.Read(code) // never fails (crypto/rand)
	for i := range code {
		code[i] = codeLetters[int(code[i])%len(codeLetters)]
	}
	return string(code)
}

// dumb tells whether a kind of terminal (TERM) knows no sequences.
func dumb(term string) bool { return term == "" || term == "dumb" || strings.HasPrefix(term, "dumb-") }

// questionText is a question. Every part of it is plain: the host is canonical and the command was cleaned.
func questionText(t target, command, code string, timeout time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "srt: the command asks to connect to %s port %d, which the settings do not decide.\r\n", t.host, t.port)
	fmt.Fprintf(&b, "     command: %s\r\n", command)
	fmt.Fprintf(&b, "     once %s  allow this time\r\n", code)
	fmt.Fprintf(&b, "     run %s   allow %s port %d until srt ends\r\n", code, t.host, t.port)
	b.WriteString("     no         refuse this time\r\n")
	b.WriteString("     never      refuse it until srt ends\r\n")
	b.WriteString("     none       refuse it and all else that would be asked, until srt ends\r\n")
	fmt.Fprintf(&b, "srt: the command is stopped meanwhile. Answer within %s: ", timeout)
	return b.String()
}

// answers are the words of a person. Those that allow need the code beside them.
var answers = []struct {
	word     string
	code     bool
	decision decision
	done     string // what is said then
}{
	{"once", true, decision{allow: true}, "allowed this time"},
	{"run", true, decision{allow: true, remember: true}, "allowed until srt ends"},
	{"no", false, decision{}, "refused this time"},
	{"never", false, decision{remember: true}, "refused until srt ends"},
	{"none", false, decision{remember: true, last: true}, "refused, and nothing more is asked until srt ends"},
}

// understand reads an answer. hint says what is missing in one that is none.
func understand(line, code string) (d decision, done, hint string) {
	words := strings.Fields(strings.ToLower(line))
	for _, a := range answers {
		switch {
		case len(words) == 0 || words[0] != a.word:
			continue
		case !a.code && len(words) == 1, a.code && len(words) == 2 && words[1] == code:
			return a.decision, a.done, ""
		case a.code:
			return decision{}, "", fmt.Sprintf("to allow it, type %s %s", a.word, code)
		}
	}
	return decision{}, "", fmt.Sprintf("type once %s, run %s, no, never or none", code, code)
}

// keyboardInterrupt is a key that sends a signal to the foreground (termios(3)): the host is refused, and the signal is sent
// as if it had come from the terminal.
type keyboardInterrupt struct{ quit bool }

// Error says which.
func (k *keyboardInterrupt) Error() string {
	if k.quit {
		return "the quit key was pressed"
	}
	return "the interrupt key was pressed"
}

// questioning is one question on a terminal that gives single keys and shows none by itself.
type questioning struct {
	tty      io.ReadWriter
	keys     keys
	ctx      context.Context
	code     string
	mistakes int
	// undisturbed tells whether the command has stood still until now.
	undisturbed func() error
}

// converse reads lines until one is an answer.
func (q *questioning) converse() (decision, error) {
	line := lineReader{tty: q.tty, keys: q.keys}
	for {
		text, err := line.read()
		switch {
		case q.ctx.Err() != nil:
			return decision{}, context.Cause(q.ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			q.say("nobody answered, so it is refused")
			return decision{}, errNoAnswer
		case errors.Is(err, errEndOfInput):
			q.say("refused this time")
			return decision{}, nil
		case err != nil:
			return decision{}, err
		case text == "":
			continue
		}
		d, done, hint := understand(text, q.code)
		if hint == "" {
			if d.allow { // what refuses counts in any case
				if err := q.undisturbed(); err != nil {
					return decision{}, err
				}
			}
			q.say(done)
			return d, nil
		}
		if q.mistakes++; q.mistakes == maxMistakes {
			q.say("that is not an answer either, so it is refused")
			return decision{}, nil
		}
		if _, err := io.WriteString(q.tty, "\r\nsrt: "+hint+": "); err != nil {
			return decision{}, err
		}
	}
}

// say ends the question with a line of its own. One that cannot be written changes nothing.
func (q *questioning) say(text string) { _, _ = io.WriteString(q.tty, "\r\nsrt: "+text+".\r\n") }
