package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// host is a canonical host.
func requestHost(t testing.TB, name string) config.Host {
	t.Helper()
	h, err := config.CanonicalHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func requestRules(t testing.TB, rules ...config.RequestRule) *RequestRules {
	t.Helper()
	c := config.Config{Network: config.Network{RequestRules: rules}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	r, err := NewRequestRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rule(action, hosts, methods, paths string) config.RequestRule {
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Fields(s)
	}
	return config.RequestRule{Hosts: list(hosts), Methods: list(methods), Paths: list(paths), Action: action}
}

const (
	allowed   = "allowed"
	ambiguous = "ambiguous"
)

// said is a verdict as a word, or the rule that refused.
func said(v RequestVerdict) string {
	switch {
	case v.Allowed:
		return allowed
	case v.Ambiguous:
		return ambiguous
	}
	return strings.TrimPrefix(v.Rule, RuleRequests)
}

// TestRequestRulesOrder holds that the first rule that matches decides, and what becomes of a request that none matches.
func TestRequestRulesOrder(t *testing.T) {
	r := requestRules(t,
		rule("deny", "api.example.com", "", "/repos/x/secrets/** /repos/x/secrets"),
		rule("allow", "api.example.com:443 *.example.org", "get HEAD", "/repos/x/** /repos/x"),
		rule("deny", "*:8080", "POST", ""),
	)
	for _, c := range []struct {
		method, host string
		port         uint16
		target, want string
	}{
		{"GET", "api.example.com", 443, "/repos/x", allowed},
		{"GET", "api.example.com", 443, "/repos/x?q=/repos/y", allowed},
		{"HEAD", "api.example.com", 443, "/repos/x/a/b", allowed},
		{"GET", "api.example.com", 443, "/repos/x/secrets/1", ".0"},
		{"GET", "api.example.com", 443, "/repos/x/secrets", ".0"},
		{"GET", "api.example.com", 443, "/repos/xy", ""},
		{"GET", "api.example.com", 443, "/", ""},
		{"POST", "api.example.com", 443, "/repos/x", ""},
		{"OPTIONS", "api.example.com", 443, "*", ""},
		{"POST", "api.example.com", 80, "/repos/x", allowed}, // the allow rule is about port 443, so nothing allows, and nothing denies
		{"GET", "a.example.org", 8443, "/repos/x", allowed},
		{"GET", "example.org", 443, "/anything", allowed}, // no rule is about it
		{"POST", "192.0.2.1", 8080, "/", ".2"},
		{"GET", "192.0.2.1", 8080, "/", allowed},
	} {
		v := r.Decide(c.method, requestHost(t, c.host), c.port, c.target, nil)
		if said(v) != c.want {
			t.Errorf("%s %s:%d%s: %+v, want %q", c.method, c.host, c.port, c.target, v, c.want)
		}
		if v.Allowed != (v.Reason == "" && v.Rule == "") {
			t.Errorf("%+v", v)
		}
	}
	for _, c := range []struct {
		host         string
		port         uint16
		names, paths bool
	}{{"api.example.com", 443, true, true}, {"api.example.com", 80, true, true}, {"x.example.com", 443, false, false}, {"a.b.example.org", 1, true, true},
		{"x.y", 8080, true, false}} {
		h := requestHost(t, c.host)
		if r.Names(h, c.port) != c.names || r.NamesPaths(h, c.port) != c.paths {
			t.Errorf("%s:%d: named %v, with paths %v", c.host, c.port, r.Names(h, c.port), r.NamesPaths(h, c.port))
		}
	}
	var none *RequestRules
	if none.Names(requestHost(t, "a.b"), 1) || none.NamesPaths(requestHost(t, "a.b"), 1) || !none.Decide("X", requestHost(t, "a.b"), 1, "/", nil).Allowed {
		t.Error("no rules refuse something")
	}
}

func TestRequestRulesReasons(t *testing.T) {
	with := rule("deny", "a.example", "", "")
	with.Reason = "ask the platform team"
	v := requestRules(t, with).Decide("GET", requestHost(t, "a.example"), 443, "/", nil)
	if v.Reason != "ask the platform team" || v.Rule != "network.requestRules.0" {
		t.Errorf("%+v", v)
	}
	v = requestRules(t, rule("allow", "x.example", "", ""), rule("deny", "a.example", "", "")).Decide("GET", requestHost(t, "a.example"), 443, "/", nil)
	if v.Reason != "network.requestRules.1 denies this request" {
		t.Errorf("%+v", v)
	}
	v = requestRules(t, rule("allow", "a.example", "GET", "")).Decide("PUT", requestHost(t, "a.example"), 443, "/", nil)
	if v.Reason != "no network.requestRules entry allows this request" || v.Rule != "network.requestRules" {
		t.Errorf("%+v", v)
	}
}

// TestRequestRulesPatterns walks what patterns mean.
func TestRequestRulesPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern        string
		matches, fails string
	}{
		{"/a", "/a", "/ /ab /a/ /A /a/b"},
		{"/a/*", "/a/ /a/b /a/b.c /a/b?x=/y/z", "/a /a/b/ /a/b/c"},
		{"/a/**", "/a/ /a/b /a/b/c/", "/a /ab"},
		{"/**", "/ /a /a/b", ""},
		{"/*/b", "/a/b /x.y/b", "/b /a/c/b /a/b/c"},
		{"/**/b", "/a/b /a/c/b //b", "/b"},
		{"/a*b*c", "/abc /axbyc /abbcc", "/ab /a/bc /abcd"},
		{"/a?c", "/abc /axc", "/ac /a/c /abbc"},
		{"/**.json", "/a.json /x/y.json", "/a.jso /a.json/"},
		{"/%78", "/x /%78", "/y"},
		{"/x", "/%78", ""},
		{"/é", "/%C3%A9 /%c3%a9", "/%C3"},
		{"/a b", "/a%20b", "/a+b"},
		{"/{x}", "/{x} /%7Bx%7D /%7bx%7d", "/x"},
		{"/a%2Fb", "/a%2Fb /a%2fb", "/a%252Fb"},
		{"/a%2Ab", "/a%2Ab", "/axb"},
		{"/~u", "/~u /%7Eu", "/u"},
	} {
		r := requestRules(t, config.RequestRule{Hosts: []string{"a.example"}, Paths: []string{c.pattern}, Action: "allow"})
		for _, row := range []struct {
			targets string
			want    bool
		}{{c.matches, true}, {c.fails, false}} {
			for _, target := range strings.Fields(row.targets) {
				path, _, _ := strings.Cut(target, "?")
				if got := r.rules[0].paths[0].matches(reading{symbols: symbolsOf(path)}); got != row.want {
					t.Errorf("%s of %s: %v", c.pattern, target, got)
				}
			}
		}
	}
}

