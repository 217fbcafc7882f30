package config

import (
	"reflect"
	"runtime"
	"slices"
)

// Effect is when a change of a setting counts in a running session.
type Effect uint8

const (
	// Fixed settings stay as they were when the session began (LIB-23). It is the zero value: a setting that no table
	// knows must not be taken for one that has an effect.
	Fixed Effect = iota
	// NextLaunch settings count for commands launched after the change (LIB-22).
	NextLaunch
	// Live settings count from the next connection or request, for running commands too (LIB-21).
	Live
	// Ineffective settings have no effect on this platform, or none at all (CFG-30).
	Ineffective
)

// Difference is a setting that two configurations do not agree on.
type Difference struct {
	Path   string // dotted, as in the settings file
	Effect Effect // of a change from the first to the second
}

// Differences compares two configurations, deeply and setting by setting, in the order of the schema. An empty list counts
// like one that is not there, but where that means something else (credentials.*.injectHosts). first is what the session
// began with: some settings are live only if it had their section. Neither may be nil, and neither is changed.
func Differences(first, second *Config) []Difference {
	return differencesFor(runtime.GOOS, first, second)
}

// setting is a row of the table of effects.
type setting struct {
	path string
	get  func(*Config) any
	// effect tells when a change counts, on a platform (a GOOS value) and in a session that began with a configuration.
	effect func(goos string, first *Config) Effect
}

func always(e Effect) func(string, *Config) Effect { return func(string, *Config) Effect { return e } }

// only is an effect on some platforms; elsewhere the setting has none.
func only(e Effect, platforms ...string) func(string, *Config) Effect {
	return func(goos string, _ *Config) Effect {
		if slices.Contains(platforms, goos) {
			return e
		}
		return Ineffective
	}
}

// whenTerminating is live where TLS was terminated from the start (LIB-21), else fixed.
func whenTerminating(_ string, first *Config) Effect {
	if first.Network.TLSTerminate != nil {
		return Live
	}
	return Fixed
}

// whenCredentials is live where the session began with credentials (LIB-21).
func whenCredentials(_ string, first *Config) Effect {
	if first.Credentials != nil {
		return Live
	}
	return Fixed
}

// loopbackMode is fixed where it is a mode of the installation (LIB-23); elsewhere it is a rule for each launch.
func loopbackMode(goos string, _ *Config) Effect {
	switch goos {
	case "windows":
		return Fixed
	case "darwin":
		return NextLaunch
	}
	return Ineffective
}

// fileAccess is the set of file permissions that a Windows session makes once (LIB-23).
func fileAccess(goos string, _ *Config) Effect {
	if goos == "windows" {
		return Fixed
	}
	return NextLaunch
}

func differencesFor(goos string, first, second *Config) (list []Difference) {
	for _, row := range settingTable() {
		if !same(row.get(first), row.get(second)) {
			list = append(list, Difference{row.path, row.effect(goos, first)})
		}
	}
	return list
}

// same is deep equality in which a nil list or map is an empty one.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	switch x.Kind() {
	case reflect.Slice, reflect.Map:
		return x.Len() == 0 && y.Len() == 0
	}
	return false
}

// settingTable is the table of LIB-21 to LIB-23, in the order of the schema. It is made when it is asked for: no start pays
// for it.
func settingTable() []setting {
	return slices.Concat(networkSettings(), tlsSettings(), filesystemSettings(), credentialSettings(), otherSettings())
}

func networkSettings() []setting {
	return []setting{
		{"network.allowedDomains", func(c *Config) any { return c.Network.AllowedDomains }, always(Live)},
		{"network.deniedDomains", func(c *Config) any { return c.Network.DeniedDomains }, always(Live)},
		{"network.deniedDomainReasons", func(c *Config) any { return c.Network.DeniedDomainReasons }, always(Live)},
		{"network.strictAllowlist", func(c *Config) any { return c.Network.StrictAllowlist }, always(Live)},
		{"network.deniedResolvedAddresses", func(c *Config) any { return c.Network.DeniedResolvedAddresses }, always(Live)},
		{"network.allowUnixSockets", func(c *Config) any { return c.Network.AllowUnixSockets }, only(NextLaunch, "linux", "darwin")},
		{"network.allowAllUnixSockets", func(c *Config) any { return c.Network.AllowAllUnixSockets }, only(NextLaunch, "linux", "darwin")},
		{"network.allowLocalBinding", func(c *Config) any { return c.Network.AllowLocalBinding }, loopbackMode},
		{"network.allowMachLookup", func(c *Config) any { return c.Network.AllowMachLookup }, only(NextLaunch, "darwin")},
		{"network.httpProxyPort", func(c *Config) any { return c.Network.HTTPProxyPort }, always(Fixed)},
		{"network.socksProxyPort", func(c *Config) any { return c.Network.SOCKSProxyPort }, always(Fixed)},
		{"network.mitmProxy", func(c *Config) any { return c.Network.MitmProxy }, always(Live)},
		{"network.parentProxy", func(c *Config) any { return c.Network.ParentProxy }, always(Fixed)},
		{"network.allowPlaintextHeaderSet", func(c *Config) any { return c.Network.AllowPlaintextHeaderSet }, always(Fixed)},
		{"network.refuseOpaqueTunnels", func(c *Config) any { return c.Network.RefuseOpaqueTunnels }, always(Fixed)},
		{"network.requireHostMatch", func(c *Config) any { return c.Network.RequireHostMatch }, always(Fixed)},
		{"network.stripResponseHeaders", func(c *Config) any { return c.Network.StripResponseHeaders }, always(Fixed)},
		{"network.ambiguousRequestTarget", func(c *Config) any { return c.Network.RequestTarget() }, always(Fixed)},
		{"network.requestRules", func(c *Config) any { return c.Network.RequestRules }, always(Live)},
	}
}

