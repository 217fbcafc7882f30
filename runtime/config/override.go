package config

import (
	"runtime"
	"slices"
)

// Override is what one command's own configuration may say (LIB-13). The zero value changes nothing. Build one in Go code,
// or get one from [DecodeOverride]. It is plain data: it may be read by several goroutines while none changes it.
type Override struct {
	Filesystem  *FilesystemOverride // nil: the session's section, disabled included
	Network     NetworkOverride
	Credentials *Credentials // replaces the session's section whole; nil: keeps it

	AllowNestedUserNamespaces *bool // nil: the session's
	// EnableWeakerNestedSandbox decides for this command whether it may be started in mode confined, and whether the processes of
	// a surrounding container are kept from it in mode nested (docs/modes.md). nil: the session's.
	EnableWeakerNestedSandbox *bool
	AllowPty                  *bool // nil: the session's

	Git Git // SafeDirectories are appended to the session's
}

// FilesystemOverride is the section filesystem of an override (FS-60). A nil list keeps the session's list; an empty one that
// is not nil replaces it by nothing.
type FilesystemOverride struct {
	DenyRead, AllowRead, AllowWrite, DenyWrite []PathEntry
	// Disabled decides alone, whatever the session says (FS-61): the zero value turns the rules on.
	Disabled bool
}

// NetworkOverride is the section network of an override.
type NetworkOverride struct {
	// AllowedDomains are the hosts that masked credentials are injected for, where they do not name any themselves. They
	// open nothing: hosts are judged by the session's lists. nil: the session's.
	AllowedDomains []string
}

// DecodeOverride reads an override in the form of the reference's custom configuration: a settings file with nothing
// required. A key that cannot be overridden for one command is an error that names it (LIB-13), and so is one that no
// settings file has. The error is a *[SyntaxError] when data is not JSON, else an *[Error] with every issue. What an override
// means together with the session's settings is checked when it is applied: see [Override.Apply].
func DecodeOverride(data []byte) (*Override, error) {
	tree, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	var w walk
	o := new(Override)
	overrideNode(runtime.GOOS).decode(&w, "", tree, o)
	if len(w.issues) > 0 {
		return nil, &Error{Issues: w.issues}
	}
	return o, nil
}

// Apply gives the configuration that is in force for one command: a copy of the session's, which shares nothing with it or
// with the override. It is checked like a settings file (LIB-2), and the error is an *[Error]. Of a nil override it is a
// copy. Neither argument is changed, and both may be read by others meanwhile.
//
// network.allowedDomains of the result is the default of credentials.*.injectHosts and nothing else: hosts are judged by
// the session's list.
func (o *Override) Apply(session *Config) (*Config, error) {
	c := session.Clone()
	if o == nil {
		return c, nil
	}
	if f := o.Filesystem; f != nil {
		c.Filesystem.Disabled = f.Disabled
		for _, l := range [...]struct {
			to   *[]PathEntry
			from []PathEntry
		}{{&c.Filesystem.DenyRead, f.DenyRead}, {&c.Filesystem.AllowRead, f.AllowRead}, {&c.Filesystem.AllowWrite, f.AllowWrite},
			{&c.Filesystem.DenyWrite, f.DenyWrite}} {
			if l.from != nil {
				*l.to = slices.Clone(l.from)
			}
		}
	}
	if o.Credentials != nil {
		c.Credentials = o.Credentials.clone()
	}
	if o.Network.AllowedDomains != nil {
		c.Network.AllowedDomains = slices.Clone(o.Network.AllowedDomains)
	}
	if o.AllowNestedUserNamespaces != nil {
		c.AllowNestedUserNamespaces = *o.AllowNestedUserNamespaces
	}
	if o.EnableWeakerNestedSandbox != nil {
		c.EnableWeakerNestedSandbox = *o.EnableWeakerNestedSandbox
	}
	if o.AllowPty != nil {
		c.AllowPty = *o.AllowPty
	}
	c.Git.SafeDirectories = append(c.Git.SafeDirectories, o.Git.SafeDirectories...)
	return c, c.Validate()
}

// overrideNode is the schema of an override: the keys of a settings file that count for one command, with the same checks.
func overrideNode(goos string) node[Override] {
	fields := []field[Override]{
		optional("filesystem", func(o *Override) **FilesystemOverride { return &o.Filesystem },
			present(func() node[FilesystemOverride] { return filesystemOverrideNode(goos) })),
		optional("network", func(o *Override) *NetworkOverride { return &o.Network }, section(networkOverrideNode)),
		optional("credentials", func(o *Override) **Credentials { return &o.Credentials },
			present(func() node[Credentials] { return credentialsNode(goos) })),
		optional("allowNestedUserNamespaces", func(o *Override) **bool { return &o.AllowNestedUserNamespaces }, present(boolean)),
		optional("enableWeakerNestedSandbox", func(o *Override) **bool { return &o.EnableWeakerNestedSandbox }, present(boolean)),
		optional("allowPty", func(o *Override) **bool { return &o.AllowPty }, present(boolean)),
		optional("git", func(o *Override) *Git { return &o.Git }, section(gitNode)),
	}
	return object(strict, sessionOnly(fields, "ignoreViolations", "enableWeakerNetworkIsolation", "allowAppleEvents",
		"mandatoryDenySearchDepth", "javaAgentJarPath", "ripgrep", "seccomp", "bwrapPath", "socatPath", "windows"))
}

func filesystemOverrideNode(goos string) node[FilesystemOverride] {
	type override = FilesystemOverride
	paths := list(pathNode())
	return object(strict, sessionOnly([]field[override]{
		optional("disabled", func(f *override) *bool { return &f.Disabled }, boolean()),
		optional("denyRead", func(f *override) *[]PathEntry { return &f.DenyRead }, paths),
		optional("allowRead", func(f *override) *[]PathEntry { return &f.AllowRead }, paths),
		optional("allowWrite", func(f *override) *[]PathEntry { return &f.AllowWrite }, paths),
		optional("denyWrite", func(f *override) *[]PathEntry { return &f.DenyWrite }, paths),
	}, "allowGitConfig"))
}

func networkOverrideNode() node[NetworkOverride] {
	return object(strict, sessionOnly([]field[NetworkOverride]{
		optional("allowedDomains", func(n *NetworkOverride) *[]string { return &n.AllowedDomains }, domains(DomainForm{Port: true})),
	}, "deniedDomains", "deniedDomainReasons", "strictAllowlist", "deniedResolvedAddresses", "allowUnixSockets", "allowAllUnixSockets",
		"allowLocalBinding", "allowMachLookup", "httpProxyPort", "socksProxyPort", "mitmProxy", "parentProxy", "filterRequest",
		"allowPlaintextHeaderSet", "refuseOpaqueTunnels", "requireHostMatch", "stripResponseHeaders", "ambiguousRequestTarget", "requestRules",
		"tlsTerminate"))
}

// sessionOnly adds the keys that count for the whole session alone, so that they are refused by a reason that helps.
func sessionOnly[S any](fields []field[S], names ...string) []field[S] {
	for _, name := range names {
		fields = append(fields, forbidden[S](name, "cannot be overridden for one command; it counts for the whole session: "+
			"remove it here and change the session's settings"))
	}
	return fields
}
