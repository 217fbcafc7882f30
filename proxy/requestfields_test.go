package proxy

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

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

// TestREQ15_REQ16_REQ21_Decisions: the verdicts and edits of a filter, on both paths (cases 16 and 19).
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
