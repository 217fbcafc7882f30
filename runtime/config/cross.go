package config

import (
	"slices"
	"strconv"
)

// This file holds the checks across keys (CFG-64, CFG-70 to CFG-77).

func decimal(i int) string { return strconv.Itoa(i) }

// certificateWithKey is the first half of CFG-70.
func certificateWithKey(w *walk, path string, t *TLSTerminate) {
	if (t.CACertPath == "") != (t.CAKeyPath == "") {
		w.fail(path, "caCertPath and caKeyPath must be provided together")
	}
}

// oneTerminator is the second half of CFG-70 (LIB-3).
func oneTerminator(w *walk, path string, n *Network) {
	if n.TLSTerminate != nil && n.MitmProxy != nil {
		w.fail(path, "network.tlsTerminate and network.mitmProxy are mutually exclusive")
	}
}

// checkMask checks the keys of one credential against each other.
func checkMask(w *walk, path string, c *Credential) {
	if c.MaskClaims != nil && c.Decode == "" { // CFG-76
		w.fail(join(path, "maskClaims"), `maskClaims requires decode: "jwt"`)
	}
	if c.Mode == ModeMask && c.InjectHosts != nil && len(c.InjectHosts) == 0 { // CFG-73
		w.fail(join(path, "injectHosts"), `mode "mask" needs at least one host; leave injectHosts out to use `+
			`network.allowedDomains, or use mode "deny"`)
	}
}

// checkAcross makes the checks across sections. Every key by itself is right by then.
func checkAcross(w *walk, goos string, c *Config) {
	if c.Credentials == nil {
		return
	}
	x := crossCheck{
		walk:     w,
		allowed:  parsedDomains(c.Network.AllowedDomains, DomainForm{Port: true}),
		plain:    map[string]bool{},
		slots:    map[string]string{},
		patterns: !c.Filesystem.Disabled,
	}
	if t := c.Network.TLSTerminate; t != nil {
		x.excluded = parsedDomains(t.ExcludeDomains, DomainForm{})
	}
	creds := c.Credentials
	for i := range creds.Files {
		f := &creds.Files[i]
		path := "credentials.files." + decimal(i)
		if f.Mode == ModeDeny && x.patterns {
			if reason := inertDeny(f.Path, goos); reason != "" {
				w.fail(path+".path", reason)
			}
		}
		x.hosts(path, &f.Credential)
	}
	for i := range creds.EnvVars {
		x.hosts("credentials.envVars."+decimal(i), &creds.EnvVars[i].Credential)
	}
	if creds.Masks() && c.Network.TLSTerminate == nil && !creds.AllowPlaintextInject { // CFG-75
		w.fail("credentials", `mode "mask" requires network.tlsTerminate, or allowPlaintextInject: true to inject into `+
			`plain HTTP only; without either the real value could never be sent`)
	}
	x.pairs(creds)
}

// crossCheck is what the checks of credentials look things up in.
type crossCheck struct {
	*walk
	allowed  []Domain          // network.allowedDomains
	excluded []Domain          // network.tlsTerminate.excludeDomains
	plain    map[string]bool   // variable -> masked as a whole
	slots    map[string]string // variable -> path of the awsPairs field that names it
	patterns bool              // whether CFG-64 applies
}

// hosts checks where one credential may be injected (CFG-72, CFG-74).
func (x *crossCheck) hosts(path string, c *Credential) {
	for i, entry := range parsedDomains(c.InjectHosts, DomainForm{}) {
		at := path + ".injectHosts." + decimal(i)
		switch {
		case !covered(entry, x.allowed):
			x.fail(at, quoteEntry(entry.Text)+" is not reachable via network.allowedDomains; add it there or remove it here")
		case c.Mode == ModeMask && covered(entry, x.excluded):
			x.fail(at, quoteEntry(entry.Text)+" is excluded from TLS termination by network.tlsTerminate.excludeDomains, "+
				"so the credential could not be injected there")
		}
	}
	if c.Mode != ModeMask || c.InjectHosts != nil || len(x.allowed) == 0 {
		return
	}
	open := func(d Domain) bool { return !covered(d, x.excluded) }
	if !slices.ContainsFunc(x.allowed, open) {
		x.fail(path, "network.tlsTerminate.excludeDomains excludes all of network.allowedDomains from TLS termination, "+
			"so the credential could be injected nowhere")
	}
}

// pairs checks credentials.awsPairs (CFG-77).
func (x *crossCheck) pairs(creds *Credentials) {
	for i := range creds.EnvVars {
		e := &creds.EnvVars[i]
		// A variable may be listed twice (CFG-40): each of its entries must mask it whole.
		whole := e.Mode == ModeMask && e.Extract == "" && e.Decode == ""
		before, seen := x.plain[e.Name]
		x.plain[e.Name] = whole && (before || !seen)
	}
	for i, p := range creds.AWSPairs {
		path := "credentials.awsPairs." + decimal(i)
		x.slot(path+".accessKeyIdVar", p.AccessKeyIDVar)
		x.slot(path+".secretAccessKeyVar", p.SecretAccessKeyVar)
		if p.SessionTokenVar != "" {
			x.slot(path+".sessionTokenVar", p.SessionTokenVar)
		}
	}
}

// slot checks the variable that one field of a pair names.
func (x *crossCheck) slot(path, name string) {
	if !x.plain[name] {
		x.fail(path, name+` must be listed in credentials.envVars with mode "mask" and neither extract nor decode`)
		return
	}
	if other, taken := x.slots[name]; taken {
		x.fail(path, name+" already fills "+other+"; each variable may fill only one slot")
		return
	}
	x.slots[name] = path
}

// covered reports whether a list covers an entry, ports ignored (CFG-72).
func covered(entry Domain, list []Domain) bool {
	return slices.ContainsFunc(list, func(d Domain) bool { return d.Covers(entry) })
}

// parsedDomains parses entries that are known to be valid.
func parsedDomains(entries []string, form DomainForm) []Domain {
	list := make([]Domain, 0, len(entries))
	for _, entry := range entries {
		if d, err := ParseDomain(entry, form); err == nil {
			list = append(list, d)
		}
	}
	return list
}
