package config

import (
	"strings"
	"testing"
)

func TestRequestRules(t *testing.T) {
	c := accept(t, "linux", with(t, "network.requestRules", `[{"hosts":["*","a.com:443","*.b.com","[::1]:80"],"methods":["get","M-SEARCH"],
		"paths":["/","/repos/x/**","/a%2fb/?.json","/é","/.well-known/...","/a*b"],"action":"allow"},{"hosts":["a.com"],"action":"deny","reason":"no"}]`))
	if r := c.Network.RequestRules; len(r) != 2 || len(r[0].Hosts) != 4 || len(r[0].Paths) != 6 || r[0].Action != ActionAllow || r[1].Methods != nil ||
		r[1].Paths != nil || r[1].Reason != "no" {
		t.Errorf("%+v", r)
	}
	accept(t, "linux", with(t, "network.requestRules", `[]`, "network.httpProxyPort", `8080`))
	entry := func(text string) string { return `[{"hosts":["a.com"],"action":"deny"},{` + text + `}]` }
	for _, tc := range []struct{ entry, path, reason string }{
		{`"action":"deny"`, ".hosts", "Required"},
		{`"hosts":[],"action":"deny"`, ".hosts", "at least 1 element"},
		{`"hosts":["com"],"action":"deny"`, ".hosts.0", "no dot"},
		{`"hosts":["https://a.com"],"action":"deny"`, ".hosts.0", "a host, not a URL"},
		{`"hosts":["a.com"]`, ".action", "Required"},
		{`"hosts":["a.com"],"action":"Allow"`, ".action", "allow"},
		{`"hosts":["a.com"],"action":"deny","method":["GET"]`, "", "Unrecognized key(s) in object: 'method'"},
		{`"hosts":["a.com"],"action":"deny","methods":[]`, ".methods", "at least 1 element"},
		{`"hosts":["a.com"],"action":"deny","methods":["*"]`, ".methods.0", "leave methods out"},
		{`"hosts":["a.com"],"action":"deny","methods":["GET POST"]`, ".methods.0", `Invalid method "GET POST"`},
		{`"hosts":["a.com"],"action":"deny","methods":[""]`, ".methods.0", "Invalid method"},
		{`"hosts":["a.com"],"action":"deny","paths":[]`, ".paths", "at least 1 element"},
		{`"hosts":["a.com"],"action":"deny","paths":["a"]`, ".paths.0", `must start with "/"`},
		{`"hosts":["a.com"],"action":"deny","paths":["**"]`, ".paths.0", `must start with "/"`},
		{`"hosts":["a.com"],"action":"deny","paths":["/a#b"]`, ".paths.0", "never sent"},
		{`"hosts":["a.com"],"action":"deny","paths":["/a\\b"]`, ".paths.0", `write "/"`},
		{`"hosts":["a.com"],"action":"deny","paths":["//a"]`, ".paths.0", `holds "//"`},
		{`"hosts":["a.com"],"action":"deny","paths":["/a/../b"]`, ".paths.0", `segment "." or ".."`},
		{`"hosts":["a.com"],"action":"deny","paths":["/%2E%2e"]`, ".paths.0", `segment "." or ".."`},
		{`"hosts":["a.com"],"action":"deny","paths":["/a%2"]`, ".paths.0", "two hexadecimal digits"},
		{`"hosts":["a.com"],"action":"deny","paths":["/***"]`, ".paths.0", `"***"`},
		{`"hosts":["a.com"],"action":"deny","paths":["/a\u0000"]`, ".paths.0", "control character"},
		{`"hosts":["a.com"],"action":"deny","paths":["/` + strings.Repeat("a", 1024) + `"]`, ".paths.0", "longer than 1024"},
		{`"hosts":["a.com"],"action":"deny","reason":""`, ".reason", "at least 1 character"},
		{`"hosts":["a.com"],"action":"deny","reason":null`, ".reason", "received null"},
	} {
		refuse(t, "linux", with(t, "network.requestRules", entry(tc.entry)), "network.requestRules.1"+tc.path, tc.reason)
	}
	many := "[" + strings.Repeat(`{"hosts":["a.com"],"action":"deny"},`, 1000) + `{"hosts":["a.com"],"action":"deny"}]`
	refuse(t, "linux", with(t, "network.requestRules", many), "network.requestRules", "at most 1000 element(s)")
	refuse(t, "linux", with(t, "network.requestRules", `{}`), "network.requestRules", "Expected array")
}

// TestRequestRulesReadable holds that rules are refused where the requests they judge could not be read.
func TestRequestRulesReadable(t *testing.T) {
	const rules = `[{"hosts":["x.com"],"action":"deny"},{"hosts":["y.com","a.pinned.com:443"],"action":"deny"}]`
	refuse(t, "linux", with(t, "network.requestRules", rules, "network.httpProxyPort", `8080`), "network.requestRules", "network.httpProxyPort")
	refuse(t, "linux", with(t, "network.requestRules", rules, "network.tlsTerminate", `{"excludeDomains":["*.pinned.com"]}`),
		"network.requestRules.1.hosts.1", `"a.pinned.com:443" is excluded from TLS termination`)
	accept(t, "linux", with(t, "network.requestRules", rules, "network.tlsTerminate", `{"excludeDomains":["pinned.com"]}`))
}
