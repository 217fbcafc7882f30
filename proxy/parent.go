package proxy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// ErrInvalidParent is the class of every error about the URL of a parent proxy.
var ErrInvalidParent = errors.New("invalid parent proxy URL")

// Parent is the proxy behind this one and the destinations that go past it (NET-60 to NET-62). It is immutable. A nil
// *Parent sends everything directly.
type Parent struct {
	http, https *parentEndpoint // nil: direct
	bypass      []bypassRule
	bypassAll   bool
}

// parentEndpoint is one proxy behind this one: a parent URL, or the socket of mitmProxy.
type parentEndpoint struct {
	socket string // the path of a Unix socket, in place of all below (NET-63)

	tls  bool
	host config.Host
	port uint16
	auth string // the value of Proxy-Authorization, empty for none
}

// bypassRule is one item of a noProxy list: a name with everything beneath it, or a range of literals.
type bypassRule struct {
	name   string
	prefix netip.Prefix
}

// ParseParent makes a parent from the URLs for plain http requests and for everything else, and from a list of
// destinations that bypass it. An empty httpURL sends plain http requests directly; an empty httpsURL means the value of
// httpURL; both empty give nil. A URL is http://... or https://..., or host:port, which means http. Errors match
// [ErrInvalidParent] and never hold user information.
func ParseParent(httpURL, httpsURL, noProxy string) (*Parent, error) {
	if httpsURL == "" {
		httpsURL = httpURL
	}
	if httpsURL == "" {
		return nil, nil
	}
	p := &Parent{}
	var err error
	if httpURL != "" {
		if p.http, err = parseEndpoint(httpURL); err != nil {
			return nil, err
		}
	}
	if p.https, err = parseEndpoint(httpsURL); err != nil {
		return nil, err
	}
	p.setBypass(noProxy)
	return p, nil
}

// ParentFromEnvironment makes a parent from settings and, field by field where a setting is nil, from the variables
// HTTP_PROXY, HTTPS_PROXY and NO_PROXY or their lower-case twins, in that order (NET-60, CFG-33). lookup is os.LookupEnv
// or stands for it; a variable that is set to the empty string counts as set. A malformed setting is an error that
// matches [ErrInvalidParent]. A malformed variable is ignored; notes then holds a line about it for a debug log, with
// user information masked.
func ParentFromEnvironment(cfgHTTP, cfgHTTPS, cfgNoProxy *string, lookup func(string) (string, bool)) (p *Parent, notes []string, err error) {
	read := func(cfg *string, upper, lower string) (string, bool) {
		if cfg != nil {
			return *cfg, true
		}
		for _, name := range []string{upper, lower} {
			value, ok := lookup(name)
			if !ok {
				continue
			}
			if _, err := parseEndpoint(value); upper != "NO_PROXY" && value != "" && err != nil {
				notes = append(notes, fmt.Sprintf("%s is ignored: %v", name, err))
				continue
			}
			return value, true
		}
		return "", false
	}
	httpURL, _ := read(cfgHTTP, "HTTP_PROXY", "http_proxy")
	httpsURL, httpsSet := read(cfgHTTPS, "HTTPS_PROXY", "https_proxy")
	noProxy, _ := read(cfgNoProxy, "NO_PROXY", "no_proxy")
	if p, err = ParseParent(httpURL, httpsURL, noProxy); err != nil {
		return nil, notes, err
	}
	if p != nil && httpsSet && httpsURL == "" {
		p.https = nil // set, with no value: not the value for http
	}
	return p, notes, nil
}

// parseEndpoint parses one parent URL.
func parseEndpoint(s string) (*parentEndpoint, error) {
	fail := func(why string) (*parentEndpoint, error) {
		return nil, fmt.Errorf("%w %q: %s; write http://host:port, https://host:port or host:port", ErrInvalidParent, maskUserinfo(s), why)
	}
	e := &parentEndpoint{port: 80}
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		rest = s
		if strings.LastIndexByte(s, ':') <= strings.LastIndexByte(s, ']') {
			return fail("it has neither a scheme nor a port")
		}
	case strings.EqualFold(scheme, "https"):
		e.tls, e.port = true, 443
	case !strings.EqualFold(scheme, "http"):
		return fail("its scheme is neither http nor https")
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		e.auth, rest = basicAuth(rest[:at]), rest[at+1:]
	}
	host, port, ok := cutPort(rest)
	if !ok {
		return fail("its host and port cannot be told apart")
	}
	if port != "" {
		if e.port, ok = parsePort(port); !ok {
			return fail("its port is not a number from 1 to 65535")
		}
	}
	var err error
	if e.host, err = config.CanonicalHost(host); err != nil {
		return fail("its host is malformed")
	}
	return e, nil
}

// basicAuth makes the credentials for user information of a URL, each half percent-decoded, or raw if it is malformed
// (NET-61). Without a password the user name stands alone before the colon.
func basicAuth(userinfo string) string {
	user, password, _ := strings.Cut(userinfo, ":")
	plain := percentDecode(user) + ":" + percentDecode(password)
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(plain))
}

func percentDecode(s string) string {
	if decoded, err := url.PathUnescape(s); err == nil {
		return decoded
	}
	return s
}

// maskUserinfo hides the user information of a URL for a message.
func maskUserinfo(s string) string {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "", s
	} else {
		scheme += "://"
	}
	// A password may hold any character, so everything up to the last '@' goes.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "***@" + rest[at+1:]
	}
	return scheme + rest
}

// setBypass parses a noProxy list. Ports are ignored, and what is no name, literal or range is skipped (NET-62).
func (p *Parent) setBypass(list string) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.ToLower(strings.TrimSpace(item))
		if item == "*" {
			p.bypassAll = true
			continue
		}
		if strings.IndexByte(item, '/') >= 0 {
			if prefix, err := netip.ParsePrefix(item); err == nil {
				p.bypass = append(p.bypass, bypassRule{prefix: prefix.Masked()})
			}
			continue
		}
		if addr, err := netip.ParseAddr(strings.Trim(item, "[]")); err == nil {
			item = "[" + addr.WithZone("").String() + "]"
			if addr.Is4() {
				item = addr.String()
			}
		}
		host, _, ok := cutPort(item)
		if !ok {
			continue
		}
		host = strings.TrimPrefix(strings.TrimPrefix(host, "*"), ".")
		h, err := config.CanonicalHost(host)
		switch {
		case err != nil:
		case h.IsLiteral():
			p.bypass = append(p.bypass, bypassRule{prefix: netip.PrefixFrom(h.Addr, h.Addr.BitLen())})
		default:
			p.bypass = append(p.bypass, bypassRule{name: h.Name})
		}
	}
}

// bypasses reports whether a canonical host is reached directly. localhost and loopback literals always are; names
// beneath localhost are not (NET-62).
func (p *Parent) bypasses(h config.Host) bool {
	if p.bypassAll || h.Name == "localhost" || h.IsLiteral() && h.Addr.IsLoopback() {
		return true
	}
	for _, rule := range p.bypass {
		switch {
		case h.IsLiteral():
			if rule.name == "" && rule.prefix.Contains(h.Addr) {
				return true
			}
		case rule.name == "":
		case h.Name == rule.name, strings.HasSuffix(h.Name, "."+rule.name):
			return true
		}
	}
	return false
}

// route returns the parent that a destination goes through, or nil to dial it. plain: an http request in absolute form;
// everything else is a tunnel (NET-60).
func (p *Parent) route(h config.Host, plain bool) *parentEndpoint {
	switch {
	case p == nil || p.bypasses(h):
		return nil
	case plain:
		return p.http
	}
	return p.https
}
