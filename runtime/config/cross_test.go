package config

import (
	"errors"
	"testing"
)

func TestTermination(t *testing.T) {
	for _, key := range []string{"caCertPath", "caKeyPath"} {
		refuse(t, "linux", with(t, "network.tlsTerminate."+key, `"x"`), "network.tlsTerminate", "must be provided together")
		refuse(t, "linux", with(t, "network.tlsTerminate", `{"caCertPath":"a","caKeyPath":"b","`+key+`":""}`),
			"network.tlsTerminate."+key, "at least 1 character")
	}
	accept(t, "linux", with(t, "network.tlsTerminate", `{"caCertPath":"a","caKeyPath":"b"}`))
	accept(t, "linux", with(t, "network.tlsTerminate", `{}`))
	// CFG-70, LIB-3
	refuse(t, "linux", with(t, "network.tlsTerminate", `{}`, "network.mitmProxy", `{"socketPath":"s","domains":["x.com"]}`),
		"network", "network.tlsTerminate and network.mitmProxy are mutually exclusive")
}

// credential is one row: a credential under some network settings.
type credential struct {
	rule, allowed, exclude, mask, path, reason string // path empty: accepted
}

func TestInjectHosts(t *testing.T) {
	for _, tc := range []credential{
		{"CFG-72, case 19", `"*.b.com"`, ``, `"mode":"mask","injectHosts":["x.b.com","*.c.b.com","*.b.com"]`, "", ""},
		{"CFG-72, case 19", `"*.b.com"`, ``, `"mode":"mask","injectHosts":["b.com"]`, ".injectHosts.0", "not reachable via network.allowedDomains"},
		{"CFG-72, case 19", `"a.b.com"`, ``, `"mode":"mask","injectHosts":["a.b.com","*.b.com"]`, ".injectHosts.1", "not reachable"},
		{"CFG-72 ports", `"b.com:8443"`, ``, `"mode":"mask","injectHosts":["b.com"]`, "", ""},
		{"CFG-72 canonical", `"127.1"`, ``, `"mode":"mask","injectHosts":["127.0.0.1"]`, "", ""},
		{"CFG-72 deny too", `"a.com"`, ``, `"mode":"deny","injectHosts":["b.com"]`, ".injectHosts.0", "not reachable"},
		{"CFG-72 nothing allowed", ``, ``, `"mode":"mask","injectHosts":["b.com"]`, ".injectHosts.0", "not reachable"},
		{"CFG-73", `"a.com"`, ``, `"mode":"mask","injectHosts":[]`, ".injectHosts", "at least one host"},
		{"CFG-73 deny", `"a.com"`, ``, `"mode":"deny","injectHosts":[]`, "", ""},
		{"CFG-41, case 14", `"x.com"`, ``, `"mode":"mask","injectHosts":["x.com:443"]`, ".injectHosts.0", "invalid domain pattern"},
		{"CFG-74", `"a.com","b.com"`, `"a.com"`, `"mode":"mask","injectHosts":["b.com","a.com"]`, ".injectHosts.1", "excludeDomains"},
		{"CFG-74 wildcard", `"x.a.com"`, `"*.a.com"`, `"mode":"mask","injectHosts":["x.a.com"]`, ".injectHosts.0", "excludeDomains"},
		{"CFG-74 wider than the exclusion", `"*.a.com"`, `"x.a.com"`, `"mode":"mask","injectHosts":["*.a.com"]`, "", ""},
		{"CFG-74 deny", `"a.com"`, `"a.com"`, `"mode":"deny","injectHosts":["a.com"]`, "", ""},
		{"CFG-74, case 20", `"a.com","*.b.com"`, `"a.com"`, `"mode":"mask"`, "", ""},
		{"CFG-74, case 20", `"a.com","*.b.com"`, `"a.com","*.b.com"`, `"mode":"mask"`, ".", "excludes all"},
		{"CFG-74 nothing allowed", ``, `"a.com"`, `"mode":"mask"`, "", ""},
		{"CFG-74 deny", `"a.com"`, `"a.com"`, `"mode":"deny"`, "", ""},
		{"CFG-76", `"a.com"`, ``, `"mode":"mask","maskClaims":["sub"]`, ".maskClaims", `requires decode: "jwt"`},
		{"CFG-76 deny", `"a.com"`, ``, `"mode":"deny","maskClaims":["sub"]`, ".maskClaims", `requires decode: "jwt"`},
		{"CFG-76 empty", `"a.com"`, ``, `"mode":"deny","decode":"jwt","maskClaims":[]`, ".maskClaims", "at least 1 element"},
		{"CFG-76 empty claim", `"a.com"`, ``, `"mode":"mask","decode":"jwt","maskClaims":[""]`, ".maskClaims.0", "at least 1 character"},
		{"CFG-76", `"a.com"`, ``, `"mode":"mask","decode":"jwt","maskClaims":["sub"]`, "", ""},
		{"CFG-40", ``, ``, `"mode":"deny","extract":"x"`, ".extract", "capturing group"},
		{"CFG-40", ``, ``, `"mode":"deny","decode":"base64"`, ".decode", "Expected 'jwt'"},
		{"CFG-40", ``, ``, `"mode":"deny","onExtractNoMatch":"ignore"`, ".onExtractNoMatch", "Expected 'warn' | 'deny' | 'error'"},
		{"mode", ``, ``, `"mode":"Mask"`, ".mode", "Expected 'deny' | 'mask'"},
		{"CFG-37, case 21", ``, ``, `"mode":"mask","extract":"("`, ".extract", "not a valid regular expression"},
		{"CFG-37, case 21", ``, ``, `"mode":"mask","extract":"abc"`, ".extract", "capturing group"},
		{"CFG-37, case 21", ``, ``, `"mode":"mask","extract":"(?:a)"`, ".extract", "capturing group"},
		{"CFG-37", ``, ``, `"mode":"mask","extract":""`, ".extract", "capturing group"},
		{"CFG-37, case 21", ``, ``, `"mode":"mask","extract":"(?<n>a)"`, "", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			for _, kind := range []struct{ key, head string }{{"files", `"path":"p"`}, {"envVars", `"name":"P"`}} {
				data := with(t, "network.allowedDomains", "["+tc.allowed+"]", "network.tlsTerminate.excludeDomains",
					"["+tc.exclude+"]", "credentials."+kind.key, "[{"+kind.head+","+tc.mask+"}]")
				switch tc.path {
				case "":
					accept(t, "linux", data)
				case ".":
					refuse(t, "linux", data, "credentials."+kind.key+".0", tc.reason)
				default:
					refuse(t, "linux", data, "credentials."+kind.key+".0"+tc.path, tc.reason)
				}
			}
		})
	}
	refuse(t, "linux", with(t, "credentials.files", `[{"path":"p","mode":"deny","maskDuplicates":1}]`),
		"credentials.files.0.maskDuplicates", "Expected boolean")
}

