package config

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ErrInvalidDomain is the class of every error of [ParseDomain].
var ErrInvalidDomain = errors.New("invalid domain pattern")

// Domain is one parsed entry of a domain list (CFG-41 to CFG-49). The zero value matches nothing. A Domain is a plain
// value and may be shared between goroutines.
type Domain struct {
	Text     string // the entry as written
	Any      bool   // "*": every host; Wildcard is false and Host is zero
	Wildcard bool   // "*." + Host.Name: every strict subdomain
	Host     Host   // the host, or for a wildcard the name below the star
	Port     uint16 // 0: every port
}

// DomainForm says what a list takes beyond a plain host pattern. The zero value is the host-only lists:
// mitmProxy.domains, tlsTerminate.excludeDomains, injectHosts (CFG-41).
type DomainForm struct {
	Port bool // ":port" may follow, and IPv6 must be bracketed (allowedDomains, deniedDomains; CFG-43)
	Any  bool // a lone "*" is taken (deniedDomains; CFG-47)
}

// ParseDomain parses an entry of a domain list (CFG-41 to CFG-49, NET-10 to NET-12). A name with characters beyond
// ASCII becomes its xn-- form (UTS 46, non-transitional). Errors match [ErrInvalidDomain] with errors.Is and are
// *[EntryError].
func ParseDomain(entry string, form DomainForm) (Domain, error) {
	host, port, why := splitPort(entry, form)
	d := Domain{Text: entry, Port: port}
	if why == "" {
		why = d.setHost(host, form)
	}
	if why != "" {
		return Domain{}, &EntryError{Kind: ErrInvalidDomain, Entry: entry, Reason: why + "; " + form.expectation()}
	}
	return d, nil
}

// expectation is the second half of every message about a domain entry (CFG-47).
func (f DomainForm) expectation() string {
	s := `it must be a domain ("example.com"), a "*." wildcard ("*.example.com") or a bracketed IPv6 literal ("[::1]")`
	if f.Port {
		s += `, optionally followed by ":" and a port (1-65535)`
	}
	s += `; overly broad patterns such as "*.com"`
	if !f.Any {
		s += ` or "*"`
	}
	return s + " are not allowed"
}

// splitPort parts an entry into its host, brackets kept, and its port. why is empty when both are well-formed.
func splitPort(entry string, form DomainForm) (host string, port uint16, why string) {
	switch {
	case entry == "":
		return "", 0, "it is empty"
	case strings.Contains(entry, "/"):
		return "", 0, `it holds a "/" (an entry is a host, not a URL)`
	}
	rest := ""
	if entry[0] == '[' {
		end := strings.IndexByte(entry, ']')
		if end < 0 {
			return "", 0, `its "[" is not closed`
		}
		host, rest = entry[:end+1], entry[end+1:]
		if rest != "" && rest[0] != ':' {
			return "", 0, `text other than a port follows "]"`
		}
	} else if colons := strings.Count(entry, ":"); !form.Port && colons != 1 {
		return entry, 0, "" // CFG-43: a name or a bare IPv6 literal
	} else if colons > 1 {
		return "", 0, "it has several colons without brackets round the address"
	} else if colons == 1 {
		at := strings.IndexByte(entry, ':')
		host, rest = entry[:at], entry[at:]
	} else {
		host = entry
	}
	if rest == "" {
		return host, 0, ""
	}
	if !form.Port {
		return "", 0, "this list takes no ports"
	}
	port, ok := parsePort(rest[1:])
	if !ok {
		return "", 0, "its port is not a number from 1 to 65535 without a leading zero"
	}
	return host, port, ""
}

// parsePort parses digits without a leading zero from 1 to 65535 (CFG-42).
func parsePort(s string) (uint16, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}

