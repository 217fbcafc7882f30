package config

// This file is the table "All keys": every key once, with its type, its range and what it must look like.

// configNode is the schema of a whole settings file under the path rules of a platform (a GOOS value). It is made
// anew for each use, so that a run which reads no settings file does not pay for it.
func configNode(goos string) node[Config] {
	return object(open, []field[Config]{
		required("network", func(c *Config) *Network { return &c.Network }, networkNode()),
		required("filesystem", func(c *Config) *Filesystem { return &c.Filesystem }, filesystemNode(goos)),
		optional("credentials", func(c *Config) **Credentials { return &c.Credentials },
			present(func() node[Credentials] { return credentialsNode(goos) })),
		optional("ignoreViolations", func(c *Config) *map[string][]string { return &c.IgnoreViolations },
			dictionary(list(text()))),
		optional("enableWeakerNestedSandbox", func(c *Config) *bool { return &c.EnableWeakerNestedSandbox }, boolean()),
		optional("allowNestedUserNamespaces", func(c *Config) *bool { return &c.AllowNestedUserNamespaces }, boolean()),
		optional("enableWeakerNetworkIsolation", func(c *Config) *bool { return &c.EnableWeakerNetworkIsolation }, boolean()),
		optional("allowAppleEvents", func(c *Config) *bool { return &c.AllowAppleEvents }, boolean()),
		optional("allowPty", func(c *Config) *bool { return &c.AllowPty }, boolean()),
		optional("mandatoryDenySearchDepth", func(c *Config) *int { return &c.MandatoryDenySearchDepth }, integer(1, 10)),
		optional("javaAgentJarPath", func(c *Config) *string { return &c.JavaAgentJarPath },
			text(absolutePath(goos), withoutNUL)),
		optional("git", func(c *Config) *Git { return &c.Git }, section(gitNode)),
		optional("ripgrep", func(c *Config) **Ripgrep { return &c.Ripgrep }, present(ripgrepNode)),
		optional("seccomp", func(c *Config) **Seccomp { return &c.Seccomp }, present(seccompNode)),
		optional("bwrapPath", func(c *Config) *string { return &c.BwrapPath }, text(absolutePath(goos))),
		optional("socatPath", func(c *Config) *string { return &c.SocatPath }, text(absolutePath(goos))),
		optional("windows", func(c *Config) *Windows { return &c.Windows }, section(windowsNode)),
	})
}

func networkNode() node[Network] {
	allowed, denied := DomainForm{Port: true}, DomainForm{Port: true, Any: true}
	return object(open, []field[Network]{
		required("allowedDomains", func(n *Network) *[]string { return &n.AllowedDomains }, domains(allowed)),
		required("deniedDomains", func(n *Network) *[]string { return &n.DeniedDomains }, domains(denied)),
		optional("deniedDomainReasons", func(n *Network) *map[string]string { return &n.DeniedDomainReasons },
			dictionary(text(nonEmpty))),
		optional("strictAllowlist", func(n *Network) *bool { return &n.StrictAllowlist }, boolean()),
		optional("deniedResolvedAddresses", func(n *Network) *[]string { return &n.DeniedResolvedAddresses },
			list(text(addressRange))),
		optional("allowUnixSockets", func(n *Network) *[]string { return &n.AllowUnixSockets }, list(text(withoutNUL))),
		optional("allowAllUnixSockets", func(n *Network) *bool { return &n.AllowAllUnixSockets }, boolean()),
		optional("allowLocalBinding", func(n *Network) *bool { return &n.AllowLocalBinding }, boolean()),
		optional("allowMachLookup", func(n *Network) *[]string { return &n.AllowMachLookup }, list(text(machService))),
		optional("httpProxyPort", func(n *Network) *int { return &n.HTTPProxyPort }, integer(1, 65535)),
		optional("socksProxyPort", func(n *Network) *int { return &n.SOCKSProxyPort }, integer(1, 65535)),
		optional("mitmProxy", func(n *Network) **MitmProxy { return &n.MitmProxy }, present(mitmNode)),
		optional("parentProxy", func(n *Network) *ParentProxy { return &n.ParentProxy }, section(parentProxyNode)),
		forbidden[Network]("filterRequest", "filterRequest must be a function, which only an embedding program can give; "+
			"remove it from the file"), // CFG-34
		optional("allowPlaintextHeaderSet", func(n *Network) *bool { return &n.AllowPlaintextHeaderSet }, boolean()),
		optional("refuseOpaqueTunnels", func(n *Network) *bool { return &n.RefuseOpaqueTunnels }, boolean()),
		optional("requireHostMatch", func(n *Network) *bool { return &n.RequireHostMatch }, boolean()),
		optional("stripResponseHeaders", func(n *Network) *[]string { return &n.StripResponseHeaders }, list(text(nonEmpty))),
		optional("ambiguousRequestTarget", func(n *Network) *string { return &n.AmbiguousRequestTarget },
			enum(TargetRefuse, TargetAsSpelled, TargetNormalize)),
		optional("requestRules", func(n *Network) *[]RequestRule { return &n.RequestRules }, list(requestRuleNode(), atMostRequestRules)),
		optional("tlsTerminate", func(n *Network) **TLSTerminate { return &n.TLSTerminate }, present(tlsNode)),
	}, oneTerminator, readableRequests)
}

