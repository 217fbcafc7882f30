package proxy

import (
	"time"

	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// report hands one refusal to OnViolation (NET-70).
func (s *Server) report(op violation.Operation, target string, v policy.Verdict, key string) {
	if s.onViolation == nil {
		return
	}
	s.onViolation(violation.Event{
		Time: time.Now(), Operation: op, Target: target, Rule: v.Rule, Entry: v.Entry, Reason: v.Reason, CommandID: key,
	})
}

// reportVerdict records a destination that NET-7 refused, the host as spelled.
func (s *Server) reportVerdict(v policy.Verdict, host string, port uint16, key string) {
	s.report(violation.NetworkOutbound, violation.HostPort(host, port), v, key)
}

// ruleOpaque is the setting that refuses tunnels which nothing can look into (NET-38).
const ruleOpaque = "network.refuseOpaqueTunnels"

func opaqueVerdict(reason string) policy.Verdict {
	return policy.Verdict{Rule: ruleOpaque, Reason: reason}
}
