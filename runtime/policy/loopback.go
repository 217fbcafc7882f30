package policy

import (
	"net/netip"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// localhost is the name of loopback (RFC 6761 section 6.3).
const localhost = "localhost"

// isLocalhost tells whether a host is localhost or a name beneath it (NET-57).
func isLocalhost(h config.Host) bool {
	return h.Name == localhost || strings.HasSuffix(h.Name, "."+localhost)
}

// IsLoopback tells whether a canonical host is an address of loopback, localhost or a name beneath it.
func IsLoopback(h config.Host) bool { return isLocalhost(h) || h.Addr.IsLoopback() }

// localhostAddrs are the addresses that localhost, and every name beneath it, stands for.
func localhostAddrs() [2]netip.Addr {
	return [2]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// isLocalhostAddr tells whether localhost stands for an address.
func isLocalhostAddr(a netip.Addr) bool {
	all := localhostAddrs()
	return a == all[0] || a == all[1]
}

// ofLocalhost tells whether a host is localhost, a name beneath it or one of its addresses.
func ofLocalhost(h config.Host) bool { return isLocalhost(h) || isLocalhostAddr(h.Addr) }

// literal is an address as a host.
func literal(a netip.Addr) config.Host { return config.Host{Name: a.String(), Addr: a} }

// alike are the hosts whose entries may bear on one: itself, and for localhost its other spellings.
func alike(h config.Host) []config.Host {
	list := []config.Host{h}
	if ofLocalhost(h) {
		list = append(list, config.Host{Name: localhost})
		for _, a := range localhostAddrs() {
			list = append(list, literal(a))
		}
	}
	return list
}

// Loopback decides whether a connection that a program makes to a loopback address without asking a proxy may be one to the
// host. By the address alone nobody can tell how the program spelled it. So an entry for that address counts, and for
// 127.0.0.1 and ::1 one for localhost or for a name beneath it counts as well; a deniedDomains entry for the address or for
// localhost comes first. A wildcard over names beneath localhost does not count, since it says of none that it is meant.
//
// Host in the verdict is the host of the entry that allows: the address itself, or the name, by which the connection is to
// be routed (mitmProxy.domains). Every address that is not of loopback is refused. No callback is ever asked: a program that
// tries a port of its own sandbox is no question for a person.
func (n *Network) Loopback(dst netip.AddrPort) Verdict {
	addr := dst.Addr().Unmap().WithZone("")
	if !addr.IsLoopback() {
		return Verdict{Rule: RuleAllowedDomains, Reason: ReasonNotAllowed}
	}
	v := n.Decide(addr.String(), dst.Port())
	if v.Allowed || v.Denied || n == nil || !n.ready || !isLocalhostAddr(addr) {
		return v
	}
	if rule := n.allowed.localhost(dst.Port(), n); rule != nil {
		return Verdict{Allowed: true, Host: rule.domain.Host, Rule: n.allowed.place(rule), Entry: rule.entry}
	}
	return v
}

// Loopback is [Network.Loopback] for the list of a command, as Allows is for Decide: whoever asks has had a verdict of that
// which is a refusal, not Denied, of a policy n that is not Strict. host is that of the entry.
func (c *CommandLists) Loopback(key string, dst netip.AddrPort, n *Network) (host config.Host, entry string, ok bool) {
	addr := dst.Addr().Unmap().WithZone("")
	if !addr.IsLoopback() {
		return host, "", false
	}
	if entry, ok = c.Allows(key, literal(addr), dst.Port()); ok {
		return literal(addr), entry, true
	}
	if c == nil || key == "" || !isLocalhostAddr(addr) {
		return host, "", false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := c.lists[commandKey(key)]
	if list == nil {
		return host, "", false
	}
	rule := list.localhost(dst.Port(), n)
	if rule == nil {
		return host, "", false
	}
	return rule.domain.Host, rule.entry, true
}

// LoopbackUnless gives the addresses at which nothing in a sandbox may listen if a connection that Loopback allows as a host
// is to leave it: a server inside comes first. A program that looks for localhost tries both of its addresses, and must not
// meet the host's server at one when its own is at the other.
func LoopbackUnless(dst netip.AddrPort, as config.Host) []netip.AddrPort {
	if as.IsLiteral() {
		return []netip.AddrPort{netip.AddrPortFrom(dst.Addr().Unmap().WithZone(""), dst.Port())}
	}
	var list []netip.AddrPort
	for _, a := range localhostAddrs() {
		list = append(list, netip.AddrPortFrom(a, dst.Port()))
	}
	return list
}

// DecideDirect answers as Decide does for a program that connects by itself, without asking a proxy: the spellings of
// localhost count for each other, as Loopback says. It is the truth only where connections of programs are captured, and
// about a port at which nothing in the sandbox listens.
func (n *Network) DecideDirect(rawHost string, port uint16) Verdict {
	v := n.Decide(rawHost, port)
	addrs := localhostAddrs()
	tries := addrs[:]
	switch {
	case v.Denied || v.Malformed || n == nil || !n.ready:
		return v
	case v.Host.IsLiteral():
		tries = []netip.Addr{v.Host.Addr}
	case !isLocalhost(v.Host):
		return v
	}
	if !tries[0].IsLoopback() {
		return v
	}
	best, denied := v, 0
	for _, addr := range tries {
		x := n.Loopback(netip.AddrPortFrom(addr, port))
		x.Host = v.Host
		switch {
		case x.Allowed && !v.Allowed:
			return x
		case x.Denied:
			best, denied = x, denied+1
		}
	}
	if denied == len(tries) || !v.Allowed {
		return best
	}
	return v
}

// denies finds the deniedDomains entry that denies a host on a port, nil if none does. An entry for localhost is one for its
// addresses as well: where only the address is seen, as of a connection that is captured, it must not be void.
func (n *Network) denies(h config.Host, port uint16) *domainRule {
	rule := n.denied.match(h, port)
	if rule == nil && isLocalhostAddr(h.Addr) {
		rule = n.denied.match(config.Host{Name: localhost}, port)
	}
	return rule
}

// hasLocalhost tells whether the list names localhost with a port, and an address is one that it stands for.
func (l *domainList) hasLocalhost(addr netip.Addr, port uint16) bool {
	if !isLocalhostAddr(addr) {
		return false
	}
	for _, i := range l.exact[localhost] {
		if l.rules[i].domain.Matches(config.Host{Name: localhost}, port) {
			return true
		}
	}
	return false
}

// localhost is the first entry for localhost, or else for a name beneath it, on a port, that n does not deny.
func (l *domainList) localhost(port uint16, n *Network) *domainRule {
	for _, i := range l.local {
		rule := &l.rules[i]
		if rule.domain.Matches(rule.domain.Host, port) && n.denied.match(rule.domain.Host, port) == nil {
			return rule
		}
	}
	return nil
}