func TestMaskNeedsAWayOut(t *testing.T) {
	for _, list := range []string{`"files":[{"path":"p","mode":"mask"}]`, `"envVars":[{"name":"P","mode":"mask"}]`} {
		refuse(t, "linux", with(t, "credentials", "{"+list+"}"), "credentials", "requires network.tlsTerminate") // CFG-75, case 18
		refuse(t, "linux", with(t, "credentials", `{"allowPlaintextInject":false,`+list+"}"), "credentials", "requires")
		accept(t, "linux", with(t, "credentials", `{"allowPlaintextInject":true,`+list+"}"))
		accept(t, "linux", with(t, "credentials", "{"+list+"}", "network.tlsTerminate", "{}"))
	}
	accept(t, "linux", with(t, "credentials", `{"files":[{"path":"p","mode":"deny"}],"envVars":[{"name":"P","mode":"deny"}]}`))
	accept(t, "linux", with(t, "credentials", `{}`))
	if (*Credentials)(nil).Masks() {
		t.Error("no credentials mask something")
	}
}

func TestVariableNames(t *testing.T) {
	for _, name := range []string{"", "1A", "A-B", "A=B", "A B", "É", "A\\u0000", "A."} {
		refuse(t, "linux", with(t, "credentials.envVars", `[{"name":"`+name+`","mode":"deny"}]`), "credentials.envVars.0.name",
			"Invalid environment variable name")
	}
	accept(t, "linux", with(t, "credentials.envVars", `[{"name":"_a1","mode":"deny"},{"name":"_","mode":"deny"},{"name":"_","mode":"deny"}]`))
}