// TestRequestRulesAmbiguity holds that what servers could read in two ways is refused where the ways are decided differently.
func TestRequestRulesAmbiguity(t *testing.T) {
	open := requestRules(t, rule("deny", "a.example", "", "/admin /admin/**"), rule("allow", "a.example", "", "/**"))
	closed := requestRules(t, rule("allow", "a.example", "GET", "/pub/* /group/**"))
	for _, c := range []struct {
		rules        *RequestRules
		target, want string
	}{
		{open, "/pub", allowed}, {open, "/admin", ".0"}, {open, "/%61dmin", ".0"}, {open, "/admin?x", ".0"},
		{open, "/x/../admin", ambiguous}, {open, "//admin", ambiguous}, {open, "/x/%2e%2e/admin", ambiguous}, {open, `/\admin`, ambiguous},
		{open, "/x/..%2fadmin", ambiguous}, {open, "/x%2F..%2Fadmin", ambiguous}, {open, "/x/..%5Cadmin", ambiguous}, {open, "/%2fadmin", ambiguous},
		{open, "/x/..;/admin", ambiguous}, {open, "/admin;x=1", ambiguous}, {open, "/admin;/y", ambiguous}, {open, "/admin%3Bx", ambiguous},
		{open, "/%2561dmin", ambiguous}, {open, "/x/%252e%252e/admin", ambiguous}, {open, "/x/..%252fadmin", ambiguous}, {open, "/.;/admin", ambiguous},
		{open, "/admin%00", ambiguous}, {open, "/x%0a", ambiguous}, {open, "/%zz", ambiguous}, {open, "/x%", ambiguous}, {open, "/%c0%af", ambiguous},
		{open, "/%u002e", ambiguous}, {open, "/x#/y", ambiguous}, {open, "/x/.%2e;/admin", ambiguous}, {open, "/x;a/..;b/admin", ambiguous},
		{open, "/x//y", allowed}, {open, "/x%2Fy", allowed}, {open, "/x;y=1", allowed}, {open, "/caf%C3%A9", allowed}, {open, "/100%25", allowed},
		{closed, "/pub/a", allowed}, {closed, "/pub/a%2Fb", ambiguous}, {closed, "/group/a%2Fb", allowed}, {closed, "/group/x%2F..%2F..%2Fadmin", ambiguous},
		{closed, "/pub/a;v=1", allowed}, {closed, "/group//a", allowed}, {closed, "/pub//a", ambiguous}, {closed, "/group/../pub/a", ambiguous},
		{closed, "/x%2F..%2Fpub%2Fa", ambiguous}, {closed, "/pub/%2e%2e%5c%2e%2e%5cadmin", ambiguous},
	} {
		if v := c.rules.Decide("GET", requestHost(t, "a.example"), 443, c.target, nil); said(v) != c.want {
			t.Errorf("%s: %+v, want %q", c.target, v, c.want)
		}
	}
	// Where no rule has paths, what a path means does not matter.
	words := requestRules(t, rule("allow", "a.example", "GET", ""))
	for _, target := range []string{"/a/../b", "/%zz", "//", "*"} {
		if v := words.Decide("GET", requestHost(t, "a.example"), 443, target, nil); !v.Allowed {
			t.Errorf("%s: %+v", target, v)
		}
	}
}

