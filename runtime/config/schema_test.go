package config

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"
)

func fullConfig(t testing.TB) *Config {
	t.Helper()
	data, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	return accept(t, "linux", data)
}

// walkFields calls visit for every exported leaf below v.
func walkFields(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				walkFields(v.Field(i), path+"."+f.Name, visit)
			}
		}
	case reflect.Pointer:
		visit(path, v)
		if !v.IsNil() {
			walkFields(v.Elem(), path, visit)
		}
	default:
		visit(path, v)
	}
}

// TestEveryKey proves that no field of Config lacks a key in the schema, and that no key of the file is unknown.
func TestEveryKey(t *testing.T) {
	c := fullConfig(t)
	walkFields(reflect.ValueOf(*c), "Config", func(path string, v reflect.Value) {
		switch path {
		case "Config.Network.MitmProxy", // excludes tlsTerminate, see TestMitmProxy
			"Config.Network.RequestRules": // excludes httpProxyPort, see TestRequestRules
			return
		}
		if v.IsZero() {
			t.Errorf("%s is not set by testdata/full.json: the schema has no key for it, or the file lacks it", path)
		}
	})
	for i := range c.Credentials.Files {
		f := reflect.ValueOf(c.Credentials.Files[i])
		walkFields(f, "file", func(path string, v reflect.Value) {
			if v.IsZero() {
				t.Errorf("%s is not set", path)
			}
		})
	}
	if keys := c.UnknownKeys(); len(keys) != 0 {
		t.Errorf("unknown keys: %q", keys)
	}
	none := accept(t, "linux", with(t, "network.parentProxy.noProxy", `""`)).Network.ParentProxy
	if none.NoProxy == nil || *none.NoProxy != "" {
		t.Error("CFG-33: an empty noProxy is not told from an absent one")
	}
	if got := c.Windows.ProxyPortRange; got != (PortRange{1, 65}) {
		t.Errorf("CFG-36: proxyPortRange is %v", got)
	}
	if want := (PathEntry{Path: "/a*/", Literal: true}); c.Filesystem.DenyRead[1] != want {
		t.Errorf("CFG-60: %+v", c.Filesystem.DenyRead)
	}
}

func TestMitmProxy(t *testing.T) {
	c := accept(t, "linux", with(t, "network.mitmProxy", `{"socketPath":"/s","domains":["*.x.com","::1","[::2]"]}`))
	if m := c.Network.MitmProxy; m == nil || m.SocketPath != "/s" || len(m.Domains) != 3 {
		t.Errorf("NET-63: %+v", m)
	}
	for _, tc := range []struct{ value, path, reason string }{
		{`{"domains":["x.com"]}`, "network.mitmProxy.socketPath", "Required"},
		{`{"socketPath":"","domains":["x.com"]}`, "network.mitmProxy.socketPath", "at least 1 character"},
		{`{"socketPath":"a\u0000b","domains":["x.com"]}`, "network.mitmProxy.socketPath", "NUL"},
		{`{"socketPath":"/s"}`, "network.mitmProxy.domains", "Required"},
		{`{"socketPath":"/s","domains":[]}`, "network.mitmProxy.domains", "at least 1 element"},
		{`{"socketPath":"/s","domains":["x.com:443"]}`, "network.mitmProxy.domains.0", "invalid domain pattern"},
		{`{"socketPath":"/s","domains":["*"]}`, "network.mitmProxy.domains.0", "overly broad"},
	} {
		refuse(t, "linux", with(t, "network.mitmProxy", tc.value), tc.path, tc.reason)
	}
}

