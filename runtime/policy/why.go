package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// PortVerdict is what Decide says about a host on a port.
type PortVerdict struct {
	Port uint16 // 0 stands for every port that has no verdict of its own
	Verdict
}

// DecidePorts is Decide for every port: the first element is about all ports but those that follow, in ascending order, of
// which the lists make something else. It is never empty.
func (n *Network) DecidePorts(rawHost string) []PortVerdict {
	return n.eachPort(rawHost, n.Decide)
}

// DecideDirectPorts is DecidePorts of DecideDirect.
func (n *Network) DecideDirectPorts(rawHost string) []PortVerdict {
	return n.eachPort(rawHost, n.DecideDirect)
}

// eachPort asks for a verdict about every port that an entry names for a host, or for what the host stands for, and about
// the rest.
func (n *Network) eachPort(rawHost string, decide func(string, uint16) Verdict) []PortVerdict {
	var ports []uint16
	if host, err := config.CanonicalHost(rawHost); err == nil && n != nil {
		for _, h := range alike(host) {
			ports = append(append(ports, n.denied.ports(h)...), n.allowed.ports(h)...)
		}
		for _, i := range n.allowed.local {
			if port := n.allowed.rules[i].domain.Port; port != 0 && ofLocalhost(host) {
				ports = append(ports, port)
			}
		}
		slices.Sort(ports)
		ports = slices.Compact(ports)
	}
	other := Verdict{}
	rest := otherPort(ports)
	if rest != 0 {
		other = decide(rawHost, rest)
	}
	list := []PortVerdict{{0, other}}
	for _, port := range ports {
		v := decide(rawHost, port)
		if rest == 0 || v.Allowed != other.Allowed || v.Rule != other.Rule {
			list = append(list, PortVerdict{port, v})
		}
	}
	return list
}

// ports are the ports that entries of the list name for a host.
func (l *domainList) ports(h config.Host) (list []uint16) {
	l.about(h, func(i int) bool {
		if d := &l.rules[i].domain; d.Port != 0 && d.Matches(h, d.Port) {
			list = append(list, d.Port)
		}
		return true
	})
	return list
}

// otherPort is the lowest port that is not in an ascending list, 0 if all are.
func otherPort(ports []uint16) uint16 {
	next := 1
	for _, p := range ports {
		if int(p) != next {
			break
		}
		next++
	}
	if next > 65535 {
		return 0
	}
	return uint16(next) // #nosec G115 -- at most 65535
}

// PortsText says in words on which ports a destination can be reached: "every port but 22", "port 443", "no port".
func PortsText(list []PortVerdict) string {
	var allowed, denied []string
	for _, v := range list {
		switch {
		case v.Port == 0:
		case v.Allowed:
			allowed = append(allowed, strconv.Itoa(int(v.Port)))
		default:
			denied = append(denied, strconv.Itoa(int(v.Port)))
		}
	}
	switch rest := len(list) > 0 && list[0].Port == 0 && list[0].Allowed; {
	case rest && len(denied) == 0:
		return "every port"
	case rest:
		return "every port but " + strings.Join(denied, ", ")
	case len(allowed) == 0:
		return "no port"
	case len(allowed) == 1:
		return "port " + allowed[0]
	}
	return "ports " + strings.Join(allowed, ", ")
}

// AddressesText says what is left to decide about an allowed host when it is dialled, or "" for a literal address, which the
// lists have decided: which addresses a name may not lead to cannot be known before it is looked up (NET-50 to NET-58).
func (n *Network) AddressesText(h config.Host) string {
	if n == nil || h.IsLiteral() || h.Name == "" {
		return ""
	}
	if isLocalhost(h) {
		return "when it is dialled it must lead to loopback addresses"
	}
	text := "when it is dialled, none of its addresses may be of this host, loopback, link-local, multicast or of a cloud's metadata service"
	if len(n.ranges) > 0 {
		var list []string
		for _, r := range n.ranges {
			list = append(list, r.String())
		}
		text += ", or in network.deniedResolvedAddresses (" + strings.Join(list, ", ") + ")"
	}
	return text + ", unless network.allowedDomains lists that address itself"
}

// SocketRule finds the entry that allows a socket of the host by its location: the first whose path it is or lies beneath
// (NET-80). The paths of rules must be free of links, as location is. nil: none does.
func SocketRule(rules []PathRule, location string) *PathRule {
	for i := range rules {
		if SocketAllowed([]string{rules[i].Path}, location) {
			return &rules[i]
		}
	}
	return nil
}

// SplitHostPort takes apart what a person writes for a destination: host, host:port, [v6] or [v6]:port, a bare IPv6 address
// too. Port 0 stands for none. The host is not checked: Decide does that.
func SplitHostPort(text string) (host string, port uint16, err error) {
	host, rest := text, ""
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", 0, fmt.Errorf("%q has no closing bracket; write an IPv6 address with a port as [::1]:443", text)
		}
		host, rest = text[:end+1], text[end+1:]
	} else if i := strings.LastIndexByte(text, ':'); i >= 0 && strings.IndexByte(text, ':') == i {
		host, rest = text[:i], text[i:]
	}
	if rest == "" {
		return host, 0, nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(rest, ":"), 10, 16)
	if err != nil || rest[0] != ':' || n == 0 {
		return "", 0, fmt.Errorf("%q is no port; write host:port with a port from 1 to 65535, or the host alone", strings.TrimPrefix(rest, ":"))
	}
	return host, uint16(n), nil
}
