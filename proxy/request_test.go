package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
	"github.com/srt-sandbox/srt/runtime/violation"
)

// judged is a server without a listener, whose judgement alone is looked at.
type judged struct {
	*Server
	mu    sync.Mutex
	lines []string
	rule  string // of the last violation
}

func judging(t testing.TB, o Options) *judged {
	t.Helper()
	j := &judged{}
	o.OnViolation = func(e violation.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines, j.rule = append(j.lines, e.Line()), e.Rule
	}
	var err error
	if j.Server, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// taken returns the violations since it was called last.
func (j *judged) taken() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

func canonical(t testing.TB, host string) config.Host {
	t.Helper()
	h, err := config.CanonicalHost(host)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// fields parses "Name: value" lines.
func fields(lines ...string) httphead.Header {
	var h httphead.Header
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h = append(h, httphead.Field{Name: name, Value: value})
	}
	return h
}

// inTunnel is a request to https://api.example.com in a terminated tunnel.
func inTunnel(t testing.TB, method, target string, lines ...string) *request {
	return &request{
		method: method, target: target, minor: 1, header: fields(lines...), host: canonical(t, "api.example.com"), port: 443,
		scheme: "https", tunnel: true, rules: &Rules{},
	}
}

// inCleartext is a request of the plain path to http://api.example.com, its target in absolute form. nil: it is no request
// there.
func inCleartext(t testing.TB, method, target string, lines ...string) *request {
	parsed, ok := parseTarget(method, target)
	if !ok {
		return nil
	}
	return &request{
		method: method, target: target, minor: 1, header: fields(lines...), host: canonical(t, parsed.host), port: parsed.port,
		scheme: "http", absolute: parsed, rules: &Rules{},
	}
}

func nothingMore(context.Context, *FilterRequest) (FilterDecision, error) {
	return FilterDecision{Action: FilterAllow}, nil
}

// targetRow is a row of the table of REQ-8.
type targetRow struct {
	target, normalized string // normalized is empty for what is malformed
	ambiguous          bool
	spelled            string // empty: the target without its fragment
}

var targetRows = []targetRow{
	{"/a/../b", "/b", true, ""}, {"/a/%2E./b", "/b", true, ""}, {"/a/.", "/a/", true, ""}, {"/a/b/.%2e", "/a/", true, ""},
	{"//a", "/a", true, ""}, {`/\a`, "/a", true, ""}, {`/a\b`, "/a/b", true, ""}, {"//", "/", true, ""},
	{"/a?", "/a", false, ""}, {"/a#b", "/a", false, ""},
	{"/a//b", "/a//b", false, ""}, {"/a%2Fb", "/a%2Fb", false, ""}, {"/a%5Cb", "/a%5Cb", false, ""},
	{"/a?x=../y", "/a?x=../y", false, ""}, {"/a/..;/b", "/a/..;/b", false, ""}, {"/a/.../b", "/a/.../b", false, ""},
	{"/%zz", "/%zz", false, ""}, {"/a/%2e%2e%2fb", "/a/%2e%2e%2fb", false, ""}, {"/a|b", "/a|b", false, ""},
	{"/{x}", "/%7Bx%7D", false, ""}, {"https://h?x", "/?x", false, "/?x"},
	{"ftp://h/", "", false, ""}, {"a", "", false, ""}, {"h:443", "", false, ""}, {`https://h\a`, "", false, ""}, {"/a b", "", false, ""},
	// More than the table has.
	{"/a/../b#c", "/b", true, ""}, {"/a#/../b", "/a", false, ""}, {"/a%23b", "/a%23b", false, ""}, {"http://other", "/", false, "/"},
	{"https:///a", "", false, ""}, {"https://h:0/", "", false, ""}, {"https://h:/", "", false, ""}, {"https://h:65536/", "", false, ""},
	{"http:/a", "", false, ""}, {"*", "", false, ""}, {"?x", "", false, ""}, {"#", "", false, ""}, {"/é", "", false, ""}, {"/\x7f", "", false, ""},
}

// TestCase15_REQ5_REQ6_REQ7_REQ8_InATunnel is every row in every mode.
func TestCase15_REQ5_REQ6_REQ7_REQ8_InATunnel(t *testing.T) {
	for _, mode := range []string{"", config.TargetRefuse, config.TargetAsSpelled, config.TargetNormalize} {
		var seen *FilterRequest
		j := judging(t, Options{Filtering: Filtering{AmbiguousRequestTarget: mode,
			Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
				seen = r
				return FilterDecision{Action: FilterAllow}, nil
			}}})
		for _, row := range targetRows {
			seen = nil
			r := inTunnel(t, "GET", row.target, "Host: x")
			a, refused := j.judgeRequest(t.Context(), r)
			if what := row.judgedWrongly(mode, r, a, refused, seen); what != "" {
				t.Errorf("%q %s: %s", mode, row.target, what)
			}
		}
	}
}

