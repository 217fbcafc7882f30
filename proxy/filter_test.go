package proxy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

// allowing is a filter that allows everything with edits.
func allowing(d FilterDecision) RequestFilter {
	d.Action = FilterAllow
	return func(context.Context, *FilterRequest) (FilterDecision, error) { return d, nil }
}

func denying(reason string, status int) RequestFilter {
	return func(context.Context, *FilterRequest) (FilterDecision, error) {
		return FilterDecision{Reason: reason, Status: status}, nil
	}
}

func filtered(f Filtering) func(*Options) { return func(o *Options) { o.Filtering = f } }

// marked is an answer of srt's own with a mark and a body of one line.
func marked(status, mark, line string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nX-Proxy-Error: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s\n", status, mark, contentType(line), len(line)+1, line)
}

// TestNET35_Targets is the table of REQ-8 and more.
func TestNET35_Targets(t *testing.T) {
	for _, tc := range []struct {
		spelled, normalized string
		ambiguous           bool
	}{
		{"/", "/", false}, {"/a", "/a", false}, {"*", "*", false},
		{"/a/../b", "/b", true}, {"/a/%2E./b", "/b", true}, {"/a/./b", "/a/b", true}, {"/a/%2e/b", "/a/b", true},
		{"/a/.", "/a/", true}, {"/a/b/.%2e", "/a/", true}, {"/a/b/%2e%2E", "/a/", true}, {"/..", "/", true},
		{"//a", "/a", true}, {`/\a`, "/a", true}, {`/a\b`, "/a/b", true}, {"//", "/", true}, {`/a\..\b`, "/b", true},
		{"/../../a", "/a", true}, {"/a/..//b", "/b", true}, {"/..//a", "/a", true}, {"/a/../", "/", true},
		{"/a//b", "/a//b", false}, {"/a%2Fb", "/a%2Fb", false}, {"/a%5Cb", "/a%5Cb", false},
		{"/a?x=../y", "/a?x=../y", false}, {"/a/..;/b", "/a/..;/b", false}, {"/a/.../b", "/a/.../b", false},
		{"/%zz", "/%zz", false}, {"/a/%2e%2e%2fb", "/a/%2e%2e%2fb", false}, {"/a|b", "/a|b", false},
		{"/a?", "/a", false}, {"/a?b?c", "/a?b?c", false}, {"/?x", "/?x", false}, {`/a?b\c`, `/a?b\c`, false},
		{"/{x}", "/%7Bx%7D", false}, {"/a\"<>`", "/a%22%3C%3E%60", false}, {"/a'^", "/a'^", false},
		{"/?\"<>'`", "/?%22%3C%3E%27`", false}, {"/é?é", "/%C3%A9?%C3%A9", false},
		{"/a/../{x}?", "/%7Bx%7D", true},
	} {
		normalized, ambiguous := normalizeTarget(tc.spelled)
		if normalized != tc.normalized || ambiguous != tc.ambiguous {
			t.Errorf("%q: %q, %v, want %q, %v", tc.spelled, normalized, ambiguous, tc.normalized, tc.ambiguous)
		}
	}
}

