package config

import (
	"cmp"
	"time"
)

// Default returns the built-in config of CFG-8, used only where no settings file exists and none was asked for: no
// network, no writes but the default write paths, all reads. Each call returns a new value.
func Default() *Config {
	return &Config{
		Network: Network{AllowedDomains: []string{}, DeniedDomains: []string{}},
		Filesystem: Filesystem{
			DenyRead:   []PathEntry{},
			AllowRead:  []PathEntry{},
			AllowWrite: []PathEntry{},
			DenyWrite:  []PathEntry{},
		},
	}
}

// SearchDepth returns mandatoryDenySearchDepth in levels, by default 3.
func (c *Config) SearchDepth() int { return cmp.Or(c.MandatoryDenySearchDepth, 3) }

// RequestTarget returns ambiguousRequestTarget, by default [TargetRefuse].
func (n *Network) RequestTarget() string { return cmp.Or(n.AmbiguousRequestTarget, TargetRefuse) }

// TunnelLimit returns maxTunnels, by default 256.
func (t *TLSTerminate) TunnelLimit() int { return cmp.Or(t.MaxTunnels, 256) }

// HandshakeTimeout returns handshakeTimeoutMs, by default ten seconds.
func (t *TLSTerminate) HandshakeTimeout() time.Duration {
	return time.Duration(cmp.Or(t.HandshakeTimeoutMs, 10_000)) * time.Millisecond
}

// NoMatch returns onExtractNoMatch, by default [NoMatchWarn].
func (c *Credential) NoMatch() string { return cmp.Or(c.OnExtractNoMatch, NoMatchWarn) }

// Account returns sandboxUser, by default "srt-sandbox".
func (w *Windows) Account() string { return cmp.Or(w.SandboxUser, "srt-sandbox") }

// Ports returns proxyPortRange, by default 60080 to 60089.
func (w *Windows) Ports() PortRange { return cmp.Or(w.ProxyPortRange, PortRange{60080, 60089}) }

// Sublayer returns the GUID of the WFP sublayer as written, or "" for the built-in one. sublayerGuid wins over its
// deprecated spelling (CFG-36).
func (w *Windows) Sublayer() string { return cmp.Or(w.SublayerGUID, w.WFPSublayerGUID) }