func (row targetRow) judgedWrongly(mode string, r *request, a answer, refused bool, seen *FilterRequest) string {
	spelled := row.spelled
	if spelled == "" {
		spelled, _, _ = strings.Cut(row.target, "#")
	}
	out := spelled
	switch {
	case row.normalized == "":
		if !refused || a.status != "400 Bad Request" || a.mark != markRuntime || !strings.HasPrefix(a.body, reasonMalformedTarget) || seen != nil {
			return fmt.Sprintf("%+v", a)
		}
		return ""
	case row.ambiguous && (mode == "" || mode == config.TargetRefuse):
		if !refused || a.status != "400 Bad Request" || a.mark != markAmbiguous || a.body != reasonAmbiguousTarget+"\n" || seen != nil {
			return fmt.Sprintf("%+v", a)
		}
		return ""
	case mode == config.TargetNormalize:
		out = row.normalized
	}
	if refused || r.path != out || seen.RequestTarget != spelled || seen.Normalized != row.normalized || seen.Ambiguous != row.ambiguous ||
		seen.URL != "https://api.example.com"+out {
		return fmt.Sprintf("%+v, out %q, seen %+v", a, r.path, seen)
	}
	return ""
}

// TestREQ5_REQ8_WithoutAFilterInATunnel: nothing is ambiguous, but what could be taken for another place goes nowhere.
func TestREQ5_REQ8_WithoutAFilterInATunnel(t *testing.T) {
	j := judging(t, Options{})
	for _, tc := range []struct{ method, target, out string }{
		{"GET", "/a/../b", "/a/../b"}, {"GET", "//a", "//a"}, {"GET", `/\a`, `/\a`}, {"GET", "/%zz", "/%zz"}, {"GET", "/a?", "/a?"},
		{"GET", "/a#b", "/a"}, {"GET", "http://evil.test/x?y", "/x?y"}, {"GET", "HTTPS://evil.test", "/"}, {"OPTIONS", "*", "*"},
		{"OPTIONS", "https://h", "*"}, {"OPTIONS", "https://h/", "/"},
		{"GET", "*", ""}, {"GET", "evil.test:443", ""}, {"GET", "ftp://evil.test/", ""}, {"GET", "https://evil.test\\/x", ""}, {"GET", "x", ""},
		{"GET", "/\xff", ""}, {"GET", "/a\tb", ""}, {"GET", "/\x00", ""},
	} {
		r := inTunnel(t, tc.method, tc.target, "Host: x")
		a, refused := j.judgeRequest(t.Context(), r)
		if refused != (tc.out == "") || !refused && r.path != tc.out || refused && a.status != "400 Bad Request" {
			t.Errorf("%s %q: %q, %+v", tc.method, tc.target, r.path, a)
		}
	}
}