func TestDefaultValues(t *testing.T) {
	c, full := &Config{}, fullConfig(t)
	tls, none := &TLSTerminate{}, &Credential{}
	for _, tc := range []struct {
		key       string
		got, want any
	}{
		{"mandatoryDenySearchDepth", c.SearchDepth(), 3},
		{"mandatoryDenySearchDepth", full.SearchDepth(), 10},
		{"ambiguousRequestTarget", c.Network.RequestTarget(), TargetRefuse},
		{"ambiguousRequestTarget", full.Network.RequestTarget(), TargetNormalize},
		{"maxTunnels", tls.TunnelLimit(), 256},
		{"maxTunnels", full.Network.TLSTerminate.TunnelLimit(), 65536},
		{"handshakeTimeoutMs", tls.HandshakeTimeout(), 10 * time.Second},
		{"handshakeTimeoutMs", full.Network.TLSTerminate.HandshakeTimeout(), 100 * time.Millisecond},
		{"onExtractNoMatch", none.NoMatch(), NoMatchWarn},
		{"onExtractNoMatch", full.Credentials.Files[0].NoMatch(), NoMatchError},
		{"sandboxUser", c.Windows.Account(), "srt-sandbox"},
		{"sandboxUser", full.Windows.Account(), "12345678901234567890"},
		{"proxyPortRange", c.Windows.Ports(), PortRange{60080, 60089}},
		{"proxyPortRange", full.Windows.Ports(), PortRange{1, 65}},
		{"CFG-36 sublayerGuid", c.Windows.Sublayer(), ""},
		{"CFG-36 sublayerGuid", full.Windows.Sublayer(), "01234567-89ab-CDEF-0123-456789abcdef"},
		{"CFG-36 sublayerGuid", (&Windows{WFPSublayerGUID: "x"}).Sublayer(), "x"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %v want %v", tc.key, tc.got, tc.want)
		}
	}
}

func TestClone(t *testing.T) {
	c := fullConfig(t)
	c.Network.MitmProxy = &MitmProxy{SocketPath: "/s", Domains: []string{"x.com"}}
	c.Network.RequestRules = []RequestRule{{Hosts: []string{"a.com"}, Methods: []string{"GET"}, Paths: []string{"/"}, Action: ActionDeny}}
	c.unknown = []UnknownKey{{Path: "zeta"}}
	d := c.Clone()
	if !reflect.DeepEqual(c, d) {
		t.Fatalf("a clone differs:\n%+v\n%+v", c, d)
	}
	seen := map[uintptr]string{}
	memory(reflect.ValueOf(c), "c", func(path string, at uintptr) { seen[at] = path })
	memory(reflect.ValueOf(d), "d", func(path string, at uintptr) {
		if other, shared := seen[at]; shared {
			t.Errorf("%s shares memory with %s", path, other)
		}
	})
	if len(seen) < 30 {
		t.Errorf("only %d pieces of memory compared", len(seen))
	}
	if (*Config)(nil).Clone() != nil {
		t.Error("the clone of nil is not nil")
	}
	e := (&Config{Credentials: &Credentials{EnvVars: []EnvCredential{{}, {Credential: Credential{InjectHosts: []string{}}}}}}).Clone()
	if vars := e.Credentials.EnvVars; vars[0].InjectHosts != nil || vars[1].InjectHosts == nil {
		t.Error("CFG-73: a clone confuses an absent list with an empty one")
	}
}