func mitmNode() node[MitmProxy] {
	return object(open, []field[MitmProxy]{
		required("socketPath", func(m *MitmProxy) *string { return &m.SocketPath }, text(nonEmpty, withoutNUL)),
		required("domains", func(m *MitmProxy) *[]string { return &m.Domains }, domains(DomainForm{}, atLeastOne)),
	})
}

func parentProxyNode() node[ParentProxy] {
	return object(open, []field[ParentProxy]{
		optional("http", func(p *ParentProxy) *string { return &p.HTTP }, text(proxyURL)),
		optional("https", func(p *ParentProxy) *string { return &p.HTTPS }, text(proxyURL)),
		optional("noProxy", func(p *ParentProxy) **string { return &p.NoProxy },
			present(func() node[string] { return text() })),
	})
}

func tlsNode() node[TLSTerminate] {
	return object(open, []field[TLSTerminate]{
		optional("caCertPath", func(t *TLSTerminate) *string { return &t.CACertPath }, text(nonEmpty, withoutNUL)),
		optional("caKeyPath", func(t *TLSTerminate) *string { return &t.CAKeyPath }, text(nonEmpty, withoutNUL)),
		optional("excludeDomains", func(t *TLSTerminate) *[]string { return &t.ExcludeDomains }, domains(DomainForm{})),
		optional("extraCaCertPaths", func(t *TLSTerminate) *[]string { return &t.ExtraCACertPaths },
			list(text(nonEmpty, withoutNUL))),
		optional("maxTunnels", func(t *TLSTerminate) *int { return &t.MaxTunnels }, integer(1, 65536)),
		optional("handshakeTimeoutMs", func(t *TLSTerminate) *int { return &t.HandshakeTimeoutMs }, integer(100, 600000)),
	}, certificateWithKey)
}

func filesystemNode(goos string) node[Filesystem] {
	paths := list(pathNode())
	return object(open, []field[Filesystem]{
		optional("disabled", func(f *Filesystem) *bool { return &f.Disabled }, boolean()),
		required("denyRead", func(f *Filesystem) *[]PathEntry { return &f.DenyRead }, paths),
		optional("allowRead", func(f *Filesystem) *[]PathEntry { return &f.AllowRead }, paths),
		required("allowWrite", func(f *Filesystem) *[]PathEntry { return &f.AllowWrite }, paths),
		required("denyWrite", func(f *Filesystem) *[]PathEntry { return &f.DenyWrite }, paths),
		optional("allowGitConfig", func(f *Filesystem) *bool { return &f.AllowGitConfig }, boolean()),
	}, denyPatterns(goos))
}

func credentialsNode(goos string) node[Credentials] {
	variable := text(variableName)
	sigv4 := enum(SigV4Deny, SigV4Passthrough)
	return object(strict, []field[Credentials]{
		optional("files", func(c *Credentials) *[]FileCredential { return &c.Files }, list(fileCredentialNode(goos))),
		optional("envVars", func(c *Credentials) *[]EnvCredential { return &c.EnvVars }, list(envCredentialNode())),
		optional("allowPlaintextInject", func(c *Credentials) *bool { return &c.AllowPlaintextInject }, boolean()),
		optional("awsPairs", func(c *Credentials) *[]AWSPair { return &c.AWSPairs }, list(object(strict, []field[AWSPair]{
			required("accessKeyIdVar", func(p *AWSPair) *string { return &p.AccessKeyIDVar }, variable),
			required("secretAccessKeyVar", func(p *AWSPair) *string { return &p.SecretAccessKeyVar }, variable),
			optional("sessionTokenVar", func(p *AWSPair) *string { return &p.SessionTokenVar }, variable),
		}))),
		optional("sigv4", func(c *Credentials) *SigV4 { return &c.SigV4 }, object(strict, []field[SigV4]{
			optional("streaming", func(s *SigV4) *string { return &s.Streaming }, sigv4),
			optional("presigned", func(s *SigV4) *string { return &s.Presigned }, sigv4),
			optional("sigv4a", func(s *SigV4) *string { return &s.SigV4A }, sigv4),
		})),
	})
}

