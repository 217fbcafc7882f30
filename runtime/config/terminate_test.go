package config

import "testing"

// TestTermination_TLS1: every key of network.tlsTerminate, with its bounds and the message beyond them.
func TestTermination_TLS1(t *testing.T) {
	const at = "network.tlsTerminate"
	for _, value := range []string{`{}`, `{"maxTunnels":1}`, `{"maxTunnels":65536}`, `{"handshakeTimeoutMs":100}`, `{"handshakeTimeoutMs":600000}`,
		`{"caCertPath":"a","caKeyPath":"b"}`, `{"extraCaCertPaths":["~/a","b"]}`, `{"excludeDomains":["a.com","*.b.com","127.0.0.1","[::1]"]}`} {
		accept(t, "linux", with(t, at, value))
	}
	for _, tc := range []struct{ value, path, reason string }{
		{`{"caCertPath":"a"}`, "", "caCertPath and caKeyPath must be provided together"},
		{`{"caKeyPath":"b"}`, "", "caCertPath and caKeyPath must be provided together"},
		{`{"maxTunnels":0}`, ".maxTunnels", "greater than or equal to 1"},
		{`{"maxTunnels":65537}`, ".maxTunnels", "less than or equal to 65536"},
		{`{"maxTunnels":1.5}`, ".maxTunnels", "Expected integer"},
		{`{"handshakeTimeoutMs":99}`, ".handshakeTimeoutMs", "greater than or equal to 100"},
		{`{"handshakeTimeoutMs":600001}`, ".handshakeTimeoutMs", "less than or equal to 600000"},
		{`{"excludeDomains":["a.com:443"]}`, ".excludeDomains.0", "takes no ports"},
		{`{"extraCaCertPaths":"a"}`, ".extraCaCertPaths", "Expected array"},
		{`true`, "", "Expected object"},
	} {
		refuse(t, "linux", with(t, at, tc.value), at+tc.path, tc.reason)
	}
}

// TestFiltering_REQ1: the keys of the table of the rule; the filter itself is none of a settings file, whatever its value.
func TestFiltering_REQ1(t *testing.T) {
	for _, value := range []string{`null`, `true`, `"f"`, `{}`, `[]`, `0`} {
		refuse(t, "linux", with(t, "network.filterRequest", value), "network.filterRequest", "filterRequest must be a function")
	}
	for _, key := range []string{"allowPlaintextHeaderSet", "refuseOpaqueTunnels", "requireHostMatch"} {
		accept(t, "linux", with(t, "network."+key, `true`))
		refuse(t, "linux", with(t, "network."+key, `1`), "network."+key, "Expected boolean")
	}
	for _, mode := range []string{TargetRefuse, TargetAsSpelled, TargetNormalize} {
		accept(t, "linux", with(t, "network.ambiguousRequestTarget", `"`+mode+`"`))
	}
	refuse(t, "linux", with(t, "network.ambiguousRequestTarget", `"asspelled"`), "network.ambiguousRequestTarget", "Invalid enum value")
	accept(t, "linux", with(t, "network.stripResponseHeaders", `["set_cookie"]`))
	refuse(t, "linux", with(t, "network.stripResponseHeaders", `"a"`), "network.stripResponseHeaders", "Expected array")
}

// TestMasks_CRED1: a mask needs a way on which values are put in, and every key has its values.
func TestMasks_CRED1(t *testing.T) {
	mask := `{"envVars":[{"name":"X","mode":"mask"}]}`
	allowed := `["a.com"]`
	refuse(t, "linux", with(t, "network.allowedDomains", allowed, "credentials", mask), "credentials", "tlsTerminate")
	accept(t, "linux", with(t, "network.allowedDomains", allowed, "network.tlsTerminate", `{}`, "credentials", mask))
	accept(t, "linux", with(t, "network.allowedDomains", allowed, "credentials", `{"envVars":[{"name":"X","mode":"mask"}],"allowPlaintextInject":true}`))
	accept(t, "linux", with(t, "credentials", `{"envVars":[{"name":"X","mode":"deny"}],"files":[{"path":"f","mode":"deny"}]}`))
	for _, tc := range []struct{ value, path, reason string }{
		{`{"envVars":[{"name":"X","mode":"hide"}]}`, "credentials.envVars.0.mode", "Expected 'deny' | 'mask'"},
		{`{"envVars":[{"name":"X","mode":"mask","onExtractNoMatch":"ask"}]}`, "credentials.envVars.0.onExtractNoMatch", "Expected 'warn' | 'deny' | 'error'"},
		{`{"files":[{"path":"f","mode":"mask","decode":"hex"}]}`, "credentials.files.0.decode", "Expected 'jwt'"},
		{`{"sigv4":{"streaming":"allow"}}`, "credentials.sigv4.streaming", "Expected 'deny' | 'passthrough'"},
		{`{"awsPairs":[{"accessKeyIdVar":"A"}]}`, "credentials.awsPairs.0.secretAccessKeyVar", "Required"},
	} {
		refuse(t, "linux", with(t, "network.allowedDomains", allowed, "network.tlsTerminate", `{}`, "credentials", tc.value), tc.path, tc.reason)
	}
	c := accept(t, "linux", with(t, "network.allowedDomains", allowed, "network.tlsTerminate", `{}`, "credentials", mask))
	if c.Credentials.AllowPlaintextInject || c.Credentials.SigV4 != (SigV4{}) || c.Credentials.EnvVars[0].OnExtractNoMatch != "" {
		t.Errorf("what is not said is the strictest: %+v", c.Credentials)
	}
}
