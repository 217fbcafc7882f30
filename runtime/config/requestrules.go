package config

import (
	"slices"
	"strings"
)

// RequestRule is an entry of network.requestRules: whether some requests to some hosts go on. The entries are tried in
// order, and the first that matches decides.
type RequestRule struct {
	Hosts   []string // required, at least one; domain entries with an optional port, and "*"
	Methods []string // tokens, compared in upper case; nil: every method. Never empty
	Paths   []string // patterns of the path, without query, each starting with "/"; nil: every path. Never empty
	Action  string   // required; ActionAllow or ActionDeny
	Reason  string   // what the client and the user are told of a refusal; empty: the place of the rule
}

// Values of RequestRule.Action.
const (
	ActionAllow = "allow"
	ActionDeny  = "deny"
)

// Bounds of a rule, so that what a request costs to judge is bounded.
const (
	maxPathPattern  = 1024 // bytes
	maxRequestRules = 1000
)

func requestRuleNode() node[RequestRule] {
	return object(strict, []field[RequestRule]{
		required("hosts", func(r *RequestRule) *[]string { return &r.Hosts }, domains(DomainForm{Port: true, Any: true}, atLeastOne)),
		optional("methods", func(r *RequestRule) *[]string { return &r.Methods }, list(text(methodName), atLeastOne)),
		optional("paths", func(r *RequestRule) *[]string { return &r.Paths }, list(text(pathPattern), atLeastOne)),
		required("action", func(r *RequestRule) *string { return &r.Action }, enum(ActionAllow, ActionDeny)),
		optional("reason", func(r *RequestRule) *string { return &r.Reason }, text(nonEmpty)),
	})
}

func atMostRequestRules(n int) string {
	if n > maxRequestRules {
		return "Array must contain at most " + decimal(maxRequestRules) + " element(s)"
	}
	return ""
}

// methodName is a token (RFC 9110 section 5.6.2).
func methodName(s string) string {
	ok := s != ""
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		ok = ok && (letter || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0)
	}
	switch {
	case s == "*":
		return `Invalid method "*": leave methods out to mean every method`
	case !ok:
		return "Invalid method " + quoteEntry(s) + `: write one method, such as "GET"`
	}
	return ""
}

// pathPattern refuses patterns that no normalized path can match: a deny that denies nothing must not look like one that
// does.
func pathPattern(s string) string {
	why := ""
	switch {
	case !strings.HasPrefix(s, "/"):
		why = `it must start with "/"`
	case len(s) > maxPathPattern:
		why = "it is longer than " + decimal(maxPathPattern) + " bytes"
	case strings.ContainsAny(s, "#"):
		why = `it holds "#", which is never sent`
	case strings.Contains(s, `\`):
		why = `it holds "\", which paths do not have; write "/"`
	case strings.Contains(s, "//"):
		why = `it holds "//", and what servers make of it differs; write "/"`
	case strings.Contains(s, "***"):
		why = `it holds "***"; write "*" for a part of a segment, or "**" for any text`
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		why = "it holds a control character or is not UTF-8"
	case !escapesWhole(s):
		why = `it holds a "%" that two hexadecimal digits do not follow`
	case slices.ContainsFunc(strings.Split(s, "/"), dotsAlone):
		why = `it has a segment "." or "..", which normalized paths do not have`
	}
	if why == "" {
		return ""
	}
	return "Invalid path pattern " + quoteEntry(s) + ": " + why + `; patterns are like "/repos/x/*" or "/repos/**", and the query is no part of them`
}

// escapesWhole reports whether two hexadecimal digits follow every percent sign.
func escapesWhole(s string) bool {
	for i := range len(s) {
		if s[i] == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// dotsAlone reports whether a segment is "." or "..", each dot possibly percent-encoded.
func dotsAlone(segment string) bool {
	plain := strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".")
	return plain == "." || plain == ".."
}

// readableRequests checks that the requests which rules judge can be read: not where another program has the proxy, and not
// at hosts whose TLS stays closed.
func readableRequests(w *walk, path string, n *Network) {
	if len(n.RequestRules) == 0 {
		return
	}
	at := join(path, "requestRules")
	if n.HTTPProxyPort != 0 {
		w.fail(at, "network.requestRules and network.httpProxyPort are mutually exclusive: the proxy on that port is not srt's, so srt "+
			"sees no request to judge")
	}
	if n.TLSTerminate == nil {
		return
	}
	excluded := parsedDomains(n.TLSTerminate.ExcludeDomains, DomainForm{})
	for i := range n.RequestRules {
		for j, host := range parsedDomains(n.RequestRules[i].Hosts, DomainForm{Port: true, Any: true}) {
			if covered(host, excluded) {
				w.fail(at+"."+decimal(i)+".hosts."+decimal(j), quoteEntry(host.Text)+" is excluded from TLS termination by "+
					"network.tlsTerminate.excludeDomains, so requests to it could not be judged and every tunnel to it would be refused; "+
					"remove it from one of the two")
			}
		}
	}
}

func (r RequestRule) clone() RequestRule {
	r.Hosts = slices.Clone(r.Hosts)
	r.Methods = slices.Clone(r.Methods)
	r.Paths = slices.Clone(r.Paths)
	return r
}
