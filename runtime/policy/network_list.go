package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// domainRule is one entry of a list.
type domainRule struct {
	domain config.Domain
	entry  string // as written
	reason string // deny entries only: the text for the refusal
	index  int    // position in its list
}

// domainList is a list of entries that is asked by host. Block lists run to tens of thousands of entries, so the entries
// that may match are found by name; whether one does is for config.Domain to say. The zero value is an empty list.
type domainList struct {
	path  string // place of the list in the settings
	rules []domainRule
	exact map[string][]int // by host: the entries for just this host, in their order
	below map[string][]int // by name: the wildcards over it, in their order
	any   []int            // the entries for every host, in their order
	local []int            // the entries for localhost and, after those, for names beneath it; no wildcards
}

// newDomainList compiles entries; path is the key of the list in a settings file, for the error.
func newDomainList(path string, entries []string, form config.DomainForm) (domainList, error) {
	l := domainList{
		path:  path,
		rules: make([]domainRule, 0, len(entries)),
		exact: make(map[string][]int, len(entries)),
		below: map[string][]int{},
	}
	for i, entry := range entries {
		domain, err := config.ParseDomain(entry, form)
		if err != nil {
			return domainList{}, fmt.Errorf("%s[%d]: %w", path, i, err)
		}
		l.rules = append(l.rules, domainRule{domain: domain, entry: entry, index: i})
		switch name := domain.Host.Name; {
		case domain.Any:
			l.any = append(l.any, i)
		case domain.Wildcard:
			l.below[name] = append(l.below[name], i)
		default:
			l.exact[name] = append(l.exact[name], i)
			if name != localhost && isLocalhost(domain.Host) {
				l.local = append(l.local, i)
			}
		}
	}
	l.local = append(slices.Clone(l.exact[localhost]), l.local...)
	return l, nil
}

// place is where an entry of the list stands in the settings.
func (l *domainList) place(r *domainRule) string { return l.path + "." + strconv.Itoa(r.index) }

// match returns the first entry of the list that applies to a host and port, nil if none does.
func (l *domainList) match(h config.Host, port uint16) *domainRule {
	first := len(l.rules)
	l.about(h, func(i int) bool {
		if i < first && l.rules[i].domain.Matches(h, port) {
			first = i
		}
		return true
	})
	if first == len(l.rules) {
		return nil
	}
	return &l.rules[first]
}

// some tells whether an entry applies to a host on a port that is wanted; the port of an entry for all of them is 0.
func (l *domainList) some(h config.Host, wanted func(port uint16) bool) (found bool) {
	l.about(h, func(i int) bool {
		d := &l.rules[i].domain
		found = d.Matches(h, d.Port) && wanted(d.Port)
		return !found
	})
	return found
}

// matchesAllPorts tells whether an entry applies to a host whatever the port.
func (l *domainList) matchesAllPorts(h config.Host) bool {
	return l.some(h, func(port uint16) bool { return port == 0 })
}

// about calls visit with the index of every entry that may apply to a host, in no order, until it returns false.
func (l *domainList) about(h config.Host, visit func(i int) bool) {
	all := func(indexes []int) bool {
		for _, i := range indexes {
			if !visit(i) {
				return false
			}
		}
		return true
	}
	if !all(l.exact[h.Name]) {
		return
	}
	for rest, found := h.Name, len(l.below) > 0; found; {
		if _, rest, found = strings.Cut(rest, "."); found && !all(l.below[rest]) {
			return
		}
	}
	all(l.any)
}

// hasLiteral tells whether the list names an address with a port, as such: an entry for every host does not count.
func (l *domainList) hasLiteral(addr netip.Addr, port uint16) bool {
	h := config.Host{Name: addr.String(), Addr: addr}
	for _, i := range l.exact[h.Name] {
		if l.rules[i].domain.Matches(h, port) {
			return true
		}
	}
	return false
}
