package decider

import (
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
)

// destination is where a request goes.
type destination struct {
	spelled string // the host as in the request line, brackets included
	host    config.Host
	port    uint16
	tls     bool
	target  string // origin form, as spelled; empty for CONNECT
}

// parseConnect parses the target of CONNECT: host:port, IPv6 in brackets (PRX-20, PRX-21).
func parseConnect(s string) (destination, bool) {
	host, port, ok := cutPort(s)
	d := destination{tls: true}
	if !ok || port == "" || !d.setHost(host) {
		return d, false
	}
	d.port, ok = parsePort(port)
	return d, ok
}

// parseAbsolute parses an absolute http or https URI (PRX-20, PRX-21). The target is not judged.
func parseAbsolute(s string) (destination, bool) {
	var d destination
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		return d, false
	case httphead.EqualFold(scheme, "http"):
	case httphead.EqualFold(scheme, "https"):
		d.tls = true
	default:
		return d, false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, port, ok := cutPort(rest[:end])
	if !ok || !d.setHost(host) {
		return d, false
	}
	d.port = d.defaultPort()
	if port != "" {
		if d.port, ok = parsePort(port); !ok {
			return d, false
		}
	}
	if d.target = rest[end:]; !strings.HasPrefix(d.target, "/") && !strings.HasPrefix(d.target, "#") {
		d.target = "/" + d.target
	}
	return d, true
}

// cutPort parts "host:port", "[v6]:port" or either without a port. A colon without a port after it is refused.
func cutPort(s string) (host, port string, ok bool) {
	rest := s
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']') + 1
		host, rest = s[:i], s[i:]
		if i == 0 || rest != "" && rest[0] != ':' {
			return "", "", false
		}
	}
	before, port, colon := strings.Cut(rest, ":")
	return host + before, port, !colon || port != ""
}

// setHost takes a host in plain ASCII (PRX-21) and canonicalises it (PRX-22).
func (d *destination) setHost(s string) bool {
	if !strings.HasPrefix(s, "[") {
		for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
			if !plainLabel(label) {
				return false
			}
		}
	}
	host, err := config.CanonicalHost(s)
	d.spelled, d.host = s, host
	return err == nil
}

func plainLabel(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return s != ""
}

func (d destination) defaultPort() uint16 {
	if d.tls {
		return 443
	}
	return 80
}

// validTarget reports whether an origin form can be forwarded as spelled without being read otherwise by the server
// (PRX-23): it starts with one slash, and what ends or splits a target in other parsers is not in it.
func validTarget(s string) bool {
	if s == "" || s[0] != '/' || len(s) > 1 && (s[1] == '/' || s[1] == '\\') {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// namedBy reports whether a Host field names the destination (PRX-24): the host as spelled or canonical, in any case, the
// port unless it is the scheme's, no trailing dot, brackets only round an IPv6 literal.
func (d destination) namedBy(field string) bool {
	host, port, ok := cutPort(field)
	if !ok || host == "" || strings.HasSuffix(host, ".") {
		return false
	}
	named := d.defaultPort()
	if port != "" {
		if named, ok = parsePort(port); !ok {
			return false
		}
	}
	if named != d.port {
		return false
	}
	if strings.HasPrefix(host, "[") {
		h, err := config.CanonicalHost(host)
		return err == nil && h == d.host
	}
	return d.hasName(host)
}

// hasName reports whether a name without brackets is that of the destination, as spelled or canonical.
func (d destination) hasName(name string) bool {
	return httphead.EqualFold(name, strings.TrimSuffix(d.spelled, ".")) || httphead.EqualFold(name, d.host.Name)
}

// hostField is the Host of the request that goes upstream: the scheme's port is left out, IPv6 has brackets.
func (d destination) hostField() string {
	host := entry{host: d.host, port: d.port}
	if d.port == d.defaultPort() {
		host.port = 0
	}
	return host.setting()
}
