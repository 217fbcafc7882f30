package config

import (
	"maps"
	"slices"
)

// Clone returns a deep copy: no list, map or section is shared with c. A nil list stays nil, which matters for
// injectHosts. Clone of nil is nil.
func (c *Config) Clone() *Config {
	if c == nil {
		return nil
	}
	d := *c
	d.Network = c.Network.clone()
	d.Filesystem = c.Filesystem.clone()
	d.Credentials = c.Credentials.clone()
	d.IgnoreViolations = maps.Clone(c.IgnoreViolations)
	for key, list := range d.IgnoreViolations {
		d.IgnoreViolations[key] = slices.Clone(list)
	}
	d.Git.SafeDirectories = slices.Clone(c.Git.SafeDirectories)
	d.Windows.SrtWin = clonePointer(c.Windows.SrtWin)
	if d.Ripgrep = clonePointer(c.Ripgrep); d.Ripgrep != nil {
		d.Ripgrep.Args = slices.Clone(c.Ripgrep.Args)
	}
	d.Seccomp = clonePointer(c.Seccomp)
	d.unknown = slices.Clone(c.unknown)
	return &d
}

// clonePointer copies what a pointer points to, one level deep.
func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func (n Network) clone() Network {
	n.AllowedDomains = slices.Clone(n.AllowedDomains)
	n.DeniedDomains = slices.Clone(n.DeniedDomains)
	n.DeniedDomainReasons = maps.Clone(n.DeniedDomainReasons)
	n.DeniedResolvedAddresses = slices.Clone(n.DeniedResolvedAddresses)
	n.AllowUnixSockets = slices.Clone(n.AllowUnixSockets)
	n.AllowMachLookup = slices.Clone(n.AllowMachLookup)
	n.StripResponseHeaders = slices.Clone(n.StripResponseHeaders)
	n.RequestRules = slices.Clone(n.RequestRules)
	for i := range n.RequestRules {
		n.RequestRules[i] = n.RequestRules[i].clone()
	}
	n.ParentProxy.NoProxy = clonePointer(n.ParentProxy.NoProxy)
	if n.MitmProxy = clonePointer(n.MitmProxy); n.MitmProxy != nil {
		n.MitmProxy.Domains = slices.Clone(n.MitmProxy.Domains)
	}
	if n.TLSTerminate = clonePointer(n.TLSTerminate); n.TLSTerminate != nil {
		n.TLSTerminate.ExcludeDomains = slices.Clone(n.TLSTerminate.ExcludeDomains)
		n.TLSTerminate.ExtraCACertPaths = slices.Clone(n.TLSTerminate.ExtraCACertPaths)
	}
	return n
}

func (f Filesystem) clone() Filesystem {
	f.DenyRead = slices.Clone(f.DenyRead)
	f.AllowRead = slices.Clone(f.AllowRead)
	f.AllowWrite = slices.Clone(f.AllowWrite)
	f.DenyWrite = slices.Clone(f.DenyWrite)
	return f
}

func (c *Credentials) clone() *Credentials {
	if c = clonePointer(c); c == nil {
		return nil
	}
	c.Files = slices.Clone(c.Files)
	for i := range c.Files {
		c.Files[i].Credential = c.Files[i].clone()
	}
	c.EnvVars = slices.Clone(c.EnvVars)
	for i := range c.EnvVars {
		c.EnvVars[i].Credential = c.EnvVars[i].clone()
	}
	c.AWSPairs = slices.Clone(c.AWSPairs)
	return c
}

func (c Credential) clone() Credential {
	c.MaskClaims = slices.Clone(c.MaskClaims)
	c.InjectHosts = slices.Clone(c.InjectHosts)
	return c
}
