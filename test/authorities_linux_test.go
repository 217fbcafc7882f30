package test

import (
	"encoding/base64"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TLS-36, TLS-12: authorities beside the host's own vouch for servers too, whichever way they are named; no other does.
func TestTLS_36_ExtraAuthorities(t *testing.T) {
	need(t, "curl")
	each(t, func(t *testing.T, b *box) {
		web, ca := b.secure()
		other := newAuthority(t, "other", time.Hour)
		b.trusts(other) // alone, from here on
		b.file("extra.pem", ca.text+ca.pem)
		b.file("other.pem", other.pem)
		env := b.env
		for _, test := range []struct {
			name, node string
			extra      list
			served     bool
		}{
			{"none", "", nil, false},
			{"another", "other.pem", list{"other.pem", "missing.pem"}, false},
			{"extraCaCertPaths", "", list{"missing.pem", "extra.pem"}, true},
			{"NODE_EXTRA_CA_CERTS", "extra.pem", nil, true},
		} {
			b.env = env[:len(env):len(env)]
			if test.node != "" {
				b.env = append(b.env, "NODE_EXTRA_CA_CERTS="+b.abs(test.node))
			}
			keys := object{}
			if test.extra != nil {
				keys["extraCaCertPaths"] = test.extra
			}
			before := len(web.requests())
			r := b.sh(cfg{allow: list{"localhost:" + web.port}, net: ends(keys)},
				byProxy+"curl -sS -o /dev/null -w '%{http_code}' https://localhost:"+web.port+"/; grep -c PRIVATE \"$SSL_CERT_FILE\"; true")
			want := map[bool]string{true: "2000\n", false: "5020\n"}[test.served]
			if arrived := len(web.requests()) - before; r.stdout != want || (arrived == 1) != test.served {
				t.Errorf("%s: %v, %d requests", test.name, r, arrived)
			}
		}
	})
}

// CRED-18, CRED-14: a variable with a token is decoded as a whole; one that holds none is what onExtractNoMatch says.
func TestCRED_18_DecodedVariables(t *testing.T) {
	need(t, "curl")
	each(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		token := part(`{"alg":"RS256"}`) + "." + part(`{"sub":"planted","exp":1}`) + ".c2ln"
		b.env = append(b.env, "TOKEN="+token, "NONE=planted-none", "EITHER=planted-none", "BROKEN=planted-none")
		entry := func(name, then string) object { return object{"name": name, "decode": "jwt", "onExtractNoMatch": then} }
		c := cfg{aw: list{"."}, allow: list{"localhost:" + web.port}, net: ends(nil), top: masks(object{"envVars": list{
			entry("TOKEN", "error"), entry("NONE", "deny"), entry("EITHER", "warn")}})}
		r := b.sh(c, byProxy+`echo "$TOKEN ${NONE-absent} $EITHER"; curl -fsS -H "Authorization: Bearer $TOKEN" https://localhost:`+web.port+"/").ok()
		r.says(`[sandbox-runtime] WARNING: credentials.envVars entry "EITHER"`)
		words := strings.Fields(r.stdout)
		fake := strings.Split(words[0], ".")
		if len(words) != 4 || words[1] != "absent" || words[2] != "planted-none" || len(fake) != 3 || fake[0] != part(`{"alg":"HS256","typ":"JWT"}`) ||
			fake[2] != "c3J0LWZha2U" || strings.Contains(r.stderr, "planted") {
			t.Errorf("%v", r)
		}
		if got := web.requests(); len(got) != 1 || got[0].Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("what arrived: %v", got)
		}
		c.top = masks(object{"envVars": list{entry("BROKEN", "error")}})
		b.sh(c, "touch ran").exits(1).says("Error: ", "BROKEN")
		b.absent("ran")
	})
}

// CRED-11: a mask is of the file that its path leads to. Copies and other names that nobody lists are what they were.
func TestCRED_11_CopiesAreNotMasked(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.file("token", "planted\n")
		b.file("copy", "planted\n")
		b.file("[t]oken", "planted\n")
		b.must(os.Link(b.abs("token"), b.abs("second")))
		c := cfg{allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{object{"path": "token"}}})}
		b.sh(c, `case $(cat token) in fake_value_*) echo fake;; esac; cat copy second '[t]oken'`).ok().prints("fake\nplanted\nplanted\nplanted")
		c.top = masks(object{"files": list{object{"path": "[t]oken"}}}) // a name, not a pattern
		b.sh(c, `case $(cat '[t]oken') in fake_value_*) echo fake;; esac; cat token`).ok().prints("fake\nplanted")
	})
}

// TLS-4, CRED-20: beside an external proxy srt ends no TLS and puts nothing in, also for programs that know of no proxy; what it shows
// commands to trust, and the masks, stay.
func TestTLS_4_ExternalProxy(t *testing.T) {
	need(t, "curl")
	each(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		outside, _ := strconv.Atoi(web.port) // anything that listens will do
		b.env = append(b.env, "TOKEN=planted-token")
		c := cfg{allow: list{"localhost:" + web.port}, net: object{"tlsTerminate": object{}, "httpProxyPort": outside},
			top: masks(object{"envVars": list{object{"name": "TOKEN"}}, "allowPlaintextInject": true})}
		r := b.sh(c, `case $TOKEN in fake_value_*) echo fake;; esac; grep -c BEGIN "$SSL_CERT_FILE" >/dev/null && echo bundle
			curl --noproxy '*' -sSkv -H "A: $TOKEN" https://localhost:`+web.port+"/").ok().prints("fake\nbundle\nsecure")
		r.says("issuer: CN=srt test servers")
		if got := web.requests(); len(got) != 1 || !strings.HasPrefix(got[0].Header.Get("A"), "fake_value_") {
			t.Errorf("what arrived: %v", got)
		}
	})
}
