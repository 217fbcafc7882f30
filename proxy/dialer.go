package proxy

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// Dialer connects to hosts that somebody else has allowed, with the check of resolved addresses (NET-50 to NET-58) and no
// parent proxy. Its methods may be called from any goroutine. Make one with [NewDialer].
type Dialer struct {
	server *Server
	rules  *Rules
}

// DialerOptions are what a [Dialer] is made of. Every zero value is usable.
type DialerOptions struct {
	// Network judges the addresses that names resolve to; its lists of hosts are not asked, but for the literals in them,
	// which are exempt or denied. Nil refuses every address of a name.
	Network *policy.Network
	// Resolver looks names up, once for each dial. Nil: net.DefaultResolver.
	Resolver Resolver
	// Timeout is for lookup and connection, all addresses together. 0: 30 s.
	Timeout time.Duration
	// Logger receives debug lines, which may hold resolved addresses. Nil: none.
	Logger *slog.Logger
}

// NewDialer makes a dialer. It starts nothing and holds nothing that must be released.
func NewDialer(o DialerOptions) (*Dialer, error) {
	s, err := New(Options{Resolver: o.Resolver, Logger: o.Logger, Limits: Limits{Dial: o.Timeout}})
	if err != nil {
		return nil, err
	}
	return &Dialer{server: s, rules: &Rules{Network: o.Network}}, nil
}

// Dial connects to a canonical host. A name is looked up once, and only addresses that pass are tried. The connection is the
// caller's. A refusal is a *[ResolvedError]; all other errors are failures.
func (d *Dialer) Dial(ctx context.Context, h config.Host, port uint16) (net.Conn, error) {
	conn, err := d.server.dialDirect(ctx, d.rules, h, port)
	if err != nil {
		return nil, err
	}
	d.server.mu.Lock()
	delete(d.server.conns, conn) // nothing closes it but the caller
	d.server.mu.Unlock()
	return conn, nil
}
