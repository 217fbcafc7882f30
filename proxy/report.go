package proxy

import (
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// report hands one refusal to OnViolation (NET-70).
func (s *Server) report(op violation.Operation, target, rule, reason, key string) {
	if s.onViolation == nil {
		return
	}
	s.onViolation(violation.Event{
		Time: time.Now(), Operation: op, Target: target, Rule: rule, Reason: reason, CommandID: key,
	})
}

// reportVerdict records a destination that NET-7 refused, the host as spelled.
func (s *Server) reportVerdict(v policy.Verdict, host string, port uint16, key string) {
	s.report(violation.NetworkOutbound, violation.HostPort(host, port), v.Rule, v.Reason, key)
}
