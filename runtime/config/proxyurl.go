package config

import (
	"errors"
	"net/url"
	"strings"
)

// ErrInvalidProxyURL is the only error of [ParseProxyURL]. It never repeats the text, which may hold a password.
var ErrInvalidProxyURL = errors.New(`invalid proxy URL: it must be an http: or https: URL with a host, or "host:port"`)

// ParseProxyURL parses the address of a parent proxy, from network.parentProxy or from the environment (CFG-33,
// NET-60): an http or https URL with a host, userinfo allowed, or host:port, which is read as http. The scheme of the
// result is "http" or "https" and its host a canonical one with the port as written, if any.
func ParseProxyURL(raw string) (*url.URL, error) {
	text := raw
	bare := !strings.Contains(raw, "://")
	if bare {
		if strings.ContainsAny(raw, "/?#@") {
			return nil, ErrInvalidProxyURL
		}
		text = "http://" + raw
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return nil, ErrInvalidProxyURL
	}
	port := u.Port()
	if _, ok := parsePort(port); !ok && (port != "" || bare || strings.HasSuffix(u.Host, ":")) {
		return nil, ErrInvalidProxyURL
	}
	ascii, err := asciiName(u.Hostname())
	if err != nil {
		return nil, ErrInvalidProxyURL
	}
	host, err := CanonicalHost(ascii)
	if err != nil {
		return nil, ErrInvalidProxyURL
	}
	u.Host = host.Name
	if host.Addr.Is6() {
		u.Host = "[" + host.Name + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	return u, nil
}
