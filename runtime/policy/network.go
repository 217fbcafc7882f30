package policy

import (
	"fmt"
	"net/netip"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// The reasons of NET-39 that need no callback. They reach the client as a status phrase and the user in a violation
// line, so their text is part of the interface.
const (
	ReasonDenied      = "host is on the deny list"
	ReasonNotAllowed  = "host is not on the allow list"
	ReasonMalformed   = "malformed host"
	ReasonUnavailable = "sandbox policy unavailable"
)

// The lists of destinations, as places in the settings.
const (
	// RuleAllowedDomains is also the rule of a refusal where nothing allows a destination.
	RuleAllowedDomains = "network.allowedDomains"
	ruleDeniedDomains  = "network.deniedDomains"
)

// NetworkRules is what a settings file says about destinations: the keys of its network section with the same names.
// The zero value allows nothing.
type NetworkRules struct {
	// AllowedDomains and DeniedDomains hold entries as written: host, host:port, [v6] or [v6]:port (NET-10 to NET-12).
	AllowedDomains, DeniedDomains []string
	// DeniedDomainReasons maps the exact text of a DeniedDomains entry to the reason that is reported for it. A key that
	// is no entry has no effect (NET-74).
	DeniedDomainReasons map[string]string
	// StrictAllowlist ends the decision after the two lists: no per-command list and no callback may widen them.
	StrictAllowlist bool
	// DeniedResolvedAddresses holds literals and CIDR ranges that no allowed name may lead to (NET-56).
	DeniedResolvedAddresses []string
}

// Network decides about destinations (NET-7) and about the addresses that allowed names resolve to (NET-50 to NET-58).
//
// It is immutable and safe for concurrent use: a change of settings makes a new one. A nil *Network and the zero value
// refuse every destination with "sandbox policy unavailable".
type Network struct {
	ready           bool
	strict          bool
	allowed, denied domainList
	ranges          []netip.Prefix
}

// NewNetwork compiles rules. An entry that the grammar does not accept makes the whole set invalid (NET-12): the error
// names the list, the position and the entry, and wraps what package config says about it.
func NewNetwork(r NetworkRules) (*Network, error) {
	n := &Network{ready: true, strict: r.StrictAllowlist}
	var err error
	n.allowed, err = newDomainList(RuleAllowedDomains, r.AllowedDomains, config.DomainForm{Port: true})
	if err != nil {
		return nil, err
	}
	n.denied, err = newDomainList(ruleDeniedDomains, r.DeniedDomains, config.DomainForm{Port: true, Any: true})
	if err != nil {
		return nil, err
	}
	for i := range n.denied.rules {
		rule := &n.denied.rules[i]
		rule.reason = ReasonDenied
		// A reason of nothing but control characters would be reported as empty parentheses.
		if text := r.DeniedDomainReasons[rule.entry]; violation.Clean(text) != "" {
			rule.reason = text
		}
	}
	for i, entry := range r.DeniedResolvedAddresses {
		prefix, err := config.ParseAddressRange(entry)
		if err != nil {
			return nil, fmt.Errorf("network.deniedResolvedAddresses[%d]: %w", i, err)
		}
		n.ranges = append(n.ranges, prefix)
	}
	return n, nil
}

// Verdict is the answer to "may this destination be reached". The zero value refuses.
type Verdict struct {
	// Allowed is true if the destination may be dialled, subject to the check of resolved addresses.
	Allowed bool
	// Host is the canonical host (NET-8), to be used for everything that follows. It is the zero value if Malformed.
	Host config.Host
	// Reason says why not: a text of NET-39, or the text of deniedDomainReasons as written (not yet cleaned: a violation
	// line, a status phrase and an SSH message each clean it their own way). Empty when allowed.
	Reason string
	// Rule is the place in the settings that decided, for example "network.deniedDomains.2"; RuleAllowedDomains where that list
	// lacks an entry, and empty if the settings had no say. Entry is the entry at that place as written, empty if none decided.
	Rule, Entry string
	// Denied is true if a deniedDomains entry matched.
	Denied bool
	// Malformed is true if the host is none (NET-9).
	Malformed bool
}

// Decide answers for a host as the client spelled it, brackets included or not, and a port. It is steps 1 to 4 and 7 of
// NET-7: a caller that has a list for one command or a callback asks those after a refusal that is neither Denied nor
// Malformed, unless Strict.
func (n *Network) Decide(rawHost string, port uint16) Verdict {
	v, decided := n.deny(rawHost, port)
	if decided {
		return v
	}
	if rule := n.allowed.match(v.Host, port); rule != nil {
		v.Allowed, v.Rule, v.Entry = true, n.allowed.place(rule), rule.entry
		return v
	}
	v.Reason, v.Rule = ReasonNotAllowed, RuleAllowedDomains
	return v
}

// DenyOnly consults deniedDomains alone, for a client that cannot authenticate and can therefore never connect
// (NET-43). Its verdict is never Allowed; the Reason is empty if the host is well formed and no entry denies it.
func (n *Network) DenyOnly(rawHost string, port uint16) Verdict {
	v, _ := n.deny(rawHost, port)
	return v
}

// Strict tells whether nothing but the two lists may allow a destination (strictAllowlist). True for a nil or zero
// *Network.
func (n *Network) Strict() bool { return n == nil || !n.ready || n.strict }

// Possible tells whether the allow list could let a canonical host through on some port, and whether the deny list leaves it
// one: the first two lists of NET-7, without a port. A host that is only not denied is for whoever asks to be decided, by
// what else may allow it (a list for one command, a callback), and only unless Strict. A nil or zero *Network denies all.
func (n *Network) Possible(h config.Host) (allowed, undenied bool) {
	if n == nil || !n.ready || n.denied.matchesAllPorts(h) {
		return false, false
	}
	return n.allowed.some(h, func(port uint16) bool { return port == 0 || n.denied.match(h, port) == nil }), true
}

// deny is what comes before the allow list in NET-7; decided tells that the verdict stands.
func (n *Network) deny(rawHost string, port uint16) (v Verdict, decided bool) {
	host, err := config.CanonicalHost(rawHost)
	if err != nil {
		v.Malformed, v.Reason = true, ReasonMalformed
	} else {
		v.Host = host
	}
	if n == nil || !n.ready {
		v.Reason = ReasonUnavailable
		return v, true
	}
	if v.Malformed {
		return v, true
	}
	if rule := n.denies(host, port); rule != nil {
		v.Denied, v.Rule, v.Entry, v.Reason = true, n.denied.place(rule), rule.entry, rule.reason
		return v, true
	}
	return v, false
}
