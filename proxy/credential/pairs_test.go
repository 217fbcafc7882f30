package credential

import (
	"maps"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// TestPairsCRED27: which AWS keys belong together.
func TestPairsCRED27(t *testing.T) {
	all := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "token", "MY_ID": "my id",
		"MY_KEY": "my key", "MY_TOKEN": "my token"}
	without := func(names ...string) map[string]string {
		set := maps.Clone(all)
		for _, name := range names {
			delete(set, name)
		}
		return set
	}
	mine := []config.AWSPair{{AccessKeyIDVar: "MY_ID", SecretAccessKeyVar: "MY_KEY", SessionTokenVar: "MY_TOKEN"}}
	for _, tc := range []struct {
		rule   string
		masked string // names; with "=": captured by a pattern
		pairs  []config.AWSPair
		set    map[string]string
		want   string
		warned bool
	}{
		{"the default pair", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN", nil, all, "id/key/token", false},
		{"without a token", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY", nil, all, "id/key", false},
		{"token not set", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN", nil, without("AWS_SESSION_TOKEN"), "id/key", false},
		{"key id not set", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY", nil, without("AWS_ACCESS_KEY_ID"), "", false},
		{"secret not set", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY", nil, without("AWS_SECRET_ACCESS_KEY"), "", false},
		{"case 35: secret alone", "AWS_SECRET_ACCESS_KEY", nil, all, "", true},
		{"secret alone and not set", "AWS_SECRET_ACCESS_KEY", nil, without("AWS_SECRET_ACCESS_KEY"), "", false},
		{"key id masked in part", "AWS_ACCESS_KEY_ID= AWS_SECRET_ACCESS_KEY", nil, all, "", true},
		{"secret masked in part", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY=", nil, all, "", false},
		{"key id alone", "AWS_ACCESS_KEY_ID", nil, all, "", false},
		{"an entry beside the default", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY MY_ID MY_KEY MY_TOKEN", mine, all,
			"id/key my id/my key/my token", false},
		{"an entry with a variable of the default", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY MY_ID MY_KEY AWS_SESSION_TOKEN",
			[]config.AWSPair{{AccessKeyIDVar: "MY_ID", SecretAccessKeyVar: "MY_KEY", SessionTokenVar: "AWS_SESSION_TOKEN"}}, all,
			"my id/my key/token", false},
	} {
		s := newStore(t)
		c := &config.Credentials{AWSPairs: tc.pairs}
		for _, name := range strings.Fields(tc.masked) {
			name, part := strings.CutSuffix(name, "=")
			rule := config.Credential{}
			if part {
				rule.Extract = `(.)`
			}
			c.EnvVars = append(c.EnvVars, env(name, rule))
		}
		l := mustLaunch(t, s, c, tc.set)
		if got := pairTexts(t, s, "api.example.com"); got != tc.want {
			t.Errorf("CRED-27: %s: %q, want %q", tc.rule, got, tc.want)
		}
		if l.SignsAWS() != (tc.want != "") {
			t.Errorf("CRED-27: %s: signs %v", tc.rule, l.SignsAWS())
		}
		if got := pairTexts(t, s, "example.org"); got != "" {
			t.Errorf("CRED-28: %s: %q where no key may go", tc.rule, got)
		}
		if (len(l.warned) > 0) != tc.warned || tc.warned && !strings.Contains(l.warned[0], "AWS_ACCESS_KEY_ID") {
			t.Errorf("CRED-27: %s: warnings %q", tc.rule, l.warned)
		}
	}
}

// TestPairsOfLaunches: a later launch replaces the pair of its key id, and another key id keeps its own.
func TestPairsOfLaunches(t *testing.T) {
	s := newStore(t)
	masked := func(hosts ...string) *config.Credentials {
		rule := config.Credential{InjectHosts: hosts}
		return maskEnv(env("AWS_ACCESS_KEY_ID", rule), env("AWS_SECRET_ACCESS_KEY", rule), env("AWS_SESSION_TOKEN", rule))
	}
	set := map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "token"}
	mustLaunch(t, s, masked("a.example.com"), set)
	mustLaunch(t, s, masked("b.example.com"), map[string]string{"AWS_ACCESS_KEY_ID": "id2", "AWS_SECRET_ACCESS_KEY": "key2"})
	set["AWS_SECRET_ACCESS_KEY"] = "rotated"
	delete(set, "AWS_SESSION_TOKEN")
	mustLaunch(t, s, masked("a.example.com"), set)
	for host, want := range map[string]string{"a.example.com": "id/rotated", "b.example.com": "id2/key2"} {
		if got := pairTexts(t, s, host); got != want {
			t.Errorf("CRED-27: at %s %q, want %q", host, got, want)
		}
	}
}

// pairTexts returns the pairs that may be used at a host, sorted as they were recorded.
func pairTexts(t *testing.T, s *Store, host string) string {
	t.Helper()
	h, err := config.CanonicalHost(host)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range s.pairsAt(h) {
		var parts []string
		for _, x := range []*secret{p.id, p.key, p.token} {
			if x != nil {
				value, _ := x.appendTo(nil)
				parts = append(parts, string(value))
			}
		}
		texts = append(texts, strings.Join(parts, "/"))
	}
	return strings.Join(texts, " ")
}
