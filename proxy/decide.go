package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// The reasons of NET-39 that come from the callback.
const (
	reasonUserDenied   = "user denied"
	reasonPromptFailed = "permission prompt failed"
)

// ruleOfCommand is the rule of what the list of one command allows (NET-15).
const ruleOfCommand = "list of the command"

// Question is a destination that the policy leaves undecided. It is a value and may be kept.
type Question struct {
	// Host is the canonical host (NET-8), an IPv6 literal in brackets: what would be dialled.
	Host string
	// Spelled is the host as the client spelled it. It comes from inside the sandbox: clean it before it is shown.
	Spelled string
	// Port is 1 to 65535.
	Port uint16
	// Key is the attribution key of the command, empty if unattributed. Unless the listener tells it (see ServeFor) it is a
	// label that the client chose.
	Key string
	// PID is the thread that connects, in the host's numbering; 0 if the source does not know it.
	PID int
}

// Answer is what a callback says to a [Question]. Only Allow allows: the zero value denies.
type Answer struct {
	Allow bool
	// Reason is why not, for the client and the violation line. It is cleaned and cut to 500 UTF-16 units (NET-75); if
	// nothing is left of it the text is "user denied". Beside Allow it means nothing.
	Reason string
}

// asking is one destination to be decided.
type asking struct {
	key  string // attribution key, empty if unattributed
	pid  int    // of the thread that connects, 0 if unknown
	host string // as spelled
	port uint16
}

// decideNow is NET-7 without the callback, for a client that is admitted. Every protocol path begins with it and, where
// the verdict is undecided (a refusal that only the callback can turn), goes on with decideByAsking. The rules are those
// that the verdict was made by, for the check of resolved addresses. A refusal is for the caller to report.
func (s *Server) decideNow(a asking) (rules *Rules, v policy.Verdict, undecided bool) {
	rules = s.policy()
	host, stands := s.meant(a.host)
	v = rules.Decide(host, a.port)
	if !stands {
		return rules, policy.Verdict{Host: v.Host, Rule: policy.RuleAllowedDomains, Reason: policy.ReasonNotAllowed}, false
	}
	if v.Allowed || v.Denied || v.Malformed || rules.Strict() {
		return rules, v, false
	}
	if entry, ok := s.commands.Allows(s.keyOf(a), v.Host, a.port); ok {
		return rules, policy.Verdict{Allowed: true, Host: v.Host, Rule: ruleOfCommand, Entry: entry}, false
	}
	return rules, v, s.askUser != nil && a.port != 0
}

// decideLoopback is decideNow for a loopback address that a program of one command connects to by itself. It is never
// undecided, and only an allowed verdict is to be used: every other address is refused.
func (s *Server) decideLoopback(dst netip.AddrPort) (*Rules, policy.Verdict) {
	rules := s.policy()
	v := rules.Loopback(dst)
	if v.Allowed || v.Denied || rules.Strict() {
		return rules, v
	}
	if host, entry, ok := s.commands.Loopback(s.identity, dst, rules.Network); ok {
		return rules, policy.Verdict{Allowed: true, Host: host, Rule: ruleOfCommand, Entry: entry}
	}
	return rules, v
}

// possible tells whether NET-7, as of now, could allow a canonical name on some port.
func (s *Server) possible(name string) bool {
	rules, host := s.policy(), config.Host{Name: name}
	allowed, undenied := rules.Possible(host)
	return allowed || undenied && !rules.Strict() && (s.askUser != nil || s.commands.Possible(s.identity, host))
}

// meant gives the name in the place of a synthetic address, and every other host as it is. stands is false for a synthetic
// address that stands for nothing, which no rule allows.
func (s *Server) meant(host string) (meant string, stands bool) {
	if s.names == nil {
		return host, true
	}
	h, err := config.CanonicalHost(host)
	if err != nil || !h.IsLiteral() || !s.names.Synthetic(h.Addr) {
		return host, true
	}
	if name, ok := s.names.Name(h.Addr); ok {
		return name, true
	}
	return host, false
}

