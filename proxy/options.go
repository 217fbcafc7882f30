package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// tokenLength is the length of a token: 16 bytes as lower-case hex digits (NET-18).
const tokenLength = 32

// ErrInvalidOptions is the class of every error of [New].
var ErrInvalidOptions = errors.New("invalid proxy options")

// Resolver looks up the addresses of a host name; *net.Resolver is one. It must be safe for concurrent use.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Rules are what one configuration says about destinations: whether one may be reached, and which way. The two are one value,
// so that what was decided by a configuration also goes the way of that configuration, whatever is updated meanwhile (NET-16,
// CLI-24). It is immutable. The zero value refuses every destination.
type Rules struct {
	*policy.Network
	// MITM is the proxy on a Unix socket that some destinations go through and no other way (NET-63). Nil: there is none.
	MITM *MITM
	// Requests says which requests to allowed hosts go on. At a host that they name nothing passes that cannot be read. Nil:
	// requests are not judged one by one.
	Requests *policy.RequestRules
	// Termination is what applies to tunnels whose TLS ends here, if there are any (Options.Terminate).
	Termination TerminationRules
	// SigV4 says which AWS signatures that cannot be made anew go out as they are (CRED-30).
	SigV4 credential.SigV4Policy
}

// Options is what a [Server] is made of. The zero value is valid and refuses every client and every destination.
type Options struct {
	// Policy returns the rules in force. It is asked anew for each decision, so that an update applies from the next
	// connection or request (NET-16), and must return the same pointer until the rules change: a connection to an
	// upstream server is used again only under the very rules that it was dialled under. It may be called from many
	// goroutines. Nil, and a nil result, refuse every destination with "sandbox policy unavailable".
	Policy func() *Rules
	// Commands are the lists of single commands, which may allow what neither list of the policy names (NET-15). They are
	// ignored with Open: beside an external proxy no list of a command applies. Nil: there are none.
	Commands *policy.CommandLists
	// Ask decides about a destination that the policy leaves undecided: it is called for each connection or request anew,
	// from many goroutines, with no lock held, and may take as long as it needs. Its context ends when the client has
	// left or the server is closed; what it answers then opens nothing. It is never called under strictAllowlist, for a
	// malformed or denied host, or for a client without the token (NET-13). An error, or a panic, denies with "permission
	// prompt failed". Nil: undecided destinations are refused.
	Ask func(context.Context, Question) (Answer, error)
	// Token is what every client must present: 32 lower-case hex digits (NET-18). It reaches no upstream, log or error.
	// If it is empty and Open is not set, every client is refused.
	Token string
	// Open admits every client. It is only for the local side beside an external proxy (NET-18) and excludes Token.
	Open bool
	// Resolver looks up the hosts that are dialled directly, once for each dial (NET-51). Nil: net.DefaultResolver.
	Resolver Resolver
	// Parent is the proxy behind this one (NET-60 to NET-62). Nil: every destination is dialled directly.
	Parent *Parent
	// RequireHostMatch refuses requests whose Host field, or TLS server name, does not name the target (NET-34, REQ-9).
	RequireHostMatch bool
	// Filtering is the filter of requests, plain ones and those in terminated tunnels.
	Filtering
	// Terminate makes the server end the TLS of tunnels itself. Nil: every tunnel is opaque (TLS-1).
	Terminate *Termination
	// Credentials are put into requests in terminated tunnels (CRED-20). The server does not close them. Nil: there are none.
	Credentials *credential.Store
	// AllowPlaintextInject puts them into plain requests as well.
	AllowPlaintextInject bool
	// RefuseOpaqueTunnels refuses every tunnel that is not inspected here (NET-38, REQ-4).
	RefuseOpaqueTunnels bool
	// StripResponseHeaders names fields that are taken out of responses; case is ignored, and '-',
	// '_' and '.' are one (NET-30).
	StripResponseHeaders []string
	// OnViolation receives each refusal (NET-70). It is called from many goroutines, before the client has its answer,
	// and should return soon. Nil: refusals are not reported.
	OnViolation func(violation.Event)
	// Logger receives debug lines, which may hold resolved addresses but never a token or other credential. Nil: none.
	Logger *slog.Logger
	// Limits are the limits of the protocols.
	Limits Limits
}