// TestREQ3_VIO13_VIO14_Lines: what is recorded holds no query, no user information, and no endless target.
func TestREQ3_VIO13_VIO14_Lines(t *testing.T) {
	j := judging(t, Options{Filtering: Filtering{Filter: denying("no", 0)}, RequireHostMatch: true})
	long := strings.Repeat("x", 300)
	for _, tc := range []struct{ method, target, host, line string }{
		{"GET", "/p?k=secret", "api.example.com", "deny http-request GET https://api.example.com/p?… (no)"},
		{"GET", "/p#secret", "api.example.com", "deny http-request GET https://api.example.com/p (no)"},
		{"OPTIONS", "*", "api.example.com", "deny http-request OPTIONS https://api.example.com (no)"},
		{"GET", "/a/../b?k=secret", "api.example.com", "deny http-request GET https://api.example.com/a/../b?… (" + reasonAmbiguousTarget + ")"},
		{"GET", "ftp://u:secret@h/?secret", "x", "deny http-request GET ftp://h/?… (malformed request-target)"},
		{"GET", long, "x", "deny http-request GET " + long[:200] + " (malformed request-target)"},
		{"GET", "/?secret", "x", "deny http-request GET https://api.example.com/?… (Host header does not match the request target)"},
		{"TRACE", "/?secret", "api.example.com", "deny http-request TRACE https://api.example.com/?… (the TRACE method is not forwarded)"},
	} {
		a, refused := j.judgeRequest(t.Context(), inTunnel(t, tc.method, tc.target, "Host: "+tc.host))
		if got := j.taken(); !refused || !slices.Equal(got, []string{tc.line}) {
			t.Errorf("%s %s: %q", tc.method, tc.target, got)
		}
		if _, reason, _ := strings.Cut(tc.line, " ("); a.body != strings.TrimSuffix(reason, ")")+"\n" {
			t.Errorf("%s %s: %q", tc.method, tc.target, a.body)
		}
	}
}

// TestCase13_REQ9_REQ10_HostMatch: each of the four, in their order.
func TestCase13_REQ9_REQ10_HostMatch(t *testing.T) {
	const (
		unread    = "TLS server name could not be read"
		name      = "TLS server name does not match the request target"
		authority = "request-target authority does not match the request target"
		several   = "more than one Host header"
		host      = "Host header does not match the request target"
	)
	for _, tc := range []struct {
		target     string // of the tunnel
		port       uint16
		sni        string
		unreadable bool
		spelled    string
		hosts      []string
		reason     string
	}{
		{"api.example.com", 443, "", false, "/", []string{"api.example.com"}, ""},
		{"api.example.com", 443, "api.example.com", false, "/", []string{"API.example.com:443"}, ""},
		{"api.example.com", 443, "api.example.com", false, "https://Api.Example.Com/", []string{"api.example.com"}, ""},
		{"api.example.com", 443, "api.example.com", false, "https://api.example.com:443?x", []string{"api.example.com"}, ""},
		{"api.example.com", 443, "", true, "https://evil/", []string{"evil", "evil"}, unread},
		{"api.example.com", 443, "evil", false, "https://evil/", []string{"evil", "evil"}, name},
		{"api.example.com", 443, "", false, "https://evil/", []string{"evil", "evil"}, authority},
		{"api.example.com", 443, "", false, "https://u@api.example.com/", []string{"api.example.com"}, authority},
		{"api.example.com", 443, "", false, "https://api.example.com:8443/", []string{"api.example.com"}, authority},
		{"api.example.com", 443, "", false, "/", []string{"evil", "evil"}, several},
		{"api.example.com", 443, "", false, "/", []string{"evil"}, host},
		{"api.example.com", 443, "", false, "/", []string{""}, host},
		{"api.example.com", 443, "", false, "/", []string{"api.example.com:"}, host},
		{"api.example.com", 443, "", false, "/", []string{"api.example.com."}, host},
		{"api.example.com", 443, "", false, "/", []string{"u@api.example.com"}, host},
		{"api.example.com", 443, "", false, "/", []string{"[api.example.com]"}, host},
		{"api.example.com", 443, "", false, "/", []string{"api.example.com:0443"}, host},
		{"api.example.com", 443, "", false, "/", []string{"api.example.com:80"}, host},
		{"api.example.com", 443, "", false, "/", nil, host}, // HTTP/1.0
		{"api.example.com", 8443, "", false, "/", []string{"api.example.com"}, host},
		{"api.example.com", 8443, "", false, "/", []string{"API.example.com:8443"}, ""},
		{"api.example.com", 8443, "", false, "/", []string{"api.example.com.:8443"}, host},
		{"api.example.com", 8443, "", false, "/", []string{"api.example.com:8443", "api.example.com:8443"}, several},
		{"::1", 443, "", false, "/", []string{"[::1]"}, ""},
		{"::1", 443, "", false, "/", []string{"[0:0::1]:443"}, ""},
		{"::1", 443, "", false, "/", []string{"::1"}, host},
		{"::1", 443, "x", false, "/", []string{"[::1]"}, name},
		{"127.0.0.1", 443, "127.0.0.1", false, "/", []string{"127.0.0.1"}, ""},
		{"127.0.0.1", 443, "", false, "/", []string{"[127.0.0.1]"}, host},
	} {
		for _, f := range []Filtering{{}, {Filter: nothingMore}} {
			j := judging(t, Options{RequireHostMatch: true, Filtering: f})
			r := inTunnel(t, "GET", tc.spelled)
			for _, h := range tc.hosts {
				r.header = append(r.header, httphead.Field{Name: "Host", Value: h})
			}
			bracketed := tc.target
			if strings.Contains(bracketed, ":") {
				bracketed = "[" + bracketed + "]"
			}
			r.host, r.port, r.sni, r.sniUnreadable = canonical(t, bracketed), tc.port, tc.sni, tc.unreadable
			a, refused := j.judgeRequest(t.Context(), r)
			if refused != (tc.reason != "") || refused && (a.status != "421 Misdirected Request" || a.body != tc.reason+"\n" || a.mark != markRuntime) {
				t.Errorf("%+v: %+v", tc, a)
			}
		}
	}
}

