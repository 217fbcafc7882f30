package runtime

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/proxy"
	"github.com/srt-sandbox/srt/runtime/config"
)

// unsupported are the keys that are valid but whose feature does not exist yet, and which would weaken what the user
// asked for if they were ignored. Keys that may be ignored safely are not here.
var unsupported = []struct {
	key    string
	is     func(*config.Config) bool
	reason string
}{
	{"network.tlsTerminate", func(c *config.Config) bool { return c.Network.TLSTerminate != nil },
		"TLS would pass through unseen"},
	{"credentials.envVars", masksVariables, "variables with mode \"mask\" would be seen by the command"},
}

// masksVariables reports whether a variable is to be masked. Masked files are hidden until they can be.
func masksVariables(c *config.Config) bool {
	return c.Credentials != nil && slices.ContainsFunc(c.Credentials.EnvVars,
		func(v config.EnvCredential) bool { return v.Mode == config.ModeMask })
}

// refuseUnsupported names the first key that this version must not ignore.
func refuseUnsupported(c *config.Config) error {
	for _, u := range unsupported {
		if u.is(c) {
			return fmt.Errorf("%s: %w (%s). Remove the key to run without it", u.key, ErrUnsupportedSetting, u.reason)
		}
	}
	return nil
}

// parentProxy is the proxy behind srt's own: from the settings, else from srt's environment (CFG-33, NET-60).
func (s *Sandbox) parentProxy() (*proxy.Parent, error) {
	p := &s.cfg.Network.ParentProxy
	parent, notes, err := proxy.ParentFromEnvironment(given(p.HTTP), given(p.HTTPS), p.NoProxy, os.LookupEnv)
	for _, n := range notes {
		s.opts.logger.Debug(n)
	}
	return parent, err
}

// mitmProxy is the proxy on a Unix socket that some hosts go through (NET-63), nil if there is none.
func (s *Sandbox) mitmProxy() (*proxy.MITM, error) {
	m := s.cfg.Network.MitmProxy
	if m == nil {
		return nil, nil //nolint:nilnil // none is what a nil *proxy.MITM stands for
	}
	mitm, err := proxy.NewMITM(m.SocketPath, m.Domains)
	if err != nil {
		return nil, fmt.Errorf("network.mitmProxy: %w", err)
	}
	return mitm, nil
}

// given is nil for a setting that is not there.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func containsAny(line string, patterns []string) bool {
	for _, p := range patterns {
		if strings.Contains(line, p) {
			return true
		}
	}
	return false
}