// TestNET35_36_37_Refusals: what a filter, or its being there, refuses, and what is said about it.
func TestNET35_36_37_Refusals(t *testing.T) {
	const url = "http://127.0.0.1:PORT"
	panics := func(context.Context, *FilterRequest) (FilterDecision, error) { panic("at the disco") }
	fails := func(context.Context, *FilterRequest) (FilterDecision, error) {
		return FilterDecision{Action: FilterAllow}, errors.New("no connection")
	}
	set := func(name, value string) FilterDecision {
		return FilterDecision{SetHeaders: []HeaderField{{name, value}}}
	}
	for _, tc := range []struct {
		name, method, target string
		filter               RequestFilter
		status, mark, body   string
		line                 string // without the operation and the reason; empty: none
	}{
		{"NET37 deny", "GET", url + "/p?q", denying("not today", 0), "403 Forbidden", markRuntime, "not today", "GET " + url + "/p?…"},
		{"NET37 deny without a reason", "GET", url + "/p#q", denying("", 0), "403 Forbidden", markRuntime, reasonFilter, "GET " + url + "/p"},
		{"NET37 zero decision", "GET", url, func(context.Context, *FilterRequest) (d FilterDecision, err error) { return }, "403 Forbidden", markRuntime, reasonFilter, "GET " + url + "/"},
		{"NET37 status", "PUT", url + "/", denying("é", 404), "404 Not Found", markRuntime, "é", "PUT " + url + "/"},
		{"NET37 status without a phrase", "GET", url + "/", denying("x", 599), "599 ", markRuntime, "x", "GET " + url + "/"},
		{"NET37 status too low", "GET", url + "/", denying("x", 399), "403 Forbidden", markRuntime, "x", "GET " + url + "/"},
		{"NET37 status too high", "GET", url + "/", denying("x", 600), "403 Forbidden", markRuntime, "x", "GET " + url + "/"},
		{"NET37 error", "GET", url + "/", fails, "403 Forbidden", markRuntime, "sandbox policy check failed: no connection", "GET " + url + "/"},
		{"NET37 panic", "GET", url + "/", panics, "403 Forbidden", markRuntime, "sandbox policy check failed: at the disco", "GET " + url + "/"},
		{"NET37 action", "GET", url + "/", func(context.Context, *FilterRequest) (FilterDecision, error) { return FilterDecision{Action: 7}, nil },
			"403 Forbidden", markRuntime, "malformed filterRequest decision: unknown action", "GET " + url + "/"},
		{"NET37 remove name", "GET", url + "/", allowing(FilterDecision{RemoveHeaders: []string{"a b"}}),
			"403 Forbidden", markRuntime, "malformed filterRequest decision: removeHeaders holds an invalid header name", "GET " + url + "/"},
		{"NET37 set name", "GET", url + "/", allowing(set("", "x")),
			"403 Forbidden", markRuntime, "malformed filterRequest decision: setHeaders holds an invalid header name", "GET " + url + "/"},
		{"NET37 set value", "GET", url + "/", allowing(set("a", "x\r\nb: c")),
			"403 Forbidden", markRuntime, "malformed filterRequest decision: setHeaders holds an invalid header value", "GET " + url + "/"},
		{"NET37 set in cleartext", "GET", url + "/", allowing(set("a", "b")), "403 Forbidden", markRuntime, reasonHeaderSet, "GET " + url + "/"},
		{"NET36 TRACE", "TRACE", url + "/", allowing(FilterDecision{}), "405 Method Not Allowed", markRuntime, "the TRACE method is not forwarded", "TRACE " + url + "/"},
		{"NET36 TRACK", "TRACK", url + "/", allowing(FilterDecision{}), "405 Method Not Allowed", markRuntime, "the TRACK method is not forwarded", "TRACK " + url + "/"},
		{"NET36 origin form", "GET", "/x?y", allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonMalformedTarget, "GET /x?…"},
		{"NET36 asterisk", "OPTIONS", "*", allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonMalformedTarget, "OPTIONS *"},
		{"NET36 scheme", "GET", "ftp://u:secret@127.0.0.1/", allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonMalformedTarget, "GET ftp://127.0.0.1/"},
		{"NET36 host", "GET", "http://127.0.0.1\\a/", allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonMalformedTarget, "GET http://127.0.0.1\\a/"},
		{"NET36 port", "GET", "http://127.0.0.1:0/", allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonMalformedTarget, "GET http://127.0.0.1:0/"},
		{"NET36 long", "GET", strings.Repeat("é", 150), allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonMalformedTarget, "GET " + strings.Repeat("é", 100)},
		{"NET36 not UTF-8", "GET", url + "/\xff", allowing(FilterDecision{}), "400 Bad Request", markRuntime, reasonEncodeTarget, "GET " + url + "/\ufffd"},
		{"NET35 ambiguous", "GET", url + "/a/../b?tok=1", allowing(FilterDecision{}), "400 Bad Request", markAmbiguous, reasonAmbiguousTarget, "GET " + url + "/a/../b?…"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := script(t, ok200)
			port := func(text string) string { return strings.ReplaceAll(text, "PORT", fmt.Sprint(s.port)) }
			h := start(t, baseRules, filtered(Filtering{Filter: tc.filter}))
			p := h.dial()
			p.send("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", tc.method, port(tc.target), auth)
			if got, want := p.rest(), marked(tc.status, tc.mark, tc.body); got != want {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
			h.wantLines("deny http-request " + port(tc.line) + " (" + tc.body + ")")
			if len(s.got) != 0 {
				t.Errorf("%q was forwarded", <-s.got)
			}
		})
	}
}

