package proxy

import (
	"strings"
	"unicode/utf8"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// judgeTarget applies the rules about targets and methods that hold with a filter (NET-35, NET-36), on a target that was
// parsed and whose host is allowed. After it e.target.path is what goes out.
func (c *client) judgeTarget(e *exchange) (answer, bool) {
	if c.filtering.Filter == nil {
		return answer{}, false
	}
	if !utf8.ValidString(e.req.Target) {
		return c.refuseTarget(e, reasonEncodeTarget), true
	}
	e.spelled = e.target.path
	e.normalized, e.ambiguous = normalizeTarget(e.spelled)
	switch {
	case c.filtering.AmbiguousRequestTarget == config.TargetNormalize:
		e.target.path = e.normalized
	case e.ambiguous && c.filtering.AmbiguousRequestTarget != config.TargetAsSpelled:
		c.reportRequest(e, "network.ambiguousRequestTarget", reasonAmbiguousTarget)
		return ambiguousTarget(), true
	}
	return answer{}, false
}

// judgeMethod refuses the methods that echo a request, which would show the client what the filter has added (NET-36).
func (c *client) judgeMethod(e *exchange) (answer, bool) {
	if m := e.req.Method; c.filtering.Filter != nil && (m == "TRACE" || m == "TRACK") {
		reason := "the " + m + " method is not forwarded"
		c.reportRequest(e, "", reason)
		return methodNotForwarded(reason), true
	}
	return answer{}, false
}

// refuseTarget answers a target that is none. Only with a filter is that said and recorded (NET-36, NET-73).
func (c *client) refuseTarget(e *exchange, reason string) answer {
	e.keep = false
	if c.filtering.Filter == nil {
		return answer400
	}
	c.report(violation.HTTPRequest, violation.Request(e.req.Method, shownTarget(e.req.Target)), policy.Verdict{Reason: reason}, c.key)
	return malformedTarget(reason)
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

// normalizeTarget returns the normalized form of path and query, and whether it names another path than the spelled one
// (NET-35, REQ-6, REQ-7). "*" is its own normalized form.
func normalizeTarget(spelled string) (normalized string, ambiguous bool) {
	if !strings.HasPrefix(spelled, "/") {
		return spelled, false
	}
	path, query, _ := strings.Cut(spelled, "?")
	normalized = escape(normalizePath(path), "\"<>`{}")
	compared := path
	if query != "" {
		normalized += "?" + escape(query, "\"<>'")
		compared += "?" + query
	}
	const escaped = "\"'<>^`{}"
	return normalized, escape(compared, escaped) != escape(normalized, escaped)
}

// normalizePath removes dot segments as the URL Standard does (section 4.4, path state), takes '\' for '/', and makes one
// of several leading slashes.
func normalizePath(path string) string {
	var kept []string
	segments := strings.Split(strings.ReplaceAll(path[1:], `\`, "/"), "/")
	for i, s := range segments {
		dots := dotSegment(s)
		switch {
		case dots == 0:
			kept = append(kept, s)
			continue
		case dots == 2 && len(kept) > 0:
			kept = kept[:len(kept)-1]
		}
		if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.TrimLeft(strings.Join(kept, "/"), "/")
}

// dotSegment is 1 for "." and 2 for "..", each dot possibly percent-encoded, and 0 for every other segment.
func dotSegment(s string) int {
	dots := 0
	for s != "" {
		switch {
		case s[0] == '.':
			s = s[1:]
		case len(s) >= 3 && strings.EqualFold(s[:3], "%2e"):
			s = s[3:]
		default:
			return 0
		}
		if dots++; dots > 2 {
			return 0
		}
	}
	return dots
}

// escape percent-encodes the bytes of a set and everything outside ASCII.
func escape(s, set string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || strings.ContainsRune(set, r) }) < 0 {
		return s
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || strings.IndexByte(set, c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
