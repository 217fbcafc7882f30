package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
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
}

func judging(t testing.TB, o Options) *judged {
	t.Helper()
	j := &judged{}
	o.OnViolation = func(e violation.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, e.Line())
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
		{"TRACE", nil, false, false}, {"trace", nil, true, false}, {"GET", nil, true, false}, {"TRACER", nothingMore, true, false},
		{"m-search", nothingMore, true, false},
	} {
		j := judging(t, Options{Filtering: Filtering{Filter: tc.filter}})
		j.injectable = func(h config.Host) bool { return tc.masked && h.Name == "api.example.com" }
		a, refused := j.judgeRequest(t.Context(), inTunnel(t, tc.method, "/", "Host: x"))
		if refused != tc.refused || refused && (a.status != "405 Method Not Allowed" || a.body != "the "+tc.method+" method is not forwarded\n") || asked {
			t.Errorf("%+v: %+v, asked %v", tc, a, asked)
		}
	}
}

// TestREQ13_TLS33_WhatTheFilterSeesInATunnel also shows that nothing it does to it has an effect.
func TestREQ13_TLS33_WhatTheFilterSeesInATunnel(t *testing.T) {
	var seen FilterRequest
	j := judging(t, Options{Filtering: Filtering{Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		seen = *r
		seen.Header, seen.RawHeader = slices.Clone(r.Header), slices.Clone(r.RawHeader)
		for i := range r.Header {
			r.Header[i] = HeaderField{"X", "changed"}
		}
		for i := range r.RawHeader {
			r.RawHeader[i] = HeaderField{"Y", "changed"}
		}
		r.Method, r.URL, r.Host, r.Port, r.RequestTarget, r.Normalized = "DELETE", "x", "evil", 1, "/x", "/x"
		return FilterDecision{Action: FilterAllow}, nil
	}}})
	r := inTunnel(t, "POST", "https://evil.test/a?b#c", "X-One: 1", "Host: first", "authorization: a", "Connection: X-Two, close", "x-two: 2",
		"Authorization: b", "Host: second", "Proxy-Authorization: secret", "COOKIE: c", "Cookie: d", "Expect: 100-continue",
		"Content-Length: 0")
	r.port, r.sni, r.key = 8443, "sni.test", "key"
	if a, refused := j.judgeRequest(t.Context(), r); refused {
		t.Fatalf("%+v", a)
	}
	raw := []HeaderField{{"X-One", "1"}, {"Host", "first"}, {"authorization", "a"}, {"Connection", "X-Two, close"}, {"x-two", "2"},
		{"Authorization", "b"}, {"Host", "second"}, {"COOKIE", "c"}, {"Cookie", "d"}, {"Expect", "100-continue"}, {"Content-Length", "0"}}
	want := FilterRequest{
		Method: "POST", URL: "https://api.example.com:8443/a?b", Scheme: "https", Host: "api.example.com", Port: 8443, SNI: "sni.test",
		RequestTarget: "/a?b", Normalized: "/a?b", RawHeader: raw, Header: append(slices.Clone(raw[:5]), raw[7:]...), Key: "key",
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("\n got %+v\nwant %+v", seen, want)
	}
	out := fields("X-One: 1", "Host: api.example.com:8443", "authorization: a", "COOKIE: c", "Cookie: d", "Content-Length: 0")
	if !slices.Equal(r.header, out) || r.path != "/a?b" || r.method != "POST" {
		t.Errorf("%s %s %q", r.method, r.path, r.header)
	}
	r = inTunnel(t, "GET", "/", "Host: x")
	r.sni, r.sniUnreadable = "x_y", true
	if _, refused := j.judgeRequest(t.Context(), r); refused || seen.SNI != "" || seen.Body != nil {
		t.Errorf("%+v", seen)
	}
}

