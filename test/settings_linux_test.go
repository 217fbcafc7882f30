package test

import (
	"os"
	"strings"
	"testing"
)

// smallest is B of the configuration chapter: the five required keys.
const smallest = `{"network":{"allowedDomains":[],"deniedDomains":[]},"filesystem":{"denyRead":[],"allowWrite":["."],"denyWrite":[]}}`

// with is the smallest settings file with more in its network, filesystem and top level.
func with(net, fs, top string) string {
	text := smallest
	if net != "" {
		text = strings.Replace(text, `"deniedDomains":[]`, `"deniedDomains":[],`+net, 1)
	}
	if fs != "" {
		text = strings.Replace(text, `"denyWrite":[]`, `"denyWrite":[],`+fs, 1)
	}
	if top != "" {
		text = text[:len(text)-1] + "," + top + "}"
	}
	return text
}

func TestCFG_Cases(t *testing.T) {
	allow := func(entry string) string { return with(`"allowedDomains":["`+entry+`"]`, "", "") }
	deny := func(entry string) string { return with(`"deniedDomains":["`+entry+`"]`, "", "") }
	credentials := func(text string) string { return with("", "", `"credentials":{`+text+`}`) }
	const ok = ""
	tests := []struct{ name, text, want string }{ // want is on stderr, "" for a run
		{"case 5 trailing comma", strings.Replace(smallest, "]}}", "]},}", 1), "is not valid JSON: "},
		{"case 5 comment", "// no\n" + smallest, "is not valid JSON: "},
		{"case 5 byte-order mark", "\ufeff" + smallest, "is not valid JSON: "},
		{"case 5 trailing text", smallest + " x", "is not valid JSON: "},
		{"CFG-10 not UTF-8", strings.Replace(smallest, `"."`, "\"\xff\"", 1), "is not valid JSON: "},
		{"case 6 unknown at the top", with("", "", `"unknown":1`), ok},
		{"case 6 unknown in network", with(`"unknown":1`, "", ""), ok},
		{"case 6 unknown in credentials", credentials(`"injectHosts":[]`), "injectHosts"},
		{"case 7 null", with("", "", `"allowPty":null`), "allowPty: "},
		{"case 7 3.0", with("", "", `"mandatoryDenySearchDepth":3.0`), ok},
		{"case 7 1.5", with("", "", `"mandatoryDenySearchDepth":1.5`), "mandatoryDenySearchDepth: "},
		{"case 7 0", with("", "", `"mandatoryDenySearchDepth":0`), "mandatoryDenySearchDepth: "},
		{"case 7 11", with("", "", `"mandatoryDenySearchDepth":11`), "mandatoryDenySearchDepth: "},
		{"case 8 second invalid", with("", "", `"network":5`), "network: "},
		{"case 8 second valid", `{"network":5,` + smallest[1:], ok},
		{"CFG-11 case of a key", strings.Replace(smallest, "network", "Network", 1), "network: Required"},
		{"CFG-13 no coercion", with(`"strictAllowlist":"true"`, "", ""), "network.strictAllowlist: "},
		{"CFG-7 all issues", `{"network":{"allowedDomains":5,"deniedDomains":["."]},"filesystem":{"denyRead":[""]}}`, "network.allowedDomains: "},
		{"case 9 *.com", allow("*.com"), "network.allowedDomains.0: "},
		{"case 9 *", allow("*"), "network.allowedDomains.0: "},
		{"case 9 foo", allow("foo"), "network.allowedDomains.0: "},
		{"case 9 x.com.", allow("x.com."), "network.allowedDomains.0: "},
		{"case 9 ::1", allow("::1"), "network.allowedDomains.0: "},
		{"case 9 x.com:0", allow("x.com:0"), "network.allowedDomains.0: "},
		{"case 9 http", allow("http://x.com"), "network.allowedDomains.0: "},
		{"case 9 deny *", deny("*"), ok},
		{"case 9 deny *:22", deny("*:22"), ok},
		{"case 10", allow("x.com:443:1"), "network.allowedDomains.0: "},
		{"case 13", deny("evil.com "), "network.deniedDomains.0: "},
		{"case 14 filterRequest", with(`"filterRequest":null`, "", ""), "filterRequest"},
		{"case 14 caCertPath", with(`"tlsTerminate":{"caCertPath":"/x"}`, "", ""), "must be provided together"},
		{"case 15 bracket", with(`"deniedResolvedAddresses":["[::1]"]`, "", ""), "network.deniedResolvedAddresses.0: "},
		{"case 15 prefix", with(`"deniedResolvedAddresses":["10.0.0.0/33"]`, "", ""), "network.deniedResolvedAddresses.0: "},
		{"case 15 ok", with(`"deniedResolvedAddresses":["10.0.0.0/8","::ffff:10.0.0.0/104","fe80::1%en0"]`, "", ""), ok},
		{"case 17 no literal", with("", `"allowRead":[{"path":"x"}]`, ""), `filesystem.allowRead.0: Expected a path, or { "path": "<path>", "literal": true }`},
		{"case 17 extra key", with("", `"allowRead":[{"path":"x","literal":true,"z":1}]`, ""), "filesystem.allowRead.0"},
		{"case 18", credentials(`"envVars":[{"name":"A","mode":"mask"}]`), "credentials: "},
		{"case 20", with(`"allowedDomains":["a.com"],"tlsTerminate":{"excludeDomains":["a.com"]}`, "", `"credentials":{"envVars":[{"name":"A","mode":"mask"}]}`), "credentials"},
		{"case 21 regex", credentials(`"allowPlaintextInject":true,"envVars":[{"name":"A","mode":"deny","extract":"("}]`), "credentials.envVars.0.extract: "},
		{"case 21 group", credentials(`"envVars":[{"name":"A","mode":"deny","extract":"abc"}]`), "credentials.envVars.0.extract: "},
		{"case 21 named group", credentials(`"envVars":[{"name":"A","mode":"deny","extract":"(?<n>a)"}]`), ok},
		{"case 22", credentials(`"envVars":[{"name":"A","mode":"deny"}],"awsPairs":[{"accessKeyIdVar":"A","secretAccessKeyVar":"A"}]`), "credentials.awsPairs.0"},
		{"case 23 absolute", with("", "", `"bwrapPath":"/no/such"`), ok},
		{"case 23 relative", with("", "", `"bwrapPath":"bwrap"`), "bwrapPath: Binary path must be absolute"},
		{"case 23 ripgrep", with("", "", `"ripgrep":{}`), "ripgrep.command: Required"},
		{"CFG-70", with(`"tlsTerminate":{},"mitmProxy":{"socketPath":"/x","domains":["a.com"]}`, "", ""), "mutually exclusive"},
		{"FS-4 NUL", with("", `"allowRead":["a\u0000b"]`, ""), "filesystem.allowRead.0"},
	}
	eachAlong(t, func(t *testing.T, b *box) {
		for _, tt := range tests {
			path := b.dir + "/given.json"
			b.must(os.WriteFile(path, []byte(tt.text), 0o644))
			r := b.host(srtPath, "-s", path, "exec", "--", "touch", "ran")
			if tt.want == ok {
				if r.status != 0 {
					t.Errorf("%s: %v", tt.name, r)
				}
				_ = os.Remove(b.abs("ran"))
				continue
			}
			if r.status != 1 || !strings.HasPrefix(r.stderr, "Error: "+path) || !strings.Contains(r.stderr, tt.want) || r.stdout != "" {
				t.Errorf("%s: want %q; %v", tt.name, tt.want, r)
			}
			if !strings.Contains(r.stderr, "Refusing to run with the built-in defaults") {
				t.Errorf("%s: no second line: %v", tt.name, r)
			}
			b.absent("ran")
		}
	})
}