// memory calls visit for every pointer, slice and map that can be reached from v.
func memory(v reflect.Value, path string, visit func(path string, at uintptr)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(path, v.Pointer())
			memory(v.Elem(), path, visit)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			visit(path, v.Pointer())
		}
		for i := range v.Len() {
			memory(v.Index(i), path+"[]", visit)
		}
	case reflect.Map:
		if v.Len() > 0 {
			visit(path, v.Pointer())
		}
		for it := v.MapRange(); it.Next(); {
			memory(it.Value(), path+"[]", visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			memory(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	}
}

func TestPerKeyRules(t *testing.T) {
	for _, tc := range []struct{ rule, key, value, path, reason string }{
		{"CFG-32", "network.allowMachLookup", `["a*b"]`, "network.allowMachLookup.0", "only at its end"},
		{"CFG-32", "network.allowMachLookup", `["x","**"]`, "network.allowMachLookup.1", "only at its end"},
		{"CFG-32", "network.allowMachLookup", `["*.x"]`, "network.allowMachLookup.0", "only at its end"},
		{"CFG-33", "network.parentProxy.http", `"ftp://x"`, "network.parentProxy.http", "Invalid url"},
		{"CFG-33", "network.parentProxy.https", `""`, "network.parentProxy.https", "Invalid url"},
		{"CFG-33", "network.parentProxy.noProxy", `[]`, "network.parentProxy.noProxy", "Expected string, received array"},
		{"CFG-34, case 14", "network.filterRequest", `null`, "network.filterRequest", "filterRequest must be a function"},
		{"CFG-34", "network.filterRequest", `"x"`, "network.filterRequest", "embedding program"},
		{"CFG-36", "windows.proxyPortRange", `[1]`, "windows.proxyPortRange", "two ports"},
		{"CFG-36", "windows.proxyPortRange", `[1,2,3]`, "windows.proxyPortRange", "two ports"},
		{"CFG-36", "windows.proxyPortRange", `"1-2"`, "windows.proxyPortRange", "Expected array"},
		{"CFG-36", "windows.proxyPortRange", `[0,2]`, "windows.proxyPortRange.0", "greater than or equal to 1"},
		{"CFG-36", "windows.proxyPortRange", `[65535,65536]`, "windows.proxyPortRange.1", "less than or equal to 65535"},
		{"CFG-36", "windows.proxyPortRange", `[2,1]`, "windows.proxyPortRange", "must not be above"},
		{"CFG-36", "windows.proxyPortRange", `[1,66]`, "windows.proxyPortRange", "at most 64"},
		{"CFG-36", "windows.proxyPortRange", `["1",2]`, "windows.proxyPortRange.0", "Expected number"},
		{"CFG-36", "windows.proxyPortRange", `[1,1.5]`, "windows.proxyPortRange.1", "Expected integer"},
		{"CFG-36", "windows.sublayerGuid", `"{01234567-89ab-cdef-0123-456789abcdef}"`, "windows.sublayerGuid", "Invalid GUID"},
		{"CFG-36", "windows.wfpSublayerGuid", `"0123456789abcdef0123456789abcdef"`, "windows.wfpSublayerGuid", "Invalid GUID"},
		{"CFG-36", "windows.sublayerGuid", `"g1234567-89ab-cdef-0123-456789abcdef"`, "windows.sublayerGuid", "Invalid GUID"},
		{"CFG-36", "windows.sublayerGuid", `"012345670-9ab-cdef-0123-456789abcdef"`, "windows.sublayerGuid", "Invalid GUID"},
		{"CFG-41, case 14", "network.tlsTerminate.excludeDomains", `["x.com:443"]`, "network.tlsTerminate.excludeDomains.0", "takes no ports"},
		{"CFG-45", "network.allowedDomains", `["a.com","foo"]`, "network.allowedDomains.1", "no dot"},
		{"CFG-46, case 9", "network.allowedDomains", `["http://x.com"]`, "network.allowedDomains.0", "not a URL"},
		{"CFG-47, case 9", "network.allowedDomains", `["*"]`, "network.allowedDomains.0", "too broad"},
		{"CFG-49, case 13", "network.deniedDomains", `["evil.com "]`, "network.deniedDomains.0", "byte other than"},
		{"CFG-55, case 15", "network.deniedResolvedAddresses", `["10.0.0.0/8","[::1]"]`, "network.deniedResolvedAddresses.1", "unbracketed"},
		{"CFG-55, case 15", "network.deniedResolvedAddresses", `["10.0.0.0/33"]`, "network.deniedResolvedAddresses.0", "from 0 to 32"},
		{"FS-4", "network.allowUnixSockets", `["/a\u0000"]`, "network.allowUnixSockets.0", "NUL"},
		{"FS-4", "git.safeDirectories", `["/a\u0000"]`, "git.safeDirectories.0", "NUL"},
		{"FS-4", "javaAgentJarPath", `"/a\u0000"`, "javaAgentJarPath", "NUL"},
		{"stripResponseHeaders", "network.stripResponseHeaders", `[""]`, "network.stripResponseHeaders.0", "at least 1"},
		{"extraCaCertPaths", "network.tlsTerminate.extraCaCertPaths", `[""]`, "network.tlsTerminate.extraCaCertPaths.0", "at least 1"},
		{"CFG-38", "ignoreViolations", `{"b":[1],"a":["x"]}`, "ignoreViolations.b.0", "Expected string"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			refuse(t, "linux", with(t, tc.key, tc.value), tc.path, tc.reason)
		})
	}
	accept(t, "linux", with(t, "network.deniedDomains", `["*","*:22"]`, "network.allowMachLookup", `["","*","com.x.*"]`,
		"windows.proxyPortRange", `[60080.0,6.0144e4]`))
}