// TestRequestRulesOfTheGuide holds that the two examples of docs/settings.md are settings and do what is said of them.
func TestRequestRulesOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n### Request rules\n")
	section, _, _ = strings.Cut(section, "\n### ")
	parts := strings.Split(section, "```")
	if len(parts) != 5 {
		t.Fatalf("the section has %d examples", len(parts)/2)
	}
	for i, rows := range [][]struct{ method, host, target, want string }{{
		{"GET", "api.example.com", "/repos/me/x", allowed}, {"HEAD", "api.example.com", "/repos/me/x/a/b?c", allowed},
		{"POST", "api.example.com", "/repos/me/x/a", ""}, {"GET", "api.example.com", "/repos/me/y", ""},
	}, {
		{"GET", "packages.example.org", "/x", allowed}, {"POST", "packages.example.org", "/x", allowed}, {"PUT", "packages.example.org", "/x", ".0"},
		{"GET", "tracker.example.com", "/x", allowed}, {"POST", "tracker.example.com", "/issues/7/comments", allowed},
		{"POST", "tracker.example.com", "/issues", ".3"}, {"DELETE", "tracker.example.com", "/issues/7/comments", ".3"},
		{"POST", "tracker.example.com", "/issues/7%2F8/comments", ambiguous},
	}} {
		c, err := config.Decode([]byte(strings.TrimPrefix(parts[2*i+1], "json")))
		if err != nil {
			t.Fatal(err)
		}
		r := requestRules(t, c.Network.RequestRules...)
		for _, row := range rows {
			if v := r.Decide(row.method, requestHost(t, row.host), 443, row.target, nil); said(v) != row.want {
				t.Errorf("%+v: %+v", row, v)
			}
		}
	}
}

