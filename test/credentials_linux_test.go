package test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// masks are settings that mask, for the host of a test server.
func masks(entries object) object {
	for _, key := range []string{"files", "envVars"} {
		for _, e := range asList(entries[key]) {
			if e["mode"] == nil {
				e["mode"] = "mask"
			}
		}
	}
	return object{"credentials": entries}
}

func asList(v any) (entries []object) {
	l, _ := v.(list)
	for _, e := range l {
		entries = append(entries, e.(object))
	}
	return entries
}

// CRED cases 22 and 23: the command has a fake, the server of the right host the real value, whoever carries it there.
func TestCRED_Case22_Case23(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		const short, long = "ghp_planted_0123", "planted-of-sixty-bytes-0123456789-0123456789-0123456789-abcdef"
		b.env = append(b.env, "GH_TOKEN="+short, "LONG="+long, "ELSEWHERE="+short)
		c := cfg{allow: list{"localhost:" + web.port, "other.test"}, net: ends(nil), top: masks(object{"envVars": list{
			object{"name": "GH_TOKEN", "injectHosts": list{"localhost"}}, object{"name": "LONG"},
			object{"name": "ELSEWHERE", "injectHosts": list{"other.test"}}}})}
		url := "https://localhost:" + web.port + "/"
		r := b.sh(c, byProxy+`echo ${#GH_TOKEN} ${#LONG}; case $GH_TOKEN$LONG in *planted*) echo real;; esac
			curl -fsS -H "Authorization: Bearer $GH_TOKEN" -H "X-Other: $ELSEWHERE" -d "key=$LONG" "`+url+`?t=$GH_TOKEN"
			curl -fsS -u "u:$GH_TOKEN" `+url).ok().prints(fmt.Sprintf("47 %d\nsecure\nsecure", max(47, len(long))))
		got := web.requests()
		if len(got) != 2 {
			t.Fatalf("%d requests; %v", len(got), r)
		}
		for what, is := range map[string][2]string{
			"the header":              {got[0].Header.Get("Authorization"), "Bearer " + short},
			"the body":                {got[0].Header.Get("Test-Body"), "key=" + long},
			"user and password":       {got[1].Header.Get("Authorization"), "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+short))},
			"the target has no value": {fmt.Sprint(strings.Contains(got[0].URL.RawQuery, short)), "false"},
			"a value of another host": {fmt.Sprint(strings.Contains(got[0].Header.Get("X-Other"), short)), "false"},
		} {
			if is[0] != is[1] {
				t.Errorf("%s: %q, want %q", what, is[0], is[1])
			}
		}
	})
}

// CRED-3, CRED-4, case 35: absent is absent, masked is masked if there is something, and what is both is masked.
func TestCRED_3_4_Case35(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.env = append(b.env, "DENIED=planted", "BOTH=planted", "EMPTY=", "AWS_SECRET_ACCESS_KEY=planted")
		c := cfg{allow: list{"localhost"}, net: ends(nil), top: masks(object{"envVars": list{
			object{"name": "DENIED", "mode": "deny"}, object{"name": "BOTH", "mode": "deny"}, object{"name": "BOTH"},
			object{"name": "EMPTY"}, object{"name": "NOT_SET"}, object{"name": "AWS_SECRET_ACCESS_KEY"}}})}
		r := b.sh(c, `echo "${DENIED-absent} ${NOT_SET-absent} ${#BOTH} ${#EMPTY} ${#AWS_SECRET_ACCESS_KEY}"`).ok().prints("absent absent 47 47 47")
		r.says("AWS_SECRET_ACCESS_KEY") // CRED-27: half a pair
		if strings.Contains(r.stderr, "planted") {
			t.Errorf("%v", r)
		}
	})
}

