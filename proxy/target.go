package proxy

import (
	"net"
	"strconv"
	"strings"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
)

// authority is the host and port of a target, as a client spelled them.
type authority struct {
	host string // brackets included
	port uint16 // 1 to 65535
}

// parseAuthority parses the target of CONNECT: host:port or [v6]:port (NET-24). The host is judged later.
func parseAuthority(s string) (authority, bool) {
	host, port, ok := cutPort(s)
	if !ok || host == "" || port == "" {
		return authority{}, false
	}
	n, ok := parsePort(port)
	return authority{host, n}, ok
}

// cutPort parts "host:port", "[v6]:port" or either without a port.
func cutPort(s string) (host, port string, ok bool) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", false
		}
		host, s = s[:end+1], s[end+1:]
		if s == "" {
			return host, "", true
		}
		port, ok = strings.CutPrefix(s, ":")
		return host, port, ok && port != ""
	}
	host, port, ok = strings.Cut(s, ":")
	if ok && port == "" {
		return "", "", false
	}
	return host, port, strings.IndexByte(port, ':') < 0
}

// parsePort parses 1 to 65535 without a leading zero.
func parsePort(s string) (uint16, bool) {
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}

// requestTarget is the absolute form of a plain request, taken apart (NET-28).
type requestTarget struct {
	authority
	tls  bool   // https
	path string // the origin form: path and query as spelled, without fragment; "*" for OPTIONS of a whole server
}

// parseTarget parses the absolute form. Everything else, origin form and other schemes included, is refused: it would
// have to be guessed. User information is dropped: it changes neither the host nor the fields (NET-28).
func parseTarget(method, s string) (requestTarget, bool) {
	var t requestTarget
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		return t, false
	case httphead.EqualFold(scheme, "http"):
		t.port = 80
	case httphead.EqualFold(scheme, "https"):
		t.tls, t.port = true, 443
	default:
		return t, false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, path := rest[:end], rest[end:]
	if strings.IndexByte(host, '\\') >= 0 { // the URL Standard ends the authority there, RFC 3986 does not
		return t, false
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	t.host, host, ok = cutPort(host)
	if !ok || t.host == "" {
		return t, false
	}
	if host != "" {
		if t.port, ok = parsePort(host); !ok {
			return t, false
		}
	}
	path, _, _ = strings.Cut(path, "#")
	switch {
	case path == "" && method == "OPTIONS":
		path = "*" // RFC 9112 section 3.2.4
	case !strings.HasPrefix(path, "/"):
		path = "/" + path
	}
	t.path = path
	return t, true
}

// hostPort joins a canonical host and a port; an IPv6 literal gets brackets.
func hostPort(h config.Host, port uint16) string {
	return net.JoinHostPort(h.Name, strconv.Itoa(int(port)))
}

// hostField is the Host field for a canonical host: the default port of the scheme is left out (NET-29).
func (t requestTarget) hostField(h config.Host) string {
	if t.port == t.defaultPort() {
		if h.Addr.Is6() {
			return "[" + h.Name + "]"
		}
		return h.Name
	}
	return hostPort(h, t.port)
}

func (t requestTarget) defaultPort() uint16 {
	if t.tls {
		return 443
	}
	return 80
}

// url is the target with its canonical authority: for the absolute form to a parent and for violation lines (NET-71).
func (t requestTarget) url(h config.Host) string {
	scheme := "http://"
	if t.tls {
		scheme = "https://"
	}
	if t.path == "*" {
		return scheme + t.hostField(h)
	}
	return scheme + t.hostField(h) + t.path
}

// namedBy reports whether a Host field names the target (NET-34): the host as spelled in the target or canonical, in any
// case, the port unless it is the default; no trailing dot, no empty port, brackets only round an IPv6 literal.
func (t requestTarget) namedBy(field string, h config.Host) bool {
	host, port, ok := cutPort(field)
	if !ok || host == "" || strings.HasSuffix(host, ".") {
		return false
	}
	want := t.defaultPort()
	if port != "" {
		if want, ok = parsePort(port); !ok {
			return false
		}
	}
	if want != t.port {
		return false
	}
	if httphead.EqualFold(host, strings.TrimSuffix(t.host, ".")) {
		return true
	}
	if bare, bracketed := strings.CutPrefix(host, "["); bracketed {
		got, err := config.CanonicalHost("[" + bare)
		return err == nil && got == h && strings.IndexByte(bare, '%') < 0
	}
	return httphead.EqualFold(host, h.Name)
}