// TestNET36_WithoutAFilter: nothing of this applies (TestNET28_29_30_32_Forwarding has TRACE).
func TestNET36_WithoutAFilter(t *testing.T) {
	for _, target := range []string{"/a/../b", "//a", `/\a`, "/\xff", "/a?"} {
		for _, f := range []Filtering{{}, {AmbiguousRequestTarget: config.TargetNormalize}} {
			s := script(t, ok200)
			upstream, _ := exchangeWith(t, s, "TRACK http://127.0.0.1:PORT"+target+" HTTP/1.0\r\n"+auth+"\r\n", filtered(f))
			if want := fmt.Sprintf("TRACK %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", target, s.port); upstream != want {
				t.Errorf("%q", upstream)
			}
		}
	}
}

func TestNET35_WhatGoesOut(t *testing.T) {
	for _, tc := range []struct{ mode, target, out string }{
		{config.TargetRefuse, "/a//b", "/a//b"}, {"", "/a%2Fb", "/a%2Fb"}, {"", "/%zz", "/%zz"}, {"", "/a?", "/a?"},
		{"", "/{x}?'", "/{x}?'"}, {"", "/a#b", "/a"}, {"", "?x", "/?x"}, {"", "", "/"}, {"", "/é", "/é"},
		{config.TargetAsSpelled, "/a/../b?c#d", "/a/../b?c"}, {config.TargetAsSpelled, "//a", "//a"},
		{config.TargetNormalize, "/a/../b?c", "/b?c"}, {config.TargetNormalize, "/{x}", "/%7Bx%7D"},
		{config.TargetNormalize, "/a?", "/a"}, {config.TargetNormalize, `/\a`, "/a"},
	} {
		s := script(t, ok200)
		var seen *FilterRequest
		filter := func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
			seen = r
			return FilterDecision{Action: FilterAllow}, nil
		}
		upstream, client := exchangeWith(t, s, "GET http://127.1:PORT"+tc.target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+auth+"\r\n",
			filtered(Filtering{Filter: filter, AmbiguousRequestTarget: tc.mode}))
		if want := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", tc.out, s.port); upstream != want {
			t.Errorf("%s %q: upstream %q, client %q", tc.mode, tc.target, upstream, client)
			continue
		}
		if want := fmt.Sprintf("http://127.0.0.1:%d%s", s.port, tc.out); seen.URL != want {
			t.Errorf("%s %q: the filter saw %q", tc.mode, tc.target, seen.URL)
		}
	}
}

func TestNET35_WhatTheFilterSees(t *testing.T) {
	s := script(t, ok200)
	var seen FilterRequest
	filter := func(_ context.Context, r *FilterRequest) (FilterDecision, error) {
		seen = *r
		r.Header[0] = HeaderField{"Changed", "by the filter"}
		return FilterDecision{Action: FilterAllow}, nil
	}
	request := "POST http://LOCALHOST.:PORT/a/./b?c#d HTTP/1.1\r\nX-One: 1\r\nHost: other\r\nConnection: close, X-Two\r\nX-Two: 2\r\n" +
		credentials("srt.a2V5", testToken) + "x-one: 3\r\nContent-Length: 2\r\n\r\nhi"
	upstream, _ := exchangeWith(t, s, request, filtered(Filtering{Filter: filter, AmbiguousRequestTarget: config.TargetAsSpelled}),
		func(o *Options) { o.Resolver = resolves("localhost", "127.0.0.1") })
	want := FilterRequest{
		Method: "POST", URL: fmt.Sprintf("http://localhost:%d/a/./b?c", s.port), Scheme: "http", Host: "localhost", Port: uint16(s.port),
		RequestTarget: "/a/./b?c", Normalized: "/a/b?c", Ambiguous: true, Key: "key",
		Header: []HeaderField{{"X-One", "1"}, {"Host", "other"}, {"Connection", "close, X-Two"}, {"X-Two", "2"}, {"x-one", "3"}, {"Content-Length", "2"}},
	}
	want.RawHeader = slices.Clone(want.Header)
	if seen.Body == nil {
		t.Error("no body")
	}
	seen.Body = nil
	want.Header[0] = HeaderField{"Changed", "by the filter"} // seen shares the slice that the filter changed
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("\n got %+v\nwant %+v", seen, want)
	}
	if want := fmt.Sprintf("POST /a/./b?c HTTP/1.1\r\nX-One: 1\r\nHost: localhost:%d\r\nx-one: 3\r\nContent-Length: 2\r\n\r\nhi", s.port); upstream != want {
		t.Errorf("upstream %q", upstream)
	}
}

