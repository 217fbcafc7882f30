package proxy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// judgeTarget takes the target of a request in a tunnel apart, and applies the rules about targets that hold with a filter,
// and at hosts whose paths network.requestRules are about (NET-35, NET-36, REQ-5 to REQ-8). There an ambiguous target does not
// go out as spelled, whatever the setting: the rules would judge another path than the server may. After it r.path is what goes
// out.
func (s *Server) judgeTarget(r *request) refusal {
	if r.tunnel {
		if reason := r.parseInTunnel(); reason != "" {
			return refusal{status: 400, reason: reason}
		}
	} else {
		r.path = r.absolute.path
	}
	r.spelled = r.path
	paths := r.rules.Requests.NamesPaths(r.host, r.port)
	if s.filtering.Filter == nil && !paths {
		return refusal{}
	}
	if !utf8.ValidString(r.target) {
		return refusal{status: 400, reason: reasonEncodeTarget}
	}
	r.normalized, r.ambiguous = normalizeTarget(r.spelled)
	switch {
	case s.filtering.AmbiguousRequestTarget == config.TargetNormalize:
		r.path = r.normalized
	case r.ambiguous && s.filtering.AmbiguousRequestTarget != config.TargetAsSpelled:
		return refusal{status: 400, mark: markAmbiguous, rule: ruleAmbiguous, reason: reasonAmbiguousTarget}
	case r.ambiguous && paths:
		return refusal{status: 400, mark: markAmbiguous, rule: ruleRequests, reason: reasonAmbiguousRules}
	}
	return refusal{}
}

const ruleAmbiguous = "network.ambiguousRequestTarget"

// parseInTunnel sets r.path, and r.absolute for an absolute form, whose authority does not go out: the host is that of the
// tunnel (TLS-32). What is neither that, nor an origin form, nor "*" for OPTIONS is refused with a filter and without one, as
// a server behind the target could take it for another place. It returns what is wrong (REQ-5, TLS-31), or "".
func (r *request) parseInTunnel() (reason string) {
	for i := range len(r.target) {
		if c := r.target[i]; c <= ' ' || c >= 0x7f {
			return reasonEncodeTarget
		}
	}
	origin, _, _ := strings.Cut(r.target, "#")
	switch {
	case strings.HasPrefix(origin, "/"), origin == "*" && r.method == "OPTIONS":
		r.path = origin
		return ""
	}
	t, ok := parseTarget(r.method, r.target)
	if !ok {
		return reasonMalformedTarget
	}
	r.absolute, r.path = t, t.path
	return ""
}

// judgeMethod refuses the methods that echo a request where something was added to it that the client must not see: by the
// filter, or a masked credential (NET-36, REQ-11). Every other method is the filter's to judge; with a credential none goes out
// that some servers take for one of those: "trace", or a field that names another method.
func (s *Server) judgeMethod(r *request) refusal {
	method := r.method
	switch exact := method == "TRACE" || method == "TRACK"; {
	case exact && (s.filtering.Filter != nil || s.injects(r)):
	case !exact && echoes(method) && s.injects(r):
	case !exact && slices.ContainsFunc(methodOverrides(r.header), echoes) && s.injects(r):
		method = "TRACE"
	default:
		return refusal{}
	}
	return refusal{status: 405, reason: "the " + method + " method is not forwarded"}
}

// echoes reports whether a server that ignores case answers a method with the request itself.
func echoes(method string) bool {
	return httphead.EqualFold(method, "TRACE") || httphead.EqualFold(method, "TRACK")
}

// injects reports whether a masked credential could be put into a request.
func (s *Server) injects(r *request) bool {
	return (r.tunnel || s.plaintextInject) && s.injectable != nil && s.injectable(r.host)
}

// judgeHost applies requireHostMatch (NET-34, REQ-9, REQ-10).
func (s *Server) judgeHost(r *request) refusal {
	if !s.requireHostMatch {
		return refusal{}
	}
	if reason := hostMismatch(r); reason != "" {
		return refusal{status: 421, rule: "network.requireHostMatch", reason: reason}
	}
	return refusal{}
}

// hostMismatch returns why a request is misdirected, or "".
func hostMismatch(r *request) string {
	field, hosts := r.header.Get("Host")
	at := r.at()
	switch {
	case r.sniUnreadable:
		return "TLS server name could not be read"
	case r.sni != "" && !httphead.EqualFold(r.sni, r.host.Name):
		return "TLS server name does not match the request target"
	case r.tunnel && r.absolute.host != "" && !at.namedBy(authorityOf(r.target), r.host):
		return "request-target authority does not match the request target"
	case hosts > 1:
		return "more than one Host header"
	case !at.namedBy(field, r.host):
		return "Host header does not match the request target"
	}
	return ""
}

// authorityOf is the authority of an absolute URI as spelled, user information included.
func authorityOf(target string) string {
	_, rest, _ := strings.Cut(target, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// refuseTarget answers a target of the plain path that is none. Only with a filter is that said and recorded (NET-36, NET-73).
func (c *client) refuseTarget(e *exchange, reason string) answer {
	e.keep = false
	if c.filtering.Filter == nil {
		return answer400
	}
	f := refusal{status: 400, reason: reason}
	c.reportRequest(&request{method: e.req.Method, target: e.req.Target, key: c.key}, f)
	return f.answer()
}

// targetShown is how much of a target that is none goes into a line, in bytes (VIO-13).
const targetShown = 200

// shownTarget is a target that could not be parsed, for a line: without user information and not at any length.
func shownTarget(s string) string {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		s = scheme + "://" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
	}
	if len(s) > targetShown {
		s = strings.ToValidUTF8(s[:targetShown], "")
	}
	return s
}

// normalizeTarget is [policy.NormalizeTarget].
func normalizeTarget(spelled string) (normalized string, ambiguous bool) {
	return policy.NormalizeTarget(spelled)
}