// setHost fills in everything of d but text and port. It returns why host is no host pattern, or "".
func (d *Domain) setHost(host string, form DomainForm) (why string) {
	switch {
	case host == "*":
		if !form.Any {
			return "it is too broad"
		}
		d.Any = true
		return ""
	case strings.HasPrefix(host, "*."):
		d.Wildcard = true
		d.Host, why = entryName(host[2:])
		switch {
		case why == noDot:
			why = `what follows "*." has no dot, so it would stand for a whole top-level domain`
		case why == "" && d.Host.IsLiteral():
			why = "a wildcard cannot stand over an address"
		}
	case strings.HasPrefix(host, "["):
		d.Host, why = entryExact(host[1 : len(host)-1])
	default:
		d.Host, why = entryExact(host)
	}
	return why
}

// entryExact parses an entry without wildcard, port or brackets.
func entryExact(s string) (Host, string) {
	if strings.IndexByte(s, ':') >= 0 {
		addr, ok := parseZonedAddr(s)
		if !ok || !addr.Is6() {
			return Host{}, "it is not an IPv6 address"
		}
		return literalHost(addr), ""
	}
	if s == "localhost" {
		return Host{Name: s}, ""
	}
	return entryName(s)
}

// noDot is why a name of one label is no entry.
const noDot = "it has no dot and so is a whole top-level domain or an incomplete name"

// entryName parses a name of at least two labels or an IPv4 literal (CFG-45, CFG-46, CFG-49).
func entryName(s string) (Host, string) {
	if strings.IndexByte(s, '*') >= 0 {
		return Host{}, `a "*" may only be its first label`
	}
	ascii, err := asciiName(s)
	if err != nil {
		return Host{}, "it cannot be converted to an ASCII name (IDNA)"
	}
	if len(ascii) > maxHostBytes {
		return Host{}, "it is longer than 255 bytes"
	}
	if strings.IndexByte(ascii, '.') < 0 {
		return Host{}, noDot
	}
	h, err := canonicalName(ascii)
	var bad *HostError
	if errors.As(err, &bad) {
		return Host{}, bad.Reason
	}
	return h, ""
}

var errNotUTF8 = errors.New("not UTF-8")

// asciiName converts a name to ASCII. Names already in ASCII skip the conversion, whose tables the start of a command
// should not have to touch.
func asciiName(s string) (string, error) {
	for i := range len(s) {
		if s[i] >= 0x80 {
			if !utf8.ValidString(s) {
				return "", errNotUTF8
			}
			return lookupProfile().ToASCII(s)
		}
	}
	return s, nil
}

// lookupProfile is UTS 46 processing as the URL Standard's "domain to ASCII" sets it for lookups. Which ASCII bytes a
// label may hold is decided afterwards, alike for all names.
var lookupProfile = sync.OnceValue(func() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
		idna.CheckHyphens(false), idna.CheckJoiners(true), idna.BidiRule())
})

// Matches reports whether the entry applies to a host on a port (CFG-50, NET-10). A wildcard matches strict subdomains
// at any depth, never the name itself and never a literal. h must come from [CanonicalHost].
func (d Domain) Matches(h Host, port uint16) bool {
	if d.Port != 0 && d.Port != port {
		return false
	}
	switch {
	case d.Any:
		return true
	case d.Host.Name == "" || h.Name == "":
		return false
	case d.Wildcard:
		return !h.IsLiteral() && below(h.Name, d.Host.Name)
	}
	return d.Host.Name == h.Name
}

// Covers reports whether the entry applies to every host that other applies to, ports ignored (CFG-72): an exact host
// is covered by an equal entry or a wildcard above it, a wildcard only by an equal wildcard or one above it.
func (d Domain) Covers(other Domain) bool {
	switch {
	case d.Any:
		return true
	case other.Any || d.Host.Name == "" || other.Host.Name == "":
		return false
	case !d.Wildcard:
		return !other.Wildcard && d.Host.Name == other.Host.Name
	case other.Wildcard && d.Host.Name == other.Host.Name:
		return true
	}
	return !other.Host.IsLiteral() && below(other.Host.Name, d.Host.Name)
}

// below reports whether name is a strict subdomain of parent.
func below(name, parent string) bool {
	n := len(name) - len(parent)
	return n > 1 && name[n-1] == '.' && name[n:] == parent
}
