package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// ErrAskTimeout is how a question ends that was not answered within [AskTimeout]. The destination is refused with
// "permission prompt failed".
var ErrAskTimeout = errors.New("no answer within the time limit for questions")

// errAskPanic is an AskFunc that panicked.
var errAskPanic = errors.New("the ask callback panicked")

// AskFunc decides about a destination that the settings and the command's own list leave open (LIB-25). It is asked for
// each connection, for each plain HTTP request and for each captured connect(2) anew, from many goroutines at once and
// with no lock held, so it may call every method of the session. Nothing is remembered (LIB-28); only where an allowed
// connect(2) comes to nothing, what its thread does in its place at once is still the same attempt: the address of the other
// family of the name, or the call again that its signal has interrupted.
//
// Only Answer{Allow: true} allows; an error or a panic refuses with "permission prompt failed" (LIB-27). ctx ends when
// whoever asked is gone, when the time limit is over, and when the session is closed: what is answered then opens nothing,
// but a refusal is still recorded as long as the session is open (LIB-29). It is never asked under strictAllowlist, about
// a malformed or denied host, or for a client without the session's token (LIB-26).
type AskFunc func(ctx context.Context, d Destination) (Answer, error)

// Destination is what an [AskFunc] is asked about. It is a value and may be kept.
type Destination struct {
	// Host is the host as the client spelled it. A program in the sandbox chose these bytes: show CleanHost, or Canonical.
	Host string
	// Canonical is what would be dialled: lower case, without final dot, a literal in its one spelling and without brackets
	// (NET-8). It has only letters, digits and "._-:", so it is fit for a terminal.
	Canonical string
	// Key is the attribution key of the command that asks (VIO-1).
	Key string
	// Command is the text of that command; empty if it has ended. It is not cleaned: see CleanCommand.
	Command string
	// Port is 1 to 65535.
	Port uint16
	// PID is the thread that connects, in the numbering of the caller's pid namespace; 0 for a client of a proxy.
	PID int
}

// CleanHost is Host without what could deceive on a terminal, in a log or in markup (VIO-20), cut to 255 UTF-16 units.
func (d Destination) CleanHost() string { return shortened(violation.Clean(d.Host), maxHostShown) }

// CleanCommand is Command in one line, without what could deceive on a terminal or in a log (VIO-20), cut to a number of
// UTF-16 units. Where something was cut off it ends in "…", which counts. '<' and '>' stay as they are part of what shells
// do: escape them where the text becomes part of markup.
func (d Destination) CleanCommand(units int) string {
	return shortened(violation.CleanLine(d.Command), units)
}

// maxHostShown is the length of the longest host that is not malformed (NET-9).
const maxHostShown = 255

func shortened(clean string, units int) string {
	cut := violation.CutUTF16(clean, units)
	if len(cut) < len(clean) {
		cut = violation.CutUTF16(clean, units-1) + "…"
	}
	return cut
}

// Answer is what an [AskFunc] says. The zero value refuses.
type Answer struct {
	// Allow lets this one connection or request through. It does not stand before deniedDomains or strictAllowlist: an
	// update that came meanwhile counts.
	Allow bool
	// Reason is why not, for the program in the sandbox and for the record. It is cleaned and cut to 500 UTF-16 units
	// (VIO-21); if nothing is left the text is "user denied". Beside Allow it means nothing.
	Reason string
}

// AskOption changes one thing about how questions are put.
type AskOption func(*asking)

// asking is how questions are put. The zero value asks nobody.
type asking struct {
	call    AskFunc
	timeout time.Duration
	join    bool
}

// AskTimeout limits the time for each question. Its context ends then, and the destination is refused although f may
// still be at work. Zero or less is no limit, which is the default (LIB-28).
func AskTimeout(d time.Duration) AskOption { return func(a *asking) { a.timeout = max(d, 0) } }

// AskJoin puts equal questions once: of the same command (by its key), about the same canonical host and port, at the
// same time. All get the one answer. Host and PID are those of the first; the context of f ends when the last one has
// left (LIB-28).
func AskJoin() AskOption { return func(a *asking) { a.join = true } }

// WithAsk lets f decide about undecided destinations. It is fixed for the life of the session (LIB-23). A nil f is none:
// such destinations are refused.
func WithAsk(f AskFunc, list ...AskOption) Option {
	return func(o *options) {
		o.ask = asking{call: f}
		for _, change := range list {
			if change != nil {
				change(&o.ask)
			}
		}
	}
}

// askProxy is the callback for the session's proxies; nil if nobody is asked.
func (s *Sandbox) askProxy() func(context.Context, proxy.Question) (proxy.Answer, error) {
	a := s.opts.ask
	if a.call == nil {
		return nil
	}
	call := a.limited
	if a.join {
		call = (&joined{call: call}).ask
	}
	return func(ctx context.Context, q proxy.Question) (proxy.Answer, error) {
		answer, err := call(ctx, Destination{
			Host: q.Spelled, Canonical: strings.Trim(q.Host, "[]"), Key: q.Key, Command: s.commandText(q.Key),
			Port: q.Port, PID: q.PID,
		})
		return proxy.Answer(answer), err
	}
}

// limited asks within the time limit.
func (a *asking) limited(ctx context.Context, d Destination) (Answer, error) {
	if a.timeout == 0 {
		return a.guarded(ctx, d)
	}
	over := time.NewTimer(a.timeout)
	defer over.Stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answered := make(chan result, 1)
	go func() {
		var r result
		defer func() { answered <- r }() // a callback may even end its goroutine
		r.err = errAskPanic
		r.Answer, r.err = a.guarded(ctx, d)
	}()
	// That the client has left ends nothing here: a refusal is still to be recorded.
	select {
	case r := <-answered:
		return r.Answer, r.err
	case <-over.C:
		cancel(ErrAskTimeout)
		return Answer{}, ErrAskTimeout
	}
}

// result is the outcome of a question.
type result struct {
	Answer
	err error
}

// guarded asks, and turns a panic into an error.
func (a *asking) guarded(ctx context.Context, d Destination) (answer Answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = Answer{}, fmt.Errorf("%w: %v", errAskPanic, r)
		}
	}()
	return a.call(ctx, d)
}

// commandText is the text of the command with a key, empty if none with it is there any more.
func (s *Sandbox) commandText(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.commands {
		if c.Key() == key {
			return c.text()
		}
	}
	return ""
}
