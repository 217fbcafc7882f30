package proxy

import (
	"context"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/policy"
)

// TestREQ2_RequestRulesBeforeTheFilter: on both paths, in every mode, the rules are asked before the filter, about the target that
// goes out, and both have to allow.
func TestREQ2_RequestRulesBeforeTheFilter(t *testing.T) {
	rules, err := policy.NewRequestRules([]config.RequestRule{
		{Hosts: []string{"api.example.com"}, Methods: []string{"GET"}, Paths: []string{"/open/**"}, Action: config.ActionAllow},
		{Hosts: []string{"api.example.com"}, Paths: []string{"/shut/**"}, Action: config.ActionDeny, Reason: "shut"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const (
		spelled, normalize = config.TargetAsSpelled, config.TargetNormalize
		noRule             = "403 no network.requestRules entry allows this request"
	)
	for _, tc := range []struct {
		mode, method, target string
		fields               []string
		want                 string // the status and how the reason begins; or the target that goes out
		rule                 string // in the violation
	}{
		{"", "GET", "/open/a?b", nil, "/open/a?b", ""},
		{"", "POST", "/open/a", nil, noRule, "network.requestRules"},
		{"", "GET", "/shut/a", nil, "403 shut", "network.requestRules.1"},
		{"", "GET", "/open/../shut/a", nil, "400 ambiguous request-target", "network.ambiguousRequestTarget"},
		{spelled, "GET", "/open/../shut/a", nil, "400 ambiguous request-target", "network.requestRules"},
		{spelled, "GET", "/open/./a", nil, "400 ambiguous request-target", "network.requestRules"},
		{normalize, "GET", "/open/../shut/a", nil, "403 shut", "network.requestRules.1"},
		{normalize, "GET", "/shut/../open/a", nil, "/open/a", ""},
		{"", "GET", "/open/..%2fshut/a", nil, "400 ambiguous request-target", "network.requestRules"},
		{"", "GET", "/open/a", []string{"X_HTTP.Method-Override: POST"}, noRule, "network.requestRules"},
		{"", "GET", "/open/a", []string{"x-http-method: GET"}, "/open/a", ""},
	} {
		for _, filter := range []RequestFilter{nil, nothingMore, denying("the filter", 0)} {
			asked := false
			o := Options{Filtering: Filtering{AmbiguousRequestTarget: tc.mode}}
			if filter != nil {
				o.Filter = func(ctx context.Context, r *FilterRequest) (FilterDecision, error) {
					asked = true
					return filter(ctx, r)
				}
			}
			j := judging(t, o)
			lines := append([]string{"Host: x"}, tc.fields...)
			plain := inCleartext(t, tc.method, "http://api.example.com"+tc.target, lines...)
			for _, r := range []*request{inTunnel(t, tc.method, tc.target, lines...), plain} {
				r.rules = &Rules{Requests: rules}
				want := tc.want
				f, refused := j.refusalOf(t, r)
				if tc.rule == "" && filter != nil && asked && refused {
					want = "403 the filter"
				}
				got := r.path
				if refused {
					got = f
				}
				if !strings.HasPrefix(got, want) || asked != (filter != nil && tc.rule == "") {
					t.Errorf("%+v, tunnel %v: %q, asked %v", tc, r.tunnel, got, asked)
				}
				if j.rule != tc.rule {
					t.Errorf("%+v, tunnel %v: rule %q", tc, r.tunnel, j.rule)
				}
				asked, j.rule = false, ""
			}
		}
	}
}

// refusalOf judges a request and returns the status and the reason of a refusal.
func (j *judged) refusalOf(t *testing.T, r *request) (f string, refused bool) {
	a, refused := j.judgeRequest(t.Context(), r)
	lines := j.taken()
	if refused != (len(lines) == 1) {
		t.Errorf("%q", lines)
	}
	if !refused {
		return "", false
	}
	return a.status[:4] + strings.TrimSuffix(a.body, "\n"), true
}

// TestRequestRulesNameNoOtherHost: elsewhere nothing of them holds, and targets go out as spelled.
func TestRequestRulesNameNoOtherHost(t *testing.T) {
	rules, err := policy.NewRequestRules([]config.RequestRule{
		{Hosts: []string{"other.example.com", "api.example.com:8443"}, Paths: []string{"/x"}, Action: config.ActionAllow},
	})
	if err != nil {
		t.Fatal(err)
	}
	j := judging(t, Options{})
	for _, target := range []string{"/a/../b", "//a", "/y"} {
		r := inTunnel(t, "POST", target, "Host: x")
		r.rules = &Rules{Requests: rules}
		if a, refused := j.judgeRequest(t.Context(), r); refused || r.path != target {
			t.Errorf("%s: %+v, %q", target, a, r.path)
		}
	}
}