// tlsSettings are the settings of network.tlsTerminate. Whether it is there is one of its own.
func tlsSettings() []setting {
	of := func(get func(*TLSTerminate) any) func(*Config) any {
		return func(c *Config) any {
			if c.Network.TLSTerminate == nil {
				return get(&TLSTerminate{})
			}
			return get(c.Network.TLSTerminate)
		}
	}
	return []setting{
		{"network.tlsTerminate", func(c *Config) any { return c.Network.TLSTerminate != nil }, always(Fixed)},
		{"network.tlsTerminate.caCertPath", of(func(t *TLSTerminate) any { return t.CACertPath }), always(Fixed)},
		{"network.tlsTerminate.caKeyPath", of(func(t *TLSTerminate) any { return t.CAKeyPath }), always(Fixed)},
		{"network.tlsTerminate.excludeDomains", of(func(t *TLSTerminate) any { return t.ExcludeDomains }), whenTerminating},
		{"network.tlsTerminate.extraCaCertPaths", of(func(t *TLSTerminate) any { return t.ExtraCACertPaths }), always(Fixed)},
		{"network.tlsTerminate.maxTunnels", of(func(t *TLSTerminate) any { return t.TunnelLimit() }), whenTerminating},
		{"network.tlsTerminate.handshakeTimeoutMs", of(func(t *TLSTerminate) any { return t.HandshakeTimeout() }), whenTerminating},
	}
}

func filesystemSettings() []setting {
	return []setting{
		{"filesystem.disabled", func(c *Config) any { return c.Filesystem.Disabled }, fileAccess},
		{"filesystem.denyRead", func(c *Config) any { return c.Filesystem.DenyRead }, fileAccess},
		{"filesystem.allowRead", func(c *Config) any { return c.Filesystem.AllowRead }, fileAccess},
		{"filesystem.allowWrite", func(c *Config) any { return c.Filesystem.AllowWrite }, fileAccess},
		{"filesystem.denyWrite", func(c *Config) any { return c.Filesystem.DenyWrite }, fileAccess},
		{"filesystem.allowGitConfig", func(c *Config) any { return c.Filesystem.AllowGitConfig }, always(NextLaunch)},
	}
}

func credentialSettings() []setting {
	of := func(get func(*Credentials) any) func(*Config) any {
		return func(c *Config) any {
			if c.Credentials == nil {
				return get(&Credentials{})
			}
			return get(c.Credentials)
		}
	}
	return []setting{
		{"credentials.files", of(func(c *Credentials) any { return c.Files }), fileAccess},
		{"credentials.envVars", of(func(c *Credentials) any { return c.EnvVars }), always(NextLaunch)},
		{"credentials.allowPlaintextInject", of(func(c *Credentials) any { return c.AllowPlaintextInject }), always(Fixed)},
		{"credentials.awsPairs", of(func(c *Credentials) any { return c.AWSPairs }), always(NextLaunch)},
		{"credentials.sigv4", of(func(c *Credentials) any { return c.SigV4.orDefaults() }), whenCredentials},
	}
}

// orDefaults fills in what is not given (CRED-30).
func (s SigV4) orDefaults() SigV4 {
	for _, field := range []*string{&s.Streaming, &s.Presigned, &s.SigV4A} {
		if *field == "" {
			*field = SigV4Deny
		}
	}
	return s
}

func otherSettings() []setting {
	return []setting{
		{"ignoreViolations", func(c *Config) any { return c.IgnoreViolations }, always(Live)},
		{"enableWeakerNestedSandbox", func(c *Config) any { return c.EnableWeakerNestedSandbox }, only(NextLaunch, "linux")},
		{"allowNestedUserNamespaces", func(c *Config) any { return c.AllowNestedUserNamespaces }, only(NextLaunch, "linux")},
		{"enableWeakerNetworkIsolation", func(c *Config) any { return c.EnableWeakerNetworkIsolation }, only(NextLaunch, "darwin")},
		{"allowAppleEvents", func(c *Config) any { return c.AllowAppleEvents }, only(NextLaunch, "darwin")},
		{"allowPty", func(c *Config) any { return c.AllowPty }, only(NextLaunch, "darwin")},
		{"mandatoryDenySearchDepth", func(c *Config) any { return c.SearchDepth() }, only(NextLaunch, "linux")},
		{"javaAgentJarPath", func(c *Config) any { return c.JavaAgentJarPath }, always(NextLaunch)},
		{"git.safeDirectories", func(c *Config) any { return c.Git.SafeDirectories }, always(NextLaunch)},
		{"ripgrep", func(c *Config) any { return c.Ripgrep }, always(Ineffective)},
		{"seccomp", func(c *Config) any { return c.Seccomp }, always(Ineffective)},
		{"bwrapPath", func(c *Config) any { return c.BwrapPath }, always(Ineffective)},
		{"socatPath", func(c *Config) any { return c.SocatPath }, always(Ineffective)},
		{"windows.backend", func(c *Config) any { return c.Windows.Backend }, only(Fixed, "windows")},
		{"windows.sandboxUser", func(c *Config) any { return c.Windows.Account() }, only(Fixed, "windows")},
		{"windows.sublayerGuid", func(c *Config) any { return c.Windows.Sublayer() }, only(Fixed, "windows")},
		{"windows.proxyPortRange", func(c *Config) any { return c.Windows.Ports() }, only(Fixed, "windows")},
		{"windows.srtWin", func(c *Config) any { return c.Windows.SrtWin }, always(Ineffective)},
	}
}