// keyOf is the attribution key: the listener's, else the one that the client presents (NET-21).
func (s *Server) keyOf(a asking) string {
	if s.identity != "" {
		return s.identity
	}
	return a.key
}

// decideByAsking puts an undecided destination to the callback (NET-13). It fails only with errClientGone, if the context
// ends before there is an answer: then nothing may be dialled, and a denial that still comes is reported here. The
// callback has a goroutine of its own, which outlives the client, and the server, if the callback does not heed its
// context: their connections are released all the same.
func (s *Server) decideByAsking(ctx context.Context, a asking, v policy.Verdict) (*Rules, policy.Verdict, error) {
	answered := make(chan policy.Verdict)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		v.Allowed, v.Reason = false, reasonPromptFailed
		defer func() { // a callback may even end its goroutine
			select {
			case answered <- v:
			case <-ctx.Done():
				// What the user has decided is recorded even though the client did not wait for it, or its command has
				// ended, and this view of the server with it (LIB-29); that the callback gave up with its context is no
				// decision.
				if !v.Allowed && v.Reason != reasonPromptFailed && !s.isClosed() {
					s.reportAs(a, v)
				}
			}
		}()
		v.Allowed, v.Reason = s.callAsk(ctx, a, v.Host)
	}()
	select {
	case <-ctx.Done():
		return nil, policy.Verdict{}, errClientGone
	case v := <-answered:
		rules, v := s.stillAllowed(a, v)
		return rules, v, nil
	}
}

// stillAllowed looks at an answer of the callback, which may have taken long. It stands for the allow list, not for what
// comes before that and beside it (NET-7, NET-16): the rules are those of now.
func (s *Server) stillAllowed(a asking, v policy.Verdict) (*Rules, policy.Verdict) {
	rules := s.policy()
	if v.Allowed {
		host, _ := s.meant(a.host)
		if now := rules.Decide(host, a.port); !now.Allowed && (now.Denied || now.Malformed || rules.Strict()) {
			v = now
		}
	}
	return rules, v
}

// errPanic is a callback that panicked.
var errPanic = errors.New("the callback panicked")

// callAsk calls the callback and reads its answer: allow, or the reason of the denial.
func (s *Server) callAsk(ctx context.Context, a asking, h config.Host) (allow bool, reason string) {
	answer, err := func() (answer Answer, err error) {
		defer func() {
			if r := recover(); r != nil {
				answer, err = Answer{}, fmt.Errorf("%w: %v", errPanic, r)
			}
		}()
		return s.askUser(ctx, Question{Host: bracketed(h), Spelled: a.host, Port: a.port, Key: s.keyOf(a), PID: a.pid})
	}()
	switch {
	case err != nil:
		s.log.Debug("proxy: the ask callback failed", "host", h.Name, "port", a.port, "error", err)
		return false, reasonPromptFailed
	case answer.Allow:
		return true, ""
	}
	if reason = violation.CallbackReason(answer.Reason); reason == "" {
		reason = reasonUserDenied
	}
	return false, reason
}

// reportAs records a refusal by NET-7 with all that is known of who asked.
func (s *Server) reportAs(a asking, v policy.Verdict) {
	s.reportEvent(violation.Event{
		PID: a.pid, Operation: violation.NetworkOutbound, Target: violation.HostPort(a.host, a.port), Rule: v.Rule, Entry: v.Entry,
		Reason: v.Reason, CommandID: s.keyOf(a),
	})
}

// reportEvent hands one refusal to OnViolation (NET-70).
func (s *Server) reportEvent(e violation.Event) {
	if s.onViolation != nil {
		e.Time = time.Now()
		s.onViolation(e)
	}
}

// bracketed is a canonical host as it stands before a port.
func bracketed(h config.Host) string {
	if h.Addr.Is6() {
		return "[" + h.Name + "]"
	}
	return h.Name
}