func fileCredentialNode(goos string) node[FileCredential] {
	return object(open, append([]field[FileCredential]{
		required("path", func(f *FileCredential) *string { return &f.Path }, text(pathNotEmpty, withoutNUL)),
		optional("maskDuplicates", func(f *FileCredential) *bool { return &f.MaskDuplicates }, boolean()),
	}, maskFields(func(f *FileCredential) *Credential { return &f.Credential })...), maskedFile(goos),
		func(w *walk, path string, f *FileCredential) { checkMask(w, path, &f.Credential) })
}

func envCredentialNode() node[EnvCredential] {
	return object(open, append([]field[EnvCredential]{
		required("name", func(e *EnvCredential) *string { return &e.Name }, text(variableName)),
	}, maskFields(func(e *EnvCredential) *Credential { return &e.Credential })...),
		func(w *walk, path string, e *EnvCredential) { checkMask(w, path, &e.Credential) })
}

// maskFields are the keys that files and variables have in common.
func maskFields[S any](get func(*S) *Credential) []field[S] {
	return []field[S]{
		required("mode", func(s *S) *string { return &get(s).Mode }, enum(ModeDeny, ModeMask)),
		optional("extract", func(s *S) *string { return &get(s).Extract }, text(extractPattern)),
		optional("onExtractNoMatch", func(s *S) *string { return &get(s).OnExtractNoMatch },
			enum(NoMatchWarn, NoMatchDeny, NoMatchError)),
		optional("decode", func(s *S) *string { return &get(s).Decode }, enum(DecodeJWT)),
		optional("maskClaims", func(s *S) *[]string { return &get(s).MaskClaims }, list(text(nonEmpty), atLeastOne)),
		optional("injectHosts", func(s *S) *[]string { return &get(s).InjectHosts }, domains(DomainForm{})),
	}
}

func gitNode() node[Git] {
	return object(open, []field[Git]{
		optional("safeDirectories", func(g *Git) *[]string { return &g.SafeDirectories }, list(text(withoutNUL))),
	})
}

func ripgrepNode() node[Ripgrep] {
	return object(open, []field[Ripgrep]{
		required("command", func(r *Ripgrep) *string { return &r.Command }, text()),
		optional("args", func(r *Ripgrep) *[]string { return &r.Args }, list(text())),
		optional("argv0", func(r *Ripgrep) *string { return &r.Argv0 }, text()),
	})
}

func seccompNode() node[Seccomp] {
	return object(open, []field[Seccomp]{
		optional("applyPath", func(s *Seccomp) *string { return &s.ApplyPath }, text()),
		optional("argv0", func(s *Seccomp) *string { return &s.Argv0 }, text()),
	})
}

func srtWinNode() node[SrtWin] {
	return object(open, []field[SrtWin]{
		required("path", func(s *SrtWin) *string { return &s.Path }, text(nonEmpty)),
	})
}

func windowsNode() node[Windows] {
	return object(open, []field[Windows]{
		optional("backend", func(s *Windows) *string { return &s.Backend }, enum("srt-win", "mxc")),
		optional("sandboxUser", func(s *Windows) *string { return &s.SandboxUser }, text(nonEmpty, atMost20)),
		optional("sublayerGuid", func(s *Windows) *string { return &s.SublayerGUID }, text(guid)),
		optional("wfpSublayerGuid", func(s *Windows) *string { return &s.WFPSublayerGUID }, text(guid)),
		optional("proxyPortRange", func(s *Windows) *PortRange { return &s.ProxyPortRange }, portRangeNode()),
		optional("srtWin", func(s *Windows) **SrtWin { return &s.SrtWin }, present(srtWinNode)),
	})
}

// domains is a list of domain entries of one form.
func domains(form DomainForm, rules ...rule[int]) node[[]string] {
	return list(text(func(entry string) string {
		if _, err := ParseDomain(entry, form); err != nil {
			return err.Error()
		}
		return ""
	}), rules...)
}