// TestCase21_REQ11_Echoes: TRACE and TRACK go nowhere where something is added to a request.
func TestCase21_REQ11_Echoes(t *testing.T) {
	asked := false
	deny := func(context.Context, *FilterRequest) (FilterDecision, error) {
		asked = true
		return FilterDecision{Action: FilterAllow}, nil
	}
	for _, tc := range []struct {
		method  string
		filter  RequestFilter
		masked  bool
		refused bool
	}{
		{"TRACE", deny, false, true}, {"TRACK", deny, false, true}, {"TRACE", nil, true, true}, {"TRACK", nil, true, true},
		{"TRACE", nil, false, false}, {"trace", nil, true, true}, {"Track", nil, true, true}, {"trace", nil, false, false}, {"trace", nothingMore, false, false}, {"GET", nil, true, false}, {"TRACER", nothingMore, true, false},
		{"m-search", nothingMore, true, false},
	} {
		j := judging(t, Options{Filtering: Filtering{Filter: tc.filter}})
		j.injectable = func(h config.Host) bool { return tc.masked && h.Name == "api.example.com" }
		a, refused := j.judgeRequest(t.Context(), inTunnel(t, tc.method, "/", "Host: x"))
		if refused != tc.refused || refused && (a.status != "405 Method Not Allowed" || a.body != "the "+tc.method+" method is not forwarded\n") || asked {
			t.Errorf("%+v: %+v, asked %v", tc, a, asked)
		}
	}
	for _, masked := range []bool{true, false} {
		j := judging(t, Options{})
		j.injectable = func(config.Host) bool { return masked }
		a, refused := j.judgeRequest(t.Context(), inTunnel(t, "POST", "/", "Host: x", "X_HTTP.Method-Override:  trace "))
		if refused != masked || refused && a.body != "the TRACE method is not forwarded\n" {
			t.Errorf("a field that names it, masked %v: %+v", masked, a)
		}
	}
}
