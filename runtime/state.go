package runtime

import (
	"fmt"
	"os"
	"reflect"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/proxy/credential"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// state is one configuration in force, compiled. It is immutable once it is stored: an update stores another one, so that
// whoever has read one decides by that alone (LIB-16, LIB-20).
type state struct {
	cfg   *config.Config // the session's own copy
	rules *proxy.Rules   // nil once the session is closed: it then refuses every destination
}

// current is the configuration in force; the built-in one, with all destinations refused, for a session that was never begun.
func (s *Sandbox) current() *state {
	if st := s.state.Load(); st != nil {
		return st
	}
	return &state{cfg: config.Default()}
}

// compile makes the state of a valid configuration, which it keeps, in a session that began with another. What is the same as
// in a former one stays the same object, so that the proxies keep their idle connections (NET-16). former may be nil.
func compile(cfg, begun *config.Config, former *state) (*state, error) {
	if former != nil && former.rules != nil && reflect.DeepEqual(liveRules(cfg), liveRules(former.cfg)) {
		return &state{cfg, former.rules}, nil
	}
	network, err := policy.NewNetwork(networkRules(cfg))
	if err != nil {
		return nil, err
	}
	mitm, err := mitmProxy(cfg)
	if err != nil {
		return nil, err
	}
	requests, err := policy.NewRequestRules(cfg.Network.RequestRules)
	if err != nil {
		return nil, err
	}
	termination, err := terminationRules(cfg.Network.TLSTerminate)
	if err != nil {
		return nil, err
	}
	return &state{cfg, &proxy.Rules{Network: network, MITM: mitm, Requests: requests, Termination: termination,
		SigV4: signing(cfg, begun)}}, nil
}

// liveRules are all settings that the proxies ask for (LIB-21).
func liveRules(cfg *config.Config) []any {
	var sigV4 config.SigV4
	if cfg.Credentials != nil {
		sigV4 = cfg.Credentials.SigV4
	}
	return []any{networkRules(cfg), cfg.Network.MitmProxy, cfg.Network.RequestRules, cfg.Network.TLSTerminate, sigV4}
}

// terminationRules are what the settings say about single tunnels (TLS-2). Without the section there are none, and whether TLS
// is terminated at all was decided when the session began.
func terminationRules(t *config.TLSTerminate) (rules proxy.TerminationRules, err error) {
	if t == nil {
		return rules, nil
	}
	for i, text := range t.ExcludeDomains {
		d, err := config.ParseDomain(text, config.DomainForm{})
		if err != nil {
			return rules, fmt.Errorf("network.tlsTerminate.excludeDomains.%d: %w", i, err)
		}
		rules.Exclude = append(rules.Exclude, d)
	}
	rules.MaxTunnels, rules.HandshakeTimeout = t.TunnelLimit(), t.HandshakeTimeout()
	return rules, nil
}

// signing is what happens to signed requests that cannot be signed again. It is live in a session that began with credentials,
// and refuses them in every other (LIB-21, CLI-32).
func signing(cfg, begun *config.Config) credential.SigV4Policy {
	if begun.Credentials == nil || cfg.Credentials == nil {
		return credential.SigV4Policy{}
	}
	passes := func(value string) bool { return value == config.SigV4Passthrough }
	v := &cfg.Credentials.SigV4
	return credential.SigV4Policy{Streaming: passes(v.Streaming), Presigned: passes(v.Presigned), SigV4A: passes(v.SigV4A)}
}

// network are the rules about destinations alone; they refuse all once the session is closed.
func (st *state) network() *policy.Network {
	if st.rules == nil {
		return nil
	}
	return st.rules.Network
}

// networkRules are what the settings say about destinations.
func networkRules(cfg *config.Config) policy.NetworkRules {
	n := &cfg.Network
	return policy.NetworkRules{
		AllowedDomains: n.AllowedDomains, DeniedDomains: n.DeniedDomains, DeniedDomainReasons: n.DeniedDomainReasons,
		StrictAllowlist: n.StrictAllowlist, DeniedResolvedAddresses: n.DeniedResolvedAddresses,
	}
}

// mitmProxy is the proxy on a Unix socket that some hosts go through (NET-63), nil if there is none.
func mitmProxy(cfg *config.Config) (*proxy.MITM, error) {
	m := cfg.Network.MitmProxy
	if m == nil {
		return nil, nil //nolint:nilnil // none is what a nil *proxy.MITM stands for
	}
	mitm, err := proxy.NewMITM(m.SocketPath, m.Domains)
	if err != nil {
		return nil, fmt.Errorf("network.mitmProxy: %w", err)
	}
	return mitm, nil
}

// parentProxy is the proxy behind srt's own: from the settings, else from srt's environment (CFG-33, NET-60, LIB-4).
func (s *Sandbox) parentProxy() (*proxy.Parent, error) {
	p := &s.begun.Network.ParentProxy
	parent, notes, err := proxy.ParentFromEnvironment(given(p.HTTP), given(p.HTTPS), p.NoProxy, os.LookupEnv)
	for _, n := range notes {
		s.opts.logger.Debug(n)
	}
	return parent, err
}

// given is nil for a setting that is not there.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