func TestAWSPairs(t *testing.T) {
	const vars = `{"name":"ID","mode":"mask"},{"name":"KEY","mode":"mask"},{"name":"TOK","mode":"mask"}`
	for _, tc := range []struct{ rule, more, pairs, path, reason string }{
		{"CFG-77", ``, `{"accessKeyIdVar":"ID","secretAccessKeyVar":"KEY","sessionTokenVar":"TOK"}`, "", ""},
		{"CFG-77 listed twice, both masked", `,{"name":"ID","mode":"mask"}`, `{"accessKeyIdVar":"ID","secretAccessKeyVar":"KEY"}`, "", ""},
		{"CFG-77, case 22 two slots", ``, `{"accessKeyIdVar":"ID","secretAccessKeyVar":"ID"}`, "0.secretAccessKeyVar", "only one slot"},
		{"CFG-77 two pairs", ``, `{"accessKeyIdVar":"ID","secretAccessKeyVar":"KEY"},{"accessKeyIdVar":"TOK","secretAccessKeyVar":"KEY"}`,
			"1.secretAccessKeyVar", "only one slot"},
		{"CFG-77 not listed", ``, `{"accessKeyIdVar":"NO","secretAccessKeyVar":"KEY"}`, "0.accessKeyIdVar", "must be listed"},
		{"CFG-77, case 22 denied", `,{"name":"D","mode":"deny"}`, `{"accessKeyIdVar":"ID","secretAccessKeyVar":"KEY","sessionTokenVar":"D"}`,
			"0.sessionTokenVar", "must be listed"},
		{"CFG-77, case 22 extract", `,{"name":"E","mode":"mask","extract":"(a)"}`, `{"accessKeyIdVar":"E","secretAccessKeyVar":"KEY"}`,
			"0.accessKeyIdVar", "must be listed"},
		{"CFG-77, case 22 decode", `,{"name":"E","mode":"mask","decode":"jwt"}`, `{"accessKeyIdVar":"E","secretAccessKeyVar":"KEY"}`,
			"0.accessKeyIdVar", "must be listed"},
		{"CFG-77 listed twice, once denied", `,{"name":"ID","mode":"deny"}`, `{"accessKeyIdVar":"ID","secretAccessKeyVar":"KEY"}`,
			"0.accessKeyIdVar", "must be listed"},
		{"CFG-77 missing", ``, `{"accessKeyIdVar":"ID"}`, "0.secretAccessKeyVar", "Required"},
		{"CFG-77 name", ``, `{"accessKeyIdVar":"I D","secretAccessKeyVar":"KEY"}`, "0.accessKeyIdVar", "Invalid environment"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			data := with(t, "credentials", `{"allowPlaintextInject":true,"envVars":[`+vars+tc.more+`],"awsPairs":[`+tc.pairs+`]}`)
			if tc.path == "" {
				accept(t, "linux", data)
				return
			}
			refuse(t, "linux", data, "credentials.awsPairs."+tc.path, tc.reason)
		})
	}
}

func TestCase12And13(t *testing.T) {
	c := accept(t, "linux", with(t, "network.allowedDomains", `["127.0.0.1","*.de.com"]`, "network.deniedDomains", `["127.1","ü.de.com"]`))
	for i, host := range []string{"127.0.0.1", "xn--tda.de.com"} {
		d, err := ParseDomain(c.Network.DeniedDomains[i], DomainForm{Port: true, Any: true})
		if err != nil {
			t.Fatal(err)
		}
		h, err := CanonicalHost(host)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Matches(h, 443) {
			t.Errorf("cases 12 and 13: %q does not deny %s", d.Text, host)
		}
	}
}

func TestManyIssuesAcross(t *testing.T) {
	_, err := Decode(with(t, "network.allowedDomains", `["a.com"]`, "credentials",
		`{"files":[{"path":"/x*/","mode":"deny"}],"envVars":[{"name":"A","mode":"mask","injectHosts":["b.com","c.com"]}]}`))
	want := []string{"credentials.files.0.path", "credentials.envVars.0.injectHosts.0", "credentials.envVars.0.injectHosts.1", "credentials"}
	var issues *Error
	if !errors.As(err, &issues) || len(issues.Issues) != len(want) {
		t.Fatalf("CFG-7: %v", err)
	}
	for i, issue := range issues.Issues {
		if issue.Path != want[i] {
			t.Errorf("CFG-7: issue %d is at %s, want %s", i, issue.Path, want[i])
		}
	}
}