// TestTLS32_TLS33_WhatGoesOut: without a filter too.
func TestTLS32_TLS33_WhatGoesOut(t *testing.T) {
	j := judging(t, Options{})
	for _, tc := range []struct {
		name      string
		host      string
		port      uint16
		in, wants []string
	}{
		{"no Host", "api.example.com", 443, nil, []string{"Host: api.example.com"}},
		{"port", "api.example.com", 80, []string{"A: b", "host: x"}, []string{"A: b", "host: api.example.com:80"}},
		{"IPv6", "[::1]", 443, []string{"Host: x"}, []string{"Host: [::1]"}},
		{"first lines", "api.example.com", 443,
			[]string{"Host: x", "From: 1", "from: 2", "Referer: 1", "REFERER: 2", "User-Agent: 1", "User-Agent: 2", "Content-Type: 1", "Content-type: 2",
				"If-Modified-Since: 1", "If-Modified-Since: 2", "Max-Forwards: 1", "Max-Forwards: 2", "Accept: 1", "Accept: 2"},
			[]string{"Host: api.example.com", "From: 1", "Referer: 1", "User-Agent: 1", "Content-Type: 1", "If-Modified-Since: 1", "Max-Forwards: 1",
				"Accept: 1", "Accept: 2"}},
		{"hop by hop", "api.example.com", 443,
			[]string{"Host: x", "Connection: A, host", "a: 1", "Keep-Alive: 1", "Proxy-Authenticate: 1", "Proxy-Authorization: 1", "Proxy-Connection: 1", "TE: 1",
				"Trailer: 1", "Transfer-Encoding: chunked", "Upgrade: 1", "Transfer_Encoding: chunked", "Content.Length: 9", "B: 1"},
			[]string{"Host: api.example.com", "B: 1"}},
	} {
		r := inTunnel(t, "GET", "/", tc.in...)
		r.host, r.port = canonical(t, tc.host), tc.port
		if a, refused := j.judgeRequest(t.Context(), r); refused || !slices.Equal(r.header, fields(tc.wants...)) {
			t.Errorf("%s: %q, %+v", tc.name, r.header, a)
		}
	}
}

// TestREQ15_REQ16_REQ21_Decisions: the verdicts and edits of a filter, on both paths.
func TestREQ15_REQ16_REQ21_Decisions(t *testing.T) {
	returns := func(d FilterDecision, err error) RequestFilter {
		return func(context.Context, *FilterRequest) (FilterDecision, error) { return d, err }
	}
	set := []HeaderField{{"A", "b"}}
	for _, tc := range []struct {
		name          string
		filter        RequestFilter
		tunnel, plain string // the status and the body, or "" for an allow
	}{
		{"zero", returns(FilterDecision{}, nil), "403 Forbidden: denied by sandbox policy", "="},
		{"deny 451", returns(FilterDecision{Status: 451, Reason: "law"}, nil), "451 Unavailable For Legal Reasons: law", "="},
		{"deny 200", returns(FilterDecision{Status: 200}, nil), "403 Forbidden: denied by sandbox policy", "="},
		{"deny 600", returns(FilterDecision{Status: 600}, nil), "403 Forbidden: denied by sandbox policy", "="},
		{"deny with fields", returns(FilterDecision{SetHeaders: []HeaderField{{"a b", "\r\n"}}, RemoveHeaders: []string{""}}, nil),
			"403 Forbidden: denied by sandbox policy", "="},
		{"error", returns(FilterDecision{Action: FilterAllow}, errors.New("oops")), "403 Forbidden: sandbox policy check failed: oops", "="},
		{"error without a text", returns(FilterDecision{Action: FilterAllow}, errors.New("")),
			"403 Forbidden: sandbox policy check failed: the filter failed without a reason", "="},
		{"panic", func(context.Context, *FilterRequest) (FilterDecision, error) { panic("boom") },
			"403 Forbidden: sandbox policy check failed: boom", "="},
		{"action", returns(FilterDecision{Action: 2}, nil), "403 Forbidden: malformed filterRequest decision: unknown action", "="},
		{"remove", returns(FilterDecision{Action: FilterAllow, RemoveHeaders: []string{"a:"}}, nil),
			"403 Forbidden: malformed filterRequest decision: removeHeaders holds an invalid header name", "="},
		{"set name", returns(FilterDecision{Action: FilterAllow, SetHeaders: []HeaderField{{"a\n", ""}}}, nil),
			"403 Forbidden: malformed filterRequest decision: setHeaders holds an invalid header name", "="},
		{"set value", returns(FilterDecision{Action: FilterAllow, SetHeaders: []HeaderField{{"a", "b\x00"}}}, nil),
			"403 Forbidden: malformed filterRequest decision: setHeaders holds an invalid header value", "="},
		{"case 19", returns(FilterDecision{Action: FilterAllow, SetHeaders: set}, nil), "", "403 Forbidden: " + reasonHeaderSet},
		{"allow", returns(FilterDecision{Action: FilterAllow}, nil), "", ""},
	} {
		j := judging(t, Options{Filtering: Filtering{Filter: tc.filter}})
		if tc.plain == "=" {
			tc.plain = tc.tunnel
		}
		for want, r := range map[string]*request{
			"tunnel " + tc.tunnel: inTunnel(t, "GET", "/", "Host: x"),
			"plain " + tc.plain:   inCleartext(t, "GET", "http://api.example.com/", "Host: x"),
		} {
			got := strings.Fields(want)[0] + " "
			if a, refused := j.judgeRequest(t.Context(), r); refused {
				got += a.status + ": " + strings.TrimSuffix(a.body, "\n")
				if lines := j.taken(); len(lines) != 1 {
					t.Errorf("%s: %q", tc.name, lines)
				}
			}
			if got != want {
				t.Errorf("%s: %q, want %q", tc.name, got, want)
			}
		}
	}
}