// CRED case 26, CRED-7, CRED-10: a masked file holds a fake by every name, and stays where and what it is.
func TestCRED_Case26(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		b.file("d/token", "planted\n")
		b.link("d/token", "link")
		for name, c := range map[string]cfg{"": {aw: list{"."}}, "read-denied": {aw: list{"."}, dr: list{"d"}},
			"listed as deny too": {aw: list{"."}, top: object{}}, "no rules": {fs: object{"disabled": true}}} {
			path := "link"
			if name == "read-denied" || name == "listed as deny too" {
				path = "d/token" // a link that a command can have made lifts no deny
			}
			files := list{object{"path": path}}
			if name == "listed as deny too" {
				files = append(files, object{"path": "d/token", "mode": "deny"})
			}
			c.allow, c.net, c.top = list{"localhost:" + web.port}, ends(nil), masks(object{"files": files})
			before := len(web.requests())
			b.sh(c, byProxy+`cmp d/token link || echo differ; case $(cat link) in fake_value_*) ;; *) echo not a fake; cat link;; esac; wc -l <link
				for t in "rm d/token" "mv d/token x" "mv d e" "touch y; mv y d/token"; do sh -c "$t" 2>/dev/null && echo "done: $t"; rm -f y; done
				(echo x >>d/token) 2>/dev/null && echo written
				curl -fsS -H "X-Token: $(cat d/token)" https://localhost:`+web.port+"/").ok().prints("1\nsecure")
			if got := web.requests()[before:]; len(got) != 1 || got[0].Header.Get("X-Token") != "planted" {
				t.Errorf("%q: what arrived: %v", name, got)
			}
			b.holds("d/token", "planted\n")
		}
	})
}

// CRED-9: what cannot be masked is hidden, with a word on standard error; what is missing is passed over.
func TestCRED_9(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.file("dir/token", "planted")
		b.file("binary", "planted\xff\xfe")
		b.file("large", "planted"+strings.Repeat("x", 16<<20))
		for _, disabled := range []bool{false, true} {
			c := cfg{aw: list{"."}, allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{
				object{"path": "dir"}, object{"path": "binary"}, object{"path": "large"}, object{"path": "missing"}}})}
			if disabled {
				c.fs = object{"disabled": true}
			}
			r := b.sh(c, `cat dir/token binary large 2>/dev/null; true`).ok().says("dir", "binary", "large")
			if strings.Contains(r.stdout+r.stderr, "planted") || strings.Contains(r.stderr, "missing") {
				t.Errorf("disabled %v: %.2000v", disabled, r)
			}
		}
	})
}

// CRED-2: under filesystem.disabled a file that is denied is not, and a variable is.
func TestCRED_2(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.file("token", "text")
		b.env = append(b.env, "TOKEN=planted")
		c := cfg{top: object{"credentials": object{"files": list{object{"path": "token", "mode": "deny"}},
			"envVars": list{object{"name": "TOKEN", "mode": "deny"}}}}}
		b.sh(c, `cat token 2>/dev/null; echo "<$TOKEN>"`).ok().prints("<>")
		c.fs = object{"disabled": true}
		b.sh(c, `cat token; echo "<$TOKEN>"`).ok().prints("text<>")
	})
}

// CRED case 27: what is captured changes, and nothing else; with maskDuplicates its copies do too.
func TestCRED_Case27(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		const text = "machine localhost\n\tlogin me password planted-1\n# planted-1 was new\n"
		b.file(".netrc", text)
		for _, duplicates := range []bool{false, true} {
			c := cfg{allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{
				object{"path": ".netrc", "extract": `password (\S+)`, "maskDuplicates": duplicates}}})}
			r := b.sh(c, "cat .netrc").ok().silent()
			fake := strings.Fields(r.stdout)[5]
			want := strings.Replace(text, "planted-1", fake, 1)
			if duplicates {
				want = strings.ReplaceAll(text, "planted-1", fake)
			}
			if r.stdout != want || !strings.HasPrefix(fake, "fake_value_") {
				t.Errorf("%v", r)
			}
		}
	})
}

