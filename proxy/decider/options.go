package decider

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/proxy/mitm"
	"github.com/srt-sandbox/srt/runtime/config"
)

// ErrInvalidOptions is the class of every error of [Serve] that an option causes. Nothing was accepted or sent.
var ErrInvalidOptions = errors.New("invalid decider options")

// Option changes one thing about [Serve]. Without any, tunnels are refused, headers are set on inspected requests alone, and
// private addresses are not reached.
type Option func(*settings) error

// settings are what options set.
type settings struct {
	ca             *mitm.CA
	verdictTimeout time.Duration
	ranges         []string
	placements     []Placement
	plaintext      bool
	strip          []string
	roots          *x509.CertPool
	resolver       proxy.Resolver
	log            *slog.Logger
	serving        func()
	limits         limits
}

// limits are the times and counts of PRX-6, PRX-13 and PRX-65, which tests shorten.
type limits struct {
	handshake   time.Duration // from the CONNECT to the end of the TLS handshake
	head        time.Duration // from the ClientHello to the first whole head
	plainHead   time.Duration // from the start of a connection to the first whole head
	idle        time.Duration // from a response to the next whole head
	stall       time.Duration // without movement under way
	dial        time.Duration // lookup, connection and TLS handshake upstream
	shutdown    time.Duration // for what is open at the end
	tunnels     int
	connections int
	longHeads   int // connections on which a head may be longer than shortHead
}

// defaultRanges are the private ranges that no name may lead to unless a literal exempts an address (PRX-67).
var defaultRanges = [...]string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"}

func newSettings(opts []Option) (*settings, error) {
	s := &settings{
		verdictTimeout: 5 * time.Second,
		ranges:         defaultRanges[:],
		placements:     defaultPlacements(),
		log:            slog.New(slog.DiscardHandler),
		serving:        func() {},
		limits: limits{
			handshake: 10 * time.Second, head: 10 * time.Second, plainHead: 60 * time.Second, idle: 6 * time.Second,
			stall: 300 * time.Second, dial: 30 * time.Second, shutdown: time.Second, tunnels: 256, connections: 1024, longHeads: 96,
		},
	}
	for _, o := range opts {
		if err := o(s); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidOptions, err)
		}
	}
	return s, nil
}

// WithCA lets CONNECTs be inspected: certificates for their targets are issued by ca. Nil, the default, refuses them.
func WithCA(ca *mitm.CA) Option {
	return func(s *settings) error { s.ca = ca; return nil }
}

// WithVerdictTimeout sets how long a verdict may take, once after the request and once after its body (PRX-51: 5 s).
func WithVerdictTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return errors.New("the verdict timeout must be positive")
		}
		s.verdictTimeout = d
		return nil
	}
}

// WithDeniedRanges replaces the private ranges of PRX-67: no allowed name may lead to an address in one of them, unless the
// hello lists the address as a literal. What every sandbox refuses (loopback, link-local, metadata services and the like)
// stays refused. No ranges: those alone.
func WithDeniedRanges(ranges ...netip.Prefix) Option {
	return func(s *settings) error {
		s.ranges = make([]string, 0, len(ranges))
		for _, r := range ranges {
			if !r.IsValid() {
				return errors.New("a denied range is not valid")
			}
			s.ranges = append(s.ranges, r.String())
		}
		return nil
	}
}

// WithPlacements replaces the table of where credentials go (PRX-47): the first rule that matches counts, and where none
// does it is "Authorization: Bearer <credential>".
func WithPlacements(rules ...Placement) Option {
	return func(s *settings) error {
		for i, r := range rules {
			if err := r.validate(); err != nil {
				return fmt.Errorf("placement %d: %w", i, err)
			}
		}
		s.placements = append([]Placement(nil), rules...)
		return nil
	}
}

func (r Placement) validate() error {
	if r.Host != "" {
		if h, err := config.CanonicalHost(r.Host); err != nil || h.Name != r.Host {
			return fmt.Errorf("%q is not a canonical host", r.Host)
		}
	}
	switch {
	case r.Field != "" && (!httphead.ValidName(r.Field) || listed(framingNames[:], r.Field) || !endToEnd(r.Field, nil)):
		return fmt.Errorf("%q is not a header that can carry a credential", r.Field)
	case strings.Contains(r.User, ":") || !ascii(r.User+r.Prefix) || !httphead.ValidValue(r.User+r.Prefix):
		return errors.New("User and Prefix must be ASCII without control characters, and User without a colon")
	}
	return nil
}

// WithPlaintextHeaderSet lets verdicts set headers and credentials on requests that came in cleartext (PRX-48), where
// everybody on the way between the client and this proxy could have sent them.
func WithPlaintextHeaderSet() Option {
	return func(s *settings) error { s.plaintext = true; return nil }
}

// WithStripResponseHeaders names headers that are never passed back to clients; case is ignored, and '-', '_' and '.' are
// one (PRX-68).
func WithStripResponseHeaders(names ...string) Option {
	return func(s *settings) error {
		for _, name := range names {
			if !httphead.ValidName(name) {
				return fmt.Errorf("%q is not the name of a header", name)
			}
		}
		s.strip = append(s.strip, names...)
		return nil
	}
}

// WithRoots sets what upstream TLS servers are verified against. Nil, the default: the roots of the system.
func WithRoots(roots *x509.CertPool) Option {
	return func(s *settings) error { s.roots = roots; return nil }
}

// WithResolver sets what names are looked up with, once for each connection to a server. Nil: net.DefaultResolver.
func WithResolver(r proxy.Resolver) Option {
	return func(s *settings) error { s.resolver = r; return nil }
}

// WithLogger sets where debug lines go. They hold methods, hosts and ports; never headers, bodies or credentials.
func WithLogger(log *slog.Logger) Option {
	return func(s *settings) error {
		if log != nil {
			s.log = log
		}
		return nil
	}
}

// WithServing has f called once, when the decider's hello is in and before anything is accepted (PRX-4).
func WithServing(f func()) Option {
	return func(s *settings) error { s.serving = f; return nil }
}

func withLimits(change func(*limits)) Option {
	return func(s *settings) error { change(&s.limits); return nil }
}