func TestNET37_HeaderEdits(t *testing.T) {
	for _, tc := range []struct {
		name     string
		decision FilterDecision
		header   string
		want     string
	}{
		{"remove every spelling", FilterDecision{RemoveHeaders: []string{"X-Api-Key"}}, "x_api.key: 1\r\nA: b\r\nX-API-KEY: 2\r\n", "A: b\r\n"},
		{"set replaces", FilterDecision{SetHeaders: []HeaderField{{"X-A", "1"}, {"Y", " 2\t"}, {"x_a", "3"}}}, "X.a: 0\r\nB: b\r\n", "B: b\r\nX-A: 1\r\nX-A: 3\r\nY: 2\r\n"},
		{"remove, then set", FilterDecision{RemoveHeaders: []string{"A"}, SetHeaders: []HeaderField{{"A", "new"}}}, "a: old\r\n", "A: new\r\n"},
		{"Connection cannot name what is set", FilterDecision{SetHeaders: []HeaderField{{"X-A", "1"}}}, "Connection: x-a\r\nX-A: 0\r\n", "X-A: 1\r\n"},
		{"REQ-18 fields stay", FilterDecision{RemoveHeaders: []string{"Host", "content_length"},
			SetHeaders: []HeaderField{{"Host", "evil"}, {"Transfer-Encoding", "chunked"}, {"Content.Length", "9"}, {"TE", "x"}, {"Upgrade", "x"},
				{"Proxy-Authorization", "x"}, {"Connection", "x"}}}, "A: b\r\n", "A: b\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := script(t, ok200)
			upstream, client := exchangeWith(t, s, "POST http://127.0.0.1:PORT/ HTTP/1.0\r\nHost: a\r\n"+tc.header+"Content-Length: 2\r\n"+auth+"\r\nhi",
				filtered(Filtering{Filter: allowing(tc.decision), AllowPlaintextHeaderSet: true}))
			want := fmt.Sprintf("POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", s.port)
			got, ok := strings.CutPrefix(upstream, want)
			// Where Content-Length stands among the rest does not matter here.
			if got = strings.Replace(got, "Content-Length: 2\r\n", "", 1); !ok || got != tc.want+"\r\nhi" {
				t.Errorf("upstream %q, client %q", upstream, client)
			}
		})
	}
}

// TestREQ12_ClientThatLeaves: the context of the filter ends, its answer is dropped and nothing is dialled.
func TestREQ12_ClientThatLeaves(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	filter := func(ctx context.Context, _ *FilterRequest) (FilterDecision, error) {
		close(asked)
		<-ctx.Done()
		close(ended)
		return FilterDecision{Action: FilterAllow}, nil
	}
	s := script(t, ok200)
	h := start(t, baseRules, filtered(Filtering{Filter: filter}))
	p := h.dial()
	p.send("GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: a\r\n%s\r\n", s.port, auth)
	<-asked
	p.Close()
	<-ended
	if !settles(func() bool { h.server.mu.Lock(); defer h.server.mu.Unlock(); return len(h.server.conns) == 0 }) {
		t.Error("the client was not released")
	}
	h.wantLines()
	if len(s.got) != 0 {
		t.Error("the request was forwarded")
	}
}

func TestREQ2_TheFilterIsAskedLast(t *testing.T) {
	for name, request := range map[string]string{
		"credentials": "GET http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"NET-7":       "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n" + auth + "\r\n",
		"framing":     "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n" + auth + "\r\n",
		"NET-34":      "GET http://127.0.0.1/ HTTP/1.1\r\nHost: other\r\n" + auth + "\r\n",
		"NET-32":      "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: x\r\n" + auth + "\r\n",
	} {
		asked := false
		h := start(t, baseRules, func(o *Options) { o.RequireHostMatch = true }, filtered(Filtering{
			Filter: func(context.Context, *FilterRequest) (FilterDecision, error) {
				asked = true
				return FilterDecision{}, nil
			},
		}))
		p := h.dial()
		p.send("%s", strings.Replace(request, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		if got := p.rest(); !strings.HasPrefix(got, "HTTP/1.1 4") || asked {
			t.Errorf("%s: asked %v, %q", name, asked, got)
		}
	}
}

func TestOptionsOfTheFilter(t *testing.T) {
	if _, err := New(Options{Filtering: Filtering{AmbiguousRequestTarget: "Refuse"}}); !errors.Is(err, ErrInvalidOptions) {
		t.Errorf("%v", err)
	}
}
