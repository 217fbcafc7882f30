package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// RuleRequests is the setting of [RequestRules].
const RuleRequests = "network.requestRules"

// The reasons of verdicts that no rule gives one for.
const (
	reasonNoRule         = "no network.requestRules entry allows this request"
	reasonAmbiguousPath  = "ambiguous request-target: servers read it as different paths, which network.requestRules decides differently"
	reasonAmbiguousWords = "ambiguous method: servers read it as different methods, which network.requestRules decides differently"
)

// RequestRules is network.requestRules, compiled. It is immutable and safe for concurrent use. A nil one has no rules.
type RequestRules struct {
	rules []requestRule
}

type requestRule struct {
	hosts   []config.Domain
	methods []string // upper case; nil: every one
	paths   []pathPattern
	anyPath bool
	allow   bool
	place   string // "network.requestRules.3"
	reason  string
}

// RequestVerdict is what the rules say about one request. The zero value refuses.
type RequestVerdict struct {
	Allowed bool
	// Ambiguous is true if the request was refused because servers could read it in ways that are decided differently: it is
	// to be answered 400 rather than 403.
	Ambiguous bool
	// Rule is the place of the rule that refused, or [RuleRequests]; empty if the request is allowed.
	Rule string
	// Reason says why not: the reason of the rule as written (not yet cleaned), or one of srt's. Empty if the request is
	// allowed.
	Reason string
}

// NewRequestRules compiles rules that config has validated. An empty list gives nil. The error names the rule that is not
// valid.
func NewRequestRules(rules []config.RequestRule) (*RequestRules, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	compiled := &RequestRules{rules: make([]requestRule, len(rules))}
	for i := range rules {
		r, err := compileRequestRule(RuleRequests+"."+strconv.Itoa(i), &rules[i])
		if err != nil {
			return nil, err
		}
		compiled.rules[i] = r
	}
	return compiled, nil
}

func compileRequestRule(place string, from *config.RequestRule) (requestRule, error) {
	r := requestRule{place: place, reason: from.Reason, anyPath: from.Paths == nil}
	switch from.Action {
	case config.ActionAllow:
		r.allow = true
	case config.ActionDeny:
	default:
		return r, fmt.Errorf("%s.action: %q is neither %q nor %q", place, from.Action, config.ActionAllow, config.ActionDeny)
	}
	for i, entry := range from.Hosts {
		d, err := config.ParseDomain(entry, config.DomainForm{Port: true, Any: true})
		if err != nil {
			return r, fmt.Errorf("%s.hosts.%d: %w", place, i, err)
		}
		r.hosts = append(r.hosts, d)
	}
	for _, m := range from.Methods {
		r.methods = append(r.methods, strings.ToUpper(m))
	}
	for _, p := range from.Paths {
		r.paths = append(r.paths, compilePath(p))
	}
	if r.reason == "" {
		r.reason = place + " denies this request"
	}
	return r, nil
}

// names reports whether the rule is about a host and port.
func (r *requestRule) names(h config.Host, port uint16) bool {
	return slices.ContainsFunc(r.hosts, func(d config.Domain) bool { return d.Matches(h, port) })
}

func (r *requestRule) matches(method string, path reading) bool {
	return (r.methods == nil || slices.Contains(r.methods, method)) &&
		(r.anyPath || slices.ContainsFunc(r.paths, func(p pathPattern) bool { return p.matches(path) }))
}

// Names reports whether some rule is about a host and port. What goes there without srt being able to read it is to be
// refused.
func (r *RequestRules) Names(h config.Host, port uint16) bool {
	return r != nil && slices.ContainsFunc(r.rules, func(rule requestRule) bool { return rule.names(h, port) })
}

// NamesPaths reports whether some rule with paths is about a host and port. The target that goes there must mean one path
// to every server (REQ-7).
func (r *RequestRules) NamesPaths(h config.Host, port uint16) bool {
	return r != nil && slices.ContainsFunc(r.rules, func(rule requestRule) bool { return !rule.anyPath && rule.names(h, port) })
}

// Decide judges a request to an allowed host: by the first rule that matches, and without one by whether some rule that
// allows anything names the host. target is path and query as they go out; overrides are the values of header fields that
// tell some servers to take the request for one of another method. The request is allowed only if every way in which servers
// are known to read its path and its method is.
func (r *RequestRules) Decide(method string, h config.Host, port uint16, target string, overrides []string) RequestVerdict {
	named := r.about(h, port)
	if len(named) == 0 {
		return RequestVerdict{Allowed: true}
	}
	readings := []reading{{}}
	if slices.ContainsFunc(named, func(rule *requestRule) bool { return !rule.anyPath }) {
		var known bool
		if readings, known = readPath(target); !known {
			return RequestVerdict{Ambiguous: true, Rule: RuleRequests, Reason: reasonAmbiguousPath}
		}
	}
	first := judgeRequest(named, method, readings[0])
	for _, path := range readings[1:] {
		if judgeRequest(named, method, path).Allowed != first.Allowed {
			return RequestVerdict{Ambiguous: true, Rule: RuleRequests, Reason: reasonAmbiguousPath}
		}
	}
	if upper := strings.ToUpper(method); first.Allowed && upper != method {
		// To some servers "get" is GET.
		if !allAllowed(named, upper, readings) {
			return RequestVerdict{Ambiguous: true, Rule: RuleRequests, Reason: reasonAmbiguousWords}
		}
	}
	for _, other := range overrides {
		if !first.Allowed {
			break
		}
		for _, m := range []string{other, strings.ToUpper(other)} {
			if v := judgeRequest(named, m, readings[0]); !v.Allowed {
				return v
			}
			if !allAllowed(named, m, readings) {
				return RequestVerdict{Ambiguous: true, Rule: RuleRequests, Reason: reasonAmbiguousPath}
			}
		}
	}
	return first
}

// about is the rules about a host and port, in order.
func (r *RequestRules) about(h config.Host, port uint16) []*requestRule {
	if r == nil {
		return nil
	}
	var named []*requestRule
	for i := range r.rules {
		if r.rules[i].names(h, port) {
			named = append(named, &r.rules[i])
		}
	}
	return named
}

func allAllowed(named []*requestRule, method string, readings []reading) bool {
	for _, path := range readings {
		if !judgeRequest(named, method, path).Allowed {
			return false
		}
	}
	return true
}

// judgeRequest is the decision about one method and one reading of the path.
func judgeRequest(named []*requestRule, method string, path reading) RequestVerdict {
	someAllow := false
	for _, rule := range named {
		if rule.matches(method, path) {
			if rule.allow {
				return RequestVerdict{Allowed: true}
			}
			return RequestVerdict{Rule: rule.place, Reason: rule.reason}
		}
		someAllow = someAllow || rule.allow
	}
	if someAllow {
		return RequestVerdict{Rule: RuleRequests, Reason: reasonNoRule}
	}
	return RequestVerdict{Allowed: true}
}