// CRED case 28, CRED-14: what holds nothing to mask is shown with a warning, kept back, or ends srt.
func TestCRED_Case28(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.file("token", "planted")
		b.env = append(b.env, "TOKEN=planted")
		for _, disabled := range []bool{false, true} {
			set := func(then string) cfg {
				c := cfg{aw: list{"."}, allow: list{"localhost"}, net: ends(nil), top: masks(object{
					"files":   list{object{"path": "token", "extract": "no(thing)", "onExtractNoMatch": then}},
					"envVars": list{object{"name": "TOKEN", "extract": "no(thing)", "onExtractNoMatch": then}}})}
				if disabled {
					c.fs = object{"disabled": true}
				}
				return c
			}
			const script = `echo "${TOKEN-absent} $(cat token 2>/dev/null)"; : >ran`
			b.sh(set("warn"), script).ok().prints("planted planted").says(`[sandbox-runtime] WARNING: credentials.files entry "token" has extract pattern "no(thing)" `+
				`that matched nothing in the file. The file is left UNPROTECTED`, `[sandbox-runtime] WARNING: credentials.envVars entry "TOKEN"`)
			b.sh(set("deny"), script).ok().prints("absent ")
			b.host("rm", "ran").ok()
			b.sh(set("error"), script).exits(1).says("Error: ")
			b.absent("ran")
		}
	})
}

// CRED cases 29 and 30: a pattern is an ECMAScript one, and its search is bounded. Nothing runs otherwise, and nothing is told.
func TestCRED_Case29_Case30(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.file("crlf", "token: planted\r\nx\r\n")
		b.file("many", strings.Repeat("a", 50_000))
		b.file("empty", "tok=\n")
		b.file("letters", "abcd")
		mask := func(path, pattern, then string) cfg {
			return cfg{aw: list{"."}, allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{
				object{"path": path, "extract": pattern, "onExtractNoMatch": then}}})}
		}
		r := b.sh(mask("crlf", `token: (.+)`, "error"), "od -An -c crlf | tr -d ' \n'").ok()
		if strings.Contains(r.stdout, "planted") || !strings.HasSuffix(r.stdout, `\r\nx\r\n`) || strings.Count(r.stdout, `\r`) != 2 {
			t.Errorf("%v", r)
		}
		b.sh(mask("crlf", `tok(?!null)(\w+)`, "error"), "true").ok()
		for _, test := range [][2]string{{"crlf", "(?i)(x)"}, {"crlf", "(?>a)(b)"}, {"crlf", "(a"}, {"crlf", "abc"}, {"many", "(a+)+b"},
			{"empty", `tok=(\S+)?`}, {"letters", "(?=(..))"}} {
			r := b.sh(mask(test[0], test[1], "warn"), "touch ran").exits(1).says("Error: ")
			b.absent("ran")
			if strings.Contains(r.stderr, "aaaa") || strings.Contains(r.stderr, "abcd") || strings.Contains(r.stderr, "planted") {
				t.Errorf("%s: %.2000v", test[1], r)
			}
		}
	})
}

// CRED case 31: of a token with claims those named are faked, and both fakes are swapped on the way out.
func TestCRED_Case31(t *testing.T) {
	need(t, "curl")
	each(t, func(t *testing.T, b *box) {
		web, _ := b.secure()
		part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		head := part(`{"alg":"RS256","kid":"k"}`)
		token := head + "." + part(`{"sub":"planted-subject","n":12345678901234567890}`) + ".c2lnbmF0dXJl"
		b.file("jwt", "token = "+token+"\n")
		c := cfg{allow: list{"localhost:" + web.port}, net: ends(nil), top: masks(object{"files": list{
			object{"path": "jwt", "decode": "jwt", "maskClaims": list{"sub"}}}})}
		r := b.sh(c, byProxy+`read -r a b t <jwt; echo "$t"; curl -fsS -H "Authorization: Bearer $t" https://localhost:`+web.port+"/").ok()
		parts := strings.Split(strings.Fields(r.stdout)[0], ".")
		if len(parts) != 3 || parts[0] != head || parts[2] != "c3J0LWZha2U" {
			t.Fatalf("%v", r)
		}
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || strings.Contains(string(payload), "planted") || !strings.Contains(string(payload), "12345678901234567890") {
			t.Errorf("%q, %v", payload, err)
		}
		if got := web.requests(); len(got) != 1 || got[0].Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("what arrived: %v", got)
		}
	})
}