// TestRequestRulesMethods holds that a request is judged for every method that a server may take it for.
func TestRequestRulesMethods(t *testing.T) {
	allow := requestRules(t, rule("allow", "a.example", "GET POST", ""))
	deny := requestRules(t, rule("deny", "a.example", "DELETE", ""))
	for _, c := range []struct {
		rules     *RequestRules
		method    string
		overrides []string
		want      string
	}{
		{allow, "GET", nil, allowed}, {allow, "get", nil, ""}, {allow, "DELETE", nil, ""},
		{allow, "POST", []string{"DELETE"}, ""}, {allow, "POST", []string{"GET"}, allowed}, {allow, "POST", []string{"GET", "DELETE"}, ""},
		{allow, "POST", []string{"get"}, ""}, {allow, "DELETE", []string{"GET"}, ""}, {allow, "POST", []string{""}, ""},
		{deny, "POST", nil, allowed}, {deny, "DELETE", nil, ".0"}, {deny, "delete", nil, ambiguous}, {deny, "Delete", nil, ambiguous},
		{deny, "POST", []string{"DELETE"}, ".0"}, {deny, "POST", []string{"delete"}, ".0"}, {deny, "POST", []string{"PUT"}, allowed},
	} {
		if v := c.rules.Decide(c.method, requestHost(t, "a.example"), 443, "/", c.overrides); said(v) != c.want {
			t.Errorf("%s %q: %+v, want %q", c.method, c.overrides, v, c.want)
		}
	}
}

// TestNewRequestRules holds that rules that config has not seen are refused, not passed over.
func TestNewRequestRules(t *testing.T) {
	if r, err := NewRequestRules(nil); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	for want, r := range map[string]config.RequestRule{
		"network.requestRules.1.action":  rule("", "a.example", "", ""),
		"network.requestRules.1.hosts.0": rule("deny", "no-dot", "", ""),
	} {
		if _, err := NewRequestRules([]config.RequestRule{rule("deny", "a.example", "", ""), r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// FuzzRequestRules holds that an allowed request is allowed in every reading, by asking for each of them alone, and that no
// target makes the decision fail.
func FuzzRequestRules(f *testing.F) {
	for _, target := range []string{"/pub/a", "/pub/a%2Fb", "/x/..%252fadmin", "/admin;x/..;/y", "/%C3%A9//\\", "*", "", "?", "/{x}|^%7C"} {
		f.Add("GET", target, "", "/pub/**")
	}
	f.Fuzz(func(t *testing.T, method, target, override, pattern string) {
		r := rule("allow", "a.example", "GET HEAD", "")
		r.Paths = []string{pattern}
		deny := rule("deny", "a.example", "", "/admin /admin/**")
		c := config.Config{Network: config.Network{RequestRules: []config.RequestRule{deny, r}}}
		if c.Validate() != nil {
			return
		}
		rules, err := NewRequestRules(c.Network.RequestRules)
		if err != nil {
			t.Fatalf("config takes a rule that policy does not: %v", err)
		}
		h := requestHost(t, "a.example")
		v := rules.Decide(method, h, 443, target, []string{override})
		if !v.Allowed {
			if v.Rule == "" || v.Reason == "" {
				t.Errorf("a refusal without a reason: %+v", v)
			}
			return
		}
		readings, known := readPath(target)
		if !known || method != "GET" && method != "HEAD" || override != "GET" && override != "HEAD" {
			t.Fatalf("%q %q %q was allowed", method, target, override)
		}
		for _, path := range readings {
			if rules.rules[0].matches(method, path) || !rules.rules[1].matches(method, path) {
				t.Errorf("%q is allowed, and denied when read as %v", target, path.symbols)
			}
		}
	})
}
