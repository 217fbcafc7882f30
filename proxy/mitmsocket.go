package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/srt-sandbox/srt/runtime/config"
)

// ErrInvalidMITM is the class of every error of [NewMITM].
var ErrInvalidMITM = errors.New("invalid mitmProxy")

// maxSocketPath is how long the path of a Unix socket can be everywhere: sun_path holds 104 bytes on macOS, 108 on Linux,
// the closing NUL included (unix(7)).
const maxSocketPath = 103

// MITM is the proxy on a Unix socket of the host that some destinations go through (network.mitmProxy, NET-63): they are
// still decided like all others, and never leave by another route. It is immutable; a nil *MITM takes no destination.
type MITM struct {
	endpoint parentEndpoint
	domains  []config.Domain
}

// NewMITM makes a MITM from the path of its socket, which need not exist yet and is connected anew for each connection,
// and from the patterns of its destinations, without ports. Errors match [ErrInvalidMITM].
func NewMITM(socketPath string, domains []string) (*MITM, error) {
	fail := func(format string, args ...any) (*MITM, error) {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMITM, fmt.Errorf(format, args...))
	}
	switch {
	case socketPath == "":
		return fail("socketPath is empty: name the socket that the proxy listens on")
	case strings.IndexByte(socketPath, 0) >= 0:
		return fail("socketPath holds a NUL byte: name a socket in the file system")
	case socketPath[0] == '@':
		socketPath = "./" + socketPath // a file: package net takes a leading @ for Linux's abstract namespace
	}
	if len(socketPath) > maxSocketPath {
		return fail("socketPath is longer than %d bytes, which no Unix socket can be: use a shorter path", maxSocketPath)
	}
	if len(domains) == 0 {
		return fail("domains is empty: name at least one destination")
	}
	m := &MITM{endpoint: parentEndpoint{socket: socketPath}}
	for i, entry := range domains {
		d, err := config.ParseDomain(entry, config.DomainForm{})
		if err != nil {
			return fail("domains[%d]: %w", i, err)
		}
		m.domains = append(m.domains, d)
	}
	return m, nil
}

// route returns the endpoint for a canonical host, or nil.
func (m *MITM) route(h config.Host) *parentEndpoint {
	if m == nil {
		return nil
	}
	for _, d := range m.domains {
		if d.Matches(h, 0) {
			return &m.endpoint
		}
	}
	return nil
}

// route chooses the way to a destination that rules allow (NET-27): the MITM socket if it matches, whatever noProxy says,
// else the parent unless it is bypassed, else directly. It returns the proxy that the destination goes through, or nil to
// dial it. plain: an http request in absolute form; everything else is a tunnel.
func (s *Server) route(rules *Rules, h config.Host, plain bool) *parentEndpoint {
	if e := rules.MITM.route(h); e != nil {
		return e
	}
	return s.parent.route(h, plain)
}

// dialSocket connects to a proxy on a Unix socket. The connection is tracked.
func (s *Server) dialSocket(ctx context.Context, path string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("the proxy socket of mitmProxy: %w", err)
	}
	if !s.watch(conn) {
		return nil, ErrServerClosed
	}
	return conn, nil
}