// Limits are the limits of the protocols (NET-23). A field that is zero stands for the number in its comment.
type Limits struct {
	FirstByte      time.Duration // until the first byte of a connection: 10 s (NET-22)
	Head           time.Duration // until the head of a request is complete: 60 s
	Idle           time.Duration // between two requests of a connection: 5 s
	Dial           time.Duration // lookup and connection to an upstream server, all addresses together: 30 s
	Handshake      time.Duration // with a parent proxy, TLS included: 30 s
	SOCKSHandshake time.Duration // from the first byte to the request of a SOCKS client: 10 s
	SOCKSRefusal   time.Duration // until the request of a SOCKS client that cannot authenticate: 5 s (NET-43)
	Stall          time.Duration // without a byte of a request body: 300 s
	// Connections is how many clients there are at once; further ones wait in the backlog of the listener. It stands for
	// 8192, or for what two thirds of the descriptors that the process may have suffice for (RLIMIT_NOFILE, getrlimit(2)),
	// as the rest of srt needs some, and a process without any can answer nobody.
	Connections int
}

const (
	maxConnections = 8192
	// ownDescriptors is about how many descriptors srt has without any connection.
	ownDescriptors = 32
)

// connectionsFor is how many connections a number of descriptors suffices for. Each takes two, and a third is for idle
// upstream connections, lookups, and those whose end is in progress.
func connectionsFor(descriptors uint64) int {
	descriptors = min(descriptors, 4*maxConnections) // no overflow
	return max(int(descriptors)-ownDescriptors, 12) / 3
}

// orDefaults fills in the fields that are zero.
func (l Limits) orDefaults() Limits {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&l.FirstByte, 10 * time.Second}, {&l.Head, 60 * time.Second}, {&l.Idle, 5 * time.Second},
		{&l.Dial, 30 * time.Second}, {&l.Handshake, 30 * time.Second}, {&l.SOCKSHandshake, 10 * time.Second},
		{&l.SOCKSRefusal, 5 * time.Second}, {&l.Stall, 300 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.Connections == 0 {
		l.Connections = min(maxConnections, connectionsFor(descriptors()))
	}
	return l
}

// New returns a server for valid options. Every error matches [ErrInvalidOptions]; none holds the token.
func New(o Options) (*Server, error) {
	switch {
	case o.Token != "" && o.Open:
		return nil, fmt.Errorf("%w: Open admits clients without a token, so there must be no Token", ErrInvalidOptions)
	case o.Token != "" && !isToken(o.Token):
		return nil, fmt.Errorf("%w: Token must be %d lower-case hex digits", ErrInvalidOptions, tokenLength)
	case o.Limits.Connections < 0:
		return nil, fmt.Errorf("%w: Limits.Connections must not be negative", ErrInvalidOptions)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Terminate != nil && o.Terminate.CA == nil {
		return nil, fmt.Errorf("%w: Terminate.CA must not be nil, as clients could not be shown any certificate", ErrInvalidOptions)
	}
	s := &Server{onViolation: o.OnViolation, scope: &scope{}, shared: &shared{
		commands: o.Commands, askUser: o.Ask, token: o.Token, open: o.Open,
		resolver: o.Resolver, connectTCP: connectTCP,
		parent: o.Parent, requireHostMatch: o.RequireHostMatch,
		refuseOpaque: o.RefuseOpaqueTunnels, filtering: o.Filtering,
		terminate: o.Terminate, credentials: o.Credentials, plaintextInject: o.AllowPlaintextInject,
		log: o.Logger, limits: o.Limits.orDefaults(), sweepEvery: sweepEvery,
		conns: map[net.Conn]tracked{}, listeners: map[net.Listener]struct{}{}, views: map[*Server]struct{}{},
	}}
	if o.Open {
		s.commands = nil
	}
	s.injectable = func(h config.Host) bool { return s.injection(h) != nil }
	s.collected = semaphore.NewWeighted(maxCollected)
	s.policy = func() *Rules {
		if o.Policy != nil {
			if r := o.Policy(); r != nil {
				return r
			}
		}
		return &Rules{}
	}
	if s.resolver == nil {
		s.resolver = net.DefaultResolver
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, name := range o.StripResponseHeaders {
		s.strip = append(s.strip, httphead.Fold(name))
	}
	s.slots = make(chan struct{}, s.limits.Connections)
	s.idle.init(min(idleTotal, max(s.limits.Connections/4, 1)))
	s.ctx, s.scope.end = context.WithCancel(context.Background())
	s.cancel = s.scope.end
	return s, nil
}

func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == tokenLength
}