func TestCFG_7_AllIssuesAreListed(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		path := b.dir + "/given.json"
		b.file(path, `{"network":{"allowedDomains":["*.com",5]},"filesystem":{"denyRead":[""],"allowWrite":1,"denyWrite":[]}}`)
		r := b.host(srtPath, "-s", path, "true").exits(1)
		r.says("network.allowedDomains.0: ", "network.allowedDomains.1: ", "network.deniedDomains: Required", "filesystem.denyRead.0: Path cannot be empty",
			"filesystem.allowWrite: ")
		if n := strings.Count(r.stderr, "; "); n < 4 {
			t.Errorf("%d separators: %v", n, r)
		}
	})
}

func TestCFG_case12_CanonicalDeny(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		web := b.web()
		b.exchanges(cfg{allow: list{"127.0.0.1"}, deny: list{"127.1"}}, "3128", web.port, []exchange{
			{"case 12", connectTo("127.0.0.1:@"), []string{"403 host is on the deny list"}, ""},
			{"case 12", connectTo("0x7f000001:@"), []string{"403 host is on the deny list"}, ""},
		})
		b.exchanges(cfg{allow: list{"*.de.com"}, deny: list{"ü.de.com"}}, "3128", web.port, []exchange{
			{"case 13", connectTo("xn--tda.de.com:@"), []string{"403 host is on the deny list"}, ""},
		})
	})
}

func TestCFG_9_NothingRunsWithoutThePolicy(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("x", "old")
		for name, c := range map[string]cfg{
			"masked credential": {aw: list{"."}, allow: list{"a.com"}, top: object{"credentials": object{"envVars": list{object{"name": "A", "mode": "mask"}}}}},
			"tlsTerminate":      {aw: list{"."}, net: object{"tlsTerminate": object{"caCertPath": "no.pem", "caKeyPath": "no.key"}}},
			"parentProxy":       {aw: list{"."}, net: object{"parentProxy": object{"http": "ftp://x"}}},
		} {
			before := b.tree(".")
			r := b.run(c, "sh", "-c", "touch ran; echo new >x")
			if r.status != 1 || !strings.HasPrefix(r.stderr, "Error: ") {
				t.Errorf("%s: %v", name, r)
			}
			b.unchanged(".", before)
		}
	})
}
