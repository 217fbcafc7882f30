package violation

import (
	"net/url"
	"strconv"
	"strings"
)

// Object takes the Target apart: an absolute path for files and Unix sockets, host and port for the network, the host
// without brackets, as spelled; port is 0 if there is none. A part that the event does not have is empty.
func (e Event) Object() (path, host string, port uint16) {
	switch e.Operation {
	case NetworkOutbound, SOCKSTunnel:
		host, port = splitHostPort(e.Target)
	case DNSQuery:
		host = e.Target
	case HTTPRequest:
		host, port = ofRequest(e.Target)
	default:
		path = e.Target
	}
	return path, host, port
}

// ofRequest finds the destination in "CONNECT host:port" and "METHOD url".
func ofRequest(target string) (host string, port uint16) {
	method, rest, _ := strings.Cut(target, " ")
	if method == "CONNECT" && !strings.Contains(rest, "/") {
		return splitHostPort(rest)
	}
	u, err := url.Parse(rest)
	if err != nil || u.Host == "" {
		return "", 0
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return u.Hostname(), uint16(n)
	}
	switch u.Scheme {
	case "http":
		port = 80
	case "https":
		port = 443
	}
	return u.Hostname(), port
}

// splitHostPort cuts at the last colon: every target has a port, and an address is written without brackets (VIO-11).
func splitHostPort(target string) (host string, port uint16) {
	i := strings.LastIndexByte(target, ':')
	if i < 0 {
		return target, 0
	}
	n, err := strconv.ParseUint(target[i+1:], 10, 16)
	if err != nil {
		return target, 0
	}
	return unbracketed(target[:i]), uint16(n)
}
