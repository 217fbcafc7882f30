package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/local"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// ResolvedError is the refusal of a host because of the addresses that it resolved to (NET-52). Its text names classes
// and never an address.
type ResolvedError struct {
	Host    string         // canonical
	Classes []policy.Class // every class that applied to a refused answer, repeats kept
}

// Error returns a sentence for a log.
func (e *ResolvedError) Error() string { return "connection to " + e.Host + " blocked: " + e.Reason() }

// Reason is the text of the status line and of the violation line.
func (e *ResolvedError) Reason() string { return "resolved to " + policy.ClassText(e.Classes...) }

// errInternal marks failures of srt's own, which are neither the client's nor the network's.
var errInternal = errors.New("internal error")

// errNoAddress is a lookup that succeeded without an answer.
var errNoAddress = errors.New("the name has no address")

// dialDirect connects to an allowed host. A name is looked up once, each answer is judged, and only addresses that pass
// are tried, in the order of the resolver: the address that was checked is the one that is connected (NET-51). The
// connection is tracked. A refusal is a *ResolvedError; all other errors are failures.
func (s *Server) dialDirect(ctx context.Context, rules *Rules, h config.Host, port uint16) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Dial)
	defer cancel()
	addrs, err := s.resolve(ctx, rules, h, port)
	if err != nil {
		return nil, err
	}
	return s.dialAddrs(ctx, addrs, port)
}

// resolve looks an allowed host up and returns the addresses that pass, at least one (NET-51). The errors are those of
// dialDirect.
func (s *Server) resolve(ctx context.Context, rules *Rules, h config.Host, port uint16) ([]netip.Addr, error) {
	if h.IsLiteral() {
		return []netip.Addr{h.Addr}, nil
	}
	answers, err := s.resolver.LookupNetIP(ctx, "ip", h.Name)
	if err != nil {
		return nil, lookupError{err}
	}
	if len(answers) == 0 {
		return nil, lookupError{errNoAddress}
	}
	own := ownAddresses{}
	refusal := &ResolvedError{Host: h.Name}
	var passed []netip.Addr
	for _, addr := range answers {
		addr = addr.Unmap()
		classes := rules.JudgeAddress(h, port, addr, own.has)
		if len(classes) == 0 {
			passed = append(passed, addr)
			continue
		}
		refusal.Classes = append(refusal.Classes, classes...)
		s.log.Debug("proxy: address refused", "host", h.Name, "port", port, "address", addr, "classes", policy.ClassText(classes...))
	}
	if own.err != nil {
		return nil, fmt.Errorf("%w: cannot read the addresses of this host: %w", errInternal, own.err)
	}
	if len(passed) == 0 {
		return nil, refusal
	}
	return passed, nil
}

// dialAtOnce connects to an allowed host if it is a literal on loopback whose server is ready, and does not wait. Nil says
// nothing about the host: dialDirect does. The connection is tracked.
func (s *Server) dialAtOnce(rules *Rules, h config.Host, port uint16) net.Conn {
	if !h.IsLiteral() || s.route(rules, h, false) != nil {
		return nil
	}
	conn := local.Dial(netip.AddrPortFrom(h.Addr, port))
	if conn == nil || !s.watch(conn) {
		return nil
	}
	return conn
}

// lookupError marks a failed lookup, which SOCKS reports as "host unreachable".
type lookupError struct{ err error }

func (e lookupError) Error() string { return "lookup failed: " + e.err.Error() }
func (e lookupError) Unwrap() error { return e.err }

// ownAddresses is the set of addresses on the interfaces of this host, read when it is first asked for (NET-53).
type ownAddresses struct {
	set map[netip.Addr]struct{}
	err error
}

// has reports whether an address is one of this host's. If they cannot be read it is: the dial fails.
func (o *ownAddresses) has(a netip.Addr) bool {
	if o.set == nil && o.err == nil {
		o.read()
	}
	_, own := o.set[a.Unmap().WithZone("")]
	return own || o.err != nil
}

func (o *ownAddresses) read() {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		o.err = err
		return
	}
	o.set = make(map[netip.Addr]struct{}, len(addrs))
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				o.set[addr.Unmap()] = struct{}{}
			}
		}
	}
}

// minAttempt is the least time for one address among several.
const minAttempt = 2 * time.Second

// dialAddrs tries addresses in turn until the context ends, and returns the first error if none answers. Each gets an
// equal share of the time that is left, so that a silent one does not use up all of it.
func (s *Server) dialAddrs(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	var first error
	var dialer net.Dialer
	for i, addr := range addrs {
		if i < len(addrs)-1 {
			if end, ok := ctx.Deadline(); ok {
				dialer.Timeout = max(time.Until(end)/time.Duration(len(addrs)-i), minAttempt)
			}
		} else {
			dialer.Timeout = 0
		}
		to := netip.AddrPortFrom(addr, port)
		conn, err := s.connectTCP(ctx, &dialer, to)
		if err == nil {
			if !s.watch(conn) {
				return nil, ErrServerClosed
			}
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// connectTCP connects to one address.
func connectTCP(ctx context.Context, dialer *net.Dialer, to netip.AddrPort) (net.Conn, error) {
	if conn := local.Dial(to); conn != nil {
		return conn, nil
	}
	return dialer.DialContext(ctx, "tcp", to.String())
}