// TestValidateBuilt makes sure that a value built in Go code cannot carry what a file could not (LIB-2).
func TestValidateBuilt(t *testing.T) {
	for _, tc := range []struct {
		path string
		set  func(c *Config)
	}{
		{"network.allowedDomains.0", func(c *Config) { c.Network.AllowedDomains = []string{"*"} }},
		{"network.httpProxyPort", func(c *Config) { c.Network.HTTPProxyPort = -1 }},
		{"network.mitmProxy.domains", func(c *Config) { c.Network.MitmProxy = &MitmProxy{SocketPath: "/s"} }},
		{"network.deniedDomainReasons.x", func(c *Config) { c.Network.DeniedDomainReasons = map[string]string{"x": ""} }},
		{"filesystem.denyRead.0", func(c *Config) { c.Filesystem.DenyRead = []PathEntry{{}} }},
		{"filesystem.denyRead.0", func(c *Config) { c.Filesystem.DenyRead = []PathEntry{{Path: "/a*/"}} }},
		{"filesystem.allowRead.0", func(c *Config) { c.Filesystem.AllowRead = []PathEntry{{Path: "a\x00", Literal: true}} }},
		{"mandatoryDenySearchDepth", func(c *Config) { c.MandatoryDenySearchDepth = 11 }},
		{"windows.proxyPortRange.0", func(c *Config) { c.Windows.ProxyPortRange.High = 5 }},
		{"windows.srtWin.path", func(c *Config) { c.Windows.SrtWin = &SrtWin{} }},
		{"bwrapPath", func(c *Config) { c.BwrapPath = "bwrap" }},
		{"credentials.envVars.0.name", func(c *Config) {
			c.Credentials = &Credentials{EnvVars: []EnvCredential{{Credential: Credential{Mode: ModeDeny}}}}
		}},
		{"credentials.files.0.mode", func(c *Config) { c.Credentials = &Credentials{Files: []FileCredential{{Path: "x"}}} }},
		{"credentials", func(c *Config) {
			c.Credentials = &Credentials{Files: []FileCredential{{Path: "x", Credential: Credential{Mode: ModeMask}}}}
		}},
	} {
		c := Default()
		tc.set(c)
		var issues *Error
		if err := c.Validate(); !errors.As(err, &issues) || len(issues.Issues) != 1 || issues.Issues[0].Path != tc.path {
			t.Errorf("LIB-2: %v; want one issue at %s", err, tc.path)
		}
	}
}

// TestEveryKeyIsDocumented keeps docs/settings.md from falling behind the schema.
func TestEveryKeyIsDocumented(t *testing.T) {
	docs, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parseJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{"mitmProxy": true, "socketPath": true, "domains": true, "filterRequest": true}
	collectKeys(tree, keys)
	if len(keys) < 75 {
		t.Errorf("only %d keys found", len(keys))
	}
	for key := range keys {
		word := regexp.MustCompile("`[^`]*\\b" + regexp.QuoteMeta(key) + "\\b[^`]*`")
		if !word.Match(docs) {
			t.Errorf("docs/settings.md does not mention %s", key)
		}
	}
}

// collectKeys adds the keys of every object of a settings file, but not those that are data.
func collectKeys(tree any, keys map[string]bool) {
	switch value := tree.(type) {
	case []any:
		for _, item := range value {
			collectKeys(item, keys)
		}
	case map[string]any:
		for key, item := range value {
			keys[key] = true
			if key != "deniedDomainReasons" && key != "ignoreViolations" {
				collectKeys(item, keys)
			}
		}
	}
}
