package runtime

import (
	"fmt"
	"os"
	"reflect"

	"github.com/srt-sandbox/srt/proxy"
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

// compile makes the state of a valid configuration, which it keeps. What is the same as in a former one stays the same
// object, so that the proxies keep their idle connections (NET-16). former may be nil.
func compile(cfg *config.Config, former *state) (*state, error) {
	if former != nil && former.rules != nil && reflect.DeepEqual(networkRules(cfg), networkRules(former.cfg)) &&
		reflect.DeepEqual(cfg.Network.MitmProxy, former.cfg.Network.MitmProxy) {
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
	return &state{cfg, &proxy.Rules{Network: network, MITM: mitm}}, nil
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
