package decider

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// ownHello is the frame that the proxy begins with (PRX-32).
func ownHello() []byte {
	return finishFrame(append(beginFrame(nil), `{"t":"hello","proto":1}`...))
}

// hosts are the two lists of the hello. They never change (PRX-32).
type hosts struct {
	allowed, denied hostList
	// addresses judges what names resolve to: the entries that are IP literals are its exemptions and denials (PRX-67).
	addresses policy.NetworkRules
}

// allows decides about a canonical host and a port (PRX-22).
func (h *hosts) allows(host config.Host, port uint16) bool {
	return !h.denied.matches(host, port) && h.allowed.matches(host, port)
}

// parseHello checks the decider's first message. nil: it is none (PRX-32).
func parseHello(v *value) *hosts {
	if !v.has("t", "hello") || len(v.keys) != 4 {
		return nil
	}
	if proto := v.member("proto"); proto == nil || !proto.isNumber(1) {
		return nil
	}
	h := &hosts{}
	var ok bool
	if h.allowed, h.addresses.AllowedDomains, ok = parseHosts(v.member("allowedDomains")); !ok {
		return nil
	}
	if h.denied, h.addresses.DeniedDomains, ok = parseHosts(v.member("deniedDomains")); !ok {
		return nil
	}
	return h
}

// has reports whether a key has a string as its value.
func (v *value) has(key, text string) bool {
	m := v.member(key)
	return m != nil && m.kind == kindString && m.text == text
}

func (v *value) isNumber(n uint64) bool {
	got, ok := v.integer()
	return ok && got == n
}

// hostList is a list of entries, by what they name. Its size does not count when it is asked.
type hostList struct {
	exact, below map[string][]uint16 // the ports; 0: every port
}

// parseHosts parses a list and returns its literals in the spelling of the settings file beside it.
func parseHosts(v *value) (list hostList, literals []string, ok bool) {
	if v == nil || v.kind != kindArray {
		return list, nil, false
	}
	list = hostList{exact: map[string][]uint16{}, below: map[string][]uint16{}}
	seen := make(map[string]struct{}, len(v.items))
	for i := range v.items {
		item := &v.items[i]
		if item.kind != kindString {
			return list, nil, false
		}
		if _, twice := seen[item.text]; twice {
			return list, nil, false
		}
		seen[item.text] = struct{}{}
		e, ok := parseEntry(item.text)
		if !ok {
			return list, nil, false
		}
		if e.wildcard {
			list.below[e.host.Name] = append(list.below[e.host.Name], e.port)
			continue
		}
		list.exact[e.host.Name] = append(list.exact[e.host.Name], e.port)
		if e.host.IsLiteral() || e.host.Name == "localhost" {
			literals = append(literals, e.setting())
		}
	}
	return list, literals, true
}

func (l *hostList) matches(h config.Host, port uint16) bool {
	if anyPort(l.exact[h.Name], port) {
		return true
	}
	if h.IsLiteral() {
		return false
	}
	for name := h.Name; ; {
		_, parent, more := strings.Cut(name, ".")
		if !more {
			return false
		}
		if anyPort(l.below[parent], port) {
			return true
		}
		name = parent
	}
}

func anyPort(ports []uint16, port uint16) bool {
	for _, p := range ports {
		if p == 0 || p == port {
			return true
		}
	}
	return false
}

// entry is one entry of a host list.
type entry struct {
	host     config.Host
	wildcard bool
	port     uint16 // 0: every port
}

// setting spells an exact entry as the settings file does.
func (e entry) setting() string {
	s := e.host.Name
	if e.host.Addr.Is6() {
		s = "[" + s + "]"
	}
	if e.port != 0 {
		s += ":" + strconv.Itoa(int(e.port))
	}
	return s
}

// parseEntry parses one entry (PRX-33): what has a second reading is refused, as a list that is read otherwise than it was
// meant lets through what it should not.
func parseEntry(s string) (entry, bool) {
	var e entry
	if addr, err := netip.ParseAddr(s); err == nil { // "::1:443" is an address
		return e.literal(addr)
	}
	host, port, hasPort := s, "", false
	if inner, bracketed := strings.CutPrefix(s, "["); bracketed {
		inner, rest, closed := strings.Cut(inner, "]")
		if port, hasPort = strings.CutPrefix(rest, ":"); !closed || !hasPort && rest != "" {
			return e, false
		}
		addr, err := netip.ParseAddr(inner)
		if err != nil || !addr.Is6() {
			return e, false
		}
		var ok bool
		if e, ok = e.literal(addr); !ok {
			return e, false
		}
	} else {
		host, port, hasPort = strings.Cut(s, ":")
	}
	if hasPort {
		var ok bool
		if e.port, ok = parsePort(port); !ok {
			return e, false
		}
	}
	if e.host.IsLiteral() {
		return e, true
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		return e.literal(addr)
	}
	name, wildcard := strings.CutPrefix(host, "*.")
	if !dnsName(name) || wildcard && !strings.Contains(name, ".") {
		return e, false
	}
	e.host, e.wildcard = config.Host{Name: name}, wildcard
	return e, true
}

// literal is an entry for an address, in the canonical form that targets have.
func (e entry) literal(addr netip.Addr) (entry, bool) {
	if addr.Zone() != "" {
		return e, false
	}
	addr = addr.Unmap()
	e.host = config.Host{Name: addr.String(), Addr: addr}
	return e, true
}

// dnsName reports whether s is a lower-case DNS name as PRX-33 has it. Its last label starts with a letter, so that no
// resolver takes it for an address.
func dnsName(s string) bool {
	if len(s) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if len(label) < 1 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !isDigit(c) && (c < 'a' || c > 'z') && c != '-' {
				return false
			}
		}
		last = label
	}
	return !isDigit(last[0])
}

// parsePort parses 1 to 65535 without a leading zero.
func parsePort(s string) (uint16, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}