// TestCase17_REQ17_REQ18_REQ19_EditsInATunnel is what an allow decision makes of the fields.
func TestCase17_REQ17_REQ18_REQ19_EditsInATunnel(t *testing.T) {
	for _, tc := range []struct {
		name     string
		decision FilterDecision
		in, out  []string
	}{
		{"removed in every spelling", FilterDecision{RemoveHeaders: []string{"x-api-key"}}, []string{"X_Api.Key: 1", "X-API-Key: 2", "Y: 3"}, []string{"Y: 3"}},
		{"one name", FilterDecision{SetHeaders: []HeaderField{{"X_Foo", "a"}, {"x-foo", "b"}}}, []string{"x.foo: 0"}, []string{"X_Foo: a", "X_Foo: b"}},
		{"fixed", FilterDecision{SetHeaders: []HeaderField{{"Host", "evil"}, {"Content-Length", "9"}, {"content_length", "9"}, {"Keep.Alive", "1"},
			{"Connection", "x"}, {"Proxy-Connection", "x"}, {"Transfer-Encoding", "chunked"}, {"TE", "x"}, {"Trailer", "x"}, {"Upgrade", "x"}},
			RemoveHeaders: []string{"HOST", "Content-Length"}}, []string{"Content-Length: 2"}, []string{"Content-Length: 2"}},
		{"first lines do not hold for what is set", FilterDecision{SetHeaders: []HeaderField{{"Authorization", "1"}, {"authorization", "2"}}},
			[]string{"Authorization: 0"}, []string{"Authorization: 1", "Authorization: 2"}},
		{"not by Connection", FilterDecision{SetHeaders: []HeaderField{{"Authorization", "1"}}}, []string{"Connection: authorization"}, []string{"Authorization: 1"}},
	} {
		j := judging(t, Options{Filtering: Filtering{Filter: allowing(tc.decision)}})
		r := inTunnel(t, "POST", "/", append([]string{"Host: x"}, tc.in...)...)
		a, refused := j.judgeRequest(t.Context(), r)
		if want := fields(append([]string{"Host: api.example.com"}, tc.out...)...); refused || !slices.Equal(r.header, want) {
			t.Errorf("%s: %q, %+v", tc.name, r.header, a)
		}
	}
}

// TestREQ14_BodyInATunnel: the filter reads what the tunnel gives, until it returns.
func TestREQ14_BodyInATunnel(t *testing.T) {
	var kept io.Reader
	var got string
	j := judging(t, Options{Filtering: Filtering{Filter: func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		kept = r.Body
		b, err := io.ReadAll(r.Body)
		got = string(b)
		return FilterDecision{Action: FilterAllow}, err
	}}})
	r := inTunnel(t, "GET", "/", "Host: x", "Content-Length: 3")
	r.body = strings.NewReader("abc")
	if a, refused := j.judgeRequest(t.Context(), r); refused || got != "abc" {
		t.Errorf("%q, %+v", got, a)
	}
	if n, err := kept.Read(make([]byte, 1)); n != 0 || !errors.Is(err, ErrBodyClosed) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestREQ20_StripResponse(t *testing.T) {
	j := judging(t, Options{StripResponseHeaders: []string{"set_cookie"}})
	h := j.stripResponse(fields("Set-Cookie: 1", "SET.cookie: 2", "A: 3"))
	if !slices.Equal(h, fields("A: 3")) {
		t.Errorf("%q", h)
	}
}
